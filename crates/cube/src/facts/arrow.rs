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
use super::{FactColumn, FactMeasure, Facts, Rule, ValueType, Values};

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
    /// Values of some cells, averages of an AVG; `shown` gives doubles as the reader is to see them.
    pub(crate) fn value_array(
        &self,
        measure: usize,
        cells: &[usize],
        shown: impl Fn(usize, f64) -> f64,
    ) -> Result<ArrayRef, ArrowError> {
        let FactColumn { measure: definition, values, .. } = &self.columns()[measure];
        match values {
            _ if definition.rule == Rule::Avg => {
                Ok(self.doubles(measure, cells, |cell| shown(cell, self.average(measure, cell))))
            }
            Values::Doubles(values) => Ok(self.doubles(measure, cells, |cell| shown(cell, values[cell]))),
            Values::Decimals(values) => self.decimals(measure, cells, DECIMAL_DIGITS, |cell| values[cell].into()),
        }
    }

    /// Stored values of some cells: sums of an AVG, of more digits where one is beyond its type; such sums of doubles
    /// are infinite.
    pub(crate) fn stored_array(&self, measure: usize, cells: &[usize]) -> Result<ArrayRef, ArrowError> {
        let carries = self.carries(measure);
        let carry = |cell: usize| carries.map_or(0, |carries| carries[cell]);
        match &self.columns()[measure].values {
            Values::Decimals(values) => {
                let digits = if carries.is_some() { DECIMAL128_MAX_PRECISION } else { DECIMAL_DIGITS };
                self.decimals(measure, cells, digits, |cell| whole_decimal(values[cell], carry(cell)))
            }
            Values::Doubles(values) => Ok(self.doubles(measure, cells, |cell| match carry(cell) {
                0 => values[cell],
                carry => whole_double(values[cell], carry).to_precise().to_f64(),
            })),
        }
    }

    fn doubles(&self, measure: usize, cells: &[usize], value: impl Fn(usize) -> f64) -> ArrayRef {
        let column = &self.columns()[measure];
        Arc::new(cells.iter().map(|&cell| column.is_filled(cell).then(|| value(cell))).collect::<Float64Array>())
    }

    fn decimals(
        &self,
        measure: usize,
        cells: &[usize],
        digits: u8,
        units: impl Fn(usize) -> i128,
    ) -> Result<ArrayRef, ArrowError> {
        let column = &self.columns()[measure];
        let scale = match column.measure.value_type {
            ValueType::Decimal { scale } => scale as i8,
            ValueType::Double => 0,
        };
        let units = cells.iter().map(|&cell| column.is_filled(cell).then(|| units(cell)));
        Ok(Arc::new(units.collect::<Decimal128Array>().with_precision_and_scale(digits, scale)?))
    }

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
pub(crate) fn count_array(counts: &[u64], cells: &[usize]) -> ArrayRef {
    Arc::new(cells.iter().map(|cell| counts[*cell]).collect::<UInt64Array>())
}
