//! Integers that hold keys.

use std::fmt::Debug;
use std::hash::Hash;

/// An integer that holds a key. Keys of one layout compare as their tuples do (claim 4.1 of Wang, *Sparse Array
/// Representations … on GPUs*).
pub trait Key: Copy + Ord + Hash + Default + Debug + Send + Sync + 'static {
    /// Key of a tuple whose coordinates take `bits`, which sum to at most those of the integer.
    fn pack(bits: &[u32], tuple: &[u32]) -> Self;

    /// Writes the coordinates of the key to `tuple`.
    fn unpack(self, bits: &[u32], tuple: &mut [u32]);

    /// The key without its `bits` lowest bits, at most 32 of them.
    fn without(self, bits: u32) -> Self;

    /// Bit number `bit`, counted from the lowest: 0 or 1.
    fn bit(self, bit: u32) -> usize;

    /// Number of the highest bit in which two different keys differ, counted from the lowest.
    fn highest_difference(self, other: Self) -> u32;

    /// The `bits` bits from number `shift` on, at most 32 of them.
    fn field(self, shift: u32, bits: u32) -> u32;

    /// The key in 128 bits.
    fn wide(self) -> u128;

    /// Distance to a smaller key, saturated to 64 bits.
    fn distance(self, smaller: Self) -> u64 {
        u64::try_from(self.wide() - smaller.wide()).unwrap_or(u64::MAX)
    }
}

/// Implements [`Key`] by the arithmetic of an integer of at least 64 bits, since a field may take 32.
macro_rules! key {
    ($key:ty, $wide:ty, $to:expr, $from:expr) => {
        impl Key for $key {
            #[inline]
            fn pack(bits: &[u32], tuple: &[u32]) -> Self {
                let fields = bits.iter().zip(tuple);
                $from(fields.fold(0, |key: $wide, (bits, coordinate)| key << bits | <$wide>::from(*coordinate)))
            }

            #[inline]
            fn unpack(self, bits: &[u32], tuple: &mut [u32]) {
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
                let key: $wide = $to(self);
                (key >> shift & ((1 << bits) - 1)) as u32
            }

            #[inline]
            fn wide(self) -> u128 {
                let key: $wide = $to(self);
                key.into()
            }
        }
    };
}

key!(u32, u64, u64::from, |key: u64| key as u32);
key!(u64, u64, u64::from, |key: u64| key);
key!(u128, u128, u128::from, |key: u128| key);
// Two words, the higher one first, so that pairs compare as the numbers they hold.
key!([u64; 2], u128, |[high, low]: [u64; 2]| u128::from(high) << 64 | u128::from(low), |key: u128| [
    (key >> 64) as u64,
    key as u64
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_difference_of_wide_keys_crosses_words() {
        let (low, high) = ([0, 5], [1, 5]);
        assert_eq!((low.highest_difference(high), [0, 4].highest_difference(low)), (64, 0));
        assert_eq!((high.bit(64), high.bit(2), high.bit(1)), (1, 1, 0));
        assert_eq!([3u64, 0].without(32), [0, 3 << 32]);
    }

    #[test]
    fn distances_are_saturated() {
        assert_eq!((9_u64.distance(4), (1_u128 << 90).distance(5), [1_u64, 3].distance([1, 1])), (5, u64::MAX, 2));
    }
}
