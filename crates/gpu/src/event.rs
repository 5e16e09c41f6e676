//! Points in the work of a stream that other streams and the host wait for.
//!
//! An event keeps no buffer alive. The stream that recorded it owns the buffers of the work in front of it until that
//! stream is synchronised, and a stream that waits owns those of the work behind its wait: memory that both use is
//! released by the later of them.

use std::fmt;
use std::sync::Arc;

use crate::backend::BackendEvent;
use crate::device::DeviceShared;
use crate::error::Result;

/// A point in the work of a stream ([`crate::Stream::record`]); cheap to clone.
#[derive(Clone)]
pub struct Event {
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) backend: Arc<dyn BackendEvent>,
}

impl Event {
    /// Whether all work in front of it is done. The call does not wait.
    ///
    /// # Errors
    /// Those of that work, which leave the device lost.
    pub fn is_done(&self) -> Result<bool> {
        self.device.check()?;
        self.device.note(self.backend.is_done())
    }

    /// Waits until all work in front of it is done. The stream keeps its buffers until it is synchronised itself.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        self.device.ended(self.backend.synchronize())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Event")
    }
}
