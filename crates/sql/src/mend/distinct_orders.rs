//! `ARRAY_AGG` and `STRING_AGG` of distinct values with an order.
//!
//! They sort their values themselves. DataFusion 55.2 nevertheless fits the order of their input to that of other
//! aggregates and of their table, and turns them round where that is the opposite one: the values then come out in
//! the order that was wanted by another (`array_agg(x ORDER BY x DESC), array_agg(DISTINCT x ORDER BY x)`). Here they
//! say that the order of their input means nothing to them.
//!
//! The file goes once DataFusion's accumulator of distinct values knows that it was turned round.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_aggregate::array_agg::ArrayAgg;
use datafusion::functions_aggregate::string_agg::StringAgg;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, LogicalPlan, Signature};

use super::{each_expression, each_node};
use crate::walk::Walk;

/// Puts functions of ours in the place of those that sort distinct values.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::Aggregate(_) => each_expression(plan, sorts_distinct_values, |expr, _| {
            expr.transform_up(|mut expr| {
                let is_candidate = sorts_distinct_values(&expr);
                if let Expr::AggregateFunction(function) = &mut expr
                    && is_candidate
                {
                    let original = function.func.clone();
                    function.func = Arc::new(AggregateUDF::new_from_impl(Sorted { original }));
                }
                Ok(Transformed::new_transformed(expr, is_candidate))
            })
        }),
        other => Ok(Transformed::no(other)),
    })
}

fn sorts_distinct_values(expr: &Expr) -> bool {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return false };
    let is_collected = func.inner().is::<ArrayAgg>() || func.inner().is::<StringAgg>();
    is_collected && params.distinct && !params.order_by.is_empty()
}

/// A function that sorts what it is given.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sorted {
    original: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Sorted {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.original.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn supports_null_handling_clause(&self) -> bool {
        true
    }
}
