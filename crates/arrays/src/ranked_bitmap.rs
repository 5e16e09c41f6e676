//! The bitmap of filled rows in words of the Word-Aligned Hybrid code (WAH), with a rank table.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 3.3.1 to 3.3.3 and
//! appendix A.2, after Wu, Otoo and Shoshani, *Optimizing bitmap indices with efficient compression* (TODS 31, 2006).
//! A word covers one group of 31 rows; a fill word covers one group as well, so that the word of a row follows from its
//! number alone. The rank table holds the ones in front of each word.
//!
//! ```text
//! literal word  0 bbbbbbb…b   31 bits, row 0 of the group highest
//! fill word     1 f 000…01    a group of 31 bits f, fill length 1
//! active word   0 bbb…b 0…0   the last group if it has fewer than 31 rows
//! ```

use std::ops::Range;

/// Rows of one word: `W - 1`.
pub(crate) const GROUP: u64 = 31;
/// Fill word of a group of zeros.
const ZEROS: u32 = 0x8000_0001;
/// Fill word of a group of ones.
const ONES: u32 = 0xC000_0001;
/// Bits of a literal word in which all are set.
const LITERAL_ONES: u32 = 0x7FFF_FFFF;
/// The bit that marks a fill word.
const FILL: u32 = 0x8000_0000;
/// The bit that gives the fill.
const FILL_BIT: u32 = 0x4000_0000;

/// A bitmap in one-group WAH words, with the ones before each word.
#[derive(Debug)]
pub(crate) struct RankedBitmap {
    words: Vec<u32>,
    counts: Vec<u64>,
}

impl RankedBitmap {
    /// Words of a bitmap of `bits` bits, `⌈bits / 31⌉`.
    pub(crate) fn words_of(bits: u128) -> u128 {
        bits.div_ceil(u128::from(GROUP))
    }

    /// Bitmap of `bits` bits with ones at the numbers `ones`, in any order.
    pub(crate) fn new(bits: u64, ones: impl Iterator<Item = u64>) -> Self {
        let mut words = vec![0u32; bits.div_ceil(GROUP) as usize];
        ones.for_each(|bit| words[(bit / GROUP) as usize] |= mask(bit));
        let complete = (bits / GROUP) as usize;
        words[..complete].iter_mut().for_each(|word| *word = compressed(*word));
        Self::from_words(words)
    }

    /// Bitmap of words as [`RankedBitmap::words`] gives them.
    pub(crate) fn from_words(words: Vec<u32>) -> Self {
        let mut before = 0;
        let counts = words.iter().map(|word| {
            let count = before;
            before += u64::from(literal(*word).count_ones());
            count
        });
        Self { counts: counts.collect(), words }
    }

    /// The words, one a group of 31 rows.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Ones in front of each word.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of ones before `bit`, and true if `bit` is one itself (algorithms 4 and 13).
    #[inline]
    pub(crate) fn rank(&self, bit: u64) -> (u64, bool) {
        let index = (bit / GROUP) as usize;
        let (word, mask) = (literal(self.words[index]), mask(bit));
        let above = word & !(mask | (mask - 1));
        (self.counts[index] + u64::from(above.count_ones()), word & mask != 0)
    }

    /// Calls `visit` with the number of each one in `bits` and its rank, ascending. Fill words are taken whole.
    #[inline]
    pub(crate) fn ones(&self, bits: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        if bits.is_empty() {
            return;
        }
        let (first, last) = (bits.start / GROUP, (bits.end - 1) / GROUP);
        for index in first..=last {
            let mut word = match self.words[index as usize] {
                ZEROS => continue,
                word => literal(word),
            };
            let mut rank = self.counts[index as usize];
            while word != 0 {
                let leading = word.leading_zeros();
                let bit = index * GROUP + u64::from(leading) - 1;
                if bits.contains(&bit) {
                    visit(bit, rank);
                }
                rank += 1;
                word &= !(FILL >> leading);
            }
        }
    }
}

/// The bit of row `bit` in its literal word.
#[inline]
fn mask(bit: u64) -> u32 {
    FILL_BIT >> (bit % GROUP)
}

/// The word of a whole group: a fill word if all bits are equal.
fn compressed(literal: u32) -> u32 {
    match literal {
        0 => ZEROS,
        LITERAL_ONES => ONES,
        mixed => mixed,
    }
}

/// The 31 bits that a word stands for.
#[inline]
fn literal(word: u32) -> u32 {
    match (word & FILL != 0, word & FILL_BIT != 0) {
        (false, _) => word,
        (true, true) => LITERAL_ONES,
        (true, false) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the bitmap against a plain list of bits.
    fn check(bits: &[bool]) -> RankedBitmap {
        let ones: Vec<u64> = (0..).zip(bits).filter(|(_, bit)| **bit).map(|(index, _)| index).collect();
        let bitmap = RankedBitmap::new(bits.len() as u64, ones.iter().copied());
        let mut before = 0;
        for (index, bit) in (0..).zip(bits) {
            assert_eq!(bitmap.rank(index), (before, *bit), "bit {index} of {}", bits.len());
            before += u64::from(*bit);
        }
        let length = bits.len() as u64;
        for range in [0..length, length / 3..length / 2, 1..length.max(1), length..length] {
            let mut found = Vec::new();
            bitmap.ones(range.clone(), |bit, rank| found.push((bit, rank)));
            let ranked = ones.iter().copied().zip(0..).filter(|(bit, _)| range.contains(bit));
            assert_eq!(found, ranked.collect::<Vec<_>>(), "{range:?}");
        }
        bitmap
    }

    #[test]
    fn lengths_around_a_group() {
        for length in [1, 2, 29, 30, 31, 32, 33, 61, 62, 63, 93, 94] {
            check(&vec![false; length]);
            check(&vec![true; length]);
            check(&(0..length).map(|bit| bit % 3 == 1).collect::<Vec<_>>());
            for single in [0, length / 2, length - 1] {
                check(&(0..length).map(|bit| bit == single).collect::<Vec<_>>());
                check(&(0..length).map(|bit| bit != single).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn fills_stand_for_one_group_each() {
        let mut bits = vec![false; 31 * 1000];
        bits.extend([true; 31 * 500]);
        bits.extend([true, false, true]);
        let bitmap = check(&bits);
        assert!(bitmap.words()[..1000].iter().all(|word| *word == ZEROS));
        assert!(bitmap.words()[1000..1500].iter().all(|word| *word == ONES));
        assert_eq!(bitmap.words()[1500..], [0b101 << 28]);
        assert_eq!((bitmap.counts()[1000], bitmap.counts()[1500]), (0, 15_500));
    }

    #[test]
    fn a_last_group_of_ones_that_is_cut_short_stays_literal() {
        assert_eq!(check(&[true; 30]).words(), [LITERAL_ONES - 1]);
        assert_eq!(check(&[true; 31]).words(), [ONES]);
        assert_eq!(check(&[true; 32]).words(), [ONES, FILL_BIT]);
    }
}
