//! Functions that give equal floats the same bits ([`crate::canonical_floats`]).

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::utils::{normalize_float_zero, normalize_float_zero_scalar};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::each_value;
use crate::canonical_floats::{canonical, canonical_nans, holds_floats, literal};
use crate::walk::Walk;

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

/// The expression with 0.0 for −0.0: what equal values are found by. Within lists, structs and maps it has one NaN,
/// too.
pub(super) fn one_zero(expr: Expr) -> Expr {
    match &expr {
        Expr::ScalarFunction(function) if Arc::ptr_eq(&function.func, &ZERO) => expr,
        _ => ZERO.call(vec![expr]),
    }
}

/// The argument of a [`one_nan`]; any other expression as it is.
pub(super) fn without_one_nan(expr: Expr) -> Expr {
    match expr {
        Expr::ScalarFunction(mut function) if Arc::ptr_eq(&function.func, &NAN) => function.args.remove(0),
        other => other,
    }
}

/// Whether an expression is a [`one_nan`] or a [`one_zero`].
pub(super) fn is_canonical(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.inner().is::<Canonical>())
}

/// Whether an expression is a float.
pub(super) fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(function) if is_canonical(expr) => is_float(&function.args[0], schema),
        expr => expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating()),
    }
}

/// Whether an expression is a list, a struct or a map with floats within.
pub(super) fn is_nested(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_nested() && holds_floats(&data_type))
}

/// Whether equal values of an expression may have other bits than a [`one_zero`] of them.
pub(super) fn is_compared(expr: &Expr, schema: &DFSchema) -> bool {
    is_float(expr, schema) || is_nested(expr, schema)
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
            (value, Kind::Zero) if value.data_type().is_nested() => each_value(value, |array| Ok(canonical(array)))?,
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
