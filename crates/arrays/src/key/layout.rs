//! Layout of a key: the bits of each coordinate.
//!
//! ```text
//! bit  127 … total   total−1 …                … 0
//!      [ 0 … 0     | dimension 0 | 1 | … | d−1 ]
//! ```
//!
//! The first dimension takes the most significant bits, so that keys sort as coordinate tuples do. A dimension of one
//! element takes no bits. Source: bit-encoded sparse structure, Wang, *Sparse Array Representations … on GPUs*, 2.1.3
//! and 3.5.2.

use thiserror::Error;

use super::Key;

/// Most dimensions of a cube.
pub const DIMENSIONS_MAX: usize = 32;
/// Most bits of a key.
pub const KEY_BITS_MAX: u32 = 128;

/// A layout that no key has. Dimensions count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A cube has from 1 to [`DIMENSIONS_MAX`] dimensions.
    #[error("a cube has from 1 to {DIMENSIONS_MAX} dimensions, not {dimensions}")]
    Dimensions {
        /// Dimensions asked for.
        dimensions: usize,
    },
    /// A coordinate has from 0 to 32 bits.
    #[error("dimension {dimension} asks for {bits} bits; a coordinate has at most 32")]
    CoordinateBits {
        /// The dimension.
        dimension: usize,
        /// Its bits.
        bits: u32,
    },
    /// The coordinates of a cell do not fit into one key.
    #[error("the key of a cell needs {total} bits ({bits:?} a dimension); at most {KEY_BITS_MAX} fit")]
    TooWide {
        /// Bits of each dimension.
        bits: Vec<u32>,
        /// Their sum.
        total: u32,
    },
}

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
    pub fn new(bits: &[u32]) -> Result<KeyLayout, KeyError> {
        if bits.is_empty() || bits.len() > DIMENSIONS_MAX {
            return Err(KeyError::Dimensions { dimensions: bits.len() });
        }
        if let Some(dimension) = bits.iter().position(|&bits| bits > u32::BITS) {
            return Err(KeyError::CoordinateBits { dimension, bits: bits[dimension] });
        }
        match KeyLayout::unchecked(bits.to_vec()) {
            KeyLayout { bits, total, .. } if total > KEY_BITS_MAX => Err(KeyError::TooWide { bits, total }),
            layout => Ok(layout),
        }
    }

    /// The narrowest layout for `sizes[d]` base elements in dimension `d`.
    ///
    /// # Errors
    /// As [`KeyLayout::new`].
    pub fn for_sizes(sizes: &[u32]) -> Result<KeyLayout, KeyError> {
        KeyLayout::new(&narrowest(sizes))
    }

    /// The narrowest layout of neighbouring dimensions of an array, which may be none. Its keys may be wider than
    /// [`KEY_BITS_MAX`]: the caller checks [`KeyLayout::total_bits`] before it packs them.
    pub(crate) fn of_part(sizes: &[u32]) -> KeyLayout {
        KeyLayout::unchecked(narrowest(sizes))
    }

    /// The layout of some of the dimensions, in their order; of none it has no bits.
    pub(crate) fn chosen(&self, dimensions: &[usize]) -> KeyLayout {
        KeyLayout::unchecked(dimensions.iter().map(|dimension| self.bits[*dimension]).collect())
    }

    fn unchecked(bits: Vec<u32>) -> KeyLayout {
        let total = bits.iter().sum();
        let mut below = total;
        let shifts = bits.iter().map(|bits| {
            below -= bits;
            below
        });
        KeyLayout { shifts: shifts.collect(), bits, total }
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.bits.len()
    }

    /// Bits of each dimension.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Bits of the dimensions behind each one: a key without them is that of a prefix of the dimensions.
    pub fn shifts(&self) -> &[u32] {
        &self.shifts
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
    #[inline]
    pub fn pack<K: Key>(&self, coordinates: &[u32]) -> K {
        debug_assert_eq!(coordinates.len(), self.dimensions());
        debug_assert!(coordinates.iter().enumerate().all(|(at, coordinate)| *coordinate <= self.coordinate_max(at)));
        K::pack(&self.bits, coordinates)
    }

    /// One coordinate of a key.
    #[inline]
    pub fn coordinate<K: Key>(&self, key: K, dimension: usize) -> u32 {
        key.field(self.shift(dimension), self.bits[dimension])
    }

    /// Writes all coordinates of a key to a tuple.
    #[inline]
    pub fn unpack_to<K: Key>(&self, key: K, tuple: &mut [u32]) {
        key.unpack(&self.bits, tuple);
    }

    /// All coordinates of a key.
    pub fn unpack<K: Key>(&self, key: K) -> Vec<u32> {
        let mut tuple = vec![0; self.dimensions()];
        self.unpack_to(key, &mut tuple);
        tuple
    }
}

