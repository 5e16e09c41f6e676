//! Splits aggregations of a physical plan in two steps: a partial one on the device ([`super::partial`]) and
//! DataFusion's final one above it.
//!
//! Where an operator aggregates the groups of another aggregation, as for DISTINCT values, the two are planned apart:
//! the lower one is as partial as any other.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::device_exec::DeviceExec;
use super::partial::{partial_of, partial_plan};
use crate::lower::AggregationsApart;
use crate::walk::Walk;

/// Splits every device aggregation of a physical plan: a partial one on the device, and DataFusion's final one above
/// the gathered partitions. The plan's rows stay the same.
///
/// This is for planners that distribute: what is below the final [`AggregateExec`] (the operator named `DeviceExec`,
/// which has no children and one partition) may run elsewhere, and several of them over parts of a table, each on a
/// device of its own, may be united in its place. A plan comes from [`crate::Connection::context`], whose planner
/// places fragments on the database's device:
///
/// ```no_run
/// # async fn split(connection: warpcube_sql::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let query = connection.context().sql("SELECT g, avg(x) FROM t GROUP BY g").await?;
/// let plan = warpcube_sql::split_aggregations(query.create_physical_plan().await?).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// An aggregation that DataFusion does not plan in two steps.
pub async fn split_aggregations(plan: Arc<dyn ExecutionPlan>) -> crate::error::Result<Arc<dyn ExecutionPlan>> {
    let mut whole = Vec::new();
    plan.apply(|node| {
        whole.extend(node.downcast_ref::<DeviceExec>().is_some_and(DeviceExec::is_whole).then(|| node.clone()));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let address = |node: &Arc<dyn ExecutionPlan>| Arc::as_ptr(node).cast::<()>() as usize;
    let mut replacements = HashMap::new();
    for node in &whole {
        let device = node.downcast_ref::<DeviceExec>().expect("only those were collected");
        replacements.insert(address(node), split(device).await?);
    }
    let split = plan.transform_up(|node| {
        Ok(match replacements.remove(&address(&node)) {
            Some(replacement) => Transformed::yes(replacement),
            None => Transformed::no(node),
        })
    })?;
    Ok(split.data)
}

async fn split(device: &DeviceExec) -> crate::error::Result<Arc<dyn ExecutionPlan>> {
    if device.scans_groups() {
        // What is aggregated again has to be united first: only the lower aggregation is partial.
        let mut config = device.state().config().clone();
        config.set_extension(Arc::new(AggregationsApart));
        let state = SessionStateBuilder::new_from_existing(device.state().clone()).with_config(config).build();
        let plan = state.query_planner().create_physical_plan(&*device.original()?, &state).await?;
        return Box::pin(split_aggregations(plan)).await;
    }
    let plan = partial_plan(&*device.on_cpu()?, device.state()).await?;
    let partial = partial_of(&plan)?;
    let device = Arc::new(device.to_partial(partial.schema()));
    let aggregates = partial.aggr_expr().to_vec();
    let filters = vec![None; aggregates.len()];
    let groups = partial.group_expr().as_final();
    let (mode, schema) = (AggregateMode::Final, partial.input_schema());
    Ok(Arc::new(AggregateExec::try_new(mode, groups, aggregates, filters, device, schema)?))
}
