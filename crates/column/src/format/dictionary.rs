//! Dictionary: the distinct values of the column, and codes in another encoding.
//!
//! ```text
//! dictionary  a parameter of the encoding: the distinct values of the column, ascending
//! bytes       the codes of the segment, 32-bit unsigned values in the encoding of codes
//! ```
//!
//! A code is the position of a value in the dictionary, so that codes order as values do. All segments of a column
//! share the dictionary. Source: order-preserving dictionary compression (Antoshenkov, "Dictionary-based
//! order-preserving string compression"), for numbers.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::codec::{Codec, EncodedBytes};
use super::packed::{Packed, ladder};
use super::values::{Plain, is_valid_in, padded};
use super::word::{Native, with_native};
use super::{Encoding, decode as decode_codes, encode_into};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Most distinct values of a dictionary: lookups in a larger one miss the caches.
pub const DICTIONARY_MAX: usize = 1 << 16;

/// Parameters of a dictionary column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    values: Arc<[u64]>,
    codes: Box<Encoding>,
}

impl Dictionary {
    /// A dictionary of values by their zero-extended bits, in any order, with the encoding of its codes.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if the encoding of codes is a dictionary or ALP.
    pub fn new(storage: Storage, mut values: Vec<u64>, codes: Encoding) -> Result<Dictionary> {
        if matches!(codes, Encoding::Dictionary(_) | Encoding::Alp(_)) {
            let reason = "it cannot hold the codes of a dictionary";
            return Err(EncodingError::NotApplicable { encoding: codes.name(), storage, reason });
        }
        with_native!(storage, Value => values.sort_unstable_by_key(|bits| Value::from_u64(*bits)));
        values.dedup();
        Ok(Dictionary { values: values.into(), codes: Box::new(codes) })
    }

    /// The packing of codes for this many values.
    pub(crate) fn codes_for(values: usize) -> Encoding {
        let width = ladder(usize::BITS - values.saturating_sub(1).leading_zeros());
        Encoding::Packed(Packed { width, reference: Some(0), patches: false })
    }

    /// Zero-extended bits of the distinct values, in ascending order of the values.
    pub fn values(&self) -> &Arc<[u64]> {
        &self.values
    }

    /// Encoding of the codes, values of [`Storage::U32`].
    pub fn codes(&self) -> &Encoding {
        &self.codes
    }

    /// Zero-extended bits of the distinct valid values of a segment; `None` past `limit` values.
    pub fn distinct(plain: &Plain<'_>, limit: usize) -> Option<Vec<u64>> {
        let mut seen = HashSet::new();
        with_native!(plain.storage(), Value => for vector in 0..plain.vectors() {
            // A vector of NULLs is filled with zeros.
            if plain.vector_validity(vector).is_some_and(|words| words.iter().all(|word| *word == 0)) {
                continue;
            }
            let mut last = None;
            for value in plain.filled::<Value>(vector) {
                if last != Some(value) {
                    seen.insert(value.bits());
                    last = Some(value);
                }
            }
            if seen.len() > limit {
                return None;
            }
        });
        Some(seen.into_iter().collect())
    }

    /// Codes of a segment as plain values of [`Storage::U32`], padded; null slots and padding have code 0.
    ///
    /// # Errors
    /// [`EncodingError::Overflow`] names the first row whose value is not in the dictionary.
    pub fn codes_of(&self, plain: &Plain<'_>) -> Result<Vec<u8>> {
        let positions: HashMap<u64, u32> = self.values.iter().zip(0..).map(|(bits, code)| (*bits, code)).collect();
        with_native!(plain.storage(), Value => {
            let mut codes = vec![0; 4 * padded(plain.rows())];
            let mut last = None;
            for (vector, codes) in codes.chunks_exact_mut(4 * VECTOR_ROWS).enumerate() {
                let valid = plain.vector_validity(vector);
                let values = plain.vector(vector).chunks_exact(Value::BYTES).map(Value::read);
                for (row, (value, code)) in values.zip(codes.as_chunks_mut::<4>().0).enumerate() {
                    if !is_valid_in(&valid, row) {
                        continue;
                    }
                    let known = match last {
                        Some((same, known)) if same == value => known,
                        _ => *positions.get(&value.bits()).ok_or_else(|| EncodingError::Overflow {
                            encoding: "dictionary",
                            row: vector * VECTOR_ROWS + row,
                            reason: "its value is not in the dictionary".to_string(),
                        })?,
                    };
                    last = Some((value, known));
                    *code = known.to_le_bytes();
                }
            }
            Ok(codes)
        })
    }
}

impl Codec for Dictionary {
    fn check(&self, _storage: Storage) -> Result<()> {
        self.codes.codec().check(Storage::U32)
    }

    fn takes(&self, bytes: usize, _storage: Storage, rows: usize) -> bool {
        self.codes.codec().takes(bytes, Storage::U32, rows)
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        let codes = self.codes_of(plain)?;
        encode_into(&self.codes, &Plain::new(Storage::U32, &codes, plain.validity(), plain.rows())?, out)
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        let EncodedBytes { bytes, storage, validity, rows } = segment;
        let codes = decode_codes(&self.codes, bytes, Storage::U32, validity, rows)?;
        let mut values = vec![0; segment.padded() * storage.width()];
        with_native!(storage, Value => {
            let slots = values.chunks_exact_mut(Value::BYTES).zip(codes.as_chunks::<4>().0);
            for (row, (value, code)) in slots.enumerate() {
                match self.values.get(u32::from_le_bytes(*code) as usize) {
                    Some(bits) => Value::from_u64(*bits).write(value),
                    // All codes of a column of NULLs are 0, and its dictionary is empty.
                    None if row >= rows || self.values.is_empty() => {}
                    None => return Err(EncodingError::Damaged("a code is past the end of the dictionary")),
                }
            }
        });
        Ok(values)
    }
}
