//! Statements of the registry as rows, for SHOW QUERIES and the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;

use super::Entry;
use crate::error::Result;
use crate::redaction::redacted;
use crate::report::{Place, Summary};

/// A statement at one moment.
#[derive(Debug, Clone)]
pub(super) struct Row {
    number: u64,
    session: Option<Arc<str>>,
    text: String,
    state: &'static str,
    /// When its turn came.
    started: Option<SystemTime>,
    /// Since its turn, or since it waits for it.
    time: Duration,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    placement: Option<&'static str>,
    /// The code of the error that it has ended with.
    error: Option<String>,
}

impl Row {
    /// A statement that is listed.
    pub(super) fn listed(entry: &Entry) -> Row {
        let summary = entry.report.summary();
        let state = match (entry.report.cancel().is_cancelled(), entry.began.get()) {
            (true, _) => "ending",
            (false, Some(_)) => "running",
            (false, None) => "queued",
        };
        Row {
            number: entry.number,
            session: entry.session.clone(),
            text: entry.text.clone(),
            state,
            started: entry.began.get().map(|(_, at)| *at),
            time: entry.began.get().map_or(entry.registered, |(began, _)| *began).elapsed(),
            rows: summary.rows,
            bytes: entry.bytes.load(Ordering::Relaxed),
            placement: placement(&summary),
            error: None,
        }
    }

    /// A statement that ends; one that had no turn took no time.
    pub(super) fn ended(entry: &Entry, code: Option<&str>) -> Row {
        let row = Row { error: code.map(str::to_string), ..Row::listed(entry) };
        Row { time: row.turn().unwrap_or_default(), ..row }
    }

    /// The time since its turn, if that came.
    pub(super) fn turn(&self) -> Option<Duration> {
        self.started.map(|_| self.time)
    }
}

/// Where a statement that reads tables ran: all on the CPU, all on the device, or on both; whether it scanned columns
/// in host memory.
fn placement(summary: &Summary) -> Option<&'static str> {
    if summary.fragments.iter().any(|fragment| fragment.place == Place::Columns) {
        return Some("cpu, columns");
    }
    let share = summary.gpu_share()?;
    Some(match share {
        share if share <= 0.0 => "cpu",
        share if share >= 1.0 => "gpu",
        _ => "gpu and cpu",
    })
}

type Column = (&'static str, ArrayRef);

fn texts<'a>(name: &'static str, values: impl Iterator<Item = Option<&'a str>>) -> Column {
    (name, Arc::new(values.collect::<StringArray>()))
}

fn numbers(name: &'static str, values: impl Iterator<Item = u64>) -> Column {
    (name, Arc::new(UInt64Array::from_iter_values(values)))
}

/// The columns that list and log begin with.
fn first(rows: &[Row]) -> Vec<Column> {
    let queries = StringArray::from_iter_values(rows.iter().map(|row| redacted(&row.text)));
    vec![
        numbers("id", rows.iter().map(|row| row.number)),
        texts("session", rows.iter().map(|row| row.session.as_deref())),
        ("query", Arc::new(queries)),
    ]
}

/// The columns that both have then.
fn measured(rows: &[Row]) -> Vec<Column> {
    vec![
        ("seconds", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.time.as_secs_f64())))),
        numbers("rows", rows.iter().map(|row| row.rows)),
        numbers("bytes", rows.iter().map(|row| row.bytes)),
        texts("placement", rows.iter().map(|row| row.placement)),
    ]
}

/// The list.
pub(super) fn list(rows: &[Row]) -> Result<RecordBatch> {
    let mut columns = first(rows);
    columns.push(texts("state", rows.iter().map(|row| Some(row.state))));
    columns.extend(measured(rows));
    batch(columns)
}

/// The log.
pub(super) fn log(rows: &[Row]) -> Result<RecordBatch> {
    let microseconds = |at: SystemTime| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok();
    let started = rows.iter().map(|row| row.started.and_then(microseconds)).collect::<TimestampMicrosecondArray>();
    let mut columns = first(rows);
    columns.push(("started", Arc::new(started.with_timezone("UTC"))));
    columns.extend(measured(rows));
    columns.push(texts("error", rows.iter().map(|row| row.error.as_deref())));
    batch(columns)
}

fn batch(columns: Vec<Column>) -> Result<RecordBatch> {
    let field = |(name, values): &Column| Field::new(*name, values.data_type().clone(), true);
    let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(schema, arrays).map_err(DataFusionError::from)?)
}
