//! Long form: a row for each cell, with the element of each dimension.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Cube, CubeError, TableAnswer};
use crate::aggregate::CellValue;
use crate::ask::{extremes, target_names};
use crate::facts::{FactMeasure, Rule, ValueType};
use crate::model::ElementId;
use crate::query::{BoundSet, BoundTable, CubeAxis, Extreme, Target};

/// The columns of an answer in long form: the name of an element of each dimension, `measure`, `value` and `text`.
///
/// Values are decimals of the largest scale if all measures of the query are decimals, else doubles. Where decimals
/// stand beside doubles, a column `decimal` behind the others has their digits. A name that a dimension or measure has
/// gets underscores.
pub fn long_schema(cube: &Cube, table: &BoundTable) -> SchemaRef {
    let dimensions = cube.model.dimensions().iter();
    let names = dimensions.map(|dimension| Field::new(dimension.name(), DataType::Utf8, false));
    let values = ValueColumns::of(cube, table);
    let decimals = values.decimals.map(|scale| DataType::Decimal128(38, scale as i8));
    let (value, exact) = match (values.doubles, decimals) {
        (true, decimals) => (DataType::Float64, decimals),
        (false, decimals) => (decimals.unwrap_or(DataType::Float64), None),
    };
    let own = [
        Field::new(cube.free_name("measure"), DataType::Utf8, false),
        Field::new(cube.free_name("value"), value, true),
        Field::new(cube.free_name("text"), DataType::Utf8, true),
    ];
    let exact = exact.map(|exact| Field::new(cube.free_name("decimal"), exact, true));
    Arc::new(Schema::new(names.chain(own).chain(exact).collect::<Vec<_>>()))
}

/// What the measures of a query give.
struct ValueColumns {
    /// The largest scale of decimals.
    decimals: Option<u8>,
    /// True if one gives doubles.
    doubles: bool,
}

impl ValueColumns {
    fn of(cube: &Cube, table: &BoundTable) -> ValueColumns {
        let sets = table.pages.iter().chain(&table.rows).chain(&table.columns).flat_map(|set| &set.targets);
        let targets = sets.chain(table.point.iter().map(|place| &place.target));
        let scales: Vec<Option<u8>> = targets
            .filter_map(Target::measure)
            .map(|measure| match &cube.facts.columns()[measure].measure {
                FactMeasure { rule: Rule::Avg, .. } | FactMeasure { value_type: ValueType::Double, .. } => None,
                FactMeasure { value_type: ValueType::Decimal { scale }, .. } => Some(*scale),
            })
            .collect();
        ValueColumns { decimals: scales.iter().flatten().copied().max(), doubles: scales.contains(&None) }
    }
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
        let names = target_names(dimension, targets);
        let mut column = StringBuilder::new();
        rows.iter().for_each(|row| column.append_value(&names[row.target[number] as usize]));
        columns.push(Arc::new(column.finish()));
    }
    let mut measures = StringBuilder::new();
    rows.iter().for_each(|row| measures.append_value(&model.measures()[answer.asked.measures[row.measure]].name));
    columns.push(Arc::new(measures.finish()));
    let values = ValueColumns::of(cube, &answer.table);
    let doubles = || rows.iter().map(|row| row.value.map(CellValue::to_f64)).collect::<Float64Array>();
    let decimals = |scale: u8| {
        let units = rows.iter().map(|row| row.value.and_then(|value| units(value, scale)));
        units.collect::<Decimal128Array>().with_precision_and_scale(38, scale as i8)
    };
    columns.push(match values {
        ValueColumns { decimals: Some(scale), doubles: false } => Arc::new(decimals(scale)?),
        _ => Arc::new(doubles()),
    });
    let mut texts = StringBuilder::new();
    rows.iter().for_each(|row| texts.append_option(text(cube, answer, row)));
    columns.push(Arc::new(texts.finish()));
    if let ValueColumns { decimals: Some(scale), doubles: true } = values {
        columns.push(Arc::new(decimals(scale)?));
    }
    Ok(RecordBatch::try_new(long_schema(cube, &answer.table), columns)?)
}

