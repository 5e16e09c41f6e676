//! Packed: what most columns get. Interleaved vectors of 1,024 rows, one width for the segment, references, patches.
//!
//! The offset of a row is its value minus its reference, modulo 2^32 for storages of up to 4 bytes (values extended to
//! 32 bits by their sign) and 2^64 for those of 8. Null slots and padding hold offset 0. `W` is the width in bits, `V`
//! the vectors, `G = 4 V` the groups of 256 rows, a word 4 or 8 bytes as above; everything is little endian.
//!
//! ```text
//! 0             groups      [G] × 32 * W bytes; within a group:
//!                 planes    W / 16 of 512 bytes, then one each of 256, 128, 64, 32 by the digits of W % 16;
//!                           lane i at i * (plane / 32); bits of a lane's pieces, concatenated: 8 slots of W bits;
//!                           slot k of lane i is row 128 * (k / 4) + 4 * i + k % 4 of the group
//! 128 * W * V   references  [V] × word, the smallest valid value of each vector or 0 if it has none;
//!                           absent if the whole segment has one reference, which the encoding holds
//! then          patches     only if the encoding has them: see `patches.rs`; values are whole offsets,
//!                           the slots of patched rows hold the low W bits of them
//! ```
//!
//! Groups begin at multiples of 32 bytes, references at a multiple of 128, starts of patches at a multiple of 4,
//! offsets of patches at a multiple of 8. Source: our own trial, after SIMD-BP128 and chapter 5 of Shanbhag,
//! "Interactive Data Analytics Using GPUs" (frames of reference).

use super::bitpack::{GROUP_ROWS, get as get_offset, pack_wide, packer, unpack_wide, unpacker};
use super::patches::{PatchReader, PatchWriter, patch_bytes};
use super::plain::{Plain, VectorValidity, padded};
use super::word::{Native, Word, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Widths that packed columns may have, in bits: kernels are compiled for each one.
pub const WIDTHS: [u32; 24] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17, 18, 20, 22, 24, 28, 32, 40, 48, 56, 64];

/// The smallest width of the ladder that holds `bits` bits, at most 64.
pub fn ladder(bits: u32) -> u32 {
    WIDTHS.into_iter().find(|width| *width >= bits).unwrap_or(64)
}

/// Parameters of a packed segment or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packed {
    /// Bits of an offset, one of [`WIDTHS`] and no more than the storage has.
    pub width: u32,
    /// The one reference of all vectors, extended to 64 bits by its sign; `None` where each vector has its own.
    pub reference: Option<u64>,
    /// Whether rows with wider offsets are kept as patches.
    pub patches: bool,
}

/// How many offsets need how many bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetBits {
    counts: [u64; 65],
}

impl OffsetBits {
    /// Counts the offsets of valid rows against the segment's one reference, or against each vector's smallest value.
    pub fn of(plain: &Plain<'_>, reference: Option<u64>) -> OffsetBits {
        let mut counts = OffsetBits::none();
        with_native!(plain.storage(), Value => for vector in 0..plain.vectors() {
            counts.count::<Value>(&plain.vector_values(vector), &plain.vector_validity(vector), reference);
        });
        counts
    }

    /// No offsets.
    pub(crate) fn none() -> OffsetBits {
        OffsetBits { counts: [0; 65] }
    }

    /// Offsets counted elsewhere: those of each width from 0 bits to 64.
    pub(crate) fn from_counts(counts: [u64; 65]) -> OffsetBits {
        OffsetBits { counts }
    }

    /// Counts the offsets of a vector.
    pub(crate) fn count<T: Native>(
        &mut self,
        values: &[T; VECTOR_ROWS],
        valid: &Option<VectorValidity>,
        reference: Option<u64>,
    ) {
        let mut offsets = [T::Word::default(); VECTOR_ROWS];
        offsets_of(values, valid, reference.map(T::Word::from_u64), &mut offsets);
        offsets.iter().for_each(|offset| self.counts[offset.significant() as usize] += 1);
    }

