//! Shared tables: one output of a plan, and many readers.
//!
//! DataFusion puts a copy of its plan in the place of each read of a table of WITH. Here a table that is read several
//! times, and is worth it ([`found`]), is computed once. In a logical plan [`With`] stands above the query and has the
//! plan of each shared table; each reader is a scan of a [`SharedTable`], which no rule looks into:
//!
//! ```text
//! With: few #1 (2 reads, an aggregation)
//!   Join: a.x = b.x                        the query
//!     SubqueryAlias: a
//!       TableScan: few #1 projection=[x]   a reader
//!     SubqueryAlias: b
//!       TableScan: few #1 projection=[x]   a reader
//!   SubqueryAlias: few #1                  the table, once
//!     Aggregate: …
//! ```
//!
//! A rule of the analyzer that puts a plan into several places gives it a name as tables of WITH have
//! ([`crate::syntax::TableOfWith::given`]), and its copies are shared likewise: subqueries of IN are.
//!
//! A rule of the optimiser ([`needs`]) leaves out columns that no reader reads and rows that every reader drops. The
//! plan of a shared table is planned for the CPU when its first reader is ([`planning`]); it runs when the first
//! reader asks for rows, and keeps all of them until the statement ends ([`output`]).
//!
//! Invariants: the tables of a [`With`] have different ids; a table reads no table that reads it.

mod branches;
mod exec;
mod found;
mod needs;
mod output;
mod planning;
mod sharing;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{TableType, source_as_provider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    DdlStatement, Expr, Extension, LogicalPlan, TableProviderFilterPushDown, TableScan, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;

use crate::walk::PlanWalk;

pub(crate) use found::other_rows;
pub(crate) use needs::NeededAlone;
pub(crate) use output::{Output, bytes_of};
pub(crate) use planning::physical;
pub(crate) use sharing::ShareTables;

/// A table that is computed once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(crate) struct Shared {
    /// What its readers find it by.
    pub(crate) id: usize,
    /// Its name, which is that of the alias at the root of its plan.
    pub(crate) name: String,
    /// Reads of it in the statement.
    pub(crate) reads: usize,
    /// Why it is computed once.
    pub(crate) why: String,
    /// Whether readers have to see the same rows, since a second run would give others.
    pub(crate) must: bool,
    /// Whether rows that every reader drops have been left out.
    pub(crate) filtered: bool,
    /// What computes it.
    pub(crate) plan: LogicalPlan,
}

/// A query over shared tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(crate) struct With {
    pub(crate) query: LogicalPlan,
    pub(crate) tables: Vec<Shared>,
}

impl With {
    /// The node that a plan is, if it is one.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<&With> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref()
    }

    /// What is to be known of the tables beside their plans: for each five numbers of 8 bytes (id, reads, flags, and
    /// the lengths of what follows), the name, and why it is shared.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Shared { id, name, reads, why, must, filtered, plan: _ } in &self.tables {
            let flags = usize::from(*must) | usize::from(*filtered) << 1;
            let numbers = [*id, *reads, flags, name.len(), why.len()];
            bytes.extend(numbers.iter().flat_map(|number| (*number as u64).to_le_bytes()));
            bytes.extend(name.bytes().chain(why.bytes()));
        }
        bytes
    }

    /// A node of such bytes and its inputs; none if they are not those of a node.
    pub(crate) fn from_bytes(mut bytes: &[u8], inputs: &[LogicalPlan]) -> Option<With> {
        let (query, plans) = inputs.split_first()?;
        let mut tables = Vec::with_capacity(plans.len());
        for plan in plans {
            let mut number = || {
                let (number, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                usize::try_from(u64::from_le_bytes(*number)).ok()
            };
            let (id, reads, flags, name, why) = (number()?, number()?, number()?, number()?, number()?);
            let mut text = |length| {
                let (text, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                String::from_utf8(text.to_vec()).ok()
            };
            let (name, why) = (text(name)?, text(why)?);
            let (must, filtered) = (flags & 1 != 0, flags & 2 != 0);
            tables.push(Shared { id, name, reads, why, must, filtered, plan: plan.clone() });
        }
        bytes.is_empty().then(|| With { query: query.clone(), tables })
    }

    /// The plan with this node at its root; the query alone if no table is shared.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        match self.tables.is_empty() {
            true => self.query,
            false => LogicalPlan::Extension(Extension { node: Arc::new(self) }),
        }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { name, reads, why, .. } = self;
        let times = if *reads == 1 { "read" } else { "reads" };
        write!(f, "{name} ({reads} {times}, {why})")
    }
}