/// A decimal in units of 10^-scale, where its own scale is not larger; nothing of a double.
fn units(value: CellValue, scale: u8) -> Option<i128> {
    match value {
        CellValue::Decimal { units, scale: own } => Some(i128::from(units) * 10_i128.pow(u32::from(scale - own))),
        CellValue::Double(_) => None,
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

/// The cells that are shown in the order of the query's axes: those with a value or a text, or all of them if the query
/// asks for empty ones.
fn rows(cube: &Cube, answer: &TableAnswer) -> Vec<Row> {
    let TableAnswer { table, cells, .. } = answer;
    if let Some(Extreme { direction, count }) = table.extreme {
        let kept = extremes(cells, direction, count as usize);
        let row = |(measure, cell)| filled_row(answer, measure, cell);
        return kept.into_iter().map(row).collect();
    }
    if table.shows_empty {
        return all(answer);
    }
    let filled = (0..cells.len()).flat_map(|cell| (0..cells.columns().len()).map(move |measure| (measure, cell)));
    let filled = filled.map(|(measure, cell)| filled_row(answer, measure, cell)).filter(|row| row.value.is_some());
    let mut rows: Vec<Row> = filled.chain(texts_alone(cube, answer)).collect();
    let sets: Vec<&BoundSet> = sets(table).collect();
    let place = |row: &Row| -> Vec<u32> {
        let at = sets.iter().map(|set| match set.axis {
            CubeAxis::Dimension(position) => row.target[position],
            CubeAxis::Measures => row.measure as u32,
        });
        at.collect()
    };
    rows.sort_by_cached_key(place);
    rows
}

fn sets(table: &BoundTable) -> impl DoubleEndedIterator<Item = &BoundSet> {
    table.pages.iter().chain(&table.rows).chain(&table.columns)
}

fn filled_row(answer: &TableAnswer, measure: usize, cell: usize) -> Row {
    let cells = &answer.cells;
    Row { target: cells.target(cell), measure, value: cells.columns()[measure].value(cell) }
}

/// Every cell of the area.
fn all(answer: &TableAnswer) -> Vec<Row> {
    let TableAnswer { table, asked, cells, .. } = answer;
    let count = sets(table).fold(1, |count, set| count * set.targets.len());
    let row = |number: usize| {
        let (mut target, mut measure, mut rest) = (vec![0; asked.targets.len()], 0, number);
        for set in sets(table).rev() {
            let at = rest % set.targets.len();
            rest /= set.targets.len();
            match set.axis {
                CubeAxis::Dimension(position) => target[position] = at as u32,
                CubeAxis::Measures => measure = at,
            }
        }
        let value = cells.find(&target).and_then(|cell| cells.columns()[measure].value(cell));
        Row { target, measure, value }
    };
    (0..count).map(row).collect()
}

/// Cells of the area that have a text and no value, for each measure.
fn texts_alone(cube: &Cube, answer: &TableAnswer) -> Vec<Row> {
    let TableAnswer { asked, cells, .. } = answer;
    let mut places: Vec<HashMap<ElementId, Vec<u32>>> = vec![HashMap::new(); asked.targets.len()];
    for (places, targets) in places.iter_mut().zip(&asked.targets).filter(|_| !cube.texts.is_empty()) {
        for (at, target) in targets.iter().enumerate() {
            target.element().into_iter().for_each(|element| places.entry(element).or_default().push(at as u32));
        }
    }
    let mut rows = Vec::new();
    for elements in cube.texts.keys() {
        let at: Option<Vec<&Vec<u32>>> = elements.iter().zip(&places).map(|(element, of)| of.get(element)).collect();
        // An element that stands in a set twice has its text twice.
        let targets = at.into_iter().flat_map(|at| {
            at.into_iter().fold(vec![Vec::new()], |targets: Vec<Vec<u32>>, places| {
                let longer = |target: &Vec<u32>| places.iter().map(|at| [target.as_slice(), &[*at]].concat()).collect();
                targets.iter().flat_map::<Vec<Vec<u32>>, _>(longer).collect()
            })
        });
        for target in targets {
            let cell = cells.find(&target);
            let is_empty = |measure: &usize| cell.is_none_or(|cell| cells.columns()[*measure].value(cell).is_none());
            let empty = (0..asked.measures.len()).filter(is_empty);
            rows.extend(empty.map(|measure| Row { target: target.clone(), measure, value: None }));
        }
    }
    rows
}
