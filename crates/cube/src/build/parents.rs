//! Dimensions of a table with a row for each element and its parent.

use std::collections::HashSet;

use arrow::array::{Array, Float64Array, RecordBatch};

use super::BuildError;
use super::keys::name_text;
use super::labels::{LabelColumns, Table, numbers};
use super::order::sorted_rows;
use crate::define::DimensionDefinition;
use crate::error::{ModelError, Path};
use crate::model::{Dimension, DimensionBuilder, ElementKind, folded, nearest};

/// Places of the columns.
struct Columns {
    key: usize,
    parent: usize,
    weight: Option<usize>,
}

/// A row of the table.
struct Row {
    key: String,
    parent: Option<String>,
    weight: f64,
}

/// The dimension of a table, elements in the order of its rows or of a column: keys that are parents are
/// consolidated, others base.
pub(super) fn of_table(
    name: &str,
    definition: &DimensionDefinition,
    (key, parent): (&str, &str),
    mut table: Table<'_>,
) -> Result<Dimension, BuildError> {
    let columns = Columns {
        key: table.names(key)?,
        parent: table.names(parent)?,
        weight: definition.weight.as_deref().map(|name| weights_column(&mut table, name)).transpose()?,
    };
    let label_columns = LabelColumns::of(definition, &mut table)?;
    let sort = definition.sort.as_deref().map(|name| table.column(name)).transpose()?;
    let batch = table.rows()?;
    let order = sorted_rows(&batch, sort.map(|(place, _)| place))?;
    let rows = rows(&batch, &columns, name, definition.table.as_deref().unwrap_or_default())?;
    let parents: HashSet<String> = rows.iter().filter_map(|row| row.parent.as_deref()).map(folded).collect();
    let mut builder = DimensionBuilder::new(name)?;
    builder.reserve(rows.len());
    let mut labels = label_columns.of_rows(&batch);
    let mut ids = Vec::with_capacity(rows.len());
    for row in order.iter().map(|at| &rows[*at]) {
        let id = match builder.dimension().find_key(&row.key) {
            Some(id) => id,
            None if parents.contains(&folded(&row.key)) => builder.add(&row.key, ElementKind::Consolidated)?,
            None => builder.add(&row.key, ElementKind::Base)?,
        };
        ids.push(id);
    }
    for (row, child) in order.iter().map(|at| &rows[*at]).zip(ids.iter().copied()) {
        let Some(parent) = &row.parent else { continue };
        let Some(parent_id) = builder.dimension().find_key(parent) else {
            return Err(unknown_parent(builder.dimension(), parent, &row.key).into());
        };
        builder.link(parent_id, child, row.weight)?;
    }
    // Last: rows and parents are found by keys, never by alternative names of others.
    for (at, id) in order.into_iter().zip(ids) {
        labels.label(builder.dimension(), id, at)?;
    }
    Ok(builder.finish()?)
}

fn weights_column(table: &mut Table<'_>, name: &str) -> Result<usize, BuildError> {
    let (place, data_type) = table.column(name)?;
    if data_type.is_numeric() || data_type.is_null() {
        return Ok(place);
    }
    Err(table.wrong_type(place, &data_type, "weights are numbers".to_owned()))
}

fn rows(batch: &RecordBatch, columns: &Columns, dimension: &str, table: &str) -> Result<Vec<Row>, BuildError> {
    let weights: Option<Float64Array> = columns.weight.and_then(|column| numbers(batch.column(column)));
    let row = |at: usize| {
        let missing = || BuildError::TableRow {
            dimension: dimension.to_owned(),
            table: table.to_owned(),
            row: at + 1,
            problem: "the key is NULL or empty; every row names an element".to_owned(),
        };
        let weight = weights.as_ref().filter(|weights| weights.is_valid(at)).map_or(1.0, |weights| weights.value(at));
        Ok(Row {
            key: name_text(batch.column(columns.key), at).ok_or_else(missing)?,
            parent: name_text(batch.column(columns.parent), at),
            weight,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn unknown_parent(dimension: &Dimension, parent: &str, child: &str) -> ModelError {
    ModelError::UnknownInPath {
        dimension: dimension.name().to_owned(),
        path: Path(vec![parent.to_owned(), child.to_owned()]),
        name: parent.to_owned(),
        nearest: nearest(parent, dimension.all_names()),
    }
}
