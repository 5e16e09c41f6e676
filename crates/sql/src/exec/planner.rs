//! The query planner: lowers the final logical plan, then lets DataFusion plan the rest.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ScalarValue, Statistics, internal_err};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use tokio::runtime::Handle;
use tracing::Instrument;

use super::background_load::{Afterwards, BackgroundLoads};
use super::context::DeviceContext;
use super::device_exec::{Arguments, DeviceExec};
use super::explain::{self, Detail, ExplainExec, Explained, Known};
use super::feeds::{expected, feeding};
use super::renewed::{is_renewable, renewed};
use super::source::load_threads;
use super::work::PlanningState;
use super::written::as_written;
use crate::codec;
use crate::engines::Engines;
use crate::lower::{
    AggregationsApart, DeviceNode, Lowered, Placer, Refused, TableFacts, describe, describe_tables, fill,
    host_operators, lower, param_values, project_late,
};
use crate::mend;
use crate::mend::float_sums::make_exact;
use crate::placement::{BackgroundLoad, Basis, Declined, Placing};
use crate::plans::Planned;
use crate::report::{FragmentReport, Place, StatementReport};
use crate::settings::{DatabaseSettings, Settings};
use crate::shared;
use crate::values::{DeviceChoice, Encoding, FloatSums, Overflow, Placement};
use crate::walk::PlanWalk;

/// Why nothing is placed on a device that was lost.
const LOST: &str = "the device was lost in an earlier statement (GPU-006); it comes back with a restart";

/// Plans statements of a database's connections.
#[derive(Debug)]
pub(crate) struct DevicePlanner {
    context: Arc<DeviceContext>,
}

impl DevicePlanner {
    /// A planner for a database.
    pub(crate) fn new(engines: Arc<Engines>) -> DevicePlanner {
        DevicePlanner { context: Arc::new(DeviceContext::new(engines)) }
    }

    /// The database's background loads.
    pub(crate) fn background(&self) -> &BackgroundLoads {
        &self.context.background
    }

    /// Grows with each fragment found unfit for the device, and when the device is lost; plans made before are worth
    /// making again.
    pub(crate) fn refusals(&self) -> u64 {
        self.context.refusals.count() + u64::from(self.context.engines.is_lost())
    }

    /// What placement by cost depends on, apart from the tables.
    pub(crate) fn basis(&self) -> Basis {
        let engine = self.context.engines.opened();
        let columns = engine.as_ref().map(|engine| engine.residency().changes()).unwrap_or_default();
        Basis { open: engine.is_some(), columns, loads: self.context.ledger.changes() }
    }

    /// Replaces what can run on the device in an optimised plan, and mends the rest for the CPU.
    pub(crate) async fn lower(&self, plan: &LogicalPlan, state: &SessionState) -> Result<Planned> {
        let types = mend::extension_outputs::of_result(plan);
        let named = mend::shown_types::with_extension_types(plan, state).await?;
        let plan = named.as_ref().unwrap_or(plan);
        let for_operators = mend::extension_outputs::for_operators(plan)?;
        let mut planned = self.lower_alone(for_operators.as_ref().unwrap_or(plan), state).await?;
        planned.types = types;
        let mended = tracing::info_span!("mend").in_scope(|| mend::for_cpu(planned.plan, state.config_options()));
        planned.plan = mended?;
        Ok(planned)
    }

