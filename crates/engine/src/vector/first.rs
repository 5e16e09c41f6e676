//! Rows by an order: the first ones, or all, with columns of windows.

use std::cmp::Ordering;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::keys::Keys;
use super::limits::HostLimits;
use super::order::Order;
use super::program::Program;
use super::rows::{Words, lay_out};
use super::values::{Register, Selection, Value};
use super::windows;
use crate::error::{Result, unsupported};
use crate::ir::Overflow;
use crate::plan::group_values::GroupValue;
use crate::plan::row_layout::RowLayout;
use crate::plan::windows::WindowsPlan;

/// Rows that are kept beside the best before the others are dropped.
const SURPLUS: usize = 1 << 14;
/// Rows from which on all cores sort them and put them in order.
const PARALLEL_ROWS: usize = 1 << 14;

/// What becomes of rows by an order.
#[derive(Debug)]
pub(super) struct FirstPlan {
    pub(super) order: Order,
    pub(super) outputs: Vec<Program>,
    pub(super) row: RowLayout,
    /// Rows that are wanted, and those of them that are left out.
    pub(super) k: Option<u64>,
    pub(super) skip: u64,
    pub(super) windows: Option<WindowsPlan>,
    pub(super) overflow: Overflow,
    /// What the words of rows stand for, where another pipeline scans them.
    pub(super) values: Vec<GroupValue>,
}

impl FirstPlan {
    /// Words of a row: its outputs, then its windows.
    pub(super) fn row_words(&self) -> usize {
        self.row.words() + self.windows.as_ref().map_or(0, |windows| windows.row.words())
    }

    /// Whether a row that comes behind those that are wanted raises nothing.
    fn drops_early(&self) -> bool {
        self.k.is_some() && !self.outputs.iter().any(|output| output.is_fallible)
    }

    /// The rows that all threads have found together.
    ///
    /// # Errors
    /// Unsupported for 2³² rows and more; sums of windows that leave their type; those of [`HostLimits::take`].
    pub(super) fn finish(&self, parts: Vec<Ranked>, limits: &HostLimits<'_>) -> Result<Words> {
        let ranked = parts.into_iter().reduce(Ranked::append).unwrap_or_default();
        if u32::try_from(ranked.count).is_err() {
            return unsupported(format!("an order of {} rows on the CPU's columns", ranked.count));
        }
        limits.take((ranked.count * (size_of::<(u64, u32)>() + 8 * self.row_words())) as u64)?;
        let mut order = ranked.order(self);
        order.drain(..order.len().min(self.skip as usize));
        let (own, row_words) = (self.row.words(), self.row_words());
        let mut rows = Words { words: vec![0; order.len() * row_words], row_words, count: order.len() };
        if own > 0 {
            let all = rows.words.par_chunks_exact_mut(row_words).with_min_len(PARALLEL_ROWS);
            all.zip(order.par_iter()).for_each(|(row, from)| {
                row[..own].copy_from_slice(&ranked.rows[*from as usize * own..][..own]);
            });
        }
        if let Some(windows) = &self.windows {
            let words = self.order.words;
            let keys = order.par_iter().flat_map_iter(|row| &ranked.rank(self, *row as usize)[..words]);
            let keys: Vec<u64> = keys.copied().collect();
            let sorted = windows::Sorted { plan: windows, row: &self.row, order: &self.order, keys: &keys };
            sorted.add(&mut rows, self.overflow, limits)?;
        }
        Ok(rows)
    }
}

/// Rows of a thread with what orders them: packed keys, then the number of the row.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    keys: Keys,
    ranks: Vec<u64>,
    /// Words of the outputs.
    rows: Vec<u64>,
    count: usize,
    /// Packed keys of the last row that may still be wanted, once it is known of enough.
    bound: Option<Vec<u64>>,
}

impl Ranked {
    pub(super) fn new(plan: &FirstPlan) -> Ranked {
        Ranked { keys: Keys::of_words(plan.order.words), ..Ranked::default() }
    }

    /// Packs the keys of a vector's rows, and leaves out rows that are behind all that are wanted.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn enter(&mut self, plan: &FirstPlan, registers: &[Register], rows: &mut Selection) -> Result<()> {
        plan.order.pack(registers, rows, &mut self.keys)?;
        if let Some(bound) = &self.bound {
            rows.retain(|row| self.keys.words.iter().map(|words| words[row]).le(bound.iter().copied()));
        }
        Ok(())
    }

    /// Adds rows that were entered, with their numbers.
    pub(super) fn push(
        &mut self,
        plan: &FirstPlan,
        columns: &[Value<'_>],
        (rows, number): (&Selection, &dyn Fn(usize) -> u64),
    ) {
        rows.each(|row| {
            self.ranks.extend(self.keys.words.iter().map(|words| words[row]));
            self.ranks.push(number(row));
            lay_out(&plan.row, columns, row, &mut self.rows);
        });
        self.count += rows.len();
        let Some(k) = plan.k.map(|k| usize::try_from(k).unwrap_or(usize::MAX)) else { return };
        if self.count > k.saturating_mul(2).saturating_add(SURPLUS) {
            self.trim(plan);
        }
    }

    /// Leaves the rows that may be wanted.
    fn trim(&mut self, plan: &FirstPlan) {
        let order = self.order(plan);
        let (mut ranks, mut rows, own) = (Vec::new(), Vec::new(), plan.row.words());
        for row in &order {
            ranks.extend_from_slice(self.rank(plan, *row as usize));
            rows.extend_from_slice(&self.rows[*row as usize * own..][..own]);
        }
        let last = order.last().map(|row| self.rank(plan, *row as usize)[..plan.order.words].to_vec());
        self.bound = last.filter(|_| plan.drops_early());
        (self.ranks, self.rows, self.count) = (ranks, rows, order.len());
    }

    pub(super) fn bytes(&self) -> u64 {
        8 * (self.ranks.len() + self.rows.len()) as u64
    }

    fn append(mut self, mut other: Ranked) -> Ranked {
        self.ranks.append(&mut other.ranks);
        self.rows.append(&mut other.rows);
        self.count += other.count;
        self
    }

    fn rank(&self, plan: &FirstPlan, row: usize) -> &[u64] {
        let words = plan.order.words + 1;
        &self.ranks[row * words..][..words]
    }

    /// The rows that are wanted in order.
    fn order(&self, plan: &FirstPlan) -> Vec<u32> {
        // Most rows differ in the first word, which lies beside their number here.
        let mut order: Vec<(u64, u32)> = (0..self.count).map(|row| (self.rank(plan, row)[0], row as u32)).collect();
        let rest = |row: u32| &self.rank(plan, row as usize)[1..];
        let compare = |one: &(u64, u32), other: &(u64, u32)| match one.0.cmp(&other.0) {
            Ordering::Equal => rest(one.1).cmp(rest(other.1)),
            order => order,
        };
        let k = plan.k.map_or(self.count, |k| k.min(self.count as u64) as usize);
        if k > 0 && k < order.len() {
            order.select_nth_unstable_by(k - 1, compare);
        }
        order.truncate(k);
        match order.len() {
            ..PARALLEL_ROWS => order.sort_unstable_by(compare),
            _ => order.par_sort_unstable_by(compare),
        }
        order.into_iter().map(|(_, row)| row).collect()
    }
}
