//! `x = ANY (list)` and its like are three-valued: where no element decides and one is NULL, the outcome is NULL.
//!
//! DataFusion 55.2 compares with the elements that are not NULL alone, and gives NULL for an `x` that is NULL beside an
//! empty list, which is false. The tree asks for both; ALL is right there. Subqueries are planned otherwise.
//!
//! `x IN list` is DuckDB's, false and not NULL where the list has a NULL and no `x`: a call of `array_has`.
//!
//! `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, whose elements need no common type but that with `x`.
//!
//! The file goes once DataFusion's ANY over lists looks for NULLs.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, UnaryOperator, Value};

use super::{call, rows, when};
use crate::error::Result;

/// Makes IN of a comparison with a list that is written out.
pub(super) fn as_list(expr: &mut Expr) {
    if let Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: _ } = &*expr
        && let Expr::Array(array) = right.as_ref()
        && !array.elem.is_empty()
    {
        let (operand, list) = (left.clone(), array.elem.clone());
        *expr = Expr::InList { expr: operand, list, negated: false };
    }
}

/// Makes a call of IN beside a list.
pub(super) fn as_call(expr: &mut Expr) {
    let Expr::InUnnest { expr: value, array_expr, negated } = expr else { return };
    let arguments = [array_expr, value].map(|argument| {
        let argument = std::mem::replace(argument.as_mut(), Expr::value(Value::Null));
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
    });
    let negated = *negated;
    *expr = call("array_has", arguments.into());
    if negated {
        let found = Box::new(std::mem::replace(expr, Expr::value(Value::Null)));
        *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: found };
    }
}

/// The comparison with what it is by NULLs of the list beside it.
///
/// # Errors
/// [`SqlError::Unsupported`](crate::error::SqlError::Unsupported) for a list that has another value each time.
pub(super) fn with_nulls(expr: &mut Expr) -> Result<()> {
    let Expr::AnyOp { left, compare_op, right: list, is_some: _ } = &*expr else { return Ok(()) };
    match &**list {
        Expr::Subquery(_) => return Ok(()),
        Expr::Value(value) if value.value == Value::Null => {
            let (left, right) = (left.clone(), list.clone());
            *expr = Expr::BinaryOp { left, op: compare_op.clone(), right };
            return Ok(());
        }
        _ => {}
    }
    rows::check_copied([&**list])?;
    let list = list.as_ref().clone();
    let argument = |expr: Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    let number = |digits: &str| Expr::value(Value::Number(digits.into(), false));
    let null = || Expr::value(Value::Null);
    // The length of the list itself, whatever its elements are, and of what of it is not NULL.
    let length = |list: Expr| call("array_length", vec![argument(list)]);
    let present = length(call("array_compact", vec![argument(list.clone())]));
    let has_null =
        Expr::BinaryOp { left: Box::new(present), op: BinaryOperator::Lt, right: Box::new(length(list.clone())) };
    let unknown = when(has_null, null(), Expr::value(Value::Boolean(false)));
    let found = Expr::BinaryOp {
        left: Box::new(std::mem::replace(expr, null())),
        op: BinaryOperator::Or,
        right: Box::new(unknown),
    };
    let is_empty =
        Expr::BinaryOp { left: Box::new(length(list)), op: BinaryOperator::Eq, right: Box::new(number("0")) };
    *expr = when(is_empty, Expr::value(Value::Boolean(false)), found);
    Ok(())
}
