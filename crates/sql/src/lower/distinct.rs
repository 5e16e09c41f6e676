//! Aggregates of distinct values as two aggregations: the device groups by the value too, the CPU aggregates those
//! groups.
//!
//! `SELECT g, count(DISTINCT x), sum(y) … GROUP BY g` becomes
//! `SELECT g, count(x), sum(s) FROM (SELECT g, x, sum(y) AS s … GROUP BY g, x) GROUP BY g`. Distinct values of several
//! expressions, and what cannot be combined from parts (an average, or a sum that may overflow), make further
//! aggregations beside it, which are joined by their groups: those are the same in all of them.
//!
//! Of grouping sets each has the value as one more key, and a set without keys comes once more without it, so that it
//! has a row where there are no rows at all: a NULL among the values counts for nothing.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, ScalarValue};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Case, Expr, ExprSchemable, Join, LogicalPlan, Projection, cast};
use warpcube_engine::Overflow;

use super::Reason;
use super::calls::{as_function, call};
use super::grouping_sets::Sets;
use crate::mend::float_sums::is_exact;
use crate::mend::sums::is_checked_sum;

/// An aggregation taken apart.
pub(crate) struct Split {
    /// Groups of each part, the number of the set included.
    groups: usize,
    parts: Vec<Part>,
    outputs: Vec<Expr>,
}

/// One of the aggregations.
struct Part {
    /// For the device; where something distinct is aggregated, grouped by that as well.
    inner: Aggregate,
    /// Its columns with the number of the set, if there are sets.
    named: Option<Vec<Expr>>,
    /// Groups and calls of the CPU's aggregation over it; `None` if there is nothing to add.
    outer: Option<(Vec<Expr>, Vec<Expr>)>,
}

fn text(error: DataFusionError) -> Reason {
    error.strip_backtrace()
}

