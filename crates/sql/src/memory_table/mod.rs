//! Tables in memory: versions of immutable batches.
//!
//! A table has one current [`Version`]. A name in a statement gives the table at its current version ([`MemoryTable`]),
//! which all operators of the plan read, however long they wait. INSERT appends; DELETE, UPDATE and MERGE are written
//! in the syntax tree as INSERT into a hidden table ([`Role`]) of the rows that a SELECT over row numbers gives. Each
//! collects its rows while it is executed and puts one new version in place at its end ([`sink`]).
//!
//! Invariants: a batch of a version has the table's schema and keeps its rules ([`rules`]); a statement that fails, or
//! is cancelled or dropped before its version is in place, has changed nothing; the catalog's generation grows with
//! each version.

mod keys;
mod ledger;
mod returning;
mod rules;
mod sink;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::{Constraint, Constraints};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;
use parking_lot::{Mutex, RwLock};
use tokio::sync::OwnedMutexGuard;

use crate::error::{Result, SqlError};
use keys::KeyIndex;
pub(crate) use ledger::{Charge, Ledger};
pub(crate) use returning::Returning;
pub(crate) use rules::{Check, Key, Rules};
use sink::RowsSink;
pub(crate) use versions::Version;

/// Begins the names of hidden tables and columns; no name that is typed has it.
const MARK: char = '\u{2063}';
/// The column of row numbers.
pub(crate) const ROW: &str = "\u{2063}row";
/// The column that says what becomes of a row.
pub(crate) const ACTION: &str = "\u{2063}action";

/// What becomes of a row of a table of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Delete = 0,
    Update = 1,
    Insert = 2,
}

/// What a name of a table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The table.
    Rows,
    /// The table with a last column of row numbers, [`ROW`].
    Numbered,
    /// What DELETE inserts into: numbers of rows.
    Deleted,
    /// What UPDATE and MERGE insert into: a row's number, what becomes of it ([`Action`]), and the new row.
    Changed,
    /// The rows that the running statement changes, of which RETURNING is a SELECT.
    Returned,
}

/// The hidden roles by the words of their names.
const HIDDEN: [(Role, &str); 4] = [
    (Role::Numbered, "rows of "),
    (Role::Deleted, "rows out of "),
    (Role::Changed, "changes of "),
    (Role::Returned, "changed rows of "),
];

impl Role {
    /// The name of a table in this role.
    pub(crate) fn name_of(self, table: &str) -> String {
        match HIDDEN.iter().find(|(role, _)| *role == self) {
            Some((_, words)) => format!("{MARK}{words}{table}"),
            None => table.to_string(),
        }
    }

    /// The table and the role that a hidden name stands for.
    pub(crate) fn of_name(name: &str) -> Option<(Role, &str)> {
        let rest = name.strip_prefix(MARK)?;
        HIDDEN.iter().find_map(|(role, words)| Some((*role, rest.strip_prefix(words)?)))
    }
}

/// A column's default value.
#[derive(Debug, Clone)]
pub(crate) struct ColumnDefault {
    pub(crate) planned: Expr,
    pub(crate) written: SqlExpr,
}

/// What the handles of one table share.
#[derive(Debug)]
struct Shared {
    /// Names the table in every version and every process's life.
    number: u64,
    name: String,
    schema: SchemaRef,
    rules: Rules,
    defaults: BTreeMap<String, ColumnDefault>,
    /// What the optimiser may believe: the primary key.
    believed: Constraints,
    current: RwLock<Arc<Version>>,
    /// Held by a statement that changes rows or replaces the table, from before it is planned, by INSERT while it
    /// appends.
    writers: Arc<tokio::sync::Mutex<()>>,
    /// The keys of the current version, for tables that have unique ones.
    keys: Mutex<Option<KeyIndex>>,
    /// Whether a name of the catalog stands for the table; a change of it and a version that is put in place exclude
    /// each other by the lock of `current`.
    is_listed: AtomicBool,
    /// Whether a program gives the table to a statement, which reads it and does not write it.
    is_given: AtomicBool,
    common: Common,
}

/// What the tables of a database share.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    /// The catalog's generation.
    pub(crate) generation: Arc<AtomicU64>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Common {
    /// What tables share that are charged to a pool.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Common {
        Common { generation: Arc::default(), ledger: Arc::new(Ledger::new(pool)) }
    }

    /// Notes that a name may mean something else than before.
    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Batches with the charges of their memory.