    /// Adds the counts of another segment of the column.
    pub fn add(&mut self, other: &OffsetBits) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
    }

    /// Bits of the widest offset.
    pub fn widest(&self) -> u32 {
        self.counts.iter().rposition(|count| *count > 0).unwrap_or(0) as u32
    }

    /// Offsets that need more than `width` bits.
    pub fn wider_than(&self, width: u32) -> u64 {
        self.counts[width as usize + 1..].iter().sum()
    }

    /// The cheapest packing of a column with these offsets: the narrowest width that holds all of them, or a narrower
    /// one with patches, if they are allowed and take fewer bytes. Values below the reference are patches in any case.
    pub fn fit(&self, storage: Storage, reference: Option<u64>, patches: bool) -> Packed {
        let most = 8 * storage.width() as u32;
        let narrowest = WIDTHS.into_iter().find(|width| *width >= most || self.wider_than(*width) == 0);
        let below = self.wider_than(most) > 0;
        let whole = Packed { width: narrowest.expect("the last holds all"), reference, patches: below };
        let narrower = WIDTHS.into_iter().filter(|width| (patches || below) && *width < whole.width);
        let patched = narrower.map(|width| Packed { width, reference, patches: true });
        patched.chain([whole]).min_by_key(|packed| self.bytes(storage, packed)).expect("one at least")
    }

    /// Bytes of a column with these offsets, packed.
    pub fn bytes(&self, storage: Storage, packed: &Packed) -> u64 {
        let rows: u64 = self.counts.iter().sum();
        let word = word_bytes(storage);
        let references = if packed.reference.is_none() { word as u64 } else { 0 };
        let starts = if packed.patches { 4 * 4 } else { 0 };
        let patches = if packed.patches { self.wider_than(packed.width) * patch_bytes(word) as u64 } else { 0 };
        let vectors = rows.div_ceil(VECTOR_ROWS as u64);
        vectors * (128 * u64::from(packed.width) + references + starts) + patches
    }
}

/// Bytes of a reference or a patch's offset.
pub(crate) fn word_bytes(storage: Storage) -> usize {
    storage.width().max(4)
}

/// Offsets of a vector, 0 for null slots and padding; returns the reference.
fn offsets_of<T: Native>(
    values: &[T; VECTOR_ROWS],
    valid: &Option<VectorValidity>,
    reference: Option<T::Word>,
    offsets: &mut [T::Word; VECTOR_ROWS],
) -> T::Word {
    let Some(valid) = valid else {
        let smallest = || values.iter().copied().fold(T::MAX, T::min).to_word();
        let reference = reference.unwrap_or_else(smallest);
        offsets.iter_mut().zip(values).for_each(|(offset, value)| *offset = value.to_word().minus(reference));
        return reference;
    };
    // By words of 32 rows with a bit of the word for each: compilers make masks of vectors of that.
    let rows = values.as_chunks::<32>().0;
    let smallest = || {
        let mut least = T::MAX;
        for (word, rows) in valid.iter().zip(rows) {
            for (bit, value) in rows.iter().enumerate() {
                least = least.min(if word & (1 << bit) != 0 { *value } else { T::MAX });
            }
        }
        if valid.iter().all(|word| *word == 0) { T::Word::default() } else { least.to_word() }
    };
    let reference = reference.unwrap_or_else(smallest);
    for ((word, rows), offsets) in valid.iter().zip(rows).zip(offsets.as_chunks_mut::<32>().0) {
        for (bit, (offset, value)) in offsets.iter_mut().zip(rows).enumerate() {
            let difference = value.to_word().minus(reference);
            *offset = if word & (1 << bit) != 0 { difference } else { T::Word::default() };
        }
    }
    reference
}

/// Rows that are looked at together for one that is to be a patch.
const ROWS_TOGETHER: usize = 16;

/// A packed segment being written vector after vector.
pub(crate) struct PackedWriter<'a, W> {
    packed: Packed,
    out: &'a mut Vec<u8>,
    /// Where the next vector's groups begin.
    at: usize,
    vector: usize,
    references: Vec<W>,
    patches: PatchWriter<W>,
}

impl<'a, W: Word> PackedWriter<'a, W> {
    /// Appends a segment of `vectors` vectors to a buffer, from a multiple of 16 bytes on.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if the storage has fewer bits.
    pub(crate) fn new(packed: Packed, storage: Storage, vectors: usize, out: &'a mut Vec<u8>) -> Result<Self> {
        packed.check(storage)?;
        let at = out.len();
        out.resize(at + vectors * 128 * packed.width as usize, 0);
        Ok(PackedWriter { packed, out, at, vector: 0, references: Vec::new(), patches: PatchWriter::new() })
    }

