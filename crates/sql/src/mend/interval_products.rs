//! Products and quotients of an interval and a number, by PostgreSQL's rules.
//!
//! DataFusion 55.2 refuses `3 * INTERVAL '1 day'`. Months, days and time are multiplied by themselves; what is left of
//! a month becomes days of which it has 30, and what is left of a day becomes time. A product of constants is a
//! constant when it is planned.
//!
//! The file goes once DataFusion multiplies intervals.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::intervals::is_span;
use super::lengths::DAYS_AND_TIME;
use crate::span_lengths::DAY_NANOSECONDS;

/// Days of a month.
const MONTH_DAYS: f64 = 30.0;

/// The product or the quotient of an interval and a number; none for other operands.
///
/// # Errors
/// What is wrong with constants.
pub(super) fn planned(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let function = match op {
        BinaryOperator::Multiply => &FUNCTIONS[0],
        BinaryOperator::Divide => &FUNCTIONS[1],
        _ => return Ok(None),
    };
    let (Ok(one), Ok(other)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(None) };
    let (interval, number) = match *op == BinaryOperator::Multiply && is_span(&other) {
        true if one.is_numeric() => (right, left),
        _ if is_span(&one) && other.is_numeric() => (left, right),
        _ => return Ok(None),
    };
    let [interval, number] = [(interval, DAYS_AND_TIME), (number, DataType::Float64)].map(|(operand, data_type)| {
        match operand.get_type(schema).is_ok_and(|own| own == data_type) {
            true => operand.clone(),
            false => Expr::Cast(Cast::new(Box::new(operand.clone()), data_type)),
        }
    });
    let constant = |expr: &Expr, data_type: &DataType| match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, .. }) => match expr.as_ref() {
            Expr::Literal(value, _) => value.cast_to(data_type).ok(),
            _ => None,
        },
        _ => None,
    };
    let constants = (constant(&interval, &DAYS_AND_TIME), constant(&number, &DataType::Float64));
    if let (Some(interval), Some(number)) = constants {
        let operation = Operation::of(function);
        let [interval, number] = [interval.to_array()?, number.to_array()?];
        let product = ScalarValue::try_from_array(&operation.apply(&interval, &number)?, 0)?;
        return Ok(Some(Expr::Literal(product, None)));
    }
    Ok(Some(function.call(vec![interval, number])))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Product,
    Quotient,
}

const NAMES: [(&str, Operation); 2] =
    [("warpcube_interval_product", Operation::Product), ("warpcube_interval_quotient", Operation::Quotient)];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
    NAMES.map(|(name, operation)| {
        let signature = Signature::exact(vec![DAYS_AND_TIME, DataType::Float64], Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(OfIntervals { name, operation, signature }))
    })
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// A product or a quotient; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfIntervals {
    name: &'static str,
    operation: Operation,
    signature: Signature,
}

impl Operation {
    fn of(function: &ScalarUDF) -> Operation {
        match function.name() == NAMES[1].0 {
            true => Operation::Quotient,
            false => Operation::Product,
        }
    }

    fn apply(self, intervals: &ArrayRef, numbers: &ArrayRef) -> Result<ArrayRef> {
        let (intervals, numbers) = (cast(intervals, &DAYS_AND_TIME)?, cast(numbers, &DataType::Float64)?);
        let pairs =
            intervals.as_primitive::<IntervalMonthDayNanoType>().iter().zip(numbers.as_primitive::<Float64Type>());
        let products = pairs.map(|pair| match pair {
            (Some(interval), Some(number)) => self.of_values(interval, number).map(Some),
            _ => Ok(None),
        });
        Ok(Arc::new(products.collect::<Result<IntervalMonthDayNanoArray>>()?))
    }

    fn of_values(self, interval: IntervalMonthDayNano, number: f64) -> Result<IntervalMonthDayNano> {
        if self == Operation::Quotient && number == 0.0 {
            return Err(DataFusionError::Execution("division of an interval by zero".into()));
        }
        let overflow = || DataFusionError::Execution(format!("an interval times or by {number} is out of range"));
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        // Whole factors lose no digit.
        if self == Operation::Product && number.fract() == 0.0 && number.abs() < i32::MAX.into() {
            let factor = number as i32;
            let product = || {
                let nanoseconds = nanoseconds.checked_mul(factor.into())?;
                Some(IntervalMonthDayNano::new(months.checked_mul(factor)?, days.checked_mul(factor)?, nanoseconds))
            };
            return product().ok_or_else(overflow);
        }
        let of = |part: f64| match self {
            Operation::Product => part * number,
            Operation::Quotient => part / number,
        };
        // As in PostgreSQL, digits behind the millionth are those of doubles and no part of the value.
        let rounded = |part: f64| (part * 1e6).round() / 1e6;
        let (all_months, all_days) = (of(months.into()), of(days.into()));
        let left_days = rounded((all_months - all_months.trunc()) * MONTH_DAYS);
        let left = rounded(all_days - all_days.trunc() + left_days - left_days.trunc());
        let (whole_days, left) = (all_days.trunc() + left_days.trunc() + left.trunc(), left - left.trunc());
        let time = (of(nanoseconds as f64) + (left * DAY_NANOSECONDS as f64)).round();
        let is_small = |part: f64| part.abs() <= i32::MAX.into();
        match is_small(all_months.trunc()) && is_small(whole_days) && time.abs() < i64::MAX as f64 {
            true => Ok(IntervalMonthDayNano::new(all_months.trunc() as i32, whole_days as i32, time as i64)),
            false => Err(overflow()),
        }
    }
}

impl ScalarUDFImpl for OfIntervals {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DAYS_AND_TIME)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_scalars = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let products = self.operation.apply(&arrays[0], &arrays[1])?;
        Ok(match are_scalars {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&products, 0)?),
            false => ColumnarValue::Array(products),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_to_the_next_smaller_ones() {
        let hour = 3_600_000_000_000;
        for ((months, days, time), operation, number, expected) in [
            ((0, 1, 0), Operation::Product, 3.0, (0, 3, 0)),
            ((1, 0, 0), Operation::Product, 1.5, (1, 15, 0)),
            ((0, 1, 0), Operation::Product, 0.5, (0, 0, 12 * hour)),
            ((0, 1, hour), Operation::Product, -1.5, (0, -1, -13 * hour - hour / 2)),
            ((1, 0, 0), Operation::Quotient, 2.0, (0, 15, 0)),
        ] {
            let found = operation.of_values(IntervalMonthDayNano::new(months, days, time), number).unwrap();
            assert_eq!((found.months, found.days, found.nanoseconds), expected, "{months} {days} {time} {number}");
        }
        let month = IntervalMonthDayNano::new(1, 0, 0);
        assert!(Operation::Quotient.of_values(month, 0.0).is_err());
        assert!(Operation::Product.of_values(month, 1e12).is_err());
        assert!(Operation::Product.of_values(month, f64::NAN).is_err());
    }
}
