//! Exact counts of a query from a drawing, without its facts.
//!
//! Facts are all pairs of a dense tuple and a drawn one, and targets a cross product, so that every count is a product
//! of one over the leading dimensions and one over the trailing ones.

use warpcube_cube::facts::KeyLayout;

use super::Query;
use super::draw::Draw;
use super::elements::{BenchCube, Members};

/// The figures of a query in the thesis's tables 5.1 and 5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Facts that lie below a target.
    pub relevant: u64,
    /// Targets.
    pub targets: u64,
    /// Targets above a fact.
    pub filled: u64,
    /// Additions of facts to targets.
    pub additions: u64,
}

impl Counts {
    /// Counts a query of a cube.
    ///
    /// # Errors
    /// As [`BenchCube::area`].
    pub fn of(cube: &BenchCube, draw: &Draw, query: &Query) -> Result<Counts, String> {
        let targets = cube.targets(query)?;
        let sizes = cube.sizes();
        let leading = Side::of(&draw.dense, draw.layout(), 0, &targets[..draw.leading], &sizes);
        let trailing = Side::of(&draw.tuples, draw.layout(), draw.leading, &targets[draw.leading..], &sizes);
        Ok(Counts {
            relevant: leading.relevant * trailing.relevant,
            targets: leading.targets * trailing.targets,
            filled: leading.filled * trailing.filled,
            additions: leading.additions * trailing.additions,
        })
    }
}

/// Counts over some dimensions.
struct Side {
    relevant: u64,
    targets: u64,
    filled: u64,
    additions: u64,
}

impl Side {
    /// Counts tuples of the dimensions from `from` on.
    fn of(tuples: &[u64], layout: &KeyLayout, from: usize, targets: &[Vec<Members>], sizes: &[u32]) -> Side {
        let rows: Vec<Vec<Vec<u32>>> =
            targets.iter().enumerate().map(|(at, targets)| inverted(targets, sizes[from + at])).collect();
        let number: u64 = targets.iter().map(|targets| targets.len() as u64).product();
        let mut filled = vec![false; number as usize];
        let (mut relevant, mut additions) = (0, 0);
        let (mut ranks, mut next) = (Vec::new(), Vec::new());
        for tuple in tuples {
            ranks.clear();
            ranks.push(0_usize);
            for (at, rows) in rows.iter().enumerate() {
                let row = &rows[layout.coordinate(*tuple, from + at) as usize];
                next.clear();
                for rank in &ranks {
                    next.extend(row.iter().map(|target| rank * targets[at].len() + *target as usize));
                }
                std::mem::swap(&mut ranks, &mut next);
            }
            ranks.iter().for_each(|rank| filled[*rank] = true);
            relevant += u64::from(!ranks.is_empty());
            additions += ranks.len() as u64;
        }
        Side { relevant, targets: number, filled: filled.iter().filter(|filled| **filled).count() as u64, additions }
    }
}

/// The targets of each base element.
fn inverted(targets: &[Members], base: u32) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); base as usize];
    for (target, members) in targets.iter().enumerate() {
        members.iter().for_each(|(base, _)| rows[*base as usize].push(target as u32));
    }
    rows
}

#[cfg(test)]
mod tests {
    use warpcube_cube::aggregate::{Algorithm, Progress, Request, aggregate, work};

    use super::super::Definition;
    use super::super::thesis::Thesis;
    use super::*;

    fn cubes() -> Vec<BenchCube> {
        Definition::all().unwrap().into_iter().map(|definition| BenchCube::new(definition).unwrap()).collect()
    }

    #[test]
    fn counts_at_full_size_are_within_a_tenth_of_the_thesis() {
        let thesis = Thesis::read().unwrap();
        for cube in cubes() {
            let draw = Draw::new(&cube, None).unwrap();
            assert_eq!(draw.len(), cube.definition.facts.number);
            for (name, query) in &cube.definition.queries {
                let counts = Counts::of(&cube, &draw, query).unwrap();
                let thesis = thesis.query(name).unwrap();
                let additions = thesis.atomic_additions["none/thread"];
                let expected = [thesis.relevant_cells, thesis.targets, thesis.filled_targets, additions];
                let found = [counts.relevant, counts.targets, counts.filled, counts.additions];
                for (found, expected) in found.into_iter().zip(expected) {
                    let share = found as f64 / expected as f64;
                    assert!((share - 1.0).abs() < 0.1, "{name}: {counts:?}, the thesis has {expected}");
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_the_facts() {
        for cube in cubes() {
            let draw = Draw::new(&cube, Some(20_000)).unwrap();
            let facts = draw.facts().unwrap();
            assert_eq!(facts.len() as u64, draw.len());
            for query in cube.definition.queries.values() {
                let counts = Counts::of(&cube, &draw, query).unwrap();
                let area = cube.area(query).unwrap();
                let found = work(&facts, area.maps());
                assert_eq!((found.relevant_cells, found.additions), (counts.relevant, counts.additions));
                let cells = aggregate(&facts, &area, &[0], &Request::by(Algorithm::Contract), &Progress::new());
                assert_eq!((cells.unwrap().len() as u64, area.targets()), (counts.filled, counts.targets.into()));
            }
        }
    }

    #[test]
    fn definitions_are_parsed() {
        assert_eq!(Definition::all().unwrap().iter().map(|cube| cube.queries.len()).sum::<usize>(), 6);
        assert!(Definition::parse("cube: none").is_err());
    }
}
