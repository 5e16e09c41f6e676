//! Requested programs of a device.

use std::sync::Arc;

use crate::backend::BackendModule;
use crate::compile::Handle;
use crate::device::{DeviceShared, Module};
use crate::error::Result;

/// Requested programs of a device ([`crate::Device::request`]); dropping it cancels none.
pub struct Compilation {
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) programs: Vec<Handle>,
}

impl Compilation {
    /// Waits for all modules, in the order of the programs.
    ///
    /// # Errors
    /// The first error of a program; [`crate::GpuError::Cancelled`] for a cancelled request.
    pub fn wait(&self) -> Result<Vec<Arc<Module>>> {
        self.programs.iter().map(|handle| self.module(handle.wait())).collect()
    }

    /// As [`Compilation::wait`], or none while a request waits or runs.
    pub fn poll(&self) -> Option<Result<Vec<Arc<Module>>>> {
        self.programs.iter().map(|handle| Some(self.module(handle.poll()?))).collect()
    }

    fn module(&self, outcome: Result<Arc<dyn BackendModule>>) -> Result<Arc<Module>> {
        Ok(Arc::new(Module { device: self.device.clone(), backend: self.device.note(outcome)? }))
    }
}
