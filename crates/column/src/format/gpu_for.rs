//! GPU-FOR: blocks of 128 values less the smallest of the block, packed by miniblocks of 32.
//!
//! The buffer is that of `blocks.rs` with nothing between blocks; a block's reference is its smallest value. Null slots
//! and padding repeat the value before them. Source: section 5.3 of Shanbhag, "Interactive Data Analytics Using GPUs".

use super::blocks::{BLOCK_ROWS, BlockReader, BlockWriter};
use super::plain::{Plain, padded};
use super::word::{Native, Word, with_native};
use crate::error::encoding::Result;
use crate::units::Storage;

/// Appends a segment to an empty buffer.
pub(crate) fn encode(plain: &Plain<'_>, out: &mut Vec<u8>) {
    with_native!(plain.storage(), Value => encode_native::<Value>(plain, out));
}

fn encode_native<T: Native>(plain: &Plain<'_>, out: &mut Vec<u8>) {
    let mut writer = BlockWriter::new();
    for vector in 0..plain.vectors() {
        for block in plain.filled::<T>(vector).as_chunks::<BLOCK_ROWS>().0 {
            let reference = block.iter().copied().fold(T::MAX, T::min).to_word();
            writer.push_block(reference, &block.map(|value| value.to_word().minus(reference)));
        }
    }
    writer.finish::<T::Word>(plain.rows(), out);
}

/// Decodes a segment.
///
/// # Errors
/// [`EncodingError::Damaged`](crate::format::EncodingError::Damaged) if starts or widths contradict the data.
pub(crate) fn decode(bytes: &[u8], storage: Storage, rows: usize) -> Result<Vec<u8>> {
    with_native!(storage, Value => decode_native::<Value>(bytes, rows))
}

fn decode_native<T: Native>(bytes: &[u8], rows: usize) -> Result<Vec<u8>> {
    let reader = BlockReader::new::<T::Word>(bytes, rows)?;
    let mut values = vec![0; padded(rows) * T::BYTES];
    for (block, values) in values.chunks_exact_mut(BLOCK_ROWS * T::BYTES).enumerate() {
        let words = reader.block::<T::Word>(block)?;
        values.chunks_exact_mut(T::BYTES).zip(words).for_each(|(value, word)| T::from_word(word).write(value));
    }
    Ok(values)
}

/// One value, its bits zero-extended.
///
/// # Errors
/// As [`decode`].
pub(crate) fn get(bytes: &[u8], storage: Storage, rows: usize, row: usize) -> Result<u64> {
    with_native!(storage, Value => {
        let reader = BlockReader::new::<<Value as Native>::Word>(bytes, rows)?;
        Ok(Value::from_word(reader.get(row / BLOCK_ROWS, row % BLOCK_ROWS)?).bits())
    })
}
