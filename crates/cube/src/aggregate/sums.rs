//! Accumulators by rank: an array where ranks are few, a hash table otherwise; parallel work over them.
//!
//! Work is cut into chunks whose sizes depend on the data alone. Every chunk adds up in its own order and chunks merge
//! in theirs, so that sums of doubles have the same bits on any number of threads.

use std::ops::Range;

use hashbrown::HashMap;
use rayon::prelude::*;

use super::monoid::Monoid;
use super::{AggregateError, Tuning};

/// Most chunks of one step: enough for the cores of one machine, few enough to merge.
const CHUNKS_MAX: usize = 64;
/// An array has at most this many places a cell that is added, so that clearing it costs less than adding.
const PLACES_A_CELL_MAX: u64 = 4;
/// An array of so few places is always quicker than a hash table.
const PLACES_MIN: u64 = 1 << 16;
/// Cost of an addition to a hash table.
pub(super) const HASHED: f64 = 8.0;
/// Places that one thread merges at a time.
const MERGE_PLACES: usize = 1 << 13;

/// Sums by rank.
pub(crate) enum Sums<M> {
    /// A value and a flag for every rank; values of unfilled ranks are neutral.
    Dense {
        /// Values.
        values: Vec<M>,
        /// True where something was added.
        filled: Vec<bool>,
    },
    /// The filled ranks.
    Sparse(HashMap<u64, M>),
}

impl<M: Monoid> Sums<M> {
    fn new(places: u64, dense: bool) -> Sums<M> {
        match dense {
            true => Sums::Dense { values: vec![M::NEUTRAL; places as usize], filled: vec![false; places as usize] },
            false => Sums::Sparse(HashMap::new()),
        }
    }

    /// Adds a value at a rank.
    pub(crate) fn add(&mut self, rank: u64, value: M) {
        match self {
            Sums::Dense { values, filled } => {
                let place = rank as usize;
                values[place] = values[place].join(value);
                filled[place] = true;
            }
            Sums::Sparse(sums) => {
                sums.entry(rank).and_modify(|held| *held = held.join(value)).or_insert(value);
            }
        }
    }

    fn merge(&mut self, other: Sums<M>) {
        match (self, other) {
            (Sums::Dense { values, filled }, Sums::Dense { values: more, filled: more_filled }) => {
                let values = values.par_iter_mut().with_min_len(MERGE_PLACES);
                values.zip(&more).for_each(|(value, more)| *value = value.join(*more));
                let filled = filled.par_iter_mut().with_min_len(MERGE_PLACES);
                filled.zip(&more_filled).for_each(|(filled, more)| *filled |= more);
            }
            (sums, more) => more.into_tensor().for_each(|rank, value| sums.add(rank, value)),
        }
    }

    /// The sums in the order of ranks.
    pub(crate) fn into_tensor(self) -> Tensor<M> {
        match self {
            Sums::Dense { values, filled } => Tensor::Dense { values, filled },
            Sums::Sparse(sums) => {
                let mut entries: Vec<(u64, M)> = sums.into_iter().collect();
                entries.par_sort_unstable_by_key(|entry| entry.0);
                Tensor::Sparse(entries)
            }
        }
    }
}

/// Sums by rank, the row-major number of a coordinate tuple.
pub(crate) enum Tensor<M> {
    /// A value and a flag for every rank; values of unfilled ranks are neutral.
    Dense {
        /// Values.
        values: Vec<M>,
        /// True where something was added.
        filled: Vec<bool>,
    },
    /// The filled ranks, ascending.
    Sparse(Vec<(u64, M)>),
}

impl<M: Monoid> Tensor<M> {
    /// Calls `take` for every filled rank, in ascending order.
    pub(crate) fn for_each(&self, mut take: impl FnMut(u64, M)) {
        match self {
            Tensor::Dense { values, filled } => {
                let places = values.iter().zip(filled).enumerate().filter(|(_, (_, filled))| **filled);
                places.for_each(|(rank, (value, _))| take(rank as u64, *value));
            }
            Tensor::Sparse(entries) => entries.iter().for_each(|&(rank, value)| take(rank, value)),
        }
    }

    /// The filled ranks with their values, ascending.
    pub(crate) fn into_entries(self) -> Vec<(u64, M)> {
        match self {
            Tensor::Sparse(entries) => entries,
            dense => {
                let mut entries = Vec::new();
                dense.for_each(|rank, value| entries.push((rank, value)));
                entries
            }
        }
    }
}

/// True if an array of `places` is worth its memory for `cells` additions.
pub(crate) fn is_dense(places: u64, cells: u64, tuning: &Tuning) -> bool {
    places <= tuning.dense_places && places <= PLACES_MIN.max(cells.saturating_mul(PLACES_A_CELL_MAX))
}

/// Work that is cut into units of about equal size.
pub(crate) struct Scatter<'a> {
    /// Number of units: pages of cells, or entries.
    pub(crate) units: usize,
    /// Cells of a unit.
    pub(crate) unit_cells: usize,
    /// Ranks of the result are below this.
    pub(crate) places: u64,
    /// Sizes.
    pub(crate) tuning: &'a Tuning,
}

impl Scatter<'_> {
    /// Runs `work` over all units on this thread.
    pub(crate) fn sequential<M, W>(&self, work: W) -> Result<(Tensor<M>, u64), AggregateError>
    where
        M: Monoid,
        W: Fn(Range<usize>, &mut Sums<M>) -> Result<u64, AggregateError>,
    {
        let mut sums = Sums::new(self.places, self.is_dense());
        let additions = work(0..self.units, &mut sums)?;
        Ok((sums.into_tensor(), additions))
    }

    /// Runs `work` over chunks of units on all cores; `work` returns its number of additions.
    pub(crate) fn parallel<M, W>(&self, work: W) -> Result<(Tensor<M>, u64), AggregateError>
    where
        M: Monoid,
        W: Fn(Range<usize>, &mut Sums<M>) -> Result<u64, AggregateError> + Sync,
    {
        let (units, dense) = (self.units, self.is_dense());
        let chunk = self.chunk_units();
        if units <= chunk {
            // One chunk is not worth waking another thread.
            return self.sequential(work);
        }
        let parts = (0..units.div_ceil(chunk)).into_par_iter().map(|part| {
            let mut sums = Sums::new(self.places, dense);
            let additions = work(part * chunk..((part + 1) * chunk).min(units), &mut sums)?;
            Ok((sums, additions))
        });
        let parts: Vec<(Sums<M>, u64)> = parts.collect::<Result<_, AggregateError>>()?;
        let (mut all, mut additions) = (None, 0);
        for (sums, more) in parts {
            additions += more;
            match &mut all {
                None => all = Some(sums),
                Some(all) => all.merge(sums),
            }
        }
        Ok((all.unwrap_or_else(|| Sums::new(self.places, dense)).into_tensor(), additions))
    }

    fn is_dense(&self) -> bool {
        is_dense(self.places, self.cells() as u64, self.tuning)
    }

    fn cells(&self) -> usize {
        self.units * self.unit_cells
    }

    /// A chunk adds at least as many cells as its array has places: clearing and merging cost no more than adding.
    fn chunk_units(&self) -> usize {
        let places = if self.is_dense() { self.places as usize } else { 0 };
        // Small chunks asked for by a test keep their size.
        let places = if self.tuning.chunk_cells < PLACES_MIN as usize { 0 } else { places };
        let cells = self.tuning.chunk_cells.max(places).max(self.cells().div_ceil(CHUNKS_MAX));
        cells.div_ceil(self.unit_cells.max(1)).max(1)
    }
}
