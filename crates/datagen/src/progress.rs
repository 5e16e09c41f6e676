//! How a caller follows a long generation and stops it.

/// Follows a generation. Calls come from all worker threads, after every batch of some thousand rows.
pub trait Progress: Sync {
    /// `done` of `total` rows of a table have been made.
    fn rows(&self, table: &str, done: u64, total: u64);

    /// Whether to stop: the generation then ends with [`DatagenError::Cancelled`](crate::DatagenError::Cancelled),
    /// leaving no partial file behind.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Follows nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn rows(&self, _table: &str, _done: u64, _total: u64) {}
}
