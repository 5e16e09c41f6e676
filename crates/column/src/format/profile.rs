//! Profiles: bounds, runs, order, distinct values and widths of offsets, from one pass over a column.
//!
//! The profile of a column is the sum of the profiles of its segments. Floats count by their bits.

use super::packed::OffsetBits;
use super::values::{Plain, padded, rows_mask};
use super::word::{Native, with_native};
use crate::error::encoding::Result;
use crate::units::{Storage, Traits, VECTOR_ROWS};

/// An estimate of the number of distinct values.
///
/// Source: Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation
/// algorithm", with linear counting for few values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistinctSketch {
    pub(crate) registers: Vec<u8>,
}

impl DistinctSketch {
    /// Registers of a sketch, a power of two: the standard error of the estimate is 1.04 / √registers, 1.6 %.
    pub(crate) const REGISTERS: usize = 4096;

    fn new() -> DistinctSketch {
        DistinctSketch { registers: vec![0; DistinctSketch::REGISTERS] }
    }

    /// Adds a value by its bits.
    fn insert(&mut self, bits: u64) {
        // Two rounds of multiplication and folding spread both halves of the value over all bits of the hash.
        let (low, high) = (bits & 0xffff_ffff, bits >> 32);
        let mixed = low.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(high.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let hash = mixed ^ (mixed >> 32);
        let register = &mut self.registers[(hash >> (64 - DistinctSketch::REGISTERS.ilog2())) as usize];
        let rank = (hash as u32 | 1 << 31).trailing_zeros() as u8 + 1;
        *register = (*register).max(rank);
    }

    /// Adds the values of another sketch.
    pub fn add(&mut self, other: &DistinctSketch) {
        self.registers.iter_mut().zip(&other.registers).for_each(|(mine, other)| *mine = (*mine).max(*other));
    }

    /// The estimated number of distinct values.
    pub fn estimate(&self) -> u64 {
        let count = DistinctSketch::REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| 0.5f64.powi(i32::from(*rank))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        if estimate <= 2.5 * count && empty > 0 {
            return (count * (count / empty as f64).ln()).round() as u64;
        }
        estimate.round() as u64
    }
}

/// The profile of a column, or of consecutive segments of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Rows, nulls included.
    pub rows: u64,
    /// Nulls.
    pub nulls: u64,
    /// Smallest and largest valid value; floats by their bits.
    pub bounds: Option<(i128, i128)>,
    /// Runs of equal values. A run ends with its vector; null slots repeat the value before them.
    pub runs: u64,
    /// Valid values smaller than the valid value before them: 0 in a sorted column.
    pub descents: u64,
    /// Sketch of the distinct valid values.
    pub distinct: DistinctSketch,
    /// Widths of the offsets to the smallest value of each vector.
    pub offsets: OffsetBits,
    /// First and last valid value.
    pub(crate) ends: Option<(i128, i128)>,
}

impl Profile {
    /// The profile of a segment.
    pub fn of(plain: &Plain<'_>) -> Profile {
        with_native!(plain.storage(), Value => of::<Value>(plain))
    }

    /// Adds the profile of the next segment.
    pub fn add(&mut self, next: &Profile) {
        self.rows += next.rows;
        self.nulls += next.nulls;
        self.runs += next.runs;
        self.descents += next.descents;
        if let (Some((_, last)), Some((first, _))) = (self.ends, next.ends) {
            self.descents += u64::from(first < last);
        }
        self.ends = both(self.ends, next.ends, |(first, _), (_, last)| (first, last));
        self.bounds = both(self.bounds, next.bounds, |mine, other| (mine.0.min(other.0), mine.1.max(other.1)));
        self.distinct.add(&next.distinct);
        self.offsets.add(&next.offsets);
    }

    /// Whether no valid value is smaller than the valid value before it.
    pub fn is_sorted(&self) -> bool {
        self.descents == 0
    }

    /// The traits of a column of this storage.
    pub fn traits(&self, storage: Storage) -> Traits {
        let is_sorted = self.is_sorted() && !storage.is_float();
        Traits { distinct: self.distinct.estimate(), runs: self.runs, is_sorted }
    }
}

