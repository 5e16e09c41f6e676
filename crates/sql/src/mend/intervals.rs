//! Intervals compare by their length: a month is 30 days, a day 24 hours, as in PostgreSQL.
//!
//! Arrow compares months, then days, then nanoseconds, so that DataFusion 55.2 takes `INTERVAL '30 days'` for less than
//! `INTERVAL '1 month'` and 47 hours, what `t2 - t1` gives, for less than a day. Once types are coerced, this rule
//! compares lengths (decimals, [`super::lengths`]) in comparisons, IN, BETWEEN, CASE with an operand, NULLIF and
//! subqueries, and sorts, joins, groups and partitions by them; a key of groups is the least of the equal intervals.
//! Differences of timestamps keep their type, durations, whose parts and texts are those of days and time. A constant
//! text that is compared with an interval or a duration is read as an interval when it is planned. The part `epoch` of
//! an interval is that of both systems, too ([`super::lengths`]).
//!
//! Invariant: what the rule makes compares no interval, so that a plan that is analysed twice stays as it is.
//! The file goes once Arrow and DataFusion compare intervals by length.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::count::Count;
use datafusion::functions_aggregate::min_max::{Max, Min, min_udaf};
use datafusion::logical_expr::expr::{InSubquery, NullTreatment, SetComparison, Sort};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Cast, Distinct, Expr, ExprSchemable, GroupingSet, LogicalPlan, Operator, Projection,
    Subquery, TryCast, WindowFunctionDefinition, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::lengths::{DAYS_AND_TIME, Extremum, chosen, days_and_time, extreme, is_interval, length, seconds};
use super::{each_expression, spans};
use crate::walk::{PlanWalk, Walk};

/// The operands of a comparison: a constant text beside a duration or an interval is an interval.
pub(super) fn with_interval(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let is_text = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.data_type().is_string());
    let is_read = |text: &Expr, beside: &Expr| {
        is_text(text) && beside.get_type(schema).is_ok_and(|data_type| is_span(&data_type))
    };
    let read = |text: Expr| Expr::Cast(Cast::new(Box::new(text), DAYS_AND_TIME));
    match (is_read(&left, &right), is_read(&right, &left)) {
        (true, _) => (read(left), right),
        (_, true) => (left, read(right)),
        _ => (left, right),
    }
}

/// The operands of a sum or a difference: a date that an interval moves is a timestamp, as in PostgreSQL, unless the
/// interval is a constant of days and months. DataFusion 55.2 cuts hours off. A time of day beside a date or a
/// timestamp is a duration of microseconds.
pub(super) fn with_time_of_day(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    // The type of a chain is that of all its operands; numbers behind it need no look at it.
    let Ok(other) = right.get_type(schema) else { return (left, right) };
    if other.is_numeric() {
        return (left, right);
    }
    let Ok(one) = left.get_type(schema) else { return (left, right) };
    let is_date = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Date64);
    let is_clock = |data_type: &DataType| matches!(data_type, DataType::Time32(_) | DataType::Time64(_));
    let is_timestamp = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, _));
    let has_time = |expr: &Expr, data_type: &DataType| match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(value), _) => value.is_some_and(|value| value.nanoseconds != 0),
        Expr::Literal(ScalarValue::IntervalDayTime(value), _) => value.is_some_and(|value| value.milliseconds != 0),
        Expr::Literal(..) => false,
        _ => is_interval(data_type),
    };
    let cast = |expr: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(expr), to));
    let timestamp = |date: Expr| cast(date, DataType::Timestamp(TimeUnit::Microsecond, None));
    let span = |clock: Expr| {
        let ticks = cast(cast(clock, DataType::Time64(TimeUnit::Microsecond)), DataType::Int64);
        cast(ticks, DataType::Duration(TimeUnit::Microsecond))
    };
    match (is_clock(&one), is_clock(&other)) {
        (true, false) if is_date(&other) => return (span(left), timestamp(right)),
        (false, true) if is_date(&one) => return (timestamp(left), span(right)),
        (true, false) if is_timestamp(&other) => return (span(left), right),
        (false, true) if is_timestamp(&one) => return (left, span(right)),
        _ => {}
    }
    match (has_time(&right, &other) && is_date(&one), has_time(&left, &one) && is_date(&other)) {
        (true, _) => (timestamp(left), right),
        (_, true) => (left, timestamp(right)),
        _ => (left, right),
    }
}

