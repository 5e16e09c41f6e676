//! Aggregates of the many side of an outer join, taken before the join.
//!
//! `SELECT c, count(o) FROM customers LEFT JOIN orders ON c = oc GROUP BY c` becomes `SELECT c, sum(coalesce(n, 0))
//! FROM customers LEFT JOIN (SELECT oc, count(o) AS n … GROUP BY oc) ON c = oc GROUP BY c`, in which the inner side has
//! one row a key, as tables that are probed for payload need it. Source: eager group-by, Yan and Larson, *Performing
//! Group-By before Join*, ICDE 1994.

use std::sync::Arc;

use datafusion::common::{JoinType, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Case, Expr, Join, LogicalPlan};

use super::Reason;
use super::calls::{Rewritten, as_function, call};
use super::columns::{rewrite, text};
use crate::mend::float_sums::is_exact;

/// Takes the calls of an aggregation over an outer join apart, if all of them read the inner side alone and all groups
/// the other.
pub(crate) fn take_apart(aggregate: &Aggregate) -> Result<Option<Rewritten>, Reason> {
    let exprs = aggregate.group_expr.iter().chain(&aggregate.aggr_expr).cloned().collect();
    let Some((join, exprs)) = outer_join(&aggregate.input, exprs)? else { return Ok(None) };
    let (groups, calls) = exprs.split_at(aggregate.group_expr.len());
    let is_kept = |expr: &Expr| expr.column_refs().into_iter().all(|column| join.left.schema().has_column(column));
    // Over no rows at all a count without groups is 0, and a sum of counts is NULL.
    if calls.is_empty() || groups.is_empty() || !groups.iter().all(is_kept) {
        return Ok(None);
    }
    let functions = calls.iter().map(as_function).collect::<Result<Vec<_>, _>>()?;
    let Some(without) = functions.iter().map(|function| without_match(function, join)).collect::<Option<Vec<_>>>()
    else {
        return Ok(None);
    };
    // The other side of the join may have columns of any name.
    let key = |(index, (_, own)): (usize, &(Expr, Expr))| own.clone().alias(format!("__eager_key{index}"));
    let below = |(index, function): (usize, &&AggregateFunction)| {
        Expr::AggregateFunction((*function).clone()).alias(format!("__eager{index}"))
    };
    let keys = join.on.iter().enumerate().map(key).collect();
    let grouped = Aggregate::try_new(join.right.clone(), keys, functions.iter().enumerate().map(below).collect());
    let grouped = grouped.map_err(text)?;
    let mut columns = grouped.schema.columns().into_iter().map(Expr::Column);
    let on = join.on.iter().map(|(kept, _)| kept.clone()).zip(&mut columns).collect();
    let parts = functions.into_iter().zip(without).zip(columns);
    let calls = parts.map(|((function, without), part)| of_parts(function, part, without)).collect();
    let (left, right) = (join.left.clone(), Arc::new(LogicalPlan::Aggregate(grouped)));
    let (kind, nulls) = (join.join_type, join.null_equality);
    let joined = Join::try_new(left, right, on, None, kind, join.join_constraint, nulls, false).map_err(text)?;
    Ok(Some(Rewritten { input: LogicalPlan::Join(joined), groups: groups.to_vec(), calls }))
}

/// The left join that a plan is, under projections, with expressions over its columns.
fn outer_join(plan: &LogicalPlan, exprs: Vec<Expr>) -> Result<Option<(&Join, Vec<Expr>)>, Reason> {
    let over =
        |columns: &[Expr]| exprs.iter().map(|expr| rewrite(expr, plan.schema(), columns)).collect::<Result<_, _>>();
    match plan {
        LogicalPlan::Projection(projection) => outer_join(&projection.input, over(&projection.expr)?),
        LogicalPlan::SubqueryAlias(alias) => {
            let columns: Vec<Expr> = alias.input.schema().columns().into_iter().map(Expr::Column).collect();
            outer_join(&alias.input, over(&columns)?)
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Left && join.filter.is_none() && !join.null_aware => {
            Ok((!join.on.is_empty()).then_some((join, exprs)))
        }
        _ => Ok(None),
    }
}

/// What a count of a row without a match is, for a call that is made of calls over the inner side's rows of each key;
/// none for other calls.
fn without_match(function: &AggregateFunction, join: &Join) -> Option<i64> {
    let params = &function.params;
    let ([argument], name) = (params.args.as_slice(), function.func.name()) else { return None };
    let is_plain = !params.distinct && params.filter.is_none() && params.order_by.is_empty();
    if !is_plain || params.null_treatment.is_some() || is_exact(&function.func) {
        return None;
    }
    // A row without a match has NULL for the column, and is one row.
    let (of_columns, without) = match argument {
        Expr::Column(column) => (join.right.schema().has_column(column), 0),
        Expr::Literal(value, _) => (!value.is_null() && name == "count", 1),
        _ => (false, 0),
    };
    (of_columns && matches!(name, "count" | "sum" | "min" | "max")).then_some(without)
}

/// A call over all rows, of its parts by key.
fn of_parts(function: &AggregateFunction, part: Expr, without: i64) -> Expr {
    match function.func.name() {
        "count" => call(sum_udaf(), or(part, without), None),
        _ => call(function.func.clone(), part, None),
    }
}

/// A count, or another number where there is none.
fn or(count: Expr, otherwise: i64) -> Expr {
    Expr::Case(Case {
        expr: None,
        when_then_expr: vec![(Box::new(count.clone().is_not_null()), Box::new(count))],
        else_expr: Some(Box::new(Expr::Literal(ScalarValue::Int64(Some(otherwise)), None))),
    })
}
