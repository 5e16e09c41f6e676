//! GROUPING() by arithmetic.
//!
//! DataFusion 55.2 takes GROUPING() apart into shifts of the number of a grouping set and makes an INTEGER of 31 bits
//! of it, which does not hold more arguments. Here a bit of it is a quotient's remainder, which the device computes
//! too, and calls of more than 31 arguments are BIGINT. Calls that DataFusion refuses are left to it.
//!
//! The file goes once DataFusion's result has as many bits as there are arguments.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Operator, Projection, binary_expr, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::walk::PlanWalk;

/// Arguments whose bits an INTEGER holds, and those that a BIGINT does.
const ARGUMENTS_MAX: [usize; 2] = [31, 63];

/// The rule that computes GROUPING().
#[derive(Debug)]
pub(super) struct GroupingCalls;

impl AnalyzerRule for GroupingCalls {
    fn name(&self) -> &str {
        "grouping_calls"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let computed = plan.transform_up_nested(|plan| match &plan {
            LogicalPlan::Aggregate(aggregate) => {
                Ok(computed(aggregate)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
            }
            _ => Ok(Transformed::no(plan)),
        })?;
        Ok(computed.data)
    }
}

/// The arguments of a call of GROUPING().
fn arguments(call: &Expr) -> Option<&[Expr]> {
    match call {
        Expr::Alias(alias) => arguments(&alias.expr),
        Expr::AggregateFunction(function) if function.func.name() == "grouping" => Some(&function.params.args),
        _ => None,
    }
}

/// The aggregation without calls of GROUPING(), under what they are; none if it has no sets or no calls.
fn computed(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
        || !aggregate.aggr_expr.iter().any(|call| arguments(call).is_some())
    {
        return Ok(None);
    }
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    let columns = aggregate.schema.columns();
    let number_type = aggregate.schema.field(keys.len()).data_type();
    let number = |value: u64| ScalarValue::UInt64(Some(value)).cast_to(number_type);
    let mut calls = Vec::new();
    let mut outputs: Vec<Expr> = columns[..keys.len()].iter().cloned().map(Expr::Column).collect();
    for (call, column) in aggregate.aggr_expr.iter().zip(&columns[keys.len() + 1..]) {
        let Some(arguments) = arguments(call) else {
            calls.push(call.clone());
            outputs.push(Expr::Column(column.clone()));
            continue;
        };
        let places: Option<Vec<usize>> =
            arguments.iter().map(|argument| keys.iter().position(|key| *key == argument)).collect();
        let (Some(places), true) = (places, arguments.len() <= ARGUMENTS_MAX[1] && !arguments.is_empty()) else {
            return Ok(None);
        };
        let result = if places.len() <= ARGUMENTS_MAX[0] { DataType::Int32 } else { DataType::Int64 };
        let mut value: Option<Expr> = None;
        for (at, place) in places.iter().enumerate() {
            let id = Expr::Column(Column::from_name(Aggregate::INTERNAL_GROUPING_ID));
            let shifted = match keys.len() - 1 - place {
                0 => id,
                bit => binary_expr(id, Operator::Divide, Expr::Literal(number(1 << bit)?, None)),
            };
            let bit = cast(binary_expr(shifted, Operator::Modulo, Expr::Literal(number(2)?, None)), result.clone());
            let bit = match places.len() - 1 - at {
                0 => bit,
                weight => {
                    let weight = Expr::Literal(ScalarValue::UInt64(Some(1 << weight)).cast_to(&result)?, None);
                    binary_expr(bit, Operator::Multiply, weight)
                }
            };
            value = Some(match value {
                Some(value) => binary_expr(value, Operator::Plus, bit),
                None => bit,
            });
        }
        outputs.extend(value.map(|value| value.alias_qualified(column.relation.clone(), &column.name)));
    }
    let aggregate = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), calls)?;
    let projection = Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(aggregate)))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}
