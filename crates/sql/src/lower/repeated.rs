//! Inputs that may have other rows each time they are computed, and so are not computed twice.
//!
//! Lowering copies an input where it takes an aggregation apart by its distinct values, or a join by the branches of a
//! union. The rows that a LIMIT without an order lets pass, and what a volatile function gives, differ from one copy to
//! the next.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use super::Reason;
use crate::walk::PlanWalk;

/// # Errors
/// The input may have other rows the second time.
pub(super) fn copied(plan: &LogicalPlan) -> Result<(), Reason> {
    let mut reason = None;
    let visited = plan.apply_nested(|plan| {
        match plan {
            LogicalPlan::Limit(limit) if !is_ordered(&limit.input) => reason = Some("a LIMIT without an order"),
            LogicalPlan::TableScan(scan) if scan.fetch.is_some() => reason = Some("a LIMIT without an order"),
            _ => {}
        }
        plan.apply_exprs(|expr| {
            if expr.is_volatile() {
                reason = Some("a volatile function");
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.map_err(|error| error.strip_backtrace())?;
    match reason {
        Some(what) => Err(format!("{what} in an input that would be computed several times")),
        None => Ok(()),
    }
}

/// Whether rows come in an order, under projections.
fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Limit(_) => {
            plan.inputs().into_iter().all(is_ordered)
        }
        _ => false,
    }
}
