//! The target-based algorithm: every target looks up its base cells among the sorted keys of each segment.
//!
//! The search goes through the dimensions in the order of the key. While a range of cells is longer than the target's
//! list of base elements, each base element is found by binary search; a shorter range is scanned, page by page, and
//! pages without a base element of the target are skipped. Sources: Meinke 2.3; Lauer et al., *Exploring graphics
//! processing units as parallel coprocessors for online aggregation* (2010).

use std::ops::Range;

use rayon::prelude::*;

use super::area::tuple;
use super::component::Component;
use super::monoid::Monoid;
use super::{AggregateError, Progress, TargetMap};
use crate::facts::Segment;
use crate::matrix::SparseMatrix;

/// Targets that one thread takes at a time.
const CHUNK_TARGETS: u64 = 256;
/// A range of this many cells a base element is scanned: a binary search costs about as much.
pub(super) const SCAN_CELLS_A_BASE: usize = 8;

/// Adds up every target of a component; gives the number of additions, too.
pub(crate) fn run<M: Monoid>(
    component: &Component<'_>,
    progress: &Progress,
) -> Result<(Vec<(u64, M)>, u64), AggregateError> {
    let sizes: Vec<u32> = component.maps.iter().map(|map| map.targets()).collect();
    let targets: u64 = sizes.iter().map(|&size| u64::from(size)).product();
    let lists = lists(&component.maps);
    let weights: Vec<Vec<M::Weight>> =
        component.matrices::<M>().iter().map(|matrix| matrix.transposed().weights).collect();
    let chunks = targets.div_ceil(CHUNK_TARGETS);
    progress.expect(chunks.max(1));
    let searches =
        || -> Vec<Search<'_>> { component.parts.iter().map(|part| Search::new(part.segment, &lists)).collect() };
    let chunk = |searches: &mut Vec<Search<'_>>, chunk: u64| {
        progress.step()?;
        let (mut sums, mut additions) = (Vec::new(), 0);
        for rank in chunk * CHUNK_TARGETS..((chunk + 1) * CHUNK_TARGETS).min(targets) {
            let mut sum: Option<M> = None;
            let target = tuple(&sizes, rank);
            for (search, part) in searches.iter_mut().zip(&component.parts) {
                search.visit(&target, progress, |cell, entries| {
                    if part.filled.is_none_or(|filled| filled.get(cell)) {
                        let places = entries.iter().zip(&weights);
                        let value = places
                            .fold(part.source.value::<M>(cell), |value, (&entry, weights)| value.weigh(weights[entry]));
                        sum = Some(sum.map_or(value, |sum| sum.join(value)));
                        additions += 1;
                    }
                    true
                })?;
            }
            sums.extend(sum.map(|sum| (rank, sum)));
        }
        Ok((sums, additions))
    };
    if chunks <= 1 {
        return chunk(&mut searches(), 0);
    }
    let parts = (0..chunks).into_par_iter().map_init(searches, chunk);
    let parts: Vec<(Vec<(u64, M)>, u64)> = parts.collect::<Result<_, AggregateError>>()?;
    let additions = parts.iter().map(|part| part.1).sum();
    Ok((parts.into_iter().flat_map(|part| part.0).collect(), additions))
}

/// Base elements of each target, one matrix a dimension.
pub(super) fn lists(maps: &[&TargetMap]) -> Vec<SparseMatrix<f64>> {
    maps.iter().map(|map| map.matrix.transposed()).collect()
}

/// The search of one thread in a segment.
pub(super) struct Search<'a> {
    facts: &'a Segment,
    lists: &'a [SparseMatrix<f64>],
    /// The target whose list is in `slots`, of each dimension.
    targets: Vec<Option<u32>>,
    /// Of each dimension and base element: 1 + its place in the target's list, or 0.
    slots: Vec<Vec<u32>>,
    /// The entry of each dimension's list for the cell that is visited.
    entries: Vec<usize>,
    coordinates: Vec<u32>,
}

