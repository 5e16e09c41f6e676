//! Delta: differences to the row before, packed like offsets of packed columns.
//!
//! The row before the first one of a group of 256 is taken to be as far off as the group's least difference, so that a
//! group stands alone: it is read with two sums over a warp and no look at other groups. All differences are modulo
//! 2^32 or 2^64, the least one is that of signed numbers; `W` is the width in bits, one for the column.
//!
//! ```text
//! 0             groups  [4 V] × 32 * W bytes: differences less the least one of their group, as groups of packed
//!                       segments hold offsets; that of a group's first row is 0
//! 128 * W * V   heads   [4 V] × 2 words: the group's first value, its least difference
//! ```
//!
//! ```text
//! value of row r of a group  =  first value + r * least difference + sum of the offsets of rows 0 to r
//! ```
//!
//! Null slots and padding repeat the value before them. Words are those of packed segments, 4 or 8 bytes. Source: ours,
//! after section 5.4 of Shanbhag, "Interactive Data Analytics Using GPUs" (GPU-DFOR), with the groups of packed
//! segments in the place of blocks: a constant width and whole loads make up for the bits that miniblocks save.

use super::bitpack::{GROUP_ROWS, get as get_offset};
use super::error::{EncodingError, Result};
use super::packed::{ladder, pack_group, unpack_group, word_bytes};
use super::plain::{Plain, padded};
use super::word::{Native, Word, signed, with_native, word_at};
use crate::build::VECTOR_ROWS;
use crate::encoding::WIDTHS;
use crate::storage::Storage;

/// Parameters of a delta segment or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delta {
    /// Bits of an offset, one of [`WIDTHS`] and no more than a word of the storage has.
    pub width: u32,
}

/// A group before it is packed.
struct Group<W> {
    first: W,
    least: W,
    offsets: [W; GROUP_ROWS],
}

impl<W: Word> Group<W> {
    fn of<T: Native<Word = W>>(values: &[T; GROUP_ROWS]) -> Group<W> {
        let first = values[0].to_word();
        let mut last = first;
        let mut offsets = values.map(|value| {
            let difference = value.to_word().minus(last);
            last = value.to_word();
            difference
        });
        let least = offsets[1..].iter().copied().min_by_key(|difference| signed(*difference));
        let least = least.expect("255 of them");
        offsets[0] = least;
        Group { first, least, offsets: offsets.map(|difference| difference.minus(least)) }
    }

    fn significant(&self) -> u32 {
        self.offsets.iter().fold(W::default(), |all, offset| all | *offset).significant()
    }
}

impl Delta {
    /// The narrowest width that holds a segment; `None` for floats.
    pub fn fit(plain: &Plain<'_>) -> Option<Delta> {
        if plain.storage().is_float() {
            return None;
        }
        let bits = with_native!(plain.storage(), Value => {
            let groups = |vector| plain.filled::<Value>(vector).as_chunks::<GROUP_ROWS>().0.to_vec();
            (0..plain.vectors()).flat_map(groups).map(|group| Group::of(&group).significant()).max()
        });
        Some(Delta { width: ladder(bits.unwrap_or(0)) })
    }

    /// Whether width and storage belong together.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if they do not.
    pub(crate) fn check(&self, storage: Storage) -> Result<()> {
        let reason = match storage.is_float() {
            true => "floats have no differences",
            false if WIDTHS.contains(&self.width) && self.width <= 8 * word_bytes(storage) as u32 => return Ok(()),
            false => "its words have fewer bits",
        };
        Err(EncodingError::NotApplicable { encoding: "delta", storage, reason })
    }

    /// Bytes of a segment.
    pub(crate) fn bytes(&self, storage: Storage, vectors: usize) -> usize {
        vectors * (VECTOR_ROWS / 8 * self.width as usize + VECTOR_ROWS / GROUP_ROWS * 2 * word_bytes(storage))
    }

