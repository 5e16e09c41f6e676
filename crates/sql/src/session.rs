//! Sessions: SQL in, Arrow batches and a report out.
//!
//! Each statement runs with its own copy of the session's state and its own [`StatementReport`], which every operator
//! finds in its task's configuration. What a statement changes (settings, prepared statements, tables) is in the
//! session for the next one. Statements may run at the same time from several threads.

mod assign;
mod changed;
mod cube_rows;
mod cubes;
mod define;
mod encoded;
mod inserted;
mod kept;
mod on_device;
mod own;
mod parsed;
mod prepared;
mod shapes;
#[cfg(test)]
mod template_tests;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, MemoryCatalogProviderList};
use datafusion::common::TableReference;
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{FutureExt, TryStreamExt};
use parking_lot::{Mutex, RwLock};
use tracing::Instrument;

use crate::access::check_start;
use crate::catalog::{self, CATALOG, CatalogShared, FileMemory, SCHEMA, SessionCatalog, SessionSchema};
use crate::cubes::{CubeFunction, Cubes};
use crate::device::DeviceSlot;
use crate::device_tables::DeviceTables;
use crate::engines::Engines;
use crate::error::{Result, SqlError};
use crate::exec::{DevicePlanner, EngineTables, SortedByDevice};
use crate::memory_table::WriteLock;
use crate::mend;
use crate::plans::{self, Epoch, PlanCache, Planned, Shapes, Templates};
use crate::progress::Progress;
use crate::report::{Phase, StatementReport};
use crate::rewrite::rewrite;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{Assignment, Settings};
use crate::staged_files::Staged;
use crate::statement::OwnStatement;
use crate::stream::{Deadline, Watched, Writes};
use crate::syntax::{self, Declared};
use crate::values::Origin;
pub use cubes::CubeLoad;

use assign::{check_known, first_options, set_option};
use changed::Locked;
use parsed::{check_view, declares_types, executed, plan_parsed};
use prepared::Prepared;

/// What a session starts with.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    assignments: Vec<Assignment>,
}

impl SessionOptions {
    /// Defaults.
    pub fn new() -> SessionOptions {
        SessionOptions::default()
    }

    /// Adds values for settings. Where several name the same setting, the origin decides, then the order.
    pub fn with_assignments(mut self, assignments: impl IntoIterator<Item = Assignment>) -> SessionOptions {
        self.assignments.extend(assignments);
        self
    }

    /// Sets one setting from the program.
    pub fn with(self, name: &str, value: &str) -> SessionOptions {
        let origin = Origin::Flag("program".into());
        self.with_assignments([Assignment { name: name.into(), value: value.into(), origin }])
    }
}

/// A statement that runs.
pub struct Execution {
    /// The columns of the result; none for statements that give no rows.
    pub schema: SchemaRef,
    /// The rows. Dropping the stream cancels the statement.
    pub stream: SendableRecordBatchStream,
    /// What happens while it runs; complete when the stream has ended.
    pub report: Arc<StatementReport>,
    /// The physical plan, where there is one.
    pub plan: Option<Arc<dyn ExecutionPlan>>,
    /// Whether the rows tell how many were written elsewhere (INSERT, COPY) and are no result to be kept.
    pub counts: bool,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Execution {
    /// All rows.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        Ok(self.stream.try_collect().await?)
    }

    /// How far a plan is, with what its report announces.
    pub fn progress_of(plan: Option<&Arc<dyn ExecutionPlan>>, report: &StatementReport) -> Progress {
        let scans = plan.map(Progress::of_plan).unwrap_or_default();
        let (done, total) = report.progress();
        Progress { done: scans.done + done, total: scans.total + total, loading: report.is_loading() }
    }
}

