//! `ceil`, `floor` and `trunc` of decimals have no digits behind the point, as in PostgreSQL and DuckDB.
//!
//! In DataFusion 55.2 they have the type of their argument, which has no room for 1 beside 0.5, or for 100 beside 99.5,
//! and raise. Without a scale all of their digits are before the point: there is room.
//!
//! The file goes once DataFusion's functions give decimals without a scale.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowNativeType, DataType, Decimal128Type, Decimal256Type, DecimalType};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::each_value;

/// The type of the whole numbers near decimals; none of what has no digits behind the point.
pub(super) fn data_type(decimals: &DataType) -> Option<DataType> {
    match *decimals {
        DataType::Decimal128(digits, 1..) => Some(DataType::Decimal128(digits, 0)),
        DataType::Decimal256(digits, 1..) => Some(DataType::Decimal256(digits, 0)),
        _ => None,
    }
}

/// The whole numbers near decimals that have a [`data_type`], by a function's name.
pub(super) fn values(function: &str, decimals: &ColumnarValue) -> Result<ColumnarValue> {
    each_value(decimals, |decimals| {
        Ok(match *decimals.data_type() {
            DataType::Decimal128(digits, scale) => whole::<Decimal128Type>(function, decimals, digits, scale)?,
            DataType::Decimal256(digits, scale) => whole::<Decimal256Type>(function, decimals, digits, scale)?,
            _ => decimals.clone(),
        })
    })
}

fn whole<T: DecimalType>(
    function: &str,
    decimals: &ArrayRef,
    digits: u8,
    scale: i8,
) -> std::result::Result<ArrayRef, ArrowError> {
    let (nothing, one) = (T::Native::ZERO, T::Native::ONE);
    let unit = T::Native::usize_as(10).pow_checked(u32::from(scale.unsigned_abs()))?;
    let near = |decimal: T::Native| {
        let (whole, fraction) = (decimal.div_checked(unit)?, decimal.mod_checked(unit)?);
        match function {
            "floor" if fraction.is_lt(nothing) => whole.sub_checked(one),
            "ceil" if fraction.is_gt(nothing) => whole.add_checked(one),
            _ => Ok(whole),
        }
    };
    let whole: PrimitiveArray<T> = decimals.as_primitive::<T>().try_unary(near)?;
    Ok(Arc::new(whole.with_precision_and_scale(digits, 0)?))
}
