//! Texts of timestamps and intervals.
//!
//! Arrow 59 reads `2024-01-01 08:00:00` and no shorter time. As in PostgreSQL, seconds may be left out, and parts may
//! have one digit. A constant with more digits than microseconds have keeps them, as nanoseconds.
//! Of an interval Arrow reads units alone: `1 day 04:05:06` is written with hours, minutes and seconds, and so is
//! `1 04:05:06`. `INTERVAL (x) DAY` of a number that is no constant is `x * INTERVAL '1 day'`.
//!
//! The file goes once Arrow reads such texts.

use std::ops::RangeInclusive;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Interval, TypedString, Value,
};

use crate::text_times::{digits, written_out};
use crate::time_texts::{in_units, of_fields};

/// Writes the text of a timestamp with all its digits, where it is a constant. One with more digits behind the point
/// than microseconds have, and no precision, has nanoseconds; a cast rounds these.
pub(super) fn with_all_digits(expr: &mut Expr) {
    match expr {
        Expr::TypedString(TypedString { data_type: DataType::Timestamp(precision, _), value, .. }) => {
            let is_finer = has_more_digits(&mut value.value);
            *precision = precision.or(is_finer.then_some(NANOSECONDS));
        }
        Expr::Cast { kind, data_type: DataType::Timestamp(precision, zone), expr: constant, .. } => {
            let Expr::Value(value) = constant.as_mut() else { return };
            if has_more_digits(&mut value.value) && precision.is_none() {
                let expr = std::mem::replace(constant, Box::new(Expr::value(Value::Null)));
                let (kind, data_type) = (kind.clone(), DataType::Timestamp(Some(NANOSECONDS), *zone));
                **constant = Expr::Cast { kind, expr, data_type, array: false, format: None };
            }
        }
        _ => {}
    }
}

/// Writes the text of a timestamp with all its digits, and tells whether it has more than microseconds have.
fn has_more_digits(text: &mut Value) -> bool {
    let Value::SingleQuotedString(text) = text else { return false };
    if let Some(whole) = written_out(text) {
        *text = whole;
    }
    has_nanoseconds(text)
}

/// Digits behind the point of a timestamp of nanoseconds, and of one of microseconds.
const NANOSECONDS: u64 = 9;
const MICROSECONDS: usize = 6;

/// Years that nanoseconds since 1970 hold from their first to their last day.
const OF_NANOSECONDS: RangeInclusive<u32> = 1678..=2261;

/// Whether the text of a timestamp has a digit other than 0 behind those of microseconds, in a year that nanoseconds
/// hold.
pub(crate) fn has_nanoseconds(text: &str) -> bool {
    let year = text.trim().split_once('-').and_then(|(year, _)| year.parse().ok());
    if !year.is_some_and(|year| OF_NANOSECONDS.contains(&year)) {
        return false;
    }
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let fraction = digits(fraction).map_or("", |(fraction, _)| fraction);
    fraction.bytes().skip(MICROSECONDS).any(|digit| digit != b'0')
}

/// Writes an interval of a computed number of units as a product, and quarters as months.
pub(super) fn as_product(expr: &mut Expr) {
    let Expr::Interval(Interval { value, leading_field: Some(unit), last_field: None, .. }) = expr else { return };
    while let Expr::Nested(inner) = value.as_mut() {
        *value = std::mem::replace(inner, Box::new(Expr::value(Value::Null)));
    }
    if let Expr::Value(constant) = value.as_ref()
        && constant.value == Value::Null
    {
        let null = Box::new(Expr::value(Value::Null));
        let data_type = DataType::Interval { fields: None, precision: None };
        *expr = Expr::Cast { kind: CastKind::Cast, expr: null, data_type, array: false, format: None };
        return;
    }
    let is_constant = |value: &Expr| match value {
        Expr::Value(_) => true,
        Expr::UnaryOp { expr, .. } => matches!(**expr, Expr::Value(_)),
        _ => false,
    };
    let is_quarter = *unit == DateTimeField::Quarter;
    if is_constant(value) && !is_quarter {
        return;
    }
    let units = if is_quarter { "3" } else { "1" };
    if is_quarter {
        *unit = DateTimeField::Month;
    }
    // The text of a constant is a number.
    if let Expr::Value(constant) = value.as_mut()
        && let Value::SingleQuotedString(digits) = &constant.value
    {
        constant.value = Value::Number(digits.trim().into(), false);
    }
    let one = Expr::value(Value::SingleQuotedString(units.into()));
    let number = Expr::Nested(Box::new(std::mem::replace(value.as_mut(), one)));
    let unit = std::mem::replace(expr, Expr::value(Value::Null));
    let product = Expr::BinaryOp { left: Box::new(number), op: BinaryOperator::Multiply, right: Box::new(unit) };
    *expr = Expr::Nested(Box::new(product));
}

/// Writes the time of an interval with units, and no signs of plus, where it is a constant.
pub(super) fn with_units(expr: &mut Expr) {
    if let Expr::Interval(Interval { value, leading_field: first, last_field: last, .. }) = expr
        && let (Some(of_first), Some(of_last)) = (&first, &last)
        && let Expr::Value(value) = value.as_mut()
        && let Value::SingleQuotedString(text) = &mut value.value
        && let Some(units) = of_fields(text, &of_first.to_string(), &of_last.to_string())
    {
        *text = units;
        (*first, *last) = (None, None);
    }
    let value = match expr {
        Expr::Interval(Interval { value, leading_field: None, .. }) => value.as_mut(),
        Expr::Cast { data_type: DataType::Interval { .. }, expr, .. } => expr.as_mut(),
        _ => return,
    };
    if let Expr::Value(value) = value
        && let Value::SingleQuotedString(text) = &mut value.value
        && let Some(units) = in_units(text)
    {
        *text = units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_digits_than_microseconds_have_are_told() {
        for (text, expected) in [
            ("2024-01-01 08:00:00.1234567", true),
            ("2024-01-01T08:00:00.000000001Z", true),
            ("2024-01-01 08:00:00.123456000", false),
            ("2024-01-01 08:00:00.123456+01:30", false),
            ("9999-12-31 23:59:59.999999999", false),
            ("2024-01-01 08:00:00", false),
            ("01.02.2024", false),
        ] {
            assert_eq!(has_nanoseconds(text), expected, "{text}");
        }
    }
}
