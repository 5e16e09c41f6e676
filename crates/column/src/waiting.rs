//! Statements that wait for each other at the door of the device, and what they see of one another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use warpcube_gpu::GpuError;

use crate::error::Result;
use crate::limits::LoadLimits;

/// How long to wait for another statement before looking again.
pub(crate) const WAIT: Duration = Duration::from_millis(20);
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

/// Takes back what stops a load.
pub(crate) struct GivingWay<'a>(pub(crate) &'a Mutex<Option<Arc<AtomicBool>>>);

impl Drop for GivingWay<'_> {
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

/// A load that waits for one in progress and gives no way.
pub(crate) struct Hurrying<'a>(Option<&'a AtomicUsize>);

impl<'a> Hurrying<'a> {
    /// Counts it until it is dropped.
    pub(crate) fn begin(hurrying: &'a AtomicUsize, limits: &LoadLimits) -> Hurrying<'a> {
        let hurrying = (!limits.gives_way).then_some(hurrying);
        hurrying.inspect(|hurrying| _ = hurrying.fetch_add(1, Ordering::SeqCst));
        Hurrying(hurrying)
    }
}

impl Drop for Hurrying<'_> {
    fn drop(&mut self) {
        self.0.inspect(|hurrying| _ = hurrying.fetch_sub(1, Ordering::SeqCst));
    }
}
