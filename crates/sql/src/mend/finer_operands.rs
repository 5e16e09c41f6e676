//! Nanoseconds beside coarser times in `CASE x WHEN …`, lists of IN and NULLIF.
//!
//! DataFusion 55.2 casts all operands to nanoseconds, and a year that these do not hold raises: 9999. Here each pair of
//! operands is compared by itself, before types are coerced, so that comparisons are those of
//! [`super::finer_columns`] and [`super::finer_times`]. NULLIF then has the type of its first argument, as in
//! PostgreSQL.
//!
//! The file goes once DataFusion compares timestamps of two units without a cast.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use super::{chain, each_expression};
use crate::walk::{PlanWalk, Walk};

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct FinerOperands;

impl AnalyzerRule for FinerOperands {
    fn name(&self) -> &str {
        "finer_operands"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_candidate = |expr: &Expr| match expr {
            Expr::Case(case) => case.expr.is_some(),
            Expr::ScalarFunction(function) => function.name() == "nullif",
            expr => matches!(expr, Expr::InList(_)),
        };
        let mended = plan.transform_up_nested(|plan| {
            each_expression(plan, is_candidate, |expr, schema| expr.transform_up(|expr| Ok(in_pairs(expr, schema))))
        })?;
        Ok(mended.data)
    }
}

fn in_pairs(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Case(Case { expr: Some(operand), when_then_expr, else_expr })
            if !operand.is_volatile()
                && when_then_expr.iter().any(|(value, _)| are_of_two_units(&operand, value, schema)) =>
        {
            let when =
                |(value, result): (Box<Expr>, Box<Expr>)| (Box::new(operand.as_ref().clone().eq(*value)), result);
            let when_then_expr = when_then_expr.into_iter().map(when).collect();
            Transformed::yes(Expr::Case(Case { expr: None, when_then_expr, else_expr }))
        }
        Expr::InList(InList { expr, list, negated })
            if !expr.is_volatile() && list.iter().any(|item| are_of_two_units(&expr, item, schema)) =>
        {
            let equal = list.into_iter().map(|item| expr.as_ref().clone().eq(item)).collect();
            let chain = chain(Operator::Or, equal);
            Transformed::yes(if negated { Expr::Not(Box::new(chain)) } else { chain })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => match args.as_slice() {
            [value, unwanted]
                if func.name() == "nullif" && !value.is_volatile() && are_of_two_units(value, unwanted, schema) =>
            {
                let is_unwanted = Box::new(value.clone().eq(unwanted.clone()));
                let null = Box::new(Expr::Literal(ScalarValue::Null, None));
                let when_then_expr = vec![(is_unwanted, null)];
                let else_expr = Some(Box::new(value.clone()));
                Transformed::yes(Expr::Case(Case { expr: None, when_then_expr, else_expr }))
            }
            _ => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
        },
        other => Transformed::no(other),
    }
}

/// Whether one value is a timestamp of nanoseconds and the other a date or a coarser timestamp.
fn are_of_two_units(one: &Expr, other: &Expr, schema: &DFSchema) -> bool {
    let (Ok(one), Ok(other)) = (one.get_type(schema), other.get_type(schema)) else { return false };
    let is_fine = |data_type: &DataType| matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
    is_time(&one) && is_time(&other) && is_fine(&one) != is_fine(&other)
}
