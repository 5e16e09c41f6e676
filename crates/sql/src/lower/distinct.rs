//! Aggregates of distinct values: groups by the value too, then groups of those.
//!
//! ```text
//! SELECT g, count(DISTINCT x), sum(y) FROM t GROUP BY g
//!
//! pipeline 0: scan t: group by g, x: sum(y)
//! pipeline 1: scan groups of 0: group by g: count(x), sum united
//! ```
//!
//! Other aggregates are united as they are ([`AggregateCall::unites`]), so that only the total of a group can leave its
//! type. Distinct values of several expressions are of several aggregations ([`split`]), which are joined by their
//! groups: those are the same in all of them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Case, Expr, ExprSchemable, Join, LogicalPlan, Projection};
use warpcube_engine::{AggregateCall, Expr as Device};

use super::Reason;
use super::calls::as_function;

/// Whether a call is of distinct values, and not the same of all of them.
pub(super) fn is_distinct(function: &AggregateFunction) -> bool {
    function.params.distinct && !matches!(function.func.name(), "min" | "max" | "bool_and" | "bool_or")
}

/// The values whose distinct ones an aggregation takes.
pub(super) fn values(aggregate: &Aggregate) -> Result<Vec<Expr>, Reason> {
    let mut values = Vec::new();
    for call in &aggregate.aggr_expr {
        let function = as_function(call)?;
        if is_distinct(function) {
            let value = value_of(function, aggregate)?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Ok(values)
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

/// Calls over groups by keys and a value.
#[derive(Debug, Default)]
pub(super) struct OverValues {
    /// Those of the value, which has no argument here, and others, with their places among the aggregates below.
    pub(super) calls: Vec<(AggregateCall, Option<usize>)>,
}

impl OverValues {
    /// The calls, for groups of so many keys.
    pub(super) fn behind(&self, keys: usize) -> Vec<AggregateCall> {
        let call = |(call, below): &(AggregateCall, Option<usize>)| AggregateCall {
            argument: Some(Device::Reg(below.map_or(keys, |below| keys + 1 + below))),
            filter: None,
            unites: below.is_some(),
            ..call.clone()
        };
        self.calls.iter().map(call).collect()
    }
}

/// An aggregation taken apart.
pub(crate) struct Split {
    /// Group columns of each part, the number of the set included.
    groups: usize,
    parts: Vec<Aggregate>,
    /// The part of each call, and its place among those of the part.
    places: Vec<(usize, usize)>,
}

/// Takes an aggregation of distinct values of several expressions apart; `None` if there are not as many.
pub(crate) fn split(aggregate: &Aggregate) -> Result<Option<Split>, Reason> {
    let values = values(aggregate)?;
    if values.len() < 2 {
        return Ok(None);
    }
    // What is not of distinct values goes with the first of these.
    let mut calls = vec![Vec::new(); values.len()];
    let mut places = Vec::with_capacity(aggregate.aggr_expr.len());
    for call in &aggregate.aggr_expr {
        let function = as_function(call)?;
        let value = if is_distinct(function) { Some(value_of(function, aggregate)?) } else { None };
        let part = values.iter().position(|known| Some(known) == value.as_ref()).unwrap_or(0);
        places.push((part, calls[part].len()));
        calls[part].push(call.clone());
    }
    let part = |calls| Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), calls).map_err(text);
    let parts = calls.into_iter().map(part).collect::<Result<_, _>>()?;
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    Ok(Some(Split { groups, parts, places }))
}

impl Split {
    /// The aggregations for the device.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Aggregate> {
        self.parts.iter()
    }

    /// The plans of [`Split::parts`] in the shape of `whole`, joined by their groups.
    pub(crate) fn joined(&self, parts: Vec<LogicalPlan>, whole: &Aggregate) -> DataFusionResult<LogicalPlan> {
        // Parts have columns of the same names.
        let name = |part: usize, column: usize| format!("__part{part}_{column}");
        let column = |part: usize, column: usize| Expr::Column(Column::new_unqualified(name(part, column)));
        let mut joined: Option<LogicalPlan> = None;
        for (part, plan) in parts.into_iter().enumerate() {
            let named = plan.schema().columns().into_iter().enumerate();
            let named = named.map(|(at, column)| Expr::Column(column).alias(name(part, at))).collect();
            let plan = LogicalPlan::Projection(Projection::try_new(named, Arc::new(plan))?);
            joined = Some(match joined {
                None => plan,
                Some(left) => {
                    let on = (0..self.groups).map(|group| (column(0, group), column(part, group))).collect();
                    let (left, right) = (Arc::new(left), Arc::new(plan));
                    let (inner, using) = (JoinType::Inner, JoinConstraint::On);
                    let nulls = NullEquality::NullEqualsNull;
                    LogicalPlan::Join(Join::try_new(left, right, on, None, inner, using, nulls, false)?)
                }
            });
        }
        let joined = joined.ok_or_else(|| DataFusionError::Internal("an aggregation of no parts".into()))?;
        let groups = (0..self.groups).map(|group| column(0, group));
        let calls = self.places.iter().map(|(part, place)| column(*part, self.groups + place));
        let outputs = whole.schema.iter().zip(groups.chain(calls));
        let outputs =
            outputs.map(|((relation, field), output)| output.alias_qualified(relation.cloned(), field.name()));
        Ok(LogicalPlan::Projection(Projection::try_new(outputs.collect(), Arc::new(joined))?))
    }
}

fn text(error: DataFusionError) -> Reason {
    error.strip_backtrace()
}
