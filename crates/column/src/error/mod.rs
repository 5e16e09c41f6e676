//! Errors of columns.

pub(crate) mod encoding;

use std::sync::Arc;

use thiserror::Error;
use warpcube_gpu::GpuError;

use self::encoding::EncodingError;

/// Result of a column operation.
pub type Result<T, E = ColumnError> = std::result::Result<T, E>;

/// An error of columns and their residency.
#[derive(Debug, Clone, Error)]
pub enum ColumnError {
    /// The column cannot be resident; its queries run on the CPU.
    #[error("COL-001 column '{column}' stays on the CPU: {reason}")]
    Unsupported {
        /// Name of the column.
        column: String,
        /// Why it cannot be resident.
        reason: String,
    },
    /// Columns, hash tables and results of the statement exceed the device budget, with all other columns evicted.
    #[error(
        "COL-002 the statement does not fit the device budget: {wanted} more bytes are wanted for {purpose}, \
         {available} of {budget} are available; raise warpcube.device_memory, on the CPU \
         warpcube.host_memory, or use placement files"
    )]
    OverBudget {
        /// The purpose of the bytes: a table's columns, a column's copies, or hash tables and results.
        purpose: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes available.
        available: u64,
        /// The budget in bytes.
        budget: u64,
    },
    /// The table changed during its load.
    #[error("COL-003 table '{table}' changed while it was loaded: {detail}")]
    Changed {
        /// The table.
        table: String,
        /// The difference.
        detail: String,
    },
    /// The parameters of an encoding contradict the values of the column: always a defect of Warpcube.
    #[error("COL-004 {0}")]
    Encoding(#[from] EncodingError),
    /// The source of the data failed.
    #[error("{0}")]
    Source(Arc<dyn std::error::Error + Send + Sync>),
    /// The device failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

impl ColumnError {
    /// [`ColumnError::Unsupported`].
    pub fn unsupported(column: &str, reason: impl Into<String>) -> ColumnError {
        ColumnError::Unsupported { column: column.to_string(), reason: reason.into() }
    }

    /// [`ColumnError::Changed`].
    pub(crate) fn changed(table: &str, detail: impl Into<String>) -> ColumnError {
        ColumnError::Changed { table: table.to_string(), detail: detail.into() }
    }

    /// The error of a table's reader.
    pub fn source(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ColumnError {
        ColumnError::Source(Arc::from(error.into()))
    }

    /// Whether the statement can run on the CPU instead.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, ColumnError::Unsupported { .. })
    }
}
