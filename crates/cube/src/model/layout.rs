//! Cell keys: the coordinates of a cell packed into bits (BESS), the first dimension in the most significant ones.
//!
//! ```text
//! bit    total-1                                   0
//!        | Month 6 | Region 9 | … | Account 8      |   zero bits above
//! ```
//!
//! Keys compare like coordinate lists. Dimensions get room for twice their coordinates where that costs no further
//! 64-bit word.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, Result};

/// Bits of the widest key.
pub const KEY_BITS_MAX: u32 = 128;
/// Bits of a key that needs one word.
const WORD_BITS: u32 = 64;

/// Bits of each dimension in a cell key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyLayout {
    bits: Vec<u32>,
}

impl KeyLayout {
    /// The layout of dimensions given by name and number of coordinates, with room for growth.
    ///
    /// # Errors
    /// [`ModelError::KeyTooWide`] if the coordinates need more than [`KEY_BITS_MAX`] bits without any room.
    pub fn new<'a>(dimensions: impl IntoIterator<Item = (&'a str, usize)>) -> Result<Self> {
        let dimensions: Vec<(&str, usize)> = dimensions.into_iter().collect();
        let mut bits: Vec<u32> = dimensions.iter().map(|(_, count)| needed_bits(*count)).collect();
        let total: u32 = bits.iter().sum();
        if total > KEY_BITS_MAX {
            let names = dimensions.iter().map(|(name, _)| (*name).to_owned());
            return Err(ModelError::KeyTooWide { bits: names.zip(bits).collect() });
        }
        let mut room = if total <= WORD_BITS { WORD_BITS - total } else { KEY_BITS_MAX - total };
        // The fullest dimensions outgrow their bits first.
        let mut fullest: Vec<usize> = (0..bits.len()).collect();
        let share = |at: &usize| dimensions[*at].1 as f64 / 2f64.powi(bits[*at] as i32);
        fullest.sort_by(|a, b| share(b).total_cmp(&share(a)));
        for at in fullest {
            if room > 0 && bits[at] < u32::BITS {
                bits[at] += 1;
                room -= 1;
            }
        }
        Ok(Self { bits })
    }

    /// The layout of these bits; `None` if a dimension has more than 32 or all have more than [`KEY_BITS_MAX`].
    pub fn from_bits(bits: Vec<u32>) -> Option<Self> {
        let fits = bits.iter().all(|bits| *bits <= u32::BITS) && bits.iter().sum::<u32>() <= KEY_BITS_MAX;
        fits.then_some(Self { bits })
    }

    /// Bits of each dimension.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Bits of a key.
    pub fn total_bits(&self) -> u32 {
        self.bits.iter().sum()
    }

    /// True if keys fit one 64-bit word.
    pub fn fits_u64(&self) -> bool {
        self.total_bits() <= WORD_BITS
    }

    /// Bits below those of a dimension.
    pub fn shift(&self, dimension: usize) -> u32 {
        self.bits[dimension + 1..].iter().sum()
    }

    /// True if a dimension of so many coordinates fits its bits.
    pub fn holds(&self, dimension: usize, base_count: usize) -> bool {
        needed_bits(base_count) <= self.bits[dimension]
    }

    /// The key of a coordinate list.
    ///
    /// # Errors
    /// [`ModelError::KeyLength`], [`ModelError::Coordinate`].
    pub fn pack(&self, coordinates: &[u32]) -> Result<u128> {
        if coordinates.len() != self.bits.len() {
            return Err(ModelError::KeyLength { found: coordinates.len(), wanted: self.bits.len() });
        }
        let mut key = 0_u128;
        for (dimension, (coordinate, bits)) in coordinates.iter().zip(&self.bits).enumerate() {
            if u64::from(*coordinate) >> bits != 0 {
                return Err(ModelError::Coordinate { dimension, coordinate: *coordinate, bits: *bits });
            }
            key = key << bits | u128::from(*coordinate);
        }
        Ok(key)
    }

    /// The coordinates of a key.
    ///
    /// # Errors
    /// [`ModelError::KeyLength`] unless `coordinates` has one place a dimension.
    pub fn unpack(&self, key: u128, coordinates: &mut [u32]) -> Result<()> {
        if coordinates.len() != self.bits.len() {
            return Err(ModelError::KeyLength { found: coordinates.len(), wanted: self.bits.len() });
        }
        let mut rest = key;
        for (coordinate, bits) in coordinates.iter_mut().zip(&self.bits).rev() {
            *coordinate = (rest & ((1_u128 << bits) - 1)) as u32;
            rest >>= bits;
        }
        Ok(())
    }
}

/// Bits of the coordinates `0..count`.
fn needed_bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_at_the_edges_of_powers_of_two() {
        let edges = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20), ((1 << 20) + 1, 21)];
        for (count, bits) in edges {
            assert_eq!(needed_bits(count), bits, "{count}");
        }
    }

    #[test]
    fn room_is_given_where_it_costs_no_word() {
        let layout = KeyLayout::new([("a", 16), ("b", 12), ("c", 50)]).unwrap();
        assert_eq!(layout.bits(), [5, 5, 7]);
        let full = KeyLayout::new([("a", 1 << 32), ("b", 1 << 31)]).unwrap();
        assert_eq!((full.bits(), full.fits_u64()), (&[32, 32][..], true));
        let wide = KeyLayout::new(std::iter::repeat_n(("d", 16), 32)).unwrap();
        assert_eq!((wide.total_bits(), wide.fits_u64()), (128, false));
        let error = KeyLayout::new(std::iter::repeat_n(("d", 17), 32)).unwrap_err().to_string();
        assert!(error.starts_with("the key needs 160 bits, at most 128: d 5 + d 5"), "{error}");
    }
}
