//! Operators of a plan with nothing to optimise, made once and copied for each run.
//!
//! An operator has metrics and a state of one run. A copy has the same expressions and properties, which are what
//! planning spends its time on, with metrics and a state of its own, and its device operators belong to the statement
//! that runs it.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::device_exec::DeviceExec;

/// Whether a plan can be copied: it has only operators whose state is known, and no value of a scalar subquery, which
/// belongs to one run.
pub(super) fn is_renewable(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<DeviceExec>() {
        Some(device) => device.is_alone(),
        None => {
            let is_known = plan.is::<ProjectionExec>()
                || plan.is::<FilterExec>()
                || plan.is::<SortExec>()
                || plan.is::<GlobalLimitExec>()
                || plan.is::<LocalLimitExec>();
            is_known && plan.children().into_iter().all(is_renewable)
        }
    }
}

/// A copy of a plan with other device operators.
pub(super) fn renewed(
    plan: &Arc<dyn ExecutionPlan>,
    device: &dyn Fn(&DeviceExec) -> DeviceExec,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(known) = plan.downcast_ref::<DeviceExec>() {
        return Ok(Arc::new(device(known)));
    }
    let children = plan.children().into_iter().map(|child| renewed(child, device)).collect::<Result<_>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let copy = plan.clone().replace_children(children, options)?;
    // The threshold that a sort for first rows has found, and its metrics, are shared by copies.
    if copy.is::<SortExec>() { copy.reset_state() } else { Ok(copy) }
}
