//! NSV: 1 to 4 bytes for each value, with the number of bytes in 2 bits beside them.
//!
//! ```text
//! 0              lengths  [V * 64] × u32   bytes of row i, less one, in bits 2 * (i % 16) of word i / 16
//! 256 * V        starts   [V + 1] × u32    first byte of each vector in the data, and the end of the data
//! 260 * V + 4    data     the low bytes of each value less the reference, row after row
//! then           4 zeros, so that a read of four bytes may begin anywhere in the data
//! ```
//!
//! The encoding holds the reference of the column. Values less the reference fit 32 bits. Null slots and padding take
//! one byte, zero. Source: null suppression with variable length (Fang, He and Luo, "Database compression on graphics
//! processors") as in section 5.6 of Shanbhag, "Interactive Data Analytics Using GPUs". Starts are ours: they make
//! vectors independent.

use super::codec::{Codec, EncodedBytes};
use super::values::{Plain, is_valid_in};
use super::word::{Native, Word, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::VECTOR_ROWS;

/// Parameters of an NSV column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nsv {
    /// The value subtracted from all values, sign-extended to 64 bits; 0 is the form of the paper.
    pub reference: u64,
}

/// Zeros after the data.
const TAIL: usize = 4;

impl Codec for Nsv {
    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => self.encode_native::<Value>(plain, out))
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        let (parts, width) = (Parts::new(segment)?, segment.storage.width());
        let mut values = vec![0; segment.padded() * width];
        for (vector, values) in values.chunks_exact_mut(VECTOR_ROWS * width).enumerate() {
            let mut at = parts.start(vector)?;
            with_native!(segment.storage, Value => for (row, value) in values.chunks_exact_mut(width).enumerate() {
                let length = parts.length(vector * VECTOR_ROWS + row);
                self.value::<Value>(parts.offset(at, length)?).write(value);
                at += length;
            });
        }
        Ok(values)
    }
}

impl Nsv {
    fn encode_native<T: Native>(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        let reference = T::Word::from_u64(self.reference);
        let starts_at = 256 * plain.vectors();
        let data_at = starts_at + 4 * (plain.vectors() + 1);
        out.resize(data_at, 0);
        for vector in 0..plain.vectors() {
            let valid = plain.vector_validity(vector);
            let values = plain.vector(vector).chunks_exact(T::BYTES).map(|value| T::read(value).to_word());
            for (row, value) in values.enumerate() {
                let offset = if is_valid_in(&valid, row) { value.minus(reference).to_u64() } else { 0 };
                let row = vector * VECTOR_ROWS + row;
                let Ok(narrow) = u32::try_from(offset) else {
                    let reason = format!("its value less {} needs more than 32 bits", self.reference as i64);
                    return Err(EncodingError::Overflow { encoding: "nsv", row, reason });
                };
                let length = narrow.significant().div_ceil(8).max(1) as usize;
                out[row / 4] |= ((length - 1) as u8) << (2 * (row % 4));
                out.extend_from_slice(&narrow.to_le_bytes()[..length]);
            }
            let (end, start_at) = ((out.len() - data_at) as u32, starts_at + 4 * (vector + 1));
            out[start_at..start_at + 4].copy_from_slice(&end.to_le_bytes());
        }
        out.resize(out.len() + TAIL, 0);
        Ok(())
    }

    fn value<T: Native>(&self, offset: u32) -> T {
        T::from_word(T::Word::from_u64(self.reference).plus(T::Word::from_u64(u64::from(offset))))
    }
}

/// The parts of an NSV buffer.
struct Parts<'a> {
    lengths: &'a [u8],
    starts: &'a [u8],
    data: &'a [u8],
}

const DAMAGED: EncodingError = EncodingError::Damaged("lengths and starts of an NSV segment contradict its data");

impl<'a> Parts<'a> {
    fn new(segment: EncodedBytes<'a>) -> Result<Parts<'a>> {
        let (bytes, vectors) = (segment.bytes, segment.vectors());
        let (starts_at, data_at) = (256 * vectors, 260 * vectors + 4);
        if bytes.len() < data_at + TAIL {
            return Err(DAMAGED);
        }
        Ok(Parts { lengths: &bytes[..starts_at], starts: &bytes[starts_at..data_at], data: &bytes[data_at..] })
    }

    fn start(&self, vector: usize) -> Result<usize> {
        word_at::<u32>(self.starts, vector).map(|start| start as usize).ok_or(DAMAGED)
    }

    fn length(&self, row: usize) -> usize {
        usize::from(self.lengths[row / 4] >> (2 * (row % 4)) & 3) + 1
    }

    fn offset(&self, at: usize, length: usize) -> Result<u32> {
        let four = self.data.get(at..at + 4).ok_or(DAMAGED)?;
        Ok(u32::read(four) & (u32::MAX >> (32 - 8 * length)))
    }
}
