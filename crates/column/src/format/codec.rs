//! The interface of encodings.

use super::values::{Plain, padded};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// The bytes of an encoded segment, with the shape of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodedBytes<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) storage: Storage,
    pub(crate) validity: Option<&'a [u32]>,
    pub(crate) rows: usize,
}

impl EncodedBytes<'_> {
    /// Rows with padding.
    pub(crate) fn padded(&self) -> usize {
        padded(self.rows)
    }

    /// Whole vectors, the last one padded.
    pub(crate) fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// Checks the storage and the length of the bytes.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] for the storage, [`EncodingError::Damaged`] for the length.
    pub(crate) fn check(&self, codec: &dyn Codec) -> Result<()> {
        codec.check(self.storage)?;
        match codec.takes(self.bytes.len(), self.storage, self.rows) {
            true => Ok(()),
            false => Err(EncodingError::Damaged("the length of the segment contradicts its encoding and rows")),
        }
    }
}

/// An encoding with the parameters of a column.
pub(crate) trait Codec {
    /// Checks the parameters against the storage of a column.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if columns of this storage cannot have them.
    fn check(&self, _storage: Storage) -> Result<()> {
        Ok(())
    }

    /// True if a segment of `rows` rows can take this many bytes. [`Codec::decode`] relies on it.
    fn takes(&self, _bytes: usize, _storage: Storage, _rows: usize) -> bool {
        true
    }

    /// Appends a segment to an empty buffer.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first row that the parameters cannot hold.
    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()>;

    /// Decodes a segment to padded values; null slots and padding hold any value.
    ///
    /// # Errors
    /// [`EncodingError::Damaged`] if the bytes contradict the parameters or themselves.
    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>>;
}
