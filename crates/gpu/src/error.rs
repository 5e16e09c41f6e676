//! What can go wrong on a device, in words a user can act on.
//!
//! Every variant has a stable code (`GPU-…`) that the error page of the documentation explains.

use thiserror::Error;

/// Result of a device operation.
pub type Result<T, E = GpuError> = std::result::Result<T, E>;

/// An error of the device layer.
#[derive(Debug, Clone, Error)]
pub enum GpuError {
    /// No usable device: the driver library, the device or its memory is missing.
    #[error("GPU-001 no usable GPU: {reason}; {repair}")]
    Unavailable {
        /// What was looked for and not found.
        reason: String,
        /// The command or step that repairs it.
        repair: String,
    },
    /// The run-time compiler is missing, or older than the GPU.
    #[error("GPU-002 no usable CUDA run-time compiler (NVRTC): {reason}; {repair}")]
    CompilerUnavailable {
        /// Where it was looked for, or what it cannot do.
        reason: String,
        /// The command or step that repairs it.
        repair: String,
    },
    /// Kernel source did not compile: always a defect of Warpcube.
    #[error("GPU-003 kernel '{program}' did not compile: {}", first_error(log))]
    Compile {
        /// Name of the program.
        program: String,
        /// The compiler's log; the error's text has the first error of it.
        log: String,
    },
    /// The device or its budget has not enough memory.
    #[error(
        "GPU-004 out of device memory: {operation} wants {wanted} bytes, {free} of the {budget} bytes budget are free; \
         see SHOW DEVICE TABLES, then EVICT TABLE or raise warpcube.device_memory"
    )]
    OutOfMemory {
        /// What asked for the memory.
        operation: String,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free under the budget.
        free: u64,
        /// The whole budget in bytes.
        budget: u64,
    },
    /// A driver call failed.
    #[error("GPU-005 {operation} failed: {code}: {message}")]
    Driver {
        /// What was being done.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// The driver's own words.
        message: String,
    },
    /// A kernel failed while running; the context is lost for this process.
    #[error("GPU-006 the device was lost in {operation}: {code}: {message}; queries go on on the CPU until a restart")]
    DeviceLost {
        /// The operation in flight.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// The driver's own words.
        message: String,
    },
    /// The emulated device found a defect in a kernel (mismatched collectives, a barrier not all reach, …).
    #[error("GPU-007 emulated device: {0}")]
    Emulator(String),
    /// A call broke the contract of this crate.
    #[error("GPU-008 {0}")]
    Contract(String),
    /// The statement was cancelled while waiting for the device.
    #[error("GPU-009 cancelled")]
    Cancelled,
    /// The device refuses a launch for what it asks for: shared memory, threads, registers or parameters. The device
    /// and its other work go on.
    #[error("GPU-010 {operation} was refused by the device: {code}: {message}")]
    LaunchRefused {
        /// The launch, with its kernel and shape.
        operation: String,
        /// The driver's symbolic error code.
        code: String,
        /// What the launch asks for and the device does not have, or the driver's own words.
        message: String,
    },
}

impl GpuError {
    /// Whether the context is unusable from here on.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, GpuError::DeviceLost { .. })
    }

    /// Whether work was refused because the context was lost before.
    pub fn is_lost_before(&self) -> bool {
        matches!(self, GpuError::DeviceLost { code, .. } if code == LOST_BEFORE)
    }
}

/// The code of [`GpuError::DeviceLost`] for work that comes after the loss; the driver has none like it.
pub(crate) const LOST_BEFORE: &str = "DEVICE_LOST";

/// The first line of a compiler's log that tells of an error.
fn first_error(log: &str) -> &str {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    lines().find(|line| line.contains("error")).or_else(|| lines().next()).unwrap_or("the compiler says nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_one_line() {
        let log = "\nx.cu(3): warning: odd\nx.cu(7): error: no such name\n  p.out = q;\n".to_string();
        let error = GpuError::Compile { program: "x".into(), log };
        assert_eq!(error.to_string(), "GPU-003 kernel 'x' did not compile: x.cu(7): error: no such name");
    }
}
