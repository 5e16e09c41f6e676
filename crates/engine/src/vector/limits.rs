//! What bounds a run: its cancellation, and the bytes of what it makes.

use std::sync::atomic::{AtomicU64, Ordering};

use warpcube_gpu::GpuError;

use crate::error::{Result, unsupported};
use crate::format::in_bytes;

/// What bounds a run.
pub(super) struct HostLimits<'a> {
    pub(super) is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Most bytes of tables, groups and rows.
    pub(super) bytes: u64,
    /// Those that there are.
    pub(super) used: AtomicU64,
}

impl HostLimits<'_> {
    /// Counts bytes that are taken.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] once the run is cancelled; unsupported past the bytes of a run.
    pub(super) fn take(&self, bytes: u64) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if (self.is_cancelled)() {
            return Err(GpuError::Cancelled.into());
        }
        if used > self.bytes {
            let most = in_bytes(self.bytes);
            return unsupported(format!("tables, groups and rows of more than {most} on the CPU's columns"));
        }
        Ok(())
    }
}
