//! The consolidated elements of a benchmark cube, and the targets of its queries.

use warpcube_arrays::random::Random;
use warpcube_cube::aggregate::{Area, TargetMap};

use super::definition::{Definition, DimensionDefinition, Part, Query, Targets};

/// Base elements of a target with their weights.
pub(super) type Members = Vec<(u32, f64)>;

/// A cube whose elements are known.
#[derive(Debug, Clone)]
pub struct BenchCube {
    pub(super) definition: Definition,
    /// The parts of each dimension, by name.
    parts: Vec<Vec<(String, Vec<Members>)>>,
    /// Base elements that buy, ascending.
    pub(super) buyers: Vec<u32>,
}

impl BenchCube {
    /// Makes the elements of a definition.
    ///
    /// # Errors
    /// Parts that are not of the form or name others that are not there.
    pub fn new(definition: Definition) -> Result<BenchCube, String> {
        let mut random = Random::of(definition.seed, 0);
        let parts = definition.dimensions.iter().map(|dimension| parts_of(dimension, &mut random));
        let parts = parts.collect::<Result<Vec<_>, String>>()?;
        let buying = &definition.facts.tuples.buyers;
        let base = definition.dimensions[position(&definition, &buying.dimension)?].base;
        let buyers = distinct(&mut random, base, buying.number);
        Ok(BenchCube { definition, parts, buyers })
    }

    /// Base elements of each dimension.
    pub fn sizes(&self) -> Vec<u32> {
        self.definition.dimensions.iter().map(|dimension| dimension.base).collect()
    }

    /// Cells of the cube: the product of the numbers of all elements.
    pub fn cells(&self) -> f64 {
        let elements = |(dimension, parts): (&DimensionDefinition, &Vec<(String, Vec<Members>)>)| {
            f64::from(dimension.base) + parts.iter().map(|(_, elements)| elements.len() as f64).sum::<f64>()
        };
        self.definition.dimensions.iter().zip(&self.parts).map(elements).product()
    }

    /// Number of a dimension.
    pub(super) fn dimension(&self, name: &str) -> Result<usize, String> {
        position(&self.definition, name)
    }

    /// The area of a query.
    ///
    /// # Errors
    /// Dimensions and parts that are not there.
    pub fn area(&self, query: &Query) -> Result<Area, String> {
        let maps = self
            .targets(query)?
            .into_iter()
            .zip(self.sizes())
            .map(|(targets, size)| TargetMap::from_targets(size, &targets).map_err(|error| error.to_string()));
        Ok(Area::new(maps.collect::<Result<_, _>>()?))
    }

    /// The targets of a query, dimension by dimension.
    pub(super) fn targets(&self, query: &Query) -> Result<Vec<Vec<Members>>, String> {
        if let Some(unknown) = query.targets.keys().find(|name| self.dimension(name).is_err()) {
            return Err(format!("no dimension {unknown}"));
        }
        let of = |(number, dimension): (usize, &DimensionDefinition)| match query.targets.get(&dimension.name) {
            Some(targets) => self.selected(number, dimension, targets),
            None => Ok(self.parts[number][0].1[..1].to_vec()),
        };
        self.definition.dimensions.iter().enumerate().map(of).collect()
    }

    fn selected(
        &self,
        number: usize,
        dimension: &DimensionDefinition,
        targets: &Targets,
    ) -> Result<Vec<Members>, String> {
        let mut selected: Vec<Members> = match targets.filled {
            None => (0..targets.base).map(|base| vec![(base, 1.0)]).collect(),
            Some(filled) => {
                let others = (0..dimension.base).filter(|base| !self.buyers.contains(base));
                let buying = self.buyers.iter().copied().take(filled as usize);
                let mut bases: Vec<u32> = others.take((targets.base - filled) as usize).chain(buying).collect();
                bases.sort_unstable();
                bases.into_iter().map(|base| vec![(base, 1.0)]).collect()
            }
        };
        for name in &targets.of {
            selected.extend_from_slice(part_of(&self.parts[number], name)?);
        }
        if targets.of_every > 0 {
            let every = |(name, part): &(&str, Part)| match part {
                Part::Drawn { every, .. } => Some((name.to_string(), *every)),
                _ => None,
            };
            let (name, every) = dimension.parts()?.iter().find_map(every).ok_or("no drawn part")?;
            let elements = part_of(&self.parts[number], &name)?.iter();
            let only =
                elements.filter(|members| members.iter().all(|(base, _)| base % every == 0) && !members.is_empty());
            selected.extend(only.take(targets.of_every as usize).cloned());
        }
        Ok(selected)
    }
}

fn position(definition: &Definition, name: &str) -> Result<usize, String> {
    let found = definition.dimensions.iter().position(|dimension| dimension.name == name);
    found.ok_or_else(|| format!("{} has no dimension {name}", definition.cube))
}

