//! Facts as columns that residency loads.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{ColumnError, ColumnScan, ColumnSource};

use crate::facts::{FactColumn, Facts, Values};

/// Rows of a batch that a scan gives.
const BATCH_ROWS: usize = 1 << 20;

/// The values of facts: a column for each measure, and behind them one for the row counts of each AVG that has them.
/// Keys are no columns: see `keys.rs`.
#[derive(Debug, Clone)]
pub struct FactsSource {
    facts: Arc<Facts>,
    name: String,
    version: String,
    schema: SchemaRef,
    /// The measures whose row counts are columns.
    counted: Vec<usize>,
}

impl FactsSource {
    /// The columns of a cube's facts; equal versions have equal facts.
    pub fn new(facts: Arc<Facts>, name: &str, version: &str) -> FactsSource {
        let measure = |(number, column): (usize, &FactColumn)| {
            let data_type = match column.values {
                Values::Decimals(_) => DataType::Int64,
                Values::Doubles(_) => DataType::Float64,
            };
            Field::new(format!("measure {number}"), data_type, column.filled.is_some())
        };
        let columns = facts.columns().iter().enumerate();
        let counted: Vec<usize> =
            columns.clone().filter(|(_, column)| column.counts.is_some()).map(|(number, _)| number).collect();
        let rows = |measure: &usize| {
            let is_nullable = facts.columns()[*measure].filled.is_some();
            Field::new(format!("rows of measure {measure}"), DataType::Int64, is_nullable)
        };
        let schema = Arc::new(Schema::new(columns.map(measure).chain(counted.iter().map(rows)).collect::<Vec<_>>()));
        FactsSource { name: name.to_string(), version: version.to_string(), schema, counted, facts }
    }

    /// The column of the row counts of a measure that has them.
    pub(super) fn counts_column(&self, measure: usize) -> Option<usize> {
        let place = self.counted.iter().position(|counted| *counted == measure);
        place.map(|place| self.facts.columns().len() + place)
    }

    /// True if not every fact has a value in a column.
    pub(super) fn is_nullable(&self, column: usize) -> bool {
        self.schema.field(column).is_nullable()
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    fn column(&self, column: usize, from: usize, rows: usize) -> ArrayRef {
        let range = from..from + rows;
        let counted = column.checked_sub(self.facts.columns().len()).map(|place| self.counted[place]);
        let FactColumn { values, filled, counts, .. } = &self.facts.columns()[counted.unwrap_or(column)];
        let valid = filled.as_ref().map(|filled| {
            NullBuffer::new(range.clone().map(|cell| filled.get(cell)).collect::<BooleanArray>().values().clone())
        });
        if let Some(counts) = counts.as_ref().filter(|_| counted.is_some()) {
            let counts: Vec<i64> = counts[range].iter().map(|count| *count as i64).collect();
            return Arc::new(Int64Array::new(counts.into(), valid));
        }
        match values {
            Values::Decimals(values) => Arc::new(Int64Array::new(values[range].to_vec().into(), valid)),
            Values::Doubles(values) => Arc::new(Float64Array::new(values[range].to_vec().into(), valid)),
        }
    }
}

impl ColumnSource for FactsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn key(&self) -> String {
        format!("facts of cube {}", self.name)
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.facts.len() as u64)
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>, ColumnError> {
        let schema = Arc::new(self.schema.project(columns).map_err(|error| ColumnError::source(error.to_string()))?);
        Ok(Box::new(FactsScan { source: self.clone(), columns: columns.to_vec(), schema }))
    }
}

/// A scan of some columns; a partition is one batch.
struct FactsScan {
    source: FactsSource,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl FactsScan {
    fn batch(&self, partition: usize, columns: &[usize], schema: SchemaRef) -> Result<RecordBatch, ColumnError> {
        let from = partition * BATCH_ROWS;
        let rows = BATCH_ROWS.min(self.source.facts.len() - from);
        let arrays = columns.iter().map(|column| self.source.column(*column, from, rows)).collect();
        RecordBatch::try_new(schema, arrays).map_err(|error| ColumnError::source(error.to_string()))
    }
}

impl ColumnScan for FactsScan {
    fn partitions(&self) -> usize {
        self.source.facts.len().div_ceil(BATCH_ROWS)
    }

    fn read(
        &self,
        partition: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<(), ColumnError>,
    ) -> Result<(), ColumnError> {
        sink(self.batch(partition, &self.columns, self.schema.clone())?)
    }
}
