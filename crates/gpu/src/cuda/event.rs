//! One CUDA event.

use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};

use super::driver::{Context, check};
use crate::backend::BackendEvent;
use crate::error::Result;

/// An event; destroyed by its last owner, which the driver allows while streams still wait for it.
pub(super) struct CudaEvent {
    context: Arc<Context>,
    pub(super) handle: sys::CUevent,
}

// SAFETY: event handles may be used from any thread with the context current, by several at once.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// An event that records its time if it is `timed`.
    pub(super) fn new(context: Arc<Context>, timed: bool) -> Result<CudaEvent> {
        context.bind()?;
        let flags =
            if timed { sys::CUevent_flags::CU_EVENT_DEFAULT } else { sys::CUevent_flags::CU_EVENT_DISABLE_TIMING };
        let handle = check("creating an event", result::event::create(flags))?;
        Ok(CudaEvent { context, handle })
    }
}

impl BackendEvent for CudaEvent {
    fn is_done(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the event is live.
        match unsafe { result::event::query(self.handle) } {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            other => check("asking for an event", other).map(|()| true),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the event is live.
        check("waiting for an event", unsafe { result::event::synchronize(self.handle) })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { result::event::destroy(self.handle) };
        }
    }
}
