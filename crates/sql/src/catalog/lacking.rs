//! Columns that some of a table's files lack, or have at another place or as another type of strings.
//!
//! Three defects of DataFusion 55.2. It merges the columns of files, and leaves a column NOT NULL that is so in files
//! that have it; rows of files without it have NULL there, so that reading them is an error. Here such a column may be
//! NULL ([`with_nulls`]), until merged schemas do so (`ListingOptions::infer_schema`). And it reads files in Arrow's
//! format by position, whatever the columns there are called, so that columns of files that differ are mixed up. Here
//! such files are refused ([`check_positions`]), until the reader goes by name (`datafusion-datasource-arrow`). Last,
//! it writes strings as the type that a plan gives them, which a literal and a column of a file differ in, and does not
//! merge files whose strings differ in type, nor Arrow files that differ in notes of their writers. Here strings of
//! Parquet files are of one type and notes are left out ([`merged`]), until merged schemas have that.
//!
//! Parquet files with other columns than their neighbours are one table only where the option
//! [`UNION_BY_NAME`] says so ([`check_columns`]): a column that is misspelt in one file would be two, half NULL.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingTable;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use futures::{StreamExt, TryStreamExt};
use warpcube_column::is_string;

use crate::error::{Result, SqlError};
use crate::locations::shown;
use crate::words::sql_name;

/// Files looked at at once.
const AT_ONCE: usize = 16;
/// The option of a table whose files may lack columns that others have.
const UNION_BY_NAME: &str = "union_by_name";

/// The command of a table whose columns were inferred, with those that a file lacks as columns that may be NULL. None
/// if there is nothing to change.
pub(super) async fn with_nulls(
    state: &dyn Session,
    command: &CreateExternalTable,
    listing: &ListingTable,
    files: &[PathBuf],
) -> Result<Option<CreateExternalTable>> {
    let keys = &listing.options().table_partition_cols;
    let is_key = |field: &Field| keys.iter().any(|(key, _)| key == field.name());
    let schema = listing.schema();
    let required = schema.fields().iter().filter(|field| !field.is_nullable() && !is_key(field));
    let required: BTreeSet<&String> = required.map(|field| field.name()).collect();
    if required.is_empty() || files.len() < 2 {
        return Ok(None);
    }
    let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
    let format = &listing.options().format;
    let looks: Vec<_> = files.iter().map(|path| columns_of(state, &store, format, path)).collect();
    let mut schemas = futures::stream::iter(looks).buffer_unordered(AT_ONCE);
    let mut lacking: BTreeSet<&String> = BTreeSet::new();
    while let Some(found) = schemas.try_next().await? {
        lacking.extend(required.iter().filter(|name| found.field_with_name(name).is_err()));
    }
    if lacking.is_empty() {
        return Ok(None);
    }
    let field = |field: &Arc<Field>| {
        let nullable = field.is_nullable() || lacking.contains(field.name()) || is_key(field);
        field.as_ref().clone().with_nullable(nullable)
    };
    let fields: Vec<Field> = schema.fields().iter().map(field).collect();
    let mut changed = command.clone();
    changed.schema = Arc::new(DFSchema::try_from(Schema::new_with_metadata(fields, schema.metadata().clone()))?);
    changed.table_partition_cols = keys.iter().map(|(key, _)| key.clone()).collect();
    Ok(Some(changed))
}

/// Takes the option that says whether columns that a file lacks are NULL there.
///
/// # Errors
/// [`SqlError::FileFormat`] for a value that is none, and for formats that are read by position.
pub(super) fn take_union_by_name(command: &mut CreateExternalTable) -> Result<bool> {
    let option = |name: &String| name.trim_start_matches("format.").eq_ignore_ascii_case(UNION_BY_NAME);
    let Some(name) = command.options.keys().find(|name| option(name)).cloned() else { return Ok(false) };
    let told = command.options.remove(&name).unwrap_or_default();
    let path = command.locations.first().cloned().unwrap_or_default();
    let refused = |reason: String| Err(SqlError::FileFormat { path, reason });
    match (told.to_lowercase().as_str(), command.file_type.as_str()) {
        ("true", "PARQUET" | "JSON") => Ok(true),
        ("true", other) => refused(format!("{UNION_BY_NAME} is for Parquet and JSON; {other} is read by position")),
        ("false", _) => Ok(false),
        _ => refused(format!("{UNION_BY_NAME} is true or false, not '{told}'")),
    }
}

