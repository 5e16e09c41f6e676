//! Errors of building a cube from tables, in the words of the definition.

use std::fmt;

use arrow::datatypes::DataType;

use crate::error::{ModelError, Nearest, weight_problem};
use crate::facts::FactsError;
use crate::progress::Stopped;

/// An error of the [`super::Tables`] that answers queries.
pub type TablesError = Box<dyn std::error::Error + Send + Sync>;

/// A row of the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// Its number in the order of the query, from 1.
    pub number: u64,
    /// The columns that name its elements, with their values.
    pub keys: Vec<(String, String)>,
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|(column, value)| format!("{column}={value}")).collect();
        write!(f, "row {} ({})", self.number, keys.join(", "))
    }
}

/// Facts that name no base element of a dimension, under `unknown: refuse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedKeys {
    /// The dimension.
    pub dimension: String,
    /// The columns that name its elements, as the facts call them.
    pub columns: Vec<String>,
    /// A few of the refused values in the order of their rows, each with its number of rows.
    pub problems: Vec<(String, u64)>,
    /// Refused values that `problems` does not list, and their rows.
    pub more: (u64, u64),
    /// The first refused row.
    pub first: RowPlace,
    /// Names near to the first refused one.
    pub nearest: Nearest,
    /// The text that repairs it.
    pub remedy: String,
}

impl fmt::Display for RefusedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension, columns, problems, more, first, nearest, remedy } = self;
        let columns = columns.join("', '");
        write!(f, "dimension '{dimension}', column '{columns}': ")?;
        for (at, (problem, rows)) in problems.iter().enumerate() {
            match at {
                0 => write!(f, "{problem}, in {}, first in {first}", rows_of(*rows))?,
                _ => write!(f, "; {problem}, in {}", rows_of(*rows))?,
            }
        }
        if more.0 > 0 {
            write!(f, "; and {} more values in {}", more.0, rows_of(more.1))?;
        }
        write!(f, "{} {remedy}", sentence_end(nearest))
    }
}

/// The end of a sentence: the question for near names, if there are any, or a point.
pub(super) fn sentence_end(nearest: &Nearest) -> String {
    if nearest.0.is_empty() { ".".to_owned() } else { nearest.to_string() }
}

fn rows_of(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

/// Values of a measure that are NaN or infinite, unless the cube keeps such rows aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedValues {
    /// The measure.
    pub measure: String,
    /// Its column, as the facts call it.
    pub column: String,
    /// The first refused value.
    pub value: String,
    /// Rows with such values.
    pub rows: u64,
    /// The first of them.
    pub first: RowPlace,
}

impl fmt::Display for RefusedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measure, column, value, rows, first } = self;
        write!(f, "measure '{measure}', column '{column}': {value} in {first}; NaN and infinity are in ")?;
        write!(f, "{}. To keep such rows aside, write unknown: aside for the cube", rows_of(*rows))
    }
}

/// The reasons for which facts were refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// By dimension.
    pub keys: Vec<RefusedKeys>,
    /// By measure.
    pub values: Vec<RefusedValues>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(RefusedKeys::to_string);
        let lines: Vec<String> = keys.chain(self.values.iter().map(RefusedValues::to_string)).collect();
        // Errors of the program are one line.
        f.write_str(&lines.join(". "))
    }
}

