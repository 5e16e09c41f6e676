//! Facts as columns that residency loads.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{ColumnError, ColumnScan, ColumnSource};

use super::limbs::DoubleLimbs;
use crate::facts::{FactColumn, Facts, Rule, Values};

/// Rows of a batch that a scan gives.
const BATCH_ROWS: usize = 1 << 20;

/// The values of facts: a column for each measure, behind them one for the row counts of each AVG that has them, and
/// one for each limb of sums of doubles. Keys are no columns: see `keys.rs`.
#[derive(Debug, Clone)]
pub struct FactsSource {
    facts: Arc<Facts>,
    name: String,
    version: String,
    schema: SchemaRef,
    /// The measures whose row counts are columns.
    counted: Vec<usize>,
    /// The measures whose doubles are columns in limbs, too.
    limbs: Vec<(usize, DoubleLimbs)>,
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
        let summed = columns.clone().filter(|(_, column)| column.measure.rule == Rule::Sum);
        let limbs: Vec<(usize, DoubleLimbs)> =
            summed.filter_map(|(measure, _)| Some((measure, DoubleLimbs::of(&facts, measure)?))).collect();
        let of_limbs = |(measure, limbs): &(usize, DoubleLimbs)| {
            let (measure, is_nullable) = (*measure, facts.columns()[*measure].filled.is_some());
            let limb =
                move |limb| Field::new(format!("limb {limb} of measure {measure}"), DataType::Int64, is_nullable);
            (0..limbs.count).map(limb).collect::<Vec<_>>()
        };
        let fields = columns.map(measure).chain(counted.iter().map(rows)).chain(limbs.iter().flat_map(of_limbs));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        FactsSource { name: name.to_string(), version: version.to_string(), schema, counted, limbs, facts }
    }

    /// The column of the row counts of a measure that has them.
    pub(super) fn counts_column(&self, measure: usize) -> Option<usize> {
        let place = self.counted.iter().position(|counted| *counted == measure);
        place.map(|place| self.facts.columns().len() + place)
    }

    /// The first column of a measure's limbs, and what they are limbs of.
    pub(super) fn limbs(&self, measure: usize) -> Option<(usize, &DoubleLimbs)> {
        let place = self.limbs.iter().position(|limbs| limbs.0 == measure)?;
        let before: usize = self.limbs[..place].iter().map(|(_, limbs)| limbs.count).sum();
        Some((self.facts.columns().len() + self.counted.len() + before, &self.limbs[place].1))
    }

    /// The measure and the limb of a column of limbs.
    fn limb_of(&self, column: usize) -> Option<(usize, &DoubleLimbs, usize)> {
        let mut place = column.checked_sub(self.facts.columns().len() + self.counted.len())?;
        self.limbs.iter().find_map(|(measure, limbs)| match place.checked_sub(limbs.count) {
            None => Some((*measure, limbs, place)),
            Some(rest) => {
                place = rest;
                None
            }
        })
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
        let limb = self.limb_of(column);
        let counted = column.checked_sub(self.facts.columns().len()).filter(|_| limb.is_none());
        let counted = counted.map(|place| self.counted[place]);
        let measure = counted.or(limb.map(|(measure, ..)| measure)).unwrap_or(column);
        let FactColumn { values, counts, .. } = &self.facts.columns()[measure];
        match (values, counts, limb) {
            (Values::Doubles(values), _, Some((_, limbs, limb))) => {
                let numbers = values[range.clone()].iter().map(|value| limbs.limb(*value, limb));
                self.facts.whole_array(measure, range, numbers)
            }
            (_, Some(counts), _) if counted.is_some() => {
                let numbers = counts[range.clone()].iter().map(|count| *count as i64);
                self.facts.whole_array(measure, range, numbers)
            }
            _ => self.facts.word_array(measure, range),
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
