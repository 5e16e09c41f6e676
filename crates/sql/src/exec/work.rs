//! What a device operator does for one statement: run its fragment, or the original plan on the CPU.
//!
//! The work runs on a thread that may block, off the async workers, but for short repeats. What cannot run after all
//! (the data do not fit the shape, a row raised an error, the device is lost before the statement) takes the original
//! plan, noted in the statement's report; dropping the stream cancels loads and stops kernels at their next ticket.
//!
//! Where placement is open and kernels have to be compiled first, the CPU begins with the original plan meanwhile; what
//! is done first gives the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::physical_planning_context::SubqueryIndex;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_planner::DefaultPhysicalPlanner;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::spawn_blocking;
use warpcube_column::{ColumnError, LoadLimits};
use warpcube_engine::{BindingOrigin, Engine, EngineError, NotCompiled, RunOptions, RunReport};
use warpcube_gpu::{CancelSwitch, GpuError, Priority};

use super::device_exec::{DeviceExec, Mode};
use super::explain::{known, predict};
use super::finish::{Cancelled, finish};
use super::partial::{partial_plan, states};
use super::source::{load_limits, load_threads, requests};
use crate::cancel::ThrowOnDrop;
use crate::diagnose::{self, Suspect};
use crate::error::SqlError;
use crate::lower::{Lowered, Valued, literal};
use crate::report::{FragmentReport, FragmentRun, Phase, Place, StatementReport};
use crate::settings::Settings;
use crate::shared;
use crate::values::{DeviceChoice, Placement};

/// One run of an operator.
pub(super) struct Work {
    pub(super) exec: DeviceExec,
    pub(super) engine: Arc<Engine>,
    pub(super) schema: SchemaRef,
    pub(super) report: Option<Arc<StatementReport>>,
}

