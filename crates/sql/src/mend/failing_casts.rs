//! A cast of a constant that fails raises where a row computes it, and nowhere else.
//!
//! DataFusion 55.2 raises the error of such a cast while it plans, though it leaves other constants that fail, as
//! `1 / 0`, to their rows: `CASE WHEN false THEN CAST('x' AS INT) ELSE 1 END` is an error there. Here the cast is a
//! function with the same error.
//!
//! The file goes once the simplifier leaves these casts as they are.

use datafusion::logical_expr::Expr;

use super::cast_functions::CastFunction;
use super::conversion::Conversion;

/// The function in place of a cast of a constant that fails.
pub(super) fn failing(cast: &Conversion) -> Option<Expr> {
    let Expr::Literal(value, _) = cast.operand else { return None };
    let fails = !cast.may_fail && value.cast_to(cast.to).is_err();
    fails.then(|| CastFunction::late(cast))
}
