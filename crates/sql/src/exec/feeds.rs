//! Fragments that feed operators of the CPU: what these are told of their rows, and which fragments do not pay.
//!
//! ```text
//! Aggregate: grouping sets             the CPU
//!   Join: ws_item_sk = i_item_sk
//!     Device: rows over web_sales      as many rows as web_sales has: left to the CPU
//!     Device: aggregate over item      few rows of many
//! ```
//!
//! An operator above a fragment asks it for statistics ([`crate::lower::Cardinality`]): those of the plan that the CPU
//! would run instead. A fragment whose rows only pass through it, as many as its largest table has or nearly so, saves
//! the CPU less than it takes to bring them back in one partition. That is known before it is placed where nothing is
//! filtered or grouped, and otherwise by the rows that a run has found.

use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_planner::DefaultPhysicalPlanner;

use crate::cubes::CubeTable;
use crate::lower::{DeviceNode, Lowered};
use crate::shared::{self, With};

/// The fragments of a lowered plan whose rows an operator of the CPU joins, groups or puts in windows, and those that
/// compute a shared table.
pub(super) fn feeding(plan: &LogicalPlan) -> Vec<DeviceNode> {
    let mut found = Vec::new();
    collect(plan, false, &mut found);
    found
}

fn collect(plan: &LogicalPlan, is_fed: bool, found: &mut Vec<DeviceNode>) {
    if let Some(node) = DeviceNode::of(plan) {
        found.extend(is_fed.then(|| node.clone()));
        return;
    }
    if let Some(With { query, tables }) = With::of(plan) {
        collect(query, is_fed, found);
        tables.iter().for_each(|table| collect(&table.plan, true, found));
        return;
    }
    let works = matches!(
        plan,
        LogicalPlan::Join(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_)
    );
    plan.inputs().into_iter().for_each(|input| collect(input, is_fed || works, found));
}

/// What DataFusion expects of the rows of the plan that the CPU would run in place of a fragment. Nothing of the cells
/// of cubes, which a scan makes when it is planned.
///
/// # Errors
/// A plan that it cannot plan, as one with parameters.
pub(super) async fn expected(lowered: &Lowered, on_cpu: &LogicalPlan, state: &SessionState) -> Result<Statistics> {
    if lowered.tables.iter().any(|table| table.provider.is::<CubeTable>()) {
        return Ok(Statistics::new_unknown(on_cpu.schema().as_arrow()));
    }
    let builder = SessionStateBuilder::new_from_existing(state.clone());
    let state = builder.with_physical_optimizer_rules(Vec::new()).build();
    let plan = shared::physical(DefaultPhysicalPlanner::default(), on_cpu, &state).await?.into_plan();
    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).map(Arc::unwrap_or_clone)
}
