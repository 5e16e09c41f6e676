//! Benchmark data made where it is needed, as Arrow record batches, as Parquet files and (SSB) as text: the Star Schema
//! Benchmark and TPC-H row for row as their reference generators make them, TPC-DS, at any scale factor; the tables of
//! ClickBench and of H2O's db-benchmark, drawn with their published distributions, and tables for windows, in any
//! number of rows.

mod clickbench;
mod draw;
mod error;
mod h2o;
mod progress;
mod queries;
mod random;
mod ssb;
mod tpcds;
mod tpch;
mod windows;
mod write;

use std::fmt;
use std::ops::Range;

use arrow::array::RecordBatch;

pub use error::DatagenError;
pub use progress::{NoProgress, Progress};
pub use queries::{
    CLICKBENCH_QUERIES, H2O_QUERIES, SSB_QUERIES, TPCDS_QUERIES, ssb_query, ssb_variations, tpch_query, tpch_variations,
};
pub use ssb::{SsbBatches, SsbTable, ssb_batches, write_ssb_tbl};
pub use tpch::{TpchBatches, TpchTable, tpch_batches};
pub use write::{
    Compression, WriteOptions, WriteReport, WrittenTable, write_clickbench_parquet, write_h2o_parquet,
    write_ssb_parquet, write_tpcds_parquet, write_tpch_parquet, write_windows_parquet,
};

/// The largest scale factor: beyond it keys of customers would pass 32 bits.
pub const MAX_SCALE: f64 = 50_000.0;

/// The most rows of ClickBench's table, of H2O's and of those for windows: their keys are 32-bit integers.
pub const MAX_ROWS: u64 = 1_000_000_000;

/// How large the data of a benchmark are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// The scale factor of SSB, TPC-H and TPC-DS.
    Scale(f64),
    /// The rows of the largest table, of ClickBench, H2O and windows.
    Rows(u64),
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Scale(scale) => write!(out, "at scale factor {scale}"),
            Size::Rows(rows) => write!(out, "of {rows} rows"),
        }
    }
}

/// Batches of one part of a table.
type Batches = Box<dyn Iterator<Item = RecordBatch>>;

/// The batches of a range of rows, of so many rows each but for the last.
fn in_batches(
    rows: Range<u64>,
    batch_rows: usize,
    mut batch: impl FnMut(Range<u64>) -> RecordBatch + 'static,
) -> Batches {
    let mut left = rows;
    Box::new(std::iter::from_fn(move || {
        let end = left.end.min(left.start + batch_rows as u64);
        let range = std::mem::replace(&mut left.start, end)..end;
        (!range.is_empty()).then(|| batch(range))
    }))
}

fn check_rows(rows: u64) -> Result<(), DatagenError> {
    if (1..=MAX_ROWS).contains(&rows) { Ok(()) } else { Err(DatagenError::Rows(rows)) }
}

fn check_scale(sf: f64) -> Result<(), DatagenError> {
    if sf > 0.0 && sf <= MAX_SCALE { Ok(()) } else { Err(DatagenError::Scale(sf)) }
}

/// The units that part `part` of `parts` holds of `units`: sizes differ by one at most.
fn part_range(units: u64, part: usize, parts: usize) -> Result<Range<u64>, DatagenError> {
    if part >= parts {
        return Err(DatagenError::Part { part, parts });
    }
    let cut = |part: usize| (u128::from(units) * part as u128 / parts as u128) as u64;
    Ok(cut(part)..cut(part + 1))
}
