//! GPU-FOR: offsets to the smallest value of each block of 128, packed by miniblocks of 32.
//!
//! The layout is that of `blocks.rs`, with no words between blocks. A block's reference is its smallest value. Null
//! slots and padding repeat the value before them. Source: section 5.3 of Shanbhag, "Interactive Data Analytics Using
//! GPUs".

use super::blocks::{BLOCK_ROWS, BlockReader, BlockWriter};
use super::codec::{Codec, EncodedBytes};
use super::values::Plain;
use super::word::{Native, Word, with_native};
use crate::error::encoding::Result;

/// The GPU-FOR codec.
pub(crate) struct GpuFor;

impl Codec for GpuFor {
    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => encode::<Value>(plain, out));
        Ok(())
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        with_native!(segment.storage, Value => decode::<Value>(segment))
    }
}

fn encode<T: Native>(plain: &Plain<'_>, out: &mut Vec<u8>) {
    let mut writer = BlockWriter::default();
    for vector in 0..plain.vectors() {
        for block in plain.filled::<T>(vector).as_chunks::<BLOCK_ROWS>().0 {
            let reference = block.iter().copied().fold(T::MAX, T::min).to_word();
            writer.push_block(reference, &block.map(|value| value.to_word().minus(reference)));
        }
    }
    writer.finish::<T::Word>(plain.rows(), out);
}

fn decode<T: Native>(segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
    let reader = BlockReader::new::<T::Word>(segment.bytes, segment.rows)?;
    let mut values = vec![0; segment.padded() * T::BYTES];
    for (block, values) in values.chunks_exact_mut(BLOCK_ROWS * T::BYTES).enumerate() {
        let words = reader.block::<T::Word>(block)?;
        values.chunks_exact_mut(T::BYTES).zip(words).for_each(|(value, word)| T::from_word(word).write(value));
    }
    Ok(values)
}