impl Work {
    pub(super) async fn run(mut self) -> Result<SendableRecordBatchStream> {
        let settings = self.exec.state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let cancel: Arc<CancelSwitch> = Arc::default();
        let _throw = ThrowOnDrop(cancel.clone());
        let limits = LoadLimits { cancelled: cancel.flag().clone(), ..load_limits(&settings) };
        let whole = self.exec.lowered.clone();
        let limit = limits.dictionary_values;
        let mut tried: Vec<Arc<Lowered>> = Vec::new();
        let first = whole.next_try(&tried, self.engine.residency(), limit);
        self.exec.lowered = first.unwrap_or_else(|| whole.clone());
        if let Some(report) = &self.report {
            report.cancel().attach(&cancel);
            self.announce_loads(report, &limits);
        }
        let groups_max = whole.groups_max;
        let dump = settings.dump_source.clone();
        let launch_times = self.report.as_ref().is_some_and(|report| report.is_explained());
        let options = RunOptions { limits, groups_max, cancel, dump, launch_times, ..RunOptions::default() };
        // Before it runs: what is known afterwards is no prediction.
        let explained = self.report.as_ref().filter(|report| report.is_explained());
        let explain_cache = &self.exec.context.explain_cache;
        let predicted = explained.map(|_| predict(&self.engine, explain_cache, &self.exec.lowered, limit));
        let mut valued = self.exec.lowered.with_values(&self.values()?);
        let may_wait_elsewhere = self.exec.mode == Mode::Whole && explained.is_none() && is_open(&settings);
        let options = RunOptions { elsewhere: may_wait_elsewhere, ..options };
        let mut outcome = self.on_device(&valued, &options, &settings).await?;
        while outcome.as_ref().is_err_and(is_of_column) {
            tried.push(self.exec.lowered.clone());
            let Some(next) = whole.next_try(&tried, self.engine.residency(), limit) else { break };
            self.exec.lowered = next;
            valued = self.exec.lowered.with_values(&self.values()?);
            outcome = self.on_device(&valued, &options, &settings).await?;
        }
        if let Err(EngineError::NotCompiled(behind)) = &outcome {
            let clock = Instant::now();
            if let Some(answer) = self.while_compiling(behind).await? {
                return Ok(answer);
            }
            let compile = clock.elapsed();
            let again = self.on_device(&valued, &RunOptions { elsewhere: false, ..options }, &settings).await?;
            outcome = again.map(|(batch, mut run)| {
                run.loaded.add(&behind.loaded);
                (run.compile, run.compiled) = (run.compile + compile, true);
                (batch, run)
            });
        }
        match outcome {
            Ok((batch, run)) => {
                self.exec.note(&run);
                let groups =
                    self.exec.lowered.finish.iter().filter(|step| matches!(step, crate::lower::Finish::Group(_)));
                let last_step = match self.exec.mode {
                    Mode::Whole => finish,
                    Mode::Partial => states,
                };
                match last_step(&batch, groups.count(), &self.exec.lowered.finish, &self.schema) {
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
                            report.add_run(FragmentRun {
                                what: self.exec.lowered.what.clone(),
                                predicted,
                                known: known(&self.engine, &self.exec.lowered, valued.as_deref()),
                                measured: run,
                            });
                        }
                        Ok(batch)
                    }
                }
            }
            Err(error) if error.is_cancelled() => Err(SqlError::Cancelled.into()),
            Err(error) if may_fall_back(&error, &settings) => self.on_cpu(&error).await,
            Err(error) => Err(self.explained(SqlError::from(error)).await),
        }
    }

    /// Runs the fragment, with the values of its arguments where it has any.
    async fn on_device(
        &self,
        valued: &Option<Arc<Valued>>,
        options: &RunOptions,
        settings: &Settings,
    ) -> Result<Result<(RecordBatch, RunReport), EngineError>> {
        let binding = valued.as_ref().map_or(&self.exec.lowered.binding, |valued| &valued.binding);
        let (lowered, engine, state) = (self.exec.lowered.clone(), self.engine.clone(), self.exec.state.clone());
        let (runtime, span) = (Handle::current(), tracing::info_span!("device"));
        let partitions = load_threads(settings);
        let short = binding.is_short() && runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        if short && runtime.metrics().num_workers() > 1 {
            // Another thread would take about as long to wake up. Other workers take what waits for this one meanwhile.
            let _entered = span.enter();
            let requests = requests(&lowered, &state, &runtime, partitions);
            let fragment = valued.as_ref().map_or(&lowered.fragment, |valued| &valued.fragment);
            match engine.run_at_once(fragment, binding, &requests, options) {
                Ok(None) => {}
                Ok(Some(done)) => return Ok(Ok(done)),
                Err(error) => return Ok(Err(error)),
            }
        }
        // What has to be bound first, or compiled, takes longer.
        let short = short && binding.is_bound();
        let (valued, options) = (valued.clone(), options.clone());
        off_the_workers(short, move || {
            let _entered = span.entered();
            let requests = requests(&lowered, &state, &runtime, partitions);
            match &valued {
                None => engine.run_again(&lowered.fragment, &lowered.binding, &requests, &options),
                Some(valued) => engine.run_again(&valued.fragment, &valued.binding, &requests, &options),
            }
        })
        .await
    }

    /// Has kernels compiled and the original plan run on the CPU meanwhile; its rows, or none if the kernels are there
    /// before them, or the rows have no room in the memory pool. Otherwise they are compiled to their end, for the next
    /// statement that takes them.
    async fn while_compiling(&self, behind: &NotCompiled) -> Result<Option<SendableRecordBatchStream>> {
        let compilation = self.engine.device().request(&behind.programs, Priority::Soon);
        let mut compiled = spawn_blocking(move || drop(compilation.wait()));
        let consumer = MemoryConsumer::new("rows of the CPU while kernels are compiled");
        let memory = consumer.register(&self.exec.state.runtime_env().memory_pool);
        let rows = async { within(self.cpu_rows().await?, &memory).await };
        let rows = tokio::select! {
            _ = &mut compiled => return Ok(None),
            rows = rows => rows?,
        };
        let Some(rows) = rows else {
            memory.free();
            _ = compiled.await;
            return Ok(None);
        };
        if let Some(report) = &self.report {
            report.add_load(&behind.loaded);
        }
        self.tell_of_cpu("its kernels were not compiled yet");
        let rows = stream::iter(rows.into_iter().map(move |batch| {
            memory.shrink(batch.get_array_memory_size());
            Ok(batch)
        }));
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))))
    }

    /// The error with file and line where it comes from a file. The statement's plan does not show the fragment's
    /// files, so they are taken from the plan that the CPU would run.
    async fn explained(&self, error: SqlError) -> DataFusionError {
        if !diagnose::may_be_about_files(&error) {
            return error.into();
        }
        let state = planning_state(&self.exec.state);
        let planner = DefaultPhysicalPlanner::default();
        let Ok(plan) = self.exec.on_cpu() else { return error.into() };
        match AssertUnwindSafe(shared::physical(planner, &plan, &state)).catch_unwind().await {
            Ok(Ok(plan)) => diagnose::explain(Suspect::of_plan(&plan.into_plan()), error).await.into(),
            _ => error.into(),
        }
    }

    /// Tells the statement's report of the tables that will be read: those with columns not on the device.
    fn announce_loads(&self, report: &StatementReport, limits: &LoadLimits) {
        let residency = self.engine.residency();
        let missing = self
            .exec
            .lowered
            .tables
            .iter()
            .zip(&self.exec.lowered.fragment.tables)
            .filter(|(info, table)| !residency.is_resident(&info.key, &info.version, &table.columns));
        // Where a table does not tell its rows, what is done is shown without an end.
        if let Some(rows) = missing.map(|(info, _)| info.rows.unwrap_or(0)).reduce(|sum, rows| sum + rows) {
            report.follow_load(&limits.rows_done, rows);
        }
    }

    /// The values of the fragment's arguments.
    fn values(&self) -> Result<Vec<warpcube_engine::Expr>> {
        let value = |index: &SubqueryIndex| {
            let value = self.exec.arguments.results.get(*index);
            let value = value.ok_or_else(|| DataFusionError::Internal("a subquery that has not run".into()))?;
            literal(&value).map_err(DataFusionError::Internal)
        };
        self.exec.arguments.indexes.iter().map(value).collect()
    }

    fn account(&self, run: &RunReport) {
        let Some(report) = &self.report else { return };
        report.add_load(&run.loaded);
        report.add_phase(Phase::Bind, run.bind);
        if run.origin == BindingOrigin::Anew {
            report.note_bound();
        }
        if run.compiled {
            report.add_compile(run.compile);
        }
        report.add_device(run.device);
        report.add_device_bytes(run.bytes);
        report.add_arena(run.arena_bytes);
        report.add_device_rows(self.exec.lowered.tables.iter().filter_map(|table| table.rows).sum());
        report.add_device_operators(self.exec.operators);
        report.fragment(FragmentReport { place: Place::Gpu, what: self.exec.lowered.what.clone(), reason: None });
    }

    /// The rows as a stream, of no batch where there are none, as operators of DataFusion have it.
    fn one_batch(&self, batch: RecordBatch) -> SendableRecordBatchStream {
        let rows = (batch.num_rows() > 0).then_some(Ok(batch));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream::iter(rows)))
    }

    async fn on_cpu(&self, error: &EngineError) -> Result<SendableRecordBatchStream> {
        tracing::info!(what = self.exec.lowered.what, %error, "runs on the CPU after all");
        self.tell_of_cpu(&error.to_string());
        if is_lasting(error) {
            self.exec.context.refusals.remember(&self.exec.lowered, &error.to_string());
        }
        self.cpu_rows().await
    }

    /// Notes that the CPU gave the answer, and why.
    fn tell_of_cpu(&self, reason: &str) {
        if let Some(report) = &self.report {
            report.add_host_operators(self.exec.operators);
            report.fragment(FragmentReport {
                place: Place::Cpu,
                what: self.exec.lowered.what.clone(),
                reason: Some(reason.to_string()),
            });
        }
    }

    /// The rows of the original plan.
    async fn cpu_rows(&self) -> Result<SendableRecordBatchStream> {
        let mut state = planning_state(&self.exec.state);
        if let Some(report) = &self.report {
            state.config_mut().set_extension(report.clone());
        }
        let on_cpu = self.exec.on_cpu()?;
        let plan = match self.exec.mode {
            Mode::Whole => shared::physical(DefaultPhysicalPlanner::default(), &on_cpu, &state).await?.into_plan(),
            Mode::Partial => partial_plan(&on_cpu, &state).await?,
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

/// All rows of a stream, charged to a reservation; none once it has no room for them.
async fn within(mut rows: SendableRecordBatchStream, memory: &MemoryReservation) -> Result<Option<Vec<RecordBatch>>> {
    let mut kept = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        if memory.try_grow(batch.get_array_memory_size()).is_err() {
            return Ok(None);
        }
        kept.push(batch);
    }
    Ok(Some(kept))
}

/// Runs what blocks on a thread that may; what is short, on this worker, which hands its place on for that time.
async fn off_the_workers<T: Send + 'static>(short: bool, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if short {
        return Ok(tokio::task::block_in_place(work));
    }
    let done = spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::Execution(format!("the device thread failed: {error}")))
}

