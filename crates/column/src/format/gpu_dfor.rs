//! GPU-DFOR: differences within tiles of four blocks, packed by miniblocks of 32.
//!
//! The layout is that of `blocks.rs`. A tile is 4 blocks, 512 rows; its first value (1 word of 32 bits, or 2) stands
//! before its first block. A block holds the differences of its rows to the rows before, modulo 2^32 or 2^64; the
//! difference of a tile's first row is 0. A block's reference is the smallest of its differences as signed numbers.
//!
//! ```text
//! value of row r of a tile  =  first value + sum of the differences of rows 0 to r
//! ```
//!
//! Null slots and padding repeat the value before them. Source: section 5.4 of Shanbhag, "Interactive Data Analytics
//! Using GPUs", with its D = 4.

use super::blocks::{BLOCK_ROWS, BlockReader, BlockWriter};
use super::codec::{Codec, EncodedBytes};
use super::values::Plain;
use super::word::{Native, Word, signed, with_native};
use crate::error::encoding::Result;

/// Blocks of a tile.
const TILE_BLOCKS: usize = 4;
/// Rows of a tile.
const TILE_ROWS: usize = TILE_BLOCKS * BLOCK_ROWS;

/// The GPU-DFOR codec.
pub(crate) struct GpuDfor;

impl Codec for GpuDfor {
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
        for tile in plain.filled::<T>(vector).as_chunks::<TILE_ROWS>().0 {
            let mut last = tile[0].to_word();
            writer.push_word(last);
            for block in tile.as_chunks::<BLOCK_ROWS>().0 {
                let differences = block.map(|value| {
                    let difference = value.to_word().minus(last);
                    last = value.to_word();
                    difference
                });
                let reference = differences.iter().copied().min_by_key(|difference| signed(*difference));
                let reference = reference.expect("a block has 128 differences");
                writer.push_block(reference, &differences.map(|difference| difference.minus(reference)));
            }
        }
    }
    writer.finish::<T::Word>(plain.rows(), out);
}

fn decode<T: Native>(segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
    let reader = BlockReader::new::<T::Word>(segment.bytes, segment.rows)?;
    let mut values = vec![0; segment.padded() * T::BYTES];
    for (tile, values) in values.chunks_exact_mut(TILE_ROWS * T::BYTES).enumerate() {
        let mut last: T::Word = reader.before(tile * TILE_BLOCKS)?;
        for (block, values) in values.chunks_exact_mut(BLOCK_ROWS * T::BYTES).enumerate() {
            let differences = reader.block::<T::Word>(tile * TILE_BLOCKS + block)?;
            for (value, difference) in values.chunks_exact_mut(T::BYTES).zip(differences) {
                last = last.plus(difference);
                T::from_word(last).write(value);
            }
        }
    }
    Ok(values)
}
