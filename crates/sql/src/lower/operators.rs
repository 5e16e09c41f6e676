//! How many operators of a plan do work on rows: what the share of a statement on the device is counted by.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::top_k;
use crate::walk::{PlanWalk, Walk};

/// Whether a node reads, filters, joins, groups, sorts or unites rows. Projections, aliases and LIMIT hand rows on.
fn is_operator(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::TableScan(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::RecursiveQuery(_)
    )
}

/// The operators of a plan without those of its subqueries, which run by themselves.
pub(crate) fn operators(plan: &LogicalPlan) -> u64 {
    let mut operators = 0;
    let walked = plan.apply(|plan| {
        operators += u64::from(is_operator(plan));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| operators)
}

/// The operators of a statement's plan that are not within a fragment, those of subqueries included. A sort of rows
/// that a fragment gives in its order is left out of the physical plan. EXPLAIN runs none.
pub(crate) fn host_operators(plan: &LogicalPlan) -> Result<u64> {
    if matches!(plan, LogicalPlan::Explain(_)) {
        return Ok(0);
    }
    let mut operators = 0;
    plan.apply_nested(|plan| {
        let is_done = matches!(plan, LogicalPlan::Sort(sort) if top_k::is_done(sort));
        operators += u64::from(is_operator(plan) && !is_done);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(operators)
}
