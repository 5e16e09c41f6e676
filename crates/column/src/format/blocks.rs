//! Blocks of GPU-FOR and GPU-DFOR: 128 offsets in four miniblocks of 32; each miniblock has its own width.
//!
//! ```text
//! 0                 header  4 × u32: rows of a block (128), its miniblocks (4), rows, bits of a value (32 or 64)
//! 16                starts  [B + 1] × u32   first word of each block in the data, and the end of the last block
//! 20 + 4 * B        data    u32 words: blocks, and the words that an encoding has between them
//! then              3 zero words, so that a read of three words may begin anywhere in a miniblock
//!
//! block:  reference   1 word of 32 bits, or 2 (low half first) for 64-bit values
//!         widths      1 word: bits of an offset of miniblock m in byte m
//!         miniblocks  [4] of `width` words: offset j at bits [j * width, (j + 1) * width), lowest first
//! ```
//!
//! A vector has 8 of the `B` blocks. Values of storages of up to 4 bytes are sign-extended to 32 bits, values of 8
//! bytes have 64. Source: section 5.3 of Shanbhag, "Interactive Data Analytics Using GPUs"; the 64-bit form is ours.

use super::values::padded;
use super::word::{Native, Word, append, word_at};
use crate::error::encoding::{EncodingError, Result};

/// Rows of a block.
pub(crate) const BLOCK_ROWS: usize = 128;
/// Rows of a miniblock.
const MINIBLOCK_ROWS: usize = 32;
/// Miniblocks of a block.
const MINIBLOCKS: usize = BLOCK_ROWS / MINIBLOCK_ROWS;
/// Zero words behind the data.
const TAIL_WORDS: usize = 3;

const DAMAGED: EncodingError = EncodingError::Damaged("starts or widths of blocks contradict the data");

/// A buffer of blocks being written.
#[derive(Default)]
pub(crate) struct BlockWriter {
    starts: Vec<u32>,
    data: Vec<u32>,
}

impl BlockWriter {
    /// Appends a value between blocks.
    pub(crate) fn push_word<W: Word>(&mut self, word: W) {
        let value = word.to_u64();
        self.data.push(value as u32);
        if W::BITS == 64 {
            self.data.push((value >> 32) as u32);
        }
    }

    /// Appends a block of offsets.
    pub(crate) fn push_block<W: Word>(&mut self, reference: W, offsets: &[W; BLOCK_ROWS]) {
        self.starts.push(self.data.len() as u32);
        self.push_word(reference);
        let miniblocks = offsets.as_chunks::<MINIBLOCK_ROWS>().0;
        let widths: [u32; MINIBLOCKS] = std::array::from_fn(|miniblock| {
            miniblocks[miniblock].iter().fold(W::default(), |all, offset| all | *offset).significant()
        });
        self.data.push(u32::from_le_bytes(widths.map(|width| width as u8)));
        for (miniblock, width) in miniblocks.iter().zip(widths) {
            let (mut string, mut bits) = (0u128, 0);
            for offset in miniblock {
                string |= u128::from(offset.to_u64()) << bits;
                bits += width;
                while bits >= 32 {
                    self.data.push(string as u32);
                    string >>= 32;
                    bits -= 32;
                }
            }
        }
    }

    /// Appends the buffer of a segment of `rows` rows of words `W`.
    pub(crate) fn finish<W: Word>(mut self, rows: usize, out: &mut Vec<u8>) {
        self.starts.push(self.data.len() as u32);
        self.data.resize(self.data.len() + TAIL_WORDS, 0);
        let header = [BLOCK_ROWS as u32, MINIBLOCKS as u32, rows as u32, W::BITS];
        [&header[..], &self.starts, &self.data].into_iter().for_each(|words| append(words, out));
    }
}

/// The blocks of a buffer.
pub(crate) struct BlockReader<'a> {
    starts: &'a [u8],
    data: &'a [u8],
}

impl<'a> BlockReader<'a> {
    /// Splits a buffer into starts and data.
    pub(crate) fn new<W: Word>(bytes: &'a [u8], rows: usize) -> Result<BlockReader<'a>> {
        let header = [BLOCK_ROWS as u32, MINIBLOCKS as u32, rows as u32, W::BITS];
        if header.iter().enumerate().any(|(index, expected)| word_at::<u32>(bytes, index) != Some(*expected)) {
            return Err(EncodingError::Damaged("the header of blocks contradicts rows or storage"));
        }
        let blocks = padded(rows) / BLOCK_ROWS;
        let data_at = 16 + 4 * (blocks + 1);
        let starts = bytes.get(16..data_at).ok_or(DAMAGED)?;
        let end = word_at::<u32>(starts, blocks).ok_or(DAMAGED)? as usize;
        if bytes.len() - data_at != 4 * (end + TAIL_WORDS) {
            return Err(DAMAGED);
        }
        Ok(BlockReader { starts, data: &bytes[data_at..] })
    }

    fn word(&self, index: usize) -> Result<u32> {
        word_at(self.data, index).ok_or(DAMAGED)
    }

    fn value<W: Word>(&self, index: usize) -> Result<W> {
        let high = if W::BITS == 64 { self.word(index + 1)? } else { 0 };
        Ok(W::from_u64(u64::from(self.word(index)?) | u64::from(high) << 32))
    }

    fn start(&self, block: usize) -> Result<usize> {
        word_at::<u32>(self.starts, block).map(|start| start as usize).ok_or(DAMAGED)
    }

    /// The value before a block.
    pub(crate) fn before<W: Word>(&self, block: usize) -> Result<W> {
        self.value(self.start(block)?.checked_sub(W::BITS as usize / 32).ok_or(DAMAGED)?)
    }

    /// Values of a block: reference plus offsets.
    pub(crate) fn block<W: Word>(&self, block: usize) -> Result<[W; BLOCK_ROWS]> {
        let head = self.start(block)?;
        let reference: W = self.value(head)?;
        let widths_at = head + W::BITS as usize / 32;
        let mut at = widths_at + 1;
        let mut values = [W::default(); BLOCK_ROWS];
        let widths = self.word(widths_at)?.to_le_bytes();
        for (miniblock, width) in values.as_chunks_mut::<MINIBLOCK_ROWS>().0.iter_mut().zip(widths.map(u32::from)) {
            for (row, value) in miniblock.iter_mut().enumerate() {
                *value = reference.plus(self.offset(at, width, row)?);
            }
            at += width as usize;
        }
        Ok(values)
    }

    /// An offset of the miniblock that begins at word `at`.
    fn offset<W: Word>(&self, at: usize, width: u32, row: usize) -> Result<W> {
        if width > W::BITS {
            return Err(DAMAGED);
        }
        let (first, shift) = (at + row * width as usize / 32, row as u32 * width % 32);
        let words = self.data.get(4 * first..4 * first + 12).ok_or(DAMAGED)?;
        let low = u64::read(&words[..8]) >> shift;
        let high = u64::from(u32::read(&words[8..])) << 1 << (63 - shift);
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        Ok(W::from_u64((low | high) & mask))
    }
}
