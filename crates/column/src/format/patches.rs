//! Patches: values of rows that the body of an encoding cannot hold, by groups of 256 rows.
//!
//! ```text
//! starts  [groups + 1] × u32   patches of group g are numbers starts[g] to starts[g + 1]; starts[0] is 0
//! rows    [patches] × u16      row in its group, ascending within a group
//! padding                      zeros up to a multiple of 8 from the start of the buffer
//! values  [patches] × word     u32 for storages of up to 4 bytes, u64 for those of 8
//! ```
//!
//! The section begins at a multiple of 4. Source: patched frames of reference (Zukowski et al., "Super-scalar RAM-CPU
//! cache compression"), stored beside the body instead of within it.

use super::bitpack::GROUP_ROWS;
use super::word::{Word, append, word_at};
use crate::error::encoding::{EncodingError, Result};

/// The patches of a segment being encoded, group by group.
#[derive(Debug)]
pub(crate) struct PatchWriter<W> {
    starts: Vec<u32>,
    rows: Vec<u16>,
    values: Vec<W>,
}

impl<W: Word> PatchWriter<W> {
    /// An empty section before its first group.
    pub(crate) fn new() -> PatchWriter<W> {
        PatchWriter { starts: vec![0], rows: Vec::new(), values: Vec::new() }
    }

    /// Adds a patch to the current group.
    pub(crate) fn push(&mut self, row_in_group: usize, value: W) {
        self.rows.push(row_in_group as u16);
        self.values.push(value);
    }

    /// Ends the current group.
    pub(crate) fn end_group(&mut self) {
        self.starts.push(self.rows.len() as u32);
    }

    /// Appends the section to a buffer.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        append(&self.starts, out);
        append(&self.rows, out);
        out.resize(out.len().next_multiple_of(8), 0);
        append(&self.values, out);
    }
}

/// The patches of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PatchReader<'a> {
    starts: &'a [u8],
    rows: &'a [u8],
    values: &'a [u8],
}

impl<'a> PatchReader<'a> {
    /// Reads the section from byte `at` to the end of the buffer.
    pub(crate) fn read<W: Word>(bytes: &'a [u8], at: usize, groups: usize) -> Result<PatchReader<'a>> {
        let damaged = EncodingError::Damaged("the length of patches contradicts their starts");
        let rows_at = at + 4 * (groups + 1);
        let starts = bytes.get(at..rows_at).ok_or(damaged.clone())?;
        let count = word_at::<u32>(starts, groups).expect("the slice has groups + 1 words") as usize;
        if count > groups * GROUP_ROWS {
            return Err(damaged);
        }
        let values_at = (rows_at + 2 * count).next_multiple_of(8);
        if bytes.len() != values_at + count * W::BYTES {
            return Err(damaged);
        }
        Ok(PatchReader { starts, rows: &bytes[rows_at..rows_at + 2 * count], values: &bytes[values_at..] })
    }

    /// Rows in the group and values of a group's patches.
    pub(crate) fn group<W: Word>(&self, group: usize) -> Result<impl Iterator<Item = (usize, W)> + use<'a, W>> {
        let start = |group| word_at::<u32>(self.starts, group).unwrap_or(u32::MAX) as usize;
        let (start, end) = (start(group), start(group + 1));
        let damaged = EncodingError::Damaged("starts or rows of patches are out of range");
        if start > end || end > self.rows.len() / 2 {
            return Err(damaged);
        }
        let rows = self.rows[2 * start..2 * end].as_chunks::<2>().0;
        if rows.iter().any(|row| usize::from(u16::from_le_bytes(*row)) >= GROUP_ROWS) {
            return Err(damaged);
        }
        let values = self.values[W::BYTES * start..W::BYTES * end].chunks_exact(W::BYTES);
        Ok(rows.iter().map(|row| usize::from(u16::from_le_bytes(*row))).zip(values.map(W::read)))
    }
}
