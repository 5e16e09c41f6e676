//! Errors of answers.

use crate::aggregate::{AggregateError, Algorithm};
use crate::ask::{AskError, Asked};
use crate::device::DeviceAlgorithm;
use crate::error::ModelError;
use crate::facts::{Rule, ValueType};
use crate::model::CubeModel;
use crate::query::{QueryError, Target};
use crate::view::decimal_text;

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
    #[error(transparent)]
    Shown(Box<AskError>),
    /// A device that fails.
    #[error("{0}")]
    Device(String),
    /// Arrays that do not fit.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl From<AskError> for CubeError {
    fn from(error: AskError) -> CubeError {
        match error {
            AskError::Model(error) => error.into(),
            AskError::Aggregate(error) => CubeError::Aggregate(error),
            AskError::Shown { .. } => CubeError::Shown(Box::new(error)),
        }
    }
}

impl CubeError {
    pub(super) fn query(error: &QueryError, text: &str) -> CubeError {
        CubeError::Query { message: error.to_string(), excerpt: error.excerpt(text) }
    }

    /// True if the aggregation was stopped on request.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, CubeError::Aggregate(AggregateError::Cancelled))
    }

    /// An error of an aggregation, with names in the place of numbers.
    pub fn aggregate(error: AggregateError, model: &CubeModel, asked: &Asked) -> CubeError {
        let AggregateError::Overflow { target, measure, value, limit } = error else {
            return CubeError::Aggregate(error);
        };
        let names = target.iter().zip(&asked.targets).zip(model.dimensions());
        let names = names.map(|((target, targets), dimension)| match &targets[*target as usize] {
            Target::Element(element) => dimension.element(*element).name().to_string(),
            _ => format!("a sum over {}", dimension.name()),
        });
        let cell = names.collect::<Vec<_>>().join(", ");
        let scale = model.measure_index(&measure).map(|position| &model.measures()[position]);
        let scale = scale.filter(|measure| measure.rule != Rule::Count).and_then(|measure| match measure.value {
            ValueType::Decimal { scale } => Some(scale),
            ValueType::Double => None,
        });
        match scale {
            Some(scale) => CubeError::Overflow {
                value: scaled(&value, scale),
                limit: format!("{}, the largest decimal({scale})", decimal_text(i64::MAX.into(), scale)),
                cell,
                measure,
            },
            None => CubeError::Overflow { cell, measure, value, limit: limit.to_string() },
        }
    }
}

/// A number of units of 10^-`scale`, as text, as the number itself.
fn scaled(units: &str, scale: u8) -> String {
    match (units.parse::<i128>(), units.parse::<f64>()) {
        (Ok(units), _) => decimal_text(units, scale),
        (_, Ok(units)) => format!("{:e}", units / 10_f64.powi(scale.into())),
        _ => units.to_string(),
    }
}
