//! Progress and cancellation of work that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between work and its caller: steps done, steps known, and the wish to stop, which is polled between steps.
///
/// A step of an aggregation is a page of cells, or as many results of a later part; one of a build is a row of facts.
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

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if the work was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The wish to stop, for work that polls it by itself.
    pub(crate) fn switch(&self) -> Arc<AtomicBool> {
        self.cancelled.clone()
    }

    /// Steps done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Steps known so far; grows when a further part begins; 0 where they are not known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Announces further steps.
    pub(crate) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Fails if the work is to stop.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if self.is_cancelled() { Err(Stopped) } else { Ok(()) }
    }

    /// Adds steps that are done.
    pub(crate) fn add(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// Ends one step; fails if the work is to stop.
    pub(crate) fn step(&self) -> Result<(), Stopped> {
        self.add(1);
        self.check()
    }
}

/// The work was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;