fn both<T>(mine: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (mine, other) {
        (Some(mine), Some(other)) => Some(join(mine, other)),
        (mine, other) => mine.or(other),
    }
}

fn of<T: Native>(plain: &Plain<'_>) -> Profile {
    let mut profile = Profile {
        rows: plain.rows() as u64,
        nulls: 0,
        bounds: None,
        runs: 0,
        descents: 0,
        distinct: DistinctSketch::new(),
        offsets: OffsetBits::of(plain, None),
        ends: None,
    };
    for vector in 0..plain.vectors() {
        let rows = (plain.rows() - vector * VECTOR_ROWS).min(VECTOR_ROWS);
        let valid = plain.vector_validity(vector);
        let valid = valid.map_or(rows, |words| words.iter().map(|word| word.count_ones() as usize).sum());
        profile.nulls += (rows - valid) as u64;
        let values = plain.filled::<T>(vector);
        profile.runs += 1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        if valid == 0 {
            continue;
        }
        // Filled slots repeat valid values, which changes neither bounds nor order nor distinct values.
        let (low, high) =
            values.iter().fold((values[0], values[0]), |(low, high), value| (low.min(*value), high.max(*value)));
        let mut before = None;
        for value in values {
            if before != Some(value) {
                profile.distinct.insert(value.bits());
                before = Some(value);
            }
        }
        let descents = values.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64;
        let ends = (number(values[0]), number(values[values.len() - 1]));
        let broken = profile.ends.is_some_and(|(_, last)| ends.0 < last);
        profile.descents += descents + u64::from(broken);
        profile.ends = both(profile.ends, Some(ends), |(first, _), (_, last)| (first, last));
        let bounds = Some((number(low), number(high)));
        profile.bounds = both(profile.bounds, bounds, |mine, other| (mine.0.min(other.0), mine.1.max(other.1)));
    }
    profile
}

/// A value as a number.
fn number<T: Native>(value: T) -> i128 {
    if T::SIGNED { i128::from(value.extend() as i64) } else { i128::from(value.extend()) }
}

/// Vectors of a column as a segment of their own.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    values: Vec<u8>,
    validity: Vec<u32>,
    rows: usize,
    storage: Storage,
}

impl Sample {
    /// A sample without vectors.
    pub(crate) fn empty(storage: Storage) -> Sample {
        Sample { values: Vec::new(), validity: Vec::new(), rows: 0, storage }
    }

    /// Adds a vector of `rows` rows with its padded values; its padding becomes null.
    pub(crate) fn push(&mut self, values: &[u8], validity: Option<&[u32]>, rows: usize) {
        let word = |word: usize| validity.map_or(u32::MAX, |words| words[word]) & rows_mask(rows, word);
        self.validity.extend((0..VECTOR_ROWS / 32).map(word));
        self.values.extend_from_slice(values);
        self.rows = padded(self.rows) + rows;
    }

    /// The sample as a segment.
    pub(crate) fn plain(&self) -> Result<Plain<'_>> {
        Plain::new(self.storage, &self.values, Some(&self.validity), self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_estimated_within_six_percent() {
        let shapes: [fn(u64) -> u64; 8] = [
            |value| value,
            |value| value.wrapping_neg(),
            |value| (value as u32).wrapping_neg().into(),
            |value| value << 17,
            |value| value << 40,
            |value| value << 32 | value,
            |value| (value as f64).to_bits(),
            |value| 1_600_000_000_000_000 + value * 1_000_000,
        ];
        for (shape, bits) in shapes.into_iter().enumerate() {
            for count in [1, 10, 1000, 10_000, 100_000, 1_000_000] {
                let mut sketch = DistinctSketch::new();
                (0..count).chain(0..count / 2).for_each(|value| sketch.insert(bits(value)));
                let error = sketch.estimate() as f64 / count as f64 - 1.0;
                assert!(error.abs() < 0.06, "shape {shape}, {count} distinct values: {}", sketch.estimate());
            }
        }
    }
}
