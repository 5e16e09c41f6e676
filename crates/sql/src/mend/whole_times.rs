//! Texts beside timestamps have all digits of one: `t > '2024-01-01 08:00'`.
//!
//! A constant text that is compared with a timestamp becomes one, as Arrow 59 reads it: with its seconds, and two
//! digits for each part. What a statement casts itself has them from its syntax tree on ([`crate::syntax`]).
//!
//! The file goes once Arrow reads such texts.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::text_times::written_out;
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct WholeTimes;

impl AnalyzerRule for WholeTimes {
    fn name(&self) -> &str {
        "whole_times"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_short = |expr: &Expr| short_time(expr).is_some();
        let mended = plan.transform_up_nested(|plan| {
            each_expression(plan, is_short, |expr, _| expr.transform_up(|expr| Ok(whole(expr))))
        })?;
        Ok(mended.data)
    }
}

/// The whole text of a constant that lacks digits of the timestamp that it becomes.
fn short_time(expr: &Expr) -> Option<String> {
    let Expr::Cast(Cast { expr, field }) = expr else { return None };
    let (DataType::Timestamp(_, _), Expr::Literal(text, _)) = (field.data_type(), expr.as_ref()) else { return None };
    written_out(text.try_as_str().flatten()?)
}

fn whole(expr: Expr) -> Transformed<Expr> {
    match (short_time(&expr), expr) {
        (Some(text), Expr::Cast(Cast { expr: _, field })) => {
            let text = Expr::Literal(ScalarValue::from(text), None);
            Transformed::yes(Expr::Cast(Cast { expr: Box::new(text), field }))
        }
        (_, expr) => Transformed::no(expr),
    }
}
