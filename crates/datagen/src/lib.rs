//! Benchmark data made where it is needed: the Star Schema Benchmark and TPC-H, row for row as their reference
//! generators make them, as Arrow record batches, as Parquet files and (SSB) as text, at any scale factor.

mod error;
mod progress;
mod queries;
mod random;
mod ssb;
mod tpch;
mod write;

use std::ops::Range;

pub use error::DatagenError;
pub use progress::{NoProgress, Progress};
pub use queries::{SSB_QUERIES, ssb_query, ssb_variations, tpch_query, tpch_variations};
pub use ssb::{SsbBatches, SsbTable, ssb_batches, write_ssb_tbl};
pub use tpch::{TpchBatches, TpchTable, tpch_batches};
pub use write::{Compression, WriteOptions, WriteReport, WrittenTable, write_ssb_parquet, write_tpch_parquet};

/// The largest scale factor: beyond it keys of customers would pass 32 bits.
pub const MAX_SCALE: f64 = 50_000.0;

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
