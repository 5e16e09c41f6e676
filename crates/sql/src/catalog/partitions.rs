//! Columns that are the names of folders, `key=value`.
//!
//! Declared ones have the types they are declared with; their table may name them alone, and has the columns of its
//! files besides. Of the others, keys that are whole numbers everywhere are BIGINT, all else is text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::datasource::listing::helpers::parse_partitions_for_path;
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::logical_expr::CreateExternalTable;
use datafusion::object_store::path::Path as ObjectPath;

use super::text_keys::NULL_KEY;
use crate::error::{Result, SqlError};
use crate::extension_types::ExtensionType;
use crate::locations::shown;

/// Refuses columns of folders that are declared UUID or JSON: names of folders are texts that nothing reads.
pub(super) fn check_types(command: &CreateExternalTable) -> Result<()> {
    let keys = command.schema.fields().iter().filter(|field| command.table_partition_cols.contains(field.name()));
    match keys.filter_map(|field| Some((field.name(), ExtensionType::of(field)?))).next() {
        Some((key, of)) => Err(SqlError::Unsupported(format!(
            "the partition column '{key}' of type {}; declare it VARCHAR",
            of.name()
        ))),
        None => Ok(()),
    }
}

/// Takes declared columns out of a command that declares columns of folders alone; gives them back.
pub(super) fn take_declared(command: &mut CreateExternalTable) -> Option<Schema> {
    let declared = command.schema.fields();
    let is_key = |field: &Arc<Field>| command.table_partition_cols.contains(field.name());
    if declared.is_empty() || !declared.iter().all(is_key) {
        return None;
    }
    let declared = command.schema.as_arrow().clone();
    command.schema = Arc::new(DFSchema::empty());
    Some(declared)
}

/// The command of a table whose columns were inferred, with types for those that are names of folders: as declared, or
/// told by the names. None if there is nothing to change.
pub(super) fn typed(
    command: &CreateExternalTable,
    listing: &ListingTable,
    declared: Option<&Schema>,
    files: &[PathBuf],
) -> Result<Option<CreateExternalTable>> {
    let keys = &listing.options().table_partition_cols;
    let types: Vec<DataType> = keys
        .iter()
        .map(|(key, inferred)| {
            let field = declared.and_then(|declared| declared.field_with_name(key).ok());
            let told = || if are_numbers(key, files) { DataType::Int64 } else { inferred.clone() };
            field.map_or_else(told, |field| field.data_type().clone())
        })
        .collect();
    if keys.iter().map(|(_, inferred)| inferred).eq(&types) {
        return Ok(None);
    }
    let schema = datafusion::datasource::TableProvider::schema(listing);
    let is_key = |field: &&Arc<Field>| keys.iter().any(|(key, _)| key == field.name());
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().filter(|field| !is_key(field)).cloned().collect();
    fields.extend(keys.iter().zip(types).map(|((key, _), kind)| Arc::new(Field::new(key, kind, true))));
    let mut typed = command.clone();
    typed.schema = Arc::new(DFSchema::try_from(Schema::new(fields))?);
    typed.table_partition_cols = keys.iter().map(|(key, _)| key.clone()).collect();
    Ok(Some(typed))
}

/// The command of a table whose files have these columns, with those that are names of folders behind them.
pub(super) fn with_columns(
    command: &CreateExternalTable,
    columns: Schema,
    declared: Option<&Schema>,
    files: &[PathBuf],
) -> Result<CreateExternalTable> {
    let keys = match command.table_partition_cols.is_empty() {
        true => keys_of(command, files),
        false => command.table_partition_cols.clone(),
    };
    let text = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
    let key = |key: &String| {
        let field = declared.and_then(|declared| declared.field_with_name(key).ok());
        let told = || if are_numbers(key, files) { DataType::Int64 } else { text.clone() };
        Field::new(key, field.map_or_else(told, |field| field.data_type().clone()), true)
    };
    let fields = columns.fields().iter().map(|field| field.as_ref().clone()).chain(keys.iter().map(key));
    let schema = Arc::new(DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?);
    Ok(CreateExternalTable { schema, table_partition_cols: keys, ..command.clone() })
}

/// Refuses a file in other folders than those of the table's keys. DataFusion looks at the folders of ten files, and
/// its scans leave others out.
pub(super) fn check_folders(table: &ListingTable, files: &[PathBuf]) -> Result<()> {
    let keys: Vec<&str> = table.options().table_partition_cols.iter().map(|(key, _)| key.as_str()).collect();
    let is_read = |file: &&PathBuf| {
        let path = std::path::absolute(file).ok().and_then(|path| ObjectPath::from_absolute_path(path).ok());
        let has_keys = |path: &ObjectPath, url| parse_partitions_for_path(url, path, keys.iter().copied()).is_some();
        path.is_none_or(|path| table.table_paths().iter().any(|url| has_keys(&path, url)))
    };
    match files.iter().find(|file| !keys.is_empty() && !is_read(file)) {
        Some(file) => Err(SqlError::FileFormat {
            path: shown(file),
            reason: format!("it is not in a folder '{}=…', as others of its table are", keys.join("=…/")),
        }),
        None => Ok(()),
    }
}

/// The names of the folders `key=value` between the place of a table and its first file.
fn keys_of(command: &CreateExternalTable, files: &[PathBuf]) -> Vec<String> {
    let url = command.locations.first().and_then(|location| ListingTableUrl::parse(location).ok());
    let folder = url.and_then(|url| url.get_url().to_file_path().ok());
    let file = files.first().and_then(|file| std::path::absolute(file).ok());
    let Some(below) = folder.zip(file).and_then(|(folder, file)| Some(file.strip_prefix(folder).ok()?.to_path_buf()))
    else {
        return Vec::new();
    };
    let folders = below.parent().into_iter().flat_map(Path::iter);
    folders.filter_map(|part| Some(part.to_str()?.split_once('=')?.0.to_string())).collect()
}

/// Whether the values of a key are whole numbers in all paths, written as numbers are, or NULL.
fn are_numbers(key: &str, files: &[PathBuf]) -> bool {
    let is_number = |value: &str| value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
    let values: Option<Vec<&str>> = files.iter().map(|path| value_of(key, path)).collect();
    let mut known = values.unwrap_or_default().into_iter().filter(|value| *value != NULL_KEY).peekable();
    known.peek().is_some() && known.all(is_number)
}

/// What a folder of the path says of a key.
fn value_of<'a>(key: &str, path: &'a Path) -> Option<&'a str> {
    let folders = path.parent()?.components().rev().filter_map(|part| part.as_os_str().to_str());
    folders.filter_map(|part| part.split_once('=')).find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_where_all_are_written_as_such() {
        let paths = |values: &[&str]| -> Vec<PathBuf> {
            values.iter().map(|value| format!("/t/m={value}/k=x/1.parquet").into()).collect()
        };
        assert!(are_numbers("m", &paths(&["9", "10", "-3", "0"])));
        assert!(are_numbers("m", &paths(&["9", NULL_KEY])));
        for values in [["9", "010"], ["9", "x"], [NULL_KEY, NULL_KEY], ["9", "99999999999999999999"]] {
            assert!(!are_numbers("m", &paths(&values)), "{values:?}");
        }
        assert!(!are_numbers("k", &paths(&["1"])) && !are_numbers("z", &paths(&["1"])) && !are_numbers("m", &[]));
    }
}
