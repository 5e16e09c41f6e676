//! Long form: a row for each cell, with the element of each dimension.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Cube, CubeError, TableAnswer};
use crate::aggregate::CellValue;
use crate::ask::{AxisPlaces, target_names};
use crate::facts::{FactMeasure, Rule, ValueType};
use crate::model::{Dimension, ElementId, folded};
use crate::query::{BoundSet, BoundTable, CubeAxis, Target};

/// Columns beside those of dimensions.
const MEASURE: &str = "measure";
const VALUE: &str = "value";
const TEXT: &str = "text";
const DECIMAL: &str = "decimal";

/// The columns of an answer in long form: the name of an element of each dimension, `measure`, `value` and `text`.
///
/// Values are decimals of the largest scale if all measures of the query are decimals, else doubles. Where decimals
/// stand beside doubles, a column `decimal` behind the others has their digits. These names are the same for every
/// cube: the column of a dimension that has one of them gets underscores.
pub fn long_schema(cube: &Cube, table: &BoundTable) -> SchemaRef {
    let dimensions = cube.model.dimensions().iter();
    let names = dimensions.map(|dimension| Field::new(dimension_column(cube, dimension), DataType::Utf8, false));
    let values = ValueColumns::of(cube, table);
    let decimals = values.decimals.map(|scale| DataType::Decimal128(38, scale as i8));
    let (value, exact) = match (values.doubles, decimals) {
        (true, decimals) => (DataType::Float64, decimals),
        (false, decimals) => (decimals.unwrap_or(DataType::Float64), None),
    };
    let own = [
        Field::new(MEASURE, DataType::Utf8, false),
        Field::new(VALUE, value, true),
        Field::new(TEXT, DataType::Utf8, true),
    ];
    let exact = exact.map(|exact| Field::new(DECIMAL, exact, true));
    Arc::new(Schema::new(names.chain(own).chain(exact).collect::<Vec<_>>()))
}

/// The name of a dimension's column.
fn dimension_column(cube: &Cube, dimension: &Dimension) -> String {
    let is_taken = |name: &str| [MEASURE, VALUE, TEXT, DECIMAL].contains(&folded(name).as_str());
    let mut name = dimension.name().to_string();
    if is_taken(&name) {
        name.push('_');
        while cube.model.dimension_index(&name).is_some() {
            name.push('_');
        }
    }
    name
}

/// The value columns that the measures of a query need.
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
            .map(|measure| match &cube.facts.measures()[measure] {
                FactMeasure { rule: Rule::Avg, .. } | FactMeasure { value_type: ValueType::Double, .. } => None,
                FactMeasure { value_type: ValueType::Decimal { scale }, .. } => Some(*scale),
            })
            .collect();
        ValueColumns { decimals: scales.iter().flatten().copied().max(), doubles: scales.contains(&None) }
    }
}

/// The rows of an answer: numbers of cells within the area, in mixed radix over the sets of the query's axes.
///
/// A number is 16 bytes where a row is two hundred; the empty cells of an area have none at all.
#[derive(Debug)]
enum Numbers {
    /// Every cell of the area.
    All(u128),
    /// Some of them, in their order.
    Listed(Vec<u128>),
    /// All cells of some rows: numbers of the rows within pages and rows, and the cells of a row.
    Rows(Vec<u128>, u128),
}

/// The batches of an answer in long form; each is made when it is asked for.
#[derive(Debug)]
pub struct LongForm<'a> {
    cube: &'a Cube,
    answer: &'a TableAnswer,
    schema: SchemaRef,
    /// Names of the targets of each dimension.
    names: Vec<Vec<String>>,
    numbers: Numbers,
    batch_rows: usize,
    next: u128,
}

/// A cell that becomes a row.
struct Row {
    /// Target of each dimension.
    target: Vec<u32>,
    /// Column of the measure within the query.
    measure: usize,
}

impl<'a> LongForm<'a> {
    pub(super) fn new(cube: &'a Cube, answer: &'a TableAnswer, batch_rows: usize) -> LongForm<'a> {
        let dimensions = cube.model.dimensions().iter().zip(&answer.asked.targets);
        LongForm {
            cube,
            answer,
            schema: long_schema(cube, &answer.table),
            names: dimensions.map(|(dimension, targets)| target_names(dimension, targets)).collect(),
            numbers: numbers(cube, answer),
            batch_rows: batch_rows.max(1),
            next: 0,
        }
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn len(&self) -> u128 {
        match &self.numbers {
            Numbers::All(count) => *count,
            Numbers::Listed(numbers) => numbers.len() as u128,
            Numbers::Rows(rows, columns) => rows.len() as u128 * columns,
        }
    }

    fn row(&self, at: u128) -> Row {
        let number = match &self.numbers {
            Numbers::All(_) => at,
            Numbers::Listed(numbers) => numbers[at as usize],
            Numbers::Rows(rows, columns) => rows[(at / columns) as usize] * columns + at % columns,
        };
        row_of(self.answer, number)
    }

