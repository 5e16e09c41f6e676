//! Differences, negations and quotients of unsigned integers of 64 bits are signed.
//!
//! A difference of two UBIGINT is an overflow in DataFusion 55.2 where the second is larger, `-x` of one is refused,
//! and a quotient by a signed integer is one of decimals. A value that BIGINT does not hold raises.
//!
//! The file goes once DataFusion gives these a type with a sign.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

/// The operands of a difference as BIGINT if both are unsigned. The right one decides first: a chain leans to the left.
pub(super) fn operands(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    match is_unsigned(&right, schema) && is_unsigned(&left, schema) {
        true => (as_bigint(left), as_bigint(right)),
        false => (left, right),
    }
}

/// The operands of a quotient as BIGINT where one of them is unsigned and the other a signed integer: DataFusion takes
/// both for decimals.
pub(super) fn beside_signed(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let is_signed = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_signed_integer());
    match (is_unsigned(&left, schema), is_unsigned(&right, schema)) {
        (true, false) if is_signed(&right) => (as_bigint(left), right),
        (false, true) if is_signed(&left) => (left, as_bigint(right)),
        _ => (left, right),
    }
}

/// What a sign stands before, as BIGINT if it is unsigned.
pub(super) fn operand(expr: Expr, schema: &DFSchema) -> Expr {
    if is_unsigned(&expr, schema) { as_bigint(expr) } else { expr }
}

fn is_unsigned(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::UInt64))
}

fn as_bigint(expr: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), DataType::Int64))
}
