//! Facts as columns that residency loads.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{ColumnError, ColumnScan, ColumnSource};

use crate::facts::{FactColumn, Facts, Values};

/// Rows of a batch that a scan gives.
const BATCH_ROWS: usize = 1 << 20;

/// The values of facts: a column for each measure. Keys are no columns: see `keys.rs`.
#[derive(Debug, Clone)]
pub struct FactsSource {
    facts: Arc<Facts>,
    name: String,
    version: String,
    schema: SchemaRef,
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
        let measures = facts.columns().iter().enumerate().map(measure);
        let schema = Arc::new(Schema::new(measures.collect::<Vec<_>>()));
        FactsSource { name: name.to_string(), version: version.to_string(), schema, facts }
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    fn column(&self, column: usize, from: usize, rows: usize) -> ArrayRef {
        let range = from..from + rows;
        let FactColumn { values, filled, .. } = &self.facts.columns()[column];
        let valid = filled.as_ref().map(|filled| {
            NullBuffer::new(range.clone().map(|cell| filled.get(cell)).collect::<BooleanArray>().values().clone())
        });
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