fn column(name: String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The name of a group column in a part.
fn group(part: usize, index: usize) -> String {
    format!("__part{part}_group{index}")
}

/// Takes an aggregation apart; `None` if nothing distinct is aggregated. Sums that may raise stay whole.
pub(crate) fn split(aggregate: &Aggregate, overflow: Overflow) -> Result<Option<Split>, Reason> {
    let functions = aggregate.aggr_expr.iter().map(as_function).collect::<Result<Vec<_>, _>>()?;
    let mut distinct: Vec<Expr> = Vec::new();
    for function in functions.iter().filter(|function| function.params.distinct) {
        let value = value_of(function, aggregate)?;
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    if distinct.is_empty() {
        return Ok(None);
    }
    // What is combined from parts goes with the first distinct value, the rest has a part of its own, the last.
    let raises = |function: &AggregateFunction| {
        // A part of a sum may overflow although the total does not.
        overflow == Overflow::Raise && is_checked_sum(function, aggregate.input.schema())
    };
    let (keys, sets) = Sets::of(aggregate)?;
    let combined = |function: &AggregateFunction| {
        distinct.len() == 1 && sets.is_none() && Calls::combines(function) && !raises(function)
    };
    let alone = functions.iter().copied().any(|function| !function.params.distinct && !combined(function));
    let mut calls: Vec<Calls> = (0..distinct.len() + usize::from(alone)).map(Calls::new).collect();
    let mut outputs = Vec::with_capacity(functions.len());
    for function in functions {
        outputs.push(match function.params.distinct {
            true => {
                let value = value_of(function, aggregate)?;
                let part = distinct.iter().position(|known| *known == value).expect("collected above");
                calls[part].outer(call(function.func.clone(), column("__value".into()), None))
            }
            false if combined(function) => calls[0].combine(function)?,
            false => calls[distinct.len()].inner(Expr::AggregateFunction(function.clone())),
        });
    }
    let groups = keys.len() + usize::from(sets.is_some());
    let mut parts = Vec::with_capacity(calls.len());
    for (index, calls) in calls.into_iter().enumerate() {
        let named = |(position, expr): (usize, &Expr)| expr.clone().alias(group(index, position));
        let mut inner_groups: Vec<Expr> = keys.iter().enumerate().map(named).collect();
        let value = distinct.get(index).map(|value| value.clone().alias("__value"));
        let mut numbers = Vec::new();
        match &sets {
            None => inner_groups.extend(value),
            Some(sets) => (inner_groups, numbers) = sets.with_value(inner_groups, value),
        }
        let inner = Aggregate::try_new(aggregate.input.clone(), inner_groups, calls.inner).map_err(text)?;
        let named = match &sets {
            None => None,
            Some(_) => Some(numbered(&inner, &numbers, aggregate, group(index, keys.len()))?),
        };
        let by = (0..groups).map(|position| column(group(index, position))).collect();
        parts.push(Part { inner, named, outer: (index < distinct.len()).then_some((by, calls.outer)) });
    }
    let all = (0..groups).map(|position| column(group(0, position))).chain(outputs);
    let outputs = aggregate
        .schema
        .iter()
        .zip(all)
        .map(|((relation, field), output)| {
            // The sum of sums of decimals has digits to spare.
            let output = match field.data_type() {
                data_type @ DataType::Decimal128(_, _) => cast(output, data_type.clone()),
                _ => output,
            };
            output.alias_qualified(relation.cloned(), field.name())
        })
        .collect();
    Ok(Some(Split { groups, parts, outputs }))
}

/// The columns of a part with sets, whose number, under this name, is that of the whole aggregation's: `numbers` has it
/// for each set of the part.
fn numbered(inner: &Aggregate, numbers: &[u64], aggregate: &Aggregate, name: String) -> Result<Vec<Expr>, Reason> {
    let (_, sets) = Sets::of(inner)?;
    let of = |aggregate: &Aggregate| {
        let number = aggregate.schema.field_with_unqualified_name(Aggregate::INTERNAL_GROUPING_ID);
        number.map(|field| field.data_type().clone()).map_err(text)
    };
    let (from, to) = (of(inner)?, of(aggregate)?);
    let literal = |number: u64, data_type: &DataType| {
        let value = ScalarValue::UInt64(Some(number)).cast_to(data_type).map_err(text)?;
        Ok::<_, Reason>(Box::new(Expr::Literal(value, None)))
    };
    let own = sets.iter().flat_map(Sets::numbers).zip(numbers);
    let mut branches = own.map(|(own, number)| Ok::<_, Reason>((literal(own, &from)?, literal(*number, &to)?)));
    let otherwise = branches.next().transpose()?.map(|(_, number)| number);
    let when_then_expr = branches.collect::<Result<_, Reason>>()?;
    let id = column(Aggregate::INTERNAL_GROUPING_ID.into());
    let number = Expr::Case(Case { expr: Some(Box::new(id)), when_then_expr, else_expr: otherwise });
    let number = if numbers.len() > 1 { number } else { *literal(numbers.first().copied().unwrap_or(0), &to)? };
    let own = |field: &Arc<Field>| match field.name().as_str() {
        Aggregate::INTERNAL_GROUPING_ID => number.clone().alias(&name),
        other => column(other.to_string()),
    };
    Ok(inner.schema.fields().iter().map(own).collect())
}

/// The value whose distinct ones are aggregated, the call's filter included.
fn value_of(function: &AggregateFunction, aggregate: &Aggregate) -> Result<Expr, Reason> {
    let params = &function.params;
    let name = function.func.name();
    let ([argument], "count" | "sum" | "avg", true) = (params.args.as_slice(), name, params.order_by.is_empty()) else {
        return Err(format!("{name} of distinct values"));
    };
    // Groups take both zeros for one value, this aggregation for two; integers that became floats have but one.
    let type_of = |expr: &Expr| expr.get_type(aggregate.input.schema().as_ref()).map_err(text);
    if name != "sum" && type_of(argument)?.is_floating() {
        let one_zero = |data_type: DataType| data_type.is_integer() || data_type.is_decimal();
        match argument {
            Expr::Cast(cast) if one_zero(type_of(&cast.expr)?) => {}
            _ => return Err(format!("{name} of distinct floats")),
        }
    }
    Ok(match &params.filter {
        None => argument.clone(),
        Some(filter) => Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(filter.clone(), Box::new(argument.clone()))],
            else_expr: None,
        }),
    })
}

