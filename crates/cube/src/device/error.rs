//! Errors of aggregations on a device.

use warpcube_column::ColumnError;
use warpcube_gpu::GpuError;

use crate::aggregate::AggregateError;

/// An aggregation that a device does not do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The aggregation is one for the CPU.
    #[error("the aggregation runs on the CPU: {reason}")]
    Unsupported {
        /// Why.
        reason: String,
    },
    /// Facts that cannot be loaded, or no room for them.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// A device that fails.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// A final value beyond its type.
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
}
