//! What planning knows of the tables a statement names: identity, version and rows.
//!
//! Files: the version is a snapshot of names, sizes and times, taken once a statement. Memory tables: the version that
//! the statement was planned on, which is what it reads.
//! Any other provider may change without notice and gets a version of its own in every statement.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableSource};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use warpcube_engine::{Overflow, TopKAlgorithm};

use super::derived::DerivedColumn;
use super::shared_tables::SharedTables;
use super::{Placer, Refusals};
use crate::catalog::{FileMemory, FileSnapshot, listing_of};
use crate::cubes::CubeTable;
use crate::memory_table::MemoryTable;
use crate::row_groups::ParquetFiles;
use crate::shared::SharedTable;
use crate::values::FloatSums;
use crate::walk::PlanWalk;

/// A table of a statement.
#[derive(Debug)]
pub(crate) struct TableInfo {
    /// Name for people.
    pub(crate) name: String,
    /// The table.
    pub(crate) provider: Arc<dyn TableProvider>,
    /// Identity across statements.
    pub(crate) key: String,
    /// Version of the content.
    pub(crate) version: String,
    /// Rows, where they are known.
    pub(crate) rows: Option<u64>,
    /// Its files, if it is made of Parquet files of this machine alone.
    pub(crate) parquet: Option<Arc<ParquetFiles>>,
    /// Columns derived from its own.
    pub(crate) derived: Vec<DerivedColumn>,
}

impl TableInfo {
    /// The table's columns, and behind them those derived from them, by number.
    pub(crate) fn schema(&self) -> SchemaRef {
        let own = self.provider.schema();
        let Some(last) = self.derived.iter().map(|derived| derived.number).max() else { return own };
        // Columns between them are other statements' and not read.
        let unread = || Arc::new(Field::new("", DataType::Null, true));
        let field = |number: usize| match own.fields().get(number) {
            Some(field) => field.clone(),
            None => self.derived(number).map_or_else(unread, |derived| derived.field.clone()),
        };
        Arc::new(Schema::new((0..=last).map(field).collect::<Vec<_>>()))
    }

    /// The column of this number, if it is derived from another.
    pub(crate) fn derived(&self, number: usize) -> Option<&DerivedColumn> {
        self.derived.iter().find(|derived| derived.number == number)
    }

    /// The table with another column.
    pub(super) fn with_derived(&self, derived: DerivedColumn) -> TableInfo {
        TableInfo {
            name: self.name.clone(),
            provider: self.provider.clone(),
            key: self.key.clone(),
            version: self.version.clone(),
            rows: self.rows,
            parquet: self.parquet.clone(),
            derived: self.derived.iter().cloned().chain([derived]).collect(),
        }
    }

    /// Whether both are one table in one version.
    pub(crate) fn is_same(&self, other: &TableInfo) -> bool {
        (&self.key, &self.version) == (&other.key, &other.version)
    }
}

/// Marks a configuration under which each aggregation is a fragment of its own.
pub(crate) struct AggregationsApart;

/// The tables of a statement by the address of their source.
#[derive(Debug, Default)]
pub(crate) struct TableFacts {
    tables: HashMap<usize, Arc<TableInfo>>,
    /// Fragments known not to fit the device.
    pub(crate) refusals: Arc<Refusals>,
    /// The settings on which it depends whether a fragment fits.
    pub(crate) under: String,
    /// The session's settings, which functions may ask.
    pub(crate) options: Arc<ConfigOptions>,
    /// How floats are added up.
    pub(crate) float_sums: FloatSums,
    /// What integers do that overflow.
    pub(crate) overflow: Overflow,
    /// Tables that are computed once.
    pub(crate) shared: SharedTables,
    /// Whether aggregations stay apart, each a fragment of its own.
    pub(crate) apart: bool,
    /// The algorithm of top-k that was asked for.
    pub(crate) topk: Option<TopKAlgorithm>,
    /// What decides where fragments run; none if they run on the device wherever they can.
    pub(crate) placer: Option<Arc<dyn Placer>>,
}

impl TableFacts {
    /// The table of a scan.
    pub(crate) fn get(&self, source: &Arc<dyn TableSource>) -> Option<&Arc<TableInfo>> {
        self.tables.get(&address(source))
    }
}

fn address<T: ?Sized>(source: &Arc<T>) -> usize {
    Arc::as_ptr(source).cast::<()>() as usize
}

