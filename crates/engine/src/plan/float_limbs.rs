//! Which limbs an exact sum of floats keeps on the device.
//!
//! A few limbs below the largest magnitude hold all bits of most columns; what bounds that magnitude are the column's
//! statistics. The window is a guess: a value with bits outside of it makes the fragment run again with limbs for
//! every finite value, so that a guess never changes a result.

use crate::facts::Facts;
use crate::float_sum::{LIMB_BITS, LIMBS};
use crate::ir::{BinaryOp, Expr, Literal, Ty, UnaryOp};

/// Limbs of a guess: at least 97 bits below the largest magnitude, so that doubles down to its 2⁻⁴⁴ keep all theirs.
const LIMBS_GUESSED: usize = 4;
/// The largest magnitude of a guess where nothing bounds it.
const MAGNITUDE_GUESSED: f64 = u64::MAX as f64;
/// Position of the bit of 2⁰ among limbs.
const BIT_OF_ONE: i32 = 1074;

/// Neighbouring limbs, by position among those of a [`crate::FloatSum`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLimbs {
    /// The lowest.
    pub(crate) first: usize,
    /// How many.
    pub(crate) limbs: usize,
}

impl FloatLimbs {
    /// Limbs for every finite double.
    pub(crate) const WHOLE: FloatLimbs = FloatLimbs { first: 0, limbs: LIMBS };

    /// The guess for an argument of a sum over registers of these facts.
    pub(crate) fn guess<'a>(argument: &Expr, registers: &impl Fn(usize) -> Option<&'a Facts>) -> FloatLimbs {
        let magnitude = magnitude(argument, registers).filter(|bound| bound.is_finite()).unwrap_or(MAGNITUDE_GUESSED);
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        let end = ((exponent + 1 + BIT_OF_ONE) as usize).div_ceil(LIMB_BITS).clamp(LIMBS_GUESSED, LIMBS);
        FloatLimbs { first: end - LIMBS_GUESSED, limbs: LIMBS_GUESSED }
    }
}

/// A bound of an expression's finite values, as far as roundings do not matter; `None` where nothing is known.
fn magnitude<'a>(expr: &Expr, registers: &impl Fn(usize) -> Option<&'a Facts>) -> Option<f64> {
    let of = |expr: &Expr| magnitude(expr, registers);
    match expr {
        Expr::Reg(register) => {
            let value = registers(*register)?;
            match value.ty {
                Ty::F32 | Ty::F64 => value.magnitude,
                _ => value.bounds().map(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) as f64),
            }
        }
        Expr::Literal(Literal::Int(value), _) => Some(value.unsigned_abs() as f64),
        Expr::Literal(Literal::Float(value), _) => Some(value.abs()),
        Expr::Literal(Literal::Null, _) => Some(0.0),
        Expr::Unary(UnaryOp::Negate | UnaryOp::Absolute, inner) | Expr::Cast(inner, _) => of(inner),
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, left, right) => Some(of(left)? + of(right)?),
        Expr::Binary(BinaryOp::Mul, left, right) => Some(of(left)? * of(right)?),
        Expr::DecimalToFloat(inner, scale) => Some(of(inner)? / 10f64.powi((*scale).into())),
        Expr::Case(branches, otherwise) => {
            let values = branches.iter().map(|(_, then)| of(then));
            values.chain([of(otherwise)]).reduce(|one, other| Some(one?.max(other?))).flatten()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_above_the_largest_magnitude() {
        let window = |value: f64| FloatLimbs::guess(&Expr::Literal(Literal::Float(value), Ty::F64), &|_| None);
        for value in [0.0, 5e-324, 1e-300, 0.7, 1.0, 1.5e9, -2e300, f64::MAX] {
            let FloatLimbs { first, limbs } = window(value);
            let top = (first + limbs) as i32 * LIMB_BITS as i32 - BIT_OF_ONE;
            assert!(value.abs() <= 2f64.powi(top.min(1023)) || top > 1023, "{value}: {first}");
            assert!(first == 0 || value.abs() >= 2f64.powi(top - LIMB_BITS as i32 - 1), "{value}: {first}");
        }
        assert_eq!(window(f64::INFINITY), window(MAGNITUDE_GUESSED));
        assert_eq!(FloatLimbs::WHOLE.limbs * LIMB_BITS, 2112);
    }

    #[test]
    fn magnitudes_follow_arithmetic() {
        let number = |value: f64| Expr::Literal(Literal::Float(value), Ty::F64);
        let of = |op| magnitude(&Expr::binary(op, number(-3.0), number(4.0)), &|_| None);
        assert_eq!(
            [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div].map(of),
            [Some(7.0), Some(7.0), Some(12.0), None]
        );
        let branches = vec![(number(1.0), number(-9.0))];
        assert_eq!(magnitude(&Expr::Case(branches, Box::new(number(2.0))), &|_| None), Some(9.0));
        assert_eq!(magnitude(&Expr::DecimalToFloat(Box::new(number(250.0)), 2), &|_| None), Some(2.5));
        assert_eq!(magnitude(&Expr::Reg(3), &|_| None), None);
    }
}
