//! Arrays of strings to arrival codes.
//!
//! Three caches save lookups. A dictionary array looks each of its strings up once; the batches of a row group share
//! their dictionary. Views are compared by their 16 bytes, which contain short strings whole. Other strings are
//! compared with the string before.

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, GenericStringArray, OffsetSizeTrait, StringViewArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};

use super::strings::LocalDictionary;
use super::values::nulls_of;
use crate::error::{ColumnError, Result};

/// Views in the cache.
const RECENT_VIEWS: usize = 512;
/// Longest string in a view, in bytes.
const INLINE_BYTES: u32 = 12;
/// An empty entry: no string has this length.
const NO_VIEW: u128 = u128::MAX;
/// A string without a code.
const NO_CODE: u32 = u32::MAX;

/// The coder of a column's strings on one thread.
#[derive(Debug)]
pub(crate) struct StringCoder {
    dictionary: LocalDictionary,
    codes: Vec<u32>,
    recent: Vec<(u128, u32)>,
    translation: Option<Translation>,
}

/// The codes of the strings of an Arrow dictionary.
#[derive(Debug)]
struct Translation {
    values: ArrayRef,
    /// By position in `values`; [`NO_CODE`] for strings that no row used.
    codes: Vec<u32>,
}

impl StringCoder {
    /// A coder with a local dictionary.
    pub(crate) fn new(dictionary: LocalDictionary) -> StringCoder {
        StringCoder { dictionary, codes: Vec::new(), recent: Vec::new(), translation: None }
    }

    /// Number of the dictionary.
    pub(crate) fn number(&self) -> usize {
        self.dictionary.number()
    }

    /// The dictionary of all coded strings.
    pub(crate) fn into_dictionary(self) -> LocalDictionary {
        self.dictionary
    }

    /// Codes of the rows of an array; 0 for nulls.
    pub(crate) fn codes(&mut self, array: &ArrayRef) -> Result<&[u32]> {
        self.codes.clear();
        self.codes.reserve(array.len());
        match array.data_type() {
            DataType::Utf8View => self.views(array.as_string_view())?,
            DataType::Utf8 => self.texts(array.as_string::<i32>())?,
            DataType::LargeUtf8 => self.texts(array.as_string::<i64>())?,
            DataType::Dictionary(_, _) => self.coded(array)?,
            other => return Err(ColumnError::source(format!("expected strings, found {other}"))),
        }
        Ok(&self.codes)
    }

    fn texts<O: OffsetSizeTrait>(&mut self, array: &GenericStringArray<O>) -> Result<()> {
        let mut last: Option<(&str, u32)> = None;
        for text in array.iter() {
            let code = match (text, last) {
                (None, _) => 0,
                (Some(text), Some((same, code))) if text == same => code,
                (Some(text), _) => {
                    let code = self.dictionary.code(text)?;
                    last = Some((text, code));
                    code
                }
            };
            self.codes.push(code);
        }
        Ok(())
    }

    fn views(&mut self, array: &StringViewArray) -> Result<()> {
        // Views of long strings point into the buffers of their array.
        self.recent.clear();
        self.recent.resize(RECENT_VIEWS, (NO_VIEW, 0));
        let nulls = nulls_of(array);
        let mut repeated = 0;
        for (row, view) in array.views().iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.codes.push(0);
                continue;
            }
            let view = canonical(*view);
            let place = &mut self.recent[place_of(view)];
            if place.0 == view {
                repeated += 1;
            } else {
                *place = (view, self.dictionary.code(array.value(row))?);
            }
            self.codes.push(place.1);
        }
        self.dictionary.skip(repeated);
        Ok(())
    }

    /// Codes a dictionary array; looks up each of its strings at the first row that uses it.
    fn coded(&mut self, array: &ArrayRef) -> Result<()> {
        let any = array.as_any_dictionary();
        let values = any.values();
        let is_known = |known: &Translation| known.values.to_data().ptr_eq(&values.to_data());
        if !self.translation.as_ref().is_some_and(is_known) {
            self.translation = Some(Translation { values: values.clone(), codes: vec![NO_CODE; values.len()] });
        }
        if values.is_empty() {
            // Every row is NULL.
            self.codes.resize(array.len(), 0);
            return Ok(());
        }
        let last = values.len() - 1;
        let nulls = nulls_of(array);
        match array.as_any().downcast_ref::<DictionaryArray<Int32Type>>() {
            // The key of a null slot is any number.
            Some(array) => {
                let keys = array.keys().values().iter().map(|key| (*key as usize).min(last));
                self.translate(keys, nulls, values)
            }
            None => self.translate(any.normalized_keys().into_iter(), nulls, values),
        }
    }

    fn translate(
        &mut self,
        keys: impl ExactSizeIterator<Item = usize>,
        nulls: Option<&NullBuffer>,
        values: &ArrayRef,
    ) -> Result<()> {
        let translation = self.translation.as_mut().expect("`coded` sets it");
        let (rows, mut entered) = (keys.len() as u64, 0);
        for (row, key) in keys.enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.codes.push(0);
                continue;
            }
            let mut code = translation.codes[key];
            if code == NO_CODE {
                code = enter(&mut self.dictionary, values, key)?;
                translation.codes[key] = code;
                entered += 1;
            }
            self.codes.push(code);
        }
        self.dictionary.skip(rows - entered);
        Ok(())
    }
}

