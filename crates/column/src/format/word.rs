//! Values as machine words: each storage has a native type, each native type a word that offsets are computed in.
//!
//! A word is 32 bits for storages of up to 4 bytes (sign- or zero-extended) and 64 bits for those of 8; differences
//! wrap. Floats are their bit patterns as unsigned integers.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitOrAssign, Shl, Shr};

/// An unsigned word, 32 or 64 bits.
pub(crate) trait Word:
    Copy
    + Ord
    + Default
    + Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitOrAssign
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + 'static
{
    /// Bits of a word.
    const BITS: u32;
    /// Bytes of a word.
    const BYTES: usize = Self::BITS as usize / 8;
    /// Zero-extended to 64 bits.
    fn to_u64(self) -> u64;
    /// The low bits.
    fn from_u64(value: u64) -> Self;
    /// Sum, wrapping.
    fn plus(self, other: Self) -> Self;
    /// Difference, wrapping.
    fn minus(self, other: Self) -> Self;
    /// Bits up to the highest one that is set.
    fn significant(self) -> u32;
    /// Reads a word; `bytes` are exactly its own.
    fn read_word(bytes: &[u8]) -> Self;
    /// Writes a word; `bytes` are exactly its own.
    fn write_word(self, bytes: &mut [u8]);
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
    /// The value extended to 64 bits by its sign.
    fn extend(self) -> u64;
    /// The low bits.
    fn from_u64(value: u64) -> Self;
    /// The value as a word, extended by its sign.
    fn to_word(self) -> Self::Word;
    /// The low bits of a word.
    fn from_word(word: Self::Word) -> Self;
    /// The value's bits, zero-extended.
    fn bits(self) -> u64;
    /// Reads a value; `bytes` are exactly its own.
    fn read(bytes: &[u8]) -> Self;
    /// Writes a value; `bytes` are exactly its own.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            fn to_u64(self) -> u64 {
                self as u64
            }
            fn from_u64(value: u64) -> Self {
                value as $word
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
            fn read_word(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as a word has"))
            }
            fn write_word(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
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
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as a value has"))
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

/// Runs an expression with `$native` standing for the native type of a storage.
macro_rules! with_native {
    ($storage:expr, $native:ident => $body:expr) => {
        match $storage {
            $crate::units::Storage::I8 => {
                type $native = i8;
                $body
            }
            $crate::units::Storage::I16 => {
                type $native = i16;
                $body
            }
            $crate::units::Storage::I32 => {
                type $native = i32;
                $body
            }
            $crate::units::Storage::I64 => {
                type $native = i64;
                $body
            }
            $crate::units::Storage::U8 | $crate::units::Storage::Bool => {
                type $native = u8;
                $body
            }
            $crate::units::Storage::U16 => {
                type $native = u16;
                $body
            }
            $crate::units::Storage::U32 | $crate::units::Storage::F32 => {
                type $native = u32;
                $body
            }
            $crate::units::Storage::U64 | $crate::units::Storage::F64 => {
                type $native = u64;
                $body
            }
        }
    };
}
pub(crate) use with_native;

/// A word as a key that sorts like the signed number.
pub(crate) fn signed<W: Word>(word: W) -> W {
    word.plus(W::from_u64(1 << (W::BITS - 1)))
}

/// Array number `index` of `count` words in `bytes`, if they are there.
pub(crate) fn word_at<W: Word>(bytes: &[u8], index: usize) -> Option<W> {
    let at = index.checked_mul(W::BYTES)?;
    bytes.get(at..at.checked_add(W::BYTES)?).map(W::read_word)
}

/// Whether bit `row` of validity words is set; all are where there are no words.
pub(crate) fn is_valid(validity: Option<&[u32]>, row: usize) -> bool {
    validity.is_none_or(|words| words[row / 32] >> (row % 32) & 1 == 1)
}
