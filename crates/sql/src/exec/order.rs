//! Sorts above device operators that give rows in the same order are taken away, once no rule of DataFusion's comes
//! between the two any more.
//!
//! The operator does not declare its order: DataFusion orders floats otherwise (zeros of both signs are equal on the
//! device), and a key need not be a column of the rows.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::device_exec::DeviceExec;

/// The rule, the last of all.
#[derive(Debug)]
pub(crate) struct SortedByDevice;

impl PhysicalOptimizerRule for SortedByDevice {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            let sort = plan.downcast_ref::<SortExec>();
            let is_done = |sort: &&SortExec| {
                let input = match sort.input().downcast_ref::<CooperativeExec>() {
                    Some(cooperative) => cooperative.input(),
                    None => sort.input(),
                };
                let device = input.downcast_ref::<DeviceExec>();
                device.is_some_and(|device| device.gives_order(sort.expr(), sort.fetch()))
            };
            Ok(match sort.filter(is_done) {
                Some(sort) => Transformed::yes(sort.input().clone()),
                None => Transformed::no(plan),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "SortedByDevice"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
