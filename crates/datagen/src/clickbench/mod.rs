//! ClickBench's table `hits`: the 105 columns of the published one, drawn, since the published one (100 million page
//! views of a web analytics service, obfuscated) cannot be made anew. Distributions are those that published answers of
//! its queries show ([`published`]); distinct counts grow with the rows. Rows come in no order; a row is drawn by
//! itself ([`hit`]), and each column is a function of it ([`columns`]).

mod columns;
mod hit;
mod published;
mod words;

use std::sync::Arc;

use arrow::array::TimestampMicrosecondArray;
use arrow::array::{ArrayRef, Date32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::{Batches, DatagenError, check_rows, in_batches, part_range};
use columns::{COLUMNS, Make};
use hit::{Hit, Hits};

/// The table's name in SQL.
pub(crate) const TABLE: &str = "hits";
/// Columns whose values hardly repeat within a row group.
pub(crate) const DISTINCT_COLUMNS: [&str; 8] =
    ["WatchID", "EventTime", "ClientEventTime", "LocalEventTime", "HID", "FUniqID", "WindowName", "OpenerName"];

/// The schema: numbers Int16, Int32 and Int64, times in microseconds, dates Date32, text Utf8, no nulls.
pub(crate) fn schema() -> SchemaRef {
    let kind = |make: &Make| match make {
        Make::Short(_) => DataType::Int16,
        Make::Int(_) => DataType::Int32,
        Make::Long(_) => DataType::Int64,
        Make::Date(_) => DataType::Date32,
        Make::Time(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        Make::Text(_) => DataType::Utf8,
    };
    let fields = COLUMNS.iter().map(|(name, make)| Field::new(*name, kind(make), false));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The batches of part `part` of `parts` of a table of `rows` rows, parts counted from 0.
pub(crate) fn batches(rows: u64, part: usize, parts: usize, batch_rows: usize) -> Result<Batches, DatagenError> {
    check_rows(rows)?;
    let (hits, schema) = (Hits::new(rows), schema());
    Ok(in_batches(part_range(rows, part, parts)?, batch_rows, move |range| {
        let rows: Vec<Hit> = range.map(|row| hits.at(row)).collect();
        let columns = COLUMNS.iter().map(|(_, make)| column(make, &rows)).collect();
        // The schema is made of the same list of columns.
        RecordBatch::try_new(schema.clone(), columns).expect("columns as the schema says")
    }))
}

/// A column of some rows.
fn column(make: &Make, rows: &[Hit]) -> ArrayRef {
    match make {
        Make::Short(value) => Arc::new(Int16Array::from_iter_values(rows.iter().map(value))),
        Make::Int(value) => Arc::new(Int32Array::from_iter_values(rows.iter().map(value))),
        Make::Long(value) => Arc::new(Int64Array::from_iter_values(rows.iter().map(value))),
        Make::Date(value) => Arc::new(Date32Array::from_iter_values(rows.iter().map(value))),
        Make::Time(seconds) => {
            let micros = rows.iter().map(|hit| 1_000_000 * seconds(hit));
            Arc::new(TimestampMicrosecondArray::from_iter_values(micros))
        }
        Make::Text(write) => {
            let (mut builder, mut text) = (StringBuilder::new(), String::new());
            for hit in rows {
                text.clear();
                write(hit, &mut text);
                builder.append_value(&text);
            }
            Arc::new(builder.finish())
        }
    }
}
