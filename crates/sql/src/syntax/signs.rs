//! Signs of what is no literal, as an operator that our planner of expressions is asked about.
//!
//! DataFusion 55.2 negates no duration: `-(t2 - t1)` is an error, and no planner is asked about a sign. Here `-x` is
//! `NULL OPERATOR(-) x`, whose left side stands for nothing (`mend/names.rs`), and in texts `-x` again ([`shown`]).
//!
//! The file goes once DataFusion negates durations.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

/// A statement's text has this in place of a sign.
const MARK: &str = "NULL OPERATOR(-) ";

fn operator() -> BinaryOperator {
    BinaryOperator::PGCustomBinaryOperator(vec!["-".into()])
}

/// Whether an operator is a sign's.
pub(crate) fn is_sign(op: &BinaryOperator) -> bool {
    *op == operator()
}

/// A text with signs where the operator stands.
pub(crate) fn shown(text: &str) -> String {
    text.replace(MARK, "-")
}

/// Puts the operator in the place of a sign before what may be a duration.
pub(super) fn of_operands(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = expr else { return };
    if !may_be_duration(operand) {
        return;
    }
    let nothing = || Box::new(Expr::value(Value::Null));
    let right = std::mem::replace(operand, nothing());
    *expr = Expr::BinaryOp { left: nothing(), op: operator(), right };
}

/// `~x` as `-1 - x`, which has all bits of an integer turned; DataFusion 55.2 plans no such sign.
pub(super) fn of_bits(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: operand } = expr else { return };
    let right = Box::new(Expr::Nested(Box::new(std::mem::replace(operand, Expr::value(Value::Null)))));
    let one = Expr::value(Value::Number("1".into(), false));
    let left = Box::new(Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(one) })));
    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Minus, right }));
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
