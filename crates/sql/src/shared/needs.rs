//! What no reader of a shared table needs is not computed.
//!
//! The optimiser moves columns and filters of a reader to its scan. A column that no scan has is left out of the
//! table; where all scans have filters, the table keeps the rows that one of them keeps. The optimiser goes over the
//! plan again and moves both further down. Filters of the readers stay where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection, TableScan, TableScanBuilder};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::{Shared, SharedTable, With, in_query};
use crate::walk::{PlanWalk, Walk};

/// The rule that leaves out of shared tables what no reader needs.
#[derive(Debug)]
pub(crate) struct NeededAlone;

impl OptimizerRule for NeededAlone {
    fn name(&self) -> &str {
        "needed_alone"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut changed = false;
        let plan = in_query(plan, &mut |plan| match With::of(&plan) {
            Some(with) => {
                let needed = needed_alone(with)?;
                changed = needed.is_some();
                Ok(needed.map_or(plan, With::into_plan))
            }
            None => Ok(plan),
        })?;
        Ok(Transformed::new_transformed(plan, changed))
    }
}

/// What the readers of a table need.
#[derive(Debug, Default)]
struct Needs {
    readers: usize,
    columns: BTreeSet<usize>,
    /// What each reader that has filters filters by.
    filters: Vec<Expr>,
}

/// The query with smaller tables; none if they are as small as they can be.
fn needed_alone(with: &With) -> Result<Option<With>> {
    let mut needs: BTreeMap<usize, Needs> = BTreeMap::new();
    let plans = || std::iter::once(&with.query).chain(with.tables.iter().map(|table| &table.plan));
    for plan in plans() {
        plan.apply_nested(|plan| {
            if let LogicalPlan::TableScan(scan) = plan
                && let Some(table) = SharedTable::of(scan)
            {
                let needs = needs.entry(table.id).or_default();
                needs.readers += 1;
                match &scan.projection {
                    Some(columns) => needs.columns.extend(columns),
                    None => needs.columns.extend(0..table.schema.fields().len()),
                }
                needs.filters.extend(conjunction(scan.filters.iter().cloned()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let (mut changed, mut tables) = (false, Vec::with_capacity(with.tables.len()));
    // The columns that stay, of each table that loses some.
    let mut kept: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for table in &with.tables {
        let smaller = needs.remove(&table.id).map(|needs| smaller(table, needs)).transpose()?;
        let is_as_before = matches!(&smaller, Some(Smaller { changed: false, .. }));
        changed |= !is_as_before;
        if let Some(Smaller { table, columns, .. }) = smaller {
            kept.extend(columns.map(|columns| (table.id, columns)));
            tables.push(table);
        }
    }
    if !changed {
        return Ok(None);
    }
    let query = with_columns(with.query.clone(), &tables, &kept)?;
    let plans: Vec<LogicalPlan> =
        tables.iter().map(|table| with_columns(table.plan.clone(), &tables, &kept)).collect::<Result<_>>()?;
    let tables = tables.into_iter().zip(plans).map(|(table, plan)| Shared { plan, ..table }).collect();
    Ok(Some(With { query, tables }))
}

/// A table without what no reader needs.
struct Smaller {
    table: Shared,
    /// The columns that it has kept, where it has lost some.
    columns: Option<Vec<usize>>,
    changed: bool,
}

fn smaller(table: &Shared, mut needs: Needs) -> Result<Smaller> {
    let mut table = table.clone();
    let all_filter = needs.filters.len() == needs.readers && !table.filtered;
    let filters = std::mem::take(&mut needs.filters);
    let filter = if all_filter { disjunction(filters).filter(moves) } else { None };
    let is_filtered = filter.is_some();
    if let Some(filter) = filter {
        table.plan = LogicalPlan::Filter(Filter::try_new(filter, Arc::new(table.plan))?);
        table.filtered = true;
    }
    let all = table.plan.schema().columns();
    // Rows are counted by some column.
    if needs.columns.is_empty() {
        needs.columns.insert(0);
    }
    if needs.columns.len() >= all.len() {
        return Ok(Smaller { table, columns: None, changed: is_filtered });
    }
    let columns: Vec<usize> = needs.columns.into_iter().collect();
    let kept = columns.iter().map(|column| Expr::Column(all[*column].clone())).collect();
    table.plan = LogicalPlan::Projection(Projection::try_new(kept, Arc::new(table.plan))?);
    Ok(Smaller { table, columns: Some(columns), changed: true })
}

/// Whether a filter may be computed in another place.
fn moves(filter: &Expr) -> bool {
    let is_bound = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
        ))
    };
    !filter.is_volatile() && !filter.exists(is_bound).unwrap_or(true)
}

/// A plan whose readers scan the columns that tables have kept.
fn with_columns(plan: LogicalPlan, tables: &[Shared], kept: &BTreeMap<usize, Vec<usize>>) -> Result<LogicalPlan> {
    let read = plan.transform_down_nested(|plan| {
        let LogicalPlan::TableScan(scan) = &plan else { return Ok(Transformed::no(plan)) };
        let table = SharedTable::of(scan).and_then(|table| tables.iter().find(|one| one.id == table.id));
        let Some((table, columns)) = table.and_then(|table| Some((table, kept.get(&table.id)?))) else {
            return Ok(Transformed::no(plan));
        };
        let place = |column: &usize| columns.binary_search(column).ok();
        let projection = scan.projection.as_ref().map(|read| read.iter().filter_map(place).collect());
        let schema = table.plan.schema().inner().clone();
        let source = provider_as_source(Arc::new(SharedTable { id: table.id, must: table.must, schema }));
        let TableScan { table_name, filters, fetch, .. } = scan.clone();
        let scan = TableScanBuilder::new(table_name, source).with_projection(projection).with_filters(filters);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan.with_fetch(fetch).build()?)))
    })?;
    Ok(read.data)
}