/// A session: a catalog, settings, and a device. Cheap to clone; clones are the same session.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    context: SessionContext,
    catalog: Arc<CatalogShared>,
    device: Arc<DeviceSlot>,
    device_tables: RwLock<Option<Arc<dyn DeviceTables>>>,
    /// Origins of settings that are not at their default.
    origins: Mutex<BTreeMap<String, Origin>>,
    /// What the session started with, for `RESET`.
    start: Start,
    prepared: Mutex<HashMap<String, Arc<Prepared>>>,
    /// Held alone while a statement is prepared, prepared anew or forgotten.
    preparing: tokio::sync::RwLock<()>,
    planner: Arc<DevicePlanner>,
    cubes: Arc<Cubes>,
    plans: PlanCache,
    shapes: Shapes,
    templates: Templates,
    /// The catalog's generation that kept plans are of.
    kept_generation: AtomicU64,
    /// Number of changes to the settings and to what is prepared.
    changes: AtomicU64,
    /// The state for plans with nothing to optimise, made under that number of changes.
    lean: Mutex<Option<(u64, SessionState)>>,
}

/// The settings of a session's start.
struct Start {
    /// Those of ours.
    settings: Settings,
    /// What others were given.
    others: BTreeMap<String, String>,
    /// Where all that were given come from.
    origins: BTreeMap<String, Origin>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("settings", &self.settings()).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// A setting that does not exist or does not take its value (named with its origin), or a device that is insisted
    /// on and cannot be opened.
    pub fn new(options: SessionOptions) -> Result<Session> {
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_extension(Arc::new(FileMemory::default()));
        let mut settings = Settings::default();
        let mut origins = BTreeMap::new();
        let mut runtime = RuntimeChoice::default();
        let mut assignments = options.assignments;
        assignments.sort_by(|a, b| a.origin.cmp(&b.origin));
        first_options(config.options_mut());
        let mut others = BTreeMap::new();
        for Assignment { name, value, origin } in assignments {
            let set = if name.starts_with("warpcube.") {
                settings.assign(&name, &value)
            } else {
                others.insert(name.clone(), value.clone());
                match runtime.take(&name, &value) {
                    true => Ok(()),
                    false => check_known(&name, config.options().entries().into_iter().map(|entry| entry.key))
                        .and_then(|()| set_option(config.options_mut(), &name, &value)),
                }
            };
            set.map_err(|error| error.with_origin(&origin))?;
            origins.insert(name, origin);
        }
        check_start(&settings, &origins)?;
        if settings.target_partitions > 0 {
            config = config.with_target_partitions(settings.target_partitions);
        }
        let device = Arc::new(DeviceSlot::default());
        device.choose(&settings)?;

        let shared = Arc::new(CatalogShared::default());
        let engines = Arc::new(Engines::new(device.clone()));
        let cubes = Arc::new(Cubes::new(engines.clone()));
        config = config.with_extension(cubes.clone());
        let planner = Arc::new(DevicePlanner::new(engines.clone()));
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(CATALOG.into(), Arc::new(SessionCatalog::new(shared.clone())));
        let mut builder = SessionStateBuilder::new()
            .with_config(config.with_option_extension(settings.clone()))
            .with_runtime_env(runtime::build(&settings)?)
            .with_default_features()
            .with_expr_planners(mend::expr_planners())
            .with_analyzer_rules(mend::analyzer_rules())
            .with_optimizer_rules(mend::optimizer_rules())
            .with_physical_optimizer_rules(mend::physical_optimizer_rules())
            .with_physical_optimizer_rule(Arc::new(SortedByDevice))
            .with_catalog_list(Arc::new(catalogs))
            .with_query_planner(planner.clone());
        for (name, factory) in catalog::table_factories() {
            builder = builder.with_table_factory(name, factory);
        }
        let context = SessionContext::new_with_state(builder.build());
        context.register_udtf(CubeFunction::NAME, Arc::new(CubeFunction::new(cubes.clone())));
        context.register_udtf(catalog::SniffCsv::NAME, Arc::new(catalog::SniffCsv));
        mend::register(&context);
        shared.attach(context.state_weak_ref());
        let session = Session {
            inner: Arc::new(Inner {
                context,
                catalog: shared,
                device,
                device_tables: RwLock::new(Some(Arc::new(EngineTables::new(engines)))),
                origins: Mutex::new(origins.clone()),
                start: Start { settings, others, origins },
                prepared: Mutex::default(),
                preparing: tokio::sync::RwLock::default(),
                planner,
                cubes,
                plans: PlanCache::default(),
                shapes: Shapes::default(),
                templates: Templates::default(),
                kept_generation: AtomicU64::new(0),
                changes: AtomicU64::new(0),
                lean: Mutex::new(None),
            }),
        };
        for (name, value) in runtime.into_values() {
            let set = session.set_runtime(&name, &value);
            set.map_err(|error| match session.inner.start.origins.get(&name) {
                Some(origin) => error.with_origin(origin),
                None => error,
            })?;
        }
        Ok(session)
    }

