//! Errors of facts.

use thiserror::Error;

use warpcube_arrays::key::KeyError;

/// An error of facts. Dimensions count from 0, rows from 0 within one append.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FactsError {
    /// A layout that no key has.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A coordinate is beyond the bits of its dimension.
    #[error("row {row}: coordinate {coordinate} of dimension {dimension} does not fit into {bits} bits")]
    Coordinate {
        /// The row.
        row: usize,
        /// The dimension.
        dimension: usize,
        /// The coordinate.
        coordinate: u32,
        /// Bits of the dimension.
        bits: u32,
    },
    /// The number of columns differs from the number of dimensions or measures.
    #[error("{expected} columns of {what} are expected, {found} were given")]
    Columns {
        /// `dimensions` or `measures`.
        what: &'static str,
        /// Columns expected.
        expected: usize,
        /// Columns given.
        found: usize,
    },
    /// The columns of one append differ in length.
    #[error("column {column} of {what} has {found} rows, the first column of dimensions has {expected}")]
    Length {
        /// `dimensions` or `measures`.
        what: &'static str,
        /// The column.
        column: usize,
        /// Rows of the first column.
        expected: usize,
        /// Rows of this column.
        found: usize,
    },
    /// The values of a column are not of the measure's type.
    #[error("measure {measure} expects {expected}, the column holds {found}")]
    Type {
        /// Name of the measure.
        measure: String,
        /// Type of the measure.
        expected: String,
        /// Type of the column.
        found: &'static str,
    },
    /// A double is NaN or infinite.
    #[error("row {row}: measure {measure} is {value}; a cell holds finite numbers")]
    NotFinite {
        /// The row.
        row: usize,
        /// Name of the measure.
        measure: String,
        /// The value as text.
        value: String,
    },
    /// The rows of one cell add up to more than the measure's type holds.
    #[error("cell {cell:?}: measure {measure} adds up to {sum}, which is beyond {limit}")]
    Overflow {
        /// Coordinates of the cell.
        cell: Vec<u32>,
        /// Name of the measure.
        measure: String,
        /// The sum as text.
        sum: String,
        /// The type that overflows.
        limit: &'static str,
    },
    /// Two sets of facts have different layouts or measures.
    #[error("facts of another layout or of other measures cannot be added: {reason}")]
    OtherCube {
        /// The difference.
        reason: String,
    },
    /// Stored facts break an invariant of this module.
    #[error("stored facts are damaged: {reason}")]
    Damaged {
        /// The invariant and the place.
        reason: String,
    },
}
