//! Errors of columns.

pub(crate) mod encoding;

use std::sync::Arc;

use thiserror::Error;
use warpcube_gpu::GpuError;

use self::encoding::EncodingError;

/// Result of a column operation.
pub type Result<T, E = ColumnError> = std::result::Result<T, E>;

/// An error of the column layer.
#[derive(Debug, Clone, Error)]
pub enum ColumnError {
    /// The column cannot be kept on the device; queries that need it run on the CPU.
    #[error("COL-001 column '{column}' stays on the CPU: {reason}")]
    Unsupported {
        /// Name of the column.
        column: String,
        /// Why it cannot be kept.
        reason: String,
    },
    /// The budget has no room for the columns of the statement, even with all others evicted.
    #[error(
        "COL-002 the statement's columns do not fit the device budget: table '{table}' wants {wanted} more bytes, \
         {available} of {budget} are available; raise warpcube.device_memory or use placement cpu"
    )]
    OverBudget {
        /// The table being loaded.
        table: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes available.
        available: u64,
        /// The whole budget.
        budget: u64,
    },
    /// The data changed while it was being loaded.
    #[error("COL-003 table '{table}' changed while it was loaded: {detail}")]
    Changed {
        /// The table.
        table: String,
        /// What was seen.
        detail: String,
    },
    /// An encoding's parameters do not belong to the column's values: always a defect of Warpcube.
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
    /// The error of a table's reader.
    pub fn source(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ColumnError {
        ColumnError::Source(Arc::from(error.into()))
    }

    /// Whether the statement should simply run on the CPU.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, ColumnError::Unsupported { .. })
    }
}
