//! Correlated subqueries that are no plain select.
//!
//! DataFusion 55.2 makes joins of subqueries that refer to the rows around them: it takes their conditions out of what
//! stands above these, and adds the compared columns to the keys of aggregations. So an aggregation without groups has
//! no row where it should have one (`EXISTS (SELECT count(*) …)`, `0 IN (SELECT count(*) …)`), OFFSET and LIMIT of
//! EXISTS are dropped, and windows, ROLLUP and the far side of outer joins see the rows of all.
//!
//! - EXISTS is asked of what decides it: not of sorts, windows, groups and LIMIT above the rows; over an aggregation
//!   without groups it is true, or its HAVING is asked as a scalar subquery.
//! - IN and ANY over one row are a comparison with a scalar subquery.
//! - HAVING of a scalar subquery without groups becomes a CASE, since the row is there.
//! - What would still be wrong is refused by its shape.
//!
//! The file goes once DataFusion has one rule for all correlated subqueries.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, Filter, Limit, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, SkipType, Subquery, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use super::held_filters::has_empty_group;
use super::raising::is_partial;
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};

/// The rule that puts correlated subqueries into shapes that become right joins, and refuses the others.
#[derive(Debug)]
pub(crate) struct CorrelatedShapes;

impl AnalyzerRule for CorrelatedShapes {
    fn name(&self) -> &str {
        "correlated_shapes"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut changed = false;
        let shaped = plan.transform_up_nested(|plan| {
            if let LogicalPlan::Join(join) = &plan
                && let Some(lateral) = lateral(&join.right)
            {
                check(lateral, SubqueryKind::Lateral, false)?;
            }
            let shaped = each_expression(plan, is_subquery, |expr, _| expr.transform_up(shaped))?;
            changed |= shaped.transformed;
            match changed {
                // Nullability may have changed.
                true => Ok(Transformed::yes(shaped.data.recompute_schema()?)),
                false => Ok(shaped),
            }
        })?;
        Ok(shaped.data)
    }
}

/// The subquery of LATERAL on the right side of a join.
fn lateral(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => lateral(&alias.input),
        LogicalPlan::Subquery(subquery) => Some(&subquery.subquery),
        _ => None,
    }
}

/// How a statement uses a subquery.
#[derive(Clone, Copy, PartialEq)]
enum SubqueryKind {
    Predicate,
    Scalar,
    Lateral,
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_))
}