/// Looks at all tables that a plan scans.
pub(crate) async fn describe_tables(plan: &LogicalPlan, state: &SessionState) -> Result<TableFacts> {
    let mut scans: Vec<(String, Arc<dyn TableSource>)> = Vec::new();
    plan.apply_nested(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            scans.push((scan.table_name.table().to_string(), scan.source.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut facts = TableFacts { options: state.config_options().clone(), ..TableFacts::default() };
    for (name, source) in scans {
        if facts.get(&source).is_some() {
            continue;
        }
        let Ok(provider) = source_as_provider(&source) else { continue };
        // What a recursive query has found so far, the rows that a statement changes and shared tables are their
        // executor's alone.
        if provider.is::<CteWorkTable>()
            || provider.is::<SharedTable>()
            || provider.downcast_ref::<MemoryTable>().is_some_and(|table| table.is_of_running_statement())
        {
            continue;
        }
        let info = describe_table(name, provider, state).await?;
        facts.tables.insert(address(&source), Arc::new(info));
    }
    Ok(facts)
}

/// The version of a table's content now. Of tables over files alone it may be another than when they were described.
pub(crate) async fn version_now(table: &TableInfo, state: &SessionState) -> Result<String> {
    match listing_of(table.provider.as_ref()).is_some() {
        true => Ok(identity(table.provider.as_ref(), &table.provider, state).await?.1),
        false => Ok(table.version.clone()),
    }
}

/// Looks at one table.
pub(crate) async fn describe_table(
    name: String,
    provider: Arc<dyn TableProvider>,
    state: &SessionState,
) -> Result<TableInfo> {
    let (key, version, parquet) = identity(provider.as_ref(), &provider, state).await?;
    let rows = match parquet.as_ref().and_then(|files| files.rows()) {
        Some(known) => Some(known),
        None => rows(provider.as_ref(), state).await,
    };
    parquet.iter().zip(rows).for_each(|(files, rows)| files.note_rows(rows));
    Ok(TableInfo { name, provider, key, version, rows, parquet, derived: Vec::new() })
}

async fn identity(
    table: &dyn TableProvider,
    handle: &Arc<dyn TableProvider>,
    state: &SessionState,
) -> Result<(String, String, Option<Arc<ParquetFiles>>)> {
    if let Some(listing) = listing_of(table) {
        let snapshot = FileSnapshot::take(state.runtime_env(), listing).await?;
        let paths: Vec<&str> = listing.table_paths().iter().map(|path| path.as_str()).collect();
        let options = listing.options();
        let key = format!("files {paths:?} {:?} {:?}", options.format, options.table_partition_cols);
        // The same in every process, since columns may be kept for the next one; maps of metadata print in any order.
        let schema = table.schema();
        let columns = schema.fields().iter().map(|field| (field.name(), field.data_type(), field.is_nullable()));
        let version = format!("{snapshot:?} {:?}", columns.collect::<Vec<_>>());
        let memory = state.config().get_extension::<FileMemory>();
        let is_plain = options.format.get_ext() == "parquet" && options.table_partition_cols.is_empty();
        let files = memory.zip(snapshot.on_disk().filter(|_| is_plain));
        let parquet =
            files.map(|(memory, paths)| memory.parquet(&key, &version, || ParquetFiles::new(paths, table.schema())));
        return Ok((key, version, parquet));
    }
    if let Some(memory) = table.downcast_ref::<MemoryTable>() {
        let (key, version) = memory.key_and_version();
        return Ok((key, version, None));
    }
    if let Some(cube) = table.downcast_ref::<CubeTable>() {
        let (key, version) = cube.key_and_version();
        return Ok((key, version, None));
    }
    static STATEMENTS: AtomicU64 = AtomicU64::new(0);
    let statement = STATEMENTS.fetch_add(1, Ordering::Relaxed);
    Ok((format!("provider {:x}", address(handle)), format!("statement {statement}"), None))
}

/// Rows by the statistics of a scan; files tell them in their footers, which are cached.
async fn rows(table: &dyn TableProvider, state: &SessionState) -> Option<u64> {
    let known = |statistics: &datafusion::common::Statistics| statistics.num_rows.get_value().copied();
    if let Some(rows) = table.statistics().as_ref().and_then(known) {
        return Some(rows as u64);
    }
    let session: &dyn Session = state;
    let plan = table.scan(session, Some(&Vec::new()), &[], None).await.ok()?;
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    known(&statistics).map(|rows| rows as u64)
}
