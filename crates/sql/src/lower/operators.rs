//! How many operators of a plan do work on rows: what the share of a statement on the device is counted by.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::walk::Walk;

/// Whether a node reads, filters, joins, groups, sorts or unites rows. Projections, aliases and LIMIT hand rows on.
pub(super) fn is_operator(plan: &LogicalPlan) -> bool {
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
