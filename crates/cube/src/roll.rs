//! The CUBE of a cube: a measure by all combinations of some dimensions, as a table a combination.
//!
//! Groups are of base elements: hierarchies and their weights do not count, and what is left out of a combination is
//! added up over all of its base elements. The work is that of [`warpcube_arrays::cube_operator`], on one core; tables
//! go to a sink one after the other.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use thiserror::Error;
use warpcube_arrays::cube_operator::{self, Algorithm, Costs, Cuboid, Plan, Rows, cube, iceberg};
use warpcube_arrays::key::{Key, KeyLayout};
use warpcube_arrays::{SchemeError, Value};

use crate::facts::{Facts, Rule, Segment, ValueType, Values};
use crate::model::CubeModel;
use crate::progress::{Progress, Stopped};

/// A CUBE that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roll {
    /// The dimensions, by their positions in the cube, different ones.
    pub dimensions: Vec<usize>,
    /// The measure, by its position in the cube.
    pub measure: usize,
    /// Source rows that a group has at least; all groups if absent.
    pub having: Option<u64>,
    /// How groups are found where all are asked for.
    pub algorithm: Algorithm,
}

/// A CUBE that cannot be computed.
#[derive(Debug, Error)]
pub enum RollError {
    /// Dimensions that repeat or are too many; a sum beyond its type, by positions of dimensions and elements.
    #[error(transparent)]
    Array(#[from] SchemeError),
    /// A table that cannot be made.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A measure whose groups are no sums of cells.
    #[error("measure '{measure}' {problem}: ask for its cells with 'warpcube cube query'")]
    Measure {
        /// The measure.
        measure: String,
        /// Why, as a predicate.
        problem: &'static str,
    },
    /// The work was asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl From<Stopped> for RollError {
    fn from(_: Stopped) -> RollError {
        RollError::Cancelled
    }
}

/// Gives a table for each combination of dimensions with a group to `sink`, with the positions of its dimensions, which
/// are its first columns; the last one is the measure, a decimal or, for averages and doubles, a double. A step of the
/// progress is a combination.
///
/// # Errors
/// [`RollError`]; that of the sink, which ends the work.
pub fn roll<E: From<RollError>>(
    model: &CubeModel,
    facts: &Facts,
    asked: &Roll,
    progress: &Progress,
    mut sink: impl FnMut(&[usize], RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let measure = &model.measures()[asked.measure];
    let problem = match (&measure.over, facts.has_carries(asked.measure)) {
        (Some(_), _) => Some("balances over a dimension"),
        (None, true) => Some("has sums beyond 64 bits"),
        (None, false) => None,
    };
    if let Some(problem) = problem {
        return Err(RollError::Measure { measure: measure.name.clone(), problem }.into());
    }
    progress.expect(1 << asked.dimensions.len().min(cube_operator::CUBE_DIMENSIONS_MAX));
    let tables = Tables::new(model, facts, asked);
    let cells = Cells::of(facts, asked.measure);
    let mut given = |dimensions: &[usize], table: Result<RecordBatch, ArrowError>| -> Result<(), E> {
        progress.step().map_err(RollError::from)?;
        sink(dimensions, table.map_err(RollError::from)?)
    };
    let sink: &mut Sink<'_, E> = &mut given;
    match (&cells.narrow, &cells.values) {
        (Some(keys), Values::Decimals(values)) => tables.run(facts, asked, (keys, values, &cells.counts), sink),
        (Some(keys), Values::Doubles(values)) => tables.run(facts, asked, (keys, values, &cells.counts), sink),
        (None, Values::Decimals(values)) => tables.run(facts, asked, (&cells.wide, values, &cells.counts), sink),
        (None, Values::Doubles(values)) => tables.run(facts, asked, (&cells.wide, values, &cells.counts), sink),
    }
}

/// Takes a table of some dimensions.
type Sink<'a, E> = dyn FnMut(&[usize], Result<RecordBatch, ArrowError>) -> Result<(), E> + 'a;

/// The filled cells of a measure.
struct Cells {
    /// Keys of at most 64 bits; absent if keys are wider.
    narrow: Option<Vec<u64>>,
    wide: Vec<u128>,
    values: Values,
    /// Source rows; of COUNT and AVG those with a value.
    counts: Vec<u64>,
}

impl Cells {
    fn of(facts: &Facts, measure: usize) -> Cells {
        let is_filled = |segment: &Segment, cell: &usize| segment.columns()[measure].is_filled(*cell);
        let filled = || {
            let segments = facts.segments().iter();
            segments.flat_map(|it| (0..it.len()).filter(|cell| is_filled(it, cell)).map(move |cell| (&**it, cell)))
        };
        let keys = || filled().map(|(segment, cell)| segment.keys().get(cell));
        let values = match facts.base().columns()[measure].values {
            Values::Decimals(_) => {
                Values::Decimals(filled().filter_map(|(it, cell)| decimal(it, measure, cell)).collect())
            }
            Values::Doubles(_) => {
                Values::Doubles(filled().filter_map(|(it, cell)| double(it, measure, cell)).collect())
            }
        };
        let count = |(segment, cell): (&Segment, usize)| match facts.measures()[measure].rule {
            Rule::Count => decimal(segment, measure, cell).unwrap_or(0) as u64,
            Rule::Avg => segment.columns()[measure].counts.as_ref().map_or(1, |counts| counts[cell]),
            Rule::Sum | Rule::Min | Rule::Max => segment.row_counts().map_or(1, |rows| rows[cell]),
        };
        let counts = filled().map(count).collect();
        match facts.layout().is_narrow() {
            true => Cells { narrow: Some(keys().map(|key| key as u64).collect()), wide: Vec::new(), values, counts },
            false => Cells { narrow: None, wide: keys().collect(), values, counts },
        }
    }
}

fn decimal(segment: &Segment, measure: usize, cell: usize) -> Option<i64> {
    match &segment.columns()[measure].values {
        Values::Decimals(values) => Some(values[cell]),
        Values::Doubles(_) => None,
    }
}

fn double(segment: &Segment, measure: usize, cell: usize) -> Option<f64> {
    match &segment.columns()[measure].values {
        Values::Doubles(values) => Some(values[cell]),
        Values::Decimals(_) => None,
    }
}

/// Values of groups as an Arrow array.
trait Column: Value {
    fn column(values: &[Self], of: ValueType) -> Result<ArrayRef, ArrowError>;
}

impl Column for i64 {
    fn column(values: &[i64], of: ValueType) -> Result<ArrayRef, ArrowError> {
        let scale = if let ValueType::Decimal { scale } = of { scale as i8 } else { 0 };
        let array = Decimal128Array::from_iter_values(values.iter().map(|value| i128::from(*value)));
        Ok(Arc::new(array.with_precision_and_scale(DECIMAL_DIGITS, scale)?))
    }
}

impl Column for f64 {
    fn column(values: &[f64], _of: ValueType) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(Float64Array::from_iter_values(values.iter().copied())))
    }
}

