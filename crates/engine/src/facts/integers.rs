//! Arithmetic of integers and decimals: what its results are bounded by, and what raises.

use super::interval::interval;
use super::{Facts, Range, fits_i64};
use crate::error::{EngineError, Result, unsupported};
use crate::ir::{BinaryOp, Overflow, Ty};

/// The largest decimal of 38 digits.
pub(crate) const DECIMAL_MAX: i128 = 10i128.pow(38) - 1;

/// What an operation of two integers or decimals of one type gives.
#[derive(Debug)]
pub(crate) struct Arithmetic {
    /// The result.
    pub(crate) facts: Facts,
    /// Bounds of the exact result.
    pub(crate) exact: Range,
    /// What raises an error.
    pub(crate) raises: Raises,
}

/// What can go wrong in an operation of integers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Raises {
    /// A sum, difference or product may leave its type.
    pub(crate) overflow: bool,
    /// The divisor may be zero.
    pub(crate) zero_divisor: bool,
    /// The smallest integer may be divided by -1.
    pub(crate) quotient_overflow: bool,
}

impl Raises {
    /// Whether anything can.
    pub(crate) fn any(self) -> bool {
        self != Raises::default()
    }
}

/// The sum, difference, product, quotient or remainder of two integers or decimals of one type.
///
/// # Errors
/// Decimals that may wrap, and quotients of those that may be the smallest of 128 bits; operators that are none of
/// these.
pub(crate) fn integer_arithmetic(op: BinaryOp, left: &Facts, right: &Facts, overflow: Overflow) -> Result<Arithmetic> {
    let ty = left.ty;
    let exact = interval(op, left.bounds(), right.bounds());
    let limits = ty.bounds().expect("integers have bounds");
    let adds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
    // Decimals that raise have at most 38 digits; those that wrap are refused where they might.
    let limits = match (ty, overflow) {
        (Ty::I128, Overflow::Raise) if adds => (-DECIMAL_MAX, DECIMAL_MAX),
        _ => limits,
    };
    let inside = exact.is_some_and(|(low, high)| low >= limits.0 && high <= limits.1);
    if ty == Ty::I128 && !inside && (!adds || overflow == Overflow::Wrap) {
        return unsupported("a decimal result that may exceed 128 bits");
    }
    let range = if inside { exact } else { Some(limits) };
    let (range, raises) = match op {
        BinaryOp::Div | BinaryOp::Rem => (range, division_raises(op, left, right, range)?),
        _ if !adds => return Err(EngineError::Malformed(format!("{op:?} of integers"))),
        _ if !inside && overflow == Overflow::Raise => {
            let (low, high) = exact.unwrap_or((i128::MIN, i128::MAX));
            let raises = Raises { overflow: true, ..Raises::default() };
            (Some((low.clamp(limits.0, limits.1), high.clamp(limits.0, limits.1))), raises)
        }
        _ => (range, Raises::default()),
    };
    Ok(Arithmetic { facts: Facts::new(ty, left.nullable || right.nullable, range), exact, raises })
}

/// The magnitude of an integer or a decimal, and whether it can raise: that of the smallest integer of a type does.
///
/// # Errors
/// Decimals that may be the smallest of 128 bits.
pub(crate) fn absolute(value: &Facts) -> Result<(Facts, bool)> {
    let (low, high) = value.bounds().expect("integers have bounds");
    let limits = value.ty.bounds().expect("integers have bounds");
    let raises = limits.0 < 0 && low == limits.0;
    if raises && value.ty == Ty::I128 {
        return unsupported("the magnitude of decimals that may be the smallest of 128 bits");
    }
    let magnitude = |value: i128| value.checked_abs().map_or(limits.1, |magnitude| magnitude.min(limits.1));
    let (one, other) = (magnitude(low), magnitude(high));
    let least = if low <= 0 && high >= 0 { 0 } else { one.min(other) };
    Ok((Facts::new(value.ty, value.nullable, Some((least, one.max(other)))), raises))
}

/// A decimal times a power of ten over another, of at most 38 digits.
///
/// # Errors
/// What is no decimal; powers past 38 digits.
pub(crate) fn wide_quotient(dividend: &Facts, divisor: &Facts, power: u8) -> Result<Facts> {
    match (dividend.ty, divisor.ty, power) {
        (Ty::I128, Ty::I128, ..=38) => {
            Ok(Facts::new(Ty::I128, dividend.nullable || divisor.nullable, Some((-DECIMAL_MAX, DECIMAL_MAX))))
        }
        operands => Err(EngineError::Malformed(format!("a quotient of {operands:?}"))),
    }
}

