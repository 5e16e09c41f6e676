//! Encodings: plain segments to bytes and back, on the CPU.
//!
//! The head of each encoding's file draws its layout byte by byte; kernels read the same layouts. Validity words of a
//! segment are stored beside its bytes. Invariants: decoding returns every valid row bit for bit, with zeros in null
//! slots and padding; damaged bytes give an error or values, never a panic.

mod alp;
mod bitpack;
mod blocks;
mod build;
mod bytes;
mod codec;
mod coding;
mod delta;
mod dictionary;
mod encoding;
mod file;
mod gpu_dfor;
mod gpu_for;
mod nsf;
mod nsv;
mod packed;
mod patches;
mod plain;
mod profile;
mod rle;
mod serial;
pub(crate) mod strings;
mod values;
mod word;

pub use crate::error::encoding::{EncodingError, Result};
pub use alp::Alp;
pub use bitpack::GROUP_ROWS;
pub(crate) use bitpack::row_of_place;
pub(crate) use build::{SegmentBuilder, StringForm};
pub use bytes::Bytes;
pub use delta::Delta;
pub use dictionary::{DICTIONARY_MAX, Dictionary};
pub use encoding::{Encoding, EncodingChoice};
pub use file::{EncodedChunk, EncodedColumn, EncodedFile, FORMAT_VERSION, FileError, FileWriter, TableIdentity};
pub use nsf::Nsf;
pub use nsv::Nsv;
pub use packed::{OffsetBits, Packed, WIDTHS, ladder};
pub(crate) use packed::{unpack_group, unpack_group_in_slots};
pub(crate) use profile::Sample;
pub use profile::{DistinctSketch, Profile};
pub use values::Plain;

use crate::units::Storage;
use codec::EncodedBytes;
use values::{check_shape, clear_nulls};

/// Encodes a segment.
///
/// # Errors
/// [`EncodingError::NotApplicable`] if the encoding is not for the storage, [`EncodingError::Overflow`] if its
/// parameters cannot hold a value.
pub fn encode(encoding: &Encoding, plain: &Plain<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_into(encoding, plain, &mut bytes)?;
    Ok(bytes)
}

/// Encodes a segment into a buffer that is used again: the system maps and clears fresh memory page by page.
///
/// # Errors
/// As [`encode`]; the buffer then holds no segment.
pub fn encode_into(encoding: &Encoding, plain: &Plain<'_>, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.clear();
    let codec = encoding.codec();
    codec.check(plain.storage())?;
    codec.encode(plain, bytes)
}

/// Decodes the bytes of a segment of `rows` rows to padded plain values, with zeros in null slots and padding.
///
/// # Errors
/// [`EncodingError::Shape`] if the validity words contradict `rows`, [`EncodingError::Damaged`] if the bytes contradict
/// the encoding or themselves.
pub fn decode(
    encoding: &Encoding,
    bytes: &[u8],
    storage: Storage,
    validity: Option<&[u32]>,
    rows: usize,
) -> Result<Vec<u8>> {
    check_shape(storage, validity, rows)?;
    let segment = EncodedBytes { bytes, storage, validity, rows };
    segment.check(encoding.codec())?;
    let mut values = encoding.codec().decode(segment)?;
    clear_nulls(&mut values, storage.width(), validity, rows);
    Ok(values)
}
