//! What columns are counted in, and what is known of one: vectors and chunks, machine types, facts.

mod dictionary;
mod facts;
mod statistics;
mod storage;

pub use dictionary::Dictionary;
pub use facts::ColumnFacts;
pub use statistics::{Statistics, Traits};
pub use storage::{Storage, is_string};

/// Rows of a vector, the unit a warp works on.
pub const VECTOR_ROWS: usize = 1024;
/// Most rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << 20;
