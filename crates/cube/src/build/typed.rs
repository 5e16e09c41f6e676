//! Columns of a source as the types that `types` names.
//!
//! A column becomes text as SQL casts it, other types by the text of its values. A cast to text that cannot give the
//! source's text back is refused, as that of a double.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::dates::Civil;
use super::keys::{plain, value_text};
use super::numbers::Reader;
use crate::define::{ColumnType, NumberStyle};

/// Digits of the widest decimal of 128 bits.
const DECIMAL_DIGITS: u8 = 38;

/// The type of arrays of a column.
pub(super) fn array_type(wanted: &ColumnType) -> DataType {
    match wanted {
        ColumnType::Text => DataType::Utf8,
        ColumnType::Integer => DataType::Int64,
        ColumnType::Decimal(scale) => DataType::Decimal128(DECIMAL_DIGITS, *scale as i8),
        ColumnType::Double => DataType::Float64,
        ColumnType::Date(_) => DataType::Date32,
    }
}

/// Checks that a column of a type can become another one.
pub(super) fn check(found: &DataType, wanted: &ColumnType) -> Result<(), String> {
    let found = plain(found);
    let is_lost = *wanted == ColumnType::Text && found.is_floating();
    let is_known = found.is_string() || found.is_numeric() || found.is_temporal() || found.is_null();
    match (is_lost, is_known || *found == DataType::Boolean) {
        (false, true) => Ok(()),
        (true, _) => {
            Err("types: says text, and the text of its numbers is not there any more: name the column of the \
                          file itself, or cast it to a decimal in the query"
                .to_owned())
        }
        (false, false) => Err(format!("types: says {wanted}, which it cannot become: cast it in a query")),
    }
}

/// A column as another type.
///
/// # Errors
/// The first value that is none of the type: its row, and a predicate.
pub(super) fn typed(column: &ArrayRef, wanted: &ColumnType, style: NumberStyle) -> Result<ArrayRef, (usize, String)> {
    let data_type = array_type(wanted);
    if column.data_type() == &data_type {
        return Ok(column.clone());
    }
    let is_text = plain(column.data_type()).is_string();
    if let (true, ColumnType::Text) = (is_text, wanted) {
        return Ok(cast(column, &DataType::Utf8).expect("texts are cast to texts"));
    }
    if column.data_type().is_null() {
        return Ok(new_null_array(&data_type, column.len()));
    }
    let mut reader = Reader::new(if is_text { style } else { NumberStyle::PLAIN });
    let text =
        |row: usize| value_text(column, row).filter(|text| *wanted == ColumnType::Text || !text.trim().is_empty());
    let wrong = |row: usize, what: &str| (row, format!("is no {what}, as types: says ({wanted})"));
    let rows = 0..column.len();
    Ok(match wanted {
        ColumnType::Text => Arc::new(rows.map(text).collect::<StringArray>()),
        ColumnType::Integer | ColumnType::Decimal(_) => {
            let (scale, what) = match wanted {
                ColumnType::Decimal(scale) => (i32::from(*scale), "decimal of so many digits"),
                _ => (0, "whole number of 64 bits"),
            };
            let mut value = |row: usize| match text(row).map(|text| reader.decimal(&text, scale)) {
                None => Ok(None),
                Some(Ok((units, false))) => Ok(Some(units)),
                Some(_) => Err(wrong(row, what)),
            };
            let values = rows.map(&mut value).collect::<Result<Vec<Option<i128>>, _>>()?;
            match wanted {
                ColumnType::Decimal(scale) => {
                    let decimals: Decimal128Array = values.into_iter().collect();
                    let decimals = decimals.with_precision_and_scale(DECIMAL_DIGITS, *scale as i8);
                    Arc::new(decimals.expect("a scale is at most 18"))
                }
                _ => {
                    let narrow = |(row, value): (usize, Option<i128>)| {
                        value.map(|value| i64::try_from(value).map_err(|_| wrong(row, what))).transpose()
                    };
                    Arc::new(values.into_iter().enumerate().map(narrow).collect::<Result<Int64Array, _>>()?)
                }
            }
        }
        ColumnType::Double => {
            let mut value =
                |row: usize| text(row).map(|text| reader.double(&text).ok_or_else(|| wrong(row, "number"))).transpose();
            Arc::new(rows.map(&mut value).collect::<Result<Float64Array, _>>()?)
        }
        ColumnType::Date(pattern) => {
            let day = |text: &str| match pattern {
                Some(pattern) => pattern.parse(text).and_then(Civil::checked),
                None => Civil::parse(text),
            };
            let value = |row: usize| {
                let found = text(row).map(|text| {
                    day(&text).and_then(|(year, month, day)| {
                        let civil = Civil { year, month, day: day.unwrap_or(1) };
                        i32::try_from(civil.days()).ok()
                    })
                });
                found.map(|days| days.ok_or_else(|| wrong(row, "date"))).transpose()
            };
            Arc::new(rows.map(value).collect::<Result<Date32Array, _>>()?)
        }
    })
}

