//! What can go wrong with a statement, in one line and with a stable code.
//!
//! Every error a connection gives is a [`SqlError`]; its text starts with its code, which the documentation explains:
//! `SQL-…` statements, `FILE-…` files read, `CFG-…` settings and devices; `GPU-…`, `COL-…` and `ENG-…` come through
//! from the device, its columns and the engine.
//! DataFusion's errors are sorted into these by their kind, and what they carry of DataFusion's own wording (prefixes,
//! backtraces, line breaks) is taken off. An error of ours that travelled through DataFusion comes back unchanged.

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};
use thiserror::Error;
use warpcube_column::ColumnError;
use warpcube_engine::EngineError;
use warpcube_gpu::GpuError;

use crate::default_schema::{CATALOG, LASTING, SCHEMA};
use crate::nearest::{distance, nearest};
use crate::values::SettingOrigin;
use crate::words::types_in_sql;
pub use position::Position;
pub use texts::as_written;
use texts::{column_hint, in_words, keyword_hint, shortened};
pub(crate) use texts::{one_line, panic_text};

/// What stands for the path of a file whose reader does not tell it.
pub(crate) const A_FILE: &str = "a file";
/// The same for each format that has a kind of error of its own.
pub(crate) const A_PARQUET_FILE: &str = "a Parquet file";
pub(crate) const A_CSV_FILE: &str = "a CSV file";
pub(crate) const A_JSON_FILE: &str = "a JSON file";
pub(crate) const AN_ARROW_FILE: &str = "an Arrow file";

/// Result of this crate's calls.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

