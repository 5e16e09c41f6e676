//! Errors of encodings.

use thiserror::Error;

use crate::units::Storage;

/// Result of an encoding operation.
pub type Result<T, E = EncodingError> = std::result::Result<T, E>;

/// An error of encoding or decoding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodingError {
    /// Values, validity words and rows contradict each other.
    #[error("not a segment: {0}")]
    Shape(String),
    /// The encoding is not for values of this type.
    #[error("encoding {encoding} does not apply to {storage:?}: {reason}")]
    NotApplicable {
        /// Name of the encoding.
        encoding: &'static str,
        /// Type of the values.
        storage: Storage,
        /// Why the type cannot have it.
        reason: &'static str,
    },
    /// The parameters of the encoding cannot hold a value.
    #[error("encoding {encoding} cannot hold row {row}: {reason}")]
    Overflow {
        /// Name of the encoding.
        encoding: &'static str,
        /// The first such row.
        row: usize,
        /// Why the row does not fit.
        reason: String,
    },
    /// The parameters of the encoding cannot hold a column.
    #[error("encoding {0} cannot hold all values with its parameters")]
    Parameters(&'static str),
    /// Encoded bytes contradict each other or their parameters.
    #[error("encoded bytes are damaged: {0}")]
    Damaged(&'static str),
}
