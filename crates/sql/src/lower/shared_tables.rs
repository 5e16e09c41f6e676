//! The shared tables of a statement, and which of them a part for the device has to itself.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::LogicalPlan;

use super::Reason;
use super::columns::text;
use crate::shared::{Shared, SharedTable, With};
use crate::walk::{PlanWalk, Walk};

/// The shared tables of a statement.
#[derive(Debug, Default)]
pub(crate) struct SharedTables {
    pub(super) tables: Vec<Shared>,
    /// How many scans read each of them.
    readers: BTreeMap<usize, usize>,
    /// Those that the part which is looked at has all readers of.
    pub(super) within: RefCell<BTreeSet<usize>>,
}

impl SharedTables {
    /// The shared tables of a query.
    pub(super) fn of(query: &LogicalPlan, tables: Vec<Shared>) -> PlanResult<SharedTables> {
        let mut readers = BTreeMap::new();
        for plan in std::iter::once(query).chain(tables.iter().map(|table| &table.plan)) {
            plan.apply_nested(|plan| Ok(count(plan, &mut readers)))?;
        }
        Ok(SharedTables { tables, readers, within: RefCell::default() })
    }

    /// Looks at what becomes one fragment. Its scalar subqueries are others.
    pub(super) fn look_at(&self, part: &LogicalPlan) -> Result<(), Reason> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let (mut within, mut readers) = (BTreeSet::new(), BTreeMap::new());
        part.apply(|plan| Ok(count(plan, &mut readers))).map_err(text)?;
        loop {
            let is_next = |table: &&Shared| {
                let all = self.readers.get(&table.id);
                all.is_some() && readers.get(&table.id) == all && !within.contains(&table.id)
            };
            let Some(next) = self.tables.iter().find(is_next) else { break };
            within.insert(next.id);
            // What a table reads is read within the part, too.
            next.plan.apply(|plan| Ok(count(plan, &mut readers))).map_err(text)?;
        }
        self.within.replace(within);
        Ok(())
    }

    /// A plan over those of the tables that it reads.
    pub(super) fn below(&self, query: LogicalPlan) -> PlanResult<LogicalPlan> {
        let tables = self.read_by(&query)?;
        Ok(With { query, tables }.into_plan())
    }

    /// The tables that a plan reads, and those that these read.
    pub(super) fn read_by(&self, plan: &LogicalPlan) -> PlanResult<Vec<Shared>> {
        let mut readers = BTreeMap::new();
        if !self.tables.is_empty() {
            plan.apply_nested(|plan| Ok(count(plan, &mut readers)))?;
        }
        let mut read: Vec<&Shared> = Vec::new();
        while let Some(next) = self
            .tables
            .iter()
            .find(|table| readers.contains_key(&table.id) && !read.iter().any(|known| known.id == table.id))
        {
            read.push(next);
            next.plan.apply_nested(|plan| Ok(count(plan, &mut readers)))?;
        }
        Ok(read.into_iter().cloned().collect())
    }
}

fn count(plan: &LogicalPlan, readers: &mut BTreeMap<usize, usize>) -> TreeNodeRecursion {
    if let Some(id) = SharedTable::read_by(plan) {
        *readers.entry(id).or_default() += 1;
    }
    TreeNodeRecursion::Continue
}
