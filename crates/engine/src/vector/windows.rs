//! Columns of windows over sorted rows: a partition at a time, each column in one pass over its rows.
//!
//! Both bounds of a frame only move on from row to row. What is added up over a frame is the difference of two prefix
//! sums, and extremes come from a queue of the rows that may still be one, in their order (a monotonic queue; Leis,
//! Kundhikanjana, Kemper and Neumann, "Efficient Processing of Window Functions in Analytical SQL Queries", VLDB 2015,
//! list the alternatives).

use std::collections::VecDeque;
use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::limits::HostLimits;
use super::order::{Order, Prefix};
use super::program::overflow;
use super::rows::Words;
use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::ir::{AggregateKind, Frame, FrameBound, Literal, Overflow, Ty, WindowCall, WindowFunction};
use crate::plan::row_layout::RowLayout;
use crate::plan::windows::WindowsPlan;

/// Rows of partitions that a thread takes at once.
const ROWS_AT_ONCE: usize = 1 << 14;

/// Sorted rows, whose words begin with their outputs.
pub(super) struct Sorted<'a> {
    pub(super) plan: &'a WindowsPlan,
    /// How the outputs lie.
    pub(super) row: &'a RowLayout,
    pub(super) order: &'a Order,
    /// Packed keys of the rows, side by side.
    pub(super) keys: &'a [u64],
}

/// The rows of a partition.
struct Partition<'a, 's> {
    sorted: &'a Sorted<'s>,
    words: &'a mut [u64],
    row_words: usize,
    rows: usize,
    /// The first row of each group of peers, and the end of the last one; empty if none are asked for.
    peers: Vec<usize>,
}

impl Sorted<'_> {
    /// Computes the columns behind the outputs.
    ///
    /// # Errors
    /// Sums that leave their type; those of [`HostLimits::take`].
    pub(super) fn add(&self, rows: &mut Words, rule: Overflow, limits: &HostLimits<'_>) -> Result<()> {
        let row_words = rows.row_words;
        let (mut keys, mut starts) = (usize::MAX, Vec::new());
        for (position, plan) in self.plan.calls.iter().enumerate() {
            limits.take(0)?;
            let call = &plan.call;
            if call.partition != keys {
                (keys, starts) = (call.partition, self.partitions(rows.count, call.partition));
            }
            let mut tasks: Vec<(&[usize], &mut [u64])> = Vec::new();
            let (mut first, mut words) = (0, rows.words.as_mut_slice());
            while first + 1 < starts.len() {
                let most = starts[first] + ROWS_AT_ONCE;
                let end = starts.partition_point(|start| *start <= most).clamp(first + 2, starts.len()) - 1;
                let own = (starts[end] - starts[first]) * row_words;
                let (own, others) = std::mem::take(&mut words).split_at_mut(own);
                tasks.push((&starts[first..=end], own));
                (first, words) = (end, others);
            }
            tasks.into_par_iter().try_for_each(|(starts, mut words)| {
                for pair in starts.windows(2) {
                    let own = (pair[1] - pair[0]) * row_words;
                    let (own, others) = std::mem::take(&mut words).split_at_mut(own);
                    words = others;
                    let peers = match call.function.has_peers() {
                        true => self.peers(pair[0]..pair[1], call.order.max(call.partition)),
                        false => Vec::new(),
                    };
                    let rows = pair[1] - pair[0];
                    let mut partition = Partition { sorted: self, words: own, row_words, rows, peers };
                    partition.compute(position, call, rule)?;
                }
                Ok::<_, EngineError>(())
            })?;
        }
        Ok(())
    }

    /// Whether a row differs from the one before it in the first keys of the order.
    fn differs(&self, row: usize, prefix: Prefix) -> bool {
        let words = self.order.words;
        let key = |row: usize| &self.keys[row * words..][..words];
        !prefix.agrees(key(row - 1), key(row))
    }

    /// The first row of each partition of so many rows by so many keys, and the end of the last one.
    fn partitions(&self, rows: usize, keys: usize) -> Vec<usize> {
        let prefix = self.order.prefix(keys);
        let others = (1..rows).into_par_iter().filter(|row| self.differs(*row, prefix));
        let mut starts: Vec<usize> = rayon::iter::once(0).chain(others).collect();
        if rows > 0 {
            starts.push(rows);
        }
        starts
    }

    /// The first row of each group of peers among some rows by so many keys, and the end of the last one.
    fn peers(&self, rows: Range<usize>, keys: usize) -> Vec<usize> {
        let prefix = self.order.prefix(keys);
        let others = (rows.start + 1..rows.end).filter(|row| self.differs(*row, prefix));
        let starts = [rows.start].into_iter().chain(others).chain([rows.end]);
        starts.map(|start| start - rows.start).collect()
    }
}