    /// Runs one statement; its report's clock starts now.
    ///
    /// # Errors
    /// Whatever is wrong with the statement before its first row; later errors come through the stream.
    pub async fn execute(&self, sql: &str) -> Result<Execution> {
        self.execute_with(sql, StatementReport::new()).await
    }

    /// Runs one statement with a report that the caller holds already, so that it can be cancelled while it is planned
    /// and while statements run that give no rows.
    pub async fn execute_with(&self, sql: &str, report: Arc<StatementReport>) -> Result<Execution> {
        let deadline = self.settings().timeout.map(Deadline::after);
        let span = tracing::info_span!("statement", sql);
        self.guarded(&report, deadline, self.start(sql, &report, deadline).instrument(span)).await
    }

    /// Waits for work that the statement's switch, its deadline and a panic end with an error of ours.
    async fn guarded<T>(
        &self,
        report: &Arc<StatementReport>,
        deadline: Option<Deadline>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let work = AssertUnwindSafe(Box::pin(work)).catch_unwind();
        tokio::select! {
            biased;
            () = report.cancel().cancelled() => Err(SqlError::Cancelled),
            // What panics over a statement, or over a file it names, ends the statement and not the session.
            done = work => done.unwrap_or_else(|panic| Err(SqlError::of_panic(panic.as_ref()))),
            error = Deadline::ended(report, deadline) => Err(error),
        }
        .inspect_err(|_| report.finish())
        .map_err(|error| error.with_tables(|| self.table_names()))
    }

    /// Runs one statement and gives all its rows.
    pub async fn collect(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.execute(sql).await?.collect().await
    }

    async fn start(&self, sql: &str, report: &Arc<StatementReport>, deadline: Option<Deadline>) -> Result<Execution> {
        let clock = Instant::now();
        if let Some(own) = OwnStatement::parse(sql)? {
            return Box::pin(self.own(own, report)).await;
        }
        // The future of a statement that was planned before is small: what takes long has a place of its own.
        let planned = match self.planned_before(sql).await? {
            Some(planned) => Some(planned),
            None => Box::pin(self.planned_by_shape(sql, report)).await?,
        };
        match planned {
            Some((planned, state)) => self.run_planned(state, &planned, None, report, deadline, clock).await,
            None => Box::pin(self.start_anew(sql, report, deadline, clock, None)).await,
        }
    }

