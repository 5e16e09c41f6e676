//! Results as DataFusion's SQL test files write them.
//!
//! NULL is `NULL`, an empty string `(empty)`; floats are plain decimals of at most 12 digits after the point, decimals
//! lose their trailing zeros; columns have one letter each (B, D, I, P, R, T, ?).

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use bigdecimal::BigDecimal;

/// Digits after the point of a float.
const FLOAT_DIGITS: i64 = 12;

/// The letters of the columns.
pub fn types(schema: &Schema) -> String {
    schema.fields().iter().map(|field| letter(field.data_type())).collect()
}

fn letter(data_type: &DataType) -> char {
    match data_type {
        DataType::Boolean => 'B',
        data_type if data_type.is_integer() => 'I',
        data_type if data_type.is_numeric() => 'R',
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 'T',
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => 'D',
        DataType::Timestamp(_, _) => 'P',
        DataType::Dictionary(_, value) if letter(value) == 'T' => 'T',
        _ => '?',
    }
}

/// All rows, cell by cell.
pub fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let row = |batch: &RecordBatch, row| batch.columns().iter().map(|column| cell(column, row)).collect();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |number| row(batch, number))).collect()
}

fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".into();
    }
    if let DataType::Dictionary(_, value) = column.data_type() {
        return cell(&cast(column, value).expect("dictionaries unfold"), row);
    }
    let options = FormatOptions::new().with_null("NULL").with_duration_format(DurationFormat::Pretty);
    let text = || ArrayFormatter::try_new(column.as_ref(), &options).expect("displayable").value(row).to_string();
    match column.data_type() {
        DataType::Null => "NULL".into(),
        // The display of narrower floats as doubles would show digits that they do not have.
        DataType::Float16 => float(&text()),
        DataType::Float32 => float(&column.as_primitive::<arrow::datatypes::Float32Type>().value(row).to_string()),
        DataType::Float64 => float(&column.as_primitive::<arrow::datatypes::Float64Type>().value(row).to_string()),
        data_type if letter(data_type) == 'R' => {
            text().parse::<BigDecimal>().expect("a decimal").normalized().to_plain_string()
        }
        data_type if letter(data_type) == 'T' => match text().as_str() {
            "" => "(empty)".into(),
            text => text.trim_end_matches('\n').replace('\0', "\\0"),
        },
        _ => text(),
    }
}

fn float(text: &str) -> String {
    match text {
        "NaN" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => {
            let value = text.parse::<BigDecimal>().expect("a float");
            value.round(FLOAT_DIGITS).normalized().to_plain_string()
        }
    }
}

#[test]
fn floats_are_plain() {
    assert_eq!(float("0.30000000000000004"), "0.3");
    assert_eq!(float("1e21"), "1000000000000000000000");
    assert_eq!(float("-inf"), "-Infinity");
    assert_eq!(float("-0"), "0");
}
