//! Sums of lists, of the type that SUM has: DataFusion 55.2 adds doubles, which lose digits of long integers and
//! decimals.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Float64Type,
    Int64Type, UInt64Type,
};
use datafusion::error::{DataFusionError, Result};

use super::{Arguments, List, Own, Total, raised};
use crate::words::sql_name;

/// The functions.
pub(super) const ALL: &[Own] =
    &[Own::new("array_sum", &[List], Total, total), Own::new("list_sum", &[List], Total, total)];

/// The type of a sum of elements of a type.
///
/// # Errors
/// A type whose values are no numbers.
pub(super) fn total_type(elements: &DataType) -> Result<DataType> {
    Ok(match elements {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale)
        }
        DataType::Decimal256(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale),
        unsigned if unsigned.is_unsigned_integer() => DataType::UInt64,
        integer if integer.is_integer() || integer.is_null() => DataType::Int64,
        float if float.is_floating() => DataType::Float64,
        other => {
            let reason = format!("list_sum takes a list of numbers, not {}[]", sql_name(other));
            return Err(DataFusionError::Plan(reason));
        }
    })
}

fn total(args: &Arguments) -> Result<ArrayRef> {
    let lists = args.columns[0].as_list::<i32>();
    let to = total_type(&lists.value_type())?;
    let values = cast(lists.values(), &to)?;
    Ok(match to {
        DataType::Decimal128(digits, _) => {
            let sums = sums::<Decimal128Type>(args, &values)?;
            sums.validate_decimal_precision(digits)?;
            Arc::new(sums)
        }
        DataType::Decimal256(digits, _) => {
            let sums = sums::<Decimal256Type>(args, &values)?;
            sums.validate_decimal_precision(digits)?;
            Arc::new(sums)
        }
        DataType::UInt64 => Arc::new(sums::<UInt64Type>(args, &values)?),
        DataType::Int64 => Arc::new(sums::<Int64Type>(args, &values)?),
        _ => Arc::new(sums::<Float64Type>(args, &values)?),
    })
}

/// The sum of each list's elements; none of one without elements.
fn sums<T: ArrowPrimitiveType>(args: &Arguments, values: &ArrayRef) -> Result<PrimitiveArray<T>> {
    let offsets = args.columns[0].as_list::<i32>().value_offsets();
    let elements = values.as_primitive::<T>();
    let sums = args.each(|row| {
        let own = offsets[row] as usize..offsets[row + 1] as usize;
        let own = elements.slice(own.start, own.len());
        let mut present = own.iter().flatten();
        let Some(first) = present.next() else { return Ok(None) };
        let sum = present.try_fold(first, |sum, value| sum.add_checked(value));
        let overflow = |_| raised(format!("overflow: list_sum leaves {}", sql_name(values.data_type())));
        sum.map(Some).map_err(overflow)
    })?;
    Ok(PrimitiveArray::<T>::from_iter(sums).with_data_type(values.data_type().clone()))
}
