//! Packed: offsets to references in a fixed number of bits, with patches for wider offsets. The default of integers.
//!
//! The offset of a row is its value minus its reference, modulo 2^32 for storages of up to 4 bytes (values are
//! sign-extended to 32 bits) and modulo 2^64 for storages of 8 bytes. Null slots and padding have offset 0. `W` is the
//! width in bits, `V` the number of vectors, `G = 4 V` the number of groups of 256 rows; a word has 4 or 8 bytes.
//!
//! ```text
//! 0             groups      [G] × 32 * W bytes; within a group:
//!                 planes    W / 16 of 512 bytes, then one each of 256, 128, 64, 32 by the digits of W % 16;
//!                           lane i at i * (plane / 32); bits of a lane's pieces, concatenated: 8 slots of W bits;
//!                           slot k of lane i is row 128 * (k / 4) + 4 * i + k % 4 of the group
//! 128 * W * V   references  [V] × word, the smallest valid value of each vector or 0 if it has none;
//!                           absent if the encoding holds one reference for all vectors
//! then          patches     only if the encoding has them: see `patches.rs`; values are whole offsets,
//!                           slots of patched rows hold the low W bits
//! ```
//!
//! Groups begin at multiples of 32 bytes, references at a multiple of 128, starts of patches at a multiple of 4,
//! offsets of patches at a multiple of 8. Source: ours, after SIMD-BP128 (Lemire and Boytsov, "Decoding billions of
//! integers per second through vectorization") and chapter 5 of Shanbhag, "Interactive Data Analytics Using GPUs".

use super::bitpack::{GROUP_ROWS, pack_wide, packer, unpack, unpack_in_slots, unpack_wide};
use super::codec::{Codec, EncodedBytes};
use super::patches::{PatchReader, PatchWriter};
use super::values::{Plain, VectorValidity};
use super::word::{Native, Word, append, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// The ladder: widths of packed columns in bits. Kernels are compiled for each width.
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
    /// The reference of all vectors, sign-extended to 64 bits; `None` if each vector has its own.
    pub reference: Option<u64>,
    /// True if wider offsets are patches.
    pub patches: bool,
}

/// Numbers of offsets by their significant bits, 0 to 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetBits(pub(crate) [u64; 65]);

impl OffsetBits {
    /// Counts the offsets of valid rows to one reference, or to the smallest value of each vector.
    pub fn of(plain: &Plain<'_>, reference: Option<u64>) -> OffsetBits {
        let mut counts = OffsetBits::none();
        with_native!(plain.storage(), Value => for vector in 0..plain.vectors() {
            counts.count::<Value>(&plain.vector_values(vector), &plain.vector_validity(vector), reference);
        });
        counts
    }

    /// Counts of no offsets.
    pub(crate) fn none() -> OffsetBits {
        OffsetBits([0; 65])
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
        offsets.iter().for_each(|offset| self.0[offset.significant() as usize] += 1);
    }

    /// Adds the counts of another segment of the column.
    pub fn add(&mut self, other: &OffsetBits) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Significant bits of the widest offset.
    pub fn widest(&self) -> u32 {
        self.0.iter().rposition(|count| *count > 0).unwrap_or(0) as u32
    }

    /// Number of offsets of more than `width` bits.
    pub fn wider_than(&self, width: u32) -> u64 {
        self.0[width as usize + 1..].iter().sum()
    }

    /// The smallest packing of a column with these offsets. Patches compete if `patches` is set; values below the
    /// reference are patches in any case.
    pub fn fit(&self, storage: Storage, reference: Option<u64>, patches: bool) -> Packed {
        let most = 8 * storage.width() as u32;
        let narrowest = WIDTHS.into_iter().find(|width| *width >= most || self.wider_than(*width) == 0);
        let below = self.wider_than(most) > 0;
        let whole = Packed { width: narrowest.expect("the last width holds all offsets"), reference, patches: below };
        let narrower = WIDTHS.into_iter().filter(|width| (patches || below) && *width < whole.width);
        let patched = narrower.map(|width| Packed { width, reference, patches: true });
        patched.chain([whole]).min_by_key(|packed| self.bytes(storage, packed)).expect("`whole` is one")
    }

