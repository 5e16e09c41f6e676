//! Databases: what connections share.
//!
//! A [`Database`] has the catalog with its tables, the device, the budgets of memory, the folder for spilling, and the
//! caches: plans, kernels, columns on the device, files, cubes. What is one connection's has [`crate::Connection`].
//!
//! The values of some settings are the database's ([`Owner::Database`]), and so is the runtime of DataFusion that they
//! make. A connection takes over what others have changed when its next statement begins, by comparing a number; its
//! running statements keep the runtime and the device that they began with.

mod assign;
mod on_device;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use parking_lot::{Mutex, RwLock};

use crate::access::check_start;
use crate::catalog::{self, CATALOG, Catalogs, FileMemory, HeaderSaid, KeptCatalog, Mirror, SCHEMA, TextCasts};
use crate::cubes::{CubeFunction, Cubes};
use crate::device::DeviceSlot;
use crate::engines::Engines;
use crate::error::Result;
use crate::exec::{DevicePlanner, EngineTables, SortedByDevice};
use crate::memory_table::Common;
use crate::mend;
use crate::mend::nested_casts::{cast_of_text, read_texts};
use crate::plans::KeptPlans;
use crate::registry::{Registration, Registry, StatementCounts};
use crate::report::StatementReport;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{Assignment, DatabaseSettings, Owner, Settings};
use crate::text_formats;
use crate::values::{ReadOnly, SettingOrigin};
pub(crate) use assign::{
    HEADER_NAME, SWITCHES_FILTERS, ZONE_NAME, bad_value, check_known, default_value, first_options, owner, set_option,
};

/// What a database is opened with.
#[derive(Debug, Clone, Default)]
pub struct DatabaseOptions {
    assignments: Vec<Assignment>,
    folder: Option<PathBuf>,
}

impl DatabaseOptions {
    /// Defaults.
    pub fn new() -> DatabaseOptions {
        DatabaseOptions::default()
    }

    /// Adds values for settings, with which every connection begins. Where several name the same setting, the origin
    /// decides, then the order.
    pub fn with_assignments(mut self, assignments: impl IntoIterator<Item = Assignment>) -> DatabaseOptions {
        self.assignments.extend(assignments);
        self
    }

    /// Opens the catalog that is kept in a folder, and keeps views, tables over files and settings of `SET GLOBAL` in
    /// it; for reading alone under `warpcube.read_only`. Tables in memory are not kept.
    pub fn with_catalog(self, folder: impl Into<PathBuf>) -> DatabaseOptions {
        DatabaseOptions { folder: Some(folder.into()), ..self }
    }

    /// Sets one setting from the program.
    pub fn with(self, name: &str, value: &str) -> DatabaseOptions {
        let origin = SettingOrigin::Flag("program".into());
        self.with_assignments([Assignment { name: name.into(), value: value.into(), origin }])
    }
}

/// A database: a catalog with its tables, a device, caches and budgets, for any number of connections
/// ([`Database::connect`]), which may run statements at the same time from several threads. Cheap to clone; clones are
/// the same database. It is closed when the last clone and the last connection have gone.
///
/// ```
/// use warpcube_sql::{Database, DatabaseOptions};
///
/// # let runtime = tokio::runtime::Runtime::new().unwrap();
/// # runtime.block_on(async {
/// let database = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?;
/// let (writer, reader) = (database.connect(), database.connect());
/// writer.collect("CREATE TABLE t AS VALUES (1), (2)").await?;
/// reader.collect("SET datafusion.execution.time_zone = 'Europe/Berlin'").await?;
/// let batches = reader.collect("SELECT * FROM t").await?;
/// assert_eq!(batches[0].num_rows(), 2);
/// # Ok::<(), warpcube_sql::SqlError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

/// A database that is not kept open by this.
#[derive(Clone)]
pub struct WeakDatabase(Weak<Shared>);

impl WeakDatabase {
    /// The database, while clones or connections of it are there.
    pub fn upgrade(&self) -> Option<Database> {
        self.0.upgrade().map(|shared| Database { shared })
    }
}

