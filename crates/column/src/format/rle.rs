//! RLE: runs of equal values, cut where a vector ends, so that each vector is decoded by itself.
//!
//! ```text
//! 0           blocks  [V + 1] × u32         number of the first run of each vector, and the number R of all runs
//! 4 * V + 4   padding to a multiple of 8
//!             values  [R] × storage width   the value of each run
//!             padding to a multiple of 2
//!             starts  [R] × u16             the row in its vector at which a run begins; 0 for the first of a vector
//! ```
//!
//! A run ends where the next one of its vector begins, or at row 1,024. Null slots and padding belong to the run before
//! them. Source: run-length encoding as section 5.2 of Shanbhag, "Interactive Data Analytics Using GPUs", takes it from
//! Fang, He and Luo; starts in place of lengths and the cuts are ours.

use super::plain::{Plain, padded};
use super::word::{Native, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

const DAMAGED: EncodingError = EncodingError::Damaged("blocks and starts of runs contradict each other");

/// Appends a segment to an empty buffer.
pub(crate) fn encode(plain: &Plain<'_>, out: &mut Vec<u8>) {
    with_native!(plain.storage(), Value => encode_native::<Value>(plain, out));
}

fn encode_native<T: Native>(plain: &Plain<'_>, out: &mut Vec<u8>) {
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
    out.extend(blocks.iter().flat_map(|block| block.to_le_bytes()));
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len();
    out.resize(at + values.len() * T::BYTES, 0);
    out[at..].chunks_exact_mut(T::BYTES).zip(&values).for_each(|(bytes, value)| value.write(bytes));
    out.resize(out.len().next_multiple_of(2), 0);
    starts.iter().for_each(|start| out.extend_from_slice(&start.to_le_bytes()));
}

/// Decodes a segment.
///
/// # Errors
/// [`EncodingError::Damaged`] if blocks, values and starts do not belong together.
pub(crate) fn decode(bytes: &[u8], storage: Storage, rows: usize) -> Result<Vec<u8>> {
    let width = storage.width();
    let parts = Parts::new(bytes, width, rows)?;
    let mut values = vec![0; padded(rows) * width];
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

/// One value, its bits zero-extended.
///
/// # Errors
/// As [`decode`].
pub(crate) fn get(bytes: &[u8], storage: Storage, rows: usize, row: usize) -> Result<u64> {
    let width = storage.width();
    let (values, starts) = Parts::new(bytes, width, rows)?.vector(row / VECTOR_ROWS)?;
    let row = (row % VECTOR_ROWS) as u16;
    let run = starts.partition_point(|start| u16::from_le_bytes(*start) <= row).checked_sub(1).ok_or(DAMAGED)?;
    let value = &values[run * width..(run + 1) * width];
    Ok(with_native!(storage, Value => Value::read(value).bits()))
}

/// An RLE buffer taken apart.
struct Parts<'a> {
    width: usize,
    blocks: &'a [u8],
    values: &'a [u8],
    starts: &'a [[u8; 2]],
}

impl<'a> Parts<'a> {
    fn new(bytes: &'a [u8], width: usize, rows: usize) -> Result<Parts<'a>> {
        let vectors = rows.div_ceil(VECTOR_ROWS);
        let blocks = bytes.get(..4 * (vectors + 1)).ok_or(DAMAGED)?;
        let runs = word_at::<u32>(blocks, vectors).expect("one more than vectors") as usize;
        if runs > padded(rows) {
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
