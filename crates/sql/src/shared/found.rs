//! Which tables of WITH are shared.
//!
//! Copies of a table are found by the name that [`crate::syntax`] gives to tables that are read more than once, and by
//! being equal: a view that a statement reads may have tables of the same name. A table is shared where it is read
//! twice or more and
//!
//! - would have other rows each time: it calls a volatile function, or has a LIMIT without an order;
//! - or does more than to filter and project rows: a second run would cost as much as the first. Filters and projected
//!   columns of readers go on to the tables that a cheap one reads, so that it is better copied;
//! - or says MATERIALIZED, then also where it is read once. NOT MATERIALIZED copies what may be copied.
//!
//! Of a UNION ALL the branches are looked at ([`super::branches`]).
//!
//! A table that refers to rows around it is copied, and so is one that reads the rows of the step of a recursive query
//! around it: both have other rows each time that they are read there. The rule looks at plans that are analysed: its
//! copies are equal, and the types of their columns are final.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias};

use super::{SharedTable, With};
use crate::syntax::TableOfWith;
use crate::walk::{PlanWalk, Walk};

/// A table of WITH in a plan.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) alias: TableReference,
    pub(super) plan: Arc<LogicalPlan>,
    pub(super) reads: usize,
    pub(super) cost: Cost,
}

/// The reasons to compute a table once.
#[derive(Debug, Clone, Default)]
pub(super) struct Cost {
    /// The reason; empty where there is none.
    pub(super) why: String,
    /// Whether a second run would give other rows.
    pub(super) must: bool,
    /// Whether one read is enough.
    pub(super) always: bool,
}

impl Found {
    /// The alias and the plan by which a copy is found.
    pub(super) fn is(&self, alias: &SubqueryAlias) -> bool {
        self.alias == alias.alias && self.plan == alias.input
    }

    pub(super) fn is_shared(&self) -> bool {
        !self.cost.why.is_empty() && (self.reads > 1 || self.cost.always)
    }
}

