//! Casts that lose digits stay on their columns.
//!
//! DataFusion 55.2 takes a cast from a column that is compared with a literal and casts the literal instead, in its
//! logical and its physical plans: `CAST(d AS INT) = 1` over decimals becomes `d = 1.00`, and drops 1.24. A TRY_CAST
//! that gives NULL for what does not fit becomes false. It leaves operands of 256 bits alone: here such a cast goes by
//! way of a decimal of 256 bits, which has all digits of its operand. Lowering passes over that step.
//!
//! The file goes once DataFusion takes away only casts that keep values apart.

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::walk::{PlanWalk, Walk};

/// Digits of the longest integer type.
const INTEGER_DIGITS: u8 = 20;

/// The rule that widens what is made narrower.
#[derive(Debug)]
pub(crate) struct WidenOperands;

impl AnalyzerRule for WidenOperands {
    fn name(&self) -> &str {
        "widen_operands"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_cast = |expr: &Expr| matches!(expr, Expr::Cast(_) | Expr::TryCast(_));
        let widened = plan.transform_up_nested(|plan| {
            each_expression(plan, is_cast, |expr, schema| expr.transform_up(|expr| Ok(widened(expr, schema))))
        })?;
        Ok(widened.data)
    }
}

fn widened(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let wide = |operand: &Expr, to: &DataType, may_fail: bool| {
        let from = operand.get_type(schema).ok().filter(|_| !matches!(operand, Expr::Literal(..)))?;
        let wide = match from {
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
                let scale = scale_of(&from);
                (may_fail || scale > scale_of(to)).then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale))?
            }
            _ if may_fail && from.is_integer() => DataType::Decimal256(INTEGER_DIGITS, 0),
            _ => return None,
        };
        let is_number = to.is_integer() || to.is_decimal();
        is_number.then(|| Box::new(Expr::Cast(Cast::new(Box::new(operand.clone()), wide))))
    };
    match expr {
        Expr::Cast(cast) => match wide(&cast.expr, cast.field.data_type(), false) {
            Some(expr) => Transformed::yes(Expr::Cast(Cast { expr, ..cast })),
            None => Transformed::no(Expr::Cast(cast)),
        },
        Expr::TryCast(cast) => match wide(&cast.expr, cast.field.data_type(), true) {
            Some(expr) => Transformed::yes(Expr::TryCast(TryCast { expr, ..cast })),
            None => Transformed::no(Expr::TryCast(cast)),
        },
        other => Transformed::no(other),
    }
}

/// Digits behind the point.
fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
        // Decimals of 256 bits take no literal.
        DataType::Decimal256(_, _) => i8::MAX,
        _ => 0,
    }
}

/// The operand of a widened cast; the operand of any other as it is.
pub(crate) fn operand<'a>(cast: &'a Cast, schema: &DFSchema) -> &'a Expr {
    match cast.expr.as_ref() {
        Expr::Cast(inner) => match (inner.expr.get_type(schema), inner.field.data_type()) {
            (Ok(DataType::Decimal128(_, of)), DataType::Decimal256(_, scale)) if of == *scale => &inner.expr,
            _ => &cast.expr,
        },
        other => other,
    }
}
