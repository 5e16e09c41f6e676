//! SSB tables as text, the form the reference generator writes: fields between `|`, a newline after each row and no
//! `|` before it.

use std::io::Write;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use rayon::prelude::*;

use super::scale::Scale;
use super::{SsbTable, ssb_batches};
use crate::DatagenError;

/// Orders or rows that one thread turns into text before it is written.
const UNITS_PER_PART: u64 = 1 << 14;
/// Rows of a batch on the way to text: small enough to stay in a cache.
const BATCH_ROWS: usize = 1 << 12;

/// Writes a table as text and returns its number of rows. Text is made by all threads of the current rayon pool and
/// written in order.
///
/// # Errors
/// When the scale factor is out of range or the writer fails.
pub fn write_ssb_tbl(table: SsbTable, sf: f64, to: &mut dyn Write) -> Result<u64, DatagenError> {
    let parts = table.units(Scale::new(sf)?).div_ceil(UNITS_PER_PART) as usize;
    let mut rows = 0;
    let together = 4 * rayon::current_num_threads();
    for first in (0..parts).step_by(together) {
        let texts = (first..parts.min(first + together))
            .into_par_iter()
            .map(|part| text(table, sf, part, parts))
            .collect::<Result<Vec<_>, _>>()?;
        for (text, lines) in texts {
            to.write_all(&text).map_err(|source| DatagenError::Output { table: table.name(), source })?;
            rows += lines;
        }
    }
    Ok(rows)
}

fn text(table: SsbTable, sf: f64, part: usize, parts: usize) -> Result<(Vec<u8>, u64), DatagenError> {
    let (mut text, mut rows) = (Vec::new(), 0);
    for batch in ssb_batches(table, sf, part, parts, BATCH_ROWS)? {
        rows += batch.num_rows() as u64;
        append_rows(&mut text, &batch);
    }
    Ok((text, rows))
}

/// A column as it is read row by row.
enum Column<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Text(&'a arrow::array::StringArray),
}

fn append_rows(text: &mut Vec<u8>, batch: &RecordBatch) {
    let columns: Vec<Column> = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Int32 => Column::Int32(column.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Column::Int64(column.as_primitive::<Int64Type>().values()),
            _ => Column::Text(column.as_string()),
        })
        .collect();
    for row in 0..batch.num_rows() {
        for column in &columns {
            match column {
                Column::Int32(values) => append_number(text, values[row] as u64),
                Column::Int64(values) => append_number(text, values[row] as u64),
                Column::Text(values) => text.extend_from_slice(values.value(row).as_bytes()),
            }
            text.push(b'|');
        }
        // The last separator gives way to the end of the line.
        text.pop();
        text.push(b'\n');
    }
}

/// Appends the digits of a number; no column of SSB is negative.
fn append_number(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[start..]);
}