impl<'a> Search<'a> {
    pub(super) fn new(facts: &'a Segment, lists: &'a [SparseMatrix<f64>]) -> Search<'a> {
        let bases = |dimension| facts.pages().coordinate_max(dimension).map_or(0, |most| most as usize + 1);
        Search {
            facts,
            lists,
            targets: vec![None; lists.len()],
            slots: (0..lists.len()).map(|dimension| vec![0; bases(dimension)]).collect(),
            entries: vec![0; lists.len()],
            coordinates: vec![0; facts.pages().page_cells().min(facts.len())],
        }
    }

    /// Calls `take` with every base cell below a target, in the order of keys, and the entry of each dimension's list;
    /// stops when `take` returns false.
    pub(super) fn visit(
        &mut self,
        target: &[u32],
        progress: &Progress,
        mut take: impl FnMut(usize, &[usize]) -> bool,
    ) -> Result<(), AggregateError> {
        for (dimension, &target) in target.iter().enumerate() {
            if self.lists[dimension].row_length(target as usize) == 0 {
                return Ok(());
            }
            self.load(dimension, target);
        }
        self.descend(0, 0..self.facts.len(), 0, progress, &mut take).map(|_| ())
    }

    /// Puts the list of a target into the slots of its dimension.
    fn load(&mut self, dimension: usize, target: u32) {
        let (held, slots) = (&mut self.targets[dimension], &mut self.slots[dimension]);
        if *held == Some(target) {
            return;
        }
        let list = &self.lists[dimension];
        if let Some(before) = held.replace(target) {
            let bases = list.row(before as usize).0.iter();
            bases.for_each(|&base| slots.get_mut(base as usize).into_iter().for_each(|slot| *slot = 0));
        }
        for (place, &base) in list.row(target as usize).0.iter().enumerate() {
            // Base elements beyond the slots have no cells.
            slots.get_mut(base as usize).into_iter().for_each(|slot| *slot = place as u32 + 1);
        }
    }

    /// Visits the cells of a range that agree in all dimensions before this one; `key` holds their coordinates. Gives
    /// false when `take` did.
    fn descend(
        &mut self,
        dimension: usize,
        mut range: Range<usize>,
        key: u128,
        progress: &Progress,
        take: &mut impl FnMut(usize, &[usize]) -> bool,
    ) -> Result<bool, AggregateError> {
        progress.check()?;
        let Some(target) = self.targets.get(dimension).copied().flatten() else {
            return Ok(range.is_empty() || take(range.start, &self.entries));
        };
        let list = &self.lists[dimension];
        let first = list.offsets[target as usize];
        let bases = list.row(target as usize).0;
        if range.len() <= bases.len().saturating_mul(SCAN_CELLS_A_BASE) {
            return self.scan(dimension, range, progress, take);
        }
        let layout = self.facts.layout();
        for (place, &base) in bases.iter().enumerate() {
            if range.is_empty() || base > layout.coordinate_max(dimension) {
                break;
            }
            let own = key | u128::from(base) << layout.shift(dimension);
            let start = self.facts.keys().lower_bound(range.clone(), own);
            let end = match base == layout.coordinate_max(dimension) {
                true => range.end,
                false => self.facts.keys().lower_bound(start..range.end, own + (1 << layout.shift(dimension))),
            };
            self.entries[dimension] = first + place;
            if start < end && !self.descend(dimension + 1, start..end, own, progress, take)? {
                return Ok(false);
            }
            range.start = end;
        }
        Ok(true)
    }

    /// Compares every cell of a range with the lists of this and all later dimensions.
    fn scan(
        &mut self,
        dimension: usize,
        range: Range<usize>,
        progress: &Progress,
        take: &mut impl FnMut(usize, &[usize]) -> bool,
    ) -> Result<bool, AggregateError> {
        let pages = self.facts.pages();
        let mut start = range.start;
        while start < range.end {
            let page = start / pages.page_cells();
            let cells = start..pages.cells(page).end.min(range.end);
            start = cells.end;
            progress.check()?;
            if self.is_relevant(dimension, page) && !self.scan_cells(dimension, cells, take) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The page prefilter: every dimension has a base element of the target within the page's bounds.
    fn is_relevant(&self, from: usize, page: usize) -> bool {
        let bounds = self.facts.pages().bounds(page);
        (from..self.lists.len()).all(|dimension| {
            let Some(target) = self.targets[dimension] else { return false };
            let bases = self.lists[dimension].row(target as usize).0;
            let (least, greatest) = bounds[dimension];
            bases.get(bases.partition_point(|&base| base < least)).is_some_and(|&base| base <= greatest)
        })
    }

    fn scan_cells(&mut self, from: usize, cells: Range<usize>, take: &mut impl FnMut(usize, &[usize]) -> bool) -> bool {
        let layout = self.facts.layout();
        // The first dimension of the scan turns away most cells: its coordinates are read at once.
        self.facts.coordinates(cells.clone(), from, &mut self.coordinates);
        for (place, cell) in cells.enumerate() {
            let key = self.facts.keys().get(cell);
            let is_member = (from..self.lists.len()).all(|dimension| {
                let coordinate =
                    if dimension == from { self.coordinates[place] } else { layout.coordinate(key, dimension) };
                let slot = self.slots[dimension][coordinate as usize];
                if slot == 0 {
                    return false;
                }
                let Some(target) = self.targets[dimension] else { return false };
                self.entries[dimension] = self.lists[dimension].offsets[target as usize] + slot as usize - 1;
                true
            });
            if is_member && !take(cell, &self.entries) {
                return false;
            }
        }
        true
    }
}