/// Refuses Parquet files whose columns are not those of the first one, or of other types; `by_name` if a file may lack
/// some.
///
/// # Errors
/// [`SqlError::FileFormat`] with the first column that differs, and both files.
pub(super) async fn check_columns(
    state: &dyn Session,
    command: &CreateExternalTable,
    files: &[PathBuf],
    by_name: bool,
) -> Result<()> {
    if command.file_type != "PARQUET" || !command.schema.fields().is_empty() || files.len() < 2 {
        return Ok(());
    }
    let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
    let format: Arc<dyn FileFormat> = Arc::new(ParquetFormat::default());
    let looks: Vec<_> = files.iter().map(|path| columns_of(state, &store, &format, path)).collect();
    let mut found = files.iter().zip(futures::stream::iter(looks).buffered(AT_ONCE).collect::<Vec<_>>().await);
    // One that cannot be read is for its reader to judge.
    let Some((one, Ok(first))) = found.next() else { return Ok(()) };
    for (other, columns) in found {
        let Ok(columns) = columns else { continue };
        let refused = |reason: String| Err(SqlError::FileFormat { path: shown(other), reason });
        let lacks = |of: &SchemaRef, other: &SchemaRef| {
            let missing = other.fields().iter().find(|field| of.field_with_name(field.name()).is_err());
            missing.map(|field| field.name().clone())
        };
        let help = format!(
            "a folder is one table if its files have the same columns; to have NULL where a file lacks one: CREATE \
             EXTERNAL TABLE … OPTIONS ({UNION_BY_NAME} true)"
        );
        if let (false, Some(name)) = (by_name, lacks(&columns, &first)) {
            return refused(format!("it has no column '{name}', which '{}' has; {help}", shown(one)));
        }
        if let (false, Some(name)) = (by_name, lacks(&first, &columns)) {
            return refused(format!("it has a column '{name}', which '{}' has not; {help}", shown(one)));
        }
        for field in first.fields() {
            let Ok(own) = columns.field_with_name(field.name()) else { continue };
            if !is_alike(field.data_type(), own.data_type()) {
                return refused(format!(
                    "its column '{}' is {}, and that of '{}' {}; declare the columns, or write one of the files anew",
                    field.name(),
                    sql_name(own.data_type()),
                    shown(one),
                    sql_name(field.data_type())
                ));
            }
        }
    }
    Ok(())
}

/// Whether values of two types are one column: types that differ in how strings or bytes are laid out do not differ.
fn is_alike(a: &DataType, b: &DataType) -> bool {
    let is_bytes = |kind: &DataType| matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    match (a, b) {
        // Members of objects are merged by name.
        (DataType::Struct(_), DataType::Struct(_)) => true,
        (DataType::List(a) | DataType::LargeList(a), DataType::List(b) | DataType::LargeList(b)) => {
            is_alike(a.data_type(), b.data_type())
        }
        (DataType::Map(..), DataType::Map(..)) | (DataType::Null, _) | (_, DataType::Null) => true,
        _ => a == b || is_string(a) && is_string(b) || is_bytes(a) && is_bytes(b),
    }
}

/// The command of a table over Parquet or Arrow files whose columns are to be inferred, with columns that are the same
/// but for notes of their writers and the type of Parquet's strings. None if they differ otherwise, or values of
/// columns are in the files' paths.
pub(super) async fn merged(
    state: &dyn Session,
    command: &CreateExternalTable,
    files: &[PathBuf],
) -> Option<CreateExternalTable> {
    let has_keys = files.iter().any(|path| path.parent().is_some_and(|folder| folder.to_string_lossy().contains('=')));
    if !command.schema.fields().is_empty() || has_keys {
        return None;
    }
    let (format, one_text): (Arc<dyn FileFormat>, bool) = match command.file_type.as_str() {
        "PARQUET" => (Arc::new(ParquetFormat::default()), true),
        "ARROW" => (Arc::new(ArrowFormat), false),
        _ => return None,
    };
    let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem()).ok()?;
    let looks: Vec<_> = files.iter().map(|path| columns_of(state, &store, &format, path)).collect();
    let schemas = futures::stream::iter(looks).buffered(AT_ONCE).try_collect::<Vec<SchemaRef>>().await.ok()?;
    let is_everywhere = |name: &str| schemas.iter().all(|schema| schema.field_with_name(name).is_ok());
    let field = |field: &Arc<Field>| {
        let nullable = field.is_nullable() || !is_everywhere(field.name());
        let is_text = one_text && is_string(field.data_type());
        let data_type = if is_text { &DataType::Utf8View } else { field.data_type() };
        Field::new(field.name(), data_type.clone(), nullable)
    };
    let alike = schemas.iter().map(|schema| Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
    let merged = Schema::try_merge(alike).ok()?;
    let schema = Arc::new(DFSchema::try_from(merged).ok()?);
    Some(CreateExternalTable { schema, ..command.clone() })
}

/// Refuses files in Arrow's format whose columns are not those of the table in their order.
///
/// # Errors
/// [`SqlError::FileFormat`] with the first column that differs.
pub(super) async fn check_positions(state: &dyn Session, listing: &ListingTable, files: &[PathBuf]) -> Result<()> {
    let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
    let format = &listing.options().format;
    let keys = listing.options().table_partition_cols.len();
    let schema = listing.schema();
    let wanted = &schema.fields()[..schema.fields().len() - keys];
    for path in files {
        // One that cannot be read is for its reader to judge.
        let Ok(found) = columns_of(state, &store, format, path).await else { continue };
        let name = |position: usize| found.fields().get(position).map(|field| field.name());
        if let Some((position, field)) = wanted.iter().enumerate().find(|(at, field)| name(*at) != Some(field.name())) {
            let reason = format!(
                "its column {} is {}, and that of the table '{}'; files in Arrow's format are read by position: \
                 declare the columns in the order of the files, and have all files alike",
                position + 1,
                name(position).map_or("not there".into(), |name| format!("'{name}'")),
                field.name()
            );
            return Err(SqlError::FileFormat { path: shown(path), reason });
        }
    }
    Ok(())
}

/// The columns of one file.
async fn columns_of(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    format: &Arc<dyn FileFormat>,
    path: &Path,
) -> DataFusionResult<SchemaRef> {
    let location = ObjectPath::from_absolute_path(std::path::absolute(path)?)?;
    let file = store.head(&location).await?;
    format.infer_schema(state, store, &[file]).await
}
