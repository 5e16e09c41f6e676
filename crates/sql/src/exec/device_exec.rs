//! The operator that runs a fragment on the device, or its original plan on the CPU.
//!
//! The work runs on a thread that may block, off the async workers, but for short repeats. What cannot run after all
//! (the data do not fit the shape, a row raised an error, the device is lost before the statement) takes the original
//! plan, noted in the statement's report; dropping the stream cancels loads and stops kernels at their next ticket.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::physical_planning_context::{ScalarSubqueryResults, SubqueryIndex};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::runtime::{Handle, RuntimeFlavor};
use warpcube_column::{ColumnError, LoadLimits, TableRequest};
use warpcube_engine::{Engine, EngineError, RunOptions, RunReport};
use warpcube_gpu::{CancelSwitch, GpuError};

use super::explain::{FragmentRun, predict};
use super::finish::{Cancelled, finish};
use super::known::Known;
use super::partial::{partial_plan, states};
use super::source::{TableColumns, load_limits, load_threads};
use crate::cancel::ThrowOnDrop;
use crate::catalog::CatalogShared;
use crate::diagnose::{self, Suspect};
use crate::error::SqlError;
use crate::lower::{Lowered, Refusals, literal};
use crate::report::{FragmentReport, Place, StatementReport};
use crate::settings::Settings;
use crate::values::{DeviceChoice, Placement};

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
enum Mode {
    /// Their values.
    Whole,
    /// The state that a final aggregation takes.
    Partial,
}

