//! Casts read, round and raise as SQL's do, by one walk over a plan once types are coerced.
//!
//! Each change stands in a file of its own, with the defect that it mends: functions of `cast_functions` take the place
//! of a cast (`text_decimals`, `calendar`, `failing_casts`), the others that of its operand. A cast that a change makes
//! goes through those behind it.

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::cast_functions::CastFunction;
use super::conversion::Conversion;
use super::{coarser_times, each_expression, failing_casts, narrow_casts, rounded_casts, wall_texts};
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct MendedCasts;

impl AnalyzerRule for MendedCasts {
    fn name(&self) -> &str {
        "mended_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_cast = |expr: &Expr| matches!(expr, Expr::Cast(_) | Expr::TryCast(_));
        let mended = plan.transform_up_nested(|plan| {
            // Each row of VALUES is computed.
            let raises_early = matches!(plan, LogicalPlan::Values(_));
            each_expression(plan, is_cast, |expr, schema| {
                expr.transform_up(|expr| {
                    match Conversion::of(&expr, schema).and_then(|cast| mended(&cast, raises_early)) {
                        Some(mended) => Ok(Transformed::yes(mended)),
                        None => Ok(Transformed::no(expr)),
                    }
                })
            })
        })?;
        Ok(mended.data)
    }
}

/// The expression in a cast's place, if there is another.
fn mended(cast: &Conversion, raises_early: bool) -> Option<Expr> {
    if let Some(read) = CastFunction::of_text(cast).or_else(|| CastFunction::of_number(cast)) {
        return Some(read);
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
