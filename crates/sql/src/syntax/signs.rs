//! Signs of what is no literal, as operators that our planner of expressions is asked about.
//!
//! DataFusion 55.2 negates no duration: `-(t2 - t1)` is an error. It plans no `~x`, and no planner is asked about a
//! sign. Here `-x` is `NULL OPERATOR(-) x`, whose left side stands for nothing (`mend/names.rs`), and in texts `-x`
//! again ([`shown`]); so is `~x`.
//!
//! The file goes once DataFusion negates durations and plans `~x`.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

fn operator(sign: &str) -> BinaryOperator {
    BinaryOperator::PGCustomBinaryOperator(vec![sign.into()])
}

/// Whether an operator is that of `-x`.
pub(crate) fn is_sign(op: &BinaryOperator) -> bool {
    *op == operator("-")
}

/// Whether an operator is that of `~x`.
pub(crate) fn is_bits(op: &BinaryOperator) -> bool {
    *op == operator("~")
}

/// Whether an operator is that before a cast which is told ([`super::told_casts`]).
pub(crate) fn is_told(op: &BinaryOperator) -> bool {
    *op == operator(TOLD)
}

/// The operator before a cast.
const TOLD: &str = "@";

/// A text with signs where the operators stand.
pub(crate) fn shown(text: &str) -> String {
    let text = text.replace("NULL OPERATOR(-) ", "-").replace("NULL OPERATOR(~) ", "~");
    text.replace(&format!("NULL OPERATOR({TOLD}) "), "")
}

/// A cast behind its operator; the cast becomes NULL.
pub(super) fn told(cast: &mut Expr) -> Expr {
    Expr::Nested(Box::new(before(TOLD, cast)))
}

/// The operator of a sign before an operand, which becomes NULL.
fn before(sign: &str, operand: &mut Expr) -> Expr {
    let nothing = || Expr::value(Value::Null);
    let right = Box::new(std::mem::replace(operand, nothing()));
    Expr::BinaryOp { left: Box::new(nothing()), op: operator(sign), right }
}

/// Puts the operator in the place of a sign before what may be a duration.
pub(super) fn of_operands(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr else { return };
    if !may_be_duration(operand) {
        return;
    }
    *expr = before("-", operand);
}

/// Puts the operator in the place of the sign that turns bits.
pub(super) fn of_bits(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: operand } = expr else { return };
    *expr = Expr::Nested(Box::new(before("~", operand)));
}

fn may_be_duration(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => may_be_duration(inner),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::BinaryOp { .. }
        | Expr::Function(_)
        | Expr::Case { .. }
        | Expr::Subquery(_) => true,
        _ => false,
    }
}
