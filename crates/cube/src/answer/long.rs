//! Long form: a row for each cell, with the element of each dimension.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Cube, CubeError, TableAnswer};
use crate::aggregate::CellValue;
use crate::ask::target_name;
use crate::facts::{Rule, ValueType};
use crate::model::ElementId;
use crate::query::{BoundSet, CubeAxis, Direction};

/// The columns of answers in long form, the same for every query of a cube: the name of an element of each dimension,
/// `measure`, `value` and `text`. Values are decimals of the largest scale if all measures are decimals, else doubles.
/// A name that a dimension or measure has gets underscores.
pub fn long_schema(cube: &Cube) -> SchemaRef {
    let dimensions = cube.model.dimensions().iter();
    let names = dimensions.map(|dimension| Field::new(dimension.name(), DataType::Utf8, false));
    let own = [
        Field::new(cube.free_name("measure"), DataType::Utf8, false),
        Field::new(cube.free_name("value"), value_type(cube), true),
        Field::new(cube.free_name("text"), DataType::Utf8, true),
    ];
    Arc::new(Schema::new(names.chain(own).collect::<Vec<_>>()))
}

fn value_type(cube: &Cube) -> DataType {
    match decimal_scale(cube) {
        Some(scale) => DataType::Decimal128(38, scale as i8),
        None => DataType::Float64,
    }
}

/// The largest scale, if all measures give decimals.
fn decimal_scale(cube: &Cube) -> Option<u8> {
    let scale = |column: &crate::facts::FactColumn| match (column.measure.rule, column.measure.value_type) {
        (Rule::Avg, _) | (_, ValueType::Double) => None,
        (_, ValueType::Decimal { scale }) => Some(scale),
    };
    cube.facts.columns().iter().map(scale).try_fold(0, |most: u8, scale| scale.map(|scale| most.max(scale)))
}

/// A cell that becomes a row.
struct Row {
    /// Target of each dimension.
    target: Vec<u32>,
    /// Column of the measure within the query.
    measure: usize,
    value: Option<CellValue>,
}

pub(super) fn long_form(cube: &Cube, answer: &TableAnswer) -> Result<RecordBatch, CubeError> {
    let rows = rows(cube, answer);
    let model = &cube.model;
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (number, dimension) in model.dimensions().iter().enumerate() {
        let targets = &answer.asked.targets[number];
        let names: Vec<String> = targets.iter().map(|target| target_name(dimension, target)).collect();
        let mut column = StringBuilder::new();
        rows.iter().for_each(|row| column.append_value(&names[row.target[number] as usize]));
        columns.push(Arc::new(column.finish()));
    }
    let mut measures = StringBuilder::new();
    rows.iter().for_each(|row| measures.append_value(&model.measures()[answer.asked.measures[row.measure]].name));
    columns.push(Arc::new(measures.finish()));
    columns.push(match decimal_scale(cube) {
        Some(scale) => {
            let values = rows.iter().map(|row| row.value.map(|value| units(value, scale)));
            Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, scale as i8)?)
        }
        None => Arc::new(rows.iter().map(|row| row.value.map(CellValue::to_f64)).collect::<Float64Array>()),
    });
    let mut texts = StringBuilder::new();
    rows.iter().for_each(|row| texts.append_option(text(cube, answer, row)));
    columns.push(Arc::new(texts.finish()));
    Ok(RecordBatch::try_new(super::long_schema(cube), columns)?)
}

/// A decimal in units of 10^-scale, where its own scale is not larger.
fn units(value: CellValue, scale: u8) -> i128 {
    match value {
        CellValue::Decimal { units, scale: own } => i128::from(units) * 10_i128.pow(u32::from(scale - own)),
        CellValue::Double(_) => unreachable!("all measures are decimals"),
    }
}

/// The text of a cell whose targets are elements.
fn text<'a>(cube: &'a Cube, answer: &TableAnswer, row: &Row) -> Option<&'a str> {
    if cube.texts.is_empty() {
        return None;
    }
    let elements = row.target.iter().zip(&answer.asked.targets).map(|(at, targets)| targets[*at as usize].element());
    let elements: Vec<ElementId> = elements.collect::<Option<_>>()?;
    cube.texts.get(&elements).map(String::as_str)
}

/// The cells that are shown: those with a value or a text, or all of them if the query asks for empty ones.
fn rows(cube: &Cube, answer: &TableAnswer) -> Vec<Row> {
    let TableAnswer { table, asked, cells, .. } = answer;
    if let Some(extreme) = table.extreme {
        return extremes(answer, extreme.direction, extreme.count as usize);
    }
    // Without texts and empty cells only filled cells are rows: they are looked at in place of the whole area.
    if cube.texts.is_empty() && !table.shows_empty {
        return filled(answer);
    }
    let sets: Vec<&BoundSet> = table.pages.iter().chain(&table.rows).chain(&table.columns).collect();
    let count = sets.iter().fold(1, |count, set| count * set.targets.len());
    let mut rows = Vec::new();
    for number in 0..count {
        let (mut target, mut measure, mut rest) = (vec![0; asked.targets.len()], 0, number);
        for set in sets.iter().rev() {
            let at = rest % set.targets.len();
            rest /= set.targets.len();
            match set.axis {
                CubeAxis::Dimension(position) => target[position] = at as u32,
                CubeAxis::Measures => measure = at,
            }
        }
        let value = cells.find(&target).and_then(|cell| cells.columns()[measure].value(cell));
        let row = Row { target, measure, value };
        if row.value.is_some() || table.shows_empty || text(cube, answer, &row).is_some() {
            rows.push(row);
        }
    }
    rows
}

/// Filled cells in the order of the query's axes.
fn filled(answer: &TableAnswer) -> Vec<Row> {
    let TableAnswer { table, cells, .. } = answer;
    let sets: Vec<&BoundSet> = table.pages.iter().chain(&table.rows).chain(&table.columns).collect();
    let mut rows: Vec<(Vec<u32>, Row)> = Vec::new();
    for cell in 0..cells.len() {
        let target = cells.target(cell);
        for (measure, column) in cells.columns().iter().enumerate() {
            let Some(value) = column.value(cell) else { continue };
            let place = sets.iter().map(|set| match set.axis {
                CubeAxis::Dimension(position) => target[position],
                CubeAxis::Measures => measure as u32,
            });
            rows.push((place.collect(), Row { target: target.clone(), measure, value: Some(value) }));
        }
    }
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The largest or smallest cells over all measures, the first one first; equal ones by measure, then by target.
fn extremes(answer: &TableAnswer, direction: Direction, count: usize) -> Vec<Row> {
    let cells = &answer.cells;
    let mut rows = Vec::new();
    for (measure, column) in cells.columns().iter().enumerate() {
        let ends = match direction {
            Direction::Top => cells.top(count, measure),
            Direction::Bottom => cells.bottom(count, measure),
        };
        rows.extend(ends.into_iter().map(|cell| Row {
            target: cells.target(cell),
            measure,
            value: column.value(cell),
        }));
    }
    let value = |row: &Row| row.value.map_or(0.0, CellValue::to_f64);
    rows.sort_by(|one, other| {
        let order = value(one).total_cmp(&value(other));
        if direction == Direction::Top { order.reverse() } else { order }
    });
    rows.truncate(count);
    rows
}
