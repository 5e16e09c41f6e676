//! What may raise is computed for those rows alone whose result depends on it.
//!
//! DataFusion 55.2 computes both sides of `i < 100 AND i * i > 3` for all rows of a batch unless the left one drops
//! most of them, moves conjuncts and makes one filter of several; an aggregate with groups computes its argument for
//! rows that its FILTER drops, and so does a window. Here the final plan asks the operands of AND and OR that cannot
//! raise first, and computes the others in a CASE behind them; the argument of an aggregate stands in a CASE over its
//! FILTER.
//!
//! The optimiser computes what two expressions share once, before both: `sum(i * i) FILTER (…)` beside `max(i * i)
//! FILTER (…)` for all rows. What may raise behind AND, OR or a FILTER is out of that rule's sight
//! ([`with_hidden_operands`]).
//!
//! Timestamps of one number are equal constants to it, whatever their zones: where a plan has two such, nothing of it
//! is shared.
//!
//! Filters and conditions of joins take NULL for false; elsewhere the third value is kept. The operands that cannot
//! raise stay conjuncts, so that scans go by them. [`super::raising`] tells what may raise. The file goes once
//! DataFusion computes the right side of AND and OR for the rows alone that need it, and arguments after filters.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, Operator, lit, when};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::arithmetic::may_overflow;
use super::raising::may_raise;
use super::{chain, each_expression, each_node, operands};
use crate::walk::{PlanWalk, Walk};

/// Operands behind each other; those that follow are computed together.
const GUARDED_MAX: usize = 8;

/// The plan with guards before what may raise.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::TableScan(_) => Ok(Transformed::no(plan)),
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let guarded = in_filter(predicate, input.schema())?;
            guarded.map_data(|predicate| Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
        }
        LogicalPlan::Join(mut join) => {
            let Some(filter) = join.filter.take() else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
            in_filter(filter, &merge_schema(&[&join.left, &join.right]))?.map_data(|filter| {
                join.filter = Some(filter);
                Ok(LogicalPlan::Join(join))
            })
        }
        other => each_expression(
            other,
            |expr| chained(expr).is_some() || filtered(expr).is_some(),
            |expr, schema| {
                let guarded = in_value(expr, schema)?;
                guarded.transform_data(|expr| expr.transform_down(|expr| in_aggregate(expr, schema)))
            },
        ),
    })
}

