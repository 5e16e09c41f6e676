//! Floats of which equal ones have the same bits: one NaN and, where values are compared, one zero.
//!
//! Arrow compares floats by total order: each NaN is a value of its own, those with a sign come before −∞, and −0.0
//! before 0.0. With one NaN and one zero, total order is the order of the session: NaN equals NaN and is largest.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    StructArray,
};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::common::utils::normalize_float_zero;

/// Values that are looked at together for a NaN.
const CHUNK: usize = 1024;

/// The type of half-precision floats.
pub(crate) type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// Whether a type is one of floats, or has some within.
pub(crate) fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        other => other.is_floating(),
    }
}

/// An array with one NaN and one zero, within lists, structs and maps, too.
pub(crate) fn canonical(array: &ArrayRef) -> ArrayRef {
    if !holds_floats(array.data_type()) {
        return array.clone();
    }
    match array.data_type() {
        DataType::List(field) => of_list::<i32>(field, array),
        DataType::LargeList(field) => of_list::<i64>(field, array),
        DataType::FixedSizeList(field, size) if *size > 0 => {
            let list = array.as_fixed_size_list();
            let values = canonical(list.values());
            Arc::new(FixedSizeListArray::new(field.clone(), *size, values, list.nulls().cloned()))
        }
        DataType::Map(field, is_sorted) => {
            let map = array.as_map();
            let entries = canonical(&(Arc::new(map.entries().clone()) as ArrayRef)).as_struct().clone();
            Arc::new(MapArray::new(field.clone(), map.offsets().clone(), entries, map.nulls().cloned(), *is_sorted))
        }
        DataType::Struct(fields) => {
            let rows = array.as_struct();
            let columns = rows.columns().iter().map(canonical).collect();
            Arc::new(StructArray::new(fields.clone(), columns, rows.nulls().cloned()))
        }
        DataType::FixedSizeList(_, _) => array.clone(),
        _ => normalize_float_zero(&canonical_nans(array)),
    }
}

/// Maps whose keys have one NaN and one zero; other values as they are.
pub(crate) fn with_canonical_keys(array: &ArrayRef) -> ArrayRef {
    let DataType::Map(field, is_sorted) = array.data_type() else { return array.clone() };
    let (map, DataType::Struct(fields)) = (array.as_map(), field.data_type()) else { return array.clone() };
    let entries = StructArray::new(fields.clone(), vec![canonical(map.keys()), map.values().clone()], None);
    Arc::new(MapArray::new(field.clone(), map.offsets().clone(), entries, map.nulls().cloned(), *is_sorted))
}

fn of_list<O: OffsetSizeTrait>(field: &FieldRef, array: &ArrayRef) -> ArrayRef {
    let list = array.as_list::<O>();
    let values = canonical(list.values());
    Arc::new(GenericListArray::<O>::new(field.clone(), list.offsets().clone(), values, list.nulls().cloned()))
}

/// A constant with one NaN for all; none if it is that already.
pub(crate) fn literal(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float16(Some(value)) if is_other_f16(*value) => Some(ScalarValue::Float16(Some(F16::NAN))),
        ScalarValue::Float32(Some(value)) if is_other_f32(*value) => Some(ScalarValue::Float32(Some(f32::NAN))),
        ScalarValue::Float64(Some(value)) if is_other_f64(*value) => Some(ScalarValue::Float64(Some(f64::NAN))),
        _ => None,
    }
}

/// The array with one NaN for all; the same array where it has no other.
pub(crate) fn canonical_nans(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => of_type::<Float16Type>(array, is_other_f16, F16::NAN),
        DataType::Float32 => of_type::<Float32Type>(array, is_other_f32, f32::NAN),
        DataType::Float64 => of_type::<Float64Type>(array, is_other_f64, f64::NAN),
        _ => array.clone(),
    }
}

fn of_type<T: ArrowPrimitiveType>(array: &ArrayRef, is_other: impl Fn(T::Native) -> bool, nan: T::Native) -> ArrayRef {
    let floats = array.as_primitive::<T>();
    // A whole chunk is looked at without a branch.
    let has_other = |chunk: &[T::Native]| chunk.iter().fold(false, |found, value| found | is_other(*value));
    if !floats.values().chunks(CHUNK).any(has_other) {
        return array.clone();
    }
    Arc::new(floats.unary::<_, T>(|value| if is_other(value) { nan } else { value }))
}

fn is_other_f16(value: F16) -> bool {
    value.is_nan() & (value.to_bits() != F16::NAN.to_bits())
}

fn is_other_f32(value: f32) -> bool {
    value.is_nan() & (value.to_bits() != f32::NAN.to_bits())
}

fn is_other_f64(value: f64) -> bool {
    value.is_nan() & (value.to_bits() != f64::NAN.to_bits())
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    #[test]
    fn an_array_without_other_nans_is_not_copied() {
        let plain: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN), Some(-0.0)]));
        assert!(Arc::ptr_eq(&canonical_nans(&plain), &plain));
        let mut values = vec![0.5; 3000];
        values[2999] = -f64::NAN;
        let other: ArrayRef = Arc::new(Float64Array::from(values));
        let one = canonical_nans(&other);
        assert_eq!(one.as_primitive::<Float64Type>().value(2999).to_bits(), f64::NAN.to_bits());
        assert_eq!(one.as_primitive::<Float64Type>().value(0), 0.5);
    }
}
