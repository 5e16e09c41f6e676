//! Sorts above device operators that give rows in the same order are taken away, once no rule of DataFusion's comes
//! between the two any more.
//!
//! The operator does not declare its order: DataFusion orders floats otherwise (zeros of both signs are equal on the
//! device), and a key need not be a column of the rows. Sorts by floats go where they are the statement's last
//! operator.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, replace_children_if_necessary};

use super::device_exec::DeviceExec;
use crate::walk::Walk;

/// The rule, the last of all.
#[derive(Debug)]
pub(crate) struct SortedByDevice;

impl PhysicalOptimizerRule for SortedByDevice {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_down(|plan| {
            if let Some(projected) = projected(&plan)? {
                return Ok(Transformed::yes(projected));
            }
            Ok(match done(&plan).filter(|sort| !has_float(sort.expr(), &sort.schema())) {
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
    plan.downcast_ref::<SortExec>()
        .filter(|sort| device_of(sort.input()).is_some_and(|device| device.gives_order(sort.expr(), sort.fetch())))
}

/// The projection over rows that the device gives in order, without the sort or the merge above it, whose keys are
/// columns of the projection. Its batches are computed one after the other.
fn projected(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let merge = plan.downcast_ref::<SortPreservingMergeExec>();
    let above = merge.map_or(plan, |merge| merge.input());
    let sort = above.downcast_ref::<SortExec>();
    let (order, fetch) = match (merge, sort) {
        (Some(merge), _) => (merge.expr(), merge.fetch()),
        (None, Some(sort)) => (sort.expr(), sort.fetch()),
        (None, None) => return Ok(None),
    };
    let projected = sort.map_or(above, |sort| sort.input());
    let Some(projection) = projected.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let input = match projection.input().downcast_ref::<RepartitionExec>() {
        Some(spread) if matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_)) => spread.input(),
        _ => projection.input(),
    };
    let input = done(input).map_or(input, |sort| sort.input());
    let below = |key: &PhysicalSortExpr| {
        let column = key.expr.downcast_ref::<Column>()?;
        let expr = projection.expr().get(column.index())?.expr.clone();
        Some(PhysicalSortExpr { expr, options: key.options })
    };
    let Some(keys) = order.iter().map(below).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let is_ordered = device_of(input).is_some_and(|device| device.gives_order(&keys, fetch));
    if !is_ordered || has_float(order, &projected.schema()) {
        return Ok(None);
    }
    replace_children_if_necessary(projected.clone(), vec![input.clone()]).map(Some)
}

/// The device operator that gives a plan's rows.
fn device_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&DeviceExec> {
    match plan.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => cooperative.input().downcast_ref(),
        None => plan.downcast_ref(),
    }
}

/// Whether a key is a float: an operator above may take zeros of both signs for different ones.
fn has_float(order: &LexOrdering, schema: &Schema) -> bool {
    order.iter().any(|key| key.expr.data_type(schema).map_or(true, |data_type| data_type.is_floating()))
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
