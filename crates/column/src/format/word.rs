//! Native types of storages, and the words in which offsets of their values are computed.
//!
//! Storages of up to 4 bytes have words of 32 bits, storages of 8 bytes words of 64. Sums and differences wrap. The
//! native type of a float is the unsigned integer of its bits.

use std::fmt::Debug;
use std::ops::BitOr;

/// An unsigned word, 32 or 64 bits.
pub(crate) trait Word: Native + BitOr<Output = Self> {
    /// Bits of a word.
    const BITS: u32;
    /// Zero-extended to 64 bits.
    fn to_u64(self) -> u64;
    /// Sum, wrapping.
    fn plus(self, other: Self) -> Self;
    /// Difference, wrapping.
    fn minus(self, other: Self) -> Self;
    /// Position of the highest set bit, counted from 1.
    fn significant(self) -> u32;
}

/// A value of a storage.
pub(crate) trait Native: Copy + Ord + Default + Debug + 'static {
    /// The word its offsets are computed in.
    type Word: Word;
    /// Bytes of a value.
    const BYTES: usize;
    /// Largest value.
    const MAX: Self;
    /// Whether values have a sign.
    const SIGNED: bool;
    /// The value, sign-extended to 64 bits.
    fn extend(self) -> u64;
    /// The low bits.
    fn from_u64(value: u64) -> Self;
    /// The value as a word, sign-extended.
    fn to_word(self) -> Self::Word;
    /// The low bits of a word.
    fn from_word(word: Self::Word) -> Self;
    /// The value's bits, zero-extended.
    fn bits(self) -> u64;
    /// Reads a value of [`Native::BYTES`] bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Writes a value to [`Native::BYTES`] bytes.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            fn to_u64(self) -> u64 {
                self as u64
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn significant(self) -> u32 {
                <$word>::BITS - self.leading_zeros()
            }
        }
    )*};
}

macro_rules! natives {
    ($($native:ty, $unsigned:ty => $word:ty);*) => {$(
        impl Native for $native {
            type Word = $word;
            const BYTES: usize = size_of::<$native>();
            const MAX: Self = <$native>::MAX;
            const SIGNED: bool = <$native>::MIN != 0;
            fn extend(self) -> u64 {
                self as u64
            }
            fn from_u64(value: u64) -> Self {
                value as $native
            }
            fn to_word(self) -> $word {
                self as $word
            }
            fn from_word(word: $word) -> Self {
                word as $native
            }
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the bytes of one value"))
            }
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

words!(u32, u64);
natives!(i8, u8 => u32; i16, u16 => u32; i32, u32 => u32; i64, u64 => u64);
natives!(u8, u8 => u32; u16, u16 => u32; u32, u32 => u32; u64, u64 => u64);

/// Evaluates an expression in which `$native` is the native type of a storage.
macro_rules! with_native {
    ($storage:expr, $native:ident => $body:expr) => {
        $crate::format::word::with_native!(@ $storage, $native, $body;
            I8 => i8; I16 => i16; I32 => i32; I64 => i64;
            U8 | Bool => u8; U16 => u16; U32 | F32 => u32; U64 | F64 => u64)
    };
    (@ $storage:expr, $native:ident, $body:expr; $($($variant:ident)|+ => $type:ty);+) => {
        match $storage {
            $($($crate::units::Storage::$variant)|+ => {
                type $native = $type;
                $body
            })+
        }
    };
}
pub(crate) use with_native;

/// A word as a key in the order of signed numbers.
pub(crate) fn signed<W: Word>(word: W) -> W {
    word.plus(W::from_u64(1 << (W::BITS - 1)))
}

/// Appends values to a buffer.
pub(crate) fn append<T: Native>(values: &[T], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + values.len() * T::BYTES, 0);
    out[at..].chunks_exact_mut(T::BYTES).zip(values).for_each(|(bytes, value)| value.write(bytes));
}

/// Word number `index` of `bytes`; `None` past their end.
pub(crate) fn word_at<W: Word>(bytes: &[u8], index: usize) -> Option<W> {
    let at = index.checked_mul(W::BYTES)?;
    bytes.get(at..at.checked_add(W::BYTES)?).map(W::read)
}

/// Whether a row is valid; without validity words every row is.
pub(crate) fn is_valid(validity: Option<&[u32]>, row: usize) -> bool {
    validity.is_none_or(|words| words[row / 32] >> (row % 32) & 1 == 1)
}
