//! Reads a column in host memory a vector at a time.
//!
//! The values of a vector come in the order in which packed ones are unpacked fastest, the same for all columns:
//! [`rows_of_places`] tells the row of each place.

use std::sync::LazyLock;

use crate::device::ResidentColumn;
use crate::error::{ColumnError, Result};
use crate::format::{Encoding, GROUP_ROWS, Packed, row_of_place, unpack_group, unpack_group_in_slots};
use crate::units::{Storage, VECTOR_ROWS};

/// Validity words of a vector.
const VECTOR_WORDS: usize = VECTOR_ROWS / 32;

/// The row in its vector of each place.
pub fn rows_of_places() -> &'static [u16; VECTOR_ROWS] {
    static ROWS: LazyLock<Box<[u16; VECTOR_ROWS]>> = LazyLock::new(|| {
        let row = |place: usize| (place / GROUP_ROWS * GROUP_ROWS + row_of_place(place % GROUP_ROWS)) as u16;
        Box::new(std::array::from_fn(row))
    });
    &ROWS
}

/// Memory for the values of a vector.
#[derive(Debug)]
pub struct VectorBuffer {
    /// Offsets of values to their reference.
    pub offsets: Box<[u32; VECTOR_ROWS]>,
    /// Integers of 64 bits.
    pub integers: Box<[i64; VECTOR_ROWS]>,
    /// Doubles.
    pub floats: Box<[f64; VECTOR_ROWS]>,
}

impl Default for VectorBuffer {
    fn default() -> VectorBuffer {
        VectorBuffer {
            offsets: Box::new([0; VECTOR_ROWS]),
            integers: Box::new([0; VECTOR_ROWS]),
            floats: Box::new([0.0; VECTOR_ROWS]),
        }
    }
}

/// Where a [`VectorBuffer`] holds the values of a vector. Null slots and padding hold any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// The sum of this reference and an offset.
    Offsets(i64),
    /// Integers; those of 64 bits without a sign by their bits.
    Integers,
    /// Floats; those of 32 bits as doubles.
    Floats,
}

/// The segments of a column, where they lie.
#[derive(Debug)]
pub struct ColumnVectors<'a> {
    storage: Storage,
    /// The packing; none of plain segments.
    packed: Option<Packed>,
    chunks: Vec<Chunk<'a>>,
}

#[derive(Debug)]
struct Chunk<'a> {
    bytes: &'a [u8],
    validity: Option<&'a [u32]>,
    vectors: usize,
}

impl<'a> ColumnVectors<'a> {
    /// The vectors of a column on a host.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] for encodings that the host does not read, errors of another device.
    pub fn of(column: &'a ResidentColumn) -> Result<ColumnVectors<'a>> {
        let packed = match column.encoding() {
            Encoding::Plain => None,
            Encoding::Packed(packed) if !packed.patches => Some(*packed),
            encoding => return Err(ColumnError::unsupported(column.name(), format!("its encoding is {encoding}"))),
        };
        let chunks = column.segments().iter().map(|segment| {
            let validity = segment.validity().map(|words| words.host_bytes()).transpose()?;
            let vectors = (segment.rows() as usize).div_ceil(VECTOR_ROWS);
            Ok(Chunk { bytes: segment.values().host_bytes()?, validity: validity.map(bytemuck::cast_slice), vectors })
        });
        Ok(ColumnVectors { storage: column.storage(), packed, chunks: chunks.collect::<Result<_>>()? })
    }

    /// Validity words of a vector, a bit a row; none if the chunk has no NULL.
    pub fn validity(&self, chunk: usize, vector: usize) -> Option<&'a [u32; VECTOR_WORDS]> {
        let words = self.chunks[chunk].validity?;
        words[vector * VECTOR_WORDS..].first_chunk()
    }

    /// Bounds of the values of a vector, null slots included, before it is read: of a packed one.
    pub fn bounds(&self, chunk: usize, vector: usize) -> Option<(i64, i64)> {
        let packed = self.packed.filter(|packed| packed.width < 32)?;
        let low = self.reference(&packed, &self.chunks[chunk], vector);
        Some((low, low.checked_add((1 << packed.width) - 1)?))
    }

    /// Reads the values of a vector.
    pub fn read(&self, chunk: usize, vector: usize, buffer: &mut VectorBuffer) -> Values {
        let chunk = &self.chunks[chunk];
        let Some(packed) = self.packed else {
            return self.read_plain(&chunk.bytes[vector * VECTOR_ROWS * self.storage.width()..], buffer);
        };
        let reference = self.reference(&packed, chunk, vector);
        let group_bytes = 32 * packed.width as usize;
        let groups = &chunk.bytes[4 * vector * group_bytes..];
        if packed.width <= 32 {
            for (group, offsets) in buffer.offsets.as_chunks_mut::<GROUP_ROWS>().0.iter_mut().enumerate() {
                unpack_group_in_slots(packed.width, &groups[group * group_bytes..][..group_bytes], offsets);
            }
            return Values::Offsets(reference);
        }
        let mut offsets = [0u64; GROUP_ROWS];
        for (group, values) in buffer.integers.as_chunks_mut::<GROUP_ROWS>().0.iter_mut().enumerate() {
            unpack_group(packed.width, &groups[group * group_bytes..][..group_bytes], &mut offsets);
            for (value, row) in values.iter_mut().zip(rows_of_places()) {
                *value = reference.wrapping_add(offsets[usize::from(*row) % GROUP_ROWS] as i64);
            }
        }
        Values::Integers
    }

    /// The reference of a vector, extended to 64 bits as the storage has a sign or none.
    fn reference(&self, packed: &Packed, chunk: &Chunk<'_>, vector: usize) -> i64 {
        let bits = packed.reference.unwrap_or_else(|| {
            let at = chunk.vectors * 128 * packed.width as usize + vector * self.storage.word_bytes();
            let word = &chunk.bytes[at..][..self.storage.word_bytes()];
            match word.first_chunk::<8>() {
                Some(word) => u64::from_le_bytes(*word),
                None => u64::from(u32::from_le_bytes(*word.first_chunk().expect("a word has four bytes"))),
            }
        });
        match (self.storage.word_bytes(), self.storage.is_signed()) {
            (4, true) => i64::from(bits as i32),
            (4, false) => i64::from(bits as u32),
            _ => bits as i64,
        }
    }

    fn read_plain(&self, bytes: &[u8], buffer: &mut VectorBuffer) -> Values {
        macro_rules! integers {
            ($native:ty) => {{
                let values = bytes.as_chunks::<{ size_of::<$native>() }>().0;
                let places = buffer.integers.iter_mut().zip(rows_of_places());
                places.for_each(|(value, row)| *value = <$native>::from_le_bytes(values[usize::from(*row)]) as i64);
                Values::Integers
            }};
        }
        macro_rules! floats {
            ($native:ty) => {{
                let values = bytes.as_chunks::<{ size_of::<$native>() }>().0;
                let places = buffer.floats.iter_mut().zip(rows_of_places());
                places.for_each(|(value, row)| *value = <$native>::from_le_bytes(values[usize::from(*row)]).into());
                Values::Floats
            }};
        }
        match self.storage {
            Storage::I8 => integers!(i8),
            Storage::I16 => integers!(i16),
            Storage::I32 => integers!(i32),
            Storage::I64 => integers!(i64),
            Storage::U8 | Storage::Bool => integers!(u8),
            Storage::U16 => integers!(u16),
            Storage::U32 => integers!(u32),
            Storage::U64 => integers!(u64),
            Storage::F32 => floats!(f32),
            Storage::F64 => floats!(f64),
        }
    }
}
