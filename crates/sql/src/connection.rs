//! Connections: SQL in, Arrow batches and a report out.
//!
//! A [`Connection`] has settings, prepared statements and a default schema of its own over a [`Database`]. Each
//! statement runs with its own copy of the connection's state and its own [`StatementReport`], which every operator
//! finds in its task's configuration. What a statement changes of the connection (settings, prepared statements) or of
//! the database (tables) is there for the next one. Statements may run at the same time from several threads, of one
//! connection and of several: each reads the versions of tables that it was planned over, and statements that change
//! one table wait for each other.

mod assign;
mod cached_plans;
mod changed;
mod client;
mod cube_rows;
mod cubes;
mod define;
mod encoded;
mod inserted;
mod own;
mod parsed;
mod prepared;
mod read;
mod registered;
mod shapes;
#[cfg(test)]
mod template_tests;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DFSchema, TableReference};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{DdlStatement, DropTable, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::{FutureExt, TryStreamExt};
use parking_lot::Mutex;
use tracing::Instrument;

use crate::access::Access;
use crate::catalog::{self, CatalogView, GivenTables};
use crate::database::{Database, HoldsPlans, owner};
use crate::error::{Result, SqlError};
use crate::exec::DevicePlanner;
use crate::memory_share::MemoryShare;
use crate::memory_table::WriteLock;
use crate::mend;
use crate::plans::{self, Epoch, Planned};
use crate::progress::Progress;
use crate::registry::Registration;
use crate::report::{Phase, StatementReport};
use crate::settings::{Owner, Settings};
use crate::staged_files::Staged;
use crate::statement::OwnStatement;
use crate::stream::{Deadline, Watched, Writes, in_zone, registered};
use crate::syntax::{self, Declared, StatementKind};
use crate::values::SettingOrigin;
pub use cubes::CubeLoad;

use changed::Locked;
use prepared::{PreparedStatements, executed_anew};
use read::{Read, ReadPlan};

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

/// A connection to a database, with settings and prepared statements of its own. Cheap to clone; clones are the same
/// connection.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    /// The name of the connection's session in lists and logs of statements.
    session: Option<Arc<str>>,
    context: SessionContext,
    memory: Option<MemoryShare>,
    /// Origins of the connection's settings that are not at their default.
    origins: Mutex<BTreeMap<String, SettingOrigin>>,
    /// Held while settings change.
    settled: Mutex<Settled>,
    /// The number of the database's settings that the state has, as in [`Settled`].
    known: AtomicU64,
    /// Whether functions and rules of the state may change without notice, as in [`Settled`].
    is_given: AtomicBool,
    prepared: Arc<PreparedStatements>,
    /// The state for plans with nothing to optimise.
    lean: Mutex<Option<SessionState>>,
}

/// What the number of the state's settings ([`SettingsNumber`]) depends on beside the settings.
#[derive(Default)]
struct Settled {
    /// The number of the database's settings.
    database: u64,
    /// Tells functions and rules apart that are the connection's own; 0 while they are those of all.
    functions: u64,
    /// The state as it was when it was last given its number, once a program or a statement may change its functions
    /// and rules. What it holds is compared with the state's by address when a statement begins.
    given: Option<SessionState>,
}