/// What the clones of a database share.
pub(crate) struct Shared {
    pub(crate) catalogs: Arc<Catalogs>,
    /// The catalog that the database was opened with.
    pub(crate) kept_catalog: Option<Arc<KeptCatalog>>,
    pub(crate) device: Arc<DeviceSlot>,
    /// The columns on the device.
    pub(crate) tables: EngineTables,
    pub(crate) planner: Arc<DevicePlanner>,
    pub(crate) cubes: Arc<Cubes>,
    /// The files elsewhere.
    pub(crate) mirror: Arc<Mirror>,
    /// The statements of all connections.
    pub(crate) registry: Arc<Registry>,
    pub(crate) kept: KeptPlans,
    /// What the database was opened with.
    pub(crate) start: Start,
    /// The state that a connection begins with; its settings and runtime of the database may be those of before.
    first: SessionState,
    /// Settings of each connection that SET GLOBAL has given values since, for connections that are opened.
    pub(crate) global: RwLock<BTreeMap<String, (String, SettingOrigin)>>,
    current: RwLock<Current>,
    /// [`Current::number`], to be compared without the lock.
    number: AtomicU64,
    /// Held while settings of the database change.
    changing: Mutex<()>,
    /// The plans that connections keep themselves.
    holders: Mutex<Vec<Weak<dyn HoldsPlans>>>,
}

/// The settings of the database as they are now.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) settings: DatabaseSettings,
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// The origins of values that are not at their default.
    pub(crate) origins: BTreeMap<String, SettingOrigin>,
    /// Number of changes.
    pub(crate) number: u64,
}

/// The settings that the database was opened with, for `RESET`.
pub(crate) struct Start {
    /// Those under `warpcube.`.
    pub(crate) settings: Settings,
    /// Those of DataFusion that were given.
    pub(crate) others: BTreeMap<String, String>,
    /// The origins of all that were given.
    pub(crate) origins: BTreeMap<String, SettingOrigin>,
}

/// A connection's own plans, which hold tables with their rows.
pub(crate) trait HoldsPlans: Send + Sync {
    /// Drops plans of older generations of the catalog.
    fn drop_stale(&self, generation: u64);
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("settings", &self.current().settings).finish_non_exhaustive()
    }
}

impl Database {
    /// This database, without keeping it open.
    pub fn downgrade(&self) -> WeakDatabase {
        WeakDatabase(Arc::downgrade(&self.shared))
    }

