//! Plain segments in host memory: the input of encoding and the output of decoding. [`super::plain`] draws them byte by
//! byte.

use arrow::array::Array;
use arrow::buffer::NullBuffer;

use super::word::{Native, is_valid};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{CHUNK_ROWS, Storage, VECTOR_ROWS};

/// Validity words of a vector.
const VECTOR_WORDS: usize = VECTOR_ROWS / 32;

/// Validity words of one vector.
pub(crate) type VectorValidity = [u32; VECTOR_WORDS];

/// Whether a row of a vector is valid; without validity words every row is.
pub(crate) fn is_valid_in(valid: &Option<VectorValidity>, row: usize) -> bool {
    is_valid(valid.as_ref().map(|words| words.as_slice()), row)
}

/// A plain segment in host memory.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a> {
    storage: Storage,
    values: &'a [u8],
    validity: Option<&'a [u32]>,
    rows: usize,
}

/// Rows with padding to whole vectors.
pub(crate) fn padded(rows: usize) -> usize {
    rows.next_multiple_of(VECTOR_ROWS)
}

/// Bits of validity word number `word` that belong to the first `rows` rows.
pub(crate) fn rows_mask(rows: usize, word: usize) -> u32 {
    match rows.saturating_sub(32 * word) {
        0 => 0,
        left @ 1..32 => (1 << left) - 1,
        _ => u32::MAX,
    }
}

impl<'a> Plain<'a> {
    /// A segment of `rows` rows: values padded to whole vectors, and validity words if there are nulls.
    ///
    /// # Errors
    /// [`EncodingError::Shape`] if a length contradicts `rows`, or past [`CHUNK_ROWS`] rows.
    pub fn new(storage: Storage, values: &'a [u8], validity: Option<&'a [u32]>, rows: usize) -> Result<Plain<'a>> {
        check_shape(storage, validity, rows)?;
        let expected = padded(rows) * storage.width();
        if values.len() != expected {
            let detail = format!("{rows} rows of {storage:?} are {expected} bytes, found {}", values.len());
            return Err(EncodingError::Shape(detail));
        }
        Ok(Plain { storage, values, validity, rows })
    }

    /// Machine type of the values.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Values, padded.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Validity words; `None` if every row is valid.
    pub fn validity(&self) -> Option<&'a [u32]> {
        self.validity
    }

    /// Rows without padding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whole vectors, the last one padded.
    pub(crate) fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// Bytes of a vector's values.
    pub(crate) fn vector(&self, vector: usize) -> &'a [u8] {
        let bytes = VECTOR_ROWS * self.storage.width();
        &self.values[vector * bytes..(vector + 1) * bytes]
    }

    /// Validity words of a vector with padding as null; `None` if all 1,024 rows are valid.
    pub(crate) fn vector_validity(&self, vector: usize) -> Option<VectorValidity> {
        let rows = self.rows - vector * VECTOR_ROWS;
        let words = std::array::from_fn(|word| {
            let valid = self.validity.map_or(u32::MAX, |words| words[vector * VECTOR_WORDS + word]);
            valid & rows_mask(rows, word)
        });
        words.iter().any(|word| *word != u32::MAX).then_some(words)
    }

    /// Values of a vector; null slots and padding as they are.
    pub(crate) fn vector_values<T: Native>(&self, vector: usize) -> [T; VECTOR_ROWS] {
        let mut values = [T::default(); VECTOR_ROWS];
        values.iter_mut().zip(self.vector(vector).chunks_exact(T::BYTES)).for_each(|(to, from)| *to = T::read(from));
        values
    }

    /// Values of a vector in which null slots and padding repeat the valid value before them, or the first valid value.
    /// Runs and differences compress them best. Zeros if no row is valid.
    pub(crate) fn filled<T: Native>(&self, vector: usize) -> [T; VECTOR_ROWS] {
        let mut values = self.vector_values::<T>(vector);
        let Some(valid) = self.vector_validity(vector) else { return values };
        let is_valid = |row| is_valid(Some(&valid), row);
        let mut last = (0..VECTOR_ROWS).find(|row| is_valid(*row)).map_or(T::default(), |row| values[row]);
        for (row, value) in values.iter_mut().enumerate() {
            if is_valid(row) {
                last = *value;
            } else {
                *value = last;
            }
        }
        values
    }
}

/// Checks rows and validity words of a segment against each other.
pub(crate) fn check_shape(storage: Storage, validity: Option<&[u32]>, rows: usize) -> Result<()> {
    if rows > CHUNK_ROWS {
        return Err(EncodingError::Shape(format!("{rows} rows of {storage:?} are more than {CHUNK_ROWS}")));
    }
    let expected = padded(rows) / 32;
    match validity {
        Some(words) if words.len() != expected => {
            let detail = format!("{rows} rows have {expected} validity words, found {}", words.len());
            Err(EncodingError::Shape(detail))
        }
        _ => Ok(()),
    }
}

/// Writes zeros to null slots and padding.
pub(crate) fn clear_nulls(values: &mut [u8], width: usize, validity: Option<&[u32]>, rows: usize) {
    values[rows * width..].fill(0);
    let Some(words) = validity else { return };
    for (word, slots) in words.iter().zip(values.chunks_mut(32 * width)) {
        let mut nulls = !word;
        while nulls != 0 {
            let slot = nulls.trailing_zeros() as usize;
            slots[slot * width..(slot + 1) * width].fill(0);
            nulls &= nulls - 1;
        }
    }
}

/// The validity of an array that has nulls.
pub(super) fn nulls_of(array: &dyn Array) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}