fn shaped(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(exists) => shaped_exists(exists),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_correlated(&subquery) => {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            if let Some(compared) = compared(&expr, op, &subquery, negated)? {
                return Ok(Transformed::yes(compared));
            }
            check(&subquery.subquery, SubqueryKind::Predicate, false)?;
            Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        Expr::SetComparison(comparison) if is_correlated(&comparison.subquery) => {
            let SetComparison { expr, subquery, op, .. } = &comparison;
            if let Source::Row(_) = source(&subquery.subquery)?
                && let Some(compared) = compared(expr, *op, subquery, false)?
            {
                return Ok(Transformed::yes(compared));
            }
            check(&subquery.subquery, SubqueryKind::Predicate, false)?;
            Ok(Transformed::no(Expr::SetComparison(comparison)))
        }
        Expr::ScalarSubquery(mut subquery) if is_correlated(&subquery) => {
            let plan = match source(&subquery.subquery)? {
                Source::Row(plan) => plan,
                Source::Filtered { value, having, row } => {
                    let name = value.schema_name().to_string();
                    let value = when(having, value.unalias()).end()?.alias(name);
                    LogicalPlan::Projection(Projection::try_new(vec![value], row)?)
                }
                Source::None | Source::Rows => {
                    check(&subquery.subquery, SubqueryKind::Scalar, false)?;
                    return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
                }
            };
            check(&plan, SubqueryKind::Scalar, false)?;
            let changed = plan != *subquery.subquery;
            subquery.subquery = Arc::new(plan);
            Ok(Transformed::new_transformed(Expr::ScalarSubquery(subquery), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// What a subquery of one column is made of.
enum Source {
    /// Exactly one row, of an aggregation without groups.
    Row(LogicalPlan),
    /// A value of such a row, if a condition over it holds.
    Filtered { value: Expr, having: Expr, row: Arc<LogicalPlan> },
    /// No row.
    None,
    /// Anything else.
    Rows,
}

fn source(plan: &LogicalPlan) -> Result<Source> {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Limit(limit) => match cut(limit)? {
                Cut::Nothing => &limit.input,
                Cut::All => return Ok(Source::None),
                Cut::Some => return Ok(Source::Rows),
            },
            _ => break,
        };
    }
    if is_one_row(plan) {
        return Ok(Source::Row(plan.clone()));
    }
    Ok(match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => match (expr.as_slice(), input.as_ref()) {
            ([value], LogicalPlan::Filter(Filter { predicate, input, .. }))
                if is_one_row(input) && !predicate.contains_outer() && !value.contains_outer() =>
            {
                let row = input.clone();
                Source::Filtered { value: value.clone(), having: predicate.clone(), row }
            }
            _ => Source::Rows,
        },
        _ => Source::Rows,
    })
}

/// Whether a plan is an aggregation without groups, with columns computed over its row.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// What a LIMIT leaves out of a row or of the question whether there is one.
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

/// A comparison with a subquery of one row at most; none if it is not such a subquery. Without a row it is `otherwise`.
fn compared(expr: &Expr, op: Operator, subquery: &Subquery, otherwise: bool) -> Result<Option<Expr>> {
    let with = |plan: LogicalPlan| -> Result<Expr> {
        check(&plan, SubqueryKind::Scalar, false)?;
        let scalar = Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() });
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(expr.clone()), op, Box::new(scalar))))
    };
    Ok(match source(&subquery.subquery)? {
        Source::Row(plan) => Some(with(plan)?),
        Source::Filtered { value, having, row } => {
            let plan = LogicalPlan::Projection(Projection::try_new(vec![value], row.clone())?);
            let holds = holds(having, Arc::unwrap_or_clone(row), subquery)?;
            Some(when(holds, with(plan)?).otherwise(lit(otherwise))?)
        }
        Source::None => Some(lit(otherwise)),
        Source::Rows => None,
    })
}

/// Whether a condition holds for the row of an aggregation without groups.
fn holds(condition: Expr, row: LogicalPlan, like: &Subquery) -> Result<Expr> {
    let asked = Projection::try_new(vec![condition.alias("having")], Arc::new(row))?;
    let plan = LogicalPlan::Projection(asked);
    check(&plan, SubqueryKind::Scalar, false)?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..like.clone() }).is_true())
}

