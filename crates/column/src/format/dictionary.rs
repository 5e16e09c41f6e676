//! Dictionary: the column's distinct values once, and codes for them in another encoding.
//!
//! ```text
//! dictionary  held by the encoding: the distinct values of the column, ascending
//! bytes       the codes of the segment, as the encoding of codes holds a segment of 32-bit unsigned values
//! ```
//!
//! A code is a value's position in the dictionary, so that codes sort like values; all segments of a column share the
//! dictionary. Source: order-preserving dictionary compression (Antoshenkov, "Dictionary-based order-preserving string
//! compression"), for numbers.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::packed::{Packed, ladder};
use super::plain::{Plain, is_valid_in, padded};
use super::word::{Native, with_native};
use super::{Encoding, decode as decode_codes, encode_into, get as get_code};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Distinct values past which a dictionary is not worth its lookups: they would leave the caches.
pub const DICTIONARY_MAX: usize = 1 << 16;

/// Parameters of a dictionary column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    values: Arc<[u64]>,
    codes: Box<Encoding>,
}

impl Dictionary {
    /// A dictionary of distinct values by their bits, zero-extended and in any order, with the encoding of its codes.
    ///
    /// # Errors
    /// [`EncodingError::NotApplicable`] if codes would be values of a dictionary or of floats in turn.
    pub fn new(storage: Storage, mut values: Vec<u64>, codes: Encoding) -> Result<Dictionary> {
        if matches!(codes, Encoding::Dictionary(_) | Encoding::Alp(_)) {
            let reason = "codes are plain integers";
            return Err(EncodingError::NotApplicable { encoding: codes.name(), storage, reason });
        }
        with_native!(storage, Value => values.sort_unstable_by_key(|bits| Value::from_u64(*bits)));
        values.dedup();
        Ok(Dictionary { values: values.into(), codes: Box::new(codes) })
    }

    /// Packed codes for so many values.
    pub(crate) fn codes_for(values: usize) -> Encoding {
        let width = ladder(usize::BITS - values.saturating_sub(1).leading_zeros());
        Encoding::Packed(Packed { width, reference: Some(0), patches: false })
    }

    /// Bits of the distinct values, zero-extended; the values ascend.
    pub fn values(&self) -> &Arc<[u64]> {
        &self.values
    }

    /// Encoding of the codes, values of [`Storage::U32`].
    pub fn codes(&self) -> &Encoding {
        &self.codes
    }

    /// The distinct valid values of a segment by their bits; `None` if there are more than `limit`.
    pub fn distinct(plain: &Plain<'_>, limit: usize) -> Option<Vec<u64>> {
        let mut seen = HashSet::new();
        with_native!(plain.storage(), Value => for vector in 0..plain.vectors() {
            // A vector without valid rows is filled with a value of its own.
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
    /// [`EncodingError::Overflow`] names the first value that the dictionary does not have.
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
                            reason: "the dictionary does not have its value".to_string(),
                        })?,
                    };
                    last = Some((value, known));
                    *code = known.to_le_bytes();
                }
            }
            Ok(codes)
        })
    }

    /// Appends a segment to an empty buffer.
    ///
    /// # Errors
    /// As [`Dictionary::codes_of`], and those of the codes' encoding.
    pub(crate) fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        let codes = self.codes_of(plain)?;
        let codes = &Plain::new(Storage::U32, &codes, plain.validity(), plain.rows())?;
        encode_into(&self.codes, codes, out)
    }

    /// Decodes a segment.
    ///
    /// # Errors
    /// [`EncodingError::Damaged`] if a row's code is past the dictionary, and errors of the codes' encoding.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        storage: Storage,
        validity: Option<&[u32]>,
        rows: usize,
    ) -> Result<Vec<u8>> {
        let codes = decode_codes(&self.codes, bytes, Storage::U32, validity, rows)?;
        let mut values = vec![0; padded(rows) * storage.width()];
        with_native!(storage, Value => {
            let slots = values.chunks_exact_mut(Value::BYTES).zip(codes.as_chunks::<4>().0);
            for (row, (value, code)) in slots.enumerate() {
                match self.values.get(u32::from_le_bytes(*code) as usize) {
                    Some(bits) => Value::from_u64(*bits).write(value),
                    // A column with nothing but nulls has no values: all codes are 0.
                    None if row >= rows || self.values.is_empty() => {}
                    None => return Err(PAST),
                }
            }
        });
        Ok(values)
    }

    /// One value, its bits zero-extended.
    ///
    /// # Errors
    /// As [`Dictionary::decode`].
    pub(crate) fn get(&self, bytes: &[u8], rows: usize, row: usize) -> Result<u64> {
        let code = get_code(&self.codes, bytes, Storage::U32, None, rows, row)?.ok_or(PAST)?;
        self.values.get(code as usize).copied().ok_or(PAST)
    }
}

const PAST: EncodingError = EncodingError::Damaged("a code is past the dictionary");