    /// Replaces what can run on the device in an optimised plan; the rest is as it was, so that it may travel. What
    /// another database's planner lowered is lowered again, for the tables, settings and device there are here.
    pub(crate) async fn lower_alone(&self, plan: &LogicalPlan, state: &SessionState) -> Result<Planned> {
        let settled = codec::settle(plan, state).await?;
        let shown = mend::lists::show_lists(settled.unwrap_or_else(|| plan.clone()))?;
        let plan = &project_late(shown, state.config().batch_size())?;
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let plan = &match settings.float_sums {
            FloatSums::Fast => Cow::Borrowed(plan),
            FloatSums::Exact => Cow::Owned(make_exact(plan)?),
        };
        let basis = self.basis();
        let as_it_is = || -> Result<Planned> {
            let host_operators = host_operators(plan)?;
            let plan = plan.clone().into_owned();
            Ok(Planned {
                plan,
                host_operators,
                refused: Vec::new(),
                with_gpu: None,
                declined: Vec::new(),
                types: Vec::new(),
                basis,
                operators: OnceLock::new(),
            })
        };
        let auto = settings.placement == Placement::Auto;
        // Opening the device takes some tenths of a second, which a statement that stays on the CPU need not pay.
        let waits = auto && self.context.engines.may_open();
        let is_needed = !waits && settings.placement != Placement::Files;
        let engine = if is_needed { self.context.engines.get() } else { None };
        let is_required = match settings.placement {
            Placement::Auto | Placement::Files => false,
            Placement::Cuda | Placement::Columns => !matches!(**plan, LogicalPlan::Explain(_)),
        };
        let engine = match settings.placement {
            Placement::Auto => engine,
            Placement::Files => None,
            Placement::Cuda => engine.filter(|engine| engine.runs_kernels()),
            Placement::Columns => engine.filter(|engine| !engine.runs_kernels()),
        };
        if engine.is_none() && !waits && !is_required {
            return self.told_with_gpu(as_it_is()?, plan, state, &settings).await;
        }
        let is_absent = engine.is_none();
        let is_over_columns = engine.as_ref().is_some_and(|engine| !engine.runs_kernels());
        // Under a place that is named a lost device is an error: the statement goes on to the device and fails there.
        if auto && self.context.engines.is_lost() {
            let refused = Refused { what: describe(plan, "statement"), reason: LOST.into() };
            return Ok(Planned { refused: vec![refused], ..as_it_is()? });
        }
        let mut facts = self.facts(plan, state, &settings).await?;
        // Under a device or place that is named, columns are loaded whatever the estimate.
        let is_named = !auto || matches!(settings.database.device, DeviceChoice::Cuda(_));
        let factor = (!is_named).then_some(settings.load_factor);
        let loads = (load_threads(&settings), settings.encoding != Encoding::Plain, settings.dictionary_limit);
        let placing = (settings.placement != Placement::Cuda)
            .then(|| Arc::new(Placing::new(&self.context.ledger, engine, loads, factor)));
        facts.placer = placing.clone().map(|placing| placing as Arc<dyn Placer>);
        let mut refused = Vec::new();
        let mut lowered = tracing::info_span!("lower").in_scope(|| lower(plan, &mut facts, &mut refused))?;
        while self.leaves_parts(&lowered, placing.as_deref(), state).await {
            refused.clear();
            placing.iter().for_each(|placing| _ = placing.take_declined());
            lowered = tracing::info_span!("lower").in_scope(|| lower(plan, &mut facts, &mut refused))?;
        }
        if waits && has_device_node(&lowered)? && self.context.engines.get().is_none() {
            return self.told_with_gpu(as_it_is()?, plan, state, &settings).await;
        }
        if is_required && is_absent {
            return match has_device_node(&lowered)? {
                true => {
                    let engines = &self.context.engines;
                    let (statement, reason) = match settings.placement {
                        Placement::Columns => ("warpcube.placement = 'columns'", engines.no_columns()),
                        _ => ("warpcube.placement = 'cuda'", engines.no_gpu().unwrap_or_default()),
                    };
                    Err(crate::error::SqlError::NoDevice { statement, reason }.into())
                }
                false => as_it_is(),
            };
        }
        // Fragments of an EXPLAIN go with it.
        if !matches!(lowered, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
            explain::fragments(&lowered)?.iter().for_each(|fragment| self.context.explain_cache.remember(fragment));
        }
        let declined = placing.map(|placing| placing.take_declined()).unwrap_or_default();
        let operators = OnceLock::new();
        let host_operators = host_operators(&lowered)?;
        let planned = Planned {
            host_operators,
            plan: lowered,
            refused,
            with_gpu: None,
            declined,
            types: Vec::new(),
            basis,
            operators,
        };
        if is_over_columns { self.told_with_gpu(planned, plan, state, &settings).await } else { Ok(planned) }
    }

    /// What is known of a plan's tables and of the settings that it is lowered under.
    async fn facts(&self, plan: &LogicalPlan, state: &SessionState, settings: &Settings) -> Result<TableFacts> {
        let described = describe_tables(plan, state);
        let mut facts = described.instrument(tracing::info_span!("describe")).await?;
        facts.refusals = self.context.refusals.clone();
        let Settings { placement, dictionary_limit, float_sums, overflow, topk, .. } = settings;
        let DatabaseSettings { device, device_memory, host_memory, memory_limit, .. } = &settings.database;
        let memory = format!("{device} {device_memory} {host_memory} {memory_limit}");
        facts.under = format!("{placement} {dictionary_limit} {memory} {float_sums} {overflow} {topk}");
        facts.overflow = match overflow {
            Overflow::Error => warpcube_engine::Overflow::Raise,
            Overflow::Wrap => warpcube_engine::Overflow::Wrap,
        };
        facts.float_sums = *float_sums;
        facts.topk = settings.topk.named();
        facts.apart = state.config().get_extension::<AggregationsApart>().is_some();
        Ok(facts)
    }

