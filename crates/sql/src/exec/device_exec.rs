//! The operator that runs a fragment on the device, or its original plan on the CPU: what it holds.
//!
//! What it does for one statement is [`super::work`]'s, what DataFusion asks of it [`super::execution_plan`]'s.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::ParamValues;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::physical_planning_context::{
    PhysicalPlanningContext, ScalarSubqueryResults, SubqueryIndex,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr, create_physical_sort_exprs};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{Partitioning, PlanProperties};
use warpcube_engine::{Engine, RunReport};

use super::context::DeviceContext;
use crate::lower::{DeviceNode, Lowered};
use crate::mend::key_names;
use crate::shared::With;

/// Where the values of a fragment's scalar subqueries are once those have run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    /// Values by index.
    pub(crate) results: ScalarSubqueryResults,
    /// The index of each of the fragment's arguments.
    pub(crate) indexes: Vec<SubqueryIndex>,
}

/// What an operator gives of its aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Their values.
    Whole,
    /// The state that a final aggregation takes.
    Partial,
}

/// Runs a fragment. A clone has the same metrics.
#[derive(Clone)]
pub(crate) struct DeviceExec {
    pub(super) mode: Mode,
    pub(super) lowered: Arc<Lowered>,
    original: Arc<LogicalPlan>,
    on_cpu: Arc<LogicalPlan>,
    /// The values of parameters that both plans have.
    values: Option<Arc<ParamValues>>,
    /// How many operators of the statement's plan it stands for.
    pub(super) operators: u64,
    pub(super) arguments: Arguments,
    /// None in the copies that a plan keeps: they must not keep a device open.
    pub(super) engine: Option<Arc<Engine>>,
    pub(super) state: Arc<SessionState>,
    pub(super) context: Arc<DeviceContext>,
    pub(super) properties: Arc<PlanProperties>,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

impl DeviceExec {
    /// An operator for the fragment of a node.
    pub(crate) fn new(
        node: &DeviceNode,
        lowered: Arc<Lowered>,
        arguments: Arguments,
        engine: Arc<Engine>,
        state: Arc<SessionState>,
        context: Arc<DeviceContext>,
    ) -> DeviceExec {
        let schema: SchemaRef = node.on_cpu().schema().inner().clone();
        DeviceExec {
            mode: Mode::Whole,
            lowered,
            original: Arc::new(node.original().clone()),
            on_cpu: Arc::new(node.on_cpu().clone()),
            values: node.values().cloned(),
            operators: node.operators(),
            arguments,
            engine: Some(engine),
            state,
            context,
            properties: Arc::new(properties(schema)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The operator in partial mode, where `schema` is that of a partial aggregation: see [`super::partial`].
    pub(crate) fn to_partial(&self, schema: SchemaRef) -> DeviceExec {
        DeviceExec {
            mode: Mode::Partial,
            lowered: Arc::new(self.lowered.with_states()),
            properties: Arc::new(properties(schema)),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        }
    }

    /// The operator for another run, on `engine` and under `state`.
    pub(super) fn renewed(&self, engine: Option<Arc<Engine>>, state: Arc<SessionState>) -> DeviceExec {
        DeviceExec { engine, state, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }

    /// Whether the operator gives whole results and takes no values of scalar subqueries.
    pub(super) fn is_alone(&self) -> bool {
        self.mode == Mode::Whole && self.arguments.indexes.is_empty()
    }

    /// Whether the operator has whole aggregations: it gives them, or scans their groups.
    pub(crate) fn is_whole(&self) -> bool {
        self.mode == Mode::Whole && (self.lowered.aggregates() || self.scans_groups())
    }

    /// Whether the rows are those of a sort, in its order.
    pub(crate) fn gives_order(&self, keys: &[PhysicalSortExpr], fetch: Option<usize>) -> bool {
        let plan = With::of(&self.on_cpu).map_or(&*self.on_cpu, |with| &with.query);
        let LogicalPlan::Sort(sort) = plan else { return false };
        let own = create_physical_sort_exprs(
            &sort.expr,
            sort.input.schema(),
            self.state.execution_props(),
            &PhysicalPlanningContext::default(),
        );
        self.mode == Mode::Whole && sort.fetch == fetch && own.is_ok_and(|own| own.iter().eq(keys))
    }

    /// Whether a pipeline scans the groups of an aggregation.
    pub(crate) fn scans_groups(&self) -> bool {
        self.lowered.fragment.pipelines.iter().any(|pipeline| pipeline.source.table().is_none())
    }

    /// The operator of another statement of the same shape, for this fragment and with these values of parameters.
    pub(super) fn filled(&self, lowered: Arc<Lowered>, values: Arc<ParamValues>) -> DeviceExec {
        DeviceExec { lowered, values: Some(values), metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }

    /// The plan it was lowered from.
    pub(crate) fn original(&self) -> Result<Cow<'_, LogicalPlan>> {
        self.with_values(&self.original)
    }

    /// What the CPU runs instead: the same plan with its mends.
    pub(crate) fn on_cpu(&self) -> Result<Cow<'_, LogicalPlan>> {
        Ok(match self.with_values(&self.on_cpu)? {
            Cow::Owned(plan) => Cow::Owned(key_names::mend(plan)?),
            borrowed => borrowed,
        })
    }

    fn with_values<'a>(&self, plan: &'a LogicalPlan) -> Result<Cow<'a, LogicalPlan>> {
        Ok(match &self.values {
            Some(values) => Cow::Owned(plan.clone().replace_params_with_values(values)?),
            None => Cow::Borrowed(plan),
        })
    }

    /// The state it was planned with.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    pub(super) fn note(&self, report: &RunReport) {
        let time = |name: &'static str| MetricBuilder::new(&self.metrics).subset_time(name, 0);
        time("device_time").add_duration(report.device);
        time("bind_time").add_duration(report.bind);
        time("compile_time").add_duration(report.compile);
        time("load_time").add_duration(report.loaded.elapsed);
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, 0);
        count("device_bytes").add(report.bytes as usize);
        count("loaded_bytes").add(report.loaded.bytes as usize);
        count("arena_bytes").add(report.arena_bytes as usize);
        count("uploaded_bytes").add(report.traffic.uploaded as usize);
        count("downloaded_bytes").add(report.traffic.downloaded as usize);
    }
}

fn properties(schema: SchemaRef) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    )
}

impl fmt::Debug for DeviceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceExec({})", self.lowered.what)
    }
}
