//! Encodings: plain segments to bytes and back, on the CPU.
//!
//! Each encoding has a file whose head draws its layout byte by byte. A segment's validity words stay beside its bytes,
//! as with plain segments. Invariants: decoding gives every valid row back bit for bit, with zeros in null slots and
//! padding; bytes that were damaged give an error or values, never a panic. Kernels decode the same layouts.

mod bitpack;
mod error;
mod packed;
mod patches;
mod plain;
mod word;

pub use bitpack::GROUP_ROWS;
pub use error::{EncodingError, Result};
pub use packed::{OffsetBits, Packed, WIDTHS, ladder};
pub use plain::Plain;

use crate::storage::Storage;
use plain::{check_shape, clear_nulls};
use word::is_valid;

/// How the bytes of a segment hold its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// The values themselves.
    Plain,
    /// Packed offsets to references.
    Packed(Packed),
}

impl Encoding {
    /// The encoding's name.
    pub fn name(&self) -> &'static str {
        match self {
            Encoding::Plain => "plain",
            Encoding::Packed(_) => "packed",
        }
    }
}

/// Encodes a segment.
///
/// # Errors
/// [`EncodingError::NotApplicable`] if the encoding does not exist for the storage, [`EncodingError::Overflow`] if its
/// parameters cannot hold a value.
pub fn encode(encoding: &Encoding, plain: &Plain<'_>) -> Result<Vec<u8>> {
    match encoding {
        Encoding::Plain => {
            let mut values = plain.values().to_vec();
            clear_nulls(&mut values, plain.storage().width(), plain.validity(), plain.rows());
            Ok(values)
        }
        Encoding::Packed(packed) => packed.encode(plain),
    }
}

/// Decodes the bytes of a segment of `rows` rows to padded plain values, with zeros in null slots and padding.
///
/// # Errors
/// [`EncodingError::Shape`] if rows and validity do not belong together, [`EncodingError::Damaged`] if the bytes
/// contradict the encoding or themselves.
pub fn decode(
    encoding: &Encoding,
    bytes: &[u8],
    storage: Storage,
    validity: Option<&[u32]>,
    rows: usize,
) -> Result<Vec<u8>> {
    check_shape(storage, validity, rows)?;
    let mut values = match encoding {
        Encoding::Plain => Plain::new(storage, bytes, validity, rows)?.values().to_vec(),
        Encoding::Packed(packed) => packed.decode(bytes, storage, rows)?,
    };
    clear_nulls(&mut values, storage.width(), validity, rows);
    Ok(values)
}

/// One value, its bits zero-extended to 64; `None` if the row is null.
///
/// # Errors
/// As [`decode`]; a row past the segment's is [`EncodingError::Shape`].
pub fn get(
    encoding: &Encoding,
    bytes: &[u8],
    storage: Storage,
    validity: Option<&[u32]>,
    rows: usize,
    row: usize,
) -> Result<Option<u64>> {
    check_shape(storage, validity, rows)?;
    if row >= rows {
        return Err(EncodingError::Shape(format!("row {row} of {rows}")));
    }
    if !is_valid(validity, row) {
        return Ok(None);
    }
    let bits = match encoding {
        Encoding::Plain => Plain::new(storage, bytes, validity, rows)?.bits(row),
        Encoding::Packed(packed) => packed.get(bytes, storage, rows, row)?,
    };
    Ok(Some(bits))
}