/// Digits of a decimal of 64 bits.
const DECIMAL_DIGITS: u8 = 19;

/// What tables are made of.
struct Tables {
    rule: Rule,
    value_type: ValueType,
    /// Of all dimensions of the cube; those that are not asked for have no names.
    names: Vec<StringArray>,
    fields: Vec<Field>,
    measure: String,
}

impl Tables {
    fn new(model: &CubeModel, facts: &Facts, asked: &Roll) -> Tables {
        let names = model.dimensions().iter().enumerate().map(|(at, dimension)| {
            let bases = if asked.dimensions.contains(&at) { dimension.base_count() as u32 } else { 0 };
            let name = |base| dimension.at_base(base).map(|id| dimension.element(id).name());
            (0..bases).map(name).collect()
        });
        let field = |name: &str| Field::new(name, DataType::Utf8, false);
        let definition = &facts.measures()[asked.measure];
        Tables {
            rule: definition.rule,
            value_type: definition.value_type,
            names: names.collect(),
            fields: model.dimensions().iter().map(|dimension| field(dimension.name())).collect(),
            measure: model.measures()[asked.measure].name.clone(),
        }
    }

    fn run<K: Key, V: Column, E: From<RollError>>(
        &self,
        facts: &Facts,
        asked: &Roll,
        (keys, values, counts): (&[K], &[V], &[u64]),
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let rules = [match self.rule {
            Rule::Sum => cube_operator::Rule::Sum,
            Rule::Count => cube_operator::Rule::Count,
            Rule::Avg => cube_operator::Rule::Avg,
            Rule::Min => cube_operator::Rule::Min,
            Rule::Max => cube_operator::Rule::Max,
        }];
        let layout: &KeyLayout = facts.layout();
        let rows = Rows::new(layout, keys, values, Some(counts)).map_err(RollError::from)?;
        let mut given = |cuboid: Cuboid<'_, K, V>| sink(cuboid.dimensions, self.table(&cuboid)).map_err(Failure);
        let done = match asked.having {
            Some(having) => iceberg(&rows, &asked.dimensions, &rules, having, &mut given).map(drop),
            None => {
                let plan = Plan::new(&rows.extent(), &asked.dimensions, &rules, asked.algorithm, &Costs::CPU);
                cube(&rows, &plan.map_err(RollError::from)?, &mut given)
            }
        };
        done.map_err(|failure| failure.0)
    }

    fn table<K: Key, V: Column>(&self, cuboid: &Cuboid<'_, K, V>) -> Result<RecordBatch, ArrowError> {
        let mut columns = Vec::with_capacity(cuboid.dimensions.len() + 1);
        let mut fields = Vec::with_capacity(cuboid.dimensions.len() + 1);
        for (place, dimension) in cuboid.dimensions.iter().enumerate() {
            let coordinates = cuboid.keys.iter().map(|key| cuboid.layout.coordinate(*key, place));
            let coordinates = UInt32Array::from_iter_values(coordinates);
            columns.push(take(&self.names[*dimension], &coordinates, None)?);
            fields.push(self.fields[*dimension].clone());
        }
        let values = match self.rule {
            Rule::Sum => V::column(cuboid.sums, self.value_type)?,
            Rule::Min => V::column(cuboid.least, self.value_type)?,
            Rule::Max => V::column(cuboid.largest, self.value_type)?,
            Rule::Count => {
                let counts = cuboid.counts.iter().map(|count| i128::from(*count));
                let counts = Decimal128Array::from_iter_values(counts);
                Arc::new(counts.with_precision_and_scale(DECIMAL_DIGITS, 0)?)
            }
            Rule::Avg => {
                let unit =
                    if let ValueType::Decimal { scale } = self.value_type { 10_f64.powi(scale.into()) } else { 1.0 };
                let averages = (0..cuboid.len()).filter_map(|group| Some(cuboid.average(group)? / unit));
                Arc::new(Float64Array::from_iter_values(averages))
            }
        };
        fields.push(Field::new(&self.measure, values.data_type().clone(), false));
        columns.push(values);
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

/// The error of a sink, or that of the operator as one.
struct Failure<E>(E);

impl<E: From<RollError>> From<SchemeError> for Failure<E> {
    fn from(error: SchemeError) -> Failure<E> {
        Failure(RollError::from(error).into())
    }
}
