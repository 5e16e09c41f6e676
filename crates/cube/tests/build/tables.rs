//! Tables in memory that answer the queries of a build, and texts of what was built.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt32Array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::util::display::array_value_to_string;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::build::{BuildError, Built, Tables, TablesError, TextFiles, build};
use warpcube_cube::define::parse;
use warpcube_cube::facts::{ValueType, Values};
use warpcube_cube::model::{Dimension, ElementId};

/// Rows of a batch.
pub const BATCH_ROWS: usize = 3;

/// Tables by name. SQL of facts is `TABLE name`.
#[derive(Default)]
pub struct Memory {
    tables: HashMap<String, RecordBatch>,
    /// Queries that were run.
    pub queries: RefCell<Vec<String>>,
    is_sorted: bool,
}

impl Memory {
    pub fn with(mut self, name: &str, table: RecordBatch) -> Memory {
        self.tables.insert(name.to_string(), table);
        self
    }

    /// Says that queries are sorted.
    pub fn sorted(self) -> Memory {
        Memory { is_sorted: true, ..self }
    }

    /// Source and columns of a query: those between quotes, or all for a star.
    fn parse(&self, sql: &str) -> (RecordBatch, bool) {
        if let Some(name) = sql.strip_prefix("TABLE ") {
            return (self.tables[name].clone(), false);
        }
        let rest = sql.strip_prefix("SELECT ").expect(sql);
        let (distinct, rest) = match rest.strip_prefix("DISTINCT ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (list, from) = rest.split_once(" FROM ").expect(sql);
        let (from, is_empty) = from.strip_suffix(" LIMIT 0").map_or((from, false), |from| (from, true));
        let name = match from.strip_prefix("(TABLE ") {
            Some(text) => text.strip_suffix("\n) AS facts").expect(sql).to_string(),
            None => from.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')).expect(sql).replace("''", "'"),
        };
        let table = self.tables.get(&name).unwrap_or_else(|| panic!("no table {name} in {sql}"));
        let table = if is_empty { table.slice(0, 0) } else { table.clone() };
        if list == "*" {
            return (table, distinct);
        }
        let names = list.strip_prefix('"').and_then(|it| it.strip_suffix('"')).expect(sql).split("\", \"");
        let places: Vec<usize> =
            names.map(|it| table.schema().index_of(&it.replace("\"\"", "\"")).expect(sql)).collect();
        (table.project(&places).unwrap(), distinct)
    }
}

impl Tables for Memory {
    fn query(&self, sql: &str, _: &TextFiles) -> Result<Box<dyn RecordBatchReader + '_>, TablesError> {
        self.queries.borrow_mut().push(sql.to_string());
        if sql.contains("'missing'") {
            return Err("no such file".into());
        }
        let (mut table, distinct) = self.parse(sql);
        if distinct {
            table = distinct_rows(&table);
        }
        let schema = table.schema();
        let starts = (0..table.num_rows()).step_by(BATCH_ROWS);
        let batches: Vec<_> =
            starts.map(|start| Ok(table.slice(start, BATCH_ROWS.min(table.num_rows() - start)))).collect();
        Ok(Box::new(RecordBatchIterator::new(batches, schema)))
    }

    fn is_sorted(&self, _: &str, _: &TextFiles) -> Result<bool, TablesError> {
        Ok(self.is_sorted)
    }
}

/// Distinct rows, the last of the table first: an order that no caller wants.
fn distinct_rows(table: &RecordBatch) -> RecordBatch {
    let mut seen = HashSet::new();
    let key = |row: &u32| -> Vec<Option<String>> {
        let value = |column: &ArrayRef| {
            let is_null = column.is_null(*row as usize);
            (!is_null).then(|| array_value_to_string(column, *row as usize).unwrap())
        };
        table.columns().iter().map(value).collect()
    };
    let rows: UInt32Array = (0..table.num_rows() as u32).rev().filter(|row| seen.insert(key(row))).collect();
    take_record_batch(table, &rows).unwrap()
}

pub fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Texts; a dot is NULL.
pub fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(values.iter().map(|text| (*text != ".").then_some(*text)).collect::<StringArray>())
}

pub fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Decimals with two digits after the point, in hundredths.
pub fn cents(values: &[i64]) -> ArrayRef {
    cents_or_null(&values.iter().copied().map(Some).collect::<Vec<_>>())
}

pub fn cents_or_null(values: &[Option<i64>]) -> ArrayRef {
    let values: Decimal128Array = values.iter().map(|value| value.map(i128::from)).collect();
    Arc::new(values.with_precision_and_scale(20, 2).unwrap())
}