    /// Bytes of a packed column with these offsets.
    pub fn bytes(&self, storage: Storage, packed: &Packed) -> u64 {
        let rows: u64 = self.0.iter().sum();
        let vectors = rows.div_ceil(VECTOR_ROWS as u64);
        let body = packed.body_bytes(storage, vectors as usize) as u64;
        // A patch is a row of two bytes and an offset; a vector has four starts.
        let patch = 2 + storage.word_bytes() as u64;
        let patches = if packed.patches { vectors * 16 + self.wider_than(packed.width) * patch } else { 0 };
        body + patches
    }
}

/// Computes the offsets of a vector, 0 for null slots and padding; returns the reference.
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
    // Loops over the 32 bits of a word compile to vector masks.
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

/// Rows that one test for wide offsets covers: patches are rare.
const TESTED_ROWS: usize = 16;

/// Writes a packed segment vector by vector.
pub(crate) struct PackedWriter<'a, W> {
    packed: Packed,
    out: &'a mut Vec<u8>,
    /// First byte of the next group.
    at: usize,
    vector: usize,
    references: Vec<W>,
    patches: PatchWriter<W>,
}

impl<'a, W: Word> PackedWriter<'a, W> {
    /// Appends a segment of `vectors` vectors to a buffer whose length is a multiple of 16.
    pub(crate) fn new(packed: Packed, vectors: usize, out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        out.resize(at + vectors * 128 * packed.width as usize, 0);
        PackedWriter { packed, out, at, vector: 0, references: Vec::new(), patches: PatchWriter::new() }
    }

    /// Packs the next vector.
    ///
    /// # Errors
    /// Without patches, [`EncodingError::Overflow`] names the first row whose offset is too wide.
    pub(crate) fn push<T: Native<Word = W>>(
        &mut self,
        values: &[T; VECTOR_ROWS],
        valid: &Option<VectorValidity>,
    ) -> Result<()> {
        let width = self.packed.width;
        let mut offsets = [W::default(); VECTOR_ROWS];
        self.references.push(offsets_of(values, valid, self.packed.reference.map(W::from_u64), &mut offsets));
        for (group, offsets) in offsets.as_chunks::<GROUP_ROWS>().0.iter().enumerate() {
            let wider = self.packed.patch_wide(offsets, &mut self.patches);
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

    /// Appends references and patches.
    pub(crate) fn finish(self) {
        if self.packed.reference.is_none() {
            append(&self.references, self.out);
        }
        if self.packed.patches {
            self.patches.write(self.out);
        }
    }
}

impl Packed {
    /// Adds the wide offsets of a group to the patches; returns the first row of them.
    fn patch_wide<W: Word>(&self, offsets: &[W; GROUP_ROWS], patches: &mut PatchWriter<W>) -> Option<usize> {
        let mut first = None;
        let is_wider = |offset: W| offset.significant() > self.width;
        let has_wider = |offsets: &[W]| is_wider(offsets.iter().fold(W::default(), |all, offset| all | *offset));
        let parts: &[[W; TESTED_ROWS]] = if has_wider(offsets) { offsets.as_chunks().0 } else { &[] };
        for (number, part) in parts.iter().enumerate().filter(|(_, part)| has_wider(*part)) {
            for (row, offset) in part.iter().enumerate().filter(|(_, offset)| is_wider(**offset)) {
                let row = number * TESTED_ROWS + row;
                first.get_or_insert(row);
                patches.push(row, *offset);
            }
        }
        patches.end_group();
        first
    }

    fn decode_native<T: Native>(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        let parts = self.parts::<T::Word>(segment)?;
        let group_bytes = 32 * self.width as usize;
        let mut values = vec![0; segment.padded() * T::BYTES];
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

    /// Splits a buffer whose length was checked.
    fn parts<'a, W: Word>(&self, segment: EncodedBytes<'a>) -> Result<Parts<'a, W>> {
        let (bytes, vectors) = (segment.bytes, segment.vectors());
        let (groups, _) = bytes.split_at(vectors * 128 * self.width as usize);
        let patches_at = self.body_bytes(segment.storage, vectors);
        let references = &bytes[groups.len()..patches_at];
        let patches = self.patches.then(|| PatchReader::read::<W>(bytes, patches_at, 4 * vectors)).transpose()?;
        Ok(Parts { groups, references, reference: self.reference.map(W::from_u64), patches })
    }

    /// Bytes of a segment up to its patches.
    fn body_bytes(&self, storage: Storage, vectors: usize) -> usize {
        let reference = if self.reference.is_none() { storage.word_bytes() } else { 0 };
        vectors * (VECTOR_ROWS / 8 * self.width as usize + reference)
    }
}

impl Codec for Packed {
    fn check(&self, storage: Storage) -> Result<()> {
        if WIDTHS.contains(&self.width) && self.width <= 8 * storage.width() as u32 {
            return Ok(());
        }
        let reason = "its width is not on the ladder or more than the bits of a value";
        Err(EncodingError::NotApplicable { encoding: "packed", storage, reason })
    }

