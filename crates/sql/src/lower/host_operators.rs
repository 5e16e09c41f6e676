//! The operators of a statement that the CPU runs.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, Sort};

use super::DeviceNode;
use super::operators::is_operator;
use super::top_k::below;
use crate::walk::PlanWalk;

/// The operators of a statement's plan that are not within a fragment, those of subqueries included. A sort of rows
/// that a fragment gives in its order is left out of the physical plan. EXPLAIN runs none.
pub(crate) fn host_operators(plan: &LogicalPlan) -> Result<u64> {
    if matches!(plan, LogicalPlan::Explain(_)) {
        return Ok(0);
    }
    let mut operators = 0;
    plan.apply_nested(|plan| {
        let is_done = matches!(plan, LogicalPlan::Sort(sort) if is_done(sort));
        operators += u64::from(is_operator(plan) && !is_done);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(operators)
}

/// Whether a sort is above a node that gives the rows in its order, or a projection of such rows.
fn is_done(sort: &Sort) -> bool {
    if let Some((_, below)) = below(sort)
        && let LogicalPlan::Sort(done) = below.input.as_ref()
        && (&done.expr, done.fetch) == (&below.expr, below.fetch)
    {
        return is_done(done);
    }
    match DeviceNode::of(&sort.input).map(DeviceNode::original) {
        Some(LogicalPlan::Sort(done)) => (&done.expr, done.fetch) == (&sort.expr, sort.fetch),
        _ => false,
    }
}