/// An error of building or refreshing a cube.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A query failed.
    #[error("the query {sql} failed: {source}")]
    Query {
        /// Its text.
        sql: String,
        /// The error of [`super::Tables`].
        source: TablesError,
    },
    /// A query gave columns other than those selected.
    #[error("the query {sql} gave {found} columns; {wanted} were selected")]
    Columns {
        /// Its text.
        sql: String,
        /// Columns of its rows.
        found: usize,
        /// Columns selected.
        wanted: usize,
    },
    /// A dimension or measure names a column that does not exist.
    #[error("{user}: there is no column '{column}' in {place}{nearest} The columns are {}", columns.join(", "))]
    NoColumn {
        /// The dimension or measure.
        user: String,
        /// The facts or a table.
        place: String,
        /// The column looked for.
        column: String,
        /// Near names, and what to write.
        nearest: String,
        /// All columns.
        columns: Box<[String]>,
    },
    /// Several columns differ from the wanted one in case alone, and none is written as it is.
    #[error("{user}: '{column}' is several columns of {place}: {}; write it as one of them", candidates.join(", "))]
    SeveralColumns {
        /// The dimension or measure.
        user: String,
        /// The facts or a table.
        place: String,
        /// The column looked for.
        column: String,
        /// The columns.
        candidates: Vec<String>,
    },
    /// A column is of a type that its use does not allow.
    #[error("{user}: column '{column}' of {place} holds {found}; {wanted}")]
    ColumnType {
        /// The dimension or measure.
        user: String,
        /// The facts or a table.
        place: String,
        /// The column.
        column: String,
        /// Its type.
        found: Box<DataType>,
        /// The types allowed, and what to do.
        wanted: String,
    },
    /// A value of a column is none of the type that `types` says.
    #[error(
        "{place}, column '{column}'{row}: '{value}' {problem}; mend it in the source, or give the column another type"
    )]
    Typed {
        /// The facts or a table.
        place: String,
        /// The column.
        column: Box<str>,
        /// The value.
        value: String,
        /// Its row, behind a comma; empty where rows are not those of the source.
        row: Box<str>,
        /// The problem, as a predicate.
        problem: String,
    },
    /// Key columns of a dimension are text in one source and numbers in another.
    #[error(
        "dimension '{dimension}': column '{text_column}' of {text_place} is text and column '{number_column}' of \
         {number_place} holds {found}: '00354' and '354' would be two elements and one; write types: {{{text_column}: \
         integer}} for {text_place} or types: {{{number_column}: text}} for {number_place}"
    )]
    UnlikeKeys {
        /// The dimension.
        dimension: Box<str>,
        /// The facts or a table: the source of texts.
        text_place: Box<str>,
        /// Its column.
        text_column: Box<str>,
        /// The source of numbers.
        number_place: Box<str>,
        /// Its column.
        number_column: Box<str>,
        /// The type of the numbers.
        found: Box<DataType>,
    },
    /// A row of a dimension's table has no meaning.
    #[error("dimension '{dimension}': row {row} of table '{table}': {problem}")]
    TableRow {
        /// The dimension.
        dimension: String,
        /// The table.
        table: String,
        /// The row, from 1.
        row: usize,
        /// The problem, with the value.
        problem: String,
    },
    /// The rows of a table make no dimension.
    #[error("table '{table}': {source}")]
    Table {
        /// The table.
        table: String,
        /// The problem.
        source: Box<ModelError>,
    },
    /// A value does not fit its measure.
    #[error("measure '{measure}', column '{column}': {value} in {row} {problem}")]
    Value {
        /// The measure.
        measure: String,
        /// Its column.
        column: String,
        /// The value.
        value: String,
        /// Its row.
        row: Box<RowPlace>,
        /// The problem, as a predicate with what to change.
        problem: String,
    },
    /// Facts with NULL, unknown or consolidated elements, NaN or infinity.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The rows of one cell add up to too much.
    #[error("measure '{measure}': the rows of cell ({}) add up to {sum}, beyond {limit}", cell.join(", "))]
    Overflow {
        /// Element of each dimension.
        cell: Vec<String>,
        /// The measure.
        measure: String,
        /// The sum.
        sum: String,
        /// The type that overflows, with its bound.
        limit: String,
    },
    /// Parts of the definition do not go together.
    #[error("{place}: {message}")]
    Definition {
        /// The field, by its path.
        place: String,
        /// The contradiction, and its repair.
        message: String,
    },
    /// An error of a part of the definition, with the place that the error itself lacks.
    #[error("{source}")]
    At {
        /// The field, by its path.
        place: String,
        /// The error.
        source: Box<BuildError>,
    },
    /// A refreshed cube would be another than the definition's.
    #[error("the definition no longer fits the cube: {reason}; define the cube anew")]
    OtherCube {
        /// The difference.
        reason: String,
    },
    /// The model is refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The facts are refused.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// Arrow refused an operation on columns.
    #[error("{what} failed: {source}")]
    Arrow {
        /// The operation.
        what: &'static str,
        /// The error of Arrow.
        source: arrow::error::ArrowError,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl BuildError {
    /// The error of a part of the definition, where it does not tell its place or that of a query or of facts.
    pub(super) fn at(self, place: impl FnOnce() -> String) -> BuildError {
        match self {
            BuildError::NoColumn { .. }
            | BuildError::SeveralColumns { .. }
            | BuildError::ColumnType { .. }
            | BuildError::UnlikeKeys { .. }
            | BuildError::TableRow { .. }
            | BuildError::Table { .. }
            | BuildError::Model(_) => BuildError::At { place: place(), source: Box::new(self) },
            other => other,
        }
    }
}

impl BuildError {
    /// The error of labels or of a weight in a row of a dimension's table, counted from 0.
    pub(super) fn in_row(self, dimension: &str, table: &str, row: usize) -> BuildError {
        let problem = match self {
            BuildError::Model(ModelError::DuplicateName { name, other, .. }) => {
                let of = if name == other { "another element" } else { &other };
                format!("'{name}' is to be an alternative name, and is a name of {of}; names are unique")
            }
            BuildError::Model(ModelError::Weight { path, weight, max, .. }) => weight_problem(&path, weight, max),
            other => return other,
        };
        BuildError::TableRow { dimension: dimension.to_owned(), table: table.to_owned(), row: row + 1, problem }
    }
}

impl From<Stopped> for BuildError {
    fn from(_: Stopped) -> BuildError {
        BuildError::Cancelled
    }
}