    fn takes(&self, bytes: usize, storage: Storage, rows: usize) -> bool {
        let body = self.body_bytes(storage, rows.div_ceil(VECTOR_ROWS));
        bytes == body || self.patches && bytes > body
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => {
            let mut writer = PackedWriter::new(*self, plain.vectors(), out);
            for vector in 0..plain.vectors() {
                writer.push::<Value>(&plain.vector_values(vector), &plain.vector_validity(vector))?;
            }
            writer.finish();
        });
        Ok(())
    }

    /// Null slots and padding hold the reference of their vector.
    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        with_native!(segment.storage, Value => self.decode_native::<Value>(segment))
    }
}

/// The parts of a packed buffer.
struct Parts<'a, W> {
    groups: &'a [u8],
    references: &'a [u8],
    reference: Option<W>,
    patches: Option<PatchReader<'a>>,
}

impl<W: Word> Parts<'_, W> {
    fn reference(&self, vector: usize) -> W {
        self.reference.unwrap_or_else(|| word_at(self.references, vector).expect("each vector has a reference"))
    }
}

/// Packs a group of offsets; bits past the width are dropped.
pub(crate) fn pack_group<W: Word>(width: u32, offsets: &[W; GROUP_ROWS], planes: &mut [u8]) {
    match width {
        0..=32 => packer(width)(&offsets.map(|offset| offset.to_u64() as u32), planes),
        _ => pack_wide(width, &offsets.map(Word::to_u64), planes),
    }
}

/// Unpacks a group of offsets of at most 32 bits slot by slot: place `i` holds row [`super::row_of_place`]`(i)`.
pub(crate) fn unpack_group_in_slots(width: u32, planes: &[u8], offsets: &mut [u32; GROUP_ROWS]) {
    unpack_in_slots(width, planes, offsets);
}

/// Unpacks a group of offsets.
pub(crate) fn unpack_group<W: Word>(width: u32, planes: &[u8], offsets: &mut [W; GROUP_ROWS]) {
    if width <= 32 {
        let mut narrow = [0; GROUP_ROWS];
        unpack(width, planes, &mut narrow);
        *offsets = narrow.map(|offset| W::from_u64(u64::from(offset)));
    } else {
        let mut wide = [0; GROUP_ROWS];
        unpack_wide(width, planes, &mut wide);
        *offsets = wide.map(W::from_u64);
    }
}
