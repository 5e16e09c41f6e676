//! Columns of JSON files, told by all of their values.
//!
//! The defects: DataFusion 55.2 infers columns from the first 1,000 records, and its reader cuts numbers off to the
//! type of their column: 1.5 further below becomes 1. Here each file of this machine is looked through once, before a
//! table is made of it ([`JsonValues`]), and columns have the types of all records, or of as many as
//! `format.schema_infer_max_rec` says. A number that would be cut off, because types were taken from some records or
//! were declared, is an error with its line, and so is one in a column that is declared as one of dates or times, where
//! the reader would count its units; so are other values that do not fit, which the reader finds. The file goes once
//! the reader of `arrow` refuses what it would cut off, and numbers for dates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::logical_expr::CreateExternalTable;
use futures::StreamExt;

use super::json_values::{JsonValues, Misfit};
use super::memory::{FileMemory, Stop};
use crate::csv_lines::compression;
use crate::error::{Result, SqlError};
use crate::locations::shown;
use crate::words::sql_name;

/// Files looked through at once.
const AT_ONCE: usize = 8;
/// The option that says of how many records types are taken.
const OPTION: &str = "format.schema_infer_max_rec";

/// The columns of a table over JSON files; none where they are declared, or left to DataFusion.
///
/// # Errors
/// [`SqlError::FileRow`] for a number that a column would cut off or take for a date; [`SqlError::FileCorrupt`] for an
/// array without an end, of which DataFusion would read what is there.
pub(super) async fn infer(
    state: &dyn Session,
    command: &CreateExternalTable,
    files: &[PathBuf],
) -> Result<Option<Schema>> {
    let told = command.options.get(OPTION).map(|most| most.parse::<usize>());
    let Ok(records) = told.unwrap_or(Ok(usize::MAX)) else { return Ok(None) };
    let memory = state.config().get_extension::<FileMemory>();
    let compression = compression(command);
    let looks = files.iter().cloned().map(|path| {
        let memory = memory.clone();
        async move {
            let look = |path: PathBuf| async move {
                let stop = Stop::default();
                let flag = stop.flag();
                let read = move || JsonValues::read(&path, compression, records, &flag).map(Arc::new);
                tokio::task::spawn_blocking(read).await.ok().flatten()
            };
            let found = match memory {
                Some(memory) => memory.json.find(&path, (records, compression), look).await,
                None => look(path.clone()).await,
            };
            (path, found)
        }
    });
    let found: Vec<(PathBuf, Option<Arc<JsonValues>>)> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    if let Some((path, _)) = found.iter().find(|(_, found)| found.as_ref().is_some_and(|found| found.is_cut_off)) {
        let reason = "the array that it holds has no end: the file is cut off".into();
        return Err(SqlError::FileCorrupt { path: shown(path), reason });
    }
    let all = found.iter().map(|(_, found)| found.as_deref()).collect::<Option<Vec<_>>>();
    let inferred = all.and_then(|all| {
        let (first, others) = all.split_first()?;
        let mut merged = JsonValues::clone(first);
        others.iter().for_each(|other| merged.merge(other));
        let schema = merged.schema();
        (!schema.fields().is_empty()).then_some(schema)
    });
    let declared = command.schema.as_arrow();
    let is_key = |name: &String| command.table_partition_cols.contains(name);
    let is_declared = declared.fields().iter().any(|field| !is_key(field.name()));
    let schema = match is_declared {
        true => Some(declared.clone()),
        false => inferred,
    };
    if let Some(schema) = &schema {
        for (path, values) in &found {
            check(path, values.as_deref(), schema, is_declared)?;
        }
    }
    Ok(schema.filter(|_| !is_declared))
}

/// Refuses a file with a number that its column would cut off, or would take for a date or a time.
fn check(path: &Path, values: Option<&JsonValues>, schema: &Schema, is_declared: bool) -> Result<()> {
    let Some(misfit) = values.and_then(|values| values.misfit(schema.fields())) else { return Ok(()) };
    let Misfit { column, line, number, kind } = misfit;
    let reason = match (kind.is_integer(), is_declared) {
        (false, _) => {
            let kind = sql_name(&kind);
            format!(
                "{number} is a number, and the column's type is {kind}: declare it BIGINT or DOUBLE, and write what \
                 the number counts, as to_timestamp_millis({column})"
            )
        }
        (true, true) => {
            format!("{number} is no whole number, as the column's type asks; declare the column DOUBLE or DECIMAL")
        }
        (true, false) => format!(
            "{number} is no whole number, as the column's type asks; raise {OPTION}, which types are taken from, or \
             leave it out"
        ),
    };
    Err(SqlError::FileRow { path: shown(path), line, column: Some(column), reason })
}