/// Calls of both aggregations of a part.
struct Calls {
    part: usize,
    inner: Vec<Expr>,
    outer: Vec<Expr>,
}

impl Calls {
    fn new(part: usize) -> Calls {
        Calls { part, inner: Vec::new(), outer: Vec::new() }
    }

    fn inner(&mut self, call: Expr) -> Expr {
        let name = format!("__part{}_inner{}", self.part, self.inner.len());
        self.inner.push(call.alias(&name));
        column(name)
    }

    fn outer(&mut self, call: Expr) -> Expr {
        let name = format!("__part{}_outer{}", self.part, self.outer.len());
        self.outer.push(call.alias(&name));
        column(name)
    }

    /// Whether a call over all rows can be made of calls over groups of them.
    fn combines(function: &AggregateFunction) -> bool {
        // An exact sum is rounded once, not in each part.
        !is_exact(&function.func)
            && matches!(function.func.name(), "sum" | "min" | "max" | "bool_and" | "bool_or" | "count")
    }

    /// A call from its parts, as an expression over the outer aggregation.
    fn combine(&mut self, function: &AggregateFunction) -> Result<Expr, Reason> {
        let part = self.inner(Expr::AggregateFunction(function.clone()));
        if function.func.name() != "count" {
            return Ok(self.outer(call(function.func.clone(), part, None)));
        }
        let whole = self.outer(call(sum_udaf(), part, None));
        // NULL where nothing at all was summed. In this order DataFusion sees that a count is never NULL.
        let some = Expr::IsNotNull(Box::new(whole.clone()));
        let zero = Expr::Literal(ScalarValue::Int64(Some(0)), None);
        Ok(Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(some), Box::new(whole))],
            else_expr: Some(Box::new(zero)),
        }))
    }
}

impl Split {
    /// The aggregations for the device.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Aggregate> {
        self.parts.iter().map(|part| &part.inner)
    }

    /// The CPU's part over the plans of [`Split::parts`], in the shape of the whole aggregation.
    pub(crate) fn above(self, inner: Vec<LogicalPlan>) -> DataFusionResult<LogicalPlan> {
        let mut whole: Option<(LogicalPlan, Vec<Expr>)> = None;
        for (index, (part, plan)) in self.parts.into_iter().zip(inner).enumerate() {
            let plan = match part.named {
                None => plan,
                Some(named) => LogicalPlan::Projection(Projection::try_new(named, Arc::new(plan))?),
            };
            let groups: Vec<Expr> = (0..self.groups).map(|position| column(group(index, position))).collect();
            let plan = match part.outer {
                None => plan,
                Some((by, calls)) => LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), by, calls)?),
            };
            whole = Some(match whole {
                None => (plan, groups),
                Some((left, by)) => {
                    let on = by.iter().cloned().zip(groups).collect();
                    let (left, right) = (Arc::new(left), Arc::new(plan));
                    let (inner, using) = (JoinType::Inner, JoinConstraint::On);
                    let nulls = NullEquality::NullEqualsNull;
                    (LogicalPlan::Join(Join::try_new(left, right, on, None, inner, using, nulls, false)?), by)
                }
            });
        }
        let (plan, _) = whole.ok_or_else(|| DataFusionError::Internal("an aggregation of no parts".into()))?;
        Ok(LogicalPlan::Projection(Projection::try_new(self.outputs, Arc::new(plan))?))
    }
}
