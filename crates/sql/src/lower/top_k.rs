//! The first rows by an order, `ORDER BY … LIMIT`, of a table, a join or the groups of an aggregation; and all of them,
//! `ORDER BY` alone.
//!
//! ```text
//! Sort: x + y, fetch=15            Sort: x + y, fetch=15
//!   Filter: z > 3            →       Device: the same 15 rows
//!     TableScan: t
//! ```
//!
//! The sort stays above the node: operators that DataFusion puts between the two may take rows in any order. What is
//! computed for the output of at most a batch of rows is computed for these alone, on the CPU and the device alike
//! ([`project_late`]).

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::{Expr, ExprSchemable, Limit, LogicalPlan, Projection, Sort, SortExpr, SubqueryAlias};
use warpcube_engine::{BindingCache, OrderKey, Sink, TopK};

use super::columns::rewrite;
use super::describe::describe;
use super::graph::{Core, Graph, source_of};
use super::rows::is_grouped;
use super::shared::ROWS_MAX;
use super::tables::TableFacts;
use super::tree::Tree;
use super::{Finish, Lowered, Reason, reducers};
use crate::walk::PlanWalk;

/// Whether a sort is one of a join, of windows, of a union or of groups.
pub(super) fn orders_output(sort: &Sort) -> bool {
    let source = source_of(&sort.input);
    let has_rows = matches!(source, LogicalPlan::Join(_) | LogicalPlan::Window(_) | LogicalPlan::Union(_));
    sort.fetch != Some(0) && (is_grouped(source) || has_rows)
}

/// Whether a sort is one of a table that is filtered at most.
pub(super) fn orders_table(sort: &Sort) -> bool {
    sort.fetch != Some(0) && matches!(source_of(&sort.input), LogicalPlan::TableScan(_))
}

/// What a sort is, for reports.
pub(super) fn what(sort: &Sort) -> &'static str {
    match sort.fetch {
        Some(_) => "top-k",
        None if sort.expr.is_empty() => "rows",
        None => "sort",
    }
}

/// Puts projections that compute something above the sorts for first rows of one table:
/// `Sort(Projection(x)) → Projection(Sort(x))`. An expression that could raise an error, or take long, is then not
/// computed for rows that are not in the result, nor for those that OFFSET skips: `Limit(Projection(Sort))` becomes
/// `Projection(Limit(Sort))`.
///
/// Names of subqueries, views and common table expressions, and projections of columns alone, do not stand in the way
/// of one below them.
///
/// Only sorts for at most `batch_rows` rows: DataFusion repartitions below a projection that computes something, and
/// the rows of several batches would lose their order.
pub(crate) fn project_late(plan: LogicalPlan, batch_rows: usize) -> DataFusionResult<LogicalPlan> {
    let late = plan.transform_up_nested(|plan| {
        let late = match &plan {
            LogicalPlan::Sort(sort) => projected_late(sort, batch_rows)?,
            LogicalPlan::Limit(limit) => limited_early(limit, batch_rows)?,
            _ => None,
        };
        Ok(late.map_or_else(|| Transformed::no(plan), Transformed::yes))
    })?;
    Ok(late.data)
}

/// The projection of what a limit takes of a sort's rows, in place of the limit of its projection.
fn limited_early(limit: &Limit, batch_rows: usize) -> DataFusionResult<Option<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = limit.input.as_ref() else { return Ok(None) };
    let LogicalPlan::Sort(sort) = projection.input.as_ref() else { return Ok(None) };
    let is_one_batch = sort.fetch.is_some_and(|fetch| fetch <= batch_rows);
    if limit.skip.is_none() || !is_one_batch || projection.expr.iter().any(Expr::is_volatile) {
        return Ok(None);
    }
    let (expr, schema) = (projection.expr.clone(), projection.schema.clone());
    let limit = Limit { skip: limit.skip.clone(), fetch: limit.fetch.clone(), input: projection.input.clone() };
    let above = Projection::try_new_with_schema(expr, Arc::new(LogicalPlan::Limit(limit)), schema)?;
    Ok(Some(LogicalPlan::Projection(above)))
}

fn projected_late(sort: &Sort, batch_rows: usize) -> DataFusionResult<Option<LogicalPlan>> {
    if !orders_table(sort) || sort.fetch.is_none_or(|fetch| fetch > batch_rows) {
        return Ok(None);
    }
    match sort.input.as_ref() {
        LogicalPlan::Projection(projection) => below_projection(sort, projection, batch_rows),
        LogicalPlan::SubqueryAlias(alias) => below_alias(sort, alias, batch_rows),
        _ => Ok(None),
    }
}

