//! Waits of statements for each other: running statements, background loads, turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use warpcube_gpu::GpuError;

use crate::error::Result;
use crate::load::LoadLimits;

/// Longest wait between two tests of a condition.
pub(crate) const WAIT: Duration = Duration::from_millis(20);
/// Time for which other statements overtake an exclusive one.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// A number after every [`Turn`].
pub(crate) const EVERY_TURN: u64 = u64::MAX;
/// The flag of work without cancellation.
pub(crate) static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// Repeats `attempt`, which waits for at most [`WAIT`], until it returns a value.
///
/// # Errors
/// [`GpuError::Cancelled`] once `cancelled` is set.
pub(crate) fn until<T>(cancelled: &AtomicBool, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return Err(GpuError::Cancelled.into());
        }
        if let Some(found) = attempt() {
            return Ok(found);
        }
    }
}

/// A background load in progress, which foreground loads can cancel.
pub(crate) struct BackgroundLoad<'a>(pub(crate) &'a Mutex<Option<Arc<AtomicBool>>>);

impl Drop for BackgroundLoad<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

/// Numbers of statements with pins.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) running: AtomicUsize,
    pub(crate) begun: AtomicUsize,
}

/// A running statement.
#[derive(Debug)]
pub(crate) struct Active(Arc<Activity>);

impl Active {
    /// Counts the statement until the drop.
    pub(crate) fn begin(activity: &Arc<Activity>) -> Active {
        activity.begun.fetch_add(1, Ordering::AcqRel);
        activity.running.fetch_add(1, Ordering::AcqRel);
        Active(activity.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A foreground load that waits for the load in progress.
pub(crate) struct ForegroundLoad<'a>(Option<&'a AtomicUsize>);

impl<'a> ForegroundLoad<'a> {
    /// Counts the load until the drop.
    pub(crate) fn begin(foreground_loads: &'a AtomicUsize, limits: &LoadLimits) -> ForegroundLoad<'a> {
        let foreground_loads = (!limits.in_background).then_some(foreground_loads);
        foreground_loads.inspect(|foreground_loads| _ = foreground_loads.fetch_add(1, Ordering::SeqCst));
        ForegroundLoad(foreground_loads)
    }
}

impl Drop for ForegroundLoad<'_> {
    fn drop(&mut self) {
        self.0.inspect(|foreground_loads| _ = foreground_loads.fetch_sub(1, Ordering::SeqCst));
    }
}

/// Exclusive statements that waited longer than [`PATIENCE`], in order of their turns. Statements that arrive after a
/// turn wait for it; earlier ones do not, so that a statement waits for few turns.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<TurnsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TurnsState {
    next: u64,
    waiting: BTreeSet<u64>,
}

/// The place of an exclusive statement among the turns.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// The number of the next turn. A statement that arrives now waits for all turns below it.
    pub(crate) fn arrive(&self) -> u64 {
        self.state.lock().next
    }

    /// Whether all turns before `arrived` ended; waits for at most [`WAIT`].
    pub(crate) fn has_passed(&self, arrived: u64) -> bool {
        let waits = |state: &TurnsState| state.waiting.first().is_some_and(|first| *first < arrived);
        let mut state = self.state.lock();
        if waits(&state) {
            self.changed.wait_for(&mut state, WAIT);
        }
        !waits(&state)
    }

    /// Begins a turn: statements that arrive later wait for its drop.
    pub(crate) fn take(&self) -> Turn<'_> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number);
        Turn { turns: self, number }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.state.lock().waiting.remove(&self.number);
        self.turns.changed.notify_all();
    }
}