    /// Plans a statement of SQL and runs it; `lock` is that of the table whose rows it changes, once that is known.
    async fn start_anew(
        &self,
        sql: &str,
        report: &Arc<StatementReport>,
        deadline: Option<Deadline>,
        clock: Instant,
        lock: Option<WriteLock>,
    ) -> Result<Execution> {
        // Before the state: what changes in between makes the plan one of the past.
        let mut epoch = self.epoch();
        let mut state = self.inner.context.state();
        state.config_mut().set_extension(report.clone());
        let mut phase = Instant::now();
        let parsing = syntax::parse_returning(&state, sql).instrument(tracing::info_span!("parse"));
        let (mut parsed, mut returning) = parsing.await.and_then(|(parsed, select)| Ok((rewrite(parsed)?, select)))?;
        phase = report.end_phase(Phase::Parse, phase);
        if let Some(name) = executed(&parsed) {
            // What was prepared anew is in the session's state and not yet in the copy.
            (epoch, state) = self.freshen_prepared(&name).await?;
            state.config_mut().set_extension(report.clone());
        }
        check_view(&state, &parsed)?;
        let declared = Declared::take(&mut parsed)?;
        let has_types = declares_types(&parsed);
        let references = state.resolve_table_references(&parsed)?;
        let generation = epoch.catalog;
        let plan = plan_parsed(&state, parsed).instrument(tracing::info_span!("plan")).await?;
        phase = report.end_phase(Phase::Plan, phase);
        if let Some((optimized, is_new)) = self.by_template(&plan, &state, epoch)? {
            if is_new {
                report.note_planned();
            }
            phase = report.end_phase(Phase::Optimize, phase);
            let planned = self.lowered(sql, epoch, references, &optimized, &state, true).await?;
            report.end_phase(Phase::Lower, phase);
            return self.run_planned(state, &planned, None, report, deadline, clock).await;
        }
        if plans::is_immediate(&plan) {
            report.commit()?;
        }
        // Parameters leave no trace in the plan that they are put into.
        let mut constant = true;
        let plan = match plan {
            LogicalPlan::Statement(PlanStatement::SetVariable(set)) => {
                self.set(&set.variable, &set.value)?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => {
                self.reset(&reset.variable).await?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                if let Some(select) = &returning {
                    changed::returning(&state, select.clone()).await?;
                }
                self.prepare(sql, references, generation, prepare, has_types, returning).await?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Deallocate(deallocate)) => {
                self.deallocate(&deallocate).await?;
                return Ok(self.nothing(report));
            }
            plan @ LogicalPlan::Ddl(DdlStatement::CreateFunction(_) | DdlStatement::DropFunction(_)) => {
                self.inner.context.execute_logical_plan(plan).await?;
                self.inner.changes.fetch_add(1, Ordering::AcqRel);
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Execute(execute)) => {
                constant = plans::are_immutable(&execute.parameters)?;
                match self.executed_anew(&state, &execute)? {
                    Some((plan, select)) => {
                        returning = select;
                        plan
                    }
                    // A table has changed since.
                    None => return Box::pin(self.start_anew(sql, report, deadline, clock, lock)).await,
                }
            }
            plan => plan,
        };
        let lock = match changed::lock(&plan, lock, &state).await {
            // The plan is of a version that is not the table's last.
            Locked::Now(lock) if self.epoch().catalog != epoch.catalog => {
                return Box::pin(self.start_anew(sql, report, deadline, clock, Some(lock))).await;
            }
            Locked::Now(lock) => Some(lock),
            Locked::Before(lock) => lock,
        };
        if let LogicalPlan::Ddl(ddl) = plan {
            self.define(state, ddl, declared, report).await?;
            return Ok(self.nothing(report));
        }
        report.note_planned();
        let (plan, staged) = Staged::redirect(catalog::held(plan, &state)?, state.config_options())?;
        let is_explained = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let is_written = staged.is_some() || matches!(plan, LogicalPlan::Dml(_) | LogicalPlan::Copy(_));
        let writes = is_written.then(|| Writes { catalog: self.inner.catalog.clone(), staged });
        let repeatable = constant && plans::is_repeatable(&plan)?;
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(&plan))?;
        phase = report.end_phase(Phase::Optimize, phase);
        let planned = self.lowered(sql, epoch, references, &optimized, &state, repeatable).await?;
        report.end_phase(Phase::Lower, phase);
        let returning = match returning {
            Some(select) => Some(changed::returning(&state, select).await?).filter(|_| !is_explained),
            None => None,
        };
        returning.iter().for_each(|returning| state.config_mut().set_extension(returning.clone()));
        let mut execution = self.run_planned(state, &planned, writes, report, deadline, clock).await?;
        if let Some(returning) = returning {
            execution.schema = returning.schema();
            execution.stream = changed::returned(execution.stream, returning);
            execution.counts = false;
        }
        if let Some(lock) = lock {
            execution.stream = changed::holding(execution.stream, lock);
        }
        Ok(execution)
    }

    /// The optimised plan of a statement by the template of its shape; the flag says that the template was made now.
    fn by_template(
        &self,
        plan: &LogicalPlan,
        state: &SessionState,
        epoch: Epoch,
    ) -> Result<Option<(LogicalPlan, bool)>> {
        if let LogicalPlan::Statement(PlanStatement::Execute(execute)) = plan {
            return self.executed_by_template(state, execute, epoch);
        }
        // A table that was found changed while this was planned belongs to the next epoch.
        if !plans::is_repeatable(plan)? || self.epoch() != epoch {
            return Ok(None);
        }
        // What is wrong with a statement is told by planning it as it is.
        let lifted = tracing::info_span!("lift").in_scope(|| plans::lift(plan, state));
        let Ok(Some((shape, values))) = lifted else { return Ok(None) };
        Ok(tracing::info_span!("template").in_scope(|| self.inner.templates.plan(&shape, &values, epoch, state)))
    }

