//! Filters that stay above what they would change.
//!
//! `PushDownFilter` in DataFusion 55.2 moves a conjunct below an aggregation if all its columns are keys, and so moves
//! one without columns: `'B' = 'A'` below `count(*)` without groups makes the count 0, where the row should go; so it
//! does with an empty grouping set. A volatile conjunct goes below aggregations, windows and UNNEST, and chooses among
//! their rows instead of their results. Here such conjuncts stay.
//!
//! The file goes once that rule keeps them.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that moves filters, without those that stay.
pub(super) fn with_held_filters(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else { return rule.rewrite(plan, config) };
    // The rule makes one filter of several before it moves them.
    let (mut input, mut predicates) = (&filter.input, vec![&filter.predicate]);
    while let LogicalPlan::Filter(below) = input.as_ref() {
        predicates.push(&below.predicate);
        input = &below.input;
    }
    let gives_a_row = match input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => has_empty_group(aggregate),
        LogicalPlan::Window(_) | LogicalPlan::Unnest(_) => false,
        _ => return rule.rewrite(plan, config),
    };
    let stays = |expr: &Expr| expr.is_volatile() || gives_a_row && !expr.any_column_refs();
    let conjuncts = predicates.into_iter().rev().cloned().flat_map(split_conjunction_owned);
    let (held, others): (Vec<_>, Vec<_>) = conjuncts.partition(stays);
    let Some(held) = conjunction(held) else { return rule.rewrite(plan, config) };
    let moved = match conjunction(others) {
        Some(others) => {
            let others = LogicalPlan::Filter(Filter::try_new(others, input.clone())?);
            rule.rewrite(others, config)?
        }
        None => Transformed::no(input.as_ref().clone()),
    };
    moved.map_data(|plan| {
        let (predicate, input) = match plan {
            LogicalPlan::Filter(kept) => (kept.predicate.and(held), kept.input),
            plan => (held, Arc::new(plan)),
        };
        Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
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
