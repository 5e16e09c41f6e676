//! Order statistics: medians, percentiles, modes and first values as values at places of sorted groups.
//!
//! ```text
//! SELECT g, median(x), sum(y) FROM t GROUP BY g
//!
//! rows 1: t sorted by g, x with place = row_number() and n = count(x), both over g
//! scan rows 1: group by g: min(x) at place ⌊(n − 1) / 2⌋ + 1, min(x) at place ⌈(n − 1) / 2⌉ + 1, max(n), sum(y)
//!
//! SELECT g, mode(x) FROM t GROUP BY g
//!
//! scan t: group by g, x: n = count(x)
//! rows 1: those groups sorted by g, n descending, x with place = row_number() over g
//! scan rows 1: group by g: min(x) at place 1
//! ```
//!
//! Of `first_value(x ORDER BY y)`, and of `last_value` with the order turned, the place is 1 in groups sorted by y.
//! Rows that FILTER or IGNORE NULLS leaves out come last. Where nothing else is aggregated, rows at other places are
//! left out: of medians and percentiles they enter no group, of first values no sort of all rows is needed.
//!
//! NULL is sorted last and not counted. Places are computed in doubles, as the CPU does ([`crate::mend::quantiles`]),
//! so that both take the same values. Integers and decimals are sorted as they are, not as the doubles that a
//! percentile is made of.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::math::expr_fn::{ceil, floor};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Case, Cast, Expr, ExprSchemable, Filter, LogicalPlan, Operator, SortExpr, Window,
    WindowFrame, lit,
};

use super::Reason;
use super::calls::{Rewritten, as_function, call};
use super::columns::text;
use crate::mend::cast_functions::CastFunction;

/// The columns of windows, and of groups by a value.
const PLACE: &str = "__place";
const DESCENDING_PLACE: &str = "__descending_place";
const COUNT: &str = "__count";
const VALUE: &str = "__value";

/// The rows that a call needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rows {
    /// All rows, sorted by a value.
    Sorted(Expr),
    /// A row for each value, with the number of rows that have it.
    Counted(Expr),
    /// All rows in an order, those first for which a condition holds.
    Ordered(Vec<SortExpr>, Option<Expr>),
}

/// The rows that a call needs; none if it is no order statistic.
pub(super) fn rows(function: &AggregateFunction, aggregate: &Aggregate) -> Result<Option<Rows>, Reason> {
    let params = &function.params;
    let Some(argument) = params.args.first() else { return Ok(None) };
    Ok(match function.func.name() {
        "mode" => Some(Rows::Counted(filtered(argument.clone(), function))),
        "percentile_disc" => Some(Rows::Sorted(filtered(argument.clone(), function))),
        "median" | "percentile_cont" => {
            let type_of = |expr: &Expr| expr.get_type(aggregate.input.schema().as_ref()).map_err(text);
            let value = match CastFunction::as_double(argument) {
                Some(inner) => match type_of(inner)? {
                    from if from.is_integer() || matches!(from, DataType::Decimal128(_, _)) => inner,
                    _ => argument,
                },
                None => argument,
            };
            Some(Rows::Sorted(filtered(value.clone(), function)))
        }
        "first_value" | "last_value" if !params.order_by.is_empty() => {
            let turned = |key: &SortExpr| SortExpr::new(key.expr.clone(), !key.asc, !key.nulls_first);
            let order = match function.func.name() {
                "first_value" => params.order_by.clone(),
                _ => params.order_by.iter().map(turned).collect(),
            };
            let skips_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
            let is_there = skips_nulls.then(|| argument.clone().is_not_null());
            let conditions = params.filter.iter().map(|filter| filter.as_ref().clone()).chain(is_there);
            Some(Rows::Ordered(order, conditions.reduce(Expr::and)))
        }
        _ => None,
    })
}

/// A value where the filter of a call holds, NULL elsewhere.
pub(super) fn filtered(value: Expr, function: &AggregateFunction) -> Expr {
    match &function.params.filter {
        None => value,
        Some(filter) => {
            Expr::Case(Case { expr: None, when_then_expr: vec![(filter.clone(), Box::new(value))], else_expr: None })
        }
    }
}

/// An aggregation with order statistics as one of extremes over windows; none if it has none.
pub(super) fn rewrite(aggregate: &Aggregate) -> Result<Option<Rewritten>, Reason> {
    let functions = aggregate.aggr_expr.iter().map(as_function).collect::<Result<Vec<_>, _>>()?;
    let needs = functions.iter().map(|function| rows(function, aggregate)).collect::<Result<Vec<_>, _>>()?;
    let Some(rows) = needs.iter().flatten().next() else { return Ok(None) };
    if needs.iter().flatten().any(|other| other != rows) {
        return Err("order statistics of several values".into());
    }
    match rows {
        Rows::Sorted(value) => sorted(aggregate, &functions, value, !needs.contains(&None)).map(Some),
        Rows::Counted(_) if needs.contains(&None) => Err("a mode beside other aggregates".into()),
        Rows::Counted(value) => counted(aggregate, &functions, value).map(Some),
        Rows::Ordered(order, condition) => {
            let are_all = !needs.contains(&None);
            ordered(aggregate, &functions, (order, condition.as_ref()), are_all).map(Some)
        }
    }
}

