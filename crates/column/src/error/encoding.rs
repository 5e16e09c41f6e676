//! Errors of encodings.

use thiserror::Error;

use crate::units::Storage;

/// Result of an encoding operation.
pub type Result<T, E = EncodingError> = std::result::Result<T, E>;

/// An error of encoding or decoding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodingError {
    /// Values, validity and row count do not belong together.
    #[error("not a segment: {0}")]
    Shape(String),
    /// The encoding does not exist for values of this type.
    #[error("encoding {encoding} does not apply to {storage:?}: {reason}")]
    NotApplicable {
        /// Name of the encoding.
        encoding: &'static str,
        /// Type of the values.
        storage: Storage,
        /// What it would need.
        reason: &'static str,
    },
    /// The encoding's parameters cannot hold a value.
    #[error("encoding {encoding} cannot hold row {row}: {reason}")]
    Overflow {
        /// Name of the encoding.
        encoding: &'static str,
        /// The first such row.
        row: usize,
        /// What it would need.
        reason: String,
    },
    /// The encoding's parameters cannot hold a column.
    #[error("encoding {0} cannot hold all values with its parameters")]
    Parameters(&'static str),
    /// Encoded bytes contradict themselves.
    #[error("encoded bytes are damaged: {0}")]
    Damaged(&'static str),
}