/// Whether the same fragment over the same tables would be refused again.
pub(super) fn is_lasting(error: &EngineError) -> bool {
    match error {
        EngineError::Unsupported(_) => true,
        EngineError::Column(error) => error.is_unsupported(),
        _ => false,
    }
}

/// Whether a column cannot be resident as the fragment asks for it.
pub(super) fn is_of_column(error: &EngineError) -> bool {
    matches!(error, EngineError::Column(error) if error.is_unsupported())
}

/// Whether neither the device nor the placement was named, so that any place may give the answer.
fn is_open(settings: &Settings) -> bool {
    settings.placement == Placement::Auto && !matches!(settings.database.device, DeviceChoice::Cuda(_))
}

/// A connection's state as it was when a statement began, with all rules for physical plans: kept with the states of
/// plans that have nothing to optimise.
pub(crate) struct PlanningState(pub(crate) Arc<SessionState>);

/// The statement's state with all rules for physical plans: its own may be one for plans with nothing to optimise.
fn planning_state(state: &SessionState) -> SessionState {
    let whole = state.config().get_extension::<PlanningState>();
    whole.map_or_else(|| state.clone(), |whole| whole.0.as_ref().clone())
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
    if matches!(settings.database.device, DeviceChoice::Cuda(_)) {
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

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;

    #[tokio::test]
    async fn rows_are_gathered_as_far_as_the_pool_has_room() {
        let values: Arc<dyn arrow::array::Array> = Arc::new(Int64Array::from_iter_values(0..1000));
        let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
        let bytes = batch.get_array_memory_size();
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(3 * bytes));
        for (batches, has_room) in [(3, true), (4, false)] {
            let memory = MemoryConsumer::new("").register(&pool);
            let rows = stream::iter(vec![batch.clone(); batches]).map(Ok);
            let rows = Box::pin(RecordBatchStreamAdapter::new(batch.schema(), rows));
            let kept = within(rows, &memory).await.unwrap();
            assert_eq!(kept.map(|kept| kept.len()), has_room.then_some(batches));
            assert_eq!(pool.reserved(), 3 * bytes);
        }
    }

    #[test]
    fn who_names_the_device_is_told_when_it_fails() {
        let settings = |device: &str, placement: &str| {
            let mut settings = Settings::default();
            settings.database.device = device.parse().unwrap();
            settings.placement = placement.parse().unwrap();
            settings
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
