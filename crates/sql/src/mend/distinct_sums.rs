//! Sums and averages of distinct values, in frames of every kind.
//!
//! DataFusion 55.2 adds the distinct values of a growing frame anew for each row, which takes the square of their
//! number, and wraps in frames that slide, of which it knows those of BIGINT alone. Here values are counted: one that
//! appears is added to a sum, one that disappears is taken away from it. The sum decides about overflow and rounding.
//!
//! The file goes once DataFusion's accumulators of distinct values do the same.

use std::fmt::{self, Debug};
use std::mem::{size_of, size_of_val};
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::DataType;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

/// Distinct values, with a sum or an average of them.
pub(crate) struct DistinctTotal<T: ArrowPrimitiveType> {
    /// Values by their keys, with the number of rows that have them.
    values: HashMap<u128, (T::Native, u64)>,
    /// Equal values have equal keys.
    key: fn(T::Native) -> u128,
    /// The type of values in the state.
    data_type: DataType,
    sum: Box<dyn Accumulator>,
}

impl<T: ArrowPrimitiveType> DistinctTotal<T> {
    /// An accumulator without values; `sum` can take values away.
    pub(crate) fn new(data_type: DataType, key: fn(T::Native) -> u128, sum: Box<dyn Accumulator>) -> Self {
        DistinctTotal { values: HashMap::default(), key, data_type, sum }
    }
}

impl<T: ArrowPrimitiveType> Debug for DistinctTotal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistinctTotal").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

fn array<T: ArrowPrimitiveType>(values: impl IntoIterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

impl<T: ArrowPrimitiveType> Accumulator for DistinctTotal<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let mut new = Vec::new();
        for value in columns[0].as_primitive::<T>().iter().flatten() {
            let (_, rows) = self.values.entry((self.key)(value)).or_insert_with(|| {
                new.push(value);
                (value, 0)
            });
            *rows += 1;
        }
        self.sum.update_batch(&[array::<T>(new)])
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let mut gone = Vec::new();
        for value in columns[0].as_primitive::<T>().iter().flatten() {
            let key = (self.key)(value);
            let Some((first, rows)) = self.values.get_mut(&key) else { continue };
            *rows -= 1;
            if *rows == 0 {
                gone.push(*first);
                self.values.remove(&key);
            }
        }
        self.sum.retract_batch(&[array::<T>(gone)])
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = PrimitiveArray::<T>::from_iter_values(self.values.values().map(|(value, _)| *value));
        let values = Arc::new(values.with_data_type(self.data_type.clone()));
        Ok(vec![SingleRowListArrayBuilder::new(values).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.update_batch(&[values]))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sum.evaluate()
    }

    fn size(&self) -> usize {
        let entry = size_of::<(u128, (T::Native, u64))>() + 1;
        size_of_val(self) + self.values.capacity() * entry + self.sum.size()
    }
}
