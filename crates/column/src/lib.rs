//! What data *is*: storage types, statistics, dictionaries, segments on the device and the tables made of them.
//!
//! Columns enter as Arrow arrays and become plain segments, padded to whole vectors of [`VECTOR_ROWS`] rows, and
//! encoded ones where that is worth it or asked for ([`Layout`], [`EncodingChoice`]). No reader code goes past this
//! crate. Invariants: statistics bound every valid value of a column; a null slot is never read as a value; all
//! columns of a resident table share one list of chunks.

mod book;
mod build;
mod choice;
mod coding;
mod dictionary;
mod encode;
pub mod encoding;
mod error;
mod host;
mod kept;
mod kernels;
mod layout;
mod limits;
mod load;
mod profiler;
mod remap;
mod resident;
mod segment;
mod staging;
mod statistics;
mod storage;
mod transcode;
mod waiting;

pub use book::{Changes, ColumnSummary, Origin, TableSummary, Whereabouts};
pub use build::{CHUNK_ROWS, VECTOR_ROWS};
pub use dictionary::Dictionary;
pub use error::{ColumnError, Result};
pub use kept::ColumnFile;
pub use kernels::{Constant, PLAIN_LIBRARY, View, decoding_library};
pub use layout::{EncodingChoice, Layout};
pub use limits::{LoadLimits, LoadReport, OwnThreads};
pub use load::{ColumnScan, ColumnSource};
pub use resident::{Pinned, PinnedTable, Residency, TableRequest};
pub use segment::{ResidentColumn, Segment, Traits};
pub use statistics::Statistics;
pub use storage::{Storage, is_string};
pub use transcode::{programs_of_first_loads, programs_of_plain_loads};
