//! Physical plans over shared tables.
//!
//! A statement's plan is split into its query and its tables. While the query is planned, the session's configuration
//! has the tables: the first reader of one has it planned, with a plan, an optimiser and scalar subqueries of its own,
//! and all readers scan the same [`Output`]. So a physical plan has outputs of its own, and runs of one logical plan
//! share none.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use tokio::sync::OnceCell;

use super::exec::{SharedExec, WithExec};
use super::output::Output;
use super::{Shared, split};
use crate::walk::Walk;

/// A physical plan with the outputs that it reads.
pub(crate) struct Physical {
    /// The plan of the query.
    pub(crate) query: Arc<dyn ExecutionPlan>,
    /// What it reads, as far as it reads any of it, in the order of the statement.
    pub(crate) outputs: Vec<Arc<Output>>,
}

impl Physical {
    /// One plan of both, which drops the outputs when the query ends.
    pub(crate) fn into_plan(self) -> Arc<dyn ExecutionPlan> {
        match self.outputs.is_empty() {
            true => self.query,
            false => Arc::new(WithExec::new(self.query, self.outputs)),
        }
    }
}

/// Whether a join has lists, structs or maps for keys. DataFusion 55.2 filters the other side by bounds of the keys,
/// and takes NULLs within for the largest in bounds and for the smallest in comparisons: rows are lost.
fn joins_nested(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| {
        let LogicalPlan::Join(join) = plan else { return Ok(false) };
        let is_nested = |key: &Expr| Ok::<_, DataFusionError>(key.get_type(join.left.schema())?.is_nested());
        join.on.iter().try_fold(false, |found, (key, _)| Ok(found || is_nested(key)?))
    })
}

/// The physical plan of a statement under a state.
pub(crate) async fn physical(
    planner: DefaultPhysicalPlanner,
    plan: &LogicalPlan,
    state: &SessionState,
) -> Result<Physical> {
    let narrow;
    let state = match joins_nested(plan)? {
        true => {
            let mut without = state.clone();
            without.config_mut().options_mut().optimizer.enable_join_dynamic_filter_pushdown = false;
            narrow = without;
            &narrow
        }
        false => state,
    };
    let (query, tables) = split(plan.clone())?;
    if tables.is_empty() {
        return Ok(Physical { query: planner.create_physical_plan(plan, state).await?, outputs: Vec::new() });
    }
    let planning =
        Arc::new(Planning { planner, tables: tables.into_iter().map(|table| (table, OnceCell::new())).collect() });
    let mut state = state.clone();
    state.config_mut().set_extension(planning.clone());
    let query = planning.planner.create_physical_plan(&query, &state).await?;
    let outputs = planning.tables.iter().filter_map(|(_, output)| output.get().cloned()).collect();
    Ok(Physical { query, outputs })
}

/// The shared tables of a statement that is planned.
struct Planning {
    planner: DefaultPhysicalPlanner,
    tables: Vec<(Shared, OnceCell<Arc<Output>>)>,
}

/// A reader of a shared table, whose output is planned with the first one.
pub(super) async fn reader(
    id: usize,
    state: &dyn Session,
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = state.config().get_extension::<Planning>();
    let found = planning.as_ref().and_then(|planning| planning.tables.iter().find(|(table, _)| table.id == id));
    let (Some(planning), Some((table, output))) = (&planning, found) else {
        return Err(DataFusionError::Internal(format!("shared table {id} is read outside of its statement")));
    };
    let plan = async {
        let plan = planning.planner.create_physical_plan(&table.plan, state).await?;
        Ok::<_, DataFusionError>(Arc::new(Output::new(table, plan)))
    };
    let output = output.get_or_try_init(|| plan).await?.clone();
    // The schema that readers were planned with: that of a physical plan may differ in what may be NULL.
    let columns = table.plan.schema().inner();
    let schema = match projection {
        Some(projection) => Arc::new(columns.project(projection)?),
        None => columns.clone(),
    };
    let schema = Arc::new(Schema::new(schema.fields().clone()));
    Ok(Arc::new(SharedExec::new(output, projection.cloned(), schema)))
}
