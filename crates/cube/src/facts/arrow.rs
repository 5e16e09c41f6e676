//! Facts as Arrow arrays: values for people and queries, stored sums for rows kept aside, words for a device.
//!
//! A value is NULL where the measure is empty. Decimals have 19 digits, those of an `i64`.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use arrow::error::ArrowError;

use super::carry::{whole_decimal, whole_double};
use super::{FactMeasure, Facts, Rule, Segment, ValueType, Values};

/// Digits of a stored decimal.
const DECIMAL_DIGITS: u8 = 19;

impl FactMeasure {
    /// The Arrow type of the values of base cells: a double for averages.
    pub(crate) fn arrow_type(&self) -> DataType {
        match (self.rule, self.value_type) {
            (Rule::Avg, _) | (_, ValueType::Double) => DataType::Float64,
            (_, ValueType::Decimal { scale }) => DataType::Decimal128(DECIMAL_DIGITS, scale as i8),
        }
    }
}

impl Facts {
    /// Values at some places, averages of an AVG; `shown` gives doubles as the reader is to see them.
    pub(crate) fn value_array(
        &self,
        measure: usize,
        places: &[usize],
        shown: impl Fn(usize, f64) -> f64,
    ) -> Result<ArrayRef, ArrowError> {
        let is_average = self.measures()[measure].rule == Rule::Avg;
        match self.base().columns()[measure].values {
            Values::Decimals(_) if !is_average => {
                self.decimals(measure, places, DECIMAL_DIGITS, |segment, cell| decimal(segment, measure, cell).into())
            }
            _ => Ok(self.doubles(measure, places, |place, segment, cell| match &segment.columns()[measure].values {
                Values::Doubles(values) if !is_average => shown(place, values[cell]),
                _ => shown(place, segment.average(measure, cell)),
            })),
        }
    }

    /// Stored values at some places: sums of an AVG, of more digits where one is beyond its type; such sums of doubles
    /// are infinite.
    pub(crate) fn stored_array(&self, measure: usize, places: &[usize]) -> Result<ArrayRef, ArrowError> {
        let carry = |segment: &Segment, cell: usize| segment.carries(measure).map_or(0, |carries| carries[cell]);
        match self.base().columns()[measure].values {
            Values::Decimals(_) => {
                let digits = if self.has_carries(measure) { DECIMAL128_MAX_PRECISION } else { DECIMAL_DIGITS };
                self.decimals(measure, places, digits, |segment, cell| {
                    whole_decimal(decimal(segment, measure, cell), carry(segment, cell))
                })
            }
            Values::Doubles(_) => Ok(self.doubles(measure, places, |_, segment, cell| {
                let Values::Doubles(values) = &segment.columns()[measure].values else { return 0.0 };
                match carry(segment, cell) {
                    0 => values[cell],
                    carry => whole_double(values[cell], carry).to_precise().to_f64(),
                }
            })),
        }
    }

    fn doubles(&self, measure: usize, places: &[usize], value: impl Fn(usize, &Segment, usize) -> f64) -> ArrayRef {
        let value = |place: &usize| {
            let (segment, cell) = self.at(*place);
            segment.columns()[measure].is_filled(cell).then(|| value(*place, segment, cell))
        };
        Arc::new(places.iter().map(value).collect::<Float64Array>())
    }

    fn decimals(
        &self,
        measure: usize,
        places: &[usize],
        digits: u8,
        units: impl Fn(&Segment, usize) -> i128,
    ) -> Result<ArrayRef, ArrowError> {
        let scale = match self.measures()[measure].value_type {
            ValueType::Decimal { scale } => scale as i8,
            ValueType::Double => 0,
        };
        let units = |place: &usize| {
            let (segment, cell) = self.at(*place);
            segment.columns()[measure].is_filled(cell).then(|| units(segment, cell))
        };
        let units = places.iter().map(units);
        Ok(Arc::new(units.collect::<Decimal128Array>().with_precision_and_scale(digits, scale)?))
    }
}

/// The stored units of a cell; 0 of doubles.
fn decimal(segment: &Segment, measure: usize, cell: usize) -> i64 {
    match &segment.columns()[measure].values {
        Values::Decimals(values) => values[cell],
        Values::Doubles(_) => 0,
    }
}

impl Segment {
    /// Stored values of a run of cells as whole numbers or doubles, without scale.
    pub(crate) fn word_array(&self, measure: usize, cells: Range<usize>) -> ArrayRef {
        match &self.columns()[measure].values {
            Values::Decimals(values) => self.whole_array(measure, cells.clone(), values[cells].iter().copied()),
            Values::Doubles(values) => {
                Arc::new(Float64Array::new(values[cells.clone()].to_vec().into(), self.validity(measure, cells)))
            }
        }
    }

    /// One whole number for each cell of a run, NULL where a measure is empty.
    pub(crate) fn whole_array(
        &self,
        measure: usize,
        cells: Range<usize>,
        numbers: impl Iterator<Item = i64>,
    ) -> ArrayRef {
        Arc::new(Int64Array::new(numbers.collect(), self.validity(measure, cells)))
    }

    fn validity(&self, measure: usize, cells: Range<usize>) -> Option<NullBuffer> {
        let filled = self.columns()[measure].filled.as_ref()?;
        Some(NullBuffer::new(cells.map(|cell| filled.get(cell)).collect::<BooleanArray>().values().clone()))
    }
}

/// Counts of some cells.
pub(crate) fn count_array(counts: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(counts))
}