/// The code of a string of a dictionary array; 0 for a null.
#[cold]
fn enter(dictionary: &mut LocalDictionary, values: &ArrayRef, position: usize) -> Result<u32> {
    if values.is_null(position) {
        return Ok(0);
    }
    match values.data_type() {
        DataType::Utf8 => dictionary.code(values.as_string::<i32>().value(position)),
        DataType::LargeUtf8 => dictionary.code(values.as_string::<i64>().value(position)),
        DataType::Utf8View => dictionary.code(values.as_string_view().value(position)),
        _ => {
            let one = cast(&values.slice(position, 1), &DataType::Utf8View);
            let one = one.map_err(|error| ColumnError::source(error.to_string()))?;
            dictionary.code(one.as_string_view().value(0))
        }
    }
}

/// A view with zeros after a short string: equal short strings have equal views.
fn canonical(view: u128) -> u128 {
    let length = view as u32;
    match length < INLINE_BYTES {
        true => view & ((1 << (32 + 8 * length)) - 1),
        false => view,
    }
}

fn place_of(view: u128) -> usize {
    let folded = (view as u64) ^ ((view >> 64) as u64).rotate_left(32);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % RECENT_VIEWS
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, Int8Array, Int32Array, StringArray};

    use super::*;
    use crate::format::strings::SharedDictionary;

    fn coder() -> StringCoder {
        StringCoder::new(SharedDictionary::new("c", 1 << 20, None).take())
    }

    #[test]
    fn equal_strings_of_all_forms_have_equal_codes() {
        let texts = ["", "a", "twelve bytes", "thirteen byte", "a string of more than twelve bytes"];
        let rows: Vec<Option<&str>> = (0..4_000).map(|row| (row % 7 != 3).then(|| texts[row * row % 5])).collect();
        let expected: Vec<Option<&str>> = rows.clone();
        let plain: ArrayRef = Arc::new(StringArray::from(rows.clone()));
        let large = cast(&plain, &DataType::LargeUtf8).unwrap();
        let view = cast(&plain, &DataType::Utf8View).unwrap();
        let coded: ArrayRef = Arc::new(rows.iter().copied().collect::<DictionaryArray<Int32Type>>());
        let small = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
        let small = cast(&coded, &small).unwrap();
        let mut coder = coder();
        let first = coder.codes(&plain).unwrap().to_vec();
        for (row, text) in expected.iter().enumerate() {
            let same = expected.iter().position(|other| other == text).unwrap();
            assert_eq!(first[row], if text.is_some() { first[same] } else { 0 });
        }
        for array in [large, view, coded, small] {
            assert_eq!(coder.codes(&array).unwrap(), first, "{}", array.data_type());
            assert_eq!(coder.codes(&array.slice(1_000, 2_000)).unwrap(), &first[1_000..3_000]);
        }
    }

    #[test]
    fn each_dictionary_has_its_own_translation_and_unused_strings_get_no_code() {
        let strings = SharedDictionary::new("c", 10, None);
        let mut coder = StringCoder::new(strings.take());
        let array = |keys: Vec<Option<i32>>, values: &[Option<&str>]| -> ArrayRef {
            Arc::new(DictionaryArray::new(Int32Array::from(keys), Arc::new(StringArray::from(values.to_vec()))))
        };
        let one = array(vec![Some(2), Some(0), None], &[Some("x"), Some("unused"), Some("y")]);
        let two = array(vec![Some(0), Some(1), Some(2)], &[Some("y"), None, Some("z")]);
        assert_eq!(coder.codes(&one).unwrap(), [0, 1, 0]);
        assert_eq!(coder.codes(&two).unwrap(), [0, 0, 2]);
        assert_eq!(coder.codes(&one).unwrap(), [0, 1, 0]);
        let none: ArrayRef = Arc::new(DictionaryArray::new(
            Int8Array::from(vec![None, None]),
            Arc::new(StringArray::from(Vec::<Option<&str>>::new())),
        ));
        assert_eq!(coder.codes(&none).unwrap(), [0, 0]);
        strings.give_back(coder.into_dictionary());
        let merged = strings.merge().unwrap();
        assert_eq!(merged.dictionary.values().iter().flatten().collect::<Vec<_>>(), ["x", "y", "z"]);
    }

    #[test]
    fn bytes_after_a_short_string_do_not_change_its_view() {
        let view = |text: &[u8]| {
            let mut bytes = [0xAA; 16];
            bytes[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            bytes[4..4 + text.len()].copy_from_slice(text);
            u128::from_le_bytes(bytes)
        };
        assert_eq!(canonical(view(b"")), 0);
        assert_eq!(canonical(view(b"ab")), 2 | u128::from(u16::from_le_bytes(*b"ab")) << 32);
        assert_eq!(canonical(view(b"twelve bytes")), view(b"twelve bytes"));
    }
}
