//! Functions that give equal floats the same bits.
//!
//! Arrow compares floats by total order: each NaN is a value of its own, those with a sign come before −∞, and −0.0
//! before 0.0. With one NaN and one zero, total order is the order of the session: NaN equals NaN and is largest.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::utils::{normalize_float_zero, normalize_float_zero_scalar};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::walk::Walk;

/// Values that are looked at together for a NaN.
const CHUNK: usize = 1024;

/// The type of half-precision floats.
pub(super) type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// What a function makes the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Nan,
    Zero,
}

static NAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Kind::Nan));
static ZERO: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Kind::Zero));

fn function(kind: Kind) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Canonical { kind, signature: Signature::any(1, Volatility::Immutable) }))
}

/// The expression with one NaN for all.
pub(super) fn one_nan(expr: Expr) -> Expr {
    NAN.call(vec![expr])
}

/// The expression with 0.0 for −0.0: what equal values are found by.
pub(super) fn one_zero(expr: Expr) -> Expr {
    ZERO.call(vec![expr])
}

/// The argument of a [`one_nan`]; any other expression as it is.
pub(super) fn without_one_nan(expr: Expr) -> Expr {
    match expr {
        Expr::ScalarFunction(mut function) if Arc::ptr_eq(&function.func, &NAN) => function.args.remove(0),
        other => other,
    }
}

/// Whether an expression is a [`one_nan`] or a [`one_zero`], and so a float.
pub(super) fn is_canonical(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.inner().is::<Canonical>())
}

/// Whether an expression is a float.
pub(super) fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    is_canonical(expr) || expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating())
}

/// Whether an operator computes.
pub(super) fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}

/// Whether a cast makes floats of what is no number.
pub(super) fn makes_nan(from: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let is_number =
        |data_type: &DataType| data_type.is_numeric() || matches!(data_type, DataType::Boolean | DataType::Null);
    to.is_floating() && !is_canonical(from) && !from.get_type(schema).is_ok_and(|from| is_number(&from))
}

/// A constant with one NaN for all; none if it is that already.
pub(super) fn literal(value: &ScalarValue) -> Option<ScalarValue> {
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

/// The function behind [`one_nan`] and [`one_zero`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Nan => "one_nan",
            Kind::Zero => "one_zero",
        }
    }

    /// Grouping sets name their expressions themselves: the function does not show in names.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(arguments[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(arguments.arg_fields[0].clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match (&arguments.args[0], self.kind) {
            (ColumnarValue::Array(array), Kind::Nan) => ColumnarValue::Array(canonical_nans(array)),
            (ColumnarValue::Array(array), Kind::Zero) => ColumnarValue::Array(normalize_float_zero(array)),
            (ColumnarValue::Scalar(value), Kind::Nan) => {
                ColumnarValue::Scalar(literal(value).unwrap_or_else(|| value.clone()))
            }
            (ColumnarValue::Scalar(value), Kind::Zero) => {
                ColumnarValue::Scalar(normalize_float_zero_scalar(value.clone()))
            }
        })
    }
}

/// Whether an expression is made of constants alone.
pub(super) fn is_constant(expr: &Expr) -> bool {
    let is_leaf = |expr: &Expr| {
        matches!(
            expr,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(_, _)
                | Expr::Placeholder(_)
                | Expr::ScalarSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
        )
    };
    !expr.exists(|expr| Ok(is_leaf(expr))).unwrap_or(true)
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
