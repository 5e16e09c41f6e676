//! Facts as columns that residency loads.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{ColumnError, ColumnScan, ColumnSource};

use super::limbs::DoubleLimbs;
use crate::facts::{FactColumn, Facts, Rule, Segment, Values};

/// Rows of a batch that a scan gives.
const BATCH_ROWS: usize = 1 << 20;

/// The values of facts: for each segment a source of columns, the same of all segments.
///
/// A column is a measure's; behind them are the row counts of each AVG that has them, and the limbs of sums of doubles.
/// Cells that are not live are NULL. Keys are no columns: see `keys.rs`.
#[derive(Debug, Clone)]
pub struct FactsSource {
    columns: Arc<FactsColumns>,
    segments: Vec<Arc<SegmentSource>>,
}

/// The columns of facts.
#[derive(Debug)]
struct FactsColumns {
    facts: Arc<Facts>,
    /// The measures whose row counts are columns.
    counted: Vec<usize>,
    /// The measures whose doubles are columns in limbs, too.
    limbs: Vec<(usize, DoubleLimbs)>,
}

/// A segment as columns that residency loads.
#[derive(Debug, Clone)]
pub(super) struct SegmentSource {
    columns: Arc<FactsColumns>,
    segment: Arc<Segment>,
    name: String,
    key: String,
    version: String,
    schema: SchemaRef,
}

impl FactsSource {
    /// The columns of a cube's facts. Equal versions have equal facts; segments that are stored have versions of their
    /// own, so that they stay where they are when others come.
    pub fn new(facts: Arc<Facts>, name: &str, version: &str) -> FactsSource {
        let measures = || facts.measures().iter().enumerate();
        let counted: Vec<usize> =
            measures().map(|(number, _)| number).filter(|number| facts.has_counts(*number)).collect();
        let summed = measures().filter(|(_, measure)| measure.rule == Rule::Sum);
        let limbs: Vec<(usize, DoubleLimbs)> =
            summed.filter_map(|(measure, _)| Some((measure, DoubleLimbs::of(&facts, measure)?))).collect();
        let columns = Arc::new(FactsColumns { facts: facts.clone(), counted, limbs });
        let segments = facts.segments().iter().enumerate();
        let source = |(number, segment)| Arc::new(SegmentSource::new(&columns, number, segment, (name, version)));
        FactsSource { segments: segments.map(source).collect(), columns }
    }

    /// The column of the row counts of a measure that has them.
    pub(super) fn counts_column(&self, measure: usize) -> Option<usize> {
        let place = self.columns.counted.iter().position(|counted| *counted == measure);
        place.map(|place| self.facts().measures().len() + place)
    }

    /// The first column of a measure's limbs, and what they are limbs of.
    pub(super) fn limbs(&self, measure: usize) -> Option<(usize, &DoubleLimbs)> {
        let FactsColumns { facts, counted, limbs } = &*self.columns;
        let place = limbs.iter().position(|limbs| limbs.0 == measure)?;
        let before: usize = limbs[..place].iter().map(|(_, limbs)| limbs.count).sum();
        Some((facts.measures().len() + counted.len() + before, &limbs[place].1))
    }

    /// True if not every fact has a value in a column.
    pub(super) fn is_nullable(&self, column: usize) -> bool {
        self.segments.iter().any(|segment| segment.schema.field(column).is_nullable())
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.columns.facts
    }

    /// The source of each segment.
    pub(super) fn segments(&self) -> &[Arc<SegmentSource>] {
        &self.segments
    }
}

impl FactsColumns {
    /// The measure and the limb of a column of limbs.
    fn limb_of(&self, column: usize) -> Option<(usize, &DoubleLimbs, usize)> {
        let mut place = column.checked_sub(self.facts.measures().len() + self.counted.len())?;
        self.limbs.iter().find_map(|(measure, limbs)| match place.checked_sub(limbs.count) {
            None => Some((*measure, limbs, place)),
            Some(rest) => {
                place = rest;
                None
            }
        })
    }