    /// Lowers an optimised plan, and keeps the outcome for the next time where it is repeatable.
    async fn lowered(
        &self,
        sql: &str,
        epoch: Epoch,
        references: Vec<TableReference>,
        optimized: &LogicalPlan,
        state: &SessionState,
        repeatable: bool,
    ) -> Result<Arc<Planned>> {
        let planned = Arc::new(self.inner.planner.lower(optimized, state).await?);
        if repeatable && plans::tells_changes(optimized)? {
            // Tables of views and of aliases are named in the plan alone.
            let named = references.into_iter().chain(plans::scanned(optimized)?);
            let tables: BTreeSet<_> = named.map(|table| table.resolve(CATALOG, SCHEMA)).collect();
            let tables: Vec<TableReference> = tables.into_iter().map(TableReference::from).collect();
            self.inner.plans.keep(sql, epoch, tables.into(), &planned);
        }
        Ok(planned)
    }

    /// Starts a planned statement that gives rows.
    async fn run_planned(
        &self,
        mut state: SessionState,
        planned: &Planned,
        writes: Option<Writes>,
        report: &Arc<StatementReport>,
        deadline: Option<Deadline>,
        clock: Instant,
    ) -> Result<Execution> {
        state.config_mut().set_extension(report.clone());
        let (state, phase) = (Arc::new(state), Instant::now());
        let physical = self.inner.planner.physical(planned, &state).instrument(tracing::info_span!("plan")).await?;
        report.end_phase(Phase::Physical, phase);
        report.add_planning(clock.elapsed());
        let inner = tracing::info_span!("execute").in_scope(|| execute_stream(physical.clone(), state.task_ctx()))?;
        let counts = writes.is_some();
        let afterwards = self.inner.planner.ask(planned, &state);
        let watched = Watched {
            inner,
            report: report.clone(),
            plan: physical.clone(),
            deadline,
            writes,
            afterwards,
            is_late: false,
        };
        let stream = watched.into_stream();
        Ok(Execution { schema: stream.schema(), stream, report: report.clone(), plan: Some(physical), counts })
    }

    /// The result of a statement that gives no rows.
    fn nothing(&self, report: &Arc<StatementReport>) -> Execution {
        report.finish();
        let schema = Arc::new(Schema::empty());
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), futures::stream::empty()));
        Execution { schema, stream, report: report.clone(), plan: None, counts: false }
    }

    /// The settings under `warpcube.` as they are now.
    pub fn settings(&self) -> Settings {
        let state = self.inner.context.state_ref();
        let state = state.read();
        state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default()
    }

    /// The names of all tables and views, and of the columns of each.
    pub fn tables(&self) -> Vec<(String, Vec<String>)> {
        self.schemas().iter().flat_map(|schema| schema.describe()).collect()
    }

    /// The schemas of all catalogs.
    fn schemas(&self) -> Vec<Arc<SessionSchema>> {
        let catalogs = self.inner.context.state_ref().read().catalog_list().clone();
        let of_catalog = |catalog: Arc<dyn CatalogProvider>| {
            catalog.schema_names().into_iter().filter_map(move |name| {
                let schema: Arc<dyn Any + Send + Sync> = catalog.schema(&name)?;
                schema.downcast::<SessionSchema>().ok()
            })
        };
        catalogs.catalog_names().iter().filter_map(|name| catalogs.catalog(name)).flat_map(of_catalog).collect()
    }

    fn table_names(&self) -> Vec<String> {
        self.tables().into_iter().map(|(name, _)| name).collect()
    }

    /// Grows whenever a name of the catalog may mean something else, or a table may hold other rows, than before.
    pub fn catalog_generation(&self) -> u64 {
        self.inner.catalog.generation()
    }

    /// DataFusion's own context below this session, for embedding programs and tests. Rows that are written through it
    /// into memory tables are not noticed: write with [`Session::execute`].
    pub fn context(&self) -> &SessionContext {
        &self.inner.context
    }
}