/// The number of a state's settings, an extension of its configuration.
#[derive(Debug, Clone, Copy)]
struct SettingsNumber(u64);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("settings", &self.settings()).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens a connection. Its settings are those that the database was opened with.
    pub fn connect(&self) -> Connection {
        self.connect_as(None, None)
    }

    /// As [`Database::connect`], for a client of another process where the session has a name: lists and logs of
    /// statements show it, and statements do not reach the streams of this process. With a share of the memory of
    /// operators, its statements have no more than that.
    pub fn connect_as(&self, session: Option<Arc<str>>, memory: Option<MemoryShare>) -> Connection {
        let mut first = self.first_state();
        let mut settled = Settled::default();
        settled.number(&mut first, self);
        let context = SessionContext::new_with_state(first);
        let view = CatalogView::new(self.shared.catalogs.clone(), context.state_weak_ref());
        context.state_ref().write().register_catalog_list(Arc::new(view));
        let start = self.shared.start.origins.iter().filter(|(name, _)| owner(name) == Owner::Connection);
        let origins = start.map(|(name, origin)| (name.clone(), origin.clone())).collect();
        let prepared = Arc::new(PreparedStatements::default());
        let holder: Arc<dyn HoldsPlans> = prepared.clone();
        self.hold(Arc::downgrade(&holder));
        let inner = Inner {
            database: self.clone(),
            session,
            context,
            origins: Mutex::new(origins),
            settled: Mutex::new(settled),
            // The runtime of a share is taken over by the first statement.
            known: AtomicU64::new(if memory.is_some() { u64::MAX } else { 0 }),
            memory,
            is_given: AtomicBool::new(false),
            prepared,
            lean: Mutex::new(None),
        };
        let connection = Connection { inner: Arc::new(inner) };
        for (name, (value, origin)) in self.shared.global.read().iter() {
            // The connection that has set it took it; other settings of this one may contradict it.
            if let Err(error) = connection.assign(name, value, origin.clone()) {
                tracing::warn!(%error, "a setting of SET GLOBAL does not count for a connection");
            }
        }
        connection
    }
}

impl Connection {
    /// The database.
    pub fn database(&self) -> &Database {
        &self.inner.database
    }

    /// What a statement does when it runs; nothing runs.
    pub fn kind_of(&self, sql: &str) -> StatementKind {
        match OwnStatement::parse(sql) {
            Ok(None) => syntax::kind(&self.lean_state(), sql),
            _ => StatementKind::Command,
        }
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
        self.execute_among(sql, report, None).await
    }

    /// As [`Connection::execute_with`], among tables that the program gives it. Names that the catalog does not have
    /// are looked for there, and then among files. It is called on a thread of a runtime that has several.
    pub async fn execute_among(
        &self,
        sql: &str,
        report: Arc<StatementReport>,
        given: Option<&Arc<GivenTables>>,
    ) -> Result<Execution> {
        let statement = self.registration(sql, &report);
        self.execute_registered(statement, sql, given).await
    }

    /// As [`Connection::execute_among`], for a statement that is in the registry already.
    pub async fn execute_registered(
        &self,
        statement: Registration,
        sql: &str,
        given: Option<&Arc<GivenTables>>,
    ) -> Result<Execution> {
        let execution = self.begin(&statement, sql, given).await.map_err(|error| statement.failed(error))?;
        if execution.plan.is_none() {
            statement.be_done();
        }
        Ok(Execution { stream: registered(execution.stream, statement), ..execution })
    }