/// An error of a statement; its text is one line that starts with its code.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text is not SQL.
    #[error("SQL-001 syntax error: {0}{hint}", hint = keyword_hint(.0))]
    Syntax(String),
    /// A table that is not in the catalog.
    #[error("SQL-002 unknown table '{name}'{}", hint(.nearest))]
    UnknownTable {
        /// The name as written.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// A column that no table of the statement has.
    #[error("SQL-003 unknown column '{name}'{}", column_hint(.name, .nearest))]
    UnknownColumn {
        /// The name as written.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// The statement is SQL but makes no sense: types, ambiguity, an unknown function.
    #[error("SQL-004 {0}")]
    Planning(String),
    /// Correct SQL that is not supported.
    #[error("SQL-005 not supported: {0}")]
    Unsupported(String),
    /// The statement failed while it ran: division by zero, overflow, a cast.
    #[error("SQL-006 {0}")]
    Execution(String),
    /// Cancelled by the user.
    #[error("SQL-007 cancelled")]
    Cancelled,
    /// Longer than `warpcube.timeout`.
    #[error("SQL-008 timed out after {milliseconds} ms; raise warpcube.timeout or set it to 'off'")]
    TimedOut {
        /// The limit.
        milliseconds: u128,
    },
    /// Past `warpcube.memory_limit`, or the disk for spilling is full.
    #[error(
        "SQL-009 out of memory on the CPU: {reason}{}; raise warpcube.memory_limit or look at warpcube.spill_folder",
        of_joins(.0),
        reason = .0
    )]
    Memory(String),
    /// A defect of Warpcube or of what it builds on.
    #[error("SQL-010 internal error, please report it: {0}")]
    Internal(String),
    /// A statement about device memory in a database that has no device.
    #[error("SQL-011 {statement} needs a device and this session has none: {reason}")]
    NoDevice {
        /// The statement.
        statement: &'static str,
        /// Why there is no device.
        reason: String,
    },
    /// A view that refers to itself, directly or through others.
    #[error("SQL-012 view '{0}' refers to itself")]
    RecursiveView(String),
    /// A statement whose plan cannot be sent to another database.
    #[error("SQL-013 the statement's plan cannot be encoded: {0}")]
    PlanEncode(String),
    /// Bytes that are no plan, or a plan that this database cannot run.
    #[error("SQL-014 the encoded plan cannot be run here: {0}")]
    PlanDecode(String),
    /// Expressions or queries nested deeper than `warpcube.depth_limit`.
    #[error("SQL-015 nested {depth} levels deep, and warpcube.depth_limit is {limit}")]
    TooDeep {
        /// Levels found.
        depth: usize,
        /// The limit.
        limit: usize,
    },
    /// Ended by another statement.
    #[error("SQL-016 ended by KILL{}", .by.as_ref().map_or_else(String::new, |by| format!(" of session '{by}'")))]
    Killed {
        /// The name of the session that has ended it, where it has one.
        by: Option<String>,
    },
    /// A statement that cannot be ended.
    #[error("SQL-017 KILL {number}: {reason}")]
    Kill {
        /// The number of the statement.
        number: u64,
        /// What keeps it from being ended.
        reason: String,
    },
    /// A file or folder that is not there.
    #[error("FILE-001 {path}: no such file or folder{}", hint(.nearest))]
    FileMissing {
        /// The path as written.
        path: String,
        /// A file of nearly that name in the same folder.
        nearest: Option<String>,
    },
    /// A file whose format cannot be told, or is not supported.
    #[error("FILE-002 {path}: {reason}")]
    FileFormat {
        /// The path as written.
        path: String,
        /// What was found and what is supported.
        reason: String,
    },
    /// A file that is not what it claims to be.
    #[error("FILE-003 {path}: {reason}")]
    FileCorrupt {
        /// The file.
        path: String,
        /// What was expected and found.
        reason: String,
    },
    /// A row of a text file that does not fit the table.
    #[error("FILE-004 {path}, line {line}{}: {reason}", column_of(.column))]
    FileRow {
        /// The file.
        path: String,
        /// Line, from 1, the header counted.
        line: u64,
        /// Name of the column, where one is to blame.
        column: Option<String>,
        /// What was expected and found.
        reason: String,
    },
    /// A folder or pattern that matches nothing.
    #[error("FILE-005 {path}: {reason}")]
    FileNone {
        /// The path as written.
        path: String,
        /// What was looked for.
        reason: String,
    },
    /// The operating system refused.
    #[error("FILE-006 {0}")]
    FileAccess(String),
    /// A file or folder, as written, that statements do not reach, and why.
    #[error("FILE-007 {0}: {1}")]
    FileOutside(String, &'static str),
    /// A statement that writes files through a connection that is read-only.
    #[error("FILE-008 {0}: the session is read-only (warpcube.read_only)")]
    ReadOnly(String),
    /// A server of files that does not answer, or refuses.
    #[error("FILE-010 {url}: {reason}")]
    FileElsewhere {
        /// Where the file is, without what follows `?`.
        url: String,
        /// What the server says, and what to do.
        reason: String,
    },
    /// A COPY into a folder that has files.
    #[error(
        "FILE-009 {path}: it has files; COPY … OPTIONS (append true) adds to them, OPTIONS (overwrite true) replaces \
         them"
    )]
    FolderNotEmpty {
        /// The folder as written.
        path: String,
    },
    /// A COPY is to replace the files of a folder that has others too.
    #[error(
        "FILE-009 {path}: '{file}' is no {format} file of that folder, and OPTIONS (overwrite true) would leave it \
         there; move it, or write into another folder"
    )]
    FolderMixed {
        /// The folder as written.
        path: String,
        /// The file, or a link to a folder.
        file: String,
        /// The format that is written.
        format: String,
    },
    /// A text that is no query of its cube.
    #[error("CUBE-001 {0}")]
    CubeQuery(String),
    /// A folder that is no cube, is damaged or is held by another process.
    #[error("CUBE-002 {0}")]
    CubeFolder(String),
    /// A definition that cannot be read, or contradicts itself.
    #[error("CUBE-003 {0}")]
    CubeDefinition(String),
    /// Facts or tables of dimensions that do not fit the definition.
    #[error("CUBE-004 {0}")]
    CubeFacts(String),
    /// Cells that cannot be computed: too many, or beyond their type.
    #[error("CUBE-005 {0}")]
    CubeCells(String),
    /// More targets than the limit of an area.
    #[error("CUBE-005 {0}")]
    CubeArea(String),
    /// Palo or Matrix Market files that cannot be read or written.
    #[error("CUBE-006 {0}")]
    CubeImport(String),
    /// A change of a cube that its text does not say, or that the cube refuses.
    #[error("CUBE-007 {0}")]
    CubeChange(String),
    /// A setting that does not exist.
    #[error("CFG-001 unknown setting '{name}'{}{}", from_where(.origin), hint(.nearest))]
    UnknownSetting {
        /// The name as written.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// Where the name came from, where not from a statement.
        origin: Option<String>,
    },
    /// A value a setting does not take.
    #[error("CFG-002 {name} = '{value}'{}: expected {expected}", from_where(.origin))]
    SettingValue {
        /// The setting.
        name: String,
        /// The value as written.
        value: String,
        /// What it takes.
        expected: String,
        /// Where the value came from, where not from a statement.
        origin: Option<String>,
    },
    /// A change of a setting that is not allowed any more.
    #[error("CFG-004 {name} = '{value}'{} is refused: {reason}", from_where(.origin))]
    SettingLocked {
        /// The setting.
        name: String,
        /// The value as written.
        value: String,
        /// What forbids it.
        reason: String,
        /// Where the value came from, where not from a statement.
        origin: Option<String>,
    },
    /// The device asked for cannot be used.
    #[error("CFG-003 warpcube.device = '{choice}': {reason}")]
    Device {
        /// The choice as written.
        choice: String,
        /// The reason and its repair.
        reason: String,
    },
    /// An error of the device; carries its own `GPU-…` code.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// An error of columns on the device or of the engine; carries its own `COL-…` or `ENG-…` code.
    #[error(transparent)]
    Engine(EngineError),
    /// An error with the position where the parser or the planner found it; [`SqlError::position_in`] says whether
    /// the statement's own text has it there.
    #[error("{error}")]
    At {
        /// The error.
        error: Box<SqlError>,
        /// The position in the text that was read.
        position: Position,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean '{nearest}'?"))
}

