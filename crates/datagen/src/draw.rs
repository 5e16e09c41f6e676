//! Random values by row: a hash of a stream and a row, so that any row of any column is drawn by itself, whichever part
//! it is in. The hash is SplitMix64's (Steele, Lea and Flood, OOPSLA 2014).

/// The odd number nearest to 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Rounds of a shuffle's network.
const ROUNDS: u64 = 4;

/// SplitMix64's finaliser, a permutation of all 64-bit numbers.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A stream of random values, of which each row has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The stream of that number.
    pub(crate) const fn new(stream: u64) -> Self {
        Self(mix(stream.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// 64 random bits, which no two rows share.
    #[inline]
    pub(crate) const fn bits(self, row: u64) -> u64 {
        mix(self.0.wrapping_add(row.wrapping_mul(GOLDEN)))
    }

    /// A number in `0..count`.
    #[inline]
    pub(crate) const fn below(self, row: u64, count: u64) -> u64 {
        ((self.bits(row) as u128 * count as u128) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    #[inline]
    pub(crate) fn unit(self, row: u64) -> f64 {
        (self.bits(row) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A permutation of `0..count`: a Feistel network over the next power of four, walked until a number is below the count
/// (Black and Rogaway, CT-RSA 2002).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shuffle {
    count: u64,
    half_bits: u32,
    stream: u64,
}

impl Shuffle {
    /// The permutation of that number.
    pub(crate) fn new(count: u64, stream: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), stream }
    }

    /// The number at a place below the count.
    pub(crate) fn at(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..ROUNDS {
                let draw = Draw::new(self.stream * ROUNDS + round);
                (left, right) = (right, left ^ (draw.bits(right) & mask));
            }
            number = left << self.half_bits | right;
            if number < self.count {
                return number;
            }
        }
    }
}

/// The values of a column of `rows` rows by number: exactly `distinct` of them, the first of which are the commonest.
/// A value is new in one row, which lie evenly over the table; the other rows that are filled repeat values: the first
/// ones with given shares of all rows, those behind them by a power law.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Population {
    rows: u64,
    distinct: u64,
    head: &'static [f64],
    /// The share of rows that are filled and bring no new value.
    repeats: f64,
    /// The share of rows that repeat one of the first values.
    head_share: f64,
    exponent: f64,
    repeated: Draw,
}

/// What a [`Population`] is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skew {
    /// Distinct values, as a share of the rows.
    pub(crate) distinct: f64,
    /// Rows that hold a value at all.
    pub(crate) filled: f64,
    /// Shares of the commonest values in all rows, falling.
    pub(crate) head: &'static [f64],
    /// The share of the value behind them.
    pub(crate) tail: f64,
}

impl Population {
    /// The population of a column of `rows` rows.
    pub(crate) fn new(rows: u64, skew: Skew, stream: u64) -> Self {
        let head = skew.head.len() as u64;
        let distinct = ((rows as f64 * skew.distinct) as u64).clamp(1, rows).max(head + 2).min(rows);
        let repeats = (skew.filled - distinct as f64 / rows as f64).max(0.0);
        let head_share = skew.head.iter().sum::<f64>().min(repeats);
        // Of the tail's values, the first is drawn where u^exponent < 1 / count: that is to be its share.
        let (count, of_tail) = (distinct.saturating_sub(head).max(2) as f64, repeats - head_share);
        let exponent = if of_tail > skew.tail { count.ln() / (of_tail / skew.tail).ln() } else { 1.0 };
        let repeated = Draw::new(stream);
        Self { rows, distinct, head: skew.head, repeats, head_share, exponent: exponent.max(1.0), repeated }
    }

    /// The number of values.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The value of a row by its number, the commonest being 0; none where the row is empty.
    pub(crate) fn at(&self, row: u64) -> Option<u64> {
        let values_before = |row: u64| (u128::from(row) * u128::from(self.distinct) / u128::from(self.rows)) as u64;
        let first = values_before(row);
        if values_before(row + 1) > first {
            return Some(first);
        }
        // Rows that bring no value.
        let mut left = self.repeated.unit(row) * (1.0 - self.distinct as f64 / self.rows as f64);
        if left < self.head_share {
            for (value, share) in self.head.iter().enumerate() {
                left -= share;
                if left < 0.0 {
                    return Some(value as u64);
                }
            }
            return Some(0);
        }
        if left >= self.repeats {
            return None;
        }
        let head = (self.head.len() as u64).min(self.distinct - 1);
        let unit = (left - self.head_share) / (self.repeats - self.head_share);
        let value = head + ((self.distinct - head) as f64 * unit.powf(self.exponent)) as u64;
        Some(value.min(self.distinct - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn draws_stay_within_their_bounds_and_fill_them() {
        let draw = Draw::new(7);
        let drawn: HashSet<u64> = (0..1000).map(|row| draw.below(row, 10)).collect();
        assert_eq!(drawn, (0..10).collect());
        let mean = (0..10_000).map(|row| draw.unit(row)).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(draw.bits(0), Draw::new(8).bits(0));
    }

    #[test]
    fn a_shuffle_has_every_number_once_and_moves_them() {
        for count in [1, 2, 3, 11, 1000, 4097] {
            let shuffle = Shuffle::new(count, 3);
            let numbers: Vec<u64> = (0..count).map(|place| shuffle.at(place)).collect();
            assert_eq!(numbers.iter().collect::<HashSet<_>>().len() as u64, count);
            assert!(numbers.iter().all(|number| *number < count));
            let stayed = numbers.iter().enumerate().filter(|(place, number)| **number == *place as u64).count();
            assert!(count < 100 || stayed < 10, "{stayed} of {count}");
        }
    }

    #[test]
    fn a_population_has_its_distinct_values_and_shares() {
        let rows = 200_000;
        let skew = Skew { distinct: 0.1, filled: 0.5, head: &[0.1, 0.05], tail: 0.01 };
        let population = Population::new(rows, skew, 1);
        let mut counts = HashMap::<u64, u64>::new();
        (0..rows).filter_map(|row| population.at(row)).for_each(|value| *counts.entry(value).or_default() += 1);
        assert_eq!((counts.len() as u64, population.distinct()), (rows / 10, rows / 10));
        let share = |value: u64| counts[&value] as f64 / rows as f64;
        for (value, expected) in [(0, 0.1), (1, 0.05), (2, 0.01)] {
            assert!((share(value) / expected - 1.0).abs() < 0.1, "{value}: {}", share(value));
        }
        let filled = counts.values().sum::<u64>() as f64 / rows as f64;
        assert!((filled - 0.5).abs() < 0.01, "{filled}");
    }
}
