//! Bit-encoded indexes: the coordinates of neighbouring dimensions in the bits of one integer, slowest dimension
//! highest.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 2.1.3 and 3.5.2; the
//! order of keys is the row-major order of tuples by its claim 4.1. A dimension of size D takes `⌈log2 D⌉` bits.

use std::fmt::Debug;
use std::ops::Range;

use super::{ArrayData, Shape, shape};

/// An integer that holds a bit-encoded index. Keys of equal layout compare as their tuples do.
pub(crate) trait Key: Copy + Ord + Default + Debug + Send + Sync + 'static {
    /// Key of a tuple whose coordinates take `bits`, which sum to at most those of the integer.
    fn encode(bits: &[u32], tuple: &[u32]) -> Self;

    /// Writes the coordinates of the key to `tuple`.
    fn decode(self, bits: &[u32], tuple: &mut [u32]);

    /// The key without its `bits` lowest bits, at most 32 of them.
    fn without(self, bits: u32) -> Self;

    /// Bit number `bit`, counted from the lowest: 0 or 1.
    fn bit(self, bit: u32) -> usize;

    /// Number of the highest bit in which two different keys differ, counted from the lowest.
    fn highest_difference(self, other: Self) -> u32;

    /// The `bits` bits from number `shift` on, at most 32 of them; 0 if `bits` is 0.
    fn field(self, shift: u32, bits: u32) -> u32;

    /// The keys as an array of a scheme.
    fn array<V>(keys: &[Self]) -> ArrayData<'_, V>;
}

/// Implements [`Key`] by the arithmetic of an integer of at least 64 bits, since a field may take 32.
macro_rules! key {
    ($key:ty, $wide:ty, $to:expr, $from:expr, $array:ident) => {
        impl Key for $key {
            #[inline]
            fn encode(bits: &[u32], tuple: &[u32]) -> Self {
                let fields = bits.iter().zip(tuple);
                $from(fields.fold(0, |key: $wide, (bits, coordinate)| key << bits | <$wide>::from(*coordinate)))
            }

            #[inline]
            fn decode(self, bits: &[u32], tuple: &mut [u32]) {
                let mut key: $wide = $to(self);
                for (bits, coordinate) in bits.iter().zip(tuple).rev() {
                    *coordinate = (key & ((1 << bits) - 1)) as u32;
                    key >>= bits;
                }
            }

            #[inline]
            fn without(self, bits: u32) -> Self {
                let key: $wide = $to(self);
                $from(key >> bits)
            }

            #[inline]
            fn bit(self, bit: u32) -> usize {
                let key: $wide = $to(self);
                (key >> bit & 1) as usize
            }

            #[inline]
            fn highest_difference(self, other: Self) -> u32 {
                let difference: $wide = $to(self) ^ $to(other);
                <$wide>::BITS - 1 - difference.leading_zeros()
            }

            #[inline]
            fn field(self, shift: u32, bits: u32) -> u32 {
                if bits == 0 {
                    return 0;
                }
                let key: $wide = $to(self);
                (key >> shift & ((1 << bits) - 1)) as u32
            }

            fn array<V>(keys: &[Self]) -> ArrayData<'_, V> {
                ArrayData::$array(keys)
            }
        }
    };
}

key!(u32, u64, u64::from, |key: u64| key as u32, Words32);
key!(u64, u64, u64::from, |key: u64| key, Words64);
// Two words, the higher one first, so that pairs compare as the numbers they hold.
key!(
    [u64; 2],
    u128,
    |[high, low]: [u64; 2]| u128::from(high) << 64 | u128::from(low),
    |key: u128| [(key >> 64) as u64, key as u64],
    Pairs64
);

/// Positions of the coordinates of neighbouring dimensions within a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitLayout {
    bits: Vec<u32>,
    shifts: Vec<u32>,
}

impl BitLayout {
    /// Layout of these dimensions of a shape, the last one in the lowest bits.
    pub fn new(shape: &Shape, dimensions: Range<usize>) -> Self {
        let bits: Vec<u32> = shape.sizes()[dimensions].iter().map(|size| shape::bits(*size)).collect();
        let mut shift = bits.iter().sum();
        let shifts = bits.iter().map(|bits| {
            shift -= bits;
            shift
        });
        Self { shifts: shifts.collect(), bits }
    }

    /// Bits of each coordinate, slowest dimension first.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Number of the lowest bit of each coordinate, slowest dimension first.
    pub fn shifts(&self) -> &[u32] {
        &self.shifts
    }

    /// Bits of a key.
    pub fn total(&self) -> u32 {
        self.bits.iter().sum()
    }

    #[inline]
    pub(crate) fn encode<K: Key>(&self, tuple: &[u32]) -> K {
        K::encode(&self.bits, tuple)
    }

    #[inline]
    pub(crate) fn decode<K: Key>(&self, key: K, tuple: &mut [u32]) {
        key.decode(&self.bits, tuple);
    }

    /// Coordinate of one dimension of a key.
    #[inline]
    pub(crate) fn coordinate<K: Key>(&self, key: K, dimension: usize) -> u32 {
        key.field(self.shifts[dimension], self.bits[dimension])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: Key>(sizes: &[u32]) {
        let shape = Shape::new(sizes).unwrap();
        let layout = BitLayout::new(&shape, 0..sizes.len());
        assert!(layout.total() as usize <= 8 * size_of::<K>());
        let last: Vec<u32> = sizes.iter().map(|size| size - 1).collect();
        let half: Vec<u32> = sizes.iter().map(|size| size / 2).collect();
        for tuple in [vec![0; sizes.len()], half, last] {
            let key: K = layout.encode(&tuple);
            let mut found = vec![7; sizes.len()];
            layout.decode(key, &mut found);
            assert_eq!(found, tuple);
            let fields: Vec<u32> = (0..sizes.len()).map(|dimension| layout.coordinate(key, dimension)).collect();
            assert_eq!(fields, tuple);
        }
    }

    #[test]
    fn tuples_of_every_key_width_come_back() {
        round_trip::<u32>(&[5, 3, 4]);
        round_trip::<u32>(&[1, u32::MAX, 1]);
        round_trip::<u64>(&[u32::MAX, u32::MAX]);
        round_trip::<u64>(&[1, u32::MAX, 1, u32::MAX, 1]);
        round_trip::<[u64; 2]>(&[16; 32]);
        round_trip::<[u64; 2]>(&[1, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1]);
    }

    #[test]
    fn keys_of_the_thesis() {
        // Table 2.4: 3, 2 and 2 bits.
        let layout = BitLayout::new(&Shape::new([5, 3, 4]).unwrap(), 0..3);
        let keys: [u64; 6] =
            [[0, 0, 0], [0, 0, 1], [0, 2, 2], [0, 2, 3], [2, 0, 3], [2, 1, 0]].map(|tuple| layout.encode(&tuple));
        assert_eq!(keys, [0, 1, 10, 11, 35, 36]);
        assert_eq!((layout.bits(), layout.shifts()), (&[3, 2, 2][..], &[4, 2, 0][..]));
    }

    #[test]
    fn the_highest_difference_of_wide_keys_crosses_words() {
        let (low, high) = ([0, 5], [1, 5]);
        assert_eq!((low.highest_difference(high), [0, 4].highest_difference(low)), (64, 0));
        assert_eq!((high.bit(64), high.bit(2), high.bit(1)), (1, 1, 0));
        assert_eq!([3u64, 0].without(32), [0, 3 << 32]);
    }
}
