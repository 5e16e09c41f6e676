//! NSF: every value of the column in the same 1, 2, 4 or 8 bytes.
//!
//! ```text
//! values  [V * 1024] × bytes   the low bytes of each value, row i at i * bytes; null slots and padding are zero
//! ```
//!
//! Signed values are extended by their sign when they are read, all others by zeros. Source: null suppression with
//! fixed length (Fang, He and Luo, "Database compression on graphics processors"), section 5.2 of Shanbhag,
//! "Interactive Data Analytics Using GPUs".

use super::plain::{Plain, is_valid_in, padded};
use super::word::{Native, with_native};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Parameters of an NSF column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nsf {
    /// Bytes a value: 1, 2, 4 or 8, no more than the storage has.
    pub bytes: u32,
}

impl Nsf {
    /// The fewest bytes that hold all values between two, each extended to 64 bits by its sign.
    pub fn fit(storage: Storage, low: u64, high: u64) -> Nsf {
        let holds = |bytes: u32| {
            let same = |value: u64| with_native!(storage, Value => extend::<Value>(value, bytes) == value);
            same(low) && same(high)
        };
        Nsf { bytes: [1, 2, 4].into_iter().find(|bytes| holds(*bytes)).unwrap_or(8).min(storage.width() as u32) }
    }

    /// Whether bytes and storage belong together.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if they do not.
    pub(crate) fn check(&self, storage: Storage) -> Result<()> {
        if matches!(self.bytes, 1 | 2 | 4 | 8) && self.bytes <= storage.width() as u32 {
            return Ok(());
        }
        Err(EncodingError::NotApplicable { encoding: "nsf", storage, reason: "its values have other bytes" })
    }

    /// Appends a segment to an empty buffer.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first value that needs more bytes.
    pub(crate) fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.check(plain.storage())?;
        with_native!(plain.storage(), Value => match self.bytes {
            1 => encode::<Value, 1>(plain, out),
            2 => encode::<Value, 2>(plain, out),
            4 => encode::<Value, 4>(plain, out),
            _ => encode::<Value, 8>(plain, out),
        })
    }

    /// Decodes a segment.
    ///
    /// # Errors
    /// [`EncodingError::Damaged`] if there are not as many bytes as there should be.
    pub(crate) fn decode(&self, bytes: &[u8], storage: Storage, rows: usize) -> Result<Vec<u8>> {
        self.check_bytes(bytes, storage, rows)?;
        Ok(with_native!(storage, Value => match self.bytes {
            1 => decode::<Value, 1>(bytes),
            2 => decode::<Value, 2>(bytes),
            4 => decode::<Value, 4>(bytes),
            _ => decode::<Value, 8>(bytes),
        }))
    }

    /// One value, its bits zero-extended.
    ///
    /// # Errors
    /// As [`Nsf::decode`].
    pub(crate) fn get(&self, bytes: &[u8], storage: Storage, rows: usize, row: usize) -> Result<u64> {
        self.check_bytes(bytes, storage, rows)?;
        let width = self.bytes as usize;
        let mut value = [0; 8];
        value[..width].copy_from_slice(&bytes[row * width..(row + 1) * width]);
        let value = u64::from_le_bytes(value);
        Ok(with_native!(storage, Value => Value::from_u64(extend::<Value>(value, self.bytes)).bits()))
    }

    fn check_bytes(&self, bytes: &[u8], storage: Storage, rows: usize) -> Result<()> {
        self.check(storage)?;
        if bytes.len() != padded(rows) * self.bytes as usize {
            return Err(EncodingError::Damaged("an NSF segment is not as long as its bytes and rows say"));
        }
        Ok(())
    }
}

/// The low bytes of a value, extended as the values of a type are.
fn extend<T: Native>(value: u64, bytes: u32) -> u64 {
    let shift = 64 - 8 * bytes;
    if T::SIGNED { ((value << shift) as i64 >> shift) as u64 } else { value << shift >> shift }
}

fn encode<T: Native, const BYTES: usize>(plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
    out.resize(padded(plain.rows()) * BYTES, 0);
    for (vector, out) in out.chunks_exact_mut(VECTOR_ROWS * BYTES).enumerate() {
        let valid = plain.vector_validity(vector);
        let values = plain.vector(vector).chunks_exact(T::BYTES).map(|value| T::read(value).extend());
        for (row, (value, out)) in values.zip(out.as_chunks_mut::<BYTES>().0).enumerate() {
            if !is_valid_in(&valid, row) {
                continue;
            }
            if extend::<T>(value, BYTES as u32) != value {
                let reason = format!("it needs more than {BYTES} bytes");
                return Err(EncodingError::Overflow { encoding: "nsf", row: vector * VECTOR_ROWS + row, reason });
            }
            out.copy_from_slice(&value.to_le_bytes()[..BYTES]);
        }
    }
    Ok(())
}

fn decode<T: Native, const BYTES: usize>(bytes: &[u8]) -> Vec<u8> {
    let narrow = bytes.as_chunks::<BYTES>().0;
    let mut values = vec![0; narrow.len() * T::BYTES];
    for (value, narrow) in values.chunks_exact_mut(T::BYTES).zip(narrow) {
        let mut wide = [0; 8];
        wide[..BYTES].copy_from_slice(narrow);
        T::from_u64(extend::<T>(u64::from_le_bytes(wide), BYTES as u32)).write(value);
    }
    values
}
