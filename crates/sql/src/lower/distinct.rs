//! Counts of distinct values as two aggregations: the device groups by the counted value too, the CPU counts those
//! groups.
//!
//! `SELECT g, count(DISTINCT x), sum(y) … GROUP BY g` becomes
//! `SELECT g, count(x), sum(s) FROM (SELECT g, x, sum(y) AS s … GROUP BY g, x) GROUP BY g`. All distinct counts of one
//! aggregation have to count the same expression; what stands beside them has to be combinable from parts.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::{count::count_udaf, sum::sum_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, AggregateUDF, Case, Expr, LogicalPlan, Projection, cast};

use super::Reason;
use super::aggregate::as_function;

/// The two aggregations.
pub(crate) struct Split {
    /// Groups by the counted expression as well; for the device.
    pub(crate) inner: Aggregate,
    outer_groups: Vec<Expr>,
    outer_calls: Vec<Expr>,
    outputs: Vec<Expr>,
}

fn text(error: DataFusionError) -> Reason {
    error.strip_backtrace()
}

fn call(function: Arc<AggregateUDF>, argument: Expr, filter: Option<Box<Expr>>) -> Expr {
    let params = AggregateFunctionParams {
        args: vec![argument],
        distinct: false,
        filter,
        order_by: Vec::new(),
        null_treatment: None,
    };
    Expr::AggregateFunction(AggregateFunction { func: function, params })
}

fn column(name: String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Takes an aggregation apart; `None` if it counts nothing distinct.
pub(crate) fn split(aggregate: &Aggregate) -> Result<Option<Split>, Reason> {
    let functions = aggregate.aggr_expr.iter().map(as_function).collect::<Result<Vec<_>, _>>()?;
    let Some(counted) = functions.iter().find(|function| function.params.distinct) else { return Ok(None) };
    let counted = counted_expression(counted)?;
    let groups = aggregate.group_expr.len();
    let group = |index: usize| format!("__group{index}");
    let mut inner_groups: Vec<Expr> =
        aggregate.group_expr.iter().enumerate().map(|(index, expr)| expr.clone().alias(group(index))).collect();
    inner_groups.push(counted.clone().alias("__counted"));
    let mut parts = Parts::default();
    let outputs = functions
        .iter()
        .map(|function| match function.params.distinct {
            false => parts.combine(function),
            true if counted_expression(function)? == counted => {
                Ok(parts.outer(call(count_udaf(), column("__counted".into()), None)))
            }
            true => Err("counts of distinct values of several expressions".into()),
        })
        .collect::<Result<Vec<_>, Reason>>()?;
    let inner = Aggregate::try_new(aggregate.input.clone(), inner_groups, parts.inner).map_err(text)?;
    let fields = aggregate.schema.iter();
    let all = (0..groups).map(|index| column(group(index))).chain(outputs);
    let outputs = fields
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
    let outer_groups = (0..groups).map(|index| column(group(index))).collect();
    Ok(Some(Split { inner, outer_groups, outer_calls: parts.outer, outputs }))
}

/// What a distinct count counts, its filter included.
fn counted_expression(function: &AggregateFunction) -> Result<Expr, Reason> {
    let params = &function.params;
    let name = function.func.name();
    let ([argument], "count", true) = (params.args.as_slice(), name, params.order_by.is_empty()) else {
        return Err(format!("{name} of distinct values"));
    };
    Ok(match &params.filter {
        None => argument.clone(),
        Some(filter) => Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(filter.clone(), Box::new(argument.clone()))],
            else_expr: None,
        }),
    })
}

/// Calls of both aggregations.
#[derive(Default)]
struct Parts {
    inner: Vec<Expr>,
    outer: Vec<Expr>,
}

impl Parts {
    fn inner(&mut self, call: Expr) -> Expr {
        let name = format!("__part{}", self.inner.len());
        self.inner.push(call.alias(&name));
        column(name)
    }

    fn outer(&mut self, call: Expr) -> Expr {
        let name = format!("__whole{}", self.outer.len());
        self.outer.push(call.alias(&name));
        column(name)
    }

    /// A call from its parts, as an expression over the outer aggregation.
    fn combine(&mut self, function: &AggregateFunction) -> Result<Expr, Reason> {
        let name = function.func.name();
        let own = Expr::AggregateFunction(function.clone());
        match name {
            "sum" | "min" | "max" | "bool_and" | "bool_or" => {
                let part = self.inner(own);
                Ok(self.outer(call(function.func.clone(), part, None)))
            }
            "count" => {
                let part = self.inner(own);
                let whole = self.outer(call(sum_udaf(), part, None));
                // Nothing at all was summed.
                let none = Expr::IsNull(Box::new(whole.clone()));
                let zero = Expr::Literal(ScalarValue::Int64(Some(0)), None);
                Ok(Expr::Case(Case {
                    expr: None,
                    when_then_expr: vec![(Box::new(none), Box::new(zero))],
                    else_expr: Some(Box::new(whole)),
                }))
            }
            other => Err(format!("{other} beside a count of distinct values")),
        }
    }
}

impl Split {
    /// The CPU's part over `inner`, in the shape of the whole aggregation.
    pub(crate) fn above(self, inner: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        let outer = Aggregate::try_new(Arc::new(inner), self.outer_groups, self.outer_calls)?;
        let projection = Projection::try_new(self.outputs, Arc::new(LogicalPlan::Aggregate(outer)))?;
        Ok(LogicalPlan::Projection(projection))
    }
}