#[derive(Debug, Default)]
pub(crate) struct Charged {
    // Dropped before the batches.
    pub(crate) charges: Vec<Arc<Charge>>,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Charged {
    pub(crate) fn push(&mut self, batch: RecordBatch, charge: Arc<Charge>) {
        self.charges.push(charge);
        self.batches.push(batch);
    }
}

/// Held while a statement changes rows of a table.
#[derive(Debug)]
pub(crate) struct WriteLock {
    table: u64,
    _guard: OwnedMutexGuard<()>,
}

/// A table in memory at one version.
#[derive(Debug, Clone)]
pub(crate) struct MemoryTable {
    shared: Arc<Shared>,
    version: Arc<Version>,
    role: Role,
    schema: SchemaRef,
}

impl MemoryTable {
    /// A table of these rows, which have been admitted by its rules ([`Rules::admit`]).
    ///
    /// # Errors
    /// Two rows of one key, or no room for the keys.
    pub(crate) fn new(
        name: &str,
        rules: Rules,
        defaults: BTreeMap<String, ColumnDefault>,
        partitions: Vec<Charged>,
        common: Common,
    ) -> Result<MemoryTable> {
        static TABLES: AtomicU64 = AtomicU64::new(0);
        let version = Arc::new(Version::new(partitions));
        let mut keys = KeyIndex::of(&rules, &version, &common.ledger, &|| Ok(()))?;
        keys.as_mut().map_or(Ok(()), |keys| keys.charge(name))?;
        let schema = rules.schema().clone();
        let primary = rules.keys().iter().find(|key| key.is_primary);
        let believed = primary.map(|key| Constraint::PrimaryKey(key.columns.clone()));
        let shared = Shared {
            number: TABLES.fetch_add(1, Ordering::Relaxed),
            name: name.to_string(),
            schema: schema.clone(),
            rules,
            defaults,
            believed: Constraints::new_unverified(believed.into_iter().collect()),
            current: RwLock::new(version.clone()),
            writers: Arc::default(),
            keys: Mutex::new(keys),
            is_listed: AtomicBool::new(true),
            is_given: AtomicBool::new(false),
            common,
        };
        Ok(MemoryTable { shared: Arc::new(shared), version, role: Role::Rows, schema })
    }

    /// A table of the rows that an embedding program registered, as they are now.
    ///
    /// # Errors
    /// [`SqlError::Memory`] if the pool has no room for them, and for a table that is being written.
    pub(crate) fn of_registered(name: &str, table: &MemTable, common: Common) -> Result<MemoryTable> {
        let mut partitions = Vec::new();
        for partition in &table.batches {
            let mut charged = Charged::default();
            let batches = partition.try_read();
            let batches = batches.map_err(|_| SqlError::Execution(format!("table '{name}' is being written")))?;
            for batch in batches.iter() {
                charged.push(batch.clone(), Arc::new(common.ledger.charge(name, batch)?));
            }
            partitions.push(charged);
        }
        let rules = Rules::of(name, table.schema());
        MemoryTable::new(name, rules, BTreeMap::new(), partitions, common)
    }

    /// The table at its current version, in a role.
    pub(crate) fn in_role(&self, role: Role) -> MemoryTable {
        let number = Field::new(ROW, DataType::UInt64, true);
        let own = &self.shared.schema;
        let schema = match role {
            Role::Rows | Role::Returned => own.clone(),
            Role::Numbered => with_fields(&[], own, &[number]),
            Role::Deleted => Arc::new(Schema::new(vec![number])),
            Role::Changed => with_fields(&[number, Field::new(ACTION, DataType::Int64, true)], own, &[]),
        };
        MemoryTable { shared: self.shared.clone(), version: self.shared.current.read().clone(), role, schema }
    }

    /// Whether no later version has taken the place of this one.
    pub(crate) fn is_current(&self) -> bool {
        self.version.number == self.shared.current.read().number
    }

    /// Notes whether a name of the catalog stands for the table. One that was dropped or replaced takes no rows: they
    /// would be lost.
    pub(crate) fn be_listed(&self, is_listed: bool) {
        let _not_changed = self.shared.current.write();
        self.shared.is_listed.store(is_listed, Ordering::Relaxed);
    }

    /// Notes that a program gives the table to a statement, and nothing of the catalog stands for it.
    pub(crate) fn be_given(&self) {
        self.be_listed(false);
        self.shared.is_given.store(true, Ordering::Relaxed);
    }

    /// Whether a name of the catalog stands for the table.
    pub(crate) fn is_listed(&self) -> bool {
        self.shared.is_listed.load(Ordering::Relaxed)
    }

    /// The batches of this version, by partition.
    #[cfg(test)]
    pub(crate) fn partitions(&self) -> &[Vec<RecordBatch>] {
        &self.version.partitions
    }

