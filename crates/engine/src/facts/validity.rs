//! For which rows a value is valid: by registers where that is all there is to it, so that counts of valid values can
//! be shared.

use std::collections::BTreeSet;

use super::{Facts, may_leave_calendar};
use crate::error::Result;
use crate::ir::{BinaryOp, Expr, Literal, Overflow, UnaryOp};
use crate::lookup;

/// The rows for which a value is not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Validity {
    /// All.
    Always,
    /// None: it is the constant NULL, or computed of it.
    Never,
    /// Those for which all of these registers are valid; at least one.
    Registers(BTreeSet<usize>),
    /// Others: the value alone tells.
    Own,
}

impl Validity {
    /// Where both are valid.
    fn and(self, other: Validity) -> Validity {
        match (self, other) {
            (Validity::Never, _) | (_, Validity::Never) => Validity::Never,
            (Validity::Own, _) | (_, Validity::Own) => Validity::Own,
            (Validity::Always, one) | (one, Validity::Always) => one,
            (Validity::Registers(mut one), Validity::Registers(other)) => {
                one.extend(other);
                Validity::Registers(one)
            }
        }
    }

    /// The only register that tells it.
    pub(crate) fn register(&self) -> Option<usize> {
        match self {
            Validity::Registers(registers) if registers.len() == 1 => registers.first().copied(),
            _ => None,
        }
    }
}

/// For which rows an expression is valid.
///
/// # Errors
/// Those of [`super::analyse`].
pub(crate) fn validity(expr: &Expr, registers: &[Option<Facts>], overflow: Overflow) -> Result<Validity> {
    let of = |expr: &Expr| validity(expr, registers, overflow);
    let facts = |expr: &Expr| super::analyse(&[expr], registers, overflow).map(|(mut facts, _)| facts.remove(0));
    let of_register = |register: usize| match registers.get(register) {
        Some(Some(facts)) if facts.nullable => Validity::Registers(BTreeSet::from([register])),
        _ => Validity::Always,
    };
    Ok(match expr {
        Expr::Reg(register) | Expr::Place(register) | Expr::Match(register, _) => of_register(*register),
        Expr::Literal(Literal::Null, _) => Validity::Never,
        Expr::Literal(_, _) | Expr::Text(_) => Validity::Always,
        Expr::Unary(UnaryOp::IsNull | UnaryOp::IsNotNull | UnaryOp::IsTrue, _) => Validity::Always,
        Expr::Binary(BinaryOp::And | BinaryOp::Or, _, _) | Expr::Case(_, _) => match facts(expr)?.nullable {
            true => Validity::Own,
            false => Validity::Always,
        },
        Expr::Binary(_, left, right) => of(left)?.and(of(right)?),
        Expr::Quotient(operands, _) => {
            let [dividend, divisor] = operands.as_ref();
            of(dividend)?.and(of(divisor)?)
        }
        Expr::Deviations(sums) => {
            let [sum, squares, count] = sums.as_ref();
            of(sum)?.and(of(squares)?).and(of(count)?)
        }
        Expr::DatePart(_, days) if may_leave_calendar(&facts(days)?) => Validity::Own,
        Expr::Unary(_, inner)
        | Expr::Cast(inner, _)
        | Expr::Rescale(inner, _)
        | Expr::Digits(inner, _)
        | Expr::DecimalToFloat(inner, _)
        | Expr::DatePart(_, inner)
        | Expr::AddMonths(inner, _)
        | Expr::InCalendar(inner, _)
        | Expr::Among(inner, _) => of(inner)?,
        Expr::Lookup(register, function, ty) => {
            let input = registers.get(*register).cloned().flatten();
            let input = input.ok_or_else(|| super::not_loaded(*register))?;
            let table = lookup::evaluate(super::strings_of(&input)?, function, *ty)?;
            match (table.null_in_null_out(), facts(expr)?.nullable) {
                (true, _) => of_register(*register),
                (false, true) => Validity::Own,
                (false, false) => Validity::Always,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Ty;

    #[test]
    fn strict_operations_are_valid_where_their_registers_are() {
        let integer = |nullable| Some(Facts::new(Ty::I64, nullable, Some((0, 9))));
        let registers = [integer(true), integer(true), integer(false)];
        let of = |expr: &Expr| validity(expr, &registers, Overflow::Raise).unwrap();
        let sum = |left, right| Expr::binary(BinaryOp::Add, Expr::Reg(left), Expr::Reg(right));
        let both = |registers: &[usize]| Validity::Registers(registers.iter().copied().collect());
        assert_eq!(of(&sum(0, 2)), both(&[0]));
        assert_eq!((of(&sum(0, 1)), of(&sum(1, 0))), (both(&[0, 1]), both(&[0, 1])));
        assert_eq!((of(&sum(2, 2)), of(&sum(0, 2)).register()), (Validity::Always, Some(0)));
        let is_null = Expr::Unary(UnaryOp::IsNull, Box::new(Expr::Reg(0)));
        assert_eq!(of(&is_null), Validity::Always);
        let null = Expr::Literal(Literal::Null, Ty::I64);
        assert_eq!(of(&Expr::binary(BinaryOp::Add, Expr::Reg(0), null.clone())), Validity::Never);
        let case = Expr::Case(vec![(is_null, Expr::Reg(2))], Box::new(null));
        assert_eq!((of(&case), of(&case).register()), (Validity::Own, None));
        let less = Expr::binary(BinaryOp::Lt, Expr::Reg(0), Expr::Reg(1));
        let either = Expr::binary(BinaryOp::Or, less.clone(), less);
        assert_eq!(of(&either), Validity::Own, "one side may decide where the other is NULL");
    }
}