/// The values of a column of texts that are all numbers and no codes, as doubles; nothing for other columns.
pub(super) fn all_numbers(column: &ArrayRef, style: NumberStyle) -> Option<Float64Array> {
    let texts = texts(column)?;
    let texts = texts.as_string::<i32>();
    let mut reader = Reader::new(style);
    if texts.null_count() == texts.len() || !texts.iter().flatten().all(|text| reader.is_number(text)) {
        return None;
    }
    Some(texts.iter().map(|text| text.and_then(|text| reader.double(text))).collect())
}

/// A column of texts, dictionaries included, as plain texts; nothing for other columns.
pub(super) fn texts(column: &ArrayRef) -> Option<ArrayRef> {
    let is_text = plain(column.data_type()).is_string();
    is_text.then(|| cast(column, &DataType::Utf8).expect("texts are cast to texts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: &[&str]) -> ArrayRef {
        Arc::new(texts.iter().map(|text| (!text.is_empty()).then_some(*text)).collect::<StringArray>())
    }

    fn shown(array: &ArrayRef) -> Vec<String> {
        (0..array.len()).map(|row| value_text(array, row).unwrap_or_default()).collect()
    }

    #[test]
    fn texts_become_what_types_say() {
        for (wanted, texts, expected) in [
            ("integer", &["00354", "354", "", "+1"][..], &["354", "354", "", "1"][..]),
            ("decimal(2)", &["1.1", "1.10"], &["1.10", "1.10"]),
            ("double", &["1.1", "1e3"], &["1.1", "1000.0"]),
            ("date", &["2026-03-31", "2024-02"], &["2026-03-31", "2024-02-01"]),
            ("date(DD.MM.YYYY)", &["31.3.2026", "29.02.2024"], &["2026-03-31", "2024-02-29"]),
            ("date(YYYYMM)", &["202603"], &["2026-03-01"]),
            ("text", &["00354", ""], &["00354", ""]),
        ] {
            let wanted: ColumnType = wanted.parse().unwrap();
            let array = typed(&column(texts), &wanted, NumberStyle::PLAIN).unwrap();
            assert_eq!(array.data_type(), &array_type(&wanted));
            assert_eq!(shown(&array), expected, "{wanted}");
        }
    }

    #[test]
    fn values_that_are_none_are_named() {
        for (wanted, texts, row) in [
            ("integer", ["1", "1.5"], 1),
            ("integer", ["9223372036854775808", "1"], 0),
            ("decimal(1)", ["1.5", "1.25"], 1),
            ("double", ["x", "1"], 0),
            ("date", ["2026-03-31", "31.03.2026"], 1),
            ("date(DD.MM.YYYY)", ["31.03.2026", "30.02.2026"], 1),
        ] {
            let wanted: ColumnType = wanted.parse().unwrap();
            assert_eq!(typed(&column(&texts), &wanted, NumberStyle::PLAIN).unwrap_err().0, row, "{wanted}");
        }
    }

    #[test]
    fn other_types_become_text() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![354]));
        assert_eq!(shown(&typed(&numbers, &ColumnType::Text, NumberStyle::PLAIN).unwrap()), ["354"]);
        let months = typed(&numbers, &"date(YYYYMM)".parse().unwrap(), NumberStyle::PLAIN);
        assert!(months.is_err());
        assert!(check(&DataType::Float64, &ColumnType::Text).is_err());
        assert!(check(&DataType::Int64, &ColumnType::Text).is_ok());
    }
}
