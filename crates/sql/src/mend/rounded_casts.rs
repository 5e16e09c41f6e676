//! Decimals that become integers are rounded, halves away from zero, as in PostgreSQL.
//!
//! Arrow 59 cuts digits behind the point off in a cast to an integer, and rounds them in one to a decimal with fewer:
//! so a cast to an integer goes by a decimal without any.
//!
//! The file goes once Arrow rounds them.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct RoundedCasts;

impl AnalyzerRule for RoundedCasts {
    fn name(&self) -> &str {
        "rounded_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_up_with_subqueries(|plan| {
            each_expression(plan, is_to_integer, |expr, schema| expr.transform_up(|expr| Ok(rounded(expr, schema))))
        })?;
        Ok(mended.data)
    }
}

fn is_to_integer(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => cast.field.data_type().is_integer(),
        Expr::TryCast(cast) => cast.field.data_type().is_integer(),
        _ => false,
    }
}

fn rounded(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let whole = |expr: &Expr| expr.get_type(schema).ok().as_ref().and_then(whole);
    match expr {
        Expr::Cast(mut cast) if cast.field.data_type().is_integer() => match whole(&cast.expr) {
            Some(whole) => {
                cast.expr = Box::new(Expr::Cast(Cast::new(cast.expr, whole)));
                Transformed::yes(Expr::Cast(cast))
            }
            None => Transformed::no(Expr::Cast(cast)),
        },
        Expr::TryCast(mut cast) if cast.field.data_type().is_integer() => match whole(&cast.expr) {
            Some(whole) => {
                cast.expr = Box::new(Expr::TryCast(TryCast::new(cast.expr, whole)));
                Transformed::yes(Expr::TryCast(cast))
            }
            None => Transformed::no(Expr::TryCast(cast)),
        },
        other => Transformed::no(other),
    }
}

/// The type of a decimal's whole part, which rounding may give a digit more; none where there is nothing to round. Wide
/// decimals become narrow ones, which raise for what no integer holds: Arrow wraps them.
fn whole(data_type: &DataType) -> Option<DataType> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    let (Decimal32(precision, scale)
    | Decimal64(precision, scale)
    | Decimal128(precision, scale)
    | Decimal256(precision, scale)) = data_type
    else {
        return None;
    };
    let is_wide = matches!(data_type, Decimal256(..));
    let digits = i16::from(*precision) - i16::from(*scale) + 1;
    let digits = u8::try_from(digits.clamp(1, i16::from(DECIMAL128_MAX_PRECISION))).ok()?;
    (*scale > 0 || is_wide).then_some(Decimal128(digits, 0))
}