impl UserDefinedLogicalNodeCore for With {
    fn name(&self) -> &str {
        "With"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        std::iter::once(&self.query).chain(self.tables.iter().map(|table| &table.plan)).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.query.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let tables: Vec<String> = self.tables.iter().map(Shared::to_string).collect();
        write!(f, "With: {}", tables.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let (Some(query), true) = (inputs.next(), exprs.is_empty() && inputs.len() == self.tables.len()) else {
            return Err(DataFusionError::Internal("a query over shared tables has other inputs".into()));
        };
        let with_plan = |(table, plan): (&Shared, LogicalPlan)| Shared { plan, ..table.clone() };
        Ok(With { query, tables: self.tables.iter().zip(inputs).map(with_plan).collect() })
    }

    /// The query's columns are those of the result; readers ask for those of tables.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all = |table: &Shared| (0..table.plan.schema().fields().len()).collect();
        Some(std::iter::once(output_columns.to_vec()).chain(self.tables.iter().map(all)).collect())
    }
}

/// What a reader of a shared table scans.
#[derive(Debug)]
pub(crate) struct SharedTable {
    /// The table's id.
    pub(crate) id: usize,
    /// Whether the table would have other rows if it were computed again.
    pub(crate) must: bool,
    /// The table's columns.
    pub(crate) schema: SchemaRef,
}

impl SharedTable {
    /// The shared table that a scan reads, if it reads one.
    pub(crate) fn of(scan: &TableScan) -> Option<Arc<SharedTable>> {
        let provider: Arc<dyn Any + Send + Sync> = source_as_provider(&scan.source).ok()?;
        provider.downcast().ok()
    }

    /// The id of the shared table that a plan scans, if it is a reader.
    pub(crate) fn read_by(plan: &LogicalPlan) -> Option<usize> {
        let LogicalPlan::TableScan(scan) = plan else { return None };
        SharedTable::of(scan).map(|table| table.id)
    }
}

#[async_trait]
impl TableProvider for SharedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// Filters stay above the readers; [`needs`] looks at them.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        planning::reader(self.id, state, projection).await
    }
}

/// Changes the query of a statement; statements that only keep it are left as they are.
fn in_query(plan: LogicalPlan, change: &mut dyn FnMut(LogicalPlan) -> Result<LogicalPlan>) -> Result<LogicalPlan> {
    let mut within = |input: Arc<LogicalPlan>| in_query(Arc::unwrap_or_clone(input), change).map(Arc::new);
    Ok(match plan {
        LogicalPlan::Explain(mut explain) => {
            explain.plan = within(explain.plan)?;
            LogicalPlan::Explain(explain)
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = within(analyze.input)?;
            LogicalPlan::Analyze(analyze)
        }
        LogicalPlan::Dml(mut dml) => {
            dml.input = within(dml.input)?;
            LogicalPlan::Dml(dml)
        }
        LogicalPlan::Copy(mut copy) => {
            copy.input = within(copy.input)?;
            LogicalPlan::Copy(copy)
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = within(table.input)?;
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table))
        }
        kept @ (LogicalPlan::Ddl(_) | LogicalPlan::Statement(_)) => kept,
        query => change(query)?,
    })
}

/// A statement's plan without its shared tables, and those.
pub(crate) fn split(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Shared>)> {
    let mut tables = Vec::new();
    let query = in_query(plan, &mut |plan| match With::of(&plan) {
        Some(with) => {
            tables = with.tables.clone();
            Ok(with.query.clone())
        }
        None => Ok(plan),
    })?;
    Ok((query, tables))
}

/// A statement's plan over shared tables.
pub(crate) fn over(plan: LogicalPlan, tables: Vec<Shared>) -> Result<LogicalPlan> {
    let mut tables = Some(tables);
    in_query(plan, &mut |query| Ok(With { query, tables: tables.take().unwrap_or_default() }.into_plan()))
}

/// A statement's plan with the shared tables of its parts at its root.
pub(crate) fn hoisted(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut tables: Vec<Shared> = Vec::new();
    let query = plan.transform_up_nested(|plan| match With::of(&plan) {
        Some(with) => {
            for table in &with.tables {
                if !tables.iter().any(|known| known.id == table.id) {
                    tables.push(table.clone());
                }
            }
            Ok(Transformed::yes(with.query.clone()))
        }
        None => Ok(Transformed::no(plan)),
    })?;
    over(query.data, tables)
}
