//! Progress and cancellation of a build.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::BuildError;

/// Shared between a build and its caller: rows of facts done, and the wish to stop, which is polled once a batch.
#[derive(Debug, Default)]
pub struct BuildProgress {
    cancelled: AtomicBool,
    rows: AtomicU64,
}

impl BuildProgress {
    /// A progress of nothing.
    pub fn new() -> BuildProgress {
        BuildProgress::default()
    }

    /// Asks the build to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Rows of the facts that were read.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Adds rows that were read.
    pub(super) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Fails if the build is to stop.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(BuildError::Cancelled) } else { Ok(()) }
    }
}