    /// The columns of a query that is in the registry: it is planned, and does not run. It is in the log only if that
    /// fails.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub async fn columns(
        &self,
        statement: Registration,
        sql: &str,
        given: Option<&Arc<GivenTables>>,
    ) -> Result<SchemaRef> {
        let execution = self.begin(&statement, sql, given).await.map_err(|error| statement.failed(error))?;
        statement.forget();
        Ok(execution.schema)
    }

    /// Puts a statement of this connection into the registry.
    fn registration(&self, sql: &str, report: &Arc<StatementReport>) -> Registration {
        self.inner.database.register_statement(self.inner.session.clone(), sql, report)
    }

    /// Begins a statement whose turn has come.
    async fn begin(&self, statement: &Registration, sql: &str, given: Option<&Arc<GivenTables>>) -> Result<Execution> {
        statement.begin();
        let report = statement.report();
        let deadline = self.with_settings(|settings| settings.timeout).map(Deadline::after);
        let span = tracing::info_span!("statement", sql = statement.text());
        let work = Box::pin(self.start(sql, report, deadline).instrument(span));
        self.guarded(report, deadline, catalog::among(given, work)).await
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
            // What panics over a statement, or over a file it names, ends the statement and not the connection.
            done = work => done.unwrap_or_else(|panic| Err(SqlError::of_panic(panic.as_ref()))),
            error = Deadline::ended(report, deadline) => Err(error),
        }
        .inspect_err(|_| report.finish())
        .map_err(|error| error.with_tables(|| self.table_names()).with_functions(|| self.functions()))
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
            Some((planned, state)) => self.run_shown(state, &planned, None, report, deadline, clock).await,
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
        let (read, epoch, mut state) = Box::pin(self.read(sql, report)).await?;
        let read = match read {
            Read::Nothing => return Ok(self.nothing(report)),
            Read::DeallocateAll => {
                report.commit()?;
                self.deallocate_all().await;
                return Ok(self.nothing(report));
            }
            Read::Planned(read) => *read,
        };
        let ReadPlan { plan, fresh, mut returning, declared, renamed, has_types, references, tables } = read;
        let mut phase = Instant::now();
        let (templates, catalogs) = (&self.inner.database.shared.kept.templates, &self.inner.database.shared.catalogs);
        if let (LogicalPlan::Statement(PlanStatement::Execute(execute)), Some(fresh)) = (&plan, &fresh)
            && let Some((template, values, is_new)) = fresh.template(&state, execute, (epoch, catalogs), templates)?
            && let Some((planned, state)) = self.planned_by_template(&template, values, epoch, report).await?
        {
            if is_new {
                report.note_planned();
            }
            report.end_phase(Phase::Optimize, phase);
            if template.tells_changes {
                self.plans_of(epoch).keep(sql, epoch, tables, &planned);
            }
            return self.run_shown(state, &planned, None, report, deadline, clock).await;
        }
        let is_kept = matches!(
            plan,
            LogicalPlan::Statement(PlanStatement::Prepare(_)) | LogicalPlan::Ddl(DdlStatement::CreateView(_))
        );
        if is_kept && report.is_read_to_plan() {
            return Err(SqlError::Unsupported("PIVOT without a list of values in a view and in PREPARE".into()));
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
                self.reset(&reset.variable)?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                if let Some(select) = &returning {
                    changed::returning(&state, select.clone()).await?;
                }
                self.prepare(sql, references, epoch, prepare, has_types, returning).await?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Deallocate(deallocate)) => {
                self.deallocate(&deallocate).await?;
                return Ok(self.nothing(report));
            }
            plan @ LogicalPlan::Ddl(DdlStatement::CreateFunction(_) | DdlStatement::DropFunction(_)) => {
                self.give();
                self.inner.context.execute_logical_plan(plan).await?;
                return Ok(self.nothing(report));
            }
            LogicalPlan::Statement(PlanStatement::Execute(execute)) => {
                constant = plans::are_immutable(&execute.parameters)?;
                let (plan, select) = executed_anew(fresh.as_ref(), &state, &execute)?;
                returning = select;
                plan
            }
            plan => plan,
        };
        Access::of(state.config_options()).check_tables(&plan, sql)?;
        self.check_output(&plan)?;
        let lock = match changed::lock(&plan, renamed.as_ref(), lock, &state).await {
            // The plan is of a version that is not the table's last.
            Locked::Now(lock) if self.inner.database.catalog_generation() != epoch.catalog => {
                return Box::pin(self.start_anew(sql, report, deadline, clock, Some(lock))).await;
            }
            Locked::Now(lock) => Some(lock),
            Locked::Before(lock) => lock,
        };
        if let LogicalPlan::Ddl(ddl) = plan {
            self.define(state.clone(), ddl, declared, sql, report).await?;
            if let Some(name) = renamed {
                let drop = DropTable { name, if_exists: false, schema: Arc::new(DFSchema::empty()) };
                self.define(state, DdlStatement::DropTable(drop), Declared::default(), sql, report).await?;
            }
            return Ok(self.nothing(report));
        }
        report.note_planned();
        let (plan, staged) = Staged::redirect(catalog::with_checked_inserts(plan, &state)?, state.config_options())?;
        let is_explained = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let is_written = staged.is_some() || matches!(plan, LogicalPlan::Dml(_) | LogicalPlan::Copy(_));
        let writes = is_written.then(|| Writes { catalogs: self.inner.database.shared.catalogs.clone(), staged });
        let repeatable = constant && !report.is_read_to_plan() && plans::is_repeatable(&plan)?;
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(&plan))?;
        phase = report.end_phase(Phase::Optimize, phase);
        let planned = self.lowered(sql, epoch, tables, &optimized, &state, repeatable).await?;
        report.end_phase(Phase::Lower, phase);
        let returning = match returning {
            Some(select) => Some(changed::returning(&state, select).await?).filter(|_| !is_explained),
            None => None,
        };
        returning.iter().for_each(|returning| state.config_mut().set_extension(returning.clone()));
        let mut execution = self.run_shown(state, &planned, writes, report, deadline, clock).await?;
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

    /// Lowers an optimised plan, and keeps the outcome for the next time where it is repeatable.
    async fn lowered(
        &self,
        sql: &str,
        epoch: Epoch,
        tables: Arc<[TableReference]>,
        optimized: &LogicalPlan,
        state: &SessionState,
        repeatable: bool,
    ) -> Result<Arc<Planned>> {
        let planned = Arc::new(self.planner().lower(optimized, state).await?);
        if repeatable && plans::tells_changes(optimized, &self.inner.database.shared.catalogs)? {
            self.plans_of(epoch).keep(sql, epoch, tables, &planned);
        }
        Ok(planned)
    }

    /// Starts a planned statement whose rows have instants in the session's zone.
    async fn run_shown(
        &self,
        state: SessionState,
        planned: &Planned,
        writes: Option<Writes>,
        report: &Arc<StatementReport>,
        deadline: Option<Deadline>,
        clock: Instant,
    ) -> Result<Execution> {
        let zone: Option<Arc<str>> = mend::shown_zone(state.config_options()).map(Arc::from);
        let execution = self.run_planned(state, planned, writes, report, deadline, clock).await?;
        let Some(zone) = zone else { return Ok(execution) };
        let stream = in_zone(execution.stream, &zone);
        Ok(Execution { schema: stream.schema(), stream, ..execution })
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
        let physical = self.planner().physical(planned, &state).instrument(tracing::info_span!("plan")).await?;
        report.end_phase(Phase::Physical, phase);
        report.add_planning(clock.elapsed());
        let inner = tracing::info_span!("execute").in_scope(|| execute_stream(physical.clone(), state.task_ctx()))?;
        let counts = writes.is_some();
        let afterwards = self.planner().ask(planned, &state);
        let watched = Watched {
            inner,
            report: report.clone(),
            plan: physical.clone(),
            deadline,
            writes,
            afterwards,
            is_late: false,
        };
        let stream = watched.into_stream(&planned.types);
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
        self.with_settings(Settings::clone)
    }

    /// Reads the settings where they are: a copy of all of them is too much for each statement.
    pub(super) fn with_settings<T>(&self, read: impl FnOnce(&Settings) -> T) -> T {
        self.settle();
        let state = self.inner.context.state_ref();
        let state = state.read();
        match state.config_options().extensions.get::<Settings>() {
            Some(settings) => read(settings),
            None => read(&Settings::default()),
        }
    }

    /// A copy of the connection's state.
    fn state(&self) -> SessionState {
        self.settle();
        self.inner.context.state()
    }

    fn planner(&self) -> &DevicePlanner {
        &self.inner.database.shared.planner
    }

    fn table_names(&self) -> Vec<String> {
        self.inner.database.tables().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of all functions, those that are read as others too.
    pub fn functions(&self) -> Vec<String> {
        syntax::function_names(&self.state()).collect()
    }

    /// DataFusion's own context below this connection, for embedding programs and tests. What such a program changes in
    /// it (functions, rules, settings of DataFusion) is this connection's, from its next statement on; tables and
    /// object stores are the database's. Rows that are written through it into memory tables are not noticed: write
    /// with [`Connection::execute`].
    pub fn context(&self) -> &SessionContext {
        self.settle();
        self.give();
        &self.inner.context
    }
}