fn ordered(
    aggregate: &Aggregate,
    functions: &[&AggregateFunction],
    (order, condition): (&[SortExpr], Option<&Expr>),
    are_all: bool,
) -> Result<Rewritten, Reason> {
    let holds_first = condition.map(|condition| SortExpr::new(condition.clone().is_true(), false, false));
    let order = holds_first.into_iter().chain(order.iter().cloned()).collect();
    let window = Window::try_new(vec![numbers(&aggregate.group_expr, order, PLACE)], aggregate.input.clone());
    let is_first = column(PLACE).lt_eq(lit(1u64));
    let mut input = LogicalPlan::Window(window.map_err(text)?);
    if are_all {
        input = LogicalPlan::Filter(Filter::try_new(is_first.clone(), Arc::new(input)).map_err(text)?);
    }
    let taken = [is_first].into_iter().chain(condition.cloned()).reduce(Expr::and);
    let over = |(call_itself, function): (&Expr, &&AggregateFunction)| match function.params.args.as_slice() {
        [value] if matches!(function.func.name(), "first_value" | "last_value") => {
            call(min_udaf(), value.clone(), taken.clone().map(Box::new))
        }
        _ => call_itself.clone(),
    };
    let calls = aggregate.aggr_expr.iter().zip(functions).map(over).collect();
    Ok(Rewritten { input, groups: aggregate.group_expr.clone(), calls })
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn float(expr: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), DataType::Float64))
}

/// Numbers of rows in groups sorted by some keys.
fn numbers(groups: &[Expr], order: Vec<SortExpr>, name: &str) -> Expr {
    let mut numbers = WindowFunction::new(row_number_udwf(), Vec::new());
    numbers.params.partition_by = groups.to_vec();
    numbers.params.order_by = order;
    numbers.params.window_frame = WindowFrame::new(Some(false));
    Expr::from(numbers).alias(name)
}

/// A value with one zero, if it is a float.
fn with_one_zero(value: Expr, data_type: &DataType) -> Result<Expr, Reason> {
    if !data_type.is_floating() {
        return Ok(value);
    }
    let zero = ScalarValue::new_zero(data_type).map_err(text)?;
    let sum = BinaryExpr::new(Box::new(value), Operator::Plus, Box::new(Expr::Literal(zero, None)));
    Ok(Expr::BinaryExpr(sum))
}

fn sorted(
    aggregate: &Aggregate,
    functions: &[&AggregateFunction],
    value: &Expr,
    are_all: bool,
) -> Result<Rewritten, Reason> {
    let groups = &aggregate.group_expr;
    let place = numbers(groups, vec![SortExpr::new(value.clone(), true, false)], PLACE);
    let mut count = WindowFunction::new(count_udaf(), vec![value.clone()]);
    count.params.partition_by = groups.clone();
    count.params.window_frame = WindowFrame::new(None);
    let window = Window::try_new(vec![place, Expr::from(count).alias(COUNT)], aggregate.input.clone());
    let mut input = LogicalPlan::Window(window.map_err(text)?);
    if are_all {
        // The first row of a group without values stands for the group.
        let mut wanted = column(PLACE).eq(lit(1u64));
        for function in functions {
            wanted = places(function)?.into_iter().fold(wanted, Expr::or);
        }
        input = LogicalPlan::Filter(Filter::try_new(wanted, Arc::new(input)).map_err(text)?);
    }
    let data_type = value.get_type(aggregate.input.schema().as_ref()).map_err(text)?;
    let value = with_one_zero(value.clone(), &data_type)?;
    let over = |(call, function): (&Expr, &&AggregateFunction)| of_places(function, &value, call);
    let calls = aggregate.aggr_expr.iter().zip(functions).map(over).collect::<Result<_, _>>()?;
    Ok(Rewritten { input, groups: groups.clone(), calls })
}

/// Whether a row is at one of the places whose values a call takes: one place, or those below and above; none of a call
/// that is no order statistic.
fn places(function: &AggregateFunction) -> Result<Vec<Expr>, Reason> {
    let (place, count) = (float(column(PLACE)), float(column(COUNT)));
    let is_descending = function.params.order_by.first().is_some_and(|key| !key.asc);
    Ok(match function.func.name() {
        "percentile_disc" => {
            let number = match share(function)? {
                0.0 => lit(1.0),
                share => ceil(lit(share) * count.clone()),
            };
            vec![place.eq(if is_descending { count + lit(1.0) - number } else { number })]
        }
        "median" | "percentile_cont" => {
            let before = lit(interpolated(function)?.unwrap_or(0.5)) * (count - lit(1.0));
            [floor(before.clone()), ceil(before)].map(|before| place.clone().eq(before + lit(1.0))).into()
        }
        _ => Vec::new(),
    })
}

