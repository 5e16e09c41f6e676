//! The rules that all rows of a table keep, held where batches enter it.
//!
//! A batch that enters has the types of the table's columns: the statement's plan casts to them, and another type is an
//! error. Then come NOT NULL and CHECK. Keys are held when a version is made ([`super::versions`]). An error names the
//! row by its values.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::physical_plan::PhysicalExpr;

use crate::error::{Result, SqlError};

/// Characters of a row that an error shows.
const ROW_CHARS_MAX: usize = 200;

/// A PRIMARY KEY or UNIQUE.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) is_primary: bool,
    pub(crate) columns: Vec<usize>,
}

/// A CHECK.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    /// As it was written.
    pub(crate) text: String,
    /// Over the table's columns.
    pub(crate) condition: Arc<dyn PhysicalExpr>,
}

/// What rows of a table keep.
#[derive(Debug)]
pub(crate) struct Rules {
    table: String,
    schema: SchemaRef,
    keys: Vec<Key>,
    checks: Vec<Check>,
}

impl Rules {
    /// The rules of a table with nothing but its columns' types and NOT NULL.
    pub(crate) fn of(table: &str, schema: SchemaRef) -> Rules {
        Rules { table: table.to_string(), schema, keys: Vec::new(), checks: Vec::new() }
    }

    /// With keys and checks.
    pub(crate) fn with(self, keys: Vec<Key>, checks: Vec<Check>) -> Rules {
        Rules { keys, checks, ..self }
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub(super) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// A batch as one of the table, its columns taken by position.
    ///
    /// # Errors
    /// A column of another type, a NULL where there must be none, and a row that a CHECK refuses.
    pub(crate) fn admit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().to_vec();
        for (column, field) in columns.iter().zip(self.schema.fields()).filter(|(_, field)| !field.is_nullable()) {
            if let Some(row) = column.logical_nulls().and_then(|nulls| nulls.iter().position(|valid| !valid)) {
                let row = show(batch, row);
                return Err(self.broken(&format!("row {row}: NULL in column '{}', which is NOT NULL", field.name())));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let admitted = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| self.broken(&error.to_string()))?;
        for check in &self.checks {
            let holds = check.condition.evaluate(&admitted)?.into_array(admitted.num_rows())?;
            let holds = holds.as_boolean();
            // What is unknown is not refused.
            if let Some(row) = (0..holds.len()).find(|row| holds.is_valid(*row) && !holds.value(*row)) {
                let row = show(&admitted, row);
                return Err(self.broken(&format!("row {row}: CHECK ({}) does not hold", check.text)));
            }
        }
        Ok(admitted)
    }

    /// The error for two rows of one key.
    pub(super) fn repeated(&self, key: &Key, batch: &RecordBatch, row: usize) -> SqlError {
        let names: Vec<&str> = key.columns.iter().map(|column| self.schema.field(*column).name().as_str()).collect();
        let kind = if key.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        self.broken(&format!("row {}: its key is there already ({kind} ({}))", show(batch, row), names.join(", ")))
    }

    /// An error about rows of the table.
    pub(super) fn broken(&self, what: &str) -> SqlError {
        SqlError::Execution(format!("table '{}', {what}", self.table))
    }
}

/// A row for people.
fn show(batch: &RecordBatch, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let value = |column: &dyn Array| match ArrayFormatter::try_new(column, &options) {
        Ok(formatter) => formatter.value(row).to_string(),
        Err(_) => "?".to_string(),
    };
    let values: Vec<String> = batch.columns().iter().map(|column| value(column.as_ref())).collect();
    let text = values.join(", ");
    match text.char_indices().nth(ROW_CHARS_MAX) {
        Some((end, _)) => format!("({}…)", &text[..end]),
        None => format!("({text})"),
    }
}