    /// The columns in a segment.
    fn schema(&self, segment: &Segment) -> SchemaRef {
        let is_nullable = |measure: usize| segment.columns()[measure].filled.is_some();
        let measure = |(number, column): (usize, &FactColumn)| {
            let data_type = match column.values {
                Values::Decimals(_) => DataType::Int64,
                Values::Doubles(_) => DataType::Float64,
            };
            Field::new(format!("measure {number}"), data_type, is_nullable(number))
        };
        let rows =
            |measure: &usize| Field::new(format!("rows of measure {measure}"), DataType::Int64, is_nullable(*measure));
        let of_limbs = |(measure, limbs): &(usize, DoubleLimbs)| {
            let (measure, is_nullable) = (*measure, is_nullable(*measure));
            let limb =
                move |limb| Field::new(format!("limb {limb} of measure {measure}"), DataType::Int64, is_nullable);
            (0..limbs.count).map(limb).collect::<Vec<_>>()
        };
        let measures = segment.columns().iter().enumerate().map(measure);
        let fields = measures.chain(self.counted.iter().map(rows)).chain(self.limbs.iter().flat_map(of_limbs));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

impl SegmentSource {
    fn new(
        columns: &Arc<FactsColumns>,
        number: usize,
        segment: &Arc<Segment>,
        (name, version): (&str, &str),
    ) -> SegmentSource {
        let name = if number == 0 { name.to_string() } else { format!("{name}, segment {number}") };
        let key = format!("facts of cube {name}");
        let stored = |state: Option<&str>| state.map_or_else(|| version.to_string(), |state| format!("state {state}"));
        let mut own = stored(segment.stored());
        if segment.live().is_some() {
            own.push_str(&format!(", live cells of {}", stored(segment.live_stored())));
        }
        // Columns behind those of measures depend on all segments.
        if !(columns.counted.is_empty() && columns.limbs.is_empty()) {
            own.push_str(&format!(", rows {:?}, limbs {:?}", columns.counted, columns.limbs));
        }
        let (columns, segment) = (columns.clone(), segment.clone());
        SegmentSource { schema: columns.schema(&segment), columns, segment, name, key, version: own }
    }

    /// The segment.
    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    fn column(&self, column: usize, from: usize, rows: usize) -> ArrayRef {
        let (range, measures) = (from..from + rows, self.segment.columns().len());
        let limb = self.columns.limb_of(column);
        let counted = column.checked_sub(measures).filter(|_| limb.is_none());
        let counted = counted.map(|place| self.columns.counted[place]);
        let measure = counted.or(limb.map(|(measure, ..)| measure)).unwrap_or(column);
        let FactColumn { values, counts, .. } = &self.segment.columns()[measure];
        match (values, limb) {
            (Values::Doubles(values), Some((_, limbs, limb))) => {
                let numbers = values[range.clone()].iter().map(|value| limbs.limb(*value, limb));
                self.segment.whole_array(measure, range, numbers)
            }
            _ if counted.is_some() => {
                let count = |cell: usize| counts.as_ref().map_or(1, |counts| counts[cell] as i64);
                self.segment.whole_array(measure, range.clone(), range.map(count))
            }
            _ => self.segment.word_array(measure, range),
        }
    }
}

impl ColumnSource for SegmentSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn key(&self) -> String {
        self.key.clone()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.segment.len() as u64)
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>, ColumnError> {
        let schema = Arc::new(self.schema.project(columns).map_err(|error| ColumnError::source(error.to_string()))?);
        Ok(Box::new(FactsScan { source: self.clone(), columns: columns.to_vec(), schema }))
    }
}

/// A scan of some columns; a partition is one batch.
struct FactsScan {
    source: SegmentSource,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl FactsScan {
    fn batch(&self, partition: usize, columns: &[usize], schema: SchemaRef) -> Result<RecordBatch, ColumnError> {
        let from = partition * BATCH_ROWS;
        let rows = BATCH_ROWS.min(self.source.segment.len() - from);
        let arrays = columns.iter().map(|column| self.source.column(*column, from, rows)).collect();
        RecordBatch::try_new(schema, arrays).map_err(|error| ColumnError::source(error.to_string()))
    }
}

impl ColumnScan for FactsScan {
    fn partitions(&self) -> usize {
        self.source.segment.len().div_ceil(BATCH_ROWS)
    }

    fn read(
        &self,
        partition: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<(), ColumnError>,
    ) -> Result<(), ColumnError> {
        sink(self.batch(partition, &self.columns, self.schema.clone())?)
    }
}
