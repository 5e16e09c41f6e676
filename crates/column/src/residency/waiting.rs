//! How statements wait for each other: running statements, background loads, turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use warpcube_gpu::GpuError;

use crate::error::Result;
use crate::load::LoadLimits;

/// How long to wait for another statement before looking again.
pub(crate) const WAIT: Duration = Duration::from_millis(20);
/// How long a statement that wants to be the only one lets others overtake it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// Later than every [`Turn`] there is.
pub(crate) const EVERY_TURN: u64 = u64::MAX;
/// The flag of work that no statement cancels.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Calls `attempt`, which waits for [`WAIT`] at most, until it gives something or `cancelled` is raised.
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

/// A background load; a foreground load may cancel it until this is dropped.
pub(crate) struct BackgroundLoad<'a>(pub(crate) &'a Mutex<Option<Arc<AtomicBool>>>);

impl Drop for BackgroundLoad<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

/// Statements that hold something.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) running: AtomicUsize,
    pub(crate) begun: AtomicUsize,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Active(Arc<Activity>);

impl Active {
    /// Counts it until it is dropped.
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
    /// Counts it until it is dropped.
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

/// Statements that have waited for longer than [`PATIENCE`] to be the only one, by the order in which they lost it.
/// Statements that arrive later wait behind them; those that arrived before do not, so that each waits for a few.
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

/// The place of a statement among those that have lost their patience.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// The turn of a statement that arrives now: it waits for all turns below.
    pub(crate) fn arrive(&self) -> u64 {
        self.state.lock().next
    }

    /// Whether no turn before `arrived` is waiting any more; waits for [`WAIT`] at most.
    pub(crate) fn has_passed(&self, arrived: u64) -> bool {
        let waits = |state: &TurnsState| state.waiting.first().is_some_and(|first| *first < arrived);
        let mut state = self.state.lock();
        if waits(&state) {
            self.changed.wait_for(&mut state, WAIT);
        }
        !waits(&state)
    }

    /// Makes all that arrive from now on wait until the turn is dropped.
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
