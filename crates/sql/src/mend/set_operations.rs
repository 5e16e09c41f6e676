//! INTERSECT ALL and EXCEPT ALL by multiplicity.
//!
//! DataFusion 55.2 plans both as a semi or an anti join on all columns, so that a row of the left side stays as often
//! as it was there, whatever the right side has: `VALUES (1), (1) INTERSECT ALL VALUES (1)` gives two rows. Here the
//! rows of each side that are equal are numbered, and the number is one more key: the n-th of them meets the n-th.
//!
//! A left side without duplicates (INTERSECT, EXCEPT) needs no numbers. The file goes once DataFusion counts.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Join, JoinConstraint, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, col,
};
use datafusion::optimizer::AnalyzerRule;

use crate::walk::PlanWalk;

/// Names of the numbers, left and right.
const NUMBERS: [&str; 2] = ["warpcube_number_left", "warpcube_number_right"];

/// The rule that numbers rows.
#[derive(Debug)]
pub(crate) struct CountDuplicates;

impl AnalyzerRule for CountDuplicates {
    fn name(&self) -> &str {
        "count_duplicates"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let counted = plan.transform_up_nested(|plan| match plan {
            LogicalPlan::Join(join) if is_of_multisets(&join) => Ok(Transformed::yes(counted(join)?)),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(counted.data)
    }
}

/// Whether a join is what the planner makes of a set operation with ALL. Before it is optimised, no other semi or anti
/// join holds NULLs for equal.
fn is_of_multisets(join: &Join) -> bool {
    let is_number = |key: &Expr| matches!(key, Expr::Column(column) if column.name == NUMBERS[0]);
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !join.on.is_empty()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(*join.left, LogicalPlan::Distinct(_))
        && !join.on.iter().any(|(key, _)| is_number(key))
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let numbered = |side: &Arc<LogicalPlan>, keys: Vec<Expr>, name: &str| {
        let number = row_number().partition_by(keys).build()?.alias(name);
        LogicalPlanBuilder::from(side.clone()).window(vec![number])?.build()
    };
    let left = numbered(&join.left, left_keys, NUMBERS[0])?;
    let right = numbered(&join.right, right_keys, NUMBERS[1])?;
    let mut on = join.on;
    on.push((col(NUMBERS[0]), col(NUMBERS[1])));
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    let plan = Projection::try_new(columns, Arc::new(LogicalPlan::Join(joined)))?;
    Ok(LogicalPlan::Projection(plan))
}
