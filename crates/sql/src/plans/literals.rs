//! Lifting literals out of a plan, so that statements that differ in them alone are optimised once.
//!
//! Types are coerced and expressions simplified first, so that whatever can be concluded from the literals themselves
//! is part of the shape. Lifted is then what a filter compares something of a table with: `x < 5`, the items of `x IN
//! (1, 2, 4, 8)` (a call by then: [`crate::mend::lists`]), `x = DATE '1994-01-01' + INTERVAL '1' YEAR`, the pattern of
//! `x LIKE 'a%b'`, which is simplified already where it is a special one; not `CAST(x AS BIGINT) < 5`, where what the
//! optimiser can do depends on the value. Filters name no columns, and the types of what is lifted stay in the plan, so
//! the result has the names and types it would have. All other literals belong to the shape too: NULLs and truth
//! values, arguments of functions and of arithmetic, the select list, groups, orders and limits; and so does HAVING of
//! correlated subqueries, which the optimiser asks what it gives for no row.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, Subquery};

use super::simplify;
use crate::mend::lists;
use crate::walk::{PlanWalk, Walk};

/// Most literals of a statement that are lifted.
const LIFTED_MAX: usize = 256;

/// A plan, coerced and simplified, with placeholders in place of its literals, and their values; none where it has no
/// such literals, too many of them, or placeholders of its own.
pub(crate) fn lift(plan: &LogicalPlan, state: &SessionState) -> Result<Option<(LogicalPlan, ParamValues)>> {
    if !has_filter(plan)? || !plan.get_parameter_names()?.is_empty() {
        return Ok(None);
    }
    let coerce = || state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    let coerced = tracing::info_span!("coerce").in_scope(coerce)?;
    let mut values = Vec::new();
    let simplified = tracing::info_span!("simplify").in_scope(|| simplify(coerced, state))?;
    let lifted = lift_filters(simplified, false, &mut values)?;
    if values.is_empty() || values.len() > LIFTED_MAX {
        return Ok(None);
    }
    let values = values.into_iter().map(|value| ScalarAndMetadata::new(value, None)).collect();
    Ok(Some((lifted, ParamValues::List(values))))
}

fn has_filter(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|plan| {
        found |= matches!(plan, LogicalPlan::Filter(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Lifts literals out of a plan's filters; in a correlated subquery out of those alone that have no aggregation below.
fn lift_filters(plan: LogicalPlan, is_correlated: bool, values: &mut Vec<ScalarValue>) -> Result<LogicalPlan> {
    let lifted = plan.transform_down(|plan| match plan {
        LogicalPlan::Filter(filter) if is_correlated && aggregates(&filter.input)? => {
            Ok(Transformed::no(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let predicate = lift_comparisons(predicate, values)?;
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::new(predicate, input))))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(lifted.data)
}

fn lift_comparisons(predicate: Expr, values: &mut Vec<ScalarValue>) -> Result<Expr> {
    let lifted = predicate.transform_down(|expr| {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                let (left, right) = match (is_of_table(&left)?, is_of_table(&right)?) {
                    (true, false) if !is_cast(&left) => (left, Box::new(lift_one(*right, values))),
                    (false, true) if !is_cast(&right) => (Box::new(lift_one(*left, values)), right),
                    _ => (left, right),
                };
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::Like(mut like) if is_of_table(&like.expr)? && !is_cast(&like.expr) => {
                like.pattern = Box::new(lift_one(*like.pattern, values));
                Transformed::yes(Expr::Like(like))
            }
            Expr::ScalarFunction(mut list) if is_list_of_table(&list)? => {
                let (operand, items) = (list.args.remove(0), list.args);
                let items = items.into_iter().map(|item| lift_one(item, values));
                list.args = std::iter::once(operand).chain(items).collect();
                Transformed::yes(Expr::ScalarFunction(list))
            }
            Expr::ScalarSubquery(subquery) => Transformed::yes(Expr::ScalarSubquery(lift_subquery(subquery, values)?)),
            Expr::InSubquery(mut within) => {
                within.subquery = lift_subquery(within.subquery, values)?;
                Transformed::yes(Expr::InSubquery(within))
            }
            Expr::Exists(mut exists) => {
                exists.subquery = lift_subquery(exists.subquery, values)?;
                Transformed::yes(Expr::Exists(exists))
            }
            expr => Transformed::no(expr),
        })
    })?;
    Ok(lifted.data)
}

fn lift_subquery(subquery: Subquery, values: &mut Vec<ScalarValue>) -> Result<Subquery> {
    let is_correlated = !subquery.outer_ref_columns.is_empty();
    let plan = lift_filters(subquery.subquery.as_ref().clone(), is_correlated, values)?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// Whether there is an aggregation in a plan.
fn aggregates(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Aggregate(_))))
}

/// Whether a function is a hidden IN list over something of a table.
fn is_list_of_table(function: &ScalarFunction) -> Result<bool> {
    match lists::operand(function) {
        Some(operand) => Ok(is_of_table(operand)? && !is_cast(operand)),
        None => Ok(false),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Whether an expression depends on the rows of a table.
fn is_of_table(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::ScalarSubquery(_))))
}

/// Whether an expression is one of another type.
fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast(_) | Expr::TryCast(_))
}

/// A placeholder in place of a literal; anything else as it is.
fn lift_one(expr: Expr, values: &mut Vec<ScalarValue>) -> Expr {
    match expr {
        Expr::Literal(value, None) if !value.is_null() && is_liftable(&value.data_type()) => {
            let field = Field::new("", value.data_type(), true);
            values.push(value);
            let id = format!("${}", values.len());
            Expr::Placeholder(Placeholder::new_with_field(id, Some(Arc::new(field))))
        }
        other => other,
    }
}

/// Whether values of a type are told apart by what they are alone. Timestamps of a time zone are not: the optimiser
/// takes casts between zones from columns or leaves them there by what it sees of the other side, which changes
/// answers.
fn is_liftable(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || data_type.is_string()
        || matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None))
}
