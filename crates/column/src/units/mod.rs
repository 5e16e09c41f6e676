//! Vectors and chunks, machine types, facts of columns.

mod dictionary;
mod facts;
mod statistics;
mod storage;

pub use dictionary::Dictionary;
pub use facts::ColumnFacts;
pub use statistics::{Statistics, Traits};
pub use storage::{Storage, is_string};

/// Rows of a vector, the unit of work of a warp.
pub const VECTOR_ROWS: usize = 1024;
/// Most rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << 20;
