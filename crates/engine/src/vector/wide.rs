//! Decimals of more than 64 bits, and operations of 64-bit integers whose results need more. Rows that are NULL may
//! hold anything.

use arrow::datatypes::i256;

use super::program::{Bounds, overflow};
use super::values::{Data, Own, Selection, Value, both, with_slots};
use crate::error::Result;
use crate::facts::DECIMAL_MAX;
use crate::ir::BinaryOp;

/// The largest power of ten that is a double.
const POWER_MAX: i32 = 22;

/// Integers of 64 bits, without a sign or with one, in 128.
pub(super) fn widened<'a>(value: Value<'a>, is_unsigned: bool, rows: &Selection) -> Value<'a> {
    let mut wide = Own::new();
    with_slots!(value.of_integers(), at => match is_unsigned {
        true => rows.each(|row| wide[row] = i128::from(at(row) as u64)),
        false => rows.each(|row| wide[row] = at(row).into()),
    });
    Value::wide(wide, value.valid)
}

/// Integers that 64 bits hold, with a sign or without.
pub(super) fn narrowed<'a>(value: Value<'a>, rows: &Selection) -> Value<'a> {
    let mut integers = Own::new();
    with_slots!(value.of_wide(), at => rows.each(|row| integers[row] = at(row) as i64));
    Value::integers(integers, value.valid)
}

/// A function of wide integers.
pub(super) fn mapped<'a>(value: Value<'a>, rows: &Selection, of: impl Fn(i128) -> i128) -> Value<'a> {
    let mut wide = Own::new();
    with_slots!(value.of_wide(), at => rows.each(|row| wide[row] = of(at(row))));
    Value::wide(wide, value.valid)
}

/// Wide integers of pairs; those for which there is none raise.
fn joined<'a>(
    (left, right): (&Value<'a>, &Value<'a>),
    rows: &Selection,
    of: impl Fn(i128, i128) -> Option<i128>,
) -> Result<Value<'a>> {
    let valid = both(&left.valid, &right.valid);
    let flags = valid.as_ref();
    let (mut values, mut raises) = (Own::new(), false);
    with_slots!(left.of_wide(), a => with_slots!(right.of_wide(), b => rows.each(|row| match of(a(row), b(row)) {
        Some(value) => values[row] = value,
        None => raises |= flags.is_none_or(|flags| with_slots!(flags, at => at(row) != 0)),
    })));
    match raises {
        true => Err(overflow()),
        false => Ok(Value::wide(values, valid)),
    }
}

/// Arithmetic whose results raise outside of bounds, where some are given.
pub(super) fn arithmetic<'a>(
    op: BinaryOp,
    left: &Value<'a>,
    right: &Value<'a>,
    bounds: Option<Bounds<i128>>,
    rows: &Selection,
) -> Result<Value<'a>> {
    let (low, high) = bounds.unwrap_or((i128::MIN, i128::MAX));
    let exact = |a: i128, b: i128| match (op, bounds) {
        (BinaryOp::Add, None) => Some(a.wrapping_add(b)),
        (BinaryOp::Sub, None) => Some(a.wrapping_sub(b)),
        (BinaryOp::Mul, None) => Some(a.wrapping_mul(b)),
        (BinaryOp::Add, _) => a.checked_add(b),
        (BinaryOp::Sub, _) => a.checked_sub(b),
        (BinaryOp::Mul, _) => a.checked_mul(b),
        (BinaryOp::Div, _) => a.checked_div(b),
        _ => (b != 0).then(|| a.wrapping_rem(b)),
    };
    joined((left, right), rows, |a, b| exact(a, b).filter(|value| (low..=high).contains(value)))
}

/// Decimals times a factor over others, of at most 38 digits.
pub(super) fn quotient<'a>(
    dividend: &Value<'a>,
    divisor: &Value<'a>,
    factor: i128,
    rows: &Selection,
) -> Result<Value<'a>> {
    let quotient = |a: i128, b: i128| match a.checked_mul(factor) {
        Some(scaled) => scaled.checked_div(b),
        None => {
            let scaled = i256::from_i128(a).wrapping_mul(i256::from_i128(factor));
            scaled.checked_div(i256::from_i128(b))?.to_i128()
        }
    };
    joined((dividend, divisor), rows, |a, b| quotient(a, b).filter(|value| value.unsigned_abs() <= DECIMAL_MAX as u128))
}

/// `n Σx² − (Σx)²`, rounded once, of sums, sums of squares and counts.
pub(super) fn deviations<'a>([sum, squares, count]: [&Value<'a>; 3], rows: &Selection) -> Value<'a> {
    let valid = both(&both(&sum.valid, &squares.valid), &count.valid);
    let mut values = Own::new();
    let wide = |value: &Value<'_>, row: usize| i256::from_i128(with_slots!(value.of_wide(), at => at(row)));
    rows.each(|row| {
        let sum = wide(sum, row);
        let exact = wide(count, row).wrapping_mul(wide(squares, row)).wrapping_sub(sum.wrapping_mul(sum));
        values[row] = match exact.to_i128() {
            Some(exact) => exact as f64,
            None => exact.to_string().parse().unwrap_or(f64::NAN),
        };
    });
    Value::floats(values, valid)
}

/// A quotient by a power of ten, halves rounded away from zero.
pub(super) fn rounded(value: i128, factor: i128) -> i128 {
    let (quotient, rest) = (value / factor, value % factor);
    let up = rest.unsigned_abs() >= factor.unsigned_abs() - rest.unsigned_abs();
    quotient + if up { value.signum() } else { 0 }
}

/// A decimal as the nearest double: its unscaled value over a power of ten.
pub(super) fn nearest(value: i128, scale: i32) -> f64 {
    // Both operands are exact, so that the quotient is rounded once.
    if value.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS && (0..=POWER_MAX).contains(&scale) {
        return value as f64 / 10f64.powi(scale);
    }
    format!("{value}e{}", -scale).parse().unwrap_or(f64::NAN)
}

/// Bits of a row's value in 128 bits; floats are their bits.
pub(super) fn number(value: &Value<'_>, row: usize) -> i128 {
    match &value.data {
        Data::Integers(slots) => with_slots!(slots, at => at(row).into()),
        Data::Wide(slots) => with_slots!(slots, at => at(row)),
        Data::Floats(slots) => with_slots!(slots, at => at(row).to_bits().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_nearest_doubles() {
        let of = [(5, -2, 500.0), (-15, 1, -1.5), (0, 3, 0.0), (i128::from(i64::MAX), 0, i64::MAX as f64)];
        of.iter().for_each(|(value, scale, expected)| assert_eq!(nearest(*value, *scale), *expected));
        assert_eq!(nearest(DECIMAL_MAX, 30).to_string(), "100000000");
        assert_eq!((rounded(-25, 10), rounded(24, 10), rounded(DECIMAL_MAX, 10i128.pow(38))), (-3, 2, 1));
    }
}