/// An expression behind a sign; a duration, which DataFusion does not negate, is taken away from none.
pub(super) fn negative(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let data_type = expr.get_type(schema)?;
    let is_number = data_type.is_numeric() && !data_type.is_unsigned_integer();
    let is_time = matches!(data_type, DataType::Timestamp(_, _));
    let is_negated = is_number || data_type.is_null() || is_interval(&data_type) || is_time;
    match data_type {
        DataType::Duration(_) => {
            let name = Expr::Negative(Box::new(expr.clone())).schema_name().to_string();
            let nothing = Expr::Literal(ScalarValue::new_zero(&data_type)?, None);
            let negative = BinaryExpr::new(Box::new(nothing), Operator::Minus, Box::new(expr));
            Ok(Expr::BinaryExpr(negative).alias(name))
        }
        _ if is_negated => Ok(Expr::Negative(Box::new(expr))),
        _ => Err(DataFusionError::Plan(format!(
            "Unary operator '-' only supports signed numeric, interval and timestamp types, not {data_type}"
        ))),
    }
}

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct IntervalLengths;

impl AnalyzerRule for IntervalLengths {
    fn name(&self) -> &str {
        "interval_lengths"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_nested(of_node)?.data)
    }
}

fn of_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !may_compare(&plan)? {
        return Ok(Transformed::no(plan));
    }
    // Names of sort keys do not matter, and an alias has no place there.
    let plan = match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = sort.input.schema().clone();
            for key in &mut sort.expr {
                let mended = std::mem::take(&mut key.expr).transform_up(|expr| in_expression(expr, &schema))?;
                key.expr = mended.data;
            }
            by_length(&mut sort.expr, &schema);
            return Ok(Transformed::yes(LogicalPlan::Sort(sort)));
        }
        plan => each_expression(plan, |_| true, |expr, schema| expr.transform_up(|expr| in_expression(expr, schema)))?,
    };
    plan.transform_data(|plan| match plan {
        LogicalPlan::Aggregate(aggregate) => of_groups(aggregate),
        LogicalPlan::RecursiveQuery(query) => Err(DataFusionError::NotImplemented(format!(
            "UNION of the recursive query {} with a column of intervals; UNION ALL compares no rows",
            query.name
        ))),
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            of_groups(Aggregate::try_new(input, columns, Vec::new())?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = on.input.schema().clone();
            on.on_expr = on.on_expr.into_iter().map(|key| if_interval(key, &schema)).collect();
            if let Some(keys) = &mut on.sort_expr {
                by_length(keys, &schema);
            }
            Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(on))))
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
            let keyed = join.on.into_iter().map(|(one, other)| (if_interval(one, &left), if_interval(other, &right)));
            join.on = keyed.collect();
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// Whether a node may compare intervals or take a difference of timestamps apart: most have neither, and are not
/// looked at any further.
fn may_compare(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(input.schema()) => return Ok(true),
        LogicalPlan::RecursiveQuery(query) => return Ok(query.is_distinct && has_interval(plan.schema())),
        _ => {}
    }
    let of_inputs = plan.inputs().iter().any(|input| has_spans(input.schema()));
    let mut found = false;
    plan.apply_exprs(|expr| {
        found |= expr.exists(|expr| {
            Ok(match expr {
                Expr::Literal(value, _) => is_span(&value.data_type()),
                Expr::Cast(cast) => is_span(cast.field.data_type()),
                Expr::TryCast(cast) => is_span(cast.field.data_type()),
                Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. }) => true,
                Expr::Column(_) => of_inputs,
                Expr::OuterReferenceColumn(field, _) => is_span(field.data_type()),
                Expr::InSubquery(within) => has_spans(within.subquery.subquery.schema()),
                Expr::SetComparison(compared) => has_spans(compared.subquery.subquery.schema()),
                Expr::ScalarSubquery(subquery) => has_spans(subquery.subquery.schema()),
                Expr::Placeholder(held) => held.field.as_ref().is_some_and(|field| is_span(field.data_type())),
                // Of intervals are `make_interval` and the like.
                Expr::ScalarFunction(function) => function.name().contains("interval"),
                _ => false,
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn has_spans(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_span(field.data_type()))
}

fn has_interval(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_interval(field.data_type()))
}

/// Whether values of a type are intervals or durations.
pub(super) fn is_span(data_type: &DataType) -> bool {
    is_interval(data_type) || matches!(data_type, DataType::Duration(_))
}

/// An expression whose outermost step compares no interval.
fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_interval = |expr: &Expr| is_interval_of(expr, schema);
    let is_duration = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Duration(_)));
    let shows_parts = |data_type: &DataType| data_type.is_string() || *data_type == DAYS_AND_TIME;
    Ok(Transformed::yes(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && (is_interval(&left) || is_interval(&right)) =>
        {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(length(*left)), op, Box::new(length(*right))))
        }
        Expr::Between(mut between) if is_interval(&between.expr) => {
            for side in [&mut between.expr, &mut between.low, &mut between.high] {
                **side = length(std::mem::take(side));
            }
            Expr::Between(between)
        }
        Expr::InList(mut list) if is_interval(&list.expr) => {
            *list.expr = length(std::mem::take(&mut list.expr));
            list.list = list.list.into_iter().map(length).collect();
            Expr::InList(list)
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_interval(&expr) => {
            Expr::InSubquery(InSubquery::new(Box::new(length(*expr)), of_lengths(subquery)?, negated))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) if is_interval(&expr) => {
            Expr::SetComparison(SetComparison::new(Box::new(length(*expr)), of_lengths(subquery)?, op, quantifier))
        }
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|operand| is_interval(operand)) => {
            case.expr = case.expr.map(|operand| Box::new(length(*operand)));
            for (value, _) in &mut case.when_then_expr {
                **value = length(std::mem::take(value));
            }
            Expr::Case(case)
        }
        Expr::ScalarFunction(mut function) if function.args.iter().any(is_interval) => match function.name() {
            "nullif" => {
                let [value, unwanted] = function.args.as_slice() else {
                    return Ok(Transformed::no(Expr::ScalarFunction(function)));
                };
                let is_unwanted = length(value.clone()).eq(length(unwanted.clone()));
                let nothing = Expr::Literal(ScalarValue::try_from(value.get_type(schema)?)?, None);
                when(is_unwanted, nothing).otherwise(value.clone())?
            }
            "date_part" if function.args.first().is_some_and(is_epoch) && function.args.len() == 2 => {
                seconds(function.args.swap_remove(1))
            }
            "greatest" => chosen(Extremum::Greatest, std::mem::take(&mut function.args)),
            "least" => chosen(Extremum::Least, std::mem::take(&mut function.args)),
            _ => return Ok(Transformed::no(Expr::ScalarFunction(function))),
        },
        Expr::ScalarFunction(mut function)
            if matches!(function.name(), "date_part") && function.args.get(1).is_some_and(is_duration) =>
        {
            function.args[1] = days_and_time(std::mem::take(&mut function.args[1]));
            Expr::ScalarFunction(function)
        }
        Expr::Cast(Cast { expr, field }) if shows_parts(field.data_type()) && is_duration(&expr) => {
            Expr::Cast(Cast { expr: Box::new(days_and_time(*expr)), field })
        }
        Expr::TryCast(TryCast { expr, field }) if shows_parts(field.data_type()) && is_duration(&expr) => {
            Expr::TryCast(TryCast { expr: Box::new(days_and_time(*expr)), field })
        }
        Expr::AggregateFunction(mut function) => {
            let of_intervals = function.params.args.first().is_some_and(is_interval);
            if of_intervals && function.params.distinct {
                function.func =
                    spans::of_distinct(&function.func, &mut function.params).unwrap_or_else(|| function.func.clone());
            }
            by_length(&mut function.params.order_by, schema);
            let inner = function.func.inner();
            if of_intervals {
                if inner.is::<Max>() || inner.is::<Min>() {
                    function.func = extreme(&function.func, inner.is::<Max>());
                } else if inner.is::<Count>() && function.params.distinct {
                    function.params.args =
                        function.params.args.into_iter().map(|key| if_interval(key, schema)).collect();
                }
            }
            Expr::AggregateFunction(function)
        }
        Expr::WindowFunction(mut function) => {
            if let WindowFunctionDefinition::AggregateUDF(of) = &function.fun
                && function.params.distinct
                && function.params.args.first().is_some_and(is_interval)
            {
                let leaves_nulls_out = function.params.null_treatment == Some(NullTreatment::IgnoreNulls);
                if let Some(own) = spans::of_distinct_in_frames(of, leaves_nulls_out) {
                    function.fun = WindowFunctionDefinition::AggregateUDF(own);
                    (function.params.distinct, function.params.null_treatment) = (false, None);
                }
            }
            by_length(&mut function.params.order_by, schema);
            let keys = function.params.partition_by.into_iter().map(|key| if_interval(key, schema));
            function.params.partition_by = keys.collect();
            if let WindowFunctionDefinition::AggregateUDF(udf) = &function.fun
                && (udf.inner().is::<Max>() || udf.inner().is::<Min>())
                && function.params.args.first().is_some_and(is_interval)
            {
                function.fun = WindowFunctionDefinition::AggregateUDF(extreme(udf, udf.inner().is::<Max>()));
            }
            Expr::WindowFunction(function)
        }
        other => return Ok(Transformed::no(other)),
    }))
}

