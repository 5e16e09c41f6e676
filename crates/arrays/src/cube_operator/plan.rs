//! The plan of a CUBE: its runs, and why each cuboid is made as it is.

use std::collections::HashMap;
use std::fmt::Write;

use super::asked::{Algorithm, Rule};
use super::columns::Components;
use super::cost::{Costs, expected_groups};
use super::paths::{Mask, Path, mask_of, paths};
use super::rows::{Extent, check_dimensions};
use crate::key::KeyLayout;
use crate::{Result, SchemeError};

/// Most bits of the keys of a dense table: 64 MiB of group numbers.
pub(crate) const DENSE_BITS_MAX: u32 = 24;

/// What a run groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// The rows.
    Rows,
    /// A cuboid of another run, by its dimensions in their order.
    Cuboid(Vec<usize>),
}

/// How a run finds the groups of its longest cuboid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its source sorted by all dimensions but the first `shared`, by which it is sorted already.
    Sort {
        /// Dimensions that need no sort.
        shared: usize,
    },
    /// A table with an entry for each possible key.
    Dense,
    /// A hash table.
    Hash,
}

/// A cuboid of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Groups that it is expected to have.
    pub groups: f64,
    /// Why it is made so.
    pub reason: String,
}

/// One grouping of a source: the cuboids of a path of prefixes.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Dimensions of the longest cuboid, in the order of its keys.
    pub order: Vec<usize>,
    /// What is grouped.
    pub source: Source,
    /// How.
    pub way: Way,
    /// The cuboids, the longest first; each further one lacks the last dimension of the one in front of it.
    pub cuboids: Vec<Planned>,
}

/// How all cuboids of some dimensions are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) layout: KeyLayout,
    pub(crate) components: Components,
    algorithm: Algorithm,
    runs: Vec<Run>,
}

impl Plan {
    /// Plans the CUBE of these dimensions of the rows' layout, of which there may be none.
    ///
    /// # Errors
    /// Dimensions that the layout lacks, that repeat, or that are more than 16; an algorithm whose way has no cost.
    pub fn new(
        extent: &Extent,
        dimensions: &[usize],
        rules: &[Rule],
        algorithm: Algorithm,
        costs: &Costs,
    ) -> Result<Plan> {
        check_dimensions(&extent.layout, dimensions)?;
        let is_absent = match algorithm {
            Algorithm::Dense => costs.dense.is_none(),
            Algorithm::Hash => costs.hash.is_none(),
            Algorithm::Auto | Algorithm::Paths | Algorithm::SmallestParent => false,
        };
        if is_absent {
            return Err(SchemeError::NoAlgorithm { algorithm });
        }
        let mut planner = Planner { extent, dimensions, algorithm, costs, orders: HashMap::new(), runs: Vec::new() };
        planner.plan();
        let runs = planner.shared();
        Ok(Plan { layout: extent.layout.clone(), components: Components::of(rules), algorithm, runs })
    }

    /// The runs; one that is made from a cuboid may stand in front of the run of that cuboid.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What is made of each cuboid and why, a line each; `names` are those of the layout's dimensions.
    pub fn explain(&self, names: &[&str]) -> String {
        let name = |order: &[usize]| match order {
            [] => "all".to_string(),
            _ => order.iter().map(|dimension| names[*dimension]).collect::<Vec<&str>>().join("·"),
        };
        let sorts = self.runs.iter().filter(|run| run.is_sorted_anew()).count();
        let cuboids: usize = self.runs.iter().map(|run| run.cuboids.len()).sum();
        let mut text = format!("{}: {cuboids} cuboids by {} runs, {sorts} sorts\n", self.algorithm, self.runs.len());
        for run in &self.runs {
            for (at, cuboid) in run.cuboids.iter().enumerate() {
                let length = run.order.len() - at;
                let how = match (at, &run.way) {
                    (0, way) => {
                        let way = match way {
                            Way::Sort { shared } if *shared == run.order.len() => "as it is sorted".to_string(),
                            Way::Sort { shared: 0 } => "sorted".to_string(),
                            Way::Sort { shared } => format!("sorted within {}", name(&run.order[..*shared])),
                            Way::Dense => "dense table".to_string(),
                            Way::Hash => "hash table".to_string(),
                        };
                        match &run.source {
                            Source::Rows => format!("{way}, from the rows"),
                            Source::Cuboid(order) => format!("{way}, from {}", name(order)),
                        }
                    }
                    _ => format!("prefix of {}", name(&run.order[..=length])),
                };
                let Planned { groups, reason } = cuboid;
                // Text of a String does not fail to be written.
                let _ = writeln!(text, "{}: {how}; about {groups:.0} groups; {reason}", name(&run.order[..length]));
            }
        }
        text
    }
}

impl Run {
    /// True if its source is sorted for it.
    pub fn is_sorted_anew(&self) -> bool {
        matches!(self.way, Way::Sort { shared } if shared < self.order.len())
    }

    /// Lengths of its cuboids, the longest first.
    pub(crate) fn lengths(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        (self.order.len() + 1 - self.cuboids.len()..=self.order.len()).rev()
    }
}

struct Planner<'a> {
    extent: &'a Extent,
    dimensions: &'a [usize],
    algorithm: Algorithm,
    costs: &'a Costs,
    /// The order in which each cuboid has its dimensions.
    orders: HashMap<Mask, Vec<usize>>,
    runs: Vec<Run>,
}

