//! Batches as lines of text.

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;

/// The names of a batch's columns and its rows, a line each, with a blank between values.
pub fn printed(batch: &RecordBatch) -> Vec<String> {
    let table = pretty_format_batches(std::slice::from_ref(batch)).unwrap().to_string();
    let rows = table.lines().filter(|line| line.starts_with('|'));
    rows.map(|line| line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" "))
        .collect()
}
