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
use warpcube_column::LoadLimits;
use warpcube_engine::{BindingOrigin, Engine, EngineError, NotCompiled, RunOptions, RunReport};
use warpcube_gpu::{CancelSwitch, Priority};

use super::device_exec::{DeviceExec, Mode};
use super::explain::{known, predict};
use super::fallback::{is_lasting, is_of_column, is_open, may_fall_back};
use super::finish::{Cancelled, finish};
use super::partial::{partial_plan, states};
use super::source::{load_limits, load_threads, requests};
use crate::cancel::ThrowOnDrop;
use crate::diagnose::{self, Suspect};
use crate::error::SqlError;
use crate::lower::Lowered;
use crate::report::{FragmentReport, FragmentRun, Phase, Place, StatementReport};
use crate::settings::Settings;
use crate::shared;
use crate::values::Placement;

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
        // Predicted before the run, whose measurements would show in it otherwise.
        let explained = self.report.as_ref().filter(|report| report.is_explained());
        let explain_cache = &self.exec.context.explain_cache;
        let predicted = explained.map(|_| predict(&self.engine, explain_cache, &self.exec.lowered, limit));
        let mut lowered = self.with_results()?;
        let may_wait_elsewhere = self.exec.mode == Mode::Whole && explained.is_none() && is_open(&settings);
        let options = RunOptions { elsewhere: may_wait_elsewhere, ..options };
        let mut outcome = self.on_device(&lowered, &options, &settings).await?;
        while outcome.as_ref().is_err_and(is_of_column) {
            tried.push(self.exec.lowered.clone());
            let Some(next) = whole.next_try(&tried, self.engine.residency(), limit) else { break };
            self.exec.lowered = next;
            lowered = self.with_results()?;
            outcome = self.on_device(&lowered, &options, &settings).await?;
        }
        if let Err(EngineError::NotCompiled(behind)) = &outcome {
            let clock = Instant::now();
            if let Some(answer) = self.while_compiling(behind).await? {
                return Ok(answer);
            }
            let compile = clock.elapsed();
            let again = self.on_device(&lowered, &RunOptions { elsewhere: false, ..options }, &settings).await?;
            outcome = again.map(|(batch, mut run)| {
                run.loaded.add(&behind.loaded);
                (run.compile, run.compiled) = (run.compile + compile, true);
                (batch, run)
            });
        }
        match outcome {
            Ok((batch, run)) => {
                self.exec.note(&run);
                let last_step = match self.exec.mode {
                    Mode::Whole => finish,
                    Mode::Partial => states,
                };
                match last_step(&batch, &self.exec.lowered.finish, &self.schema) {
                    Err(DataFusionError::External(error)) if error.is::<Cancelled>() => {
                        let error = EngineError::Unsupported(error.to_string());
                        match settings.placement {
                            Placement::Cuda => Err(DataFusionError::External(Box::new(error))),
                            _ => self.on_cpu(&error).await,
                        }
                    }
                    batch => {
                        self.account(&run);
                        let batch = batch?;
                        if self.exec.mode == Mode::Whole {
                            self.exec.lowered.cardinality.find(batch.num_rows());
                        }
                        let batch = self.one_batch(batch);
                        if let (Some(report), Some(predicted)) = (&self.report, predicted) {
                            report.add_run(FragmentRun {
                                what: self.exec.lowered.what.clone(),
                                predicted,
                                known: known(&self.engine, &lowered),
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

    /// Runs a fragment whose arguments have values.
    async fn on_device(
        &self,
        lowered: &Arc<Lowered>,
        options: &RunOptions,
        settings: &Settings,
    ) -> Result<Result<(RecordBatch, RunReport), EngineError>> {
        let (lowered, engine, state) = (lowered.clone(), self.engine.clone(), self.exec.state.clone());
        let (runtime, span) = (Handle::current(), tracing::info_span!("device"));
        let partitions = load_threads(settings);
        let short = lowered.binding.is_short() && runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        if short && runtime.metrics().num_workers() > 1 {
            // A thread of its own would take about as long to wake up. Other workers take over this one's queue
            // meanwhile.
            let _entered = span.enter();
            let requests = requests(&lowered, &state, &runtime, partitions);
            match engine.run_at_once(&lowered.fragment, &lowered.binding, &requests, options) {
                Ok(None) => {}
                Ok(Some(done)) => return Ok(Ok(done)),
                Err(error) => return Ok(Err(error)),
            }
        }
        // What has to be bound first, or compiled, takes longer.
        let short = short && lowered.binding.is_bound();
        let options = options.clone();
        off_the_workers(short, move || {
            let _entered = span.entered();
            let requests = requests(&lowered, &state, &runtime, partitions);
            engine.run_again(&lowered.fragment, &lowered.binding, &requests, &options)
        })
        .await
    }

    /// Requests the kernels and runs the original plan on the CPU meanwhile; gives its rows, or none if the kernels are
    /// compiled before them, or the memory pool has no room for the rows. The compilation goes on, for the next
    /// statement that needs the kernels.
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

    /// The fragment with the results of its scalar subqueries.
    fn with_results(&self) -> Result<Arc<Lowered>> {
        let result = |index: &SubqueryIndex| {
            let result = self.exec.arguments.results.get(*index);
            result.ok_or_else(|| DataFusionError::Internal("a subquery that has not run".into()))
        };
        let results = self.exec.arguments.indexes.iter().map(result).collect::<Result<_>>()?;
        self.exec.lowered.with_results(results).map_err(DataFusionError::Internal)
    }

    fn account(&self, run: &RunReport) {
        let Some(report) = &self.report else { return };
        report.add_load(&run.loaded);
        report.add_phase(Phase::Bind, run.bind);
        let rows = self.exec.lowered.tables.iter().filter_map(|table| table.rows).sum();
        if self.exec.engine.as_ref().is_some_and(|engine| !engine.runs_kernels()) {
            report.add_host_rows(rows);
            report.add_host_operators(self.exec.operators);
            let what = self.exec.lowered.what.clone();
            return report.fragment(FragmentReport { place: Place::Columns, what, reason: None });
        }
        if run.origin == BindingOrigin::Anew {
            report.note_bound();
        }
        if run.compiled {
            report.add_compile(run.compile);
        }
        report.add_device(run.device);
        report.add_device_bytes(run.bytes);
        report.add_arena(run.arena_bytes);
        report.add_device_rows(rows);
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

/// Runs blocking work: long work on a thread for it, short work on this worker, whose queue another worker takes over
/// meanwhile.
async fn off_the_workers<T: Send + 'static>(short: bool, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if short {
        return Ok(tokio::task::block_in_place(work));
    }
    let done = spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::Execution(format!("the device thread failed: {error}")))
}

/// A connection's state as it was when a statement began, with all rules for physical plans: kept with the states of
/// plans that have nothing to optimise.
pub(crate) struct PlanningState(pub(crate) Arc<SessionState>);

/// The statement's state with all rules for physical plans: its own may be one for plans with nothing to optimise.
fn planning_state(state: &SessionState) -> SessionState {
    let whole = state.config().get_extension::<PlanningState>();
    whole.map_or_else(|| state.clone(), |whole| whole.0.as_ref().clone())
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
}
