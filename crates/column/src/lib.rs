//! Columns: storage types, facts, encodings, segments on the device, loads and residency.
//!
//! Arrow arrays become plain segments, padded to whole vectors of [`VECTOR_ROWS`] rows, and then encoded segments
//! ([`format::Encoding`], [`EncodingChoice`]). Readers of table files are outside of this crate. Invariants: statistics
//! bound every valid value of a column; no null slot is read as a value; all columns of a resident table have the same
//! chunks.
//!
//! Modules are layers; a layer uses the layers before it: `units`, `error`, `source`; [`mod@format`], columns as bytes
//! on the CPU; `device`, segments and their kernels; `host`, segments in host memory; `load`; `residency`.

mod device;
mod error;
pub mod format;
mod host;
mod load;
mod residency;
mod source;
mod units;

pub use device::{
    ColumnLayout, ColumnReader, Constant, GROUP_SLOTS, LINE_BYTES, PLAIN_LIBRARY, Relation, ResidentColumn, Segment,
    TILE_SLOTS, View, decoding_library, program_of_texts, programs_of_first_loads, programs_of_plain_loads,
};
pub use error::{ColumnError, Result};
pub use format::EncodingChoice;
pub use host::{ColumnVectors, Values, VectorBuffer, rows_of_places};
pub use load::{LoadLimits, LoadReport, LoadThreads, cores};
pub use residency::{
    ChangeCounts, ColumnOrigin, ColumnSummary, Location, Pinned, Residency, TableRequest, TableSummary,
};
pub use source::{ColumnFile, ColumnScan, ColumnSource};
pub use units::{CHUNK_ROWS, ColumnFacts, Dictionary, Statistics, Storage, Traits, VECTOR_ROWS, is_string};
