//! Mends of DataFusion's defects: passes over the final plan, for what runs on the CPU.
//!
//! Lowering looks at plain expressions, so that the passes come after it: they rewrite what stays in the lowered plan,
//! and the plan that each device node keeps for the CPU. A pass leaves the names, types and order of columns as they
//! are. Each file names the defect and what would make its mend unnecessary. Plans travel without mends; the session
//! that receives them makes its own.
//!
//! Invariant: a plan is mended once. Device nodes hold plans that are mended already, and no pass looks into them.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::lower::DeviceNode;

/// The plan with all mends that it needs; `options` are the session's settings.
pub(crate) fn for_cpu(plan: LogicalPlan, _options: &ConfigOptions) -> Result<LogicalPlan> {
    each_node(plan, |plan| Ok(Transformed::no(plan)))
}

/// Rewrites each node of a plan, inputs and subqueries before those that read them.
fn each_node(
    plan: LogicalPlan,
    rewrite: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let skip = |plan: LogicalPlan| {
        let next = match DeviceNode::of(&plan) {
            Some(_) => TreeNodeRecursion::Jump,
            None => TreeNodeRecursion::Continue,
        };
        Ok(Transformed::new(plan, false, next))
    };
    Ok(plan.transform_down_up_with_subqueries(skip, rewrite)?.data)
}
