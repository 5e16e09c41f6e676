//! What an emulated device and its streams share.

use std::sync::Arc;

use super::EmulatorOptions;
use super::compiler::Toolchain;
use super::memory::Memory;
use crate::error::{GpuError, Result};

/// State shared by the device and its streams.
pub(super) struct Shared {
    pub(super) options: EmulatorOptions,
    pub(super) toolchain: Arc<Toolchain>,
    pub(super) memory: Memory,
}

impl Shared {
    /// Waits for submitted work, all of which is done: checks the guards of buffers.
    pub(super) fn wait(&self, operation: &str) -> Result<()> {
        if self.options.faults.failed_wait.is_due() {
            let (operation, message) = (operation.to_string(), "an injected fault".to_string());
            return Err(GpuError::Driver { operation, code: "EMULATED_FAULT".into(), message });
        }
        self.memory.check_guards(operation)
    }
}

/// The error of an injected loss.
pub(super) fn lost(operation: String) -> GpuError {
    let message = "an injected fault".to_string();
    GpuError::DeviceLost { operation, code: "EMULATED_FAULT".into(), message }
}