    /// The identity of the table and of its version, across all tables of the process.
    pub(crate) fn key_and_version(&self) -> (String, String) {
        let numbered = if self.role == Role::Numbered { ", numbered" } else { "" };
        (format!("memory {}{numbered}", self.shared.number), format!("version {}", self.version.number))
    }

    /// The columns of each key.
    pub(crate) fn keys(&self) -> Vec<Vec<String>> {
        let name = |column: &usize| self.shared.schema.field(*column).name().clone();
        self.shared.rules.keys().iter().map(|key| key.columns.iter().map(name).collect()).collect()
    }

    /// The columns of each key, and whether it is the primary one.
    pub(crate) fn declared_keys(&self) -> Vec<(bool, Vec<String>)> {
        self.shared.rules.keys().iter().map(|key| key.is_primary).zip(self.keys()).collect()
    }

    /// The CHECKs as they were written.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &str> {
        self.shared.rules.checks().iter().map(|check| check.text.as_str())
    }

    /// The names of columns, and whether they may be NULL.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (String, bool)> {
        self.shared.schema.fields().iter().map(|field| (field.name().clone(), field.is_nullable()))
    }

    /// The default of a column as it was written.
    pub(crate) fn default_of(&self, column: &str) -> Option<&SqlExpr> {
        self.shared.defaults.get(column).map(|default| &default.written)
    }

    /// Whether the rows that are inserted here change rows of the table.
    pub(crate) fn takes_changes(&self) -> bool {
        matches!(self.role, Role::Deleted | Role::Changed)
    }

    /// Whether the rows are those that the running statement changes, which are there while it runs.
    pub(crate) fn is_of_running_statement(&self) -> bool {
        self.role == Role::Returned
    }

    /// Waits until no other statement changes the table.
    pub(crate) async fn lock(&self) -> WriteLock {
        WriteLock { table: self.shared.number, _guard: self.shared.writers.clone().lock_owned().await }
    }

    /// The batches with the numbers of their rows.
    fn numbered(&self) -> DataFusionResult<Vec<Vec<RecordBatch>>> {
        let mut next = 0;
        let mut number = |batch: &RecordBatch| {
            let first = next;
            next += batch.num_rows() as u64;
            let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(first..next));
            let columns = batch.columns().iter().cloned().chain([numbers]).collect();
            Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
        };
        self.version.partitions.iter().map(|batches| batches.iter().map(&mut number).collect()).collect()
    }
}

impl WriteLock {
    /// Whether this is the lock of a table.
    pub(crate) fn is_of(&self, table: &MemoryTable) -> bool {
        self.table == table.shared.number
    }
}

fn with_fields(before: &[Field], schema: &SchemaRef, after: &[Field]) -> SchemaRef {
    let own = schema.fields().iter().map(|field| field.as_ref().clone());
    let fields: Vec<Field> = before.iter().cloned().chain(own).chain(after.iter().cloned()).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[async_trait]
impl TableProvider for MemoryTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        (self.role == Role::Rows).then_some(&self.shared.believed)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.shared.defaults.get(column).map(|default| &default.planned)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let numbered;
        let partitions = match self.role {
            Role::Rows => &self.version.partitions,
            Role::Numbered => {
                numbered = self.numbered()?;
                &numbered
            }
            Role::Returned => return returning::scan(self.schema(), projection),
            Role::Deleted | Role::Changed => return Err(SqlError::Unsupported("reading changes".into()).into()),
        };
        let source = MemorySourceConfig::try_new(partitions, self.schema(), projection.cloned())?;
        let source = source.with_show_sizes(state.config_options().explain.show_sizes);
        Ok(DataSourceExec::from_data_source(source))
    }

    /// Rows come in through a sink, when the plan is executed.
    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let refused = |what: &str| Err(SqlError::Unsupported(format!("{what} '{}'", self.shared.name)).into());
        if self.shared.is_given.load(Ordering::Relaxed) {
            return refused("INSERT into what is no table of the catalog,");
        }
        match (insert_op, self.role) {
            (InsertOp::Append, Role::Rows | Role::Deleted | Role::Changed) => {}
            (InsertOp::Append, Role::Numbered | Role::Returned) => return refused("INSERT with row numbers into"),
            (InsertOp::Overwrite, _) => return refused("INSERT OVERWRITE of the table in memory"),
            (InsertOp::Replace, _) => return refused("REPLACE INTO the table in memory"),
        }
        let (given, expected) = (input.schema().fields().len(), self.schema.fields().len());
        if given != expected {
            let reason = format!("{given} columns for table '{}', which has {expected}", self.shared.name);
            return Err(SqlError::Planning(reason).into());
        }
        let sink = RowsSink::new(self.shared.clone(), self.version.clone(), self.role, &self.schema);
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}
