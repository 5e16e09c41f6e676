//! Errors of answers.

use crate::aggregate::AggregateError;
use crate::algorithm::{Algorithm, DeviceAlgorithm};
use crate::error::ModelError;
use crate::query::QueryError;

/// An answer that cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum CubeError {
    /// A text that is no query of the cube.
    #[error("{message}")]
    Query {
        /// The error, with the column.
        message: String,
        /// The line of the query with a mark below the place.
        excerpt: String,
    },
    /// Weights beyond the range of doubles.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A final value is beyond the measure's type.
    #[error("{measure} at {cell} is {value}, beyond {limit}")]
    Overflow {
        /// Names of the cell's elements.
        cell: String,
        /// The measure.
        measure: String,
        /// The value.
        value: String,
        /// The limit.
        limit: String,
    },
    /// An aggregation that is refused or stopped.
    #[error(transparent)]
    Aggregate(AggregateError),
    /// An algorithm of a device is named where there is no device.
    #[error(
        "{algorithm} is an algorithm of a device, and the cube is aggregated without one; the CPU has {}",
        Algorithm::ALL.map(Algorithm::name).join(", ")
    )]
    NoDevice {
        /// The algorithm.
        algorithm: DeviceAlgorithm,
    },
    /// An algorithm of a device is named and cannot aggregate the area.
    #[error("{algorithm} does not aggregate this: {reason}; without a name the cost model chooses an algorithm")]
    Refused {
        /// The algorithm.
        algorithm: DeviceAlgorithm,
        /// Why.
        reason: String,
    },
    /// A cross-tab that is too large to be laid out.
    #[error(
        "the cross-tab shows {shown} cells, at most {most}: ask for fewer, leave `empty` out, or write cells in long \
         form (--format csv), which has no such limit"
    )]
    Shown {
        /// Places of cells.
        shown: u64,
        /// The limit.
        most: u64,
    },
    /// A device that fails.
    #[error("{0}")]
    Device(String),
    /// Arrays that do not fit.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl CubeError {
    pub(crate) fn query(error: &QueryError, text: &str) -> CubeError {
        CubeError::Query { message: error.to_string(), excerpt: error.excerpt(text) }
    }

    /// True if the aggregation was stopped on request.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, CubeError::Aggregate(AggregateError::Cancelled))
    }
}