/// Runs a fragment.
pub(crate) struct DeviceExec {
    mode: Mode,
    lowered: Arc<Lowered>,
    original: Arc<LogicalPlan>,
    arguments: Arguments,
    engine: Arc<Engine>,
    state: Arc<SessionState>,
    catalog: Arc<CatalogShared>,
    refusals: Arc<Refusals>,
    known: Arc<Known>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceExec {
    /// An operator for a fragment; `original` is what the CPU runs instead.
    pub(crate) fn new(
        lowered: Arc<Lowered>,
        original: LogicalPlan,
        arguments: Arguments,
        engine: Arc<Engine>,
        state: Arc<SessionState>,
        catalog: Arc<CatalogShared>,
        refusals: Arc<Refusals>,
    ) -> DeviceExec {
        let schema: SchemaRef = original.schema().inner().clone();
        DeviceExec {
            mode: Mode::Whole,
            lowered,
            original: Arc::new(original),
            arguments,
            engine,
            state,
            catalog,
            refusals,
            known: Arc::default(),
            properties: Arc::new(properties(schema)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The operator in partial mode, where `schema` is that of a partial aggregation: see [`super::partial`].
    pub(crate) fn to_partial(&self, schema: SchemaRef) -> DeviceExec {
        DeviceExec {
            mode: Mode::Partial,
            lowered: self.lowered.with_sum_states().map_or_else(|| self.lowered.clone(), Arc::new),
            properties: Arc::new(properties(schema)),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.again()
        }
    }

    /// Whether the operator gives whole aggregates.
    pub(crate) fn is_whole(&self) -> bool {
        self.mode == Mode::Whole
    }

    /// The plan it was lowered from.
    pub(crate) fn original(&self) -> &LogicalPlan {
        &self.original
    }

    /// The state it was planned with.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// The same operator, with the same metrics.
    fn again(&self) -> DeviceExec {
        DeviceExec {
            mode: self.mode,
            lowered: self.lowered.clone(),
            original: self.original.clone(),
            arguments: self.arguments.clone(),
            engine: self.engine.clone(),
            state: self.state.clone(),
            catalog: self.catalog.clone(),
            refusals: self.refusals.clone(),
            known: self.known.clone(),
            properties: self.properties.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// The operator with other fragments to ask for what running them has found.
    pub(crate) fn beside(self, known: Arc<Known>) -> DeviceExec {
        DeviceExec { known, ..self }
    }

    fn note(&self, report: &RunReport) {
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

impl DisplayAs for DeviceExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let fragment = &self.lowered.fragment;
        match kind {
            // Lines of `key=value`. DataFusion cuts them to the width of a box by bytes and panics where that parts a
            // character, so there must be none of several bytes.
            DisplayFormatType::TreeRender => {
                let tables: Vec<&str> = fragment.tables.iter().map(|table| table.name.as_str()).collect();
                let tables = tables.join(", ").replace(|character: char| !character.is_ascii(), "?");
                writeln!(f, "tables={tables}")?;
                writeln!(f, "pipelines={}", fragment.pipelines.len())
            }
            _ => {
                let mode = if self.is_whole() { "" } else { "mode=Partial, " };
                write!(f, "DeviceExec: {mode}{}, pipelines=[", self.lowered.what)?;
                for (index, pipeline) in fragment.pipelines.iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    let sink = match &pipeline.sink {
                        warpcube_engine::Sink::Build { keys, payload } => {
                            format!("build({} keys, {} payload)", keys.len(), payload.len())
                        }
                        warpcube_engine::Sink::Extremes { keys, values } => {
                            format!("extremes({} keys, {} values)", keys.len(), values.len())
                        }
                        warpcube_engine::Sink::Aggregate { groups, aggregates } => {
                            format!("aggregate({} groups, {} aggregates)", groups.len(), aggregates.len())
                        }
                    };
                    let table = &fragment.tables[pipeline.table];
                    let (columns, steps) = (table.columns.len(), pipeline.steps.len());
                    write!(f, "{separator}{}({columns} columns) → {steps} steps → {sink}", table.name)?;
                }
                write!(f, "]")
            }
        }
    }
}

/// All that the work needs, apart from the operator.
struct Work {
    mode: Mode,
    lowered: Arc<Lowered>,
    original: Arc<LogicalPlan>,
    arguments: Arguments,
    engine: Arc<Engine>,
    state: Arc<SessionState>,
    catalog: Arc<CatalogShared>,
    refusals: Arc<Refusals>,
    known: Arc<Known>,
    schema: SchemaRef,
    report: Option<Arc<StatementReport>>,
}

impl Work {
    async fn run(self, note: impl FnOnce(&RunReport)) -> Result<SendableRecordBatchStream> {
        let settings = self.state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let cancel: Arc<CancelSwitch> = Arc::default();
        let _throw = ThrowOnDrop(cancel.clone());
        let limits = LoadLimits { cancelled: cancel.flag().clone(), ..load_limits(&settings) };
        if let Some(report) = &self.report {
            report.cancel().attach(&cancel);
            self.announce_loads(report, &limits);
        }
        let groups_max = self.lowered.groups_max;
        let dump = settings.dump_source.clone();
        let stage_times = self.report.as_ref().is_some_and(|report| report.is_explained());
        let options = RunOptions { limits, groups_max, cancel, dump, stage_times, ..RunOptions::default() };
        // Before it runs: what is known afterwards is no prediction.
        let explained = self.report.as_ref().filter(|report| report.is_explained());
        let predicted = explained.map(|_| predict(&self.engine, &self.known, &self.lowered));
        let valued = self.lowered.with_values(&self.values()?);
        let binding = valued.as_ref().map_or(&self.lowered.binding, |valued| &valued.binding);
        let short = binding.is_short(self.engine.device().info());
        let outcome = off_the_workers(short, {
            let (lowered, engine, state) = (self.lowered.clone(), self.engine.clone(), self.state.clone());
            let (runtime, span) = (Handle::current(), tracing::info_span!("device"));
            let partitions = load_threads(&settings);
            move || {
                let _entered = span.entered();
                let source =
                    |info: &Arc<_>| TableColumns::new(Arc::clone(info), state.clone(), runtime.clone(), partitions);
                let requests: Vec<TableRequest> = lowered
                    .tables
                    .iter()
                    .zip(&lowered.fragment.tables)
                    .map(|(info, table)| TableRequest {
                        source: Arc::new(source(info)),
                        columns: table.columns.clone(),
                    })
                    .collect();
                match &valued {
                    None => engine.run_again(&lowered.fragment, &lowered.binding, &requests, &options),
                    Some(valued) => engine.run_again(&valued.fragment, &valued.binding, &requests, &options),
                }
            }
        })
        .await?;
        match outcome {
            Ok((batch, run)) => {
                note(&run);
                let groups = self.lowered.finish.iter().filter(|step| matches!(step, crate::lower::Finish::Group(_)));
                let last_step = match self.mode {
                    Mode::Whole => finish,
                    Mode::Partial => states,
                };
                match last_step(&batch, groups.count(), &self.lowered.finish, &self.schema) {
                    Err(DataFusionError::External(error)) if error.is::<Cancelled>() => {
                        let error = EngineError::Unsupported(error.to_string());
                        match settings.placement {
                            Placement::Cuda => Err(DataFusionError::External(Box::new(error))),
                            _ => self.on_cpu(&error).await,
                        }
                    }
                    batch => {
                        self.account(&run);
                        let batch = self.one_batch(batch?);
                        if let (Some(report), Some(predicted)) = (&self.report, predicted) {
                            report.add_run(FragmentRun { what: self.lowered.what.clone(), predicted, measured: run });
                        }
                        Ok(batch)
                    }
                }
            }
            Err(EngineError::Gpu(GpuError::Cancelled) | EngineError::Column(ColumnError::Gpu(GpuError::Cancelled))) => {
                Err(SqlError::Cancelled.into())
            }
            Err(error) if may_fall_back(&error, &settings) => self.on_cpu(&error).await,
            Err(error) => Err(self.explained(SqlError::from(error)).await),
        }
    }

    /// The error with file and line where it comes from a file. The statement's plan does not show the fragment's
    /// files, so they are taken from the plan that the CPU would run.
    async fn explained(&self, error: SqlError) -> DataFusionError {
        if !diagnose::may_be_about_files(&error) {
            return error.into();
        }
        let state = self.catalog.session().unwrap_or_else(|| self.state.as_ref().clone());
        let planner = DefaultPhysicalPlanner::default();
        match AssertUnwindSafe(planner.create_physical_plan(&self.original, &state)).catch_unwind().await {
            Ok(Ok(plan)) => diagnose::explain(Suspect::of_plan(&plan), error).await.into(),
            _ => error.into(),
        }
    }

    /// Tells the statement's report of the tables that will be read: those with columns not on the device.
    fn announce_loads(&self, report: &StatementReport, limits: &LoadLimits) {
        let residency = self.engine.residency();
        let missing = self
            .lowered
            .tables
            .iter()
            .zip(&self.lowered.fragment.tables)
            .filter(|(info, table)| !residency.is_resident(&info.key, &info.version, &table.columns));
        // Where a table does not tell its rows, what is done is shown without an end.
        if let Some(rows) = missing.map(|(info, _)| info.rows.unwrap_or(0)).reduce(|sum, rows| sum + rows) {
            report.follow_load(&limits.rows_done, rows);
        }
    }

    /// The values of the fragment's arguments.
    fn values(&self) -> Result<Vec<warpcube_engine::Expr>> {
        let value = |index: &SubqueryIndex| {
            let value = self.arguments.results.get(*index);
            let value = value.ok_or_else(|| DataFusionError::Internal("a subquery that has not run".into()))?;
            literal(&value).map_err(DataFusionError::Internal)
        };
        self.arguments.indexes.iter().map(value).collect()
    }

    fn account(&self, run: &RunReport) {
        let Some(report) = &self.report else { return };
        report.add_load(&run.loaded);
        if run.compiled {
            report.add_compile(run.compile);
        }
        report.add_device(run.device);
        report.add_device_bytes(run.bytes);
        report.add_arena(run.arena_bytes);
        report.add_device_rows(self.lowered.tables.iter().filter_map(|table| table.rows).sum());
        report.fragment(FragmentReport { place: Place::Gpu, what: self.lowered.what.clone(), reason: None });
    }

    fn one_batch(&self, batch: RecordBatch) -> SendableRecordBatchStream {
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream::iter([Ok(batch)])))
    }

    async fn on_cpu(&self, error: &EngineError) -> Result<SendableRecordBatchStream> {
        tracing::info!(what = self.lowered.what, %error, "runs on the CPU after all");
        if let Some(report) = &self.report {
            report.fragment(FragmentReport {
                place: Place::Cpu,
                what: self.lowered.what.clone(),
                reason: Some(error.to_string()),
            });
        }
        if is_lasting(error) {
            self.refusals.remember(&self.lowered.identity, error.to_string());
        }
        // The statement's own state may be one for plans with nothing to optimise; this one has.
        let mut state = self.catalog.session().unwrap_or_else(|| self.state.as_ref().clone());
        if let Some(report) = &self.report {
            state.config_mut().set_extension(report.clone());
        }
        let plan = match self.mode {
            Mode::Whole => DefaultPhysicalPlanner::default().create_physical_plan(&self.original, &state).await?,
            Mode::Partial => partial_plan(&self.original, &state).await?,
        };
        let stream = execute_stream(plan.clone(), state.task_ctx())?;
        // Names and nullability of the physical plan's schema may differ in metadata only.
        let schema = self.schema.clone();
        let explain = plan.clone();
        let relabelled = stream.then(move |batch| {
            let (plan, schema) = (explain.clone(), schema.clone());
            async move {
                match batch {
                    Ok(batch) => Ok(batch.with_schema(schema)?),
                    Err(error) => Err(diagnose::explain(Suspect::of_plan(&plan), error.into()).await.into()),
                }
            }
        });
        // Scans tell how many rows they read when all have come.
        let report = self.report.clone();
        let counted = stream::once(async move {
            if let Some(report) = report {
                report.add_host_rows(crate::progress::host_rows(&plan));
            }
            None
        });
        let relabelled = relabelled.map(Some).chain(counted).filter_map(|batch| async { batch });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), relabelled)))
    }
}

