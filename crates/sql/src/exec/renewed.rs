//! Operators of a plan with nothing to optimise, made once and copied for each run.
//!
//! An operator has metrics and a state of one run. A copy has the same expressions and properties, which are what
//! planning spends its time on, with metrics and a state of its own, and its device operators belong to the statement
//! that runs it.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use warpcube_engine::Engine;

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

/// A copy of a plan: its device operators run on `engine`, where there is one, under `state`.
pub(super) fn renewed(
    plan: &Arc<dyn ExecutionPlan>,
    engine: Option<&Arc<Engine>>,
    state: &Arc<SessionState>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(device) = plan.downcast_ref::<DeviceExec>() {
        return Ok(Arc::new(device.renewed(engine.cloned(), state.clone())));
    }
    let children = plan.children().into_iter().map(|child| renewed(child, engine, state)).collect::<Result<_>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let copy = plan.clone().replace_children(children, options)?;
    // The threshold that a sort for first rows has found, and its metrics, are shared by copies.
    if copy.is::<SortExec>() { copy.reset_state() } else { Ok(copy) }
}