impl Planner<'_> {
    fn plan(&mut self) {
        let paths = match self.algorithm {
            Algorithm::Auto | Algorithm::Paths => paths(self.dimensions),
            Algorithm::SmallestParent | Algorithm::Dense | Algorithm::Hash => self.single(),
        };
        for path in &paths {
            for length in path.lengths() {
                let order = path.order[..length].to_vec();
                self.orders.insert(mask_of(&order), order);
            }
        }
        paths.iter().for_each(|path| self.path(path));
    }

    /// A path for each cuboid, with its dimensions in the order given.
    fn single(&self) -> Vec<Path> {
        let k = self.dimensions.len();
        let chosen = |subset: u32| {
            let places = (0..k).filter(|place| subset & 1 << place != 0);
            let order: Vec<usize> = places.map(|place| self.dimensions[place]).collect();
            Path { shortest: order.len(), order }
        };
        (0..1 << k).map(chosen).collect()
    }

    /// The runs of a path.
    fn path(&mut self, path: &Path) {
        for length in path.lengths().rev() {
            let (order, groups) = (&path.order[..length], self.groups(mask_of(&path.order[..length])));
            let (source, way, own_ms, why) = self.own(order);
            if length < path.order.len() {
                let above = self.groups(mask_of(&path.order[..=length]));
                let prefix_ms = above * self.costs.prefix / 1e6;
                let is_prefix = self.algorithm != Algorithm::Auto || prefix_ms <= own_ms;
                if let Some(run) = self.runs.last_mut().filter(|_| is_prefix) {
                    let reason = match self.algorithm {
                        Algorithm::Auto => format!("{prefix_ms:.3} ms in the same pass, {own_ms:.3} ms by itself"),
                        _ => "in the same pass".to_string(),
                    };
                    run.cuboids.push(Planned { groups, reason });
                    continue;
                }
            }
            let cuboids = vec![Planned { groups, reason: why }];
            self.runs.push(Run { order: order.to_vec(), source, way, cuboids });
        }
    }

    /// How a cuboid is made by itself: source, way, milliseconds, and the reason.
    fn own(&self, order: &[usize]) -> (Source, Way, f64, String) {
        let (cuboid, all) = (mask_of(order), mask_of(self.dimensions));
        let (source, rows) = match cuboid == all {
            true => (Source::Rows, self.extent.rows as f64),
            false => {
                let parent = if self.algorithm == Algorithm::Paths { all } else { self.smallest_parent(cuboid) };
                (Source::Cuboid(self.orders[&parent].clone()), self.groups(parent))
            }
        };
        let bits = order.iter().map(|dimension| self.extent.layout.bits()[*dimension]).sum();
        let sort = self.costs.sort(rows, bits);
        let dense = self.costs.dense(rows, bits).filter(|_| bits <= DENSE_BITS_MAX);
        let hash = self.costs.hash(rows, self.groups(cuboid), bits);
        let (way, cost) = match self.algorithm {
            Algorithm::Paths | Algorithm::SmallestParent => (Way::Sort { shared: 0 }, sort),
            Algorithm::Dense | Algorithm::Hash => match dense.filter(|_| self.algorithm == Algorithm::Dense) {
                Some(dense) => (Way::Dense, dense),
                None => (Way::Hash, hash.unwrap_or(f64::INFINITY)),
            },
            Algorithm::Auto => {
                let ways = [(Way::Dense, dense), (Way::Hash, hash)];
                let others = ways.into_iter().filter_map(|(way, cost)| Some((way, cost?)));
                others.fold((Way::Sort { shared: 0 }, sort), |one, other| if other.1 < one.1 { other } else { one })
            }
        };
        let ms = |cost: f64| format!("{:.3} ms", cost / 1e6);
        let dense = match dense {
            Some(cost) => ms(cost),
            None if self.costs.dense.is_none() => "not there".to_string(),
            None => format!("too large with 2^{bits} entries"),
        };
        let hash = hash.map_or("not there".to_string(), ms);
        let why = match self.algorithm {
            Algorithm::Auto => format!("sort {}, dense table {dense}, hash table {hash}", ms(sort)),
            Algorithm::Dense if way == Way::Hash => format!("a dense table is {dense}"),
            algorithm => format!("algorithm {algorithm}"),
        };
        (source, way, cost / 1e6, why)
    }

    fn groups(&self, cuboid: Mask) -> f64 {
        expected_groups(self.extent, cuboid)
    }

    /// The cuboid with one dimension more that is expected to have the fewest groups.
    fn smallest_parent(&self, cuboid: Mask) -> Mask {
        let others = self.dimensions.iter().map(|dimension| cuboid | 1 << dimension);
        let parents = others.filter(|parent| *parent != cuboid);
        parents.min_by(|one, other| self.groups(*one).total_cmp(&self.groups(*other))).unwrap_or(cuboid)
    }

    /// The runs in the order of their dimensions, each with what it shares with the run before it on the same source.
    fn shared(self) -> Vec<Run> {
        let place = |dimension: &usize| self.dimensions.iter().position(|other| other == dimension);
        let mut runs = self.runs;
        runs.sort_by_cached_key(|run| run.order.iter().map(place).collect::<Vec<_>>());
        // What each source is sorted by so far.
        let mut sorted: HashMap<Mask, Vec<usize>> = HashMap::new();
        for run in &mut runs {
            let (source, first) = match &run.source {
                Source::Rows if self.extent.is_sorted => (Mask::MAX, (0..self.extent.cardinalities.len()).collect()),
                Source::Rows => (Mask::MAX, Vec::new()),
                Source::Cuboid(order) => (mask_of(order), order.clone()),
            };
            if let Way::Sort { shared } = &mut run.way {
                let by = sorted.entry(source).or_insert(first);
                *shared = run.order.iter().zip(&*by).take_while(|(one, other)| one == other).count();
                if *shared < run.order.len() {
                    by.clone_from(&run.order);
                }
            }
        }
        runs
    }
}
