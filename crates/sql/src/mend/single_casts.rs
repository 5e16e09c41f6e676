//! The changes of casts of single values, in their order.
//!
//! Each stands in a file of its own, with the defect that it mends: functions of `cast_functions` take the place of a
//! cast (`text_decimals`, `decimal_floats`, `time_texts`, `failing_casts`), the others that of its operand. A cast that
//! a change makes goes through those behind it.

use datafusion::logical_expr::Expr;

use super::cast_functions::CastFunction;
use super::conversion::Conversion;
use super::{coarser_times, failing_casts, narrow_casts, rounded_casts, wall_texts};

/// The expression in a cast's place, if there is another.
pub(super) fn mended(cast: &Conversion, raises_early: bool) -> Option<Expr> {
    if let Some(function) = CastFunction::in_place_of(cast) {
        return Some(function);
    }
    let schema = cast.schema;
    // No two of them take operands of the same types, but for texts whose zone goes before they are rounded.
    let bare = wall_texts::operand(cast).map(|bare| cast.of_operand(bare));
    let of_bare = bare.as_ref().and_then(|bare| Conversion::of(bare, schema));
    let inner = of_bare.as_ref().unwrap_or(cast);
    let made = |expr: Expr| match Conversion::of(&expr, schema).and_then(|cast| finished(&cast, raises_early)) {
        Some(finished) => finished,
        None => expr,
    };
    let operand = rounded_casts::operand(inner).map(made).or_else(|| coarser_times::operand(inner, made));
    let within = operand.map(|operand| cast.of_operand(operand)).or(bare);
    match &within {
        Some(within) => finished(&Conversion::of(within, schema)?, raises_early).or_else(|| Some(within.clone())),
        None => finished(cast, raises_early),
    }
}

/// The changes behind all that make casts.
fn finished(cast: &Conversion, raises_early: bool) -> Option<Expr> {
    let widened = narrow_casts::widened(cast).map(|operand| cast.of_operand(operand));
    widened.or_else(|| if raises_early { None } else { failing_casts::failing(cast) })
}
