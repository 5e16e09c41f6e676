//! How many rows a filter leaves, from bounds and dictionaries.
//!
//! Estimates order the steps of a pipeline and choose between loading a column whole and gathering survivors; they
//! never change a result.

use warpcube_column::LINE_BYTES;

use crate::facts::Facts;
use crate::ir::{BinaryOp, Expr, Literal, UnaryOp};
use crate::lookup;

/// Share taken where nothing is known.
const UNKNOWN: f64 = 0.33;

/// Estimated share of rows for which `expr` is true.
pub(crate) fn selectivity(expr: &Expr, registers: &[Option<Facts>]) -> f64 {
    match expr {
        Expr::Literal(Literal::Int(value), _) => f64::from(u8::from(*value != 0)),
        Expr::Literal(Literal::Null, _) => 0.0,
        Expr::Unary(UnaryOp::Not, inner) => 1.0 - selectivity(inner, registers),
        Expr::Unary(UnaryOp::IsTrue, inner) => selectivity(inner, registers),
        Expr::Unary(UnaryOp::IsNull, _) => 0.1,
        Expr::Unary(UnaryOp::IsNotNull, _) => 0.9,
        Expr::Binary(BinaryOp::And, left, right) => selectivity(left, registers) * selectivity(right, registers),
        Expr::Binary(BinaryOp::Or, left, right) => {
            let (left, right) = (selectivity(left, registers), selectivity(right, registers));
            (left + right).min(1.0)
        }
        Expr::Binary(op, _, _) if op.is_comparison() => comparison(expr, registers),
        Expr::Lookup(register, function, ty) => {
            let dictionary = registers.get(*register).and_then(|value| value.as_ref()?.dictionary.clone());
            match dictionary.map(|dictionary| lookup::evaluate(&dictionary, function, *ty)) {
                Some(Ok(table)) => table.true_share(),
                _ => UNKNOWN,
            }
        }
        Expr::Match(_, test) => test.share(),
        _ => UNKNOWN,
    }
}

fn comparison(expr: &Expr, registers: &[Option<Facts>]) -> f64 {
    let Some((register, op, literal)) = expr.against_constant() else { return UNKNOWN };
    let bounds = registers.get(register).and_then(|value| value.as_ref()?.bounds());
    let Some((low, high)) = bounds else { return UNKNOWN };
    let count = (high as f64 - low as f64) + 1.0;
    let below = ((literal as f64 - low as f64) / count).clamp(0.0, 1.0);
    let one = 1.0 / count;
    match op {
        BinaryOp::Eq if literal < low || literal > high => 0.0,
        BinaryOp::Eq => one,
        BinaryOp::Ne => 1.0 - one,
        BinaryOp::Lt => below,
        BinaryOp::Le => (below + one).min(1.0),
        BinaryOp::Gt => (1.0 - below - one).clamp(0.0, 1.0),
        _ => 1.0 - below,
    }
}

/// Share of a column's memory lines that hold a survivor, if survivors fall independently; a value takes `width` bytes.
pub(crate) fn surviving_lines(survivors: f64, width: f64) -> f64 {
    1.0 - (1.0 - survivors.clamp(0.0, 1.0)).powf(LINE_BYTES / width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Ty;

    #[test]
    fn ranges_give_shares() {
        let registers = [Some(Facts::new(Ty::I32, false, Some((1, 50))))];
        let compare = |op, literal| {
            let literal = Expr::Literal(Literal::Int(literal), Ty::I32);
            selectivity(&Expr::binary(op, Expr::Reg(0), literal), &registers)
        };
        assert!((compare(BinaryOp::Lt, 25) - 0.48).abs() < 1e-9);
        assert!((compare(BinaryOp::Ge, 25) - 0.52).abs() < 1e-9);
        assert!((compare(BinaryOp::Eq, 7) - 0.02).abs() < 1e-9);
        assert_eq!(compare(BinaryOp::Eq, 51), 0.0);
    }

    #[test]
    fn few_survivors_touch_few_lines() {
        assert!(surviving_lines(1.0 / 25.0, 4.0) < 0.5);
        assert!(surviving_lines(0.2, 4.0) > 0.95);
    }
}
