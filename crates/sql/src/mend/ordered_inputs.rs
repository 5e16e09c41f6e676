//! Lists and texts of the rows of a subquery with ORDER BY come in its order, as in PostgreSQL and DuckDB.
//!
//! DataFusion's planner drops the sorts of subqueries without a LIMIT, so that `SELECT string_agg(x, ',') FROM (SELECT
//! x FROM t ORDER BY x)` has any order, and so has `SELECT * FROM (SELECT x FROM t ORDER BY x) LIMIT 3`. Sessions keep
//! the sorts ([`crate::baseline`]). Here such an aggregate without an ORDER BY of its own has that of the rows that it
//! reads; a key that the subquery does not select becomes a column of it. So has a window over all rows without an
//! ORDER BY, `row_number() OVER ()`. Then sorts go whose order nothing above them
//! keeps.
//!
//! The file goes once DataFusion keeps orders of subqueries for what depends on them.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, Filter, LogicalPlan, Projection, SortExpr, SubqueryAlias, Window,
};
use datafusion::optimizer::AnalyzerRule;

use crate::walk::{PlanWalk, Walk};

/// Aggregates whose value follows from the order of rows.
const OF_ORDERED_ROWS: [&str; 4] = ["array_agg", "first_value", "last_value", "string_agg"];

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct OrderedInputs;

impl AnalyzerRule for OrderedInputs {
    fn name(&self) -> &str {
        "ordered_inputs"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let ordered = plan.transform_up_nested(|plan| {
            let plan = match plan {
                LogicalPlan::Aggregate(own) => match in_order(&own.input, &own.aggr_expr, is_without_order)? {
                    Some((input, calls)) => {
                        let own = Aggregate::try_new(Arc::new(input), own.group_expr, calls)?;
                        Transformed::yes(LogicalPlan::Aggregate(own))
                    }
                    None => Transformed::no(LogicalPlan::Aggregate(own)),
                },
                LogicalPlan::Window(own) => match in_order(&own.input, &own.window_expr, is_over_all)? {
                    Some((input, calls)) => {
                        Transformed::yes(LogicalPlan::Window(Window::try_new(calls, Arc::new(input))?))
                    }
                    None => Transformed::no(LogicalPlan::Window(own)),
                },
                plan => Transformed::no(plan),
            };
            plan.transform_data(|plan| match plan {
                LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Window(_) => plan.map_children(without_sort),
                plan => Ok(Transformed::no(plan)),
            })
        })?;
        Ok(ordered.data)
    }
}

/// Calls over rows of `input` in its order, where some that have no order of their own go by that of the rows; none
/// where no call does, or the rows have no order.
fn in_order(
    input: &LogicalPlan,
    calls: &[Expr],
    is_loose: fn(&Expr) -> bool,
) -> Result<Option<(LogicalPlan, Vec<Expr>)>> {
    let found = |call: &Expr| call.exists(|expr| Ok(is_loose(expr)));
    if !calls.iter().any(|call| found(call).unwrap_or(false)) {
        return Ok(None);
    }
    let Some((input, keys)) = ordered(input)? else { return Ok(None) };
    let names = NamePreserver::new_for_projection();
    let with_order = |call: &Expr| {
        let name = names.save(call);
        let call = call.clone().transform_up(|mut expr| {
            let is_changed = is_loose(&expr);
            match &mut expr {
                Expr::AggregateFunction(function) if is_changed => function.params.order_by = keys.clone(),
                Expr::WindowFunction(function) if is_changed => function.params.order_by = keys.clone(),
                _ => {}
            }
            Ok(Transformed::new_transformed(expr, is_changed))
        })?;
        Ok(name.restore(call.data))
    };
    let calls = calls.iter().map(with_order).collect::<Result<_>>()?;
    Ok(Some((input, calls)))
}

/// Whether an expression is a window over all rows without an order.
fn is_over_all(expr: &Expr) -> bool {
    matches!(expr, Expr::WindowFunction(call) if call.params.partition_by.is_empty() && call.params.order_by.is_empty())
}

/// A plan without the sort that its rows come from, but for one whose first rows are taken.
fn without_sort(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            Ok(Transformed::yes(without_sort(Arc::unwrap_or_clone(sort.input))?.data))
        }
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.map_children(without_sort)
        }
        plan => Ok(Transformed::no(plan)),
    }
}

fn is_without_order(expr: &Expr) -> bool {
    let is_of_rows = |function: &AggregateUDF| OF_ORDERED_ROWS.contains(&function.name());
    match expr {
        Expr::AggregateFunction(call) => {
            is_of_rows(&call.func) && call.params.order_by.is_empty() && !call.params.distinct
        }
        _ => false,
    }
}

/// A plan whose rows are sorted, with the keys as columns of it; none of one whose order nothing tells.
fn ordered(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<SortExpr>)>> {
    Ok(match plan {
        LogicalPlan::Sort(sort) => Some((plan.clone(), sort.expr.clone())),
        LogicalPlan::Limit(limit) => match ordered(&limit.input)? {
            Some((input, keys)) => Some((plan.with_new_exprs(plan.expressions(), vec![input])?, keys)),
            None => None,
        },
        LogicalPlan::Filter(filter) => match ordered(&filter.input)? {
            Some((input, keys)) => {
                Some((LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(input))?), keys))
            }
            None => None,
        },
        LogicalPlan::SubqueryAlias(alias) => {
            let Some((input, keys)) = ordered(&alias.input)? else { return Ok(None) };
            let of_input = input.schema().clone();
            let renamed = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
            let of_alias = renamed.schema.clone();
            let named = |expr: Expr| {
                let place = match &expr {
                    Expr::Column(column) => of_input.maybe_index_of_column(column),
                    _ => None,
                };
                Ok(match place {
                    Some(place) => Transformed::yes(Expr::from(of_alias.qualified_field(place))),
                    None => Transformed::no(expr),
                })
            };
            let named = |key: SortExpr| Ok(SortExpr { expr: key.expr.transform_up(named)?.data, ..key });
            Some((LogicalPlan::SubqueryAlias(renamed), keys.into_iter().map(named).collect::<Result<_>>()?))
        }
        LogicalPlan::Projection(projection) => {
            let Some((input, keys)) = ordered(&projection.input)? else { return Ok(None) };
            let mut items = projection.expr.clone();
            let places = keys.iter().map(|key| {
                let is_key = |item: &Expr| *item == key.expr || item.clone().unalias() == key.expr;
                items.iter().position(is_key).unwrap_or_else(|| {
                    items.push(key.expr.clone().alias(format!("__order_{}", items.len())));
                    items.len() - 1
                })
            });
            let places: Vec<usize> = places.collect();
            let projection = Projection::try_new(items, Arc::new(input))?;
            let column = |place: usize| Expr::from(projection.schema.qualified_field(place));
            let keys = keys.into_iter().zip(places);
            let keys = keys.map(|(key, place)| SortExpr { expr: column(place), ..key }).collect();
            Some((LogicalPlan::Projection(projection), keys))
        }
        _ => None,
    })
}
