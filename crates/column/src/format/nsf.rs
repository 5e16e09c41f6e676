//! NSF: the low 1, 2, 4 or 8 bytes of each value, one width for the column.
//!
//! ```text
//! values  [V * 1024] × bytes   the low bytes of each value, row i at i * bytes; null slots and padding are zero
//! ```
//!
//! Readers sign-extend values of signed storages and zero-extend all others. Source: null suppression with
//! fixed length (Fang, He and Luo, "Database compression on graphics processors"), section 5.2 of Shanbhag,
//! "Interactive Data Analytics Using GPUs".

use super::codec::{Codec, EncodedBytes};
use super::values::{Plain, is_valid_in, padded};
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
    /// The fewest bytes that hold the values between two bounds, each sign-extended to 64 bits.
    pub fn fit(storage: Storage, low: u64, high: u64) -> Nsf {
        let holds = |bytes: u32| {
            [low, high].iter().all(|value| with_native!(storage, Value => extend::<Value>(*value, bytes) == *value))
        };
        Nsf { bytes: [1, 2, 4].into_iter().find(|bytes| holds(*bytes)).unwrap_or(8).min(storage.width() as u32) }
    }
}

impl Codec for Nsf {
    fn check(&self, storage: Storage) -> Result<()> {
        if matches!(self.bytes, 1 | 2 | 4 | 8) && self.bytes <= storage.width() as u32 {
            return Ok(());
        }
        let reason = "its bytes are none of 1, 2, 4, 8 or more than a value has";
        Err(EncodingError::NotApplicable { encoding: "nsf", storage, reason })
    }

    fn takes(&self, bytes: usize, _storage: Storage, rows: usize) -> bool {
        bytes == padded(rows) * self.bytes as usize
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        with_native!(plain.storage(), Value => match self.bytes {
            1 => encode::<Value, 1>(plain, out),
            2 => encode::<Value, 2>(plain, out),
            4 => encode::<Value, 4>(plain, out),
            _ => encode::<Value, 8>(plain, out),
        })
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        Ok(with_native!(segment.storage, Value => match self.bytes {
            1 => decode::<Value, 1>(segment.bytes),
            2 => decode::<Value, 2>(segment.bytes),
            4 => decode::<Value, 4>(segment.bytes),
            _ => decode::<Value, 8>(segment.bytes),
        }))
    }
}

/// The low bytes of a value, sign-extended if the type is signed, else zero-extended.
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
                let reason = format!("its value needs more than {BYTES} bytes");
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
