//! ALP: floats that are decimals as packed integers, all other floats as exceptions.
//!
//! A value `v` becomes the integer `d = round(v * 10^exponent * 10^-factor)` if decoding gives its bits back:
//!
//! ```text
//! v = d * 10^factor * 10^-exponent      both products rounded to 64-bit floats, in this order; F32 rounds once more
//! ```
//!
//! All other rows (NaN, infinities, -0.0, numbers with too many digits) are exceptions: their bits are patches, and `d`
//! repeats the integer before. All segments of a column share exponent and factor.
//!
//! ```text
//! 0         length      u64: bytes P of the packed integers
//! 8         zeros       8
//! 16        integers    [P] a packed segment (see `packed.rs`) of `d` as 64-bit signed values, null slots null
//! 16 + P    padding to a multiple of 8
//! then      exceptions  patches (see `patches.rs`) of bits: u32 for F32, u64 for F64
//! ```
//!
//! Source: Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point Compression". The packed layout of the
//! integers and 64-bit arithmetic for F32 are ours.

use super::bitpack::GROUP_ROWS;
use super::codec::{Codec, EncodedBytes};
use super::packed::{OffsetBits, Packed, PackedWriter};
use super::patches::{PatchReader, PatchWriter};
use super::values::{Plain, VectorValidity, is_valid_in};
use super::word::{Native, Word, is_valid, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Powers of ten, exact as 64-bit floats.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Their inverses, rounded.
const INVERSES: [f64; 23] = [
    1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18, 1e-19, 1e-20, 1e-21, 1e-22,
];
/// Largest exponent that [`Alp::fit`] tries.
const EXPONENT_MAX: u32 = 18;
/// A number below 2^51 plus this, minus this, is the nearest integer.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// Values of the sample that exponent and factor are chosen by.
const SAMPLE: usize = 256;

/// Parameters of an ALP column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alp {
    /// Power of ten by which values are multiplied, at most 22.
    pub exponent: u32,
    /// Power of ten by which the products are divided, at most the exponent.
    pub factor: u32,
    /// Packing of the integers, values of [`Storage::I64`].
    pub integers: Packed,
}

/// The 32- or 64-bit floats of a storage.
trait Float: Copy {
    type Bits: Word;
    fn from_bits(bits: Self::Bits) -> f64;
    fn to_bits(value: f64) -> Self::Bits;
}

macro_rules! floats {
    ($($float:ty => $bits:ty),*) => {$(
        impl Float for $float {
            type Bits = $bits;
            fn from_bits(bits: $bits) -> f64 {
                <$float>::from_bits(bits).into()
            }
            fn to_bits(value: f64) -> $bits {
                (value as $float).to_bits()
            }
        }
    )*};
}

floats!(f32 => u32, f64 => u64);

/// Evaluates an expression in which `$float` is the float of a storage; integers are not applicable.
macro_rules! with_float {
    ($storage:expr, $float:ident => $body:expr) => {
        match $storage {
            Storage::F32 => {
                type $float = f32;
                $body
            }
            Storage::F64 => {
                type $float = f64;
                $body
            }
            storage => Err(not_floats(storage)),
        }
    };
}

/// A pair of exponent and factor.
#[derive(Debug, Clone, Copy)]
struct Scale {
    exponent: usize,
    factor: usize,
}

impl Scale {
    /// The integer of a value; `None` if decoding gives another value.
    fn integer<F: Float>(self, bits: F::Bits) -> Option<i64> {
        let scaled = F::from_bits(bits) * POWERS[self.exponent] * INVERSES[self.factor];
        let integer = ((scaled + ROUNDING) - ROUNDING) as i64;
        (self.value::<F>(integer) == bits).then_some(integer)
    }

    /// The value of an integer.
    fn value<F: Float>(self, integer: i64) -> F::Bits {
        F::to_bits(integer as f64 * POWERS[self.factor] * INVERSES[self.exponent])
    }
}

impl Alp {
    /// The smallest parameters for a sample of a segment's valid values; `None` without valid values.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] for integers.
    pub fn fit(plain: &Plain<'_>) -> Result<Option<Alp>> {
        with_float!(plain.storage(), Value => fit::<Value>(plain))
    }

    /// The factors of decoding, in the order in which they apply.
    pub fn factors(&self) -> (f64, f64) {
        (POWERS[self.factor as usize], INVERSES[self.exponent as usize])
    }

    /// The factors of encoding, then those of decoding, each in the order in which they apply.
    pub(crate) fn scales(&self) -> Result<[f64; 4]> {
        let Scale { exponent, factor } = self.scale()?;
        Ok([POWERS[exponent], INVERSES[factor], POWERS[factor], INVERSES[exponent]])
    }

    fn scale(&self) -> Result<Scale> {
        let (exponent, factor) = (self.exponent as usize, self.factor as usize);
        if factor > exponent || exponent >= POWERS.len() {
            return Err(EncodingError::Damaged("exponent or factor of ALP is out of range"));
        }
        Ok(Scale { exponent, factor })
    }

    fn encode_floats<F: Float>(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (scale, mut exceptions) = (self.scale()?, PatchWriter::new());
        out.resize(16, 0);
        let mut writer = PackedWriter::new(self.integers, plain.vectors(), out);
        for vector in 0..plain.vectors() {
            let valid = plain.vector_validity(vector);
            writer.push(&integers::<F>(scale, plain, vector, &valid, &mut exceptions), &valid)?;
        }
        writer.finish();
        let length = out.len() - 16;
        out[..8].copy_from_slice(&(length as u64).to_le_bytes());
        out.resize(out.len().next_multiple_of(8), 0);
        exceptions.write(out);
        Ok(())
    }