/// Runs what blocks on a thread that may. What takes no longer than waking one up, and back, is run where it is, where
/// the runtime has workers to take over what else waits here.
async fn off_the_workers<T: Send + 'static>(short: bool, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if short && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        return Ok(tokio::task::block_in_place(work));
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::Execution(format!("the device thread failed: {error}")))
}

/// Whether the same fragment over the same tables would be refused again.
fn is_lasting(error: &EngineError) -> bool {
    match error {
        EngineError::Unsupported(_) => true,
        EngineError::Column(error) => error.is_unsupported(),
        _ => false,
    }
}

/// Whether the CPU may give the statement's answer instead. Not under placement `cuda`; where the device was named, for
/// what is not supported there, and not for a device that has no room, no compiler or is gone.
fn may_fall_back(error: &EngineError, settings: &Settings) -> bool {
    if settings.placement == Placement::Cuda {
        return false;
    }
    if error.falls_back() {
        return true;
    }
    if matches!(settings.device, DeviceChoice::Cuda(_)) {
        return false;
    }
    let gpu = match error {
        EngineError::Gpu(error) | EngineError::Column(ColumnError::Gpu(error)) => error,
        EngineError::Column(ColumnError::OverBudget { .. }) => return true,
        _ => return false,
    };
    // A device that was lost earlier only means that statements run on the CPU from now on.
    matches!(gpu, GpuError::OutOfMemory { .. } | GpuError::CompilerUnavailable { .. }) || gpu.is_lost_before()
}

