//! Dimensions of a table with a row for each element and its parent.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;

use super::BuildError;
use super::error::sentence_end;
use super::keys::{name_text, value_text};
use super::labels::{LabelColumns, Table};
use super::numbers::remedy;
use super::order::sorted_rows;
use super::report::OtherCase;
use super::typed;
use crate::define::{ColumnType, DimensionDefinition, NumberStyle};
use crate::error::{ModelError, all_quoted};
use crate::model::{Dimension, DimensionBuilder, ElementKind, ParentKeys, nearest};

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
/// consolidated, others base. Also the rows that name parents in another case.
pub(super) fn of_table(
    name: &str,
    definition: &DimensionDefinition,
    (key, parent): (&str, &str),
    mut table: Table<'_>,
) -> Result<(Dimension, Option<OtherCase>), BuildError> {
    let columns = Columns {
        key: table.names(key)?,
        parent: table.names(parent)?,
        weight: definition.weight.as_deref().map(|name| weights_column(&mut table, name)).transpose()?,
    };
    let style = columns.weight.and_then(|column| table.style(column)).unwrap_or(NumberStyle::PLAIN);
    let label_columns = LabelColumns::of(definition, &mut table)?;
    let sort = table.sort(definition)?;
    let batch = table.rows()?;
    let order = sorted_rows(&batch, sort)?;
    let file = definition.table.as_deref().unwrap_or_default();
    let rows = rows(&batch, &columns, style, (name, file))?;
    let parents = ParentKeys::of(rows.iter().map(|row| (row.key.as_str(), row.parent.as_deref())));
    let mut builder = DimensionBuilder::new(name)?;
    builder.reserve(rows.len());
    let mut labels = label_columns.of_rows(&batch);
    let mut ids = Vec::with_capacity(rows.len());
    for row in order.iter().map(|at| &rows[*at]) {
        let id = match builder.dimension().holder(&row.key) {
            Some(id) => id,
            None if parents.has(&row.key) => builder.add(&row.key, ElementKind::Consolidated)?,
            None => builder.add(&row.key, ElementKind::Base)?,
        };
        ids.push(id);
    }
    check_parents(&rows, builder.dimension(), name, (file, parent))?;
    let (mut other_case, mut seen, mut count) = (Vec::new(), HashSet::new(), 0);
    for (at, child) in order.iter().copied().zip(ids.iter().copied()) {
        let Some(parent) = rows[at].parent.as_deref() else { continue };
        let Some(parent_id) = builder.dimension().find_key(parent) else { continue };
        let key = builder.dimension().element(parent_id).name();
        if key != parent {
            count += 1;
            let text = format!("{parent} is {key}");
            if seen.insert(text.clone()) {
                other_case.push(text);
            }
        }
        builder
            .link(parent_id, child, rows[at].weight)
            .map_err(|error| BuildError::from(error).in_row(name, file, at))?;
    }
    // Last: rows and parents are found by keys, never by alternative names of others.
    for (at, id) in order.into_iter().zip(ids) {
        labels.label(builder.dimension(), id, at).map_err(|error| error.in_row(name, file, at))?;
    }
    Ok((builder.finish()?, OtherCase::of(name, Some(file), other_case, count)))
}

fn weights_column(table: &mut Table<'_>, name: &str) -> Result<usize, BuildError> {
    let (place, data_type) = table.column(name)?;
    let is_written = table.style(place).is_some() && data_type.is_string();
    if data_type.is_numeric() || data_type.is_null() || is_written {
        return Ok(place);
    }
    Err(table.wrong_type(place, "weights are numbers".to_owned()))
}

fn rows(
    batch: &RecordBatch,
    columns: &Columns,
    style: NumberStyle,
    (dimension, table): (&str, &str),
) -> Result<Vec<Row>, BuildError> {
    let weights = columns.weight.map(|column| typed::typed(batch.column(column), &ColumnType::Double, style));
    let wrong = |row: usize, problem: String| BuildError::TableRow {
        dimension: dimension.to_owned(),
        table: table.to_owned(),
        row: row + 1,
        problem,
    };
    let weights = weights.transpose().map_err(|(row, _)| {
        let value = columns.weight.and_then(|column| value_text(batch.column(column), row)).unwrap_or_default();
        wrong(row, format!("the weight '{value}' is no number; {}", remedy(&value, style)))
    })?;
    let weights = weights.as_ref().map(|weights| weights.as_primitive::<Float64Type>());
    let row = |at: usize| {
        let missing = || wrong(at, "the key is NULL, empty or blank; every row names an element".to_owned());
        let weight = weights.filter(|weights| weights.is_valid(at)).map_or(1.0, |weights| weights.value(at));
        Ok(Row {
            key: name_text(batch.column(columns.key), at).ok_or_else(missing)?,
            parent: name_text(batch.column(columns.parent), at),
            weight,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// Refuses parents that no row has for its key, and those that several have in other case, with the first row that
/// names one.
fn check_parents(
    rows: &[Row],
    dimension: &Dimension,
    name: &str,
    (table, parent_column): (&str, &str),
) -> Result<(), BuildError> {
    let is_orphan = |row: &Row| row.parent.as_deref().is_some_and(|parent| dimension.find_key(parent).is_none());
    let mut orphans = rows.iter().enumerate().filter(|(_, row)| is_orphan(row));
    let Some((at, row)) = orphans.next() else { return Ok(()) };
    let parent = row.parent.as_deref().unwrap_or_default();
    let more = match orphans.count() {
        0 => String::new(),
        more => format!(", as parents of {more} more rows are"),
    };
    let whole = parent.parse::<f64>().ok().map(|number| number.to_string());
    let is_key = |whole: &String| whole != parent && dimension.find_key(whole).is_some();
    if let Some(whole) = whole.filter(is_key) {
        let problem = format!(
            "the parent '{parent}' of '{}' is the key of no row, and '{whole}' is: write types: {{{parent_column}: \
             integer}} for the table",
            row.key
        );
        return Err(BuildError::TableRow { dimension: name.to_owned(), table: table.to_owned(), row: at + 1, problem });
    }
    if let Some(ModelError::AmbiguousCase { candidates, .. }) = dimension.ambiguous(parent) {
        let problem = format!(
            "the parent '{parent}' of '{}' is the key of no row; {} are, which differ in case alone: write one of them",
            row.key,
            all_quoted(&candidates)
        );
        return Err(BuildError::TableRow { dimension: name.to_owned(), table: table.to_owned(), row: at + 1, problem });
    }
    let near = sentence_end(&nearest(parent, dimension.all_names()));
    let problem = format!(
        "the parent '{parent}' of '{}' is the key of no row{more}{near} Add a row for it, without a parent, or leave \
         the parent empty",
        row.key
    );
    Err(BuildError::TableRow { dimension: name.to_owned(), table: table.to_owned(), row: at + 1, problem })
}