    /// Packs the next vector.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first row whose offset is too wide, where there are no patches.
    pub(crate) fn push<T: Native<Word = W>>(
        &mut self,
        values: &[T; VECTOR_ROWS],
        valid: &Option<VectorValidity>,
    ) -> Result<()> {
        let width = self.packed.width;
        let mut offsets = [W::default(); VECTOR_ROWS];
        self.references.push(offsets_of(values, valid, self.packed.reference.map(W::from_u64), &mut offsets));
        for (group, offsets) in offsets.as_chunks::<GROUP_ROWS>().0.iter().enumerate() {
            let wider = self.packed.wider(offsets, &mut self.patches);
            if let Some(row) = wider.filter(|_| !self.packed.patches) {
                let row = self.vector * VECTOR_ROWS + group * GROUP_ROWS + row;
                let reason = format!("its offset needs more than {width} bits");
                return Err(EncodingError::Overflow { encoding: "packed", row, reason });
            }
            let end = self.at + 32 * width as usize;
            pack_group(width, offsets, &mut self.out[self.at..end]);
            self.at = end;
        }
        self.vector += 1;
        Ok(())
    }

    /// Appends what follows the groups.
    pub(crate) fn finish(self) {
        let PackedWriter { packed, out, references, patches, .. } = self;
        if packed.reference.is_none() {
            let at = out.len();
            out.resize(at + references.len() * W::BYTES, 0);
            out[at..].chunks_exact_mut(W::BYTES).zip(&references).for_each(|(bytes, value)| value.write_word(bytes));
        }
        if packed.patches {
            patches.write(out);
        }
    }
}

impl Packed {
    /// Whether width and storage belong together.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if they do not.
    pub(crate) fn check(&self, storage: Storage) -> Result<()> {
        if WIDTHS.contains(&self.width) && self.width <= 8 * storage.width() as u32 {
            return Ok(());
        }
        Err(EncodingError::NotApplicable { encoding: "packed", storage, reason: "its values have fewer bits" })
    }

