//! The query planner: lowers the final logical plan, then lets DataFusion plan the rest.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::device_exec::{Arguments, DeviceExec};
use super::engines::Engines;
use crate::catalog::CatalogShared;
use crate::lower::{DeviceNode, Refusals, Refused, describe_tables, lower};
use crate::plans::Planned;
use crate::report::{FragmentReport, Place, StatementReport};
use crate::settings::Settings;
use crate::values::Placement;

/// Plans statements of a session.
#[derive(Debug)]
pub(crate) struct DevicePlanner {
    engines: Arc<Engines>,
    catalog: Arc<CatalogShared>,
    refusals: Arc<Refusals>,
}

impl DevicePlanner {
    /// A planner for the session of this catalog.
    pub(crate) fn new(engines: Arc<Engines>, catalog: Arc<CatalogShared>) -> DevicePlanner {
        DevicePlanner { engines, catalog, refusals: Arc::default() }
    }

    /// How many fragments were found unfit for the device so far; plans made before are worth making again.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.count()
    }

    /// Replaces what can run on the device in an optimised plan.
    pub(crate) async fn lower(&self, plan: &LogicalPlan, state: &SessionState) -> Result<Planned> {
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        if settings.placement == Placement::Cpu || self.engines.get().is_none() {
            return Ok(Planned { plan: plan.clone(), refused: Vec::new() });
        }
        let mut facts = describe_tables(plan, state, self.catalog.generation()).await?;
        facts.refusals = self.refusals.clone();
        facts.under = format!("{} {} {}", settings.placement, settings.dictionary_limit, settings.device_memory);
        let mut refused = Vec::new();
        let plan = tracing::info_span!("lower").in_scope(|| lower(plan, &facts, &mut refused))?;
        Ok(Planned { plan, refused })
    }

    /// The operators of a lowered plan; the reasons of what stays on the CPU go to the statement's report.
    pub(crate) async fn physical(
        &self,
        planned: &Planned,
        state: &Arc<SessionState>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(report) = state.config().get_extension::<StatementReport>() {
            for Refused { what, reason } in planned.refused.iter().cloned() {
                report.fragment(FragmentReport { place: Place::Cpu, what, reason: Some(reason) });
            }
        }
        let extension = DeviceExtension {
            engines: self.engines.clone(),
            catalog: self.catalog.clone(),
            refusals: self.refusals.clone(),
            state: state.clone(),
        };
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(extension)]);
        planner.create_physical_plan(&planned.plan, state.as_ref()).await
    }
}

#[async_trait]
impl QueryPlanner for DevicePlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = session
            .as_any()
            .downcast_ref::<SessionState>()
            .ok_or_else(|| DataFusionError::Internal("a session of another kind".into()))?;
        let planned = self.lower(logical_plan, state).await?;
        self.physical(&planned, &Arc::new(state.clone())).await
    }
}

/// Turns device nodes into device operators.
struct DeviceExtension {
    engines: Arc<Engines>,
    catalog: Arc<CatalogShared>,
    refusals: Arc<Refusals>,
    state: Arc<SessionState>,
}

#[async_trait]
impl ExtensionPlanner for DeviceExtension {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<DeviceNode>() else { return Ok(None) };
        let engine = self
            .engines
            .get()
            .ok_or_else(|| DataFusionError::Internal("the device left between two steps of planning".into()))?;
        let index = |subquery| {
            let index = context.index_of(subquery);
            index.ok_or_else(|| DataFusionError::Internal("a scalar subquery that is not planned".into()))
        };
        let indexes = node.lowered().arguments.iter().map(index).collect::<Result<_>>()?;
        let exec = DeviceExec::new(
            node.lowered().clone(),
            node.original().clone(),
            Arguments { results: context.results().clone(), indexes },
            engine,
            self.state.clone(),
            self.catalog.clone(),
            self.refusals.clone(),
        );
        Ok(Some(Arc::new(exec)))
    }
}
