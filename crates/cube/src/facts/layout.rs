//! Layout of a cell key: the bits of each coordinate (BESS).
//!
//! ```text
//! bit  127 … total   total−1 …                … 0
//!      [ 0 … 0     | dimension 0 | 1 | … | d−1 ]
//! ```
//!
//! The first dimension takes the most significant bits, so that keys sort as coordinate tuples do. A dimension of one
//! element takes no bits. Source: bit-encoded sparse structure, Wang, *Sparse Array Representations … on GPUs*, 3.

use super::FactsError;

/// Most dimensions of a cube.
pub const DIMENSIONS_MAX: usize = 32;
/// Most bits of a key.
pub const KEY_BITS_MAX: u32 = 128;

/// Bits and position of every coordinate in a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLayout {
    bits: Vec<u32>,
    shifts: Vec<u32>,
    total: u32,
}

impl KeyLayout {
    /// A layout of `bits[d]` bits for dimension `d`.
    ///
    /// # Errors
    /// No dimension or more than [`DIMENSIONS_MAX`], a coordinate above 32 bits, a key above [`KEY_BITS_MAX`] bits.
    pub fn new(bits: &[u32]) -> Result<KeyLayout, FactsError> {
        if bits.is_empty() || bits.len() > DIMENSIONS_MAX {
            return Err(FactsError::Dimensions { dimensions: bits.len() });
        }
        if let Some(dimension) = bits.iter().position(|&bits| bits > u32::BITS) {
            return Err(FactsError::CoordinateBits { dimension, bits: bits[dimension] });
        }
        let total = bits.iter().sum();
        if total > KEY_BITS_MAX {
            return Err(FactsError::KeyTooWide { bits: bits.to_vec(), total });
        }
        let mut below = total;
        let shifts = bits.iter().map(|bits| {
            below -= bits;
            below
        });
        Ok(KeyLayout { shifts: shifts.collect(), bits: bits.to_vec(), total })
    }

    /// The narrowest layout for `sizes[d]` base elements in dimension `d`.
    ///
    /// # Errors
    /// As [`KeyLayout::new`].
    pub fn for_sizes(sizes: &[u32]) -> Result<KeyLayout, FactsError> {
        let bits: Vec<u32> = sizes.iter().map(|size| u32::BITS - size.saturating_sub(1).leading_zeros()).collect();
        KeyLayout::new(&bits)
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.bits.len()
    }

    /// Bits of each dimension.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// True if dimension `dimension` has room for so many base elements.
    pub fn holds(&self, dimension: usize, bases: usize) -> bool {
        bases as u64 <= 1 << self.bits[dimension]
    }

    /// Bits of a key.
    pub fn total_bits(&self) -> u32 {
        self.total
    }

    /// True if a key fits into 64 bits.
    pub fn is_narrow(&self) -> bool {
        self.total <= u64::BITS
    }

    /// The largest coordinate that fits into a dimension.
    pub fn coordinate_max(&self, dimension: usize) -> u32 {
        ((1_u64 << self.bits[dimension]) - 1) as u32
    }

    /// Position of a dimension's lowest bit in a key; 0 for a dimension without bits.
    pub fn shift(&self, dimension: usize) -> u32 {
        if self.bits[dimension] == 0 { 0 } else { self.shifts[dimension] }
    }

    /// The key of a coordinate tuple; every coordinate must fit (checked in debug builds).
    pub fn pack(&self, coordinates: &[u32]) -> u128 {
        debug_assert_eq!(coordinates.len(), self.dimensions());
        let mut key = 0;
        for (dimension, &coordinate) in coordinates.iter().enumerate() {
            debug_assert!(coordinate <= self.coordinate_max(dimension));
            key |= u128::from(coordinate) << self.shift(dimension);
        }
        key
    }

    /// One coordinate of a key.
    pub fn coordinate(&self, key: u128, dimension: usize) -> u32 {
        (key >> self.shift(dimension)) as u32 & self.coordinate_max(dimension)
    }

    /// All coordinates of a key.
    pub fn unpack(&self, key: u128) -> Vec<u32> {
        (0..self.dimensions()).map(|dimension| self.coordinate(key, dimension)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_take_the_fewest_bits() {
        let layout = KeyLayout::for_sizes(&[1, 2, 3, 256, 257, u32::MAX]).unwrap();
        assert_eq!(layout.bits(), [0, 1, 2, 8, 9, 32]);
        assert_eq!(layout.total_bits(), 52);
        assert!(layout.is_narrow());
        assert_eq!(KeyLayout::for_sizes(&[0]).unwrap().total_bits(), 0);
    }

    #[test]
    fn widths_beyond_a_key_are_refused() {
        assert_eq!(KeyLayout::new(&[]), Err(FactsError::Dimensions { dimensions: 0 }));
        assert_eq!(KeyLayout::new(&[1; 33]), Err(FactsError::Dimensions { dimensions: 33 }));
        assert_eq!(KeyLayout::new(&[1, 33]), Err(FactsError::CoordinateBits { dimension: 1, bits: 33 }));
        let bits = vec![32, 32, 32, 32, 1];
        assert_eq!(KeyLayout::new(&bits), Err(FactsError::KeyTooWide { bits, total: 129 }));
        assert!(!KeyLayout::new(&[32; 4]).unwrap().is_narrow());
    }

    #[test]
    fn a_dimension_without_bits_may_lead_a_full_key() {
        let layout = KeyLayout::new(&[0, 32, 32, 0, 32, 32, 0]).unwrap();
        let cell = [0, 1, u32::MAX, 0, 7, u32::MAX, 0];
        assert_eq!(layout.unpack(layout.pack(&cell)), cell);
    }

    proptest! {
        #[test]
        fn packing_is_a_bijection_that_keeps_order(
            cells in prop::collection::vec(0..=16_u32, 1..=8).prop_flat_map(|bits| {
                let cell = bits.iter().map(|bits| 0..=((1_u64 << bits) - 1) as u32).collect::<Vec<_>>();
                (Just(bits), cell.clone(), cell)
            })
        ) {
            let (bits, one, other) = cells;
            let layout = KeyLayout::new(&bits).unwrap();
            prop_assert_eq!(layout.unpack(layout.pack(&one)), one.clone());
            prop_assert_eq!(layout.pack(&one).cmp(&layout.pack(&other)), one.cmp(&other));
        }
    }
}