/// The remedy for a join that runs out of memory.
fn of_joins(reason: &str) -> &'static str {
    const SPILLING: &str = "; with two or more of warpcube.target_partitions, SET \
                            datafusion.optimizer.prefer_hash_join = false plans joins that spill";
    if reason.contains("HashJoin") { SPILLING } else { "" }
}

fn column_of(column: &Option<String>) -> String {
    column.as_ref().map_or_else(String::new, |column| format!(", column '{column}'"))
}

fn from_where(origin: &Option<String>) -> String {
    origin.as_ref().map_or_else(String::new, |origin| format!(" (from {origin})"))
}

impl SqlError {
    /// The stable code, such as `SQL-002`.
    pub fn code(&self) -> String {
        self.to_string().split(' ').next().unwrap_or_default().to_string()
    }

    /// The error of code that panicked.
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> SqlError {
        SqlError::Internal(panic_text(panic))
    }

    /// Whether the user cancelled the statement.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, SqlError::Cancelled | SqlError::Gpu(GpuError::Cancelled))
    }

    /// This error with where the setting it is about came from.
    pub(crate) fn with_origin(mut self, from: &SettingOrigin) -> SqlError {
        if let SqlError::UnknownSetting { origin, .. }
        | SqlError::SettingValue { origin, .. }
        | SqlError::SettingLocked { origin, .. } = &mut self
        {
            *origin = Some(from.to_string());
        }
        self
    }

    /// This error with the nearest of `tables` named, if it is about an unknown table.
    pub(crate) fn with_tables(self, tables: impl FnOnce() -> Vec<String>) -> SqlError {
        match self {
            SqlError::UnknownTable { name, nearest: None } => {
                let bare = name.rsplit('.').next().unwrap_or(&name).to_string();
                let nearest = nearest(&bare, tables());
                SqlError::UnknownTable { name, nearest }
            }
            SqlError::At { error, position } => SqlError::At { error: Box::new(error.with_tables(tables)), position },
            other => other,
        }
    }

    /// The error of making a table over files that differ, with the location that was named.
    pub(crate) fn over(self, location: &str) -> SqlError {
        match &self {
            SqlError::Execution(text) if text.contains("Fail to merge schema field") => {
                let detail = text.split_once("Fail to merge schema field").map_or("", |(_, detail)| detail.trim());
                let reason =
                    format!("its files differ in column {detail}; CREATE EXTERNAL TABLE declares columns for all");
                SqlError::FileFormat { path: location.to_string(), reason }
            }
            _ => self,
        }
    }
}

impl From<EngineError> for SqlError {
    fn from(error: EngineError) -> SqlError {
        match error {
            EngineError::Gpu(error) | EngineError::Column(ColumnError::Gpu(error)) => SqlError::Gpu(error),
            EngineError::Column(ColumnError::Source(reader)) => external(reader.as_ref()),
            other => SqlError::Engine(other),
        }
    }
}

impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> SqlError {
        match (sort(&error), position::found_at(&error)) {
            (SqlError::At { error, position }, _) => SqlError::At { error, position },
            (sorted, Some(position)) => SqlError::At { error: Box::new(sorted), position },
            (sorted, None) => sorted,
        }
    }
}