pub fn doubles(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

/// Dates written `2026-03-31`; a dot is NULL.
pub fn dates(values: &[&str]) -> ArrayRef {
    let array = arrow::compute::cast(&texts(values), &arrow::datatypes::DataType::Date32).unwrap();
    assert_eq!(array.null_count(), values.iter().filter(|text| **text == ".").count());
    Arc::new(array.as_any().downcast_ref::<Date32Array>().unwrap().clone())
}

/// Builds a cube `c` of a table `gl` with a column `amount`; `dimensions` are lines of the definition.
pub fn built(memory: &Memory, dimensions: &str) -> Built {
    tried(memory, dimensions).unwrap_or_else(|error| panic!("{dimensions}: {error}"))
}

pub fn tried(memory: &Memory, dimensions: &str) -> Result<Built, BuildError> {
    defined(memory, &definition_text(dimensions))
}

/// The text of a definition; a line of `dimensions` that ends in a comma goes on in the next.
pub fn definition_text(dimensions: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in dimensions.lines().map(str::trim) {
        match lines.last_mut().filter(|last| last.ends_with(',')) {
            Some(last) => last.push_str(line),
            None => lines.push(line.to_string()),
        }
    }
    format!(
        "cube: c\nfacts: {{sql: TABLE gl, value: amount}}\nvalue: {{type: decimal(2)}}\ndimensions:\n{}",
        lines.iter().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

pub fn defined(memory: &Memory, definition: &str) -> Result<Built, BuildError> {
    let definition = parse(definition).unwrap_or_else(|error| panic!("{definition}\n{error}"));
    build(&definition, memory, &Progress::new())
}

/// The message of a build that fails.
pub fn failure(memory: &Memory, dimensions: &str) -> String {
    match tried(memory, dimensions) {
        Ok(built) => panic!("{dimensions} is built: {:?}", built.report),
        Err(error) => error.to_string(),
    }
}

/// Every cell: its elements, and the value of each measure, `.` for an empty one.
pub fn cells(built: &Built) -> Vec<String> {
    let cell = |index: usize| {
        let coordinates = built.facts.cell(index);
        let names = built.model.dimensions().iter().zip(coordinates).map(|(dimension, base)| {
            let id = dimension.at_base(base).expect("facts lie at base elements");
            dimension.element(id).name().to_string()
        });
        let values = built.facts.base().columns().iter().map(|column| {
            if !column.is_filled(index) {
                return ".".to_string();
            }
            match (&column.values, column.measure.value_type) {
                (Values::Decimals(values), ValueType::Decimal { scale }) => {
                    let units = bigdecimal::BigDecimal::new(values[index].into(), scale.into());
                    units.normalized().to_plain_string()
                }
                (Values::Doubles(values), _) => values[index].to_string(),
                _ => unreachable!("values are of the measure's type"),
            }
        });
        format!("{} = {}", names.collect::<Vec<_>>().join(" "), values.collect::<Vec<_>>().join(" "))
    };
    (0..built.facts.len()).map(cell).collect()
}

/// The elements of a dimension, by position: consolidated ones with their children, weights other than 1 behind a
/// star, captions in brackets.
pub fn outline(built: &Built, dimension: usize) -> String {
    outline_of(&built.model.dimensions()[dimension])
}

pub fn outline_of(dimension: &Dimension) -> String {
    let caption = |id: ElementId| {
        let element = dimension.element(id);
        if element.caption() == element.name() { String::new() } else { format!("[{}]", element.caption()) }
    };
    let children = |id: ElementId| {
        let element = dimension.element(id);
        let children = element.children().iter().map(|edge| {
            let weight = if edge.weight == 1.0 { String::new() } else { format!("*{}", edge.weight) };
            format!("{}{weight}", dimension.element(edge.child).name())
        });
        let children: Vec<String> = children.collect();
        if element.base().is_some() { String::new() } else { format!("({})", children.join(" ")) }
    };
    let element = |id: &ElementId| format!("{}{}{}", dimension.element(*id).name(), caption(*id), children(*id));
    dimension.elements().iter().map(element).collect::<Vec<_>>().join(" ")
}

/// The name of a dimension's default element.
pub fn default_of(built: &Built, dimension: usize) -> &str {
    let dimension = &built.model.dimensions()[dimension];
    dimension.element(dimension.default_element().expect("a dimension with elements")).name()
}

/// All rows kept aside as text, one a line, values between bars.
pub fn aside(built: &Built) -> Vec<String> {
    let rows = concat_batches(&built.aside.schema, &built.aside.batches).unwrap();
    let value = |column: &ArrayRef, row: usize| {
        if column.is_null(row) { ".".to_string() } else { array_value_to_string(column, row).unwrap() }
    };
    let line = |row: usize| rows.columns().iter().map(|column| value(column, row)).collect::<Vec<_>>().join("|");
    (0..rows.num_rows()).map(line).collect()
}
