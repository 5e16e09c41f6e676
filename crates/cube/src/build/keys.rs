//! Names of elements from values of columns: text, whole numbers, dates and booleans.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::dates::{is_moment, moment_text};
use crate::model::is_blank;

/// What columns of names may hold, for errors.
const NAMES: &str = "names of elements are text, whole numbers, dates or booleans: cast it in a query, or give it a \
    type in types, as integer for whole numbers";
/// What columns of dates may hold, for errors.
const DATES: &str = "levels of time need a column of dates, timestamps without a summer time zone, or text such as \
    2026-03-31: cast it in a query";

/// Checks that values of a type name elements.
pub(super) fn check_names(data_type: &DataType) -> Result<(), String> {
    let is_name = match plain(data_type) {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale == 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean | DataType::Null => true,
        other => other.is_integer() || is_moment(other),
    };
    if is_name { Ok(()) } else { Err(NAMES.to_owned()) }
}

/// Checks that values of a type are dates.
pub(super) fn check_dates(data_type: &DataType) -> Result<(), String> {
    let is_date = match plain(data_type) {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        other => is_moment(other),
    };
    if is_date { Ok(()) } else { Err(DATES.to_owned()) }
}

/// The type of a column's values, those of a dictionary included.
pub(super) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// The text of a value; nothing for NULL.
pub(super) fn value_text(array: &dyn Array, row: usize) -> Option<String> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let key = dictionary.keys().is_valid(row).then(|| key_at(array, row)).flatten()?;
        return value_text(dictionary.values().as_ref(), key);
    }
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Null => None,
        DataType::Utf8 => Some(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Some(array.as_string_view().value(row).to_owned()),
        other if is_moment(other) => moment_text(array, row),
        _ => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).ok()?;
            formatter.value(row).try_to_string().ok()
        }
    }
}

/// The place of a row's value among those of its dictionary, for a row that is not NULL.
fn key_at(array: &dyn Array, row: usize) -> Option<usize> {
    array.slice(row, 1).as_any_dictionary_opt()?.normalized_keys().first().copied()
}

/// The name that a value gives an element: its text; nothing for NULL, empty text and blanks.
pub(super) fn name_text(array: &dyn Array, row: usize) -> Option<String> {
    value_text(array, row).filter(|text| !is_blank(text))
}