/// DataFusion's rule for common subexpressions, which does not see what guards are for.
pub(super) fn with_hidden_operands(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if has_instant_of_two_zones(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let mut hidden = Hidden(HashMap::new());
    let plan = plan.transform_down_nested(|plan| {
        each_expression(plan, is_guarding, |expr, schema| {
            expr.transform_down(|expr| match expr {
                mut expr if filtered(&expr).is_some() => {
                    if let Some((arguments, _)) = filtered_mut(&mut expr) {
                        for argument in arguments {
                            hidden.hide(argument, schema)?;
                        }
                    }
                    Ok(Transformed::yes(expr))
                }
                expr if chained(&expr).is_some() => {
                    let inner = expr.transform_down(|mut expr| match chained(&expr) {
                        Some(_) => Ok(Transformed::no(expr)),
                        None => {
                            let changed = hidden.hide(&mut expr, schema)?;
                            Ok(Transformed::new(expr, changed, TreeNodeRecursion::Jump))
                        }
                    })?;
                    Ok(Transformed::new(inner.data, inner.transformed, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    let plan = rule.rewrite(plan.data, config)?;
    if hidden.0.is_empty() {
        return Ok(plan);
    }
    let shown = |expr: Expr| match &expr {
        Expr::OuterReferenceColumn(_, column) => match hidden.0.get(&column.name) {
            Some(operand) => Ok(Transformed::new(operand.clone(), true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    };
    plan.map_data(|plan| {
        let plan = plan.transform_down_nested(|plan| {
            each_expression(
                plan,
                |expr| matches!(expr, Expr::OuterReferenceColumn(..)),
                |expr, _| expr.transform_down(shown),
            )
        })?;
        Ok(plan.data)
    })
}

/// Whether constants of a plan are timestamps of the same number in the same unit and differ in their zones.
fn has_instant_of_two_zones(plan: &LogicalPlan) -> Result<bool> {
    let mut zones: HashMap<(u8, i64), Option<Arc<str>>> = HashMap::new();
    let mut found = false;
    plan.apply_nested(|plan| {
        plan.apply_exprs(|expr| {
            expr.apply(|expr| {
                let Expr::Literal(value, _) = expr else { return Ok(TreeNodeRecursion::Continue) };
                let (unit, number, zone) = match value {
                    ScalarValue::TimestampSecond(Some(number), zone) => (0, number, zone),
                    ScalarValue::TimestampMillisecond(Some(number), zone) => (1, number, zone),
                    ScalarValue::TimestampMicrosecond(Some(number), zone) => (2, number, zone),
                    ScalarValue::TimestampNanosecond(Some(number), zone) => (3, number, zone),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                found |= zones.entry((unit, *number)).or_insert_with(|| zone.clone()) != zone;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Expressions by the names of the columns that stand for them.
struct Hidden(HashMap<String, Expr>);

impl Hidden {
    /// Puts a column of an outer query, which no rule computes, in the place of what may raise.
    fn hide(&mut self, expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
        if !may_raise(expr, schema)? && !expr.exists(|expr| Ok(may_overflow(expr, schema)))? {
            return Ok(false);
        }
        let (data_type, nullable) = (expr.get_type(schema)?, expr.nullable(schema)?);
        let name = format!("__guarded_{}", self.0.len());
        let field = Arc::new(Field::new(&name, data_type, nullable));
        let column = Expr::OuterReferenceColumn(field, Column::new_unqualified(&name));
        self.0.insert(name, std::mem::replace(expr, column));
        Ok(true)
    }
}

fn is_guarding(expr: &Expr) -> bool {
    chained(expr).is_some() || filtered(expr).is_some()
}

/// The filter of an aggregate or of a window function.
fn filtered(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::AggregateFunction(function) => function.params.filter.as_deref(),
        Expr::WindowFunction(function) => function.params.filter.as_deref(),
        _ => None,
    }
}

/// The arguments of an aggregate or of a window function, and its filter.
fn filtered_mut(expr: &mut Expr) -> Option<(&mut Vec<Expr>, &Expr)> {
    match expr {
        Expr::AggregateFunction(AggregateFunction { params, .. }) => {
            Some((&mut params.args, params.filter.as_deref()?))
        }
        Expr::WindowFunction(function) => {
            let params = &mut function.params;
            Some((&mut params.args, params.filter.as_deref()?))
        }
        _ => None,
    }
}

/// The operator of a chain.
fn chained(expr: &Expr) -> Option<Operator> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Some(*op),
        _ => None,
    }
}

/// A predicate whose NULL is taken for false.
fn in_filter(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if chained(&predicate) != Some(Operator::And) || !may_raise(&predicate, schema)? {
        return in_value(predicate, schema);
    }
    let mut parts = Parts::of(predicate, Operator::And, schema)?;
    let Some(mut raising) = parts.raising.pop() else { return Ok(Transformed::no(parts.whole(Operator::And))) };
    while let Some(before) = parts.raising.pop() {
        raising = when(before, raising).otherwise(lit(false))?;
    }
    if let Some(guard) = parts.guard(Operator::And) {
        raising = when(guard, raising).otherwise(lit(false))?;
    }
    parts.safe.extend(parts.volatile);
    parts.safe.push(raising);
    Ok(Transformed::yes(chain(Operator::And, parts.safe)))
}

/// An expression whose chains keep their third value.
fn in_value(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| {
        let Some(op) = chained(&expr) else { return Ok(Transformed::no(expr)) };
        if !may_raise(&expr, schema)? {
            return Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump));
        }
        let mut parts = Parts::of(expr, op, schema)?;
        // A guard is computed twice.
        if !parts.volatile.is_empty() {
            return Ok(Transformed::new(parts.whole(op), true, TreeNodeRecursion::Jump));
        }
        let Some(mut raising) = parts.raising.pop() else {
            return Ok(Transformed::new(parts.whole(op), true, TreeNodeRecursion::Jump));
        };
        let guard = parts.guard(op);
        for before in parts.raising.into_iter().rev().chain(guard) {
            let both = chain(op, vec![before.clone(), raising]);
            raising = match op {
                Operator::And => when(before.is_not_false(), both).otherwise(lit(false))?,
                _ => when(before.is_not_true(), both).otherwise(lit(true))?,
            };
        }
        Ok(Transformed::new(raising, true, TreeNodeRecursion::Jump))
    })
}

/// The operands of a chain.
struct Parts {
    /// Those that cannot raise.
    safe: Vec<Expr>,
    /// Those that may, in their order, with guards of their own.
    raising: Vec<Expr>,
    /// Those with another value each time, which guard nothing.
    volatile: Vec<Expr>,
}

impl Parts {
    fn of(expr: Expr, op: Operator, schema: &DFSchema) -> Result<Parts> {
        let mut parts = Parts { safe: Vec::new(), raising: Vec::new(), volatile: Vec::new() };
        for operand in operands(expr, op) {
            let into = match () {
                () if operand.is_volatile() => &mut parts.volatile,
                () if may_raise(&operand, schema)? => &mut parts.raising,
                () => &mut parts.safe,
            };
            into.push(in_value(operand, schema)?.data);
        }
        if parts.raising.len() > GUARDED_MAX {
            let rest = parts.raising.split_off(GUARDED_MAX - 1);
            parts.raising.push(chain(op, rest));
        }
        Ok(parts)
    }

    /// What is asked before anything that may raise.
    fn guard(&self, op: Operator) -> Option<Expr> {
        (!self.safe.is_empty()).then(|| chain(op, self.safe.clone()))
    }

    /// The chain without guards.
    fn whole(self, op: Operator) -> Expr {
        chain(op, self.safe.into_iter().chain(self.volatile).chain(self.raising).collect())
    }
}

/// An aggregate or a window function whose argument is computed for the rows that its filter takes.
fn in_aggregate(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    if let Some((arguments, filter)) = filtered_mut(&mut expr)
        && !filter.is_volatile()
    {
        for argument in arguments {
            if !may_raise(argument, schema)? {
                continue;
            }
            let (data_type, nullable) = (argument.get_type(schema)?, argument.nullable(schema)?);
            let other = match nullable {
                true => ScalarValue::try_from(&data_type)?,
                false => ScalarValue::new_default(&data_type)?,
            };
            *argument = when(filter.clone(), argument.clone()).otherwise(lit(other))?;
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(expr, changed))
}
