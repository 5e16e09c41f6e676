//! Errors of Palo files: a line, a field and what is wrong there.

use std::io;

use warpcube_cube::error::ModelError;

/// Result of reading or writing a Palo file.
pub type Result<T> = std::result::Result<T, PaloError>;

/// An error of a Palo file.
#[derive(Debug, thiserror::Error)]
pub enum PaloError {
    /// The file cannot be read.
    #[error("the file cannot be read after line {line}: {source}")]
    Read {
        /// Lines read before.
        line: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("the file cannot be written: {0}")]
    Write(#[from] io::Error),
    /// A line is not of the format.
    #[error("line {line}: {problem}")]
    Line {
        /// Line, from 1; of a row over several lines the first.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// A field does not hold what belongs there.
    #[error("line {line}, field {field} ({name}): {problem}")]
    Field {
        /// Line, from 1; of a row over several lines the first.
        line: u64,
        /// Field, from 1.
        field: usize,
        /// What the field holds by the format.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The database has no cube or dimension of this number or name.
    #[error("the database has no {what} {wanted}{nearest}")]
    Unknown {
        /// `cube` or `dimension`.
        what: &'static str,
        /// The number, or the name between quotes.
        wanted: String,
        /// Names within a few edits.
        nearest: warpcube_cube::error::Nearest,
    },
    /// A dimension's elements are kept by another database of the server.
    #[error("dimension '{dimension}' is listed without elements: they are kept in another database of the server")]
    NoElements {
        /// The dimension.
        dimension: String,
    },
    /// A value has no form in the format.
    #[error("{0}")]
    Unwritable(String),
    /// The dimensions break a rule of the model.
    #[error(transparent)]
    Model(#[from] ModelError),
}