/// The tables of WITH in a plan, with the number of reads. What a table reads is counted once if it is computed once;
/// unions whose branches are tables themselves are copied.
pub(super) fn find(plan: &LogicalPlan, unions: &[Arc<LogicalPlan>]) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    plan.apply_nested(|plan| {
        let LogicalPlan::SubqueryAlias(alias) = plan else { return Ok(TreeNodeRecursion::Continue) };
        let Some(table) = TableOfWith::of(alias.alias.table()) else { return Ok(TreeNodeRecursion::Continue) };
        if let Some(known) = found.iter_mut().find(|known| known.is(alias)) {
            known.reads += 1;
            let is_copied = known.cost.why.is_empty();
            return Ok(if is_copied { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump });
        }
        let is_copied = unions.contains(&alias.input);
        let cost = if is_copied { Cost::default() } else { cost(&alias.input, table.materialized)? };
        found.push(Found { alias: alias.alias.clone(), plan: alias.input.clone(), reads: 1, cost });
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The reasons to compute a plan once.
pub(super) fn cost(plan: &LogicalPlan, materialized: Option<bool>) -> Result<Cost> {
    if !plan.all_out_ref_exprs().is_empty() || reads_step(plan, &mut Vec::new())? {
        return Ok(Cost::default());
    }
    let (must, mut costly) = (other_rows(plan)?, None);
    plan.apply_nested(|plan| {
        let what = match plan {
            LogicalPlan::Limit(_) => Some("LIMIT"),
            LogicalPlan::Aggregate(_) => Some("an aggregation"),
            LogicalPlan::Distinct(_) => Some("DISTINCT"),
            LogicalPlan::Join(_) => Some("a join"),
            LogicalPlan::Window(_) => Some("a window function"),
            LogicalPlan::Sort(_) => Some("ORDER BY"),
            LogicalPlan::RecursiveQuery(_) => Some("WITH RECURSIVE"),
            LogicalPlan::Unnest(_) => Some("UNNEST"),
            LogicalPlan::Subquery(_) => Some("a subquery"),
            _ => None,
        };
        costly = costly.or(what);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let why = match (&must, costly, materialized) {
        (Some(what), _, _) => what.clone(),
        (None, _, Some(false)) => String::new(),
        (None, _, Some(true)) => "MATERIALIZED".to_string(),
        (None, what, None) => what.unwrap_or_default().to_string(),
    };
    Ok(Cost { why, must: must.is_some(), always: materialized == Some(true) })
}

/// Whether a plan reads the rows of a step of a recursive query that it does not have itself; `own` are those around
/// the plan that it is a part of.
fn reads_step(plan: &LogicalPlan, own: &mut Vec<String>) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|plan| {
        match plan {
            LogicalPlan::RecursiveQuery(query) => {
                found |= reads_step(&query.static_term, own)?;
                own.push(query.name.clone());
                found |= reads_step(&query.recursive_term, own)?;
                own.pop();
                return Ok(TreeNodeRecursion::Jump);
            }
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let step = provider.downcast_ref::<CteWorkTable>();
                found |= step.is_some_and(|step| !own.iter().any(|name| name == step.name()));
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The part of a plan that gives other rows each time, if there is one: a volatile function, or a LIMIT of rows in no
/// order.
pub(crate) fn other_rows(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found: Option<String> = None;
    plan.apply_nested(|plan| {
        let is_limit = match plan {
            LogicalPlan::Limit(limit) => !is_ordered(&limit.input),
            LogicalPlan::TableScan(scan) => scan.fetch.is_some(),
            _ => false,
        };
        if is_limit {
            found.get_or_insert_with(|| "LIMIT without ORDER BY".to_string());
        }
        if let LogicalPlan::TableScan(scan) = plan
            && SharedTable::of(scan).is_some_and(|table| table.must)
        {
            found.get_or_insert_with(|| format!("{} that has other rows each time", scan.table_name));
        }
        plan.apply_exprs(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(function) = expr
                    && expr.is_volatile_node()
                {
                    found.get_or_insert_with(|| format!("{}()", function.name()));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Whether rows come in an order that a LIMIT above takes the first of.
fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Limit(_) => {
            plan.inputs().into_iter().all(is_ordered)
        }
        _ => false,
    }
}

/// A plan with copies of the tables that its views share: all readers of a statement share them.
pub(super) fn with_copies(plan: LogicalPlan) -> Result<LogicalPlan> {
    let copied = plan.transform_down_nested(|plan| {
        let Some(With { query, tables }) = With::of(&plan) else { return Ok(Transformed::no(plan)) };
        let copied = query.clone().transform_down_nested(|plan| {
            let id = SharedTable::read_by(&plan);
            Ok(match id.and_then(|id| tables.iter().find(|table| table.id == id)) {
                // What it reads may be shared, too.
                Some(table) => Transformed::yes(table.plan.clone()),
                None => Transformed::no(plan),
            })
        })?;
        Ok(Transformed::yes(copied.data))
    })?;
    Ok(copied.data)
}

/// A plan with readers in the place of shared tables. If it is the plan of one, the alias at its root stays.
pub(super) fn with_readers(plan: LogicalPlan, is_table: bool, shared: &[(usize, &Found)]) -> Result<LogicalPlan> {
    let mut is_root = is_table;
    let read = plan.transform_down_nested(|plan| {
        if std::mem::take(&mut is_root) {
            return Ok(Transformed::no(plan));
        }
        let LogicalPlan::SubqueryAlias(alias) = &plan else { return Ok(Transformed::no(plan)) };
        if let Some((id, found)) = shared.iter().find(|(_, found)| found.is(alias)) {
            let schema = alias.schema.inner().clone();
            let table = provider_as_source(Arc::new(SharedTable { id: *id, must: found.cost.must, schema }));
            let scan = LogicalPlanBuilder::scan(alias.alias.clone(), table, None)?.build()?;
            return Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump));
        }
        // A copy is not shown under the name that told it from others.
        let mut input = &alias.input;
        while let LogicalPlan::SubqueryAlias(inner) = input.as_ref()
            && TableOfWith::of(inner.alias.table()).is_some()
            && !shared.iter().any(|(_, found)| found.is(inner))
        {
            input = &inner.input;
        }
        if Arc::ptr_eq(input, &alias.input) {
            return Ok(Transformed::no(plan));
        }
        let alone = SubqueryAlias::try_new(input.clone(), alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alone)))
    })?;
    Ok(read.data)
}
