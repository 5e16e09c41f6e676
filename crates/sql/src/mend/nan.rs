//! One NaN, which equals itself and is larger than all other values; zeros of both signs are equal.
//!
//! DataFusion and Arrow compare floats by total order, in which NaNs with a sign come before −∞ and NaNs of different
//! bits differ; x86 makes NaNs with a sign of `0/0` and `∞ − ∞`. Here NaNs become one where they enter a plan: above
//! scans and other sources, around arithmetic, casts of text and functions, and above aggregates. Floats within lists,
//! structs and maps become one when they are taken out.
//!
//! DataFusion takes zeros of both signs as equal in comparisons, joins and groups, and as different in IN lists, CASE
//! with an operand, NULLIF, distinct aggregates, windows, sorts and functions of lists ([`super::list_floats`]). There
//! they are compared as one zero. Lists, structs and maps with floats within are compared with one NaN and one zero
//! everywhere, comparisons that constants are folded in by [`super::nested_orders`].
//!
//! Unnecessary once DataFusion compares floats by value everywhere, with one NaN.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::utils::normalize_float_zero_scalar;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, InList, ScalarFunction, Sort as SortKey, WindowFunction};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, Filter, LogicalPlan, Projection, TableScan, WindowFunctionDefinition,
};

use super::canonical::{
    is_arithmetic, is_canonical, is_compared, is_float, is_nested, makes_nan, one_nan, one_zero, without_one_nan,
};
use super::intervals::compares;
use super::{bounds, each_expression, each_node, extremes, list_floats, nullif};
use crate::canonical_floats::literal;
use crate::walk::{PlanWalk, Walk};

/// Functions that give one of their arguments.
const CHOOSING: [&str; 6] = ["coalesce", "nullif", "nvl", "nvl2", "greatest", "least"];
/// Aggregates that give one of their values.
const PICKING: [&str; 7] = ["min", "max", "first_value", "last_value", "nth_value", "percentile_disc", "mode"];
/// Aggregates that count values, or sort them.
const COMPARING: [&str; 5] = ["approx_distinct", "median", "percentile_cont", "percentile_disc", "mode"];
/// Aggregates to which all NaNs are alike.
const ADDING: [&str; 2] = ["sum", "avg"];