/// The share of a percentile that is interpolated, from the least value on; none of a median.
fn interpolated(function: &AggregateFunction) -> Result<Option<f64>, Reason> {
    if function.func.name() == "median" {
        return Ok(None);
    }
    let is_descending = function.params.order_by.first().is_some_and(|key| !key.asc);
    share(function).map(|share| Some(if is_descending { 1.0 - share } else { share }))
}

/// A call over the rows of windows; one that is no order statistic stays as it is.
fn of_places(function: &AggregateFunction, value: &Expr, call_itself: &Expr) -> Result<Expr, Reason> {
    match <[Expr; 2]>::try_from(places(function)?) {
        Ok([low, high]) => {
            let share = interpolated(function)?;
            let mut function = function.clone();
            let params = &mut function.params;
            (params.filter, params.order_by) = (None, Vec::new());
            params.args = [value.clone(), low, high, column(COUNT)].into_iter().chain(share.map(lit)).collect();
            Ok(Expr::AggregateFunction(function))
        }
        Err(places) => Ok(match places.into_iter().next() {
            Some(place) => call(min_udaf(), value.clone(), Some(Box::new(place))),
            None => call_itself.clone(),
        }),
    }
}

/// The share of a percentile.
fn share(function: &AggregateFunction) -> Result<f64, Reason> {
    match function.params.args.get(1) {
        Some(Expr::Literal(ScalarValue::Float64(Some(share)), _)) if (0.0..=1.0).contains(share) => Ok(*share),
        _ => Err(format!("a share of {} that is no constant from 0 to 1", function.func.name())),
    }
}

/// The arguments of a median or a percentile over the rows of windows, behind the value.
pub(super) struct Places<'a> {
    /// Whether a row has the value below.
    pub(super) low: &'a Expr,
    /// Whether a row has the value above.
    pub(super) high: &'a Expr,
    /// The number of values of a row's group.
    pub(super) count: &'a Expr,
    /// The share of a percentile.
    pub(super) share: Option<f64>,
}

impl Places<'_> {
    /// The arguments; none of a call over other rows.
    pub(super) fn of(arguments: &[Expr]) -> Option<Places<'_>> {
        match arguments {
            [_, low, high, count] => Some(Places { low, high, count, share: None }),
            [_, low, high, count, Expr::Literal(ScalarValue::Float64(share), _)] => {
                Some(Places { low, high, count, share: *share })
            }
            _ => None,
        }
    }
}

fn counted(aggregate: &Aggregate, functions: &[&AggregateFunction], value: &Expr) -> Result<Rewritten, Reason> {
    let named = aggregate.group_expr.iter().enumerate();
    let mut keys: Vec<Expr> = named.map(|(key, group)| group.clone().alias(format!("__group{key}"))).collect();
    keys.push(value.clone().alias(VALUE));
    let count = call(count_udaf(), value.clone(), None).alias(COUNT);
    let grouped = Aggregate::try_new(aggregate.input.clone(), keys, vec![count]).map_err(text)?;
    let groups: Vec<Expr> = (0..aggregate.group_expr.len()).map(|key| column(&format!("__group{key}"))).collect();
    let is_descending = |function: &AggregateFunction| function.params.order_by.first().is_some_and(|key| !key.asc);
    // The first of the values that are most frequent.
    let place = |descending: bool| {
        let frequent = SortExpr::new(column(COUNT), false, false);
        let name = if descending { DESCENDING_PLACE } else { PLACE };
        numbers(&groups, vec![frequent, SortExpr::new(column(VALUE), !descending, false)], name)
    };
    let directions = [false, true].into_iter().filter(|descending| {
        let mut calls = functions.iter();
        calls.any(|function| is_descending(function) == *descending)
    });
    let window = Window::try_new(directions.map(place).collect(), Arc::new(LogicalPlan::Aggregate(grouped)));
    let window = window.map_err(text)?;
    let data_type = column(VALUE).get_type(window.schema.as_ref()).map_err(text)?;
    let value = with_one_zero(column(VALUE), &data_type)?;
    let first = |function: &&AggregateFunction| {
        let place = if is_descending(function) { DESCENDING_PLACE } else { PLACE };
        call(min_udaf(), value.clone(), Some(Box::new(column(place).eq(lit(1u64)))))
    };
    let calls = functions.iter().map(first).collect();
    Ok(Rewritten { input: LogicalPlan::Window(window), groups, calls })
}