    fn batch(&self, rows: &[Row]) -> Result<RecordBatch, CubeError> {
        let LongForm { cube, answer, .. } = self;
        let TableAnswer { asked, cells, .. } = answer;
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (number, names) in self.names.iter().enumerate() {
            let names = rows.iter().map(|row| &names[row.target[number] as usize]);
            columns.push(Arc::new(StringArray::from_iter_values(names)));
        }
        let measures = rows.iter().map(|row| &cube.model.measures()[asked.measures[row.measure]].name);
        columns.push(Arc::new(StringArray::from_iter_values(measures)));
        let value = |row: &Row| cells.find(&row.target).and_then(|cell| cells.columns()[row.measure].value(cell));
        let values: Vec<Option<CellValue>> = rows.iter().map(value).collect();
        let doubles = || values.iter().map(|value| value.map(CellValue::to_f64)).collect::<Float64Array>();
        let decimals = |scale: u8| {
            let units = values.iter().map(|value| value.and_then(|value| units(value, scale)));
            units.collect::<Decimal128Array>().with_precision_and_scale(38, scale as i8)
        };
        let kinds = ValueColumns::of(cube, &answer.table);
        columns.push(match kinds {
            ValueColumns { decimals: Some(scale), doubles: false } => Arc::new(decimals(scale)?),
            _ => Arc::new(doubles()),
        });
        let texts = rows.iter().map(|row| text(cube, answer, row));
        columns.push(Arc::new(texts.collect::<StringArray>()));
        if let ValueColumns { decimals: Some(scale), doubles: true } = kinds {
            columns.push(Arc::new(decimals(scale)?));
        }
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}

impl Iterator for LongForm<'_> {
    type Item = Result<RecordBatch, CubeError>;

    /// The next batch; an answer without rows has none.
    fn next(&mut self) -> Option<Self::Item> {
        let end = self.len().min(self.next + self.batch_rows as u128);
        if self.next == end {
            return None;
        }
        let rows: Vec<Row> = (self.next..end).map(|at| self.row(at)).collect();
        self.next = end;
        Some(self.batch(&rows))
    }
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
/// asks for empty ones. Under `top` and `bottom` those of the rows that they keep, in the order of these rows.
fn numbers(cube: &Cube, answer: &TableAnswer) -> Numbers {
    let TableAnswer { table, cells, asked, ranked, .. } = answer;
    let columns = u128::from(AxisPlaces::new(&table.columns).count);
    let rows_of_page = u128::from(AxisPlaces::new(&table.rows).count);
    let rows: Option<Vec<u128>> = ranked.as_ref().map(|pages| {
        let rows = pages.iter().flat_map(|page| page.rows.iter().map(|row| (u128::from(page.page), u128::from(*row))));
        rows.map(|(page, row)| page * rows_of_page + row).collect()
    });
    if table.shows_empty {
        return match rows {
            Some(rows) => Numbers::Rows(rows, columns),
            None => Numbers::All(sets(table).fold(1, |count, set| count * set.targets.len() as u128)),
        };
    }
    let mut numbers = Vec::new();
    for (measure, column) in cells.columns().iter().enumerate() {
        let filled = (0..cells.len()).filter(|cell| column.value(*cell).is_some());
        numbers.extend(filled.map(|cell| number_of(answer, &cells.target(cell), measure)));
    }
    for target in text_targets(cube, answer) {
        let cell = cells.find(&target);
        let is_empty = |measure: &usize| cell.is_none_or(|cell| cells.columns()[*measure].value(cell).is_none());
        let empty = (0..asked.measures.len()).filter(is_empty);
        numbers.extend(empty.map(|measure| number_of(answer, &target, measure)));
    }
    match rows {
        None => numbers.sort_unstable(),
        Some(rows) => {
            let ranks: HashMap<u128, usize> = rows.into_iter().enumerate().map(|(rank, row)| (row, rank)).collect();
            numbers.retain(|number| ranks.contains_key(&(number / columns)));
            numbers.sort_unstable_by_key(|number| (ranks[&(number / columns)], *number));
        }
    }
    Numbers::Listed(numbers)
}

fn sets(table: &BoundTable) -> impl DoubleEndedIterator<Item = &BoundSet> {
    table.pages.iter().chain(&table.rows).chain(&table.columns)
}

/// The number of a cell.
fn number_of(answer: &TableAnswer, target: &[u32], measure: usize) -> u128 {
    sets(&answer.table).fold(0, |number, set| {
        let at = match set.axis {
            CubeAxis::Dimension(position) => target[position] as usize,
            CubeAxis::Measures => measure,
        };
        number * set.targets.len() as u128 + at as u128
    })
}

/// The cell of a number.
fn row_of(answer: &TableAnswer, number: u128) -> Row {
    let (mut target, mut measure, mut rest) = (vec![0; answer.asked.targets.len()], 0, number);
    for set in sets(&answer.table).rev() {
        let count = set.targets.len() as u128;
        let at = rest % count;
        rest /= count;
        match set.axis {
            CubeAxis::Dimension(position) => target[position] = at as u32,
            CubeAxis::Measures => measure = at as usize,
        }
    }
    Row { target, measure }
}

/// Targets of the area whose elements have a text.
pub(super) fn text_targets(cube: &Cube, answer: &TableAnswer) -> Vec<Vec<u32>> {
    let targets = &answer.asked.targets;
    let mut places: Vec<HashMap<ElementId, Vec<u32>>> = vec![HashMap::new(); targets.len()];
    for (places, targets) in places.iter_mut().zip(targets).filter(|_| !cube.texts.is_empty()) {
        for (at, target) in targets.iter().enumerate() {
            target.element().into_iter().for_each(|element| places.entry(element).or_default().push(at as u32));
        }
    }
    let mut found = Vec::new();
    for elements in cube.texts.keys() {
        let at: Option<Vec<&Vec<u32>>> = elements.iter().zip(&places).map(|(element, of)| of.get(element)).collect();
        // An element that stands in a set twice has its text twice.
        found.extend(at.into_iter().flat_map(|at| {
            at.into_iter().fold(vec![Vec::new()], |targets: Vec<Vec<u32>>, places| {
                let longer = |target: &Vec<u32>| places.iter().map(|at| [target.as_slice(), &[*at]].concat()).collect();
                targets.iter().flat_map::<Vec<Vec<u32>>, _>(longer).collect()
            })
        }));
    }
    found
}