fn below_projection(sort: &Sort, projection: &Projection, batch_rows: usize) -> DataFusionResult<Option<LogicalPlan>> {
    // A volatile expression cannot be both ordered by and computed again.
    if projection.expr.iter().any(Expr::is_volatile) {
        return Ok(None);
    }
    let below = sorted_below(sort, &projection.schema, &projection.expr, projection.input.clone())?;
    let is_column = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(_));
    let below = match projected_late(&below, batch_rows)? {
        Some(late) => late,
        None if projection.expr.iter().all(is_column) => return Ok(None),
        None => LogicalPlan::Sort(below),
    };
    let (expr, schema) = (projection.expr.clone(), projection.schema.clone());
    let above = Projection::try_new_with_schema(expr, Arc::new(below), schema)?;
    Ok(Some(LogicalPlan::Projection(above)))
}

fn below_alias(sort: &Sort, alias: &SubqueryAlias, batch_rows: usize) -> DataFusionResult<Option<LogicalPlan>> {
    let columns: Vec<Expr> = alias.input.schema().columns().into_iter().map(Expr::Column).collect();
    let below = sorted_below(sort, &alias.schema, &columns, alias.input.clone())?;
    let Some(late) = projected_late(&below, batch_rows)? else { return Ok(None) };
    Ok(Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(late), alias.alias.clone())?)))
}

/// The sort with its keys as expressions over `input`, of whose rows `exprs` make those of `schema`.
fn sorted_below(sort: &Sort, schema: &DFSchema, exprs: &[Expr], input: Arc<LogicalPlan>) -> DataFusionResult<Sort> {
    let key = |key: &SortExpr| {
        let expr = rewrite(&key.expr, schema, exprs).map_err(DataFusionError::Internal)?;
        Ok(key.with_expr(expr.unalias_nested().data))
    };
    let expr = sort.expr.iter().map(key).collect::<DataFusionResult<_>>()?;
    Ok(Sort { expr, input, fetch: sort.fetch })
}

/// The projection that a sort is above, and the sort that orders its input likewise. Sorts by floats stay where they
/// are ([`crate::exec::order`]).
pub(super) fn below(sort: &Sort) -> Option<(&Projection, Sort)> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return None };
    let is_float = |key: &SortExpr| key.expr.get_type(&projection.schema).map_or(true, |ty| ty.is_floating());
    if projection.expr.iter().any(Expr::is_volatile) || sort.expr.iter().any(is_float) {
        return None;
    }
    let below = sorted_below(sort, &projection.schema, &projection.expr, projection.input.clone()).ok()?;
    Some((projection, below))
}

/// Translates a sort for which [`orders_table`] or [`orders_output`] holds, with all below it.
pub(super) fn lower(sort: &Sort, facts: &TableFacts) -> Result<Lowered, Reason> {
    if let Some(fetch) = sort.fetch.filter(|fetch| *fetch > ROWS_MAX) {
        return Err(format!("the first {fetch} rows of an order, where {ROWS_MAX} are the most"));
    }
    facts.shared.look_at(&sort.input)?;
    let mut graph = Graph::new(facts.options.clone());
    let mut core = Core::default();
    let outputs = graph.flatten(&sort.input, facts, &mut core)?;
    core.without_limit("an order")?;
    reducers::reduce(&mut graph, &mut core);
    let schema = sort.input.schema();
    let keys = sort.expr.iter().map(|key| rewrite(&key.expr, schema, &outputs)).collect::<Result<Vec<_>, _>>()?;
    let read: Vec<Expr> = keys.iter().chain(&outputs).cloned().collect();
    let tree = Tree::plan(&graph, &core, &read)?;
    let (mut fragment, tables) = tree.pipelines(&read, |translator| {
        let key = |(expr, key): (&Expr, &SortExpr)| {
            let expr = translator.translate(expr)?;
            Ok::<_, Reason>(OrderKey { expr, descending: !key.asc, nulls_first: key.nulls_first })
        };
        let keys = keys.iter().zip(&sort.expr).map(key).collect::<Result<_, _>>()?;
        let output = |(expr, field): (&Expr, &arrow::datatypes::FieldRef)| {
            Ok::<_, Reason>((translator.translate(expr)?, field.data_type().clone()))
        };
        let outputs = outputs.iter().zip(sort.input.schema().fields()).map(output).collect::<Result<_, _>>()?;
        let k = sort.fetch.map(|fetch| fetch as u64);
        Ok(Sink::TopK(TopK { keys, k, skip: 0, outputs, windows: vec![], first: None, algorithm: facts.topk }))
    })?;
    fragment.overflow = facts.overflow;
    Ok(Lowered {
        finish: (0..schema.fields().len()).map(Finish::Group).collect(),
        fragment,
        tables,
        groups_max: None,
        arguments: tree.into_arguments(),
        what: describe(&sort.input, what(sort)),
        binding: BindingCache::default(),
        derived: Default::default(),
        last_results: Default::default(),
        identity: String::new(),
        join: None,
        cardinality: Default::default(),
    })
}