    /// Appends a segment to an empty buffer.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first row whose offset is too wide, where there are no patches.
    pub(crate) fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => {
            let mut writer = PackedWriter::new(*self, plain.storage(), plain.vectors(), out)?;
            for vector in 0..plain.vectors() {
                writer.push::<Value>(&plain.vector_values(vector), &plain.vector_validity(vector))?;
            }
            writer.finish();
        });
        Ok(())
    }

    /// Makes patches of a group's offsets that are too wide; the first of their rows.
    fn wider<W: Word>(&self, offsets: &[W; GROUP_ROWS], patches: &mut PatchWriter<W>) -> Option<usize> {
        let mut first = None;
        let is_wider = |offset: W| offset.significant() > self.width;
        let has_wider = |offsets: &[W]| is_wider(offsets.iter().fold(W::default(), |all, offset| all | *offset));
        let parts: &[[W; ROWS_TOGETHER]] = if has_wider(offsets) { offsets.as_chunks().0 } else { &[] };
        // Few of them, so several rows are looked at together.
        for (number, together) in parts.iter().enumerate().filter(|(_, together)| has_wider(*together)) {
            for (row, offset) in together.iter().enumerate().filter(|(_, offset)| is_wider(**offset)) {
                let row = number * ROWS_TOGETHER + row;
                first.get_or_insert(row);
                patches.push(row, *offset);
            }
        }
        patches.end_group();
        first
    }

    /// Decodes a segment; null slots and padding hold its references.
    ///
    /// # Errors
    /// [`EncodingError::Damaged`] if the bytes contradict the parameters or themselves.
    pub(crate) fn decode(&self, bytes: &[u8], storage: Storage, rows: usize) -> Result<Vec<u8>> {
        self.check(storage)?;
        with_native!(storage, Value => self.decode_native::<Value>(bytes, rows))
    }

    fn decode_native<T: Native>(&self, bytes: &[u8], rows: usize) -> Result<Vec<u8>> {
        let parts = self.parts::<T::Word>(bytes, rows)?;
        let group_bytes = 32 * self.width as usize;
        let mut values = vec![0; padded(rows) * T::BYTES];
        let mut offsets = [T::Word::default(); GROUP_ROWS];
        for (group, values) in values.chunks_exact_mut(GROUP_ROWS * T::BYTES).enumerate() {
            unpack_group(self.width, &parts.groups[group * group_bytes..(group + 1) * group_bytes], &mut offsets);
            if let Some(patches) = &parts.patches {
                patches.group(group)?.for_each(|(row, offset)| offsets[row] = offset);
            }
            let reference = parts.reference(group / 4);
            for (value, offset) in values.chunks_exact_mut(T::BYTES).zip(&offsets) {
                T::from_word(reference.plus(*offset)).write(value);
            }
        }
        Ok(values)
    }

    /// One value, its bits zero-extended; a null slot has its reference.
    ///
    /// # Errors
    /// As [`Packed::decode`].
    pub(crate) fn get(&self, bytes: &[u8], storage: Storage, rows: usize, row: usize) -> Result<u64> {
        self.check(storage)?;
        with_native!(storage, Value => self.get_native::<Value>(bytes, rows, row))
    }

    fn get_native<T: Native>(&self, bytes: &[u8], rows: usize, row: usize) -> Result<u64> {
        let parts = self.parts::<T::Word>(bytes, rows)?;
        let (group, row_in_group) = (row / GROUP_ROWS, row % GROUP_ROWS);
        let group_bytes = 32 * self.width as usize;
        let planes = &parts.groups[group * group_bytes..(group + 1) * group_bytes];
        let mut offset = T::Word::from_u64(get_offset(self.width, planes, row_in_group));
        if let Some(patches) = &parts.patches {
            offset = patches.group(group)?.find(|(row, _)| *row == row_in_group).map_or(offset, |(_, offset)| offset);
        }
        Ok(T::from_word(parts.reference(row / VECTOR_ROWS).plus(offset)).bits())
    }

    fn parts<'a, W: Word>(&self, bytes: &'a [u8], rows: usize) -> Result<Parts<'a, W>> {
        let vectors = rows.div_ceil(VECTOR_ROWS);
        let references_at = vectors * 128 * self.width as usize;
        let own = if self.reference.is_none() { vectors * W::BYTES } else { 0 };
        let patches_at = references_at + own;
        if bytes.len() < patches_at || !self.patches && bytes.len() != patches_at {
            return Err(EncodingError::Damaged("a packed segment is not as long as its width and rows say"));
        }
        let patches = match self.patches {
            true => Some(PatchReader::read::<W>(bytes, patches_at, 4 * vectors)?),
            false => None,
        };
        let (groups, references) = (&bytes[..references_at], &bytes[references_at..patches_at]);
        Ok(Parts { groups, references, reference: self.reference.map(W::from_u64), patches })
    }
}

/// A packed buffer taken apart.
struct Parts<'a, W> {
    groups: &'a [u8],
    references: &'a [u8],
    reference: Option<W>,
    patches: Option<PatchReader<'a>>,
}

impl<W: Word> Parts<'_, W> {
    fn reference(&self, vector: usize) -> W {
        self.reference.unwrap_or_else(|| word_at(self.references, vector).expect("one a vector"))
    }
}

/// Packs a group of offsets; bits past the width are dropped.
pub(crate) fn pack_group<W: Word>(width: u32, offsets: &[W; GROUP_ROWS], planes: &mut [u8]) {
    match width {
        0..=32 => packer(width)(&offsets.map(|offset| offset.to_u64() as u32), planes),
        _ => pack_wide(width, &offsets.map(Word::to_u64), planes),
    }
}

/// Unpacks a group of offsets.
pub(crate) fn unpack_group<W: Word>(width: u32, planes: &[u8], offsets: &mut [W; GROUP_ROWS]) {
    if width <= 32 {
        let mut narrow = [0; GROUP_ROWS];
        unpacker(width)(planes, &mut narrow);
        *offsets = narrow.map(|offset| W::from_u64(u64::from(offset)));
    } else {
        let mut wide = [0; GROUP_ROWS];
        unpack_wide(width, planes, &mut wide);
        *offsets = wide.map(W::from_u64);
    }
}