/// The plan with one NaN and one zero.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_floats(&plan)? {
        return Ok(plan);
    }
    each_node(plan, |plan| match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan),
        LogicalPlan::Unnest(_) => above(plan, |_| true),
        LogicalPlan::Aggregate(_) => {
            let plan = each_expression(
                plan,
                |_| true,
                |expr, schema| {
                    let is_nested_key = !is_aggregate(&expr) && is_nested(&expr, schema);
                    let expr = rewrite(expr, schema)?;
                    Ok(if is_nested_key { Transformed::yes(one_zero(expr.data)) } else { expr })
                },
            )?;
            let LogicalPlan::Aggregate(aggregate) = &plan.data else { return Ok(plan) };
            let first = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
            let computed: Vec<bool> = aggregate.aggr_expr.iter().map(computes).collect();
            plan.transform_data(|plan| above(plan, |field| field >= first && computed[field - first]))
        }
        LogicalPlan::Window(_) => {
            let plan = expressions(plan)?;
            let LogicalPlan::Window(window) = &plan.data else { return Ok(plan) };
            let first = window.input.schema().fields().len();
            let computed: Vec<bool> = window.window_expr.iter().map(computes).collect();
            plan.transform_data(|plan| above(plan, |field| field >= first && computed[field - first]))
        }
        LogicalPlan::Sort(mut sort) => {
            // Among rows with equal last keys any order will do.
            let (last, before) = sort.expr.split_last_mut().expect("a sort has a key");
            let schema = sort.input.schema().clone();
            let mut keys = sort_keys(before, &schema);
            if is_nested(&last.expr, &schema) {
                keys |= sort_keys(std::slice::from_mut(last), &schema);
            }
            for key in before.iter_mut().chain([last]) {
                let expr = rewrite(std::mem::take(&mut key.expr), &schema)?;
                keys |= expr.transformed;
                key.expr = expr.data;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), keys))
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
            let mut changed = false;
            for (one, other) in join.on.iter_mut().filter(|(one, _)| is_compared(one, &left)) {
                for (side, schema) in [(one, &left), (other, &right)] {
                    *side = one_zero(rewrite(std::mem::take(side), schema)?.data);
                }
                changed = true;
            }
            if let Some(filter) = join.filter.take() {
                let filter = rewrite(filter, &left.join(&right)?)?;
                changed |= filter.transformed;
                join.filter = Some(filter.data);
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Values(_) | LogicalPlan::Repartition(_) => {
            expressions(plan)
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// A scan with one NaN in its columns, and with its filters where no bounds of columns decide them.
fn of_scan(scan: TableScan) -> Result<Transformed<LogicalPlan>> {
    let Some((mended, promised)) = bounds::without_nans(&scan)? else {
        return above(LogicalPlan::TableScan(scan), |_| true);
    };
    let plan = above(LogicalPlan::TableScan(mended), |_| true)?.data;
    let Some(promised) = promised else { return Ok(Transformed::yes(plan)) };
    let promised = rewrite(promised, plan.schema())?.data;
    let filter = LogicalPlan::Filter(Filter::try_new(promised, Arc::new(plan))?);
    let columns = scan.projected_schema.columns().into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new_with_schema(columns, Arc::new(filter), scan.projected_schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// Whether there may be a float in a plan.
fn has_floats(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let within = |expr: &Expr| {
        expr.exists(|expr| {
            Ok(match expr {
                Expr::Literal(value, _) => may_hold_floats(&value.data_type()),
                Expr::Cast(cast) => may_hold_floats(cast.field.data_type()),
                Expr::TryCast(cast) => may_hold_floats(cast.field.data_type()),
                _ => false,
            })
        })
    };
    plan.apply_nested(|plan| {
        let schema = match plan {
            LogicalPlan::TableScan(scan) if !scan.filters.is_empty() => scan.source.schema(),
            plan => plan.schema().inner().clone(),
        };
        found |= schema.fields().iter().any(|field| may_hold_floats(field.data_type()));
        if !found {
            plan.apply_exprs(|expr| {
                found |= within(expr)?;
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn may_hold_floats(data_type: &DataType) -> bool {
    data_type.is_floating() || data_type.is_nested() || matches!(data_type, DataType::Dictionary(_, _))
}

/// One NaN in the float columns of these positions, by a projection above a plan.
fn above(plan: LogicalPlan, is_mended: impl Fn(usize) -> bool) -> Result<Transformed<LogicalPlan>> {
    let schema = plan.schema().clone();
    let is_mended = |field: usize| schema.field(field).data_type().is_floating() && is_mended(field);
    if !(0..schema.fields().len()).any(&is_mended) {
        return Ok(Transformed::no(plan));
    }
    let columns = schema.iter().enumerate().map(|(position, (qualifier, field))| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match is_mended(position) {
            true => one_nan(column).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    let projection = Projection::try_new_with_schema(columns.collect(), Arc::new(plan), schema.clone())?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

fn is_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_aggregate(&alias.expr),
        expr => matches!(expr, Expr::AggregateFunction(_)),
    }
}

/// Whether an aggregate, or a window function, may make a NaN.
fn computes(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => computes(&alias.expr),
        Expr::AggregateFunction(function) => !PICKING.contains(&function.func.name()),
        Expr::WindowFunction(function) => match &function.fun {
            WindowFunctionDefinition::AggregateUDF(function) => !PICKING.contains(&function.name()),
            WindowFunctionDefinition::WindowUDF(_) => false,
        },
        _ => false,
    }
}

/// The plan with one NaN and one zero in its expressions, under the names they had.
fn expressions(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    each_expression(plan, |_| true, |expr, schema| rewrite(expr, schema))
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Literal(value, metadata) => match literal(&value) {
                Some(value) => Transformed::yes(Expr::Literal(value, metadata)),
                None => Transformed::no(Expr::Literal(value, metadata)),
            },
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_arithmetic(op) && is_float(&right, schema) && is_float(&left, schema) =>
            {
                let [left, right] = [left, right].map(|side| Box::new(without_one_nan(*side)));
                Transformed::yes(one_nan(Expr::BinaryExpr(BinaryExpr { left, op, right })))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) && is_nested(&left, schema) => {
                let [left, right] = [left, right].map(|side| Box::new(one_zero(*side)));
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::Negative(inner) if is_float(&inner, schema) => {
                Transformed::yes(one_nan(Expr::Negative(Box::new(without_one_nan(*inner)))))
            }
            Expr::Cast(ref cast) if makes_nan(&cast.expr, cast.field.data_type(), schema) => {
                Transformed::yes(one_nan(expr))
            }
            Expr::TryCast(ref cast) if makes_nan(&cast.expr, cast.field.data_type(), schema) => {
                Transformed::yes(one_nan(expr))
            }
            Expr::ScalarFunction(function) => of_function(function, schema),
            Expr::InList(InList { expr, list, negated }) if is_float(&expr, schema) => {
                let list = list.into_iter().map(|item| match item {
                    Expr::Literal(value, metadata) => Expr::Literal(normalize_float_zero_scalar(value), metadata),
                    item => one_zero(item),
                });
                Transformed::yes(Expr::InList(InList {
                    expr: Box::new(one_zero(*expr)),
                    list: list.collect(),
                    negated,
                }))
            }
            Expr::Case(Case { expr: Some(operand), when_then_expr, else_expr }) if is_float(&operand, schema) => {
                let branch = |(when, then): (Box<Expr>, Box<Expr>)| (Box::new(one_zero(*when)), then);
                Transformed::yes(Expr::Case(Case {
                    expr: Some(Box::new(one_zero(*operand))),
                    when_then_expr: when_then_expr.into_iter().map(branch).collect(),
                    else_expr,
                }))
            }
            Expr::AggregateFunction(function) => of_aggregate(function, schema),
            Expr::WindowFunction(function) => of_window(function, schema),
            expr => Transformed::no(expr),
        })
    })
}

fn of_function(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    if nullif::is_of_floats(&function, schema) {
        return Transformed::yes(nullif::of_floats(function.args));
    }
    let name = function.func.name();
    let chooses = CHOOSING.contains(&name);
    let expr = list_floats::of_one_value(Expr::ScalarFunction(function), schema);
    match !chooses && !is_canonical(&expr.data) && is_float(&expr.data, schema) {
        true => Transformed::yes(one_nan(expr.data)),
        false => expr,
    }
}

fn of_aggregate(mut function: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = sort_keys(&mut function.params.order_by, schema);
    changed |= arguments(function.func.name(), function.params.distinct, &mut function.params.args, schema);
    if let Some(extreme) = extremes::of_floats(&function.func, &function.params.args, |value| is_float(value, schema)) {
        function.func = extreme;
        changed = true;
    }
    Transformed::new_transformed(Expr::AggregateFunction(function), changed)
}

fn of_window(mut function: Box<WindowFunction>, schema: &DFSchema) -> Transformed<Expr> {
    let params = &mut function.params;
    let mut changed = sort_keys(&mut params.order_by, schema);
    for key in params.partition_by.iter_mut().filter(|key| is_compared(key, schema)) {
        *key = one_zero(std::mem::take(key));
        changed = true;
    }
    if let WindowFunctionDefinition::AggregateUDF(aggregate) = &mut function.fun {
        changed |= arguments(aggregate.name(), params.distinct, &mut params.args, schema);
        if let Some(extreme) = extremes::of_floats(aggregate, &params.args, |value| is_float(value, schema)) {
            *aggregate = extreme;
            changed = true;
        }
    }
    Transformed::new_transformed(Expr::WindowFunction(function), changed)
}

/// Prepares the arguments of an aggregate.
fn arguments(name: &str, distinct: bool, arguments: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for argument in arguments {
        if distinct || COMPARING.contains(&name) {
            // The share of a percentile is a constant.
            if is_compared(argument, schema) && !matches!(argument, Expr::Literal(_, _)) {
                *argument = one_zero(std::mem::take(argument));
                changed = true;
            }
        } else if ADDING.contains(&name) {
            *argument = without_one_nan(std::mem::take(argument));
        }
    }
    changed
}

/// Makes one zero of the zeros in keys, and one NaN of the NaNs within lists and structs.
fn sort_keys(keys: &mut [SortKey], schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys.iter_mut().filter(|key| is_compared(&key.expr, schema)) {
        key.expr = one_zero(std::mem::take(&mut key.expr));
        changed = true;
    }
    changed
}
