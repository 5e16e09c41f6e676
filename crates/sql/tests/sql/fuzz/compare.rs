//! Results as multisets or in their order, floats with a tolerance.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Relative difference up to which two floats count as equal.
const TOLERANCE: f64 = 1e-9;
/// Difference up to which they always do.
const TINY: f64 = 1e-9;

/// A cell.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Text(String),
    Float(f64),
}

impl Cell {
    fn same(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(one), Cell::Float(other)) => {
                one == other
                    || (one.is_nan() && other.is_nan())
                    || (one - other).abs() <= TINY + TOLERANCE * one.abs().max(other.abs())
            }
            _ => self == other,
        }
    }
}

fn rows(batches: &[RecordBatch], are_ordered: bool) -> Vec<Vec<Cell>> {
    let options = FormatOptions::new().with_null("∅");
    let mut rows = Vec::new();
    for batch in batches {
        let mut cells = vec![Vec::with_capacity(batch.num_columns()); batch.num_rows()];
        for column in batch.columns() {
            let float = column.data_type().is_floating();
            let doubles = float.then(|| cast(column, &DataType::Float64).expect("floats widen"));
            let formatter = ArrayFormatter::try_new(column.as_ref(), &options).expect("displayable");
            for (row, cells) in cells.iter_mut().enumerate() {
                cells.push(match &doubles {
                    Some(doubles) if column.is_valid(row) => {
                        Cell::Float(doubles.as_primitive::<Float64Type>().value(row))
                    }
                    _ => Cell::Text(formatter.value(row).to_string()),
                });
            }
        }
        rows.extend(cells);
    }
    if are_ordered {
        return rows;
    }
    // Groups mostly differ in cells that are no floats; where they do not, few digits keep near floats in one order.
    let key = |row: &Vec<Cell>| {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => Some(text.clone()),
            Cell::Float(_) => None,
        };
        let digits = |cell: &Cell| match cell {
            Cell::Text(_) => None,
            Cell::Float(value) => Some(format!("{:.5e}", value + 0.0)),
        };
        (row.iter().filter_map(text).collect::<Vec<_>>(), row.iter().filter_map(digits).collect::<Vec<_>>())
    };
    rows.sort_by_cached_key(key);
    rows
}

fn types(batches: &[RecordBatch]) -> Vec<DataType> {
    let schema = batches.first().map(RecordBatch::schema);
    schema.map_or(Vec::new(), |schema| schema.fields().iter().map(|field| field.data_type().clone()).collect())
}

/// The first difference, in words; `None` if there is none. Rows that are not ordered may come in any order.
pub fn difference(expected: &[RecordBatch], found: &[RecordBatch], are_ordered: bool) -> Option<String> {
    if !expected.is_empty() && !found.is_empty() && types(expected) != types(found) {
        return Some(format!("types {:?} on the CPU, {:?} on the device", types(expected), types(found)));
    }
    let (expected, found) = (rows(expected, are_ordered), rows(found, are_ordered));
    if expected.len() != found.len() {
        return Some(format!("{} rows on the CPU, {} on the device", expected.len(), found.len()));
    }
    let pairs = expected.iter().zip(&found);
    let differs = |(one, other): &(&Vec<Cell>, &Vec<Cell>)| !one.iter().zip(other.iter()).all(|(a, b)| a.same(b));
    pairs.into_iter().find(differs).map(|(one, other)| format!("{one:?} on the CPU, {other:?} on the device"))
}

#[test]
fn differences_are_found() {
    use std::sync::Arc;
    let floats = |values: Vec<Option<f64>>| {
        let column: arrow::array::ArrayRef = Arc::new(arrow::array::Float64Array::from(values));
        vec![RecordBatch::try_from_iter([("x", column)]).unwrap()]
    };
    let one = floats(vec![Some(1.0), None]);
    assert_eq!(difference(&one, &floats(vec![Some(1.0 + 1e-12), None]), false), None);
    assert!(difference(&one, &floats(vec![Some(1.0 + 1e-6), None]), false).is_some());
    assert!(difference(&one, &floats(vec![Some(1.0), Some(0.0)]), false).is_some());
    assert!(difference(&one, &floats(vec![Some(1.0)]), false).is_some());
    assert_eq!(difference(&floats(vec![Some(f64::NAN)]), &floats(vec![Some(f64::NAN)]), false), None);
    let turned = floats(vec![None, Some(1.0)]);
    assert!(difference(&one, &turned, true).is_some() && difference(&one, &turned, false).is_none());
}
