//! Errors of aggregation.

use thiserror::Error;

use crate::progress::Stopped;

/// An error of an aggregation. Dimensions, measures and targets count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AggregateError {
    /// A weight is NaN or infinite, or weights of one base element add up to infinity.
    #[error("target {target}: the weight of base element {base} is {weight}; weights are finite")]
    Weight {
        /// The target.
        target: usize,
        /// The base element.
        base: u32,
        /// The weight as text.
        weight: String,
    },
    /// A target names a base element that the dimension does not have.
    #[error("target {target} names base element {base}; the dimension has {bases}")]
    Base {
        /// The target.
        target: usize,
        /// The base element.
        base: u32,
        /// Base elements of the dimension.
        bases: u32,
    },
    /// The area has another number of dimensions than the facts, or a measure's map has other targets.
    #[error("the area does not fit the cube: {reason}")]
    Shape {
        /// The difference.
        reason: String,
    },
    /// The area has more targets than the limit.
    #[error("the area has {targets} targets ({shape}); at most {limit} are allowed: choose fewer elements")]
    AreaTooLarge {
        /// Targets of the area.
        targets: u128,
        /// Targets of each dimension, as a product.
        shape: String,
        /// The limit.
        limit: u64,
    },
    /// A final value is beyond the measure's type.
    #[error("target {target:?}: measure {measure} is {value}, which is beyond {limit}")]
    Overflow {
        /// Target of each dimension.
        target: Vec<u32>,
        /// Name of the measure.
        measure: String,
        /// The value as text.
        value: String,
        /// The type that overflows.
        limit: &'static str,
    },
    /// The aggregation was cancelled.
    #[error("the aggregation was cancelled")]
    Cancelled,
}

impl From<Stopped> for AggregateError {
    fn from(_: Stopped) -> AggregateError {
        AggregateError::Cancelled
    }
}