fn part_of<'a>(parts: &'a [(String, Vec<Members>)], name: &str) -> Result<&'a [Members], String> {
    let found = parts.iter().find(|part| part.0 == name);
    found.map(|part| part.1.as_slice()).ok_or_else(|| format!("no part {name}"))
}

fn parts_of(dimension: &DimensionDefinition, random: &mut Random) -> Result<Vec<(String, Vec<Members>)>, String> {
    let base = dimension.base;
    let mut parts: Vec<(String, Vec<Members>)> = Vec::new();
    for (name, part) in dimension.parts()? {
        let elements = match part {
            Part::Tree { tree } => trees(base, &tree),
            Part::Cycle { cycle } => by_base(base, cycle, |base| base % cycle),
            Part::Every { every } => vec![(0..base).step_by(every as usize).map(|base| (base, 1.0)).collect()],
            Part::Weights { weights } => vec![(0..).zip(weights).collect()],
            Part::Drawn { drawn, every, members } => drawn_elements(base, drawn, every, members, random),
            Part::SumOf { sum_of } => vec![summed(part_of(&parts, &sum_of)?)],
        };
        parts.push((name.to_string(), elements));
    }
    Ok(parts)
}

/// The elements of a tree, level by level.
fn trees(base: u32, levels: &[u32]) -> Vec<Members> {
    let scaled = |number: u32, from: u32, to: u32| (u64::from(number) * u64::from(to) / u64::from(from)) as u32;
    let mut elements = Vec::new();
    for level in 0..levels.len() {
        // From the last level up to this one, as the tree has it.
        let ancestor = |at: u32| {
            let deepest = scaled(at, base, levels[levels.len() - 1]);
            (level..levels.len() - 1).rev().fold(deepest, |node, below| scaled(node, levels[below + 1], levels[below]))
        };
        elements.extend(by_base(base, levels[level], ancestor));
    }
    elements
}

/// So many elements; each base element is in one.
fn by_base(base: u32, count: u32, element: impl Fn(u32) -> u32) -> Vec<Members> {
    let mut elements = vec![Vec::new(); count as usize];
    (0..base).for_each(|base| elements[element(base) as usize].push((base, 1.0)));
    elements
}

fn drawn_elements(base: u32, count: u32, every: u32, members: u32, random: &mut Random) -> Vec<Members> {
    let mut elements = vec![Vec::new(); count as usize];
    let mut shared = 0;
    for base in 0..base {
        if base % every == 0 {
            distinct(random, count, members).into_iter().for_each(|at| elements[at as usize].push((base, 1.0)));
            shared = random.below(count.into()) as usize;
        } else {
            elements[shared].push((base, 1.0));
        }
    }
    elements
}

/// The sum of elements: weights of base elements add up.
fn summed(elements: &[Members]) -> Members {
    let mut sums = std::collections::BTreeMap::new();
    elements.iter().flatten().for_each(|(base, weight)| *sums.entry(*base).or_insert(0.0) += weight);
    sums.into_iter().collect()
}

/// So many different numbers below a bound, ascending.
fn distinct(random: &mut Random, bound: u32, count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..bound).collect();
    for at in 0..count.min(bound) as usize {
        let other = at + random.below((bound as usize - at) as u64) as usize;
        numbers.swap(at, other);
    }
    numbers.truncate(count as usize);
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_nest() {
        let elements = trees(10, &[1, 2, 3]);
        let bases = |at: usize| elements[at].iter().map(|(base, _)| *base).collect::<Vec<_>>();
        assert_eq!(bases(0), (0..10).collect::<Vec<_>>());
        assert_eq!((bases(3), bases(4), bases(5)), (vec![0, 1, 2, 3], vec![4, 5, 6], vec![7, 8, 9]));
        assert_eq!((bases(1), bases(2)), ([bases(3), bases(4)].concat(), bases(5)));
    }

    #[test]
    fn machines_are_as_the_thesis_describes_them() {
        let machines = BenchCube::new(Definition::all().unwrap().remove(0)).unwrap();
        let parts = &machines.parts[5];
        let mut containing = [0; 64];
        parts[1].1.iter().flatten().for_each(|(base, _)| containing[*base as usize] += 1);
        assert!((0..64).all(|base| containing[base] == if base % 7 == 0 { 1000 } else { 1 }));
        assert_eq!(parts[2].1[0].iter().map(|(_, weight)| weight).sum::<f64>(), 10.0 * 1000.0 + 54.0);
        assert_eq!(machines.cells(), 15.0 * 13.0 * 51.0 * 1001.0 * 11.0 * 2066.0);
        let biker = BenchCube::new(Definition::all().unwrap().remove(1)).unwrap();
        assert!((biker.cells() / 6.68e12 - 1.0).abs() < 0.001, "{}", biker.cells());
    }
}