impl ExecutionPlan for DeviceExec {
    fn name(&self) -> &str {
        "DeviceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => Err(DataFusionError::Internal("a device operator has no children".into())),
        }
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => Err(DataFusionError::Internal("a device operator has no children".into())),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("a device operator has one partition, not {partition}")));
        }
        let work = Work {
            mode: self.mode,
            lowered: self.lowered.clone(),
            original: self.original.clone(),
            arguments: self.arguments.clone(),
            engine: self.engine.clone(),
            state: self.state.clone(),
            catalog: self.catalog.clone(),
            refusals: self.refusals.clone(),
            known: self.known.clone(),
            schema: self.schema(),
            report: StatementReport::of(&context),
        };
        let noted = self.again();
        let rows = stream::once(work.run(move |run| noted.note(run))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_the_device_is_told_when_it_fails() {
        let settings = |device: &str, placement: &str| Settings {
            device: device.parse().unwrap(),
            placement: placement.parse().unwrap(),
            ..Settings::default()
        };
        let full = EngineError::Gpu(GpuError::OutOfMemory { operation: String::new(), wanted: 2, free: 1, budget: 1 });
        let unsupported = EngineError::Unsupported("the join has two rows for a key".into());
        let outcomes = |device: &str, placement: &str| {
            [&full, &unsupported].map(|error| may_fall_back(error, &settings(device, placement)))
        };
        assert_eq!(outcomes("auto", "auto"), [true, true]);
        assert_eq!(outcomes("cuda:1", "auto"), [false, true]);
        assert_eq!(outcomes("auto", "cuda"), [false, false]);
    }
}
