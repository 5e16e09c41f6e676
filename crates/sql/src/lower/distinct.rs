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
//! type. Distinct values of several expressions, and order statistics of several values, are of several aggregations
//! ([`split`]), which are joined by their groups: those are the same in all of them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, Join, LogicalPlan, Projection};
use warpcube_engine::{AggregateCall, Expr as Device};

use super::Reason;
use super::calls::as_function;
use super::order_statistics::{self, Rows, filtered};
use crate::mend::cast_functions::CastFunction;

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
        let made_of = match argument {
            Expr::Cast(cast) => Some(cast.expr.as_ref()),
            other => CastFunction::as_double(other),
        };
        match made_of {
            Some(inner) if one_zero(type_of(inner)?) => {}
            _ => return Err(format!("{name} of distinct floats")),
        }
    }
    Ok(filtered(argument.clone(), function))
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

/// The rows that a call needs, where it needs others than each row of the input once, in any order.
#[derive(PartialEq)]
enum Needs {
    Distinct(Expr),
    Ordered(Rows),
}

impl Needs {
    fn of(function: &AggregateFunction, aggregate: &Aggregate) -> Result<Option<Needs>, Reason> {
        if is_distinct(function) {
            return Ok(Some(Needs::Distinct(value_of(function, aggregate)?)));
        }
        Ok(order_statistics::rows(function, aggregate)?.map(Needs::Ordered))
    }

    /// Whether other calls may be of the same aggregation.
    fn has_all_rows(&self) -> bool {
        !matches!(self, Needs::Ordered(Rows::Counted(_)))
    }
}

/// Takes an aggregation apart whose calls need several kinds of rows; `None` if one kind is enough.
pub(crate) fn split(aggregate: &Aggregate) -> Result<Option<Split>, Reason> {
    let needs = aggregate.aggr_expr.iter().map(|call| Needs::of(as_function(call)?, aggregate));
    let needs = needs.collect::<Result<Vec<_>, _>>()?;
    let mut kinds: Vec<&Needs> = Vec::new();
    for needs in needs.iter().flatten() {
        if !kinds.contains(&needs) {
            kinds.push(needs);
        }
    }
    // Calls that need nothing go with the first ones that have all rows.
    let shared = kinds.iter().position(|kind| kind.has_all_rows()).unwrap_or(kinds.len());
    let count = if needs.contains(&None) { kinds.len().max(shared + 1) } else { kinds.len() };
    if count < 2 {
        return Ok(None);
    }
    let mut calls = vec![Vec::new(); count];
    let mut places = Vec::with_capacity(aggregate.aggr_expr.len());
    for (call, needs) in aggregate.aggr_expr.iter().zip(&needs) {
        let part = kinds.iter().position(|kind| Some(*kind) == needs.as_ref()).unwrap_or(shared);
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