/// Sorts DataFusion's error by its innermost cause.
fn sort(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => sort(inner),
        DataFusionError::Shared(inner) => sort(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => sort(first),
            None => SqlError::Internal("an empty list of errors".into()),
        },
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::ArrowError(arrow, _) => arrow_error(arrow),
        DataFusionError::SQL(parser, _) => {
            let text = parser.to_string();
            let (text, _) = position::without_position(&text);
            SqlError::Syntax(one_line(text.trim_start_matches("sql parser error: ")))
        }
        DataFusionError::NotImplemented(text) => SqlError::Unsupported(shortened(&in_words(text))),
        DataFusionError::Plan(text) => planning(text),
        DataFusionError::Configuration(text) => SqlError::Planning(in_words(text)),
        DataFusionError::SchemaError(schema, _) => schema_error(schema),
        DataFusionError::Execution(text) if text.starts_with(NO_FIELDS) => SqlError::Planning(
            "a name with a point is taken for a field of a column that has none; if it is a table of an outer query, \
             give the table a name that no column has"
                .into(),
        ),
        DataFusionError::Execution(text) => dropped(text).unwrap_or_else(|| match is_about_names(text) {
            true => SqlError::Planning(one_line(text)),
            false => SqlError::Execution(in_words(text)),
        }),
        DataFusionError::Ffi(text) => SqlError::Execution(one_line(text)),
        DataFusionError::ResourcesExhausted(text) => SqlError::Memory(one_line(text)),
        DataFusionError::ExecutionJoin(join) => SqlError::Internal(one_line(&join.to_string())),
        DataFusionError::Internal(text) if text.starts_with(NO_RANGES) => {
            let key = text[NO_RANGES.len()..].lines().next().unwrap_or_default();
            SqlError::Unsupported(format!("RANGE with an offset over keys of type {key}"))
        }
        DataFusionError::Internal(text) | DataFusionError::Substrait(text) => {
            tracing::debug!(text, "internal error");
            internal::of_statement(&one_line(text)).unwrap_or_else(|| SqlError::Internal(in_words(text)))
        }
        DataFusionError::ObjectStore(store) => {
            own_cause(store.as_ref()).unwrap_or_else(|| SqlError::FileAccess(one_line(&store.to_string())))
        }
        DataFusionError::IoError(io) => io_error(io, &io.to_string()),
        DataFusionError::ParquetError(parquet) => parquet_error(parquet),
        // The enum grows with DataFusion's features; what is not known here is shown as it is.
        #[allow(unreachable_patterns)]
        other => SqlError::Execution(one_line(&other.strip_backtrace())),
    }
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> SqlError {
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return error.clone();
    }
    if let Some(error) = error.downcast_ref::<GpuError>() {
        return SqlError::Gpu(error.clone());
    }
    if let Some(error) = error.downcast_ref::<EngineError>() {
        return error.clone().into();
    }
    if let Some(error) = error.downcast_ref::<ColumnError>() {
        return EngineError::from(error.clone()).into();
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return sort(error);
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return arrow_error(error);
    }
    // A text of a reader that is not UTF-8.
    if let Some(error) = error.downcast_ref::<std::str::Utf8Error>() {
        return corrupt(A_FILE, &error.to_string());
    }
    // A reader that panicked in a task of its own.
    if let Some(error) = error.downcast_ref::<tokio::task::JoinError>() {
        return SqlError::Internal(one_line(&error.to_string()));
    }
    own_cause(error).unwrap_or_else(|| SqlError::Execution(in_words(&error.to_string())))
}

/// The error of ours that an error of a store comes from.
fn own_cause(error: &(dyn std::error::Error + 'static)) -> Option<SqlError> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<SqlError>().cloned())
}

fn arrow_error(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::DivideByZero => SqlError::Execution("division by zero".into()),
        ArrowError::ArithmeticOverflow(text) => SqlError::Execution(format!("overflow: {}", one_line(text))),
        ArrowError::IoError(text, io) => io_error(io, text),
        ArrowError::CsvError(text) => corrupt(A_CSV_FILE, text),
        ArrowError::JsonError(text) => corrupt(A_JSON_FILE, text),
        ArrowError::IpcError(text) => corrupt(AN_ARROW_FILE, text),
        ArrowError::ParquetError(text) => corrupt(A_PARQUET_FILE, text),
        // Readers of CSV files count lines; casts of texts have errors of this kind too.
        ArrowError::ParseError(text) if text.contains(" line ") => {
            corrupt(A_CSV_FILE, text.split(" Row data: ").next().unwrap_or(text))
        }
        ArrowError::NotYetImplemented(text) => SqlError::Unsupported(in_words(text)),
        ArrowError::CastError(text) | ArrowError::ComputeError(text) | ArrowError::InvalidArgumentError(text) => {
            SqlError::Execution(in_words(text))
        }
        other => SqlError::Execution(in_words(&other.to_string())),
    }
}

