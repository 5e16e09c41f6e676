//! Quotients and averages of decimals with digits enough, and the scale of rounded ones.
//!
//! DataFusion 55.2 gives a quotient four digits more than its dividend has behind the point, and cuts what is behind
//! them off: `2 / 3.0` is 0.6666. Here the dividend is given 17 digits first, or one more than it has, and the last one
//! of the quotient is rounded away, so that it has 20, as PostgreSQL's `2 / 3.0` has; both sides are decimals of 256
//! bits where 128 might not hold the dividend scaled up. This comes before types are coerced, so that whatever is above
//! a quotient is coerced to the type that it has.
//!
//! An average has four digits more, too, but no more than 38 in all, so that one of DECIMAL(38, 10) overflows from 1e24
//! on: values of more than 34 digits are decimals of 256 bits before they are averaged.
//!
//! DataFusion refuses a product whose factors have more than 38 digits behind the point together: it has 256 bits here.
//!
//! The file goes once DataFusion's quotients have 16 significant digits and are rounded, and averages and products have
//! room.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::walk::{PlanWalk, Walk};

/// Digits behind the point of a dividend, at least.
const DIVIDEND_SCALE: i8 = 16;
/// Digits that a quotient has more than its dividend, and an average than its values.
const MORE_DIGITS: i16 = 4;

/// The rule that scales dividends, and widens what is averaged.
#[derive(Debug)]
pub(crate) struct ScaleDividends;

impl AnalyzerRule for ScaleDividends {
    fn name(&self) -> &str {
        "scale_dividends"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        // Where literals are doubles, decimals have DataFusion's arithmetic too.
        if !config.sql_parser.parse_float_as_decimal {
            return Ok(plan);
        }
        let is_taken = |expr: &Expr| match expr {
            Expr::BinaryExpr(binary) => binary.op == Operator::Divide,
            expr => averaged(expr).is_some(),
        };
        let scaled = plan.transform_up_nested(|plan| {
            each_expression(plan, is_taken, |expr, schema| {
                // What the rule has made is passed over.
                let skip = |expr: Expr| {
                    let next =
                        if is_scaled(&expr, schema) { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
                    Ok(Transformed::new(expr, false, next))
                };
                expr.transform_down_up(skip, |expr| match averaged(&expr) {
                    Some(_) => widened(expr, schema),
                    None => scaled(expr, schema),
                })
            })?
            .map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(scaled.data)
    }
}

/// The rule that gives `round` its digits as the type that it takes, before operands beside it are coerced.
///
/// The scale of `round(d, 1)` is 1 where the digits are a literal and that of `d` where they are a cast of one; the
/// cast goes when constants are folded, and `round(d, 1) = d` then compares decimals of two types. Unnecessary once
/// coercion leaves literals.
#[derive(Debug)]
pub(crate) struct LiteralDigits;

impl AnalyzerRule for LiteralDigits {
    fn name(&self) -> &str {
        "literal_digits"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_round = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.name() == "round");
        let told = plan.transform_up_nested(|plan| {
            each_expression(plan, is_round, |expr, _| {
                expr.transform_up(|mut expr| {
                    if let Expr::ScalarFunction(call) = &mut expr
                        && call.name() == "round"
                        && let [_, Expr::Literal(digits, _)] = call.args.as_mut_slice()
                        && let ScalarValue::Int64(Some(count)) = digits
                        && let Ok(count) = i32::try_from(*count)
                    {
                        *digits = ScalarValue::Int32(Some(count));
                        return Ok(Transformed::yes(expr));
                    }
                    Ok(Transformed::no(expr))
                })
            })?
            .map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(told.data)
    }
}

fn scaled(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let types = left.get_type(schema).ok().zip(right.get_type(schema).ok());
    let with_digits = |more| types.as_ref().and_then(|(left, right)| quotient_of(left, right, more));
    let quotient = |left, right| Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right });
    let cast = |expr: Box<Expr>, to: DataType| Box::new(Expr::Cast(Cast::new(expr, to)));
    let of = |left, right, (dividend, divisor): (DataType, Option<DataType>)| {
        let right = match divisor {
            Some(divisor) => cast(right, divisor),
            None => right,
        };
        quotient(cast(left, dividend), right)
    };
    let Some((digits, more_digits)) = with_digits(0).zip(with_digits(1)) else {
        return Ok(Transformed::no(quotient(left, right)));
    };
    let result = of(left.clone(), right.clone(), digits).get_type(schema)?;
    Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(of(left, right, more_digits)), result))))
}

/// Whether an expression is a quotient that the rule has made, whose last digit is rounded away.
fn is_scaled(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::Cast(Cast { expr: quotient, field }) = expr else { return false };
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = quotient.as_ref() else { return false };
    let Expr::Cast(dividend) = left.as_ref() else { return false };
    let type_of = |expr: &Expr| expr.get_type(schema).ok();
    let made = type_of(&dividend.expr).zip(type_of(right)).and_then(|(from, divisor)| quotient_of(&from, &divisor, 1));
    let scale = |data_type: &DataType| as_decimal(data_type).map(|(_, scale, _)| scale);
    made.is_some_and(|(made, _)| made == *dividend.field.data_type())
        && type_of(quotient).and_then(|quotient| scale(&quotient)) == scale(field.data_type()).map(|scale| scale + 1)
}