impl Partition<'_, '_> {
    /// The value of an output of a row; a float is its bits.
    fn output(&self, output: usize, row: usize) -> Option<i128> {
        let (layout, facts) = (self.sorted.row, &self.sorted.plan.outputs[output]);
        let words = &self.words[row * self.row_words..][..self.row_words];
        if facts.nullable && words[output / 64] >> (output % 64) & 1 == 0 {
            return None;
        }
        let column = &layout.columns[output];
        let word = words[layout.word_of(column)];
        Some(match facts.ty {
            _ if column.wide => i128::from(words[layout.word_of(column) + 1] as i64) << 64 | i128::from(word),
            Ty::U64 | Ty::F32 | Ty::F64 => word.into(),
            _ => (word as i64).into(),
        })
    }

    /// Puts the value of a column.
    fn put(&mut self, position: usize, row: usize, value: Option<i128>) {
        let (layout, first) = (&self.sorted.plan.row, self.sorted.row.words());
        let words = &mut self.words[row * self.row_words + first..];
        let Some(value) = value else { return };
        if layout.valid_words() > 0 {
            words[position / 64] |= 1 << (position % 64);
        }
        let column = &layout.columns[position];
        words[layout.word_of(column)] = value as u64;
        if column.wide {
            words[layout.word_of(column) + 1] = (value >> 64) as u64;
        }
    }

    fn compute(&mut self, position: usize, call: &WindowCall, rule: Overflow) -> Result<()> {
        let rows = self.rows as u64;
        let facts = self.sorted.plan.facts[position].clone();
        let share = |value: f64| Some(i128::from(value.to_bits()));
        match &call.function {
            WindowFunction::RowNumber => self.each(position, |_, row| Some(row as i128 + 1)),
            WindowFunction::Tile(parts) => self.each(position, |_, row| Some(tile(row as u64, rows, *parts).into())),
            WindowFunction::Rank => self.each_peer(position, |_, first, _| Some(first as i128 + 1)),
            WindowFunction::DenseRank => self.each_peer(position, |group, _, _| Some(group as i128 + 1)),
            WindowFunction::PercentRank => self.each_peer(position, |_, first, _| match rows {
                0 | 1 => share(0.0),
                _ => share(first as f64 / (rows - 1) as f64),
            }),
            WindowFunction::CumeDist => self.each_peer(position, |_, _, end| share(end as f64 / rows as f64)),
            WindowFunction::Shift { output, rows: by, default, skips_nulls } => {
                let default = constant(*default, &facts);
                let listed = skips_nulls.then(|| Listed::of(self, *output));
                self.each(position, |own, row| match own.shifted(row, *by, listed.as_ref()) {
                    Some(at) => own.output(*output, at),
                    None => default,
                });
            }
            WindowFunction::Nth { output, place, skips_nulls, frame } => {
                let listed = skips_nulls.then(|| Listed::of(self, *output));
                self.each_frame(position, frame, |own, low, high| {
                    let (from, to) = match &listed {
                        Some(listed) => (listed.before[low], listed.before[high]),
                        None => (low, high),
                    };
                    let (first, behind) = (from as i64, to as i64);
                    let at = if *place > 0 { first.saturating_add(place - 1) } else { behind.saturating_add(*place) };
                    let at = usize::try_from(at).ok().filter(|at| (from..to).contains(at))?;
                    own.output(*output, listed.as_ref().map_or(at, |listed| listed.places[at]))
                });
            }
            WindowFunction::Aggregate { kind, output, filter, frame } => {
                self.aggregate(position, (*kind, *output, *filter), frame, (&facts, rule))?;
            }
        }
        Ok(())
    }

    /// The row that a shift from a row finds.
    fn shifted(&self, row: usize, by: i64, listed: Option<&Listed>) -> Option<usize> {
        let within = |at: i64, count: usize| usize::try_from(at).ok().filter(|at| *at < count);
        match listed {
            // Before the row, or behind it.
            Some(Listed { places, before }) => {
                let first = if by > 0 { before[row] as i64 } else { before[row + 1] as i64 - 1 };
                within(first.saturating_sub(by), places.len()).map(|at| places[at])
            }
            None => within((row as i64).saturating_sub(by), self.rows),
        }
    }

