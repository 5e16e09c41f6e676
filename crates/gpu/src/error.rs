//! Errors of the device layer. Each has a stable code (`GPU-…`) that docs/errors.md explains.

use thiserror::Error;

/// Result of a device operation.
pub type Result<T, E = GpuError> = std::result::Result<T, E>;

/// An error of the device layer.
#[derive(Debug, Clone, Error)]
pub enum GpuError {
    /// No usable device: the driver library, the device or its memory is missing.
    #[error("GPU-001 no usable GPU: {reason}; {repair}")]
    Unavailable {
        /// The missing part.
        reason: String,
        /// The command or step that repairs it.
        repair: String,
    },
    /// The run-time compiler is missing, or older than the GPU.
    #[error("GPU-002 no usable CUDA run-time compiler (NVRTC): {reason}; {repair}")]
    CompilerUnavailable {
        /// The places that were searched, or the missing feature.
        reason: String,
        /// The command or step that repairs it.
        repair: String,
    },
    /// Kernel source does not compile: a defect of Warpcube.
    #[error("GPU-003 kernel '{program}' did not compile: {}", first_error(log))]
    Compile {
        /// Name of the program.
        program: String,
        /// The compiler's log; the message shows its first error.
        log: String,
    },
    /// The device or its budget lacks memory.
    #[error(
        "GPU-004 out of device memory: {operation} wants {wanted} bytes, {free} of the {budget} bytes budget are free; \
         see SHOW DEVICE TABLES, then EVICT TABLE or raise warpcube.device_memory"
    )]
    OutOfMemory {
        /// Purpose of the memory.
        operation: String,
        /// Bytes requested.
        wanted: u64,
        /// Bytes free under the budget.
        free: u64,
        /// The whole budget in bytes.
        budget: u64,
    },
    /// A driver call failed.
    #[error("GPU-005 {operation} failed: {code}: {message}")]
    Driver {
        /// The operation of the call.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// The driver's description.
        message: String,
    },
    /// A kernel failed while it ran; the context is lost for this process.
    #[error("GPU-006 the device was lost in {operation}: {code}: {message}; queries run on the CPU until a restart")]
    DeviceLost {
        /// The operation in flight.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// The driver's description.
        message: String,
    },
    /// The emulated device found a defect in a kernel (mismatched collectives, a barrier that some threads skip, …).
    #[error("GPU-007 emulated device: {0}")]
    Emulator(String),
    /// A call broke the contract of this crate.
    #[error("GPU-008 {0}")]
    Contract(String),
    /// The statement was cancelled while it waited for the device.
    #[error("GPU-009 cancelled")]
    Cancelled,
    /// The device refuses one launch for its shared memory, threads, registers or parameters; other work continues.
    #[error("GPU-010 {operation} was refused by the device: {code}: {message}")]
    LaunchRefused {
        /// The launch, with its kernel and shape.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// The demand and the limit, or the driver's description.
        message: String,
    },
}

impl GpuError {
    /// True if the context is unusable from now on.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, GpuError::DeviceLost { .. })
    }

    /// True if work was refused because the context was lost before.
    pub fn is_lost_before(&self) -> bool {
        matches!(self, GpuError::DeviceLost { code, .. } if code == LOST_BEFORE)
    }
}

/// The code of [`GpuError::DeviceLost`] for work after the loss; the driver has no such code.
pub(crate) const LOST_BEFORE: &str = "DEVICE_LOST";

/// The first line of a compiler's log that contains an error.
fn first_error(log: &str) -> &str {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    lines().find(|line| line.contains("error")).or_else(|| lines().next()).unwrap_or("the compiler gave no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_one_line_of_the_log() {
        let log = "\nx.cu(3): warning: odd\nx.cu(7): error: no such name\n  p.out = q;\n".to_string();
        let error = GpuError::Compile { program: "x".into(), log };
        assert_eq!(error.to_string(), "GPU-003 kernel 'x' did not compile: x.cu(7): error: no such name");
    }
}
