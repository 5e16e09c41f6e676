//! What a subquery is made of, seen from its place: operators above its rows that need not be pushed through.
//!
//! Conditions and values at the top of a subquery are computed beside the rows around, by a join's condition or above
//! it. What decides nothing is left out: the order, what EXISTS does not ask for.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, FetchType, Join, JoinType, Limit, LogicalPlan, SkipType};

use super::super::held_filters::has_empty_group;
use super::outer::{columns, filtered, is_correlated, substituted};
use crate::syntax::TableOfWith;

/// How a statement uses a subquery.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    /// Whether there is a row.
    Exists,
    /// Whether there is a row of such a value.
    Values,
    /// The value of the one row.
    Scalar,
    /// The rows, beside each of those around.
    Table,
}

/// The rows of a subquery.
pub(super) enum Rows {
    /// Those of a plan.
    Of(LogicalPlan),
    /// The one row of an aggregation without groups.
    One(Aggregate),
    /// At least one row.
    Some,
    /// No row.
    None,
}

/// A subquery without the operators at its top.
pub(super) struct Peeled {
    pub(super) rows: Rows,
    /// The subquery's columns, of those of the rows and of the rows around.
    pub(super) values: Vec<Expr>,
    /// What holds for the subquery's rows.
    pub(super) conditions: Vec<Expr>,
}

pub(super) fn peel(plan: LogicalPlan, used: Use) -> Result<Peeled> {
    let mut values = columns(&plan);
    if used == Use::Exists {
        values.clear();
    }
    let (mut plan, mut conditions) = (plan, Vec::new());
    let done = |rows, values, conditions| Ok(Peeled { rows, values, conditions });
    let is_test = matches!(used, Use::Exists | Use::Values);
    loop {
        // Whether columns of the plan from a place on are read.
        let reads = |first: usize| {
            let schema = plan.schema();
            let is_behind = |column: &Column| schema.index_of_column(column).is_ok_and(|place| place >= first);
            let reads = |expr: &Expr| expr.column_refs().into_iter().any(is_behind);
            values.iter().chain(&conditions).any(reads)
        };
        plan = match plan {
            LogicalPlan::Projection(projection) if !projection.expr.iter().any(Expr::is_volatile) => {
                let below = |expr: Expr| substituted(expr, &projection.schema, &projection.expr);
                values = values.into_iter().map(below).collect::<Result<_>>()?;
                conditions = conditions.into_iter().map(below).collect::<Result<_>>()?;
                Arc::unwrap_or_clone(projection.input)
            }
            LogicalPlan::SubqueryAlias(alias)
                if TableOfWith::of(alias.alias.table()).is_none() || is_correlated(&alias.input)? =>
            {
                let inner = columns(&alias.input);
                let below = |expr: Expr| substituted(expr, &alias.schema, &inner);
                values = values.into_iter().map(below).collect::<Result<_>>()?;
                conditions = conditions.into_iter().map(below).collect::<Result<_>>()?;
                Arc::unwrap_or_clone(alias.input)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => Arc::unwrap_or_clone(sort.input),
            LogicalPlan::Filter(filter) if used != Use::Scalar || is_one_row(&filter.input) => {
                conditions.extend(split_conjunction_owned(filter.predicate));
                Arc::unwrap_or_clone(filter.input)
            }
            LogicalPlan::Distinct(Distinct::All(input)) if is_test || is_one_row(&input) => Arc::unwrap_or_clone(input),
            LogicalPlan::Distinct(Distinct::On(on)) if used == Use::Exists && conditions.is_empty() => {
                Arc::unwrap_or_clone(on.input)
            }
            LogicalPlan::Limit(limit) => match cut(&limit)? {
                Cut::All if used != Use::Table => return done(Rows::None, values, conditions),
                Cut::Nothing if is_one_row(&limit.input) || used == Use::Exists && conditions.is_empty() => {
                    Arc::unwrap_or_clone(limit.input)
                }
                _ => {
                    plan = LogicalPlan::Limit(limit);
                    break;
                }
            },
            LogicalPlan::Window(window) if used == Use::Exists && !reads(window.input.schema().fields().len()) => {
                Arc::unwrap_or_clone(window.input)
            }
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                return match used == Use::Exists && conditions.is_empty() {
                    true => done(Rows::Some, values, conditions),
                    false => done(Rows::One(aggregate), values, conditions),
                };
            }
            LogicalPlan::Aggregate(aggregate) if used == Use::Exists && conditions.is_empty() => {
                if has_empty_group(&aggregate) {
                    return done(Rows::Some, values, conditions);
                }
                Arc::unwrap_or_clone(aggregate.input)
            }
            LogicalPlan::Join(Join {
                left,
                right,
                on,
                filter: Some(filter),
                join_type: JoinType::Inner,
                join_constraint,
                schema,
                null_equality,
                null_aware,
            }) if used != Use::Scalar && filter.contains_outer() => {
                let (outer, own): (Vec<_>, Vec<_>) =
                    split_conjunction_owned(filter).into_iter().partition(Expr::contains_outer);
                conditions.extend(outer);
                let filter = conjunction(own);
                LogicalPlan::Join(Join {
                    left,
                    right,
                    on,
                    filter,
                    join_type: JoinType::Inner,
                    join_constraint,
                    schema,
                    null_equality,
                    null_aware,
                })
            }
            _ => break,
        };
    }
    // What refers to nothing around stays below, and so do conditions of a scalar: the rows of a join would have its
    // value where they do not hold.
    let stays_above = |condition: &Expr| used != Use::Scalar && condition.contains_outer();
    let (conditions, own): (Vec<_>, Vec<_>) = conditions.into_iter().partition(stays_above);
    done(Rows::Of(filtered(plan, own)?), values, conditions)
}

/// Whether a plan has one row at most, that of an aggregation without groups.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_) => plan.inputs().into_iter().all(is_one_row),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// What a LIMIT leaves out of one row, or of the question whether there is one.
enum Cut {
    Nothing,
    All,
    Some,
}

fn cut(limit: &Limit) -> Result<Cut> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (_, FetchType::Literal(Some(0))) => Cut::All,
        (SkipType::Literal(0), FetchType::Literal(_)) => Cut::Nothing,
        _ => Cut::Some,
    })
}
