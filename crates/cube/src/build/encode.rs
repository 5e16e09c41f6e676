//! Codes of a column's values: each distinct value is resolved once, by a hash map or the column's dictionary.

use std::hash::Hash;

use arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use hashbrown::HashMap;

use super::dates::days;

/// A code that is not kept: its value is resolved in every row.
pub(super) const NOT_KEPT: u32 = u32::MAX;
/// Digits of the widest decimal that is hashed as a whole number of 128 bits.
const DECIMAL_DIGITS: u8 = 38;

/// Codes of the distinct values of one column, over all of its batches.
#[derive(Default)]
pub(super) struct Encoder {
    /// Values of dates are taken as their days.
    of_days: bool,
    texts: HashMap<Box<str>, u32>,
    words: HashMap<i64, u32>,
    wide: HashMap<i128, u32>,
    /// The values of the last batch's dictionary, and their codes.
    dictionary: Option<(ArrayRef, Vec<u32>)>,
}

/// Gives the code of a value that is not NULL, by array and row.
pub(super) type Resolve<'a> = dyn FnMut(&dyn Array, usize) -> u32 + 'a;

impl Encoder {
    /// An encoder of names.
    pub(super) fn of_names() -> Encoder {
        Encoder::default()
    }

    /// An encoder of dates: moments of one day share a code.
    pub(super) fn of_days() -> Encoder {
        Encoder { of_days: true, ..Encoder::default() }
    }

    /// Puts the code of every row into `codes`, which is cleared before; NULL has the code `null`.
    pub(super) fn encode(
        &mut self,
        array: &ArrayRef,
        null: u32,
        codes: &mut Vec<u32>,
        resolve: &mut Resolve<'_>,
    ) -> Result<(), ArrowError> {
        codes.clear();
        codes.reserve(array.len());
        match array.data_type() {
            DataType::Null => codes.resize(array.len(), null),
            DataType::Dictionary(_, _) => self.encode_dictionary(array, null, codes, resolve)?,
            DataType::Utf8 => each_text(&mut self.texts, array.as_string::<i32>(), null, codes, resolve),
            DataType::LargeUtf8 => each_text(&mut self.texts, array.as_string::<i64>(), null, codes, resolve),
            DataType::Utf8View => each_text(&mut self.texts, array.as_string_view(), null, codes, resolve),
            DataType::Boolean => {
                let words: Int64Array = array.as_boolean().iter().map(|bit| bit.map(i64::from)).collect();
                each_word(&mut self.words, &words, array, null, codes, resolve);
            }
            DataType::UInt64 => {
                // The bits tell the values apart.
                let values = array.as_primitive::<UInt64Type>();
                let words = values.unary::<_, Int64Type>(|value| value as i64);
                each_word(&mut self.words, &words, array, null, codes, resolve);
            }
            other if other.is_integer() => {
                let words = cast(array, &DataType::Int64)?;
                each_word(&mut self.words, words.as_primitive::<Int64Type>(), array, null, codes, resolve);
            }
            other if other.is_decimal() => {
                let options = CastOptions { safe: false, ..CastOptions::default() };
                let wide = cast_with_options(array, &DataType::Decimal128(DECIMAL_DIGITS, 0), &options)?;
                each_word(&mut self.wide, wide.as_primitive::<Decimal128Type>(), array, null, codes, resolve);
            }
            other => {
                let words = if self.of_days { days(array.as_ref()) } else { instants(array)? };
                let unsupported = || ArrowError::NotYetImplemented(format!("keys of type {other}"));
                each_word(&mut self.words, &words.ok_or_else(unsupported)?, array, null, codes, resolve);
            }
        }
        Ok(())
    }

    /// Resolves the values of the dictionary, unless the last batch had the same, and gathers their codes.
    fn encode_dictionary(
        &mut self,
        array: &ArrayRef,
        null: u32,
        codes: &mut Vec<u32>,
        resolve: &mut Resolve<'_>,
    ) -> Result<(), ArrowError> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        if values.is_empty() {
            codes.resize(array.len(), null);
            return Ok(());
        }
        let held = self.dictionary.take().filter(|(held, _)| held.to_data().ptr_eq(&values.to_data()));
        let (held, of_values) = match held {
            Some(held) => held,
            None => {
                let mut of_values = Vec::new();
                self.encode(values, null, &mut of_values, resolve)?;
                (values.clone(), of_values)
            }
        };
        let keys = dictionary.normalized_keys();
        match array.nulls() {
            None => codes.extend(keys.iter().map(|&key| of_values[key])),
            Some(nulls) => {
                let code = |(row, &key): (usize, &usize)| if nulls.is_null(row) { null } else { of_values[key] };
                codes.extend(keys.iter().enumerate().map(code));
            }
        }
        self.dictionary = Some((held, of_values));
        Ok(())
    }
}

/// Days of dates, ticks of timestamps.
fn instants(array: &ArrayRef) -> Result<Option<Int64Array>, ArrowError> {
    match array.data_type() {
        DataType::Date32 => Ok(days(array.as_ref())),
        DataType::Date64 | DataType::Timestamp(_, _) => {
            Ok(Some(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
        }
        _ => Ok(None),
    }
}

/// Encodes texts; a text equal to the row before it takes no look at the map.
fn each_text<'a, A: ArrayAccessor<Item = &'a str>>(
    held: &mut HashMap<Box<str>, u32>,
    array: A,
    null: u32,
    codes: &mut Vec<u32>,
    resolve: &mut Resolve<'_>,
) {
    let mut last: Option<(&str, u32)> = None;
    for row in 0..array.len() {
        if array.is_null(row) {
            codes.push(null);
            continue;
        }
        let text = array.value(row);
        if let Some((before, code)) = last
            && before == text
        {
            codes.push(code);
            continue;
        }
        let code = match held.get(text) {
            Some(code) => *code,
            None => {
                let code = resolve(&array, row);
                if code != NOT_KEPT {
                    held.insert(text.into(), code);
                }
                code
            }
        };
        last = Some((text, code));
        codes.push(code);
    }
}

/// Encodes whole numbers; `array` has the values as they stand in the column.
fn each_word<T: ArrowPrimitiveType>(
    held: &mut HashMap<T::Native, u32>,
    words: &PrimitiveArray<T>,
    array: &dyn Array,
    null: u32,
    codes: &mut Vec<u32>,
    resolve: &mut Resolve<'_>,
) where
    T::Native: Hash + Eq,
{
    let mut last: Option<(T::Native, u32)> = None;
    for (row, &word) in words.values().iter().enumerate() {
        if words.is_null(row) {
            codes.push(null);
            continue;
        }
        if let Some((before, code)) = last
            && before == word
        {
            codes.push(code);
            continue;
        }
        let code = match held.get(&word) {
            Some(code) => *code,
            None => {
                let code = resolve(array, row);
                if code != NOT_KEPT {
                    held.insert(word, code);
                }
                code
            }
        };
        last = Some((word, code));
        codes.push(code);
    }
}