/// EXISTS of what decides it.
fn shaped_exists(exists: Exists) -> Result<Transformed<Expr>> {
    let Exists { subquery, negated } = exists;
    let always = |found: bool| Ok(Transformed::yes(lit(found != negated)));
    let (mut plan, mut decisive) = (subquery.subquery.as_ref(), None);
    loop {
        let below: &LogicalPlan = match plan {
            LogicalPlan::Projection(projection) => {
                plan = &projection.input;
                continue;
            }
            LogicalPlan::SubqueryAlias(alias) => {
                plan = &alias.input;
                continue;
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Window(window) => &window.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Distinct(Distinct::On(on)) => &on.input,
            LogicalPlan::Limit(limit) => match cut(limit)? {
                Cut::Nothing => &limit.input,
                Cut::All => return always(false),
                Cut::Some => break,
            },
            LogicalPlan::Aggregate(aggregate) if has_empty_group(aggregate) => return always(true),
            LogicalPlan::Aggregate(aggregate) => &aggregate.input,
            LogicalPlan::Filter(Filter { predicate, input, .. })
                if is_correlated(&subquery) && is_one_row(input) && !predicate.contains_outer() =>
            {
                let holds = holds(predicate.clone(), input.as_ref().clone(), &subquery)?;
                return Ok(Transformed::yes(if negated { !holds } else { holds }));
            }
            _ => break,
        };
        (plan, decisive) = (below, Some(below));
    }
    if !is_correlated(&subquery) {
        return Ok(Transformed::no(Expr::Exists(Exists { subquery, negated })));
    }
    let changed = decisive.is_some();
    let plan = match decisive {
        Some(plan) => Arc::new(LogicalPlanBuilder::from(plan.clone()).project(vec![lit(1i64)])?.build()?),
        None => subquery.subquery.clone(),
    };
    check(&plan, SubqueryKind::Predicate, false)?;
    let subquery = Subquery { subquery: plan, ..subquery };
    Ok(Transformed::new_transformed(Expr::Exists(Exists { subquery, negated }), changed))
}

/// Refuses what stands above conditions on rows around, where these cannot be taken out of it. `is_grouped` says
/// whether aggregates are above.
fn check(plan: &LogicalPlan, kind: SubqueryKind, is_grouped: bool) -> Result<()> {
    let correlates = |plan: &LogicalPlan| !plan.all_out_ref_exprs().is_empty();
    if !correlates(plan) {
        return Ok(());
    }
    let refused = |what: &str| -> Result<()> {
        Err(SqlError::Unsupported(format!("{what} in a subquery that refers to the rows around it")).into())
    };
    let mut is_grouped = is_grouped;
    match plan {
        LogicalPlan::Window(_) => return refused("a window function"),
        LogicalPlan::Limit(_) => return refused("LIMIT or OFFSET"),
        LogicalPlan::Aggregate(Aggregate { group_expr, aggr_expr, .. }) => {
            if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
                return refused("ROLLUP, CUBE or GROUPING SETS");
            }
            if group_expr.is_empty() && (kind == SubqueryKind::Predicate || is_grouped) {
                return refused("an aggregation without GROUP BY below other operators");
            }
            is_grouped |= !aggr_expr.is_empty();
        }
        LogicalPlan::Filter(filter) => {
            if is_one_row(&filter.input) && correlates(&filter.input) {
                return refused("HAVING of an aggregation without GROUP BY");
            }
            if is_grouped && merges_values(filter) {
                return refused("an aggregation with a comparison of a cast column");
            }
        }
        LogicalPlan::Join(join) => {
            let (left, right) = match join.join_type {
                JoinType::Inner => (true, true),
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
                JoinType::Full => (false, false),
            };
            if !left && correlates(&join.left) || !right && correlates(&join.right) {
                return refused("a condition on one side of an outer join, INTERSECT, EXCEPT or another subquery");
            }
        }
        _ => {}
    }
    plan.inputs().into_iter().try_for_each(|input| check(input, kind, is_grouped))
}

/// Whether a filter equates a cast of a column with a value of the rows around, and several values of the column have
/// one result: keys are the column's values, not the cast's.
fn merges_values(filter: &Filter) -> bool {
    let schema = filter.input.schema();
    let merges = |expr: &Expr| match expr {
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Column(Column { .. }) => {
                cast.expr.get_type(schema.as_ref()).map_or(true, |from| !is_one_to_one(&from, cast.field.data_type()))
            }
            _ => false,
        },
        _ => false,
    };
    split_conjunction(&filter.predicate).into_iter().any(|conjunct| match conjunct {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if conjunct.contains_outer() => {
            merges(left) || merges(right)
        }
        _ => false,
    })
}

/// Whether a cast keeps values apart.
fn is_one_to_one(from: &DataType, to: &DataType) -> bool {
    let is_small = |data_type: &DataType| {
        use DataType::{Int8, Int16, Int32, UInt8, UInt16, UInt32};
        matches!(data_type, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32)
    };
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if from.is_string() && to.is_string() => true,
        (DataType::Dictionary(_, value), to) => is_one_to_one(value, to),
        (from, DataType::Float64) => is_small(from) || *from == DataType::Float32,
        (
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale),
            DataType::Decimal128(_, digits) | DataType::Decimal256(_, digits),
        ) => digits >= scale && !is_partial(from, to),
        (from, to) if from.is_integer() => (to.is_integer() || to.is_decimal()) && !is_partial(from, to),
        (DataType::Date32, DataType::Timestamp(_, _)) => true,
        (DataType::Timestamp(unit, _), DataType::Timestamp(finer, _)) => finer >= unit,
        _ => false,
    }
}