fn division_raises(op: BinaryOp, left: &Facts, right: &Facts, range: Range) -> Result<Raises> {
    if left.ty == Ty::I128 && left.bounds().is_none_or(|(low, _)| low == i128::MIN) {
        return unsupported("a division of decimals that may be the smallest of 128 bits");
    }
    let limits = left.ty.bounds().expect("integers have bounds");
    let at_minimum = limits.0 < 0
        && left.bounds().is_none_or(|(low, _)| low == limits.0)
        && right.bounds().is_none_or(|(low, high)| low <= -1 && high >= -1);
    Ok(Raises {
        overflow: false,
        zero_divisor: right.bounds().is_none_or(|(low, high)| low <= 0 && high >= 0),
        // The remainder is zero.
        quotient_overflow: at_minimum && op == BinaryOp::Div && divides_in_place(left, range),
    })
}

/// Whether a signed quotient is computed in the type of its dividend, which then must not be the smallest by -1.
pub(crate) fn divides_in_place(left: &Facts, range: Range) -> bool {
    let is_signed = left.ty.bounds().is_some_and(|(low, _)| low < 0);
    is_signed && (left.ty != Ty::I128 || left.is_narrow() && fits_i64(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ty: Ty, range: (i128, i128)) -> Facts {
        Facts::new(ty, false, Some(range))
    }

    #[test]
    fn what_leaves_its_type_raises_or_wraps() {
        let (a, b) = (facts(Ty::I8, (-100, 100)), facts(Ty::I8, (0, 50)));
        let raised = integer_arithmetic(BinaryOp::Add, &a, &b, Overflow::Raise).unwrap();
        assert_eq!((raised.exact, raised.facts.range), (Some((-100, 150)), Some((-100, 127))));
        assert!(raised.raises.overflow);
        let wrapped = integer_arithmetic(BinaryOp::Add, &a, &b, Overflow::Wrap).unwrap();
        assert_eq!((wrapped.facts.range, wrapped.raises.any()), (Some((-128, 127)), false));
    }

    #[test]
    fn quotients_raise_by_zero_and_for_the_smallest() {
        let raises = |op, divisor| {
            let dividend = facts(Ty::I32, (i32::MIN.into(), 7));
            integer_arithmetic(op, &dividend, &facts(Ty::I32, divisor), Overflow::Raise).unwrap().raises
        };
        assert!(raises(BinaryOp::Div, (-1, 1)).zero_divisor && raises(BinaryOp::Div, (-1, 1)).quotient_overflow);
        assert!(!raises(BinaryOp::Rem, (-1, 1)).quotient_overflow && raises(BinaryOp::Rem, (-1, 1)).zero_divisor);
        assert!(!raises(BinaryOp::Div, (1, 9)).any());
    }

    #[test]
    fn magnitudes_raise_for_the_smallest_integer() {
        let of = |ty, range| absolute(&facts(ty, range)).map(|(facts, raises)| (facts.range.unwrap(), raises)).unwrap();
        assert_eq!(of(Ty::I8, (-128, 7)), ((0, 127), true));
        assert_eq!(of(Ty::I8, (-128, -128)), ((127, 127), true));
        assert_eq!(of(Ty::I8, (-127, -3)), ((3, 127), false));
        assert_eq!(of(Ty::U8, (0, 255)), ((0, 255), false));
        assert_eq!(of(Ty::I128, (i64::MIN.into(), 5)), ((0, 1 << 63), false));
        assert!(absolute(&facts(Ty::I128, (i128::MIN, 0))).is_err());
    }

    #[test]
    fn decimals_past_38_digits_raise_or_are_refused() {
        let large = facts(Ty::I128, (0, DECIMAL_MAX));
        let raised = integer_arithmetic(BinaryOp::Add, &large, &large, Overflow::Raise).unwrap();
        assert!(raised.raises.overflow && raised.facts.range == Some((-DECIMAL_MAX, DECIMAL_MAX)));
        let wide = facts(Ty::I128, (0, i128::MAX));
        assert!(integer_arithmetic(BinaryOp::Add, &wide, &large, Overflow::Wrap).is_err());
    }
}
