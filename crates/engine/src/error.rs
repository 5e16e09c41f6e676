//! What can go wrong in a fragment.

use std::sync::Arc;

use thiserror::Error;
use warpcube_column::{ColumnError, LoadReport};
use warpcube_gpu::{GpuError, Program};

/// Result of an engine operation.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, Clone, Error)]
pub enum EngineError {
    /// The fragment cannot run on the device; the reason is for EXPLAIN and reports. The statement runs on the CPU.
    #[error("ENG-001 not on the device: {0}")]
    Unsupported(String),
    /// A row raised an evaluation error (division by zero, overflow). Where the caller falls back, the CPU's outcome
    /// stands.
    #[error("ENG-002 a row raised {0} on the device")]
    Evaluation(&'static str),
    /// A fragment that contradicts itself: a defect of the caller.
    #[error("ENG-003 malformed fragment: {0}")]
    Malformed(String),
    /// Generated source could not be written where it was asked for.
    #[error(
        "ENG-004 cannot write generated source to {path}: {error}; name a folder that can be written",
        path = path.display()
    )]
    Dump {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        error: String,
    },
    /// A compiler would have to run first, and the caller may take the answer from elsewhere
    /// ([`crate::RunOptions::elsewhere`]).
    #[error("ENG-005 its kernels are not compiled yet")]
    NotCompiled(Arc<NotCompiled>),
    /// A column failed.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// The device failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// What a run was waiting for that did not wait.
#[derive(Debug)]
pub struct NotCompiled {
    /// The programs, for [`warpcube_gpu::Device::request`].
    pub programs: Vec<Program>,
    /// What was loaded before; it stays on the device.
    pub loaded: LoadReport,
}

impl EngineError {
    /// Whether it was told to stop, while it loaded or ran.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            EngineError::Gpu(GpuError::Cancelled) | EngineError::Column(ColumnError::Gpu(GpuError::Cancelled))
        )
    }

    /// Whether the statement should run on the CPU instead, silently but counted.
    pub fn falls_back(&self) -> bool {
        match self {
            EngineError::Unsupported(_) | EngineError::Evaluation(_) => true,
            // The device goes on; this launch asks for what it does not have.
            EngineError::Gpu(GpuError::LaunchRefused { .. })
            | EngineError::Column(ColumnError::Gpu(GpuError::LaunchRefused { .. })) => true,
            EngineError::Column(error) => error.is_unsupported(),
            EngineError::Malformed(_)
            | EngineError::Dump { .. }
            | EngineError::NotCompiled(_)
            | EngineError::Gpu(_) => false,
        }
    }
}

/// Shorthand for the one refusal.
pub(crate) fn unsupported<T>(reason: impl Into<String>) -> Result<T> {
    Err(EngineError::Unsupported(reason.into()))
}
