//! Calls of aggregate functions.

use std::sync::Arc;

use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan};

use super::Reason;

/// An aggregation in place of another one.
pub(super) struct Rewritten {
    pub(super) input: LogicalPlan,
    /// Group expressions over the input.
    pub(super) groups: Vec<Expr>,
    /// Calls over the input.
    pub(super) calls: Vec<Expr>,
}

/// The call inside an aggregate's expression.
pub(crate) fn as_function(expr: &Expr) -> Result<&AggregateFunction, Reason> {
    match expr {
        Expr::Alias(alias) => as_function(&alias.expr),
        Expr::AggregateFunction(function) => Ok(function),
        other => Err(format!("the aggregate '{other}'")),
    }
}

/// A call of one argument.
pub(super) fn call(function: Arc<AggregateUDF>, argument: Expr, filter: Option<Box<Expr>>) -> Expr {
    let params = AggregateFunctionParams {
        args: vec![argument],
        distinct: false,
        filter,
        order_by: Vec::new(),
        null_treatment: None,
    };
    Expr::AggregateFunction(AggregateFunction { func: function, params })
}