/// Whether a part of a time is that of all its seconds.
fn is_epoch(part: &Expr) -> bool {
    let Expr::Literal(value, _) = part else { return false };
    value.try_as_str().flatten().is_some_and(|part| part.trim_matches('"').eq_ignore_ascii_case("epoch"))
}

pub(super) fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_interval_of(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| is_interval(&data_type))
}

/// The length of an interval; anything else as it is.
fn if_interval(key: Expr, schema: &DFSchema) -> Expr {
    match is_interval_of(&key, schema) {
        true => length(key),
        false => key,
    }
}

fn by_length(keys: &mut [Sort], schema: &DFSchema) {
    for key in keys {
        key.expr = if_interval(std::mem::take(&mut key.expr), schema);
    }
}

/// A subquery of one column that gives lengths.
fn of_lengths(subquery: Subquery) -> Result<Subquery> {
    let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let lengths = Projection::try_new(vec![length(column)], subquery.subquery.clone())?;
    Ok(subquery.with_plan(Arc::new(LogicalPlan::Projection(lengths))))
}

/// Groups by lengths, with the least of a group's intervals, which all have the length, as its key.
fn of_groups(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = aggregate.input.schema().clone();
    let keys: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let is_key: Vec<bool> = keys.iter().map(|key| is_interval_of(key, &schema)).collect();
    if !is_key.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let by_length = |key: Expr| match key {
        // What has an alias keeps it within its own schema alone.
        Expr::Alias(alias) if is_interval_of(&alias.expr, &schema) => length(*alias.expr),
        key => if_interval(key, &schema),
    };
    let groups = aggregate.group_expr.iter().map(|group| match group.clone() {
        Expr::GroupingSet(sets) => Expr::GroupingSet(match sets {
            GroupingSet::Rollup(keys) => GroupingSet::Rollup(keys.into_iter().map(by_length).collect()),
            GroupingSet::Cube(keys) => GroupingSet::Cube(keys.into_iter().map(by_length).collect()),
            GroupingSet::GroupingSets(sets) => {
                let sets = sets.into_iter().map(|keys| keys.into_iter().map(by_length).collect());
                GroupingSet::GroupingSets(sets.collect())
            }
        }),
        key => by_length(key),
    });
    let groups: Vec<Expr> = groups.collect();
    let least = extreme(&min_udaf(), false);
    let representatives = keys.iter().zip(&is_key).filter(|(_, is_key)| **is_key);
    let representatives = representatives.map(|(key, _)| least.call(vec![key.clone().unalias()]));
    let first = aggregate.schema.fields().len();
    let computed = aggregate.aggr_expr.iter().cloned().chain(representatives).collect();
    let grouped = Aggregate::try_new(aggregate.input, groups, computed)?;
    let mut next = first;
    let columns = aggregate.schema.iter().enumerate().map(|(place, (qualifier, field))| {
        let column = |place| Expr::Column(Column::from(grouped.schema.qualified_field(place)));
        let value = match is_key.get(place) {
            // Grouping sets leave keys out, and NULL stays NULL.
            Some(true) => {
                next += 1;
                let nothing = Expr::Literal(ScalarValue::try_from(field.data_type())?, None);
                when(column(place).is_null(), nothing).otherwise(column(next - 1))?
            }
            _ => column(place),
        };
        let named = grouped.schema.qualified_field(place);
        Ok(match value {
            Expr::Column(column) if named.0 == qualifier && named.1.name() == field.name() => Expr::Column(column),
            value => value.alias_qualified(qualifier.cloned(), field.name()),
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let grouped = Arc::new(LogicalPlan::Aggregate(grouped));
    let plan = Projection::try_new_with_schema(columns, grouped, aggregate.schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}