    fn aggregate(
        &mut self,
        position: usize,
        (kind, output, filter): (AggregateKind, Option<usize>, Option<usize>),
        frame: &Frame,
        (facts, rule): (&Facts, Overflow),
    ) -> Result<()> {
        let passes = |row: usize| filter.is_none_or(|filter| self.output(filter, row).is_some_and(|value| value != 0));
        // What each row counts for: a value, or none.
        let value = |row: usize| match output {
            _ if !passes(row) => None,
            Some(output) => self.output(output, row),
            None => Some(0),
        };
        let values: Vec<Option<i128>> = (0..self.rows).map(value).collect();
        let mut counts = vec![0; self.rows + 1];
        values.iter().enumerate().for_each(|(row, value)| counts[row + 1] = counts[row] + i128::from(value.is_some()));
        match kind {
            AggregateKind::Count => {
                self.each_frame(position, frame, |_, low, high| Some(counts[high] - counts[low]));
            }
            AggregateKind::Min | AggregateKind::Max => {
                let (mut queue, mut next) = (VecDeque::<(usize, i128)>::new(), 0);
                self.each_frame(position, frame, |_, low, high| {
                    for (row, value) in values.iter().enumerate().take(high).skip(next) {
                        let Some(value) = *value else { continue };
                        let is_behind =
                            |last: i128| if kind == AggregateKind::Min { last >= value } else { last <= value };
                        while queue.back().is_some_and(|(_, last)| is_behind(*last)) {
                            queue.pop_back();
                        }
                        queue.push_back((row, value));
                    }
                    next = next.max(high);
                    while queue.front().is_some_and(|(row, _)| *row < low) {
                        queue.pop_front();
                    }
                    queue.front().map(|(_, value)| *value)
                });
            }
            AggregateKind::Sum | AggregateKind::ExactSum => {
                let mut sums = vec![0i128; self.rows + 1];
                values.iter().enumerate().for_each(|(row, value)| sums[row + 1] = sums[row] + value.unwrap_or(0));
                let limits = facts.ty.bounds().filter(|_| rule == Overflow::Raise && facts.ty != Ty::I128);
                let mut raises = false;
                self.each_frame(position, frame, |_, low, high| {
                    let sum = (counts[high] > counts[low]).then(|| sums[high] - sums[low])?;
                    raises |= limits.is_some_and(|(low, high)| sum < low || sum > high);
                    Some(if facts.ty.is_float() { constant_of_float(sum as f64, facts.ty) } else { sum })
                });
                if raises {
                    return Err(overflow());
                }
            }
        }
        Ok(())
    }

    /// Puts a value for each row.
    fn each(&mut self, position: usize, of: impl Fn(&Self, usize) -> Option<i128>) {
        for row in 0..self.rows {
            let value = of(self, row);
            self.put(position, row, value);
        }
    }

    /// Puts a value for each row, by the number of its group of peers, its first row and its end.
    fn each_peer(&mut self, position: usize, of: impl Fn(usize, usize, usize) -> Option<i128>) {
        let peers = std::mem::take(&mut self.peers);
        for (group, pair) in peers.windows(2).enumerate() {
            let value = of(group, pair[0], pair[1]);
            (pair[0]..pair[1]).for_each(|row| self.put(position, row, value));
        }
    }

    /// Puts a value for each row, by the first row of its frame and the end of that, which is no smaller.
    fn each_frame(&mut self, position: usize, frame: &Frame, mut of: impl FnMut(&Self, usize, usize) -> Option<i128>) {
        let mut group = 0;
        for row in 0..self.rows {
            while self.peers.get(group + 1).is_some_and(|end| *end <= row) {
                group += 1;
            }
            let low = self.bound(frame.start, row, group, true);
            let high = self.bound(frame.end, row, group, false).max(low);
            let value = of(self, low, high);
            self.put(position, row, value);
        }
    }

    /// The first row of a frame, or the one behind its last.
    fn bound(&self, bound: FrameBound, row: usize, group: usize, is_start: bool) -> usize {
        let beside = i64::from(!is_start);
        match bound {
            FrameBound::Unbounded if is_start => 0,
            FrameBound::Unbounded => self.rows,
            FrameBound::Rows(offset) => {
                (row as i64 + beside).saturating_add(offset).clamp(0, self.rows as i64) as usize
            }
            FrameBound::Peers(offset) => {
                let wanted = (group as i64).saturating_add(offset);
                match usize::try_from(wanted) {
                    Err(_) => 0,
                    Ok(wanted) if wanted + 1 >= self.peers.len() => self.rows,
                    Ok(wanted) => self.peers[wanted + beside as usize],
                }
            }
        }
    }
}

/// The rows of a partition that have a value of an output.
struct Listed {
    places: Vec<usize>,
    /// How many of them come before each row.
    before: Vec<usize>,
}

impl Listed {
    fn of(partition: &Partition<'_, '_>, output: usize) -> Listed {
        let (mut places, mut before) = (Vec::new(), Vec::with_capacity(partition.rows + 1));
        for row in 0..partition.rows {
            before.push(places.len());
            if partition.output(output, row).is_some() {
                places.push(row);
            }
        }
        before.push(places.len());
        Listed { places, before }
    }
}

/// The number of the part, from 1, of a row of so many rows in so many parts: the first parts have a row more than the
/// others where these do not divide the rows.
fn tile(row: u64, rows: u64, parts: u64) -> u64 {
    let (each, longer) = (rows / parts, rows % parts);
    let before = longer * (each + 1);
    if row < before { row / (each + 1) + 1 } else { longer + (row - before) / each + 1 }
}

/// A constant as a value of a column.
fn constant(literal: Literal, facts: &Facts) -> Option<i128> {
    match literal {
        Literal::Int(number) if facts.ty.is_float() => Some(constant_of_float(number as f64, facts.ty)),
        Literal::Int(number) => Some(number),
        Literal::Float(number) => Some(constant_of_float(number, facts.ty)),
        Literal::Null | Literal::Argument(_) => None,
    }
}

/// The bits of a float of a type.
fn constant_of_float(number: f64, ty: Ty) -> i128 {
    if ty == Ty::F32 { (number as f32).to_bits().into() } else { number.to_bits().into() }
}
