//! Values of Arrow arrays one by one, for the interpreter and for comparing results.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type, i256};
use warpcube_column::is_string;
use warpcube_engine::{Ty, UnaryOp};

/// A value that is not NULL.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// Integers, truth values, dates, unscaled decimals.
    Int(i128),
    /// Floats of both widths.
    Float(f64),
    /// Strings.
    Text(Arc<str>),
}

impl Scalar {
    pub fn int(&self) -> i128 {
        match self {
            Scalar::Int(value) => *value,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub fn float(&self) -> f64 {
        match self {
            Scalar::Float(value) => *value,
            other => panic!("{other:?} is no float"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Scalar::Text(value) => value,
            other => panic!("{other:?} is no string"),
        }
    }

    /// What an operator of one operand gives for a float.
    pub fn of_float(&self, op: UnaryOp) -> f64 {
        let value = self.float();
        match op {
            UnaryOp::Negate => -value,
            UnaryOp::Absolute => value.abs(),
            UnaryOp::Floor => value.floor(),
            UnaryOp::Ceil => value.ceil(),
            UnaryOp::Round => value.round(),
            UnaryOp::RoundEven => value.round_ties_even(),
            UnaryOp::Truncate if value == 0.0 => 0.0,
            UnaryOp::Truncate => value.trunc(),
            UnaryOp::Sign if value == 0.0 => 0.0,
            UnaryOp::Sign => value.signum(),
            UnaryOp::Root => value.sqrt(),
            other => panic!("{other:?} of a float"),
        }
    }

    /// The value as a join compares it: zeros of both signs are one.
    pub fn join_key(&self) -> String {
        match self {
            Scalar::Float(0.0) => Scalar::Float(0.0).key(),
            other => other.key(),
        }
    }

    /// The value as text that tells all values apart (NaNs of all kinds are one).
    pub fn key(&self) -> String {
        match self {
            Scalar::Int(value) => value.to_string(),
            Scalar::Float(value) if value.is_nan() => "NaN".into(),
            Scalar::Float(value) => format!("{value:?}"),
            Scalar::Text(value) => format!("'{value}'"),
        }
    }
}

/// The rows of an array; `None` is NULL.
pub fn scalars(array: &ArrayRef) -> Vec<Option<Scalar>> {
    let rows = 0..array.len();
    let int = |value: Option<i128>| value.map(Scalar::Int);
    match array.data_type() {
        DataType::Boolean => array.as_boolean().iter().map(|value| int(value.map(i128::from))).collect(),
        DataType::Float32 | DataType::Float64 => {
            let wide = cast(array, &DataType::Float64).unwrap();
            wide.as_primitive::<Float64Type>().iter().map(|value| value.map(Scalar::Float)).collect()
        }
        DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().iter().map(int).collect(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().iter().map(|v| int(v.map(i128::from))).collect(),
        other if is_string(other) => {
            let text = cast(array, &DataType::Utf8).unwrap();
            let text = text.as_string::<i32>();
            rows.map(|row| text.is_valid(row).then(|| Scalar::Text(text.value(row).into()))).collect()
        }
        _ => {
            let wide = cast(array, &DataType::Int64).unwrap();
            wide.as_primitive::<Int64Type>().iter().map(|value| int(value.map(i128::from))).collect()
        }
    }
}

/// An integer modulo two to the power of its type's bits.
pub fn wrapped(ty: Ty, value: i128) -> i128 {
    match ty {
        Ty::I8 => (value as i8).into(),
        Ty::I16 => (value as i16).into(),
        Ty::I32 => (value as i32).into(),
        Ty::I64 => (value as i64).into(),
        Ty::U8 => (value as u8).into(),
        Ty::U16 => (value as u16).into(),
        Ty::U32 => (value as u32).into(),
        Ty::U64 => (value as u64).into(),
        _ => value,
    }
}

/// A decimal times a power of ten over another, if 38 digits hold it.
pub fn quotient((dividend, divisor): (i128, i128), power: u8) -> Option<Scalar> {
    let scaled = i256::from_i128(dividend).wrapping_mul(i256::from_i128(10i128.pow(power.into())));
    let quotient = scaled.checked_div(i256::from_i128(divisor))?.to_i128()?;
    (quotient.unsigned_abs() < 10u128.pow(38)).then_some(Scalar::Int(quotient))
}

/// A decimal with so many digits more behind the point, if it has 38 at most; rounded half away from zero if they are
/// fewer.
pub(super) fn rescaled(value: i128, power: i8) -> Option<i128> {
    let factor = 10i128.pow(power.unsigned_abs().into());
    if power >= 0 {
        return value.checked_mul(factor).filter(|value| value.unsigned_abs() < 10u128.pow(38));
    }
    let half = factor / 2;
    Some((value.abs() + half) / factor * value.signum())
}
