//! What data *is*: storage types, statistics, dictionaries, segments on the device and the tables made of them.
//!
//! Columns enter as Arrow arrays and become plain segments, padded to whole vectors of [`VECTOR_ROWS`] rows, and
//! encoded ones where that is worth it or asked for ([`format::Encoding`], [`EncodingChoice`]). No reader code goes
//! past this crate. Invariants: statistics bound every valid value of a column; a null slot is never read as a value;
//! all columns of a resident table share one list of chunks.
//!
//! Modules are layers, each of which uses those before it alone: `units`, `error`, `source`; [`mod@format`], the bytes
//! of columns on the CPU; `device`, segments and the kernels over them; `load`; `residency`.

mod device;
mod error;
pub mod format;
mod load;
mod residency;
mod source;
mod units;

pub use device::{
    ColumnLayout, ColumnReader, Constant, GROUP_SLOTS, LINE_BYTES, PLAIN_LIBRARY, Relation, ResidentColumn, RowCount,
    Segment, TILE_SLOTS, View, decoding_library, programs_of_first_loads, programs_of_plain_loads,
};
pub use error::{ColumnError, Result};
pub use format::EncodingChoice;
pub use load::{LoadLimits, LoadReport, OwnThreads};
pub use residency::{Changes, ColumnSummary, Origin, Pinned, Residency, TableRequest, TableSummary, Whereabouts};
pub use source::{ColumnFile, ColumnScan, ColumnSource};
pub use units::{CHUNK_ROWS, ColumnFacts, Dictionary, Statistics, Storage, Traits, VECTOR_ROWS, is_string};
