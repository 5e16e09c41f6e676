//! Programs that were requested of a device.

use std::fmt;
use std::sync::Arc;

use crate::backend::BackendModule;
use crate::compile::Handle;
use crate::device::{DeviceShared, Module};
use crate::error::Result;

/// Programs that were requested of a device ([`crate::Device::request`]). Dropping it takes nothing back.
pub struct Compilation {
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) programs: Vec<Handle>,
}

impl fmt::Debug for Compilation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compilation").field("programs", &self.programs.len()).finish_non_exhaustive()
    }
}

impl Compilation {
    /// Waits for all of them; their modules in the order of the programs.
    ///
    /// # Errors
    /// The first one's that failed; [`crate::GpuError::Cancelled`] if the request was taken back.
    pub fn wait(&self) -> Result<Vec<Arc<Module>>> {
        self.programs.iter().map(|handle| self.module(handle, handle.wait())).collect()
    }

    /// As [`Compilation::wait`], or none while one of them waits or runs.
    pub fn poll(&self) -> Option<Result<Vec<Arc<Module>>>> {
        self.programs.iter().map(|handle| Some(self.module(handle, handle.poll()?))).collect()
    }

    fn module(&self, handle: &Handle, outcome: Result<Arc<dyn BackendModule>>) -> Result<Arc<Module>> {
        let (name, backend) = (handle.program().name().to_string(), self.device.note(outcome)?);
        Ok(Arc::new(Module { name, device: self.device.clone(), backend }))
    }
}
