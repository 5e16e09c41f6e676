//! MIN and MAX of floats, where NaN is larger than all other values and −0.0 no smaller than 0.0.
//!
//! DataFusion's accumulators for groups compare with `<`, so that a NaN takes the place of what came before it and
//! gives way to whatever comes after it, and a minimum starts at the largest finite value. Its bounds of columns
//! leave NaNs out, and MAX believes them. Unnecessary once its groups have the order of its other accumulators, and
//! bounds of floats are not taken for extremes.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{not, nullif, prep_null_mask_filter};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature,
};

use crate::canonical_floats::F16;

/// The function in place of DataFusion's MIN or MAX of a float; none where it is something else.
pub(super) fn of_floats(
    function: &Arc<AggregateUDF>,
    arguments: &[Expr],
    is_float: impl Fn(&Expr) -> bool,
) -> Option<Arc<AggregateUDF>> {
    let is_max = function.inner().is::<Max>();
    let wanted = (is_max || function.inner().is::<Min>()) && matches!(arguments, [value] if is_float(value));
    wanted.then(|| Arc::new(AggregateUDF::new_from_impl(Extreme { original: function.clone(), is_max })))
}

/// MIN or MAX of floats with one NaN.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    /// DataFusion's function, which is right without groups.
    original: Arc<AggregateUDF>,
    is_max: bool,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.original.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.original.accumulator(arguments)
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.original.create_sliding_accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match arguments.return_field.data_type() {
            DataType::Float16 => Ok(Groups::<Float16Type>::of(self.is_max, F16::NEG_INFINITY, F16::NAN)),
            DataType::Float32 => Ok(Groups::<Float32Type>::of(self.is_max, f32::NEG_INFINITY, f32::NAN)),
            DataType::Float64 => Ok(Groups::<Float64Type>::of(self.is_max, f64::NEG_INFINITY, f64::NAN)),
            other => Err(DataFusionError::Internal(format!("an extreme of floats of type {other}"))),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        Some(self.is_max)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.original.inner().set_monotonicity(data_type)
    }
}

/// The extremes of groups; their states are extremes too.
struct Groups<T: ArrowPrimitiveType> {
    /// How a value compares with the one it replaces.
    wanted: Ordering,
    /// The value that any other may replace.
    start: T::Native,
    /// The extreme of each group.
    values: Vec<T::Native>,
    /// Whether a group has a value.
    seen: Vec<bool>,
}

impl<T: ArrowPrimitiveType + Send> Groups<T> {
    fn of(is_max: bool, smallest: T::Native, largest: T::Native) -> Box<dyn GroupsAccumulator> {
        let (wanted, start) = if is_max { (Ordering::Greater, smallest) } else { (Ordering::Less, largest) };
        Box::new(Groups::<T> { wanted, start, values: Vec::new(), seen: Vec::new() })
    }
}

impl<T: ArrowPrimitiveType + Send> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let values = without(&values[0], filter)?;
        let values = values.as_primitive::<T>();
        self.values.resize(total, self.start);
        self.seen.resize(total, false);
        let mut add = |group: usize, value: T::Native| {
            let best = &mut self.values[group];
            if value.compare(*best) == self.wanted {
                *best = value;
            }
            self.seen[group] = true;
        };
        match values.nulls() {
            None => groups.iter().zip(values.values()).for_each(|(group, value)| add(*group, *value)),
            Some(nulls) => nulls.valid_indices().for_each(|row| add(groups[row], values.value(row))),
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(values, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let values = emit_to.take_needed(&mut self.values);
        let seen = emit_to.take_needed(&mut self.seen);
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), Some(NullBuffer::from(seen)))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        Ok(vec![without(&values[0], filter)?])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.seen.capacity()
    }
}

/// The values, NULL where a filter is not true.
fn without(values: &ArrayRef, filter: Option<&BooleanArray>) -> Result<ArrayRef> {
    let Some(filter) = filter else { return Ok(values.clone()) };
    // The function takes masks with NULLs alone.
    let kept = if filter.null_count() > 0 { prep_null_mask_filter(filter) } else { filter.clone() };
    Ok(nullif(values, &not(&kept)?)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    fn extremes(is_max: bool, values: Vec<f64>, groups: &[usize]) -> Vec<Option<f64>> {
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        let mut accumulator = Groups::<Float64Type>::of(is_max, f64::NEG_INFINITY, f64::NAN);
        accumulator.update_batch(&[values], groups, None, 4).unwrap();
        accumulator.evaluate(EmitTo::All).unwrap().as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn a_nan_is_largest_wherever_it_comes() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let values = vec![1.0, nan, 3.0, infinity, -infinity, 2.0, nan];
        let groups = [0, 0, 0, 1, 2, 2, 2];
        assert_eq!(extremes(false, values.clone(), &groups), [Some(1.0), Some(infinity), Some(-infinity), None]);
        let largest = extremes(true, values, &groups);
        assert!(largest[0].unwrap().is_nan() && largest[2].unwrap().is_nan());
        assert_eq!((largest[1], largest[3]), (Some(infinity), None));
        assert_eq!(extremes(true, vec![-infinity], &[0])[0], Some(-infinity));
        assert!(extremes(false, vec![nan], &[0])[0].unwrap().is_nan());
    }
}