    /// Opens a database.
    ///
    /// # Errors
    /// A setting that does not exist or does not take its value (named with its origin), or a device that is insisted
    /// on and cannot be opened.
    pub fn open(options: DatabaseOptions) -> Result<Database> {
        let mirror: Arc<Mirror> = Arc::default();
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_extension(Arc::new(FileMemory::new(mirror.clone())))
            .with_extension(Arc::new(TextCasts { of_array: read_texts, of_expr: cast_of_text }));
        let mut settings = Settings::default();
        let mut origins = BTreeMap::new();
        let mut choice = RuntimeChoice::default();
        let mut assignments = options.assignments;
        let kept = options.folder.map(|folder| KeptCatalog::open(&folder, is_read_only(&assignments)));
        let kept = kept.transpose()?.map(Arc::new);
        if let Some(kept) = &kept {
            let origin = SettingOrigin::Catalog(kept.folder().to_path_buf());
            let assignment = |(name, value)| Assignment { name, value, origin: origin.clone() };
            assignments.extend(kept.settings().into_iter().map(assignment));
        }
        assignments.sort_by(|a, b| a.origin.cmp(&b.origin));
        first_options(config.options_mut());
        let mut others = BTreeMap::new();
        for Assignment { name, value, origin } in assignments {
            let set = if name.starts_with("warpcube.") {
                settings.assign(&name, &value)
            } else {
                others.insert(name.clone(), value.clone());
                match choice.take(&name, &value) {
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
        let mut runtime = runtime::build(&settings.database, mirror.clone())?;
        for (name, value) in choice.into_values() {
            let set = runtime::set(&runtime, &name, &value, &settings.database);
            runtime = set.map_err(|error| {
                let error = bad_value(&name, &value, &error);
                origins.get(&name).map_or(error.clone(), |origin| error.with_origin(origin))
            })?;
        }

        let engines = Arc::new(Engines::new(device.clone()));
        let cubes = Arc::new(Cubes::new(engines.clone()));
        let header = HeaderSaid(origins.contains_key(HEADER_NAME));
        let config = config
            .with_extension(cubes.clone())
            .with_extension(Arc::new(header))
            .with_option_extension(settings.clone());
        let planner = Arc::new(DevicePlanner::new(engines.clone()));
        let types = Arc::new(mend::TypeNames::of(config.options()));
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.clone())
            .with_default_features()
            .with_expr_planners(mend::expr_planners())
            .with_type_planner(types)
            .with_analyzer_rules(mend::analyzer_rules())
            .with_optimizer_rules(mend::optimizer_rules())
            .with_physical_optimizer_rules(mend::physical_optimizer_rules())
            .with_physical_optimizer_rule(Arc::new(SortedByDevice))
            .with_query_planner(planner.clone())
            .with_file_formats(text_formats::factories());
        for (name, factory) in catalog::table_factories() {
            builder = builder.with_table_factory(name, factory);
        }
        let context = SessionContext::new_with_state(builder.build());
        context.register_udtf(CubeFunction::NAME, Arc::new(CubeFunction::new(cubes.clone())));
        context.register_udtf(catalog::SniffCsv::NAME, Arc::new(catalog::SniffCsv));
        let registry: Arc<Registry> = Arc::default();
        context.register_udtf(catalog::QueryLog::NAME, Arc::new(catalog::QueryLog::new(&registry)?));
        for function in catalog::FileContents::ALL {
            context.register_udtf(function.name(), Arc::new(function));
        }
        mend::register(&context);
        let of_database = origins.iter().filter(|(name, _)| owner(name) == Owner::Database);
        let tables = Common::new(&runtime.memory_pool);
        let current = Current {
            settings: settings.database.clone(),
            runtime,
            origins: of_database.map(|(name, origin)| (name.clone(), origin.clone())).collect(),
            number: 0,
        };
        let shared = Shared {
            catalogs: Arc::new(Catalogs::new(tables, kept.as_ref())),
            kept_catalog: kept,
            device,
            tables: EngineTables::new(engines),
            planner,
            cubes,
            mirror,
            registry,
            kept: KeptPlans::default(),
            start: Start { settings, others, origins },
            first: context.state(),
            global: RwLock::default(),
            current: RwLock::new(current),
            number: AtomicU64::new(0),
            changing: Mutex::default(),
            holders: Mutex::default(),
        };
        Ok(Database { shared: Arc::new(shared) })
    }

    /// The names of all tables and views, and of the columns of each.
    pub fn tables(&self) -> Vec<(String, Vec<String>)> {
        self.shared.catalogs.describe()
    }

    /// Puts a statement of a session into the registry before a connection executes it, as one that waits for its turn.
    /// The text is that which lists and logs show, without the secrets that they find.
    pub fn register_statement(
        &self,
        session: Option<Arc<str>>,
        text: &str,
        report: &Arc<StatementReport>,
    ) -> Registration {
        let log_max = self.shared.current.read().settings.query_log;
        self.shared.registry.register(session, text, report, log_max)
    }

    /// Counts of the statements of all connections.
    pub fn statement_counts(&self) -> StatementCounts {
        self.shared.registry.counts()
    }

    /// Grows whenever a name of the catalog may mean something else, or a table may hold other rows, than before.
    pub fn catalog_generation(&self) -> u64 {
        self.shared.catalogs.generation()
    }

    /// A copy of the state that a connection begins with.
    pub(crate) fn first_state(&self) -> SessionState {
        self.shared.first.clone()
    }

    /// The settings of the database.
    pub(crate) fn current(&self) -> Current {
        self.shared.current.read().clone()
    }

    /// The number of changes to the settings of the database.
    pub(crate) fn number(&self) -> u64 {
        self.shared.number.load(Ordering::Acquire)
    }

    /// Has plans that a connection keeps dropped with those of the database.
    pub(crate) fn hold(&self, holder: Weak<dyn HoldsPlans>) {
        let mut holders = self.shared.holders.lock();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// Drops plans of older generations of the catalog, once a generation: they hold tables, and tables in memory hold
    /// their rows.
    pub(crate) fn drop_stale(&self, generation: u64) {
        if self.shared.kept.drop_stale(generation) {
            let holders: Vec<_> = self.shared.holders.lock().iter().filter_map(Weak::upgrade).collect();
            holders.iter().for_each(|holder| holder.drop_stale(generation));
            self.shared.catalogs.drop_stale();
        }
    }
}

/// Whether assignments, of which the one of the highest origin counts, have sessions that are read-only.
fn is_read_only(assignments: &[Assignment]) -> bool {
    let of_setting = assignments.iter().filter(|assignment| assignment.name == "warpcube.read_only");
    // Of several of one origin the last one counts.
    let last = of_setting.max_by(|a, b| a.origin.cmp(&b.origin));
    last.is_some_and(|assignment| assignment.value.parse().is_ok_and(ReadOnly::is_on))
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.planner.background().close();
    }
}