    fn decode_floats<F: Float>(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        let (scale, (packed, exceptions)) = (self.scale()?, self.parts::<F>(segment)?);
        let integers = self.integers.decode(packed)?;
        let width = F::Bits::BYTES;
        let mut values = vec![0; segment.padded() * width];
        let groups = integers.chunks_exact(8 * GROUP_ROWS).zip(values.chunks_exact_mut(width * GROUP_ROWS));
        for (group, (integers, values)) in groups.enumerate() {
            for (integer, value) in integers.as_chunks::<8>().0.iter().zip(values.chunks_exact_mut(width)) {
                scale.value::<F>(i64::from_le_bytes(*integer)).write(value);
            }
            for (row, bits) in exceptions.group::<F::Bits>(group)? {
                bits.write(&mut values[row * width..(row + 1) * width]);
            }
        }
        Ok(values)
    }

    /// The packed integers and the exceptions of a buffer.
    fn parts<'a, F: Float>(&self, segment: EncodedBytes<'a>) -> Result<(EncodedBytes<'a>, PatchReader<'a>)> {
        let damaged = EncodingError::Damaged("the length of an ALP segment contradicts its head");
        let length = word_at::<u64>(segment.bytes, 0).and_then(|length| usize::try_from(length).ok());
        let end = length.and_then(|length| length.checked_add(16)).filter(|end| *end <= segment.bytes.len());
        let end = end.ok_or(damaged)?;
        let exceptions = PatchReader::read::<F::Bits>(segment.bytes, end.next_multiple_of(8), 4 * segment.vectors())?;
        let packed = EncodedBytes { bytes: &segment.bytes[16..end], storage: Storage::I64, ..segment };
        packed.check(&self.integers)?;
        Ok((packed, exceptions))
    }
}

impl Codec for Alp {
    fn check(&self, storage: Storage) -> Result<()> {
        if !storage.is_float() {
            return Err(not_floats(storage));
        }
        self.integers.check(Storage::I64)?;
        self.scale().map(drop)
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_float!(plain.storage(), Value => self.encode_floats::<Value>(plain, out))
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        with_float!(segment.storage, Value => self.decode_floats::<Value>(segment))
    }
}

fn not_floats(storage: Storage) -> EncodingError {
    EncodingError::NotApplicable { encoding: "alp", storage, reason: "it is for floats" }
}

/// Integers of a vector; adds its exceptions to the patches.
fn integers<F: Float>(
    scale: Scale,
    plain: &Plain<'_>,
    vector: usize,
    valid: &Option<VectorValidity>,
    exceptions: &mut PatchWriter<F::Bits>,
) -> [i64; VECTOR_ROWS] {
    let mut integers = [0; VECTOR_ROWS];
    let groups = plain.vector(vector).chunks_exact(F::Bits::BYTES * GROUP_ROWS);
    for (group, (values, integers)) in groups.zip(integers.as_chunks_mut::<GROUP_ROWS>().0).enumerate() {
        let bits = values.chunks_exact(F::Bits::BYTES).map(F::Bits::read);
        let mut last = bits.clone().find_map(|bits| scale.integer::<F>(bits)).unwrap_or(0);
        for (row, (bits, to)) in bits.zip(integers).enumerate() {
            match scale.integer::<F>(bits) {
                Some(integer) => last = integer,
                None if is_valid_in(valid, group * GROUP_ROWS + row) => exceptions.push(row, bits),
                None => {}
            }
            *to = last;
        }
        exceptions.end_group();
    }
    integers
}

fn fit<F: Float>(plain: &Plain<'_>) -> Result<Option<Alp>> {
    let width = F::Bits::BYTES;
    let step = (plain.rows() / SAMPLE).max(1);
    let rows = (0..plain.rows()).step_by(step).filter(|row| is_valid(plain.validity(), *row));
    let sample: Vec<F::Bits> = rows.map(|row| F::Bits::read(&plain.values()[row * width..(row + 1) * width])).collect();
    if sample.is_empty() {
        return Ok(None);
    }
    let exponents = 0..=EXPONENT_MAX as usize;
    let scales = exponents.flat_map(|exponent| (0..=exponent).map(move |factor| Scale { exponent, factor }));
    // Higher exponents are exact more often, so that the last of equals wins.
    let scale = scales.rev().min_by_key(|scale| estimate::<F>(*scale, &sample)).expect("there are scales");
    let mut counts = OffsetBits::none();
    for vector in 0..plain.vectors() {
        let valid = plain.vector_validity(vector);
        counts.count(&integers::<F>(scale, plain, vector, &valid, &mut PatchWriter::new()), &valid, None);
    }
    let packed = counts.fit(Storage::I64, None, true);
    Ok(Some(Alp { exponent: scale.exponent as u32, factor: scale.factor as u32, integers: packed }))
}

/// Bits of a sample: offsets of the widest width, and exceptions.
fn estimate<F: Float>(scale: Scale, sample: &[F::Bits]) -> u64 {
    let (mut low, mut high, mut exceptions) = (i64::MAX, i64::MIN, 0);
    for bits in sample {
        match scale.integer::<F>(*bits) {
            Some(integer) => (low, high) = (low.min(integer), high.max(integer)),
            None => exceptions += 1,
        }
    }
    let width = if low <= high { (high.wrapping_sub(low) as u64).significant() } else { 0 };
    sample.len() as u64 * u64::from(width) + exceptions * (16 + u64::from(F::Bits::BITS))
}