fn parquet_error(error: &parquet::errors::ParquetError) -> SqlError {
    if let parquet::errors::ParquetError::External(inner) = error {
        return external(inner.as_ref());
    }
    corrupt(A_PARQUET_FILE, &error.to_string())
}

/// The error of a reader that does not tell its file.
fn corrupt(file: &str, reason: &str) -> SqlError {
    SqlError::FileCorrupt { path: file.to_string(), reason: one_line(reason) }
}

/// The system's error, or that of a reader of bytes that are not what they should be.
fn io_error(error: &std::io::Error, text: &str) -> SqlError {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => corrupt(A_FILE, text),
        _ => SqlError::FileAccess(one_line(text)),
    }
}

fn planning(text: &str) -> SqlError {
    if text.contains("subquery can only be used in ") {
        let reason = "a subquery at this place; compute it in a subquery of FROM";
        return SqlError::Unsupported(reason.into());
    }
    if text.starts_with("Inserting into a ListingTable backed by a single file") {
        let reason =
            "INSERT into a table over one file or a pattern; its LOCATION must be a folder, with '/' at its end";
        return SqlError::Unsupported(reason.into());
    }
    let unknown = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let said = || calls::unknown(text).map_or_else(|| in_words(text), |said| types_in_sql(&said));
    unknown.map_or_else(|| SqlError::Planning(said()), unknown_table)
}

/// What the planner says of frames over types that it has none for.
const NO_RANGES: &str = "Cannot run range queries on datatype: ";

/// What the planner says of a field of what is no struct.
const NO_FIELDS: &str = "Cannot access field at argument ";

/// The error of a `DROP` of what is not there.
fn dropped(text: &str) -> Option<SqlError> {
    let name = text.strip_prefix("Table '").or_else(|| text.strip_prefix("View '"))?;
    name.strip_suffix("' doesn't exist.").map(unknown_table)
}

/// Whether an error is about a name that is taken, or one that means nothing: nothing of the statement has run.
fn is_about_names(text: &str) -> bool {
    let kinds = ["Table '", "External table '", "Schema '", "Catalog '", "Prepared statement '", "table '"];
    let is_named = kinds.iter().any(|kind| text.starts_with(kind));
    let ends = ["' already exists", "' does not exist", "' doesn't exist."];
    is_named && (ends.iter().any(|end| text.ends_with(end)) || text.contains("' expects "))
}

fn unknown_table(name: &str) -> SqlError {
    let own = format!("{CATALOG}.{SCHEMA}.");
    let name = name.replace(LASTING, SCHEMA);
    let name = name.strip_prefix(&own).unwrap_or(&name);
    SqlError::UnknownTable { name: name.to_string(), nearest: None }
}

fn schema_error(error: &SchemaError) -> SqlError {
    let SchemaError::FieldNotFound { field, valid_fields } = error else {
        return SqlError::Planning(in_words(&error.to_string()));
    };
    // The rule that resolves subqueries gives names of its own, and knows the next query around one alone.
    let is_of_subquery = |valid: &Column| valid.relation.as_ref().is_some_and(|it| it.table().starts_with("__"));
    if valid_fields.iter().any(is_of_subquery) && field.relation.is_some() {
        let reason = format!("a subquery that refers to '{}', a column of a query further out", field.flat_name());
        return SqlError::Unsupported(reason);
    }
    let written = |valid: &Column| match &valid.relation {
        Some(relation) => {
            format!("{}.{}", relation.to_string().replace(LASTING, SCHEMA), as_written(&valid.name))
        }
        None => as_written(&valid.name),
    };
    // A qualified name is compared part by part, so that a wrong alias is found as well as a wrong column.
    let edits = |valid: &&Column| {
        let (wanted, found) = (field.relation.as_ref()?.to_string(), valid.relation.as_ref()?.to_string());
        let is_alias = field.name == valid.name;
        let of_relation = distance(&wanted, &found).or(is_alias.then_some(wanted.len()))?;
        Some(of_relation + distance(&field.name, &valid.name)?)
    };
    let full = valid_fields.iter().filter(|valid| edits(valid).is_some()).min_by_key(edits).map(written);
    let bare = nearest(&field.name, valid_fields.iter().map(|valid| valid.name.clone())).map(|name| as_written(&name));
    SqlError::UnknownColumn { name: field.flat_name().replace(LASTING, SCHEMA), nearest: full.or(bare) }
}

mod calls;
mod internal;
mod other_names;
mod position;
#[cfg(test)]
mod tests;
mod texts;
