//! Constants: DataFusion's values become the engine's.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use warpcube_column::is_string;
use warpcube_engine::{Expr as Device, Literal, Ty};

use super::Reason;

/// NULL of a type.
pub(super) fn null(data_type: &DataType) -> Result<Device, Reason> {
    let ty = Ty::of(data_type).ok_or_else(|| format!("a NULL of type {data_type}"))?;
    Ok(Device::Literal(Literal::Null, ty))
}

/// A constant.
pub(super) fn literal(value: &ScalarValue) -> Result<Device, Reason> {
    let data_type = value.data_type();
    if value.is_null() {
        return null(&data_type);
    }
    let int = |number: i128, ty| Ok(Device::Literal(Literal::Int(number), ty));
    match value {
        ScalarValue::Boolean(Some(v)) => int(i128::from(*v), Ty::Bool),
        ScalarValue::Int8(Some(v)) => int((*v).into(), Ty::I8),
        ScalarValue::Int16(Some(v)) => int((*v).into(), Ty::I16),
        ScalarValue::Int32(Some(v)) | ScalarValue::Date32(Some(v)) => int((*v).into(), Ty::I32),
        ScalarValue::Int64(Some(v))
        | ScalarValue::Date64(Some(v))
        | ScalarValue::TimestampSecond(Some(v), _)
        | ScalarValue::TimestampMillisecond(Some(v), _)
        | ScalarValue::TimestampMicrosecond(Some(v), _)
        | ScalarValue::TimestampNanosecond(Some(v), _) => int((*v).into(), Ty::I64),
        ScalarValue::UInt8(Some(v)) => int((*v).into(), Ty::U8),
        ScalarValue::UInt16(Some(v)) => int((*v).into(), Ty::U16),
        ScalarValue::UInt32(Some(v)) => int((*v).into(), Ty::U32),
        ScalarValue::UInt64(Some(v)) => int((*v).into(), Ty::U64),
        // There is one NaN, without a sign.
        ScalarValue::Float32(Some(v)) if v.is_nan() => Ok(Device::Literal(Literal::Float(f64::NAN), Ty::F32)),
        ScalarValue::Float64(Some(v)) if v.is_nan() => Ok(Device::Literal(Literal::Float(f64::NAN), Ty::F64)),
        ScalarValue::Float32(Some(v)) => Ok(Device::Literal(Literal::Float((*v).into()), Ty::F32)),
        ScalarValue::Float64(Some(v)) => Ok(Device::Literal(Literal::Float(*v), Ty::F64)),
        ScalarValue::Decimal128(Some(v), _, _) => int(*v, Ty::I128),
        ScalarValue::Decimal256(Some(v), _, _) => match v.to_i128() {
            Some(v) => int(v, Ty::I128),
            None => Err(format!("a constant of type {data_type} past 128 bits")),
        },
        _ if is_string(&data_type) => match value.try_as_str().flatten() {
            Some(text) => Ok(Device::Text(text.into())),
            None => Err(format!("a constant of type {data_type}")),
        },
        _ => Err(format!("a constant of type {data_type}")),
    }
}
