//! Sorts above device operators that give rows in the same order are taken away, once no rule of DataFusion's comes
//! between the two any more.
//!
//! The operator does not declare its order: DataFusion orders floats otherwise (zeros of both signs are equal on the
//! device), and a key need not be a column of the rows. Sorts by floats go where they are the statement's last
//! operator.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::device_exec::DeviceExec;

/// The rule, the last of all.
#[derive(Debug)]
pub(crate) struct SortedByDevice;

impl PhysicalOptimizerRule for SortedByDevice {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            Ok(match done(&plan).filter(|sort| !has_float(sort)) {
                Some(sort) => Transformed::yes(sort.input().clone()),
                None => Transformed::no(plan),
            })
        })?;
        last(plan.data)
    }

    fn name(&self) -> &str {
        "SortedByDevice"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The sort that a plan is, if the device gives its rows in that order.
fn done(plan: &Arc<dyn ExecutionPlan>) -> Option<&SortExec> {
    plan.downcast_ref::<SortExec>().filter(|sort| {
        let input = match sort.input().downcast_ref::<CooperativeExec>() {
            Some(cooperative) => cooperative.input(),
            None => sort.input(),
        };
        let device = input.downcast_ref::<DeviceExec>();
        device.is_some_and(|device| device.gives_order(sort.expr(), sort.fetch()))
    })
}

/// Whether a key is a float: an operator above may take zeros of both signs for different ones.
fn has_float(sort: &SortExec) -> bool {
    let schema = sort.input().schema();
    sort.expr().iter().any(|key| key.expr.data_type(&schema).map_or(true, |data_type| data_type.is_floating()))
}

/// The plan without the sort that orders the rows of the statement, whatever its keys.
fn last(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = done(&plan) {
        return Ok(sort.input().clone());
    }
    let hands_on = plan.is::<ProjectionExec>() || plan.is::<GlobalLimitExec>() || plan.is::<AnalyzeExec>();
    match plan.children()[..] {
        [child] if hands_on => {
            let child = last(child.clone())?;
            replace_children_if_necessary(plan, vec![child])
        }
        _ => Ok(plan),
    }
}
