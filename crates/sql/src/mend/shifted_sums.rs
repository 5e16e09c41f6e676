//! Sums of one column plus constants, as one sum and a count.
//!
//! ```text
//! SELECT sum(x), sum(x + 1), sum(x + 2) FROM t
//!
//! Projection: s, s + 1 * n, s + 2 * n
//!   Aggregate: sum(x) AS s, count(x) AS n
//! ```
//!
//! DataFusion 55.2 has the same for columns of all types, which is held back ([`super::names`]): an addition may
//! overflow, and a sum of the column where the sum that was asked for does not. Here columns have 32 bits at most, and
//! so have constants: neither overflows over fewer than 2³² rows. Columns of UINT32 are left out.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, binary_expr,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Least sums of a column that are made of two aggregates.
const SUMS_MIN: usize = 3;
/// Largest constant.
const SHIFT_MAX: u64 = 1 << 31;

/// The rule that takes constants out of sums.
#[derive(Debug)]
pub(super) struct ShiftedSums;

impl OptimizerRule for ShiftedSums {
    fn name(&self) -> &str {
        "shifted_sums"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let rewritten = match &plan {
            LogicalPlan::Aggregate(aggregate) => of_one_sum(aggregate)?,
            _ => None,
        };
        Ok(rewritten.map_or_else(|| Transformed::no(plan), Transformed::yes))
    }
}

/// A sum of a column and a constant.
#[derive(Clone, Copy)]
struct Shifted<'a> {
    call: &'a AggregateFunction,
    column: &'a Expr,
    by: i64,
}

impl<'a> Shifted<'a> {
    fn of(call: &'a Expr, schema: &DFSchema) -> Option<Shifted<'a>> {
        let Expr::AggregateFunction(call) = bare(call) else { return None };
        let params = &call.params;
        let is_drawn = params.filter.as_ref().is_some_and(|filter| filter.is_volatile());
        let is_plain = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none() && !is_drawn;
        let ([argument], true) = (params.args.as_slice(), is_plain && call.func.inner().is::<Sum>()) else {
            return None;
        };
        let (column, by) = match bare(argument) {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (bare(left), op, bare(right)) {
                (column, Operator::Plus, Expr::Literal(ScalarValue::Int64(Some(by)), _))
                | (Expr::Literal(ScalarValue::Int64(Some(by)), _), Operator::Plus, column) => (column, *by),
                (column, Operator::Minus, Expr::Literal(ScalarValue::Int64(Some(by)), _)) => {
                    (column, by.checked_neg()?)
                }
                _ => return None,
            },
            column => (column, 0),
        };
        let Expr::Cast(cast) = column else { return None };
        let from = cast.expr.get_type(schema).ok()?;
        let is_narrow =
            from.is_integer() && from != DataType::UInt32 && from.primitive_width().is_some_and(|bytes| bytes <= 4);
        let is_whole = *cast.field.data_type() == DataType::Int64 && is_narrow && !column.is_volatile();
        (is_whole && by.unsigned_abs() <= SHIFT_MAX).then_some(Shifted { call, column, by })
    }

    /// Whether both are sums of the same rows of a column.
    fn is_like(&self, other: &Shifted) -> bool {
        self.column == other.column && self.call.params.filter == other.call.params.filter
    }

    /// Another function of the column alone, over the same rows.
    fn of_column(&self, function: Option<AggregateFunction>) -> Expr {
        let mut call = function.unwrap_or_else(|| self.call.clone());
        call.params.args = vec![self.column.clone()];
        Expr::AggregateFunction(call)
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        expr => expr,
    }
}

/// The aggregation with a sum and a count in place of many sums, below what these are; none if there are few.
fn of_one_sum(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let sums: Vec<Option<Shifted>> = aggregate.aggr_expr.iter().map(|call| Shifted::of(call, schema)).collect();
    let is_shared = |sum: &Shifted| {
        let alike = || sums.iter().flatten().filter(|other| sum.is_like(other));
        alike().count() >= SUMS_MIN && alike().any(|other| other.by != 0)
    };
    let column = |name: String| Expr::Column(Column::new_unqualified(name));
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let mut outputs: Vec<Expr> = aggregate.schema.columns().into_iter().take(groups).map(Expr::Column).collect();
    let (mut calls, mut shared): (Vec<Expr>, Vec<Shifted>) = Default::default();
    for ((call, sum), known) in aggregate.aggr_expr.iter().zip(&sums).zip(&aggregate.schema.columns()[groups..]) {
        let Some(sum) = sum.filter(is_shared) else {
            calls.push(call.clone());
            outputs.push(Expr::Column(known.clone()));
            continue;
        };
        let number = shared.iter().position(|other| sum.is_like(other)).unwrap_or_else(|| {
            let count = AggregateFunction { func: count_udaf(), ..sum.call.clone() };
            calls.push(sum.of_column(None).alias(format!("__shifted_sum_{}", shared.len())));
            calls.push(sum.of_column(Some(count)).alias(format!("__shifted_count_{}", shared.len())));
            shared.push(sum);
            shared.len() - 1
        });
        let total = column(format!("__shifted_sum_{number}"));
        let rows = column(format!("__shifted_count_{number}"));
        let by = Expr::Literal(ScalarValue::Int64(Some(sum.by)), None);
        let value = match sum.by {
            0 => total,
            _ => binary_expr(total, Operator::Plus, binary_expr(by, Operator::Multiply, rows)),
        };
        outputs.push(value.alias_qualified(known.relation.clone(), &known.name));
    }
    if shared.is_empty() {
        return Ok(None);
    }
    let below = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), calls)?;
    let projection = Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(below)))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}