/// What an average is of; none of any other expression.
fn averaged(expr: &Expr) -> Option<&Expr> {
    let (function, arguments) = match expr {
        Expr::AggregateFunction(call) => (&call.func, &call.params.args),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => (function, &call.params.args),
            WindowFunctionDefinition::WindowUDF(_) => return None,
        },
        _ => return None,
    };
    arguments.first().filter(|_| function.inner().is::<Avg>())
}

/// An average with room for its digits.
fn widened(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let wide = match averaged(&expr).map(|argument| argument.get_type(schema)).transpose()? {
        Some(DataType::Decimal128(precision, scale))
            if i16::from(precision) + MORE_DIGITS > i16::from(DECIMAL128_MAX_PRECISION) =>
        {
            DataType::Decimal256(precision, scale)
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let arguments = match &mut expr {
        Expr::AggregateFunction(call) => &mut call.params.args,
        Expr::WindowFunction(call) => &mut call.params.args,
        _ => return Ok(Transformed::no(expr)),
    };
    arguments[0] = Expr::Cast(Cast::new(Box::new(std::mem::take(&mut arguments[0])), wide));
    Ok(Transformed::yes(expr))
}

/// The factors of a product as decimals of 256 bits, where 38 digits behind the point are too few for its scale.
pub(super) fn with_room(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(DataType::Decimal128(p1, s1)), Ok(DataType::Decimal128(p2, s2)))
            if i16::from(s1) + i16::from(s2) > i16::from(DECIMAL128_MAX_PRECISION) =>
        {
            let wide =
                |expr, precision, scale| Expr::Cast(Cast::new(Box::new(expr), DataType::Decimal256(precision, scale)));
            (wide(left, p1, s1), wide(right, p2, s2))
        }
        _ => (left, right),
    }
}

/// What a dividend with digits enough, and so many more, behind the point and, where it changes, a divisor become; none
/// where they stay.
fn quotient_of(left: &DataType, right: &DataType, more: i8) -> Option<(DataType, Option<DataType>)> {
    let is_decimal =
        |data_type: &DataType| matches!(data_type, DataType::Decimal128(_, _) | DataType::Decimal256(_, _));
    let ((p1, s1, wide1), (p2, s2, wide2)) = (as_decimal(left)?, as_decimal(right)?);
    let scale = s1.max(DIVIDEND_SCALE) + more;
    let digits_behind = i16::from(scale) + MORE_DIGITS;
    if digits_behind > i16::from(DECIMAL256_MAX_PRECISION) || !is_decimal(left) && !is_decimal(right) {
        return None;
    }
    let precision = i16::from(p1) + i16::from(scale - s1);
    // Digits of the dividend when it is divided.
    let digits = precision + MORE_DIGITS + i16::from(s2);
    let wide = wide1 || wide2 || digits.max(digits_behind) > i16::from(DECIMAL128_MAX_PRECISION);
    if !wide {
        return Some((DataType::Decimal128(precision as u8, scale), None));
    }
    let precision = precision.min(DECIMAL256_MAX_PRECISION.into()) as u8;
    Some((DataType::Decimal256(precision, scale), (!wide2).then_some(DataType::Decimal256(p2, s2))))
}

/// Precision and scale of a decimal, or of the one that DataFusion makes of an integer beside a decimal, and whether it
/// has 256 bits.
fn as_decimal(data_type: &DataType) -> Option<(u8, i8, bool)> {
    Some(match *data_type {
        DataType::Decimal128(precision, scale) => (precision, scale, false),
        DataType::Decimal256(precision, scale) => (precision, scale, true),
        DataType::Int8 | DataType::UInt8 => (3, 0, false),
        DataType::Int16 | DataType::UInt16 => (5, 0, false),
        DataType::Int32 | DataType::UInt32 => (10, 0, false),
        DataType::Int64 | DataType::UInt64 => (20, 0, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dividends_have_digits_enough() {
        let of = |p, s| DataType::Decimal128(p, s);
        let quotient_of = |left: &DataType, right: &DataType| quotient_of(left, right, 0);
        let (dividend, divisor) = quotient_of(&of(10, 0), &of(2, 1)).unwrap();
        assert_eq!((&dividend, divisor), (&of(26, 16), None));
        assert_eq!(quotient_of(&dividend, &of(2, 1)), Some((dividend, None)));
        let wide = |p, s| DataType::Decimal256(p, s);
        assert_eq!(quotient_of(&of(38, 18), &of(38, 18)), Some((wide(38, 18), Some(wide(38, 18)))));
        assert_eq!(quotient_of(&of(36, 36), &of(2, 1)), Some((wide(36, 36), Some(wide(2, 1)))));
        assert_eq!(quotient_of(&wide(76, 74), &of(2, 1)), None);
        let (dividend, divisor) = quotient_of(&of(25, 2), &of(25, 2)).unwrap();
        assert_eq!((dividend, divisor), (DataType::Decimal256(39, 16), Some(DataType::Decimal256(25, 2))));
        assert_eq!(quotient_of(&DataType::Float64, &of(2, 1)), None);
        assert_eq!(quotient_of(&DataType::Int64, &of(2, 1)), Some((wide(36, 16), Some(wide(2, 1)))));
        assert_eq!(quotient_of(&DataType::Int32, &of(2, 1)), Some((of(26, 16), None)));
        assert_eq!(quotient_of(&DataType::Int64, &DataType::Int32), None);
    }
}
