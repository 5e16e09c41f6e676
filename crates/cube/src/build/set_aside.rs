//! Rows of the facts that are kept aside, with the reason.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringBuilder};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::BuildError;
use super::keys::name_text;
use super::pass::{Column, Keys};
use super::problem::{FIRST, NULL};
use super::report::Aside;

/// Name of the column of reasons.
const REASON: &str = "reason";

/// Rows kept aside so far.
#[derive(Default)]
pub(super) struct SetAside {
    batches: Vec<RecordBatch>,
}

impl SetAside {
    /// Adds the rows of a batch that are not marked, as the source has them.
    pub(super) fn add(
        &mut self,
        batch: &RecordBatch,
        kept: &[bool],
        keys: &[Keys<'_>],
        columns: &[Column<'_>],
    ) -> Result<(), BuildError> {
        let mask: BooleanArray = kept.iter().map(|kept| Some(!kept)).collect();
        let failed = |source| BuildError::Arrow { what: "keeping rows aside", source };
        let rows = filter_record_batch(batch, &mask).map_err(failed)?;
        let mut reasons = StringBuilder::new();
        for row in (0..kept.len()).filter(|row| !kept[*row]) {
            write_reasons(&mut reasons, (batch, row), keys, columns);
            reasons.append_value("");
        }
        let schema = with_reason(&rows.schema());
        let reasons: ArrayRef = Arc::new(reasons.finish());
        let arrays = rows.columns().iter().cloned().chain([reasons]).collect();
        self.batches.push(RecordBatch::try_new(schema, arrays).map_err(failed)?);
        Ok(())
    }

    /// The rows; `schema` is that of the facts' batches.
    pub(super) fn finish(self, schema: &SchemaRef) -> Aside {
        let schema = self.batches.first().map_or_else(|| with_reason(schema), RecordBatch::schema);
        Aside { schema, batches: self.batches }
    }
}

/// Writes the reasons of a row: its keys without a base element, and its measures that are not finite.
fn write_reasons(
    out: &mut StringBuilder,
    (batch, row): (&RecordBatch, usize),
    keys: &[Keys<'_>],
    columns: &[Column<'_>],
) {
    let mut separator = "";
    let mut write = |reason: std::fmt::Arguments<'_>| {
        // A builder of texts takes every write.
        let _ = write!(out, "{separator}{reason}");
        separator = "; ";
    };
    for keys in keys {
        let code = keys.resolver.codes[row];
        let written = keys.columns.iter().filter_map(|column| name_text(batch.column(*column), row)).next();
        if let (NULL, Some(text)) = (code, written.filter(|_| keys.columns.len() == 1)) {
            write(format_args!("{}: '{text}' is not of the type that types: says", keys.plan.name));
        } else if code >= FIRST {
            write(format_args!("{}: {}", keys.plan.name, keys.resolver.problems.of(code)));
        }
    }
    for column in columns {
        if column.values.not_finite.binary_search(&row).is_ok() {
            write(format_args!("{}: NaN or infinity", column.plan.measure.name));
        }
    }
}

/// A schema with the column of reasons behind its own, under a name that none of them has.
fn with_reason(schema: &SchemaRef) -> SchemaRef {
    let mut name = REASON.to_owned();
    while schema.fields().iter().any(|field| field.name().eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    let fields = schema.fields().iter().cloned().chain([Arc::new(Field::new(name, DataType::Utf8, false))]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
