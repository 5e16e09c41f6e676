//! Encodings: plain segments to bytes and back, on the CPU.
//!
//! Each encoding has a file whose head draws its layout byte by byte. A segment's validity words stay beside its bytes,
//! as with plain segments. Invariants: decoding gives every valid row back bit for bit, with zeros in null slots and
//! padding; bytes that were damaged give an error or values, never a panic. Kernels decode the same layouts.

mod alp;
mod bitpack;
mod blocks;
mod build;
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
mod word;

pub use crate::error::encoding::{EncodingError, Result};
pub use alp::Alp;
pub use bitpack::GROUP_ROWS;
pub(crate) use build::SegmentBuilder;
pub use delta::Delta;
pub use dictionary::{DICTIONARY_MAX, Dictionary};
pub use encoding::{Encoding, EncodingChoice};
pub use file::{EncodedChunk, EncodedColumn, EncodedFile, FORMAT_VERSION, FileError, FileWriter, TableIdentity};
pub use nsf::Nsf;
pub use nsv::Nsv;
pub use packed::{OffsetBits, Packed, WIDTHS, ladder};
pub use plain::Plain;
pub use profile::{DistinctSketch, Profile, Sample};

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::units::Storage;
use plain::{check_shape, clear_nulls};
use word::is_valid;

/// Encodes a segment.
///
/// # Errors
/// [`EncodingError::NotApplicable`] if the encoding does not exist for the storage, [`EncodingError::Overflow`] if its
/// parameters cannot hold a value.
pub fn encode(encoding: &Encoding, plain: &Plain<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_into(encoding, plain, &mut bytes)?;
    Ok(bytes)
}

/// Encodes a segment into memory that is there already: fresh memory has to be mapped and cleared page by page.
///
/// # Errors
/// As [`encode`]; what is in `bytes` then has no meaning.
pub fn encode_into(encoding: &Encoding, plain: &Plain<'_>, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.clear();
    match encoding {
        Encoding::Plain => {
            bytes.extend_from_slice(plain.values());
            clear_nulls(bytes, plain.storage().width(), plain.validity(), plain.rows());
        }
        Encoding::Packed(packed) => packed.encode(plain, bytes)?,
        Encoding::Nsf(nsf) => nsf.encode(plain, bytes)?,
        Encoding::Nsv(nsv) => nsv.encode(plain, bytes)?,
        Encoding::Rle => rle::encode(plain, bytes),
        Encoding::GpuFor => gpu_for::encode(plain, bytes),
        Encoding::GpuDfor => gpu_dfor::encode(plain, bytes),
        Encoding::Delta(delta) => delta.encode(plain, bytes)?,
        Encoding::Dictionary(dictionary) => dictionary.encode(plain, bytes)?,
        Encoding::Alp(alp) => alp.encode(plain, bytes)?,
    }
    Ok(())
}

/// Encodes segments side by side, on up to that many threads, each to the bytes that [`encode`] makes of it.
///
/// # Errors
/// As [`encode`], that of the first segment which has one.
pub fn encode_all(encoding: &Encoding, segments: &[Plain<'_>], threads: usize) -> Result<Vec<Vec<u8>>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let own = numbers.map_while(|number| Some((number, encode(encoding, segments.get(number)?))));
        own.collect::<Vec<_>>()
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(segments.len())).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, bytes)| bytes).collect()
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
        Encoding::Nsf(nsf) => nsf.decode(bytes, storage, rows)?,
        Encoding::Nsv(nsv) => nsv.decode(bytes, storage, rows)?,
        Encoding::Rle => rle::decode(bytes, storage, rows)?,
        Encoding::GpuFor => gpu_for::decode(bytes, storage, rows)?,
        Encoding::GpuDfor => gpu_dfor::decode(bytes, storage, rows)?,
        Encoding::Delta(delta) => delta.decode(bytes, storage, rows)?,
        Encoding::Dictionary(dictionary) => dictionary.decode(bytes, storage, validity, rows)?,
        Encoding::Alp(alp) => alp.decode(bytes, storage, rows)?,
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
        Encoding::Nsf(nsf) => nsf.get(bytes, storage, rows, row)?,
        Encoding::Nsv(nsv) => nsv.get(bytes, storage, rows, row)?,
        Encoding::Rle => rle::get(bytes, storage, rows, row)?,
        Encoding::GpuFor => gpu_for::get(bytes, storage, rows, row)?,
        Encoding::GpuDfor => gpu_dfor::get(bytes, storage, rows, row)?,
        Encoding::Delta(delta) => delta.get(bytes, storage, rows, row)?,
        Encoding::Dictionary(dictionary) => dictionary.get(bytes, rows, row)?,
        Encoding::Alp(alp) => alp.get(bytes, storage, rows, row)?,
    };
    Ok(Some(bits))
}
