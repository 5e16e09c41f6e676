//! Progress and cancellation of an aggregation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::AggregateError;

/// Shared between an aggregation and its caller: pages done, pages known, and the wish to stop.
///
/// An algorithm polls the wish once a page of cells, or once as many results of a later step.
#[derive(Debug, Default)]
pub struct Progress {
    cancelled: Arc<AtomicBool>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// A progress of nothing.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Asks the aggregation to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if the aggregation was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The wish to stop, for work that polls it by itself.
    pub(crate) fn switch(&self) -> Arc<AtomicBool> {
        self.cancelled.clone()
    }

    /// Steps done, a page of cells each.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Steps known so far; grows when a further measure or step begins.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Announces further steps.
    pub(super) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Fails if the aggregation is to stop.
    pub(super) fn check(&self) -> Result<(), AggregateError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(AggregateError::Cancelled) } else { Ok(()) }
    }

    /// Ends one step; fails if the aggregation is to stop.
    pub(super) fn step(&self) -> Result<(), AggregateError> {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.check()
    }
}
