//! Integers beside decimals with many digits behind the point are compared in 256 bits.
//!
//! DataFusion 55.2 compares both as decimals of 38 digits, which have no room for the digits of a BIGINT and 20 behind
//! the point: `b = 1.0 / 3` is an overflow where `b` is large. Here such a comparison is one of decimals of 256 bits.
//!
//! The file goes once DataFusion compares them in a type that has room for both.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use super::intervals::compares;
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct WideComparisons;

impl AnalyzerRule for WideComparisons {
    fn name(&self) -> &str {
        "wide_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_decimal = |expr: &Expr| matches!(expr, Expr::Cast(cast) if scale_of(cast.field.data_type()).is_some());
        let widened = plan.transform_up_nested(|plan| {
            each_expression(plan, is_decimal, |expr, schema| expr.transform_up(|expr| Ok(widened(expr, schema))))
        })?;
        Ok(widened.data)
    }
}

fn widened(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let lacks_digits = |operand: &Expr| lacks_digits(operand, schema);
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && (lacks_digits(&left) || lacks_digits(&right)) =>
        {
            let [left, right] = [left, right].map(|operand| Box::new(wide(*operand, schema)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high })
            if [&expr, &low, &high].into_iter().any(|operand| lacks_digits(operand)) =>
        {
            let [expr, low, high] = [expr, low, high].map(|operand| Box::new(wide(*operand, schema)));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if lacks_digits(&expr) || list.iter().any(lacks_digits) => {
            let list = list.into_iter().map(|item| wide(item, schema)).collect();
            Transformed::yes(Expr::InList(InList { expr: Box::new(wide(*expr, schema)), list, negated }))
        }
        other => Transformed::no(other),
    }
}

/// Whether an operand is an integer that a decimal of all digits may have too few digits for.
fn lacks_digits(operand: &Expr, schema: &DFSchema) -> bool {
    let Expr::Cast(Cast { expr, field }) = operand else { return false };
    let (DataType::Decimal128(precision, scale), Ok(from)) = (field.data_type(), expr.get_type(schema)) else {
        return false;
    };
    if let Expr::Literal(value, _) = expr.as_ref() {
        return value.cast_to(field.data_type()).is_err();
    }
    *precision == DECIMAL128_MAX_PRECISION
        && digits_of(&from).is_some_and(|digits| i16::from(digits) + i16::from(*scale) > i16::from(*precision))
}

/// Digits of an integer type.
pub(super) fn digits_of(data_type: &DataType) -> Option<u8> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    })
}

/// Digits behind the point of a decimal of 128 bits.
pub(super) fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    }
}

/// A decimal in 256 bits, an integer without the steps between.
fn wide(operand: Expr, schema: &DFSchema) -> Expr {
    let Some(scale) = operand.get_type(schema).ok().as_ref().and_then(scale_of) else { return operand };
    let inner = match operand {
        Expr::Cast(cast) if lacks_digits(&Expr::Cast(cast.clone()), schema) => *cast.expr,
        operand => operand,
    };
    Expr::Cast(Cast::new(Box::new(inner), DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale)))
}
