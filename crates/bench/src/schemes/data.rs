//! The arrays of the suite and the expected results of every operation, by plain scans of the generated cells.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use warpcube_arrays::generate::Specification;
use warpcube_arrays::{Cells, GroupBy, Shape, SubArray};

/// Seeds of the thesis's data sets A, the cells, and B, the cells to look up.
const SEEDS: [u64; 2] = [1, 2];

/// Sums of one group-by: its dimensions are the first ones.
#[derive(Debug, PartialEq)]
pub(super) struct Sums {
    coordinates: Vec<u32>,
    sums: Vec<i64>,
}

/// One array with all expected results.
pub(super) struct Data {
    pub(super) cells: Cells<i64>,
    /// Coordinates to look up, in random order.
    pub(super) asked: Vec<u32>,
    /// The expected values at these coordinates.
    pub(super) found: Vec<Option<i64>>,
    /// The three sub-arrays with the cells inside.
    pub(super) areas: Vec<(SubArray, Cells<i64>)>,
    /// The group-bys of 1 to k - 1 dimensions.
    pub(super) sums: Vec<Sums>,
    /// A hash of all cells that does not depend on their order.
    pub(super) mixed: u64,
}

impl Data {
    /// An array of so many cells, and lookups of `lookups` tuples that are spread over it.
    pub(super) fn new(dimensions: usize, cells: usize, sparsity: f64, lookups: usize) -> Result<Data, String> {
        let failed = |error: warpcube_arrays::SchemeError| error.to_string();
        let specification = Specification::new(dimensions, cells, sparsity, SEEDS[0]).map_err(failed)?;
        let cells = specification.hundredths().map_err(failed)?;
        let others = Specification::of_shape(cells.shape().clone(), lookups, SEEDS[1]).map_err(failed)?;
        let sorted = others.coordinates().map_err(failed)?;
        let (lookups_found, areas) = rayon::join(|| found(&cells, &sorted), || areas(&cells));
        let (sums, mixed) = rayon::join(
            || (1..dimensions).into_par_iter().map(|length| sums(&cells, length)).collect(),
            || cells.iter().map(|(tuple, value)| mix(tuple, value)).fold(0, u64::wrapping_add),
        );
        let mut order: Vec<u32> = (0..lookups as u32).collect();
        order.par_sort_unstable_by_key(|at| mix(&[*at], 0));
        let order = || order.iter().map(|at| *at as usize);
        let asked = order().flat_map(|at| &sorted[at * dimensions..(at + 1) * dimensions]).copied().collect();
        let found = order().map(|at| lookups_found[at]).collect();
        Ok(Data { asked, found, areas, sums, mixed, cells })
    }

    /// True if these are the expected group-bys.
    pub(super) fn is_sums(&self, found: &[GroupBy<i64>]) -> bool {
        let equal = |(found, expected): (&GroupBy<i64>, &Sums)| {
            found.coordinates() == expected.coordinates && found.sums() == expected.sums
        };
        found.len() == self.sums.len() && found.iter().zip(&self.sums).all(equal)
    }

    /// True if the groups of one group-by ascend and have their sums: the sums of cells and of groups are equal if each
    /// is multiplied by a number that is drawn from its coordinates.
    pub(super) fn is_group_by(&self, found: &GroupBy<i64>) -> bool {
        let weighted = |tuple: &[u32], value: i64| mix(tuple, 0).wrapping_mul(value as u64);
        let dimensions = found.dimensions();
        let mut group = vec![0; dimensions.len()];
        let mut expected = 0u64;
        for (tuple, value) in self.cells.iter() {
            group.iter_mut().zip(dimensions).for_each(|(at, dimension)| *at = tuple[*dimension]);
            expected = expected.wrapping_add(weighted(&group, value));
        }
        let groups = || found.coordinates().chunks_exact(dimensions.len());
        let sum = found.iter().map(|(group, sum)| weighted(group, sum)).fold(0, u64::wrapping_add);
        sum == expected && groups().zip(groups().skip(1)).all(|(before, group)| before < group)
    }

    /// Groups of all group-bys.
    pub(super) fn groups(&self) -> usize {
        self.sums.iter().map(|sums| sums.sums.len()).sum()
    }

    /// Shape of the array.
    pub(super) fn shape(&self) -> &Shape {
        self.cells.shape()
    }
}

/// Values of sorted tuples, by merging them with the cells.
fn found(cells: &Cells<i64>, sorted: &[u32]) -> Vec<Option<i64>> {
    let mut rest = cells.iter().peekable();
    let value = |asked: &[u32]| {
        while rest.next_if(|(tuple, _)| *tuple < asked).is_some() {}
        rest.peek().filter(|(tuple, _)| *tuple == asked).map(|(_, value)| *value)
    };
    sorted.chunks_exact(cells.shape().dimensions()).map(value).collect()
}

fn areas(cells: &Cells<i64>) -> Vec<(SubArray, Cells<i64>)> {
    let of = |area: SubArray| {
        let (mut coordinates, mut values) = (Vec::new(), Vec::new());
        for (tuple, value) in cells.iter() {
            let mut bounds = area.low().iter().zip(area.high()).zip(tuple);
            if bounds.all(|((low, high), at)| low <= at && at <= high) {
                coordinates.extend_from_slice(tuple);
                values.push(value);
            }
        }
        let inside = Cells::new(cells.shape().clone(), coordinates, values);
        inside.map(|inside| (area, inside)).expect("a part of sorted cells is sorted")
    };
    SubArray::measured(cells.shape()).into_par_iter().map(of).collect()
}

fn sums(cells: &Cells<i64>, length: usize) -> Sums {
    let mut found = Sums { coordinates: Vec::new(), sums: Vec::new() };
    let mut before: Option<&[u32]> = None;
    for (tuple, value) in cells.iter() {
        let group = &tuple[..length];
        match (before == Some(group), found.sums.last_mut()) {
            (true, Some(sum)) => *sum += value,
            _ => {
                found.coordinates.extend_from_slice(group);
                found.sums.push(value);
            }
        }
        before = Some(group);
    }
    found
}

/// A number of one cell: its coordinates and value, spread over 64 bits.
pub(super) fn mix(tuple: &[u32], value: i64) -> u64 {
    let spread = |number: u64, next: u64| (number ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    tuple.iter().fold(value as u64, |number, at| spread(number, u64::from(*at)))
}