    /// A plan of the CPU with what a GPU would take of it, if it is an EXPLAIN: that is known by planning alone.
    async fn told_with_gpu(
        &self,
        planned: Planned,
        plan: &LogicalPlan,
        state: &SessionState,
        settings: &Settings,
    ) -> Result<Planned> {
        if !matches!(plan, LogicalPlan::Explain(_)) {
            return Ok(planned);
        }
        let mut facts = self.facts(plan, state, settings).await?;
        let mut refused = Vec::new();
        let lowered = lower(plan, &mut facts, &mut refused)?;
        Ok(Planned { with_gpu: Some(explain::with_gpu(&lowered, &refused)?), ..planned })
    }

    /// Learns what to expect of fragments that feed operators of the CPU. Those that spare it nothing are left to it
    /// when the plan is lowered again, unless placement or device is named; whether there are any.
    async fn leaves_parts(&self, lowered: &LogicalPlan, placing: Option<&Placing>, state: &SessionState) -> bool {
        let mut found = false;
        for node in feeding(lowered) {
            let Some(lowered) = node.lowered() else { continue };
            lowered.cardinality.feed();
            self.context.explain_cache.tell(lowered);
            if !lowered.cardinality.is_expected()
                && let Ok(expected) = expected(lowered, node.on_cpu(), state).await
            {
                lowered.cardinality.expect(expected);
            }
            // How many rows a condition leaves, or groups there are, is a guess, and no reason not to try.
            let is_sure = !lowered.has_groups() && lowered.fragment.filters().next().is_none();
            let rows = lowered.cardinality.found().or(lowered.cardinality.expected().filter(|_| is_sure));
            if let Some(reason) = placing.zip(rows).and_then(|(placing, rows)| placing.spares_nothing(lowered, rows)) {
                found |= self.context.refusals.foresee(&lowered.identity, &reason);
            }
        }
        found
    }

    /// Notes the columns that a statement which runs now asks for; the loads that begin when it is over, if any do.
    pub(crate) fn ask(&self, planned: &Planned, state: &Arc<SessionState>) -> Option<Afterwards> {
        if planned.declined.is_empty() || matches!(planned.plan, LogicalPlan::Explain(_)) {
            return None;
        }
        self.context.ledger.note(&planned.declined);
        let loads: Vec<BackgroundLoad> = planned.declined.iter().filter_map(Declined::load).cloned().collect();
        let (background, state) = (self.context.background.clone(), state.clone());
        (!loads.is_empty()).then(|| Afterwards { background, loads, state, runtime: Handle::current() })
    }

    /// The operators of a lowered plan; the reasons of what stays on the CPU go to the statement's report.
    pub(crate) async fn physical(
        &self,
        planned: &Planned,
        state: &Arc<SessionState>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let explained = Explained::of(&planned.plan);
        if let Some(report) = state.config().get_extension::<StatementReport>() {
            for Refused { what, reason } in planned.refused.iter().cloned() {
                report.fragment(FragmentReport { place: Place::Cpu, what, reason: Some(reason) });
            }
            report.add_host_operators(planned.host_operators);
            if explained == Some(Explained::Run) {
                report.explain();
            }
        }
        if let Some(operators) = planned.operators.get() {
            // A statement that stays on the CPU opens no device.
            let opened = self.context.engines.opened();
            let uses_device = opened.is_none() && has_device_node(&planned.plan)?;
            let engine = if uses_device { self.context.engines.get() } else { opened };
            if engine.is_some() || !uses_device {
                return renewed(operators, &|device| device.renewed(engine.clone(), state.clone()));
            }
        }
        let planner = || {
            let extension = DeviceExtension { context: self.context.clone(), state: state.clone() };
            DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(extension)])
        };
        let mut physical = shared::physical(planner(), &planned.plan, state).await?;
        physical.query = as_written(physical.query, &planned.plan)?;
        let Some(explained) = explained else {
            let plan = physical.into_plan();
            check_sink(&plan)?;
            DevicePlanner::keep_operators(planned, &plan, state)?;
            return Ok(plan);
        };
        let detail = Detail::of(&planned.plan);
        let outputs = physical.outputs.clone();
        let plan = physical.into_plan();
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let (engine, no_device) = match settings.placement {
            Placement::Files => (None, Some("warpcube.placement is 'files'".to_string())),
            _ if self.context.engines.may_open() && !has_device_node(&planned.plan)? => (None, None),
            _ => {
                let engine = self.context.engines.get();
                let no_device = engine.is_none().then(|| self.context.engines.no_gpu()).flatten();
                (engine, no_device)
            }
        };
        let notes = match explained {
            Explained::Plan => {
                // DataFusion's operator has the texts of plans alone. A plan that fails has its error there.
                let tree = match &planned.plan {
                    LogicalPlan::Explain(explain) if detail == Detail::Tree => {
                        let physical = shared::physical(planner(), &explain.plan, state).await.ok();
                        physical.map(|physical| (physical.query, physical.outputs))
                    }
                    _ => None,
                };
                let (explain_cache, dictionary_limit) = (&self.context.explain_cache, settings.dictionary_limit);
                let known = Known { engine: engine.as_ref(), explain_cache, dictionary_limit };
                Some(explain::of_plan(planned, no_device.clone(), tree, &known)?)
            }
            Explained::Run => None,
        };
        Ok(Arc::new(ExplainExec::new(plan, (detail, notes), (engine, no_device), outputs)))
    }
}

