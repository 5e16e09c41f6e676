//! Bytes: strings as they are, with offsets. The encoding of string columns past the dictionary limit.
//!
//! The string of row `i` is the bytes from offset `i` to offset `i + 1` of the text. Null slots and padding are empty.
//! `P` is the number of rows with padding, `T` the number of bytes of all strings.
//!
//! ```text
//! 0            offsets  [P + 4] × u32, from the start of the text; those of padding and the last four are T
//! 4 * (P + 4)  text     [T] bytes in UTF-8
//! then         zeros    32: kernels load whole words, up to two ahead of the one that they compare
//! ```
//!
//! The text begins at a multiple of 16. A segment has less than 4 GiB of text. There are no plain values: arrays of
//! strings become segments at once.

use arrow::array::{Array, ArrayRef, AsArray, GenericStringArray, OffsetSizeTrait};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::codec::{Codec, EncodedBytes};
use super::values::{Plain, nulls_of, padded};
use crate::error::encoding::EncodingError;
use crate::error::{ColumnError, Result};
use crate::units::Storage;

/// Offsets behind those of the rows.
const OFFSETS_AFTER: usize = 4;
/// Zeros behind the text.
const TEXT_PADDING: usize = 32;

/// Strings as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    /// The limit that the distinct strings of the column exceed: with a higher one it may have a dictionary.
    pub limit: u64,
}

/// Bytes before the text of a segment of `rows` rows.
fn head_bytes(rows: usize) -> usize {
    size_of::<u32>() * (padded(rows) + OFFSETS_AFTER)
}

impl Bytes {
    /// The error of values that are to become bytes.
    pub(crate) fn not_for_values(self) -> EncodingError {
        let reason = "bytes are made of strings, not of values";
        EncodingError::NotApplicable { encoding: "bytes", storage: Storage::U32, reason }
    }
}

impl Codec for Bytes {
    fn check(&self, storage: Storage) -> Result<(), EncodingError> {
        if storage == Storage::U32 { Ok(()) } else { Err(self.not_for_values()) }
    }

    fn takes(&self, bytes: usize, _storage: Storage, rows: usize) -> bool {
        bytes >= head_bytes(rows) + TEXT_PADDING
    }

    fn encode(&self, _plain: &Plain<'_>, _out: &mut Vec<u8>) -> Result<(), EncodingError> {
        Err(self.not_for_values())
    }

    fn decode(&self, _segment: EncodedBytes<'_>) -> Result<Vec<u8>, EncodingError> {
        Err(self.not_for_values())
    }
}

/// The strings of a segment.
#[derive(Debug, Default)]
pub(crate) struct TextBuilder {
    /// The end of each string.
    ends: Vec<u32>,
    text: Vec<u8>,
}

impl TextBuilder {
    /// Appends the strings of an array.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] if the segment has 4 GiB of text.
    pub(crate) fn append(&mut self, column: &str, array: &ArrayRef) -> Result<()> {
        match array.data_type() {
            DataType::Utf8 => self.texts(column, array.as_string::<i32>()),
            DataType::LargeUtf8 => self.texts(column, array.as_string::<i64>()),
            _ => {
                let plain = cast(array, &DataType::LargeUtf8);
                let plain = plain.map_err(|error| ColumnError::source(format!("column '{column}': {error}")))?;
                self.texts(column, plain.as_string::<i64>())
            }
        }
    }

    fn texts<O: OffsetSizeTrait>(&mut self, column: &str, array: &GenericStringArray<O>) -> Result<()> {
        let offsets = array.value_offsets();
        let (first, last) = (offsets[0].as_usize(), offsets[array.len()].as_usize());
        if u32::try_from(self.text.len() + last - first).is_err() {
            return Err(ColumnError::unsupported(column, "the strings of a chunk take 4 GiB or more"));
        }
        match nulls_of(array) {
            None => {
                let base = self.text.len();
                self.text.extend_from_slice(&array.value_data()[first..last]);
                self.ends.extend(offsets[1..].iter().map(|end| (base + end.as_usize() - first) as u32));
            }
            Some(_) => {
                for text in array.iter() {
                    self.text.extend_from_slice(text.unwrap_or_default().as_bytes());
                    self.ends.push(self.text.len() as u32);
                }
            }
        }
        Ok(())
    }

    /// Writes the segment of the strings into an empty buffer; the next `append` begins another.
    pub(crate) fn finish(&mut self, values: &mut Vec<u8>) {
        let head = head_bytes(self.ends.len());
        values.reserve(head + self.text.len() + TEXT_PADDING);
        values.extend_from_slice(&0u32.to_le_bytes());
        values.extend_from_slice(bytemuck::cast_slice(&self.ends));
        let total = (self.text.len() as u32).to_le_bytes();
        while values.len() < head {
            values.extend_from_slice(&total);
        }
        values.extend_from_slice(&self.text);
        values.resize(values.len() + TEXT_PADDING, 0);
        self.ends.clear();
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, LargeStringArray, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn arrays_of_every_type_become_one_segment() {
        let texts = [Some("ab"), None, Some(""), Some("äöü")];
        let arrays: [ArrayRef; 4] = [
            Arc::new(StringArray::from_iter(texts)),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
            Arc::new(DictionaryArray::<Int32Type>::from_iter(texts)),
        ];
        let mut builder = TextBuilder::default();
        for array in &arrays {
            builder.append("c", &array.slice(1, 3)).unwrap();
        }
        let mut values = Vec::new();
        builder.finish(&mut values);
        let head = head_bytes(12);
        assert_eq!(values.len(), head + 24 + TEXT_PADDING);
        assert_eq!(&values[head..head + 24], "äöüäöüäöüäöü".as_bytes());
        let offset = |row: usize| u32::from_le_bytes(values[4 * row..][..4].try_into().unwrap());
        assert_eq!([0, 1, 2, 3, 11, 12, 13, 1027].map(offset), [0, 0, 0, 6, 18, 24, 24, 24]);
        let bytes = Bytes { limit: 1 };
        assert!(bytes.takes(values.len(), Storage::U32, 12) && !bytes.takes(head, Storage::U32, 12));
        assert!(bytes.check(Storage::U32).is_ok() && bytes.check(Storage::I32).is_err());
        // The builder begins again.
        values.clear();
        builder.append("c", &arrays[0]).unwrap();
        builder.finish(&mut values);
        assert_eq!(&values[head..][..8], "abäöü".as_bytes());
    }
}
