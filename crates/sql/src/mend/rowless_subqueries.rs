//! A scalar subquery without a row is NULL, whatever its column says.
//!
//! DataFusion 55.2 takes the column's nullability for the subquery's: `(SELECT 1 WHERE false) IS NULL` is false, and a
//! table made of it is refused. A subquery whose column has no NULL and that may have no row is joined to one row
//! here, which makes the column nullable and gives the NULL.
//!
//! The file goes once scalar subqueries are nullable.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use super::held_filters::has_empty_group;
use crate::walk::{PlanWalk, Walk};

/// The rule that makes such subqueries nullable. Correlated ones are joins by then ([`super::unnest`]).
#[derive(Debug)]
pub(crate) struct NullWithoutRow;

impl AnalyzerRule for NullWithoutRow {
    fn name(&self) -> &str {
        "null_without_row"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut changed = false;
        let is_scalar = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(_));
        let nullable = plan.transform_up_nested(|plan| {
            let plan = each_expression(plan, is_scalar, |expr, _| expr.transform_up(with_row))?;
            changed |= plan.transformed;
            match changed {
                true => Ok(Transformed::yes(plan.data.recompute_schema()?)),
                false => Ok(plan),
            }
        })?;
        Ok(nullable.data)
    }
}

fn with_row(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(mut subquery) = expr else { return Ok(Transformed::no(expr)) };
    let plan = subquery.subquery.as_ref();
    let is_nullable = plan.schema().fields().iter().all(|field| field.is_nullable());
    if is_nullable || has_row(plan) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let row = LogicalPlanBuilder::empty(true);
    let joined = row.join_on(plan.clone(), JoinType::Left, [lit(true)])?.build()?;
    subquery.subquery = Arc::new(joined);
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

/// Whether a plan is known to have a row.
fn has_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Window(_) => {
            plan.inputs().into_iter().all(has_row)
        }
        LogicalPlan::Aggregate(aggregate) => has_empty_group(aggregate),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Values(values) => !values.values.is_empty(),
        _ => false,
    }
}
