//! Filters that stay above what they would change.
//!
//! `PushDownFilter` in DataFusion 55.2 moves a conjunct below an aggregation if all its columns are keys, and so moves
//! one without columns: `'B' = 'A'` below `count(*)` without groups makes the count 0, where the row should go; so it
//! does with an empty grouping set. A volatile conjunct goes below aggregations, DISTINCT, windows, UNNEST and joins,
//! one of ON below its join, and chooses among their rows instead of their results. Here such conjuncts stay. They move
//! below what gives a row for a row: projections, sorts and branches of unions.
//!
//! Where columns are keys of a join, the rule copies a conjunct over one side's to the other side, where rows are that
//! a filter of the first side drops: `100 / a.k > 3` divides by each `b.k`. A conjunct over keys that may raise stays.
//!
//! The file goes once that rule keeps them.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, Join, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::raising::may_raise;

/// The rule that moves filters, without those that stay.
pub(super) fn with_held_filters(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // The rule makes one filter of several before it moves them.
    let (mut input, mut predicates) = (&plan, Vec::new());
    while let LogicalPlan::Filter(filter) = input {
        predicates.push(&filter.predicate);
        input = &filter.input;
    }
    let gives_a_row = match input {
        LogicalPlan::Aggregate(aggregate) => has_empty_group(aggregate),
        LogicalPlan::Window(_) | LogicalPlan::Unnest(_) | LogicalPlan::Distinct(_) | LogicalPlan::Join(_) => false,
        _ => return rule.rewrite(plan, config),
    };
    let stays = |expr: &Expr| match input {
        LogicalPlan::Join(join) => is_held(expr, join),
        _ => expr.is_volatile() || gives_a_row && !expr.any_column_refs(),
    };
    if !predicates.iter().flat_map(|predicate| split_conjunction(predicate)).any(stays) {
        return with_held_condition(rule, plan, config);
    }
    let conjuncts = predicates.into_iter().rev().cloned().flat_map(split_conjunction_owned);
    let (held, others): (Vec<_>, Vec<_>) = conjuncts.partition(stays);
    let Some(held) = conjunction(held) else { return rule.rewrite(plan, config) };
    let moved = match conjunction(others) {
        Some(others) => {
            let others = LogicalPlan::Filter(Filter::try_new(others, Arc::new(input.clone()))?);
            with_held_condition(rule, others, config)?
        }
        None => Transformed::no(input.clone()),
    };
    moved.map_data(|plan| {
        let (predicate, input) = match plan {
            LogicalPlan::Filter(kept) => (kept.predicate.and(held), kept.input),
            plan => (held, Arc::new(plan)),
        };
        Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
    })
}

/// Whether a conjunct stays above a join, or in its condition.
fn is_held(expr: &Expr, join: &Join) -> bool {
    let is_key = |column: &Column| {
        let keys = join.on.iter().flat_map(|(left, right)| [left.try_as_col(), right.try_as_col()]);
        keys.flatten().any(|key| key == column)
    };
    // What has columns of the side that a semi join does not give is of unknown type, and may raise.
    expr.is_volatile() || expr.column_refs().into_iter().any(is_key) && may_raise(expr, &join.schema).unwrap_or(true)
}

/// The rule for a plan whose topmost join, under filters, keeps conjuncts of its condition.
fn with_held_condition(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !has_held_condition(&plan) {
        return rule.rewrite(plan, config);
    }
    let mut held = None;
    let plan = in_join(plan, &mut |join| {
        let conjuncts = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
        let (kept, others): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(|conjunct| is_held(conjunct, join));
        (held, join.filter) = (conjunction(kept), conjunction(others));
    })?;
    rule.rewrite(plan, config)?.map_data(|plan| {
        in_join(plan, &mut |join| join.filter = conjunction(join.filter.take().into_iter().chain(held.take())))
    })
}

fn has_held_condition(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => has_held_condition(&filter.input),
        LogicalPlan::Join(join) => {
            let mut conjuncts = join.filter.iter().flat_map(split_conjunction);
            conjuncts.any(|conjunct| is_held(conjunct, join))
        }
        _ => false,
    }
}

/// Changes the topmost join of a plan, under filters.
fn in_join(plan: LogicalPlan, change: &mut impl FnMut(&mut Join)) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Join(mut join) => {
            change(&mut join);
            LogicalPlan::Join(join)
        }
        LogicalPlan::Filter(filter) => {
            let input = in_join(Arc::unwrap_or_clone(filter.input), change)?;
            LogicalPlan::Filter(Filter::try_new(filter.predicate, Arc::new(input))?)
        }
        plan => plan,
    })
}

/// Whether an aggregation gives a row for no rows.
pub(super) fn has_empty_group(aggregate: &Aggregate) -> bool {
    match aggregate.group_expr.as_slice() {
        [] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets)), ..] => sets.iter().any(Vec::is_empty),
        [Expr::GroupingSet(_), ..] => true,
        _ => false,
    }
}
