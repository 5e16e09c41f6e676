//! RLE: runs of equal values. A run ends with its vector, so that vectors are decoded independently.
//!
//! ```text
//! 0           blocks  [V + 1] × u32         number of the first run of each vector, and the number R of all runs
//! 4 * V + 4   padding to a multiple of 8
//!             values  [R] × storage width   the value of each run
//!             padding to a multiple of 2
//!             starts  [R] × u16             the first row of each run in its vector; 0 for a vector's first run
//! ```
//!
//! A run ends at the start of the next run of its vector, or at row 1,024. Null slots and padding belong to the run
//! before them. Source: run-length encoding of Fang, He and Luo, "Database compression on graphics processors", as in
//! section 5.2 of Shanbhag, "Interactive Data Analytics Using GPUs". Starts in place of lengths and runs that end with
//! vectors are ours.

use super::codec::{Codec, EncodedBytes};
use super::values::Plain;
use super::word::{Native, append, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::VECTOR_ROWS;

const DAMAGED: EncodingError = EncodingError::Damaged("blocks and starts of runs contradict each other");

/// The RLE codec.
pub(crate) struct Rle;

impl Codec for Rle {
    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => encode::<Value>(plain, out));
        Ok(())
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        let width = segment.storage.width();
        let parts = Parts::new(segment)?;
        let mut values = vec![0; segment.padded() * width];
        for (vector, values) in values.chunks_exact_mut(VECTOR_ROWS * width).enumerate() {
            let (run_values, starts) = parts.vector(vector)?;
            for (run, value) in run_values.chunks_exact(width).enumerate() {
                let start = usize::from(u16::from_le_bytes(starts[run]));
                let end = starts.get(run + 1).map_or(VECTOR_ROWS, |next| usize::from(u16::from_le_bytes(*next)));
                let slots = values.get_mut(start * width..end * width).ok_or(DAMAGED)?;
                slots.chunks_exact_mut(width).for_each(|slot| slot.copy_from_slice(value));
            }
        }
        Ok(values)
    }
}

fn encode<T: Native>(plain: &Plain<'_>, out: &mut Vec<u8>) {
    let mut blocks = vec![0u32];
    let mut values: Vec<T> = Vec::new();
    let mut starts: Vec<u16> = Vec::new();
    for vector in 0..plain.vectors() {
        let rows = plain.filled::<T>(vector);
        for (row, value) in rows.iter().enumerate() {
            if row == 0 || rows[row - 1] != *value {
                values.push(*value);
                starts.push(row as u16);
            }
        }
        blocks.push(values.len() as u32);
    }
    append(&blocks, out);
    out.resize(out.len().next_multiple_of(8), 0);
    append(&values, out);
    out.resize(out.len().next_multiple_of(2), 0);
    append(&starts, out);
}

/// The parts of an RLE buffer.
struct Parts<'a> {
    width: usize,
    blocks: &'a [u8],
    values: &'a [u8],
    starts: &'a [[u8; 2]],
}

impl<'a> Parts<'a> {
    fn new(segment: EncodedBytes<'a>) -> Result<Parts<'a>> {
        let (bytes, width, vectors) = (segment.bytes, segment.storage.width(), segment.vectors());
        let blocks = bytes.get(..4 * (vectors + 1)).ok_or(DAMAGED)?;
        let runs = word_at::<u32>(blocks, vectors).expect("the slice has vectors + 1 words") as usize;
        if runs > segment.padded() {
            return Err(DAMAGED);
        }
        let values_at = blocks.len().next_multiple_of(8);
        let starts_at = (values_at + runs * width).next_multiple_of(2);
        if bytes.len() != starts_at + 2 * runs {
            return Err(DAMAGED);
        }
        let values = &bytes[values_at..values_at + runs * width];
        Ok(Parts { width, blocks, values, starts: bytes[starts_at..].as_chunks().0 })
    }

    /// Values and starts of a vector's runs.
    fn vector(&self, vector: usize) -> Result<(&'a [u8], &'a [[u8; 2]])> {
        let block = |vector| word_at::<u32>(self.blocks, vector).map(|block| block as usize);
        let (first, end) = (block(vector).ok_or(DAMAGED)?, block(vector + 1).ok_or(DAMAGED)?);
        let starts = self.starts.get(first..end).ok_or(DAMAGED)?;
        Ok((&self.values[first * self.width..end * self.width], starts))
    }
}