    /// Appends a segment to an empty buffer.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first row whose offset is too wide.
    pub(crate) fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.check(plain.storage())?;
        out.resize(self.bytes(plain.storage(), plain.vectors()), 0);
        with_native!(plain.storage(), Value => self.encode_native::<Value>(plain, out))
    }

    fn encode_native<T: Native>(&self, plain: &Plain<'_>, out: &mut [u8]) -> Result<()> {
        let (groups, heads) = out.split_at_mut(plain.vectors() * VECTOR_ROWS / 8 * self.width as usize);
        let mut heads = heads.chunks_exact_mut(T::Word::BYTES);
        for vector in 0..plain.vectors() {
            for (number, values) in plain.filled::<T>(vector).as_chunks::<GROUP_ROWS>().0.iter().enumerate() {
                let group = Group::of(values);
                if group.significant() > self.width {
                    let wide = group.offsets.iter().position(|offset| offset.significant() > self.width);
                    let row = vector * VECTOR_ROWS + number * GROUP_ROWS + wide.unwrap_or(0);
                    let reason = format!("its difference needs more than {} bits", self.width);
                    return Err(EncodingError::Overflow { encoding: "delta", row, reason });
                }
                let at = (vector * VECTOR_ROWS / GROUP_ROWS + number) * 32 * self.width as usize;
                pack_group(self.width, &group.offsets, &mut groups[at..at + 32 * self.width as usize]);
                for word in [group.first, group.least] {
                    word.write_word(heads.next().expect("two a group"));
                }
            }
        }
        Ok(())
    }

    /// Decodes a segment.
    ///
    /// # Errors
    /// [`EncodingError::Damaged`] if there are not as many bytes as there should be.
    pub(crate) fn decode(&self, bytes: &[u8], storage: Storage, rows: usize) -> Result<Vec<u8>> {
        self.check_bytes(bytes, storage, rows)?;
        Ok(with_native!(storage, Value => self.decode_native::<Value>(bytes, rows)))
    }

    fn decode_native<T: Native>(&self, bytes: &[u8], rows: usize) -> Vec<u8> {
        let mut values = vec![0; padded(rows) * T::BYTES];
        let mut offsets = [T::Word::default(); GROUP_ROWS];
        for (number, values) in values.chunks_exact_mut(GROUP_ROWS * T::BYTES).enumerate() {
            let (group, first, least) = self.group::<T::Word>(bytes, rows, number);
            unpack_group(self.width, group, &mut offsets);
            let mut last = first.minus(least);
            for (value, offset) in values.chunks_exact_mut(T::BYTES).zip(&offsets) {
                last = last.plus(least).plus(*offset);
                T::from_word(last).write(value);
            }
        }
        values
    }

    /// One value, its bits zero-extended: the offsets of its group up to it are summed.
    ///
    /// # Errors
    /// As [`Delta::decode`].
    pub(crate) fn get(&self, bytes: &[u8], storage: Storage, rows: usize, row: usize) -> Result<u64> {
        self.check_bytes(bytes, storage, rows)?;
        Ok(with_native!(storage, Value => {
            let (group, first, least) = self.group::<<Value as Native>::Word>(bytes, rows, row / GROUP_ROWS);
            let offset = |row| <<Value as Native>::Word as Word>::from_u64(get_offset(self.width, group, row));
            let differences = (1..=row % GROUP_ROWS).map(|row| offset(row).plus(least));
            Value::from_word(differences.fold(first.plus(offset(0)), Word::plus)).bits()
        }))
    }

    /// A group's planes, first value and least difference.
    fn group<'a, W: Word>(&self, bytes: &'a [u8], rows: usize, number: usize) -> (&'a [u8], W, W) {
        let group_bytes = 32 * self.width as usize;
        let (groups, heads) = bytes.split_at(padded(rows) / GROUP_ROWS * group_bytes);
        let head = |at| word_at(heads, 2 * number + at).expect("the length was checked");
        (&groups[number * group_bytes..(number + 1) * group_bytes], head(0), head(1))
    }

    fn check_bytes(&self, bytes: &[u8], storage: Storage, rows: usize) -> Result<()> {
        self.check(storage)?;
        if bytes.len() != self.bytes(storage, rows.div_ceil(VECTOR_ROWS)) {
            return Err(EncodingError::Damaged("a delta segment is not as long as its width and rows say"));
        }
        Ok(())
    }
}