/// Bits of the coordinates `0..count`: `⌈log2 count⌉`, 0 for one element or none.
pub fn coordinate_bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

fn narrowest(sizes: &[u32]) -> Vec<u32> {
    sizes.iter().map(|size| coordinate_bits(*size as usize)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_are_those_of_the_highest_coordinate() {
        let cases = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20), ((1 << 20) + 1, 21), (1 << 31, 31)];
        let wide = [((1 << 31) + 1, 32), (u32::MAX as usize, 32), (1 << 32, 32)];
        for (count, bits) in cases.into_iter().chain(wide) {
            assert_eq!(coordinate_bits(count), bits, "{count}");
        }
    }

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
        assert_eq!(KeyLayout::new(&[]), Err(KeyError::Dimensions { dimensions: 0 }));
        assert_eq!(KeyLayout::new(&[1; 33]), Err(KeyError::Dimensions { dimensions: 33 }));
        assert_eq!(KeyLayout::new(&[1, 33]), Err(KeyError::CoordinateBits { dimension: 1, bits: 33 }));
        let bits = vec![32, 32, 32, 32, 1];
        assert_eq!(KeyLayout::new(&bits), Err(KeyError::TooWide { bits, total: 129 }));
        assert!(!KeyLayout::new(&[32; 4]).unwrap().is_narrow());
    }

    #[test]
    fn a_dimension_without_bits_may_lead_a_full_key() {
        let layout = KeyLayout::new(&[0, 32, 32, 0, 32, 32, 0]).unwrap();
        let cell = [0, 1, u32::MAX, 0, 7, u32::MAX, 0];
        assert_eq!(layout.unpack(layout.pack::<u128>(&cell)), cell);
        assert_eq!(layout.shifts(), [128, 96, 64, 64, 32, 0, 0]);
        assert_eq!((layout.shift(0), layout.shift(1)), (0, 96));
    }

    fn round_trip<K: Key>(sizes: &[u32]) {
        let layout = KeyLayout::for_sizes(sizes).unwrap();
        assert!(layout.total_bits() as usize <= 8 * size_of::<K>());
        let last: Vec<u32> = sizes.iter().map(|size| size - 1).collect();
        let half: Vec<u32> = sizes.iter().map(|size| size / 2).collect();
        for tuple in [vec![0; sizes.len()], half, last] {
            let key: K = layout.pack(&tuple);
            assert_eq!(layout.unpack(key), tuple);
            let fields: Vec<u32> = (0..sizes.len()).map(|dimension| layout.coordinate(key, dimension)).collect();
            assert_eq!(fields, tuple);
            assert_eq!(key.wide(), layout.pack::<u128>(&tuple));
        }
    }

    #[test]
    fn tuples_of_every_key_width_come_back() {
        round_trip::<u32>(&[5, 3, 4]);
        round_trip::<u32>(&[1, u32::MAX, 1]);
        round_trip::<u64>(&[u32::MAX, u32::MAX]);
        round_trip::<u64>(&[1, u32::MAX, 1, u32::MAX, 1]);
        for wide in [&[16; 32][..], &[1, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1]] {
            round_trip::<[u64; 2]>(wide);
            round_trip::<u128>(wide);
        }
    }

    #[test]
    fn keys_of_the_thesis() {
        // Table 2.4: 3, 2 and 2 bits.
        let layout = KeyLayout::for_sizes(&[5, 3, 4]).unwrap();
        let keys: [u64; 6] =
            [[0, 0, 0], [0, 0, 1], [0, 2, 2], [0, 2, 3], [2, 0, 3], [2, 1, 0]].map(|tuple| layout.pack(&tuple));
        assert_eq!(keys, [0, 1, 10, 11, 35, 36]);
        assert_eq!((layout.bits(), layout.shifts()), (&[3, 2, 2][..], &[4, 2, 0][..]));
    }

    #[test]
    fn a_part_may_have_no_dimension_or_too_many_bits() {
        assert_eq!(KeyLayout::of_part(&[]).total_bits(), 0);
        assert_eq!(KeyLayout::of_part(&[u32::MAX; 5]).total_bits(), 160);
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
            prop_assert_eq!(layout.unpack(layout.pack::<u128>(&one)), one.clone());
            prop_assert_eq!(layout.pack::<u128>(&one).cmp(&layout.pack(&other)), one.cmp(&other));
        }
    }
}
