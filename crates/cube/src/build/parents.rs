//! Dimensions of a table with a row for each element and its parent.

use std::collections::HashSet;

use arrow::array::{Array, Float64Array, RecordBatch};

use super::BuildError;
use super::keys::name_text;
use super::labels::{LabelColumns, Table, numbers};
use super::report::OtherParent;
use crate::define::DimensionDefinition;
use crate::error::{ModelError, Path};
use crate::model::{Dimension, DimensionBuilder, ElementId, ElementKind, folded, nearest};

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

/// Adds the elements of a table to a dimension: keys that are parents are consolidated, others base. Edges to new
/// elements are added, and edges from new parents to elements that lose none of theirs; rows of other new edges are
/// returned.
pub(super) fn grow(
    dimension: Dimension,
    definition: &DimensionDefinition,
    (key, parent): (&str, &str),
    mut table: Table<'_>,
) -> Result<(Dimension, Vec<OtherParent>), BuildError> {
    let columns = Columns {
        key: table.names(key)?,
        parent: table.names(parent)?,
        weight: definition.weight.as_deref().map(|name| weights_column(&mut table, name)).transpose()?,
    };
    let label_columns = LabelColumns::of(definition, &mut table)?;
    let batch = table.rows()?;
    let rows = rows(&batch, &columns, dimension.name(), definition.table.as_deref().unwrap_or_default())?;
    let parents: HashSet<String> = rows.iter().filter_map(|row| row.parent.as_deref()).map(folded).collect();
    let first_new = dimension.id_count();
    let is_new = |id: ElementId| id.index() >= first_new;
    let mut builder = DimensionBuilder::resume(dimension);
    builder.reserve(rows.len());
    let mut labels = label_columns.of_rows(&batch);
    let mut ids = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let id = match builder.dimension().find_key(&row.key) {
            Some(id) => id,
            None if parents.contains(&folded(&row.key)) => builder.add(&row.key, ElementKind::Consolidated)?,
            None => builder.add(&row.key, ElementKind::Base)?,
        };
        if is_new(id) {
            labels.label(builder.dimension(), id, at)?;
        }
        ids.push(id);
    }
    let moved = moved(builder.dimension(), definition, &rows, &ids, first_new);
    let mut others = Vec::new();
    for (row, child) in rows.iter().zip(ids) {
        let Some(parent) = &row.parent else { continue };
        let Some(parent_id) = builder.dimension().find_key(parent) else {
            return Err(unknown_parent(builder.dimension(), parent, &row.key).into());
        };
        if is_new(child) || is_new(parent_id) && !moved.contains(&child) {
            if !is_new(parent_id) && builder.dimension().element(parent_id).kind() == ElementKind::Base {
                let reason = format!("the table has '{}' below '{parent}', a base element of the cube", row.key);
                return Err(BuildError::OtherCube { reason });
            }
            builder.link(parent_id, child, row.weight)?;
        } else if !builder.dimension().element(child).parents().contains(&parent_id) {
            let element = builder.dimension().element(child).name().to_owned();
            let dimension = builder.dimension().name().to_owned();
            others.push(OtherParent { dimension, element, parent: parent.clone() });
        }
    }
    Ok((builder.finish()?, others))
}

/// Elements of the dimension that have a parent which the table no longer gives them. A new parent would count them
/// twice.
fn moved(
    dimension: &Dimension,
    definition: &DimensionDefinition,
    rows: &[Row],
    ids: &[ElementId],
    first_new: usize,
) -> HashSet<ElementId> {
    let listed: HashSet<String> = definition.consolidated.names().map(folded).collect();
    let mut edges: HashSet<(ElementId, ElementId)> = HashSet::new();
    for (row, child) in rows.iter().zip(ids) {
        edges
            .extend(row.parent.as_deref().and_then(|parent| dimension.find_key(parent)).map(|parent| (parent, *child)));
    }
    let is_lost = |parent: &ElementId, child: ElementId| {
        !edges.contains(&(*parent, child)) && !listed.contains(&folded(dimension.element(*parent).name()))
    };
    let is_moved = |child: &ElementId| dimension.element(*child).parents().iter().any(|parent| is_lost(parent, *child));
    ids.iter().copied().filter(|id| id.index() < first_new).filter(is_moved).collect()
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
