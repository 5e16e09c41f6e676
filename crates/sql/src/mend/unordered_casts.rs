//! Casts that keep no order.
//!
//! DataFusion 55.2 takes casts for monotone. It compares `CAST(ts AS TIME)` of the smallest and the largest `ts` of a
//! row group with a literal, a threshold of first rows or keys of a join, and leaves the group out although rows
//! between them pass; it takes rows that are sorted by `ts` for sorted by their times of day, and the text of the
//! largest number for the largest text. A time of day, a truth value of a number, the text of a value and the value of
//! a text do not follow the order of what they are made of: here such casts are functions, of which nothing is
//! concluded.
//!
//! The file goes once DataFusion takes only monotone casts for such.

use std::sync::Arc;

use arrow::compute::CastOptions;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};

use super::{each_expression, each_node};
use crate::walk::Walk;

/// The final plan with functions in place of casts that keep no order.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        each_expression(
            plan,
            |expr| matches!(expr, Expr::Cast(_) | Expr::TryCast(_)),
            |expr, schema| match expr {
                // The planner looks for sets at the top alone, and a function has another name.
                Expr::GroupingSet(_) => Ok(Transformed::no(expr)),
                expr => expr.transform_up(|expr| Ok(function(expr, schema))),
            },
        )
    })
}

fn function(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Some((operand, to, safe)) = unordered(&expr, schema) else { return Transformed::no(expr) };
    let signature = Signature::any(1, Volatility::Immutable);
    let func = Arc::new(ScalarUDF::from(UnorderedCast { to: to.clone(), safe, signature }));
    Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: vec![operand.clone()] }))
}

/// Whether an expression is a cast that keeps no order.
pub(super) fn is_unordered_cast(expr: &Expr, schema: &DFSchema) -> bool {
    unordered(expr, schema).is_some()
}

/// The operand of a cast that keeps no order, the type, and whether what does not fit is NULL.
fn unordered<'a>(expr: &'a Expr, schema: &DFSchema) -> Option<(&'a Expr, &'a DataType, bool)> {
    let (operand, to, safe) = match expr {
        Expr::Cast(Cast { expr: operand, field }) => (operand, field.data_type(), false),
        Expr::TryCast(TryCast { expr: operand, field }) => (operand, field.data_type(), true),
        _ => return None,
    };
    let from = operand.get_type(schema).ok()?;
    is_unordered(of_values(&from), of_values(to)).then_some((operand.as_ref(), to, safe))
}

/// The type of the values of a dictionary.
fn of_values(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Whether larger values may become smaller ones.
fn is_unordered(from: &DataType, to: &DataType) -> bool {
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Time32(_) | DataType::Time64(_));
    let is_boolean = |data_type: &DataType| *data_type == DataType::Boolean;
    let changes_text = from.is_string() != to.is_string() && !from.is_null() && !from.is_binary() && !to.is_binary();
    (is_time(to) && !is_time(from)) || (is_boolean(to) && !is_boolean(from)) || changes_text
}

/// A cast.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UnorderedCast {
    to: DataType,
    /// Whether what does not fit is NULL.
    safe: bool,
    signature: Signature,
}

/// The type that a function casts to, and whether what does not fit is NULL; none if it is no cast.
pub(super) fn as_cast(function: &ScalarUDF) -> Option<(&DataType, bool)> {
    function.inner().downcast_ref::<UnorderedCast>().map(|cast| (&cast.to, cast.safe))
}

impl ScalarUDFImpl for UnorderedCast {
    fn name(&self) -> &str {
        "unordered_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.safe || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args[0].cast_to(&self.to, Some(&CastOptions { safe: self.safe, ..CastOptions::default() }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn times_of_day_and_truth_values_have_an_order_of_their_own() {
        let (time, timestamp) = (DataType::Time64(TimeUnit::Nanosecond), DataType::Timestamp(TimeUnit::Second, None));
        assert!(is_unordered(&timestamp, &time));
        assert!(is_unordered(&DataType::Int32, &DataType::Boolean));
        assert!(is_unordered(&DataType::Int32, &DataType::Utf8View));
        assert!(is_unordered(&DataType::Utf8, &DataType::Int64));
        assert!(!is_unordered(&DataType::Utf8, &DataType::Utf8View));
        assert!(!is_unordered(&DataType::Time32(TimeUnit::Second), &time));
        assert!(!is_unordered(&timestamp, &DataType::Date32));
        assert!(!is_unordered(&DataType::Int32, &DataType::Int64));
    }
}