/// Refuses to write rows of other types than those of their table or file: sinks take the bytes of any column.
fn check_sink(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let Some(sink) = plan.downcast_ref::<DataSinkExec>() else { return Ok(()) };
    let (rows, table) = (sink.input().schema(), sink.sink().schema());
    let mut columns = rows.fields().iter().zip(table.fields());
    match columns.find(|(from, to)| from.data_type() != to.data_type()) {
        Some((from, to)) => internal_err!("column '{}' of {} takes {}", to.name(), to.data_type(), from.data_type()),
        None => Ok(()),
    }
}

impl DevicePlanner {
    /// A lowered plan with values of its parameters; none for values with which one of its fragments is known not to
    /// run on the device, or cannot be computed.
    pub(crate) fn filled(&self, planned: &Planned, values: &[ScalarValue]) -> Result<Option<Planned>> {
        let mut filled: Vec<Arc<Lowered>> = Vec::new();
        let plan = fill(planned.plan.clone(), values, &mut |lowered| {
            filled.push(lowered.clone());
            self.context.refusals.reason(&lowered.identity).map_or(Ok(()), Err)
        });
        let Ok(plan) = plan else { return Ok(None) };
        filled.iter().for_each(|lowered| self.context.explain_cache.remember(lowered));
        let operators = match (planned.operators.get(), filled.as_slice()) {
            (Some(operators), [lowered]) => {
                let values = Arc::new(param_values(values.to_vec()));
                renewed(operators, &|device| device.filled(lowered.clone(), values.clone()))?.into()
            }
            _ => OnceLock::new(),
        };
        Ok(Some(Planned {
            plan,
            host_operators: planned.host_operators,
            refused: Vec::new(),
            with_gpu: None,
            declined: Vec::new(),
            types: planned.types.clone(),
            basis: planned.basis,
            operators,
        }))
    }

    /// Keeps copies of the operators of a plan with nothing to optimise, for the next run; they hold no state of this
    /// run.
    fn keep_operators(planned: &Planned, plan: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Result<()> {
        // The state of such a plan has the connection's whole state as an extension.
        let whole = state.config().get_extension::<PlanningState>();
        if let Some(whole) = whole.filter(|_| is_renewable(plan)) {
            let kept = renewed(plan, &|device| device.renewed(None, whole.0.clone()))?;
            let _ = planned.operators.set(kept);
        }
        Ok(())
    }
}

/// Whether anything of a plan runs on the device.
fn has_device_node(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|plan| {
        found |= DeviceNode::of(plan).is_some();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
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
        let (planned, state) = (self.lower(logical_plan, state).await?, Arc::new(state.clone()));
        let plan = self.physical(&planned, &state).await?;
        // DataFusion gives no notice of a plan's end: loads begin at once.
        if let Some(afterwards) = self.ask(&planned, &state) {
            afterwards.begin();
        }
        Ok(plan)
    }
}

/// Turns device nodes into device operators.
struct DeviceExtension {
    context: Arc<DeviceContext>,
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
            .context
            .engines
            .get()
            .ok_or_else(|| DataFusionError::Internal("the device left between two steps of planning".into()))?;
        let index = |subquery| {
            let index = context.index_of(subquery);
            index.ok_or_else(|| DataFusionError::Internal("a scalar subquery that is not planned".into()))
        };
        let lowered = node.lowered().ok_or_else(|| DataFusionError::Internal("a node that was not lowered".into()))?;
        let indexes = lowered.subqueries().map(index).collect::<Result<_>>()?;
        let exec = DeviceExec::new(
            node,
            lowered.clone(),
            Arguments { results: context.results().clone(), indexes },
            engine,
            self.state.clone(),
            self.context.clone(),
        );
        // A plan with parameters is planned with their first values.
        if lowered.cardinality.feeds() && !lowered.cardinality.is_expected() {
            let expected = expected(lowered, &*exec.on_cpu()?, &self.state).await;
            lowered.cardinality.expect(expected.unwrap_or_else(|_| Statistics::new_unknown(&exec.schema())));
        }
        Ok(Some(Arc::new(exec)))
    }
}
