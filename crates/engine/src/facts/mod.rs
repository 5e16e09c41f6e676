//! What is known of values before any code is written: type, NULLs, bounds, dictionary, and whether computing them can
//! raise an error.
//!
//! Facts of an expression follow from those of its registers by one rule for each kind of node. Rules are pure; the
//! code generator asks the same ones, so that a kernel never relies on more than is known here. Bounds start from
//! column statistics and let decimals be computed in 64 bits, conversions go unchecked and keys be packed. They hold
//! for every valid value; values that are NULL may hold anything.

mod integers;
mod interval;
mod validity;

use std::sync::Arc;

use arrow::array::StringArray;
use warpcube_column::{CHUNK_ROWS, Dictionary};

use crate::dictionaries::merged;
use crate::error::{EngineError, Result, unsupported};
use crate::ir::{BinaryOp, DatePart, Expr, Literal, Overflow, Ty, UnaryOp};
use crate::lookup::{self, LookupTable};

pub(crate) use integers::{Arithmetic, DECIMAL_MAX, absolute, divides_in_place, integer_arithmetic, wide_quotient};
pub(crate) use validity::{Validity, validity};

/// Bounds of integers, both included.
pub(crate) type Range = Option<(i128, i128)>;

/// The first and the last day of the CPU's calendar: years -262143 to 262142.
pub(crate) const FIRST_DAY: i128 = -96_465_292;
/// The last day.
pub(crate) const LAST_DAY: i128 = 95_026_236;

/// What is known of a value.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Type.
    pub(crate) ty: Ty,
    /// Whether it may be NULL.
    pub(crate) nullable: bool,
    /// Whether it is the constant NULL.
    pub(crate) is_null: bool,
    /// Bounds of valid values of integer types.
    pub(crate) range: Range,
    /// Bound of the magnitude of a column's finite floats, where it is known.
    pub(crate) magnitude: Option<f64>,
    /// Strings behind codes.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    /// Whether it is a string of a scanned column without a dictionary, which is only tested.
    pub(crate) is_bytes: bool,
    /// The column without a dictionary whose strings these are; their places in it, unless `is_bytes`.
    pub(crate) texts: Option<Texts>,
}

/// A column without a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Texts {
    /// Table of the fragment.
    pub(crate) table: usize,
    /// Position among the columns of the table.
    pub(crate) column: usize,
    /// Chunks of the table.
    pub(crate) chunks: usize,
}

impl Facts {
    /// A value of which no more is known.
    pub(crate) fn new(ty: Ty, nullable: bool, range: Range) -> Facts {
        Facts { ty, nullable, is_null: false, range, magnitude: None, dictionary: None, is_bytes: false, texts: None }
    }

    /// Whether a decimal is computed in 64 bits.
    pub(crate) fn is_narrow(&self) -> bool {
        self.ty == Ty::I128 && fits_i64(self.range)
    }

    /// Whether a decimal is computed in 128 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.ty == Ty::I128 && !self.is_narrow()
    }

    /// Bounds, from the type where nothing better is known; floats have none.
    pub(crate) fn bounds(&self) -> Range {
        self.range.or_else(|| self.ty.bounds())
    }
}

/// Whether bounds are known and 64 bits hold them.
pub(crate) fn fits_i64(range: Range) -> bool {
    range.is_some_and(|(low, high)| low >= i64::MIN.into() && high <= i64::MAX.into())
}

/// What is known of the values of `exprs`, and whether computing them can raise an error.
///
/// # Errors
/// What the device does not compute; expressions whose types do not match.
pub(crate) fn analyse(exprs: &[&Expr], registers: &[Option<Facts>], overflow: Overflow) -> Result<(Vec<Facts>, bool)> {
    let mut analysis = Analysis { registers, overflow, fallible: false };
    let facts = exprs.iter().map(|expr| analysis.of(expr)).collect::<Result<_>>()?;
    Ok((facts, analysis.fallible))
}

/// One walk over expressions.
struct Analysis<'a> {
    registers: &'a [Option<Facts>],
    overflow: Overflow,
    fallible: bool,
}

impl Analysis<'_> {
    fn of(&mut self, expr: &Expr) -> Result<Facts> {
        match expr {
            Expr::Reg(register) => coded(self.register(*register)?),
            Expr::Literal(value, ty) => literal(*value, *ty),
            Expr::Unary(op, inner) => {
                let value = match is_there(*op, inner) {
                    Some(register) => self.register(register)?,
                    None => self.of(inner)?,
                };
                match op {
                    UnaryOp::Negate if !value.ty.is_float() => {
                        let zero = literal(Literal::Int(0), value.ty)?;
                        self.integers(BinaryOp::Sub, &zero, &value)
                    }
                    UnaryOp::Absolute if !value.ty.is_float() => {
                        let (facts, raises) = absolute(&value)?;
                        self.fallible |= raises;
                        Ok(facts)
                    }
                    op => unary(*op, &value),
                }
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.of(left)?, self.of(right)?);
                match op {
                    BinaryOp::And | BinaryOp::Or => Ok(truth(left.nullable || right.nullable)),
                    _ => {
                        same_type(*op, &left, &right)?;
                        match op.is_comparison() {
                            true => compare(*op, &left, &right),
                            false if left.ty.is_float() => float_arithmetic(*op, &left, &right),
                            false => self.integers(*op, &left, &right),
                        }
                    }
                }
            }
            Expr::Cast(inner, ty) => {
                let value = self.of(inner)?;
                let (facts, raises) = cast(&value, *ty)?;
                self.fallible |= raises;
                Ok(facts)
            }
            Expr::Rescale(inner, power) => {
                let value = self.of(inner)?;
                let factor = rescale_factor(*power)?;
                match power {
                    0 => Ok(value),
                    1.. => self.integers(BinaryOp::Mul, &value, &literal(Literal::Int(factor), Ty::I128)?),
                    _ => Ok(rescale_down(&value, factor)),
                }
            }
            Expr::Digits(inner, most) => {
                let (facts, raises) = digits(&self.of(inner)?, *most)?;
                self.fallible |= raises;
                Ok(facts)
            }
            Expr::DecimalToFloat(inner, _) => Ok(Facts::new(Ty::F64, self.of(inner)?.nullable, None)),
            Expr::Quotient(operands, power) => {
                let [dividend, divisor] = operands.as_ref();
                let (dividend, divisor) = (self.of(dividend)?, self.of(divisor)?);
                self.fallible = true;
                wide_quotient(&dividend, &divisor, *power)
            }
            Expr::Deviations(sums) => {
                let [sum, squares, count] = sums.as_ref();
                deviations([self.of(sum)?, self.of(squares)?, self.of(count)?])
            }
            Expr::Case(branches, otherwise) => {
                let mut results = Vec::with_capacity(branches.len() + 1);
                for (when, then) in branches {
                    self.of(when)?;
                    results.push(self.of(then)?);
                }
                results.push(self.of(otherwise)?);
                case(results)
            }
            Expr::DatePart(part, inner) => Ok(date_part(*part, &self.of(inner)?)),
            Expr::AddMonths(inner, months) => add_months(&self.of(inner)?, *months),
            Expr::InCalendar(inner, day_ticks) => {
                let value = self.of(inner)?;
                in_calendar(value.bounds(), *day_ticks).map(|()| value)
            }
            Expr::Among(inner, _) => Ok(Facts::new(Ty::Bool, self.of(inner)?.nullable, Some((0, 1)))),
            Expr::Text(constant) => Ok(text(constant)),
            Expr::Lookup(register, function, ty) => {
                let input = self.register(*register)?;
                let table = lookup::evaluate(strings_of(&input)?, function, *ty)?;
                Ok(looked_up(&input, &table, *ty))
            }
            Expr::Place(register) => place(*register, &self.register(*register)?),
            Expr::Match(register, _) => tested(*register, &self.register(*register)?),
        }
    }

    fn register(&self, register: usize) -> Result<Facts> {
        match self.registers.get(register) {
            Some(Some(facts)) => Ok(facts.clone()),
            _ => Err(not_loaded(register)),
        }
    }

    fn integers(&mut self, op: BinaryOp, left: &Facts, right: &Facts) -> Result<Facts> {
        let Arithmetic { facts, raises, .. } = integer_arithmetic(op, left, right, self.overflow)?;
        self.fallible |= raises.any();
        Ok(facts)
    }
}

/// The register that an expression asks whether it is NULL, which strings without codes tell too.
pub(crate) fn is_there(op: UnaryOp, inner: &Expr) -> Option<usize> {
    match (op, inner) {
        (UnaryOp::IsNull | UnaryOp::IsNotNull, Expr::Reg(register)) => Some(*register),
        _ => None,
    }
}

/// A register as a value; strings without codes are none.
fn coded(value: Facts) -> Result<Facts> {
    match value.texts {
        Some(_) => unsupported("the codes of a column without a dictionary"),
        None => Ok(value),
    }
}

/// The place of a string without a code: its chunk times the most rows of a chunk, and its row there.
pub(crate) fn place(register: usize, input: &Facts) -> Result<Facts> {
    let malformed = || EngineError::Malformed(format!("the place of register {register}, which has a dictionary"));
    let texts = input.texts.ok_or_else(malformed)?;
    let last = (texts.chunks.max(1) * CHUNK_ROWS - 1) as i128;
    Ok(Facts { texts: Some(texts), ..Facts::new(Ty::U64, input.nullable, Some((0, last))) })
}

/// The outcome of a test of a string without a code.
pub(crate) fn tested(register: usize, input: &Facts) -> Result<Facts> {
    match input.is_bytes {
        true => Ok(truth(input.nullable)),
        false => Err(EngineError::Malformed(format!("a test of register {register}, which has a dictionary"))),
    }
}

/// The error of a register that a scope does not have.
pub(crate) fn not_loaded(register: usize) -> EngineError {
    EngineError::Malformed(format!("register {register} is not loaded here"))
}

/// Refuses operands of different types.
pub(crate) fn same_type(op: BinaryOp, left: &Facts, right: &Facts) -> Result<()> {
    match left.ty == right.ty {
        true => Ok(()),
        false => Err(EngineError::Malformed(format!("{op:?} of {:?} and {:?}", left.ty, right.ty))),
    }
}

/// A truth value.
pub(crate) fn truth(nullable: bool) -> Facts {
    Facts::new(Ty::Bool, nullable, Some((0, 1)))
}

/// A constant.
pub(crate) fn literal(value: Literal, ty: Ty) -> Result<Facts> {
    match value {
        Literal::Null => {
            let range = if ty.is_float() { None } else { Some((0, 0)) };
            Ok(Facts { is_null: true, ..Facts::new(ty, true, range) })
        }
        Literal::Argument(position) => Err(EngineError::Malformed(format!("argument {position} was given no value"))),
        Literal::Int(number) if !ty.is_float() => Ok(Facts::new(ty, false, Some((number, number)))),
        Literal::Int(_) | Literal::Float(_) => Ok(Facts::new(ty, false, None)),
    }
}

/// An operation of one operand, but for the negation of integers, which is a difference, and for their magnitude.
///
/// # Errors
/// Roundings and signs of what is no float.
pub(crate) fn unary(op: UnaryOp, value: &Facts) -> Result<Facts> {
    match op {
        UnaryOp::Not => Ok(truth(value.nullable)),
        UnaryOp::IsNull | UnaryOp::IsNotNull | UnaryOp::IsTrue => Ok(truth(false)),
        _ if value.ty.is_float() => Ok(Facts::new(value.ty, value.nullable, None)),
        op => Err(EngineError::Malformed(format!("{op:?} of {:?}", value.ty))),
    }
}

/// A comparison of values of one type; strings are compared with strings and with the constant NULL.
pub(crate) fn compare(op: BinaryOp, left: &Facts, right: &Facts) -> Result<Facts> {
    if left.dictionary.is_some() != right.dictionary.is_some() && !(is_null_string(left) || is_null_string(right)) {
        return unsupported(format!("the comparison {op:?} of a string and something else"));
    }
    Ok(truth(left.nullable || right.nullable))
}

/// Whether this is the constant NULL among strings.
pub(crate) fn is_null_string(value: &Facts) -> bool {
    value.is_null && value.ty == Ty::U32
}

/// Arithmetic of floats.
pub(crate) fn float_arithmetic(op: BinaryOp, left: &Facts, right: &Facts) -> Result<Facts> {
    use BinaryOp::*;
    match op {
        Add | Sub | Mul | Div | Rem => Ok(Facts::new(left.ty, left.nullable || right.nullable, None)),
        other => Err(EngineError::Malformed(format!("{other:?} of floats"))),
    }
}

/// A conversion, and whether it can raise.
pub(crate) fn cast(value: &Facts, ty: Ty) -> Result<(Facts, bool)> {
    if value.ty == ty {
        return Ok((value.clone(), false));
    }
    if value.dictionary.is_some() {
        return unsupported("a conversion of codes");
    }
    let of = |range| Facts { is_null: value.is_null, ..Facts::new(ty, value.nullable, range) };
    if ty.is_float() {
        return Ok((of(None), false));
    }
    if ty == Ty::Bool {
        return Ok((of(Some((0, 1))), false));
    }
    if value.ty.is_float() {
        return match ty {
            Ty::I128 => unsupported("a conversion of floats to decimals"),
            _ => Ok((of(None), true)),
        };
    }
    let limits = ty.bounds().expect("integers have bounds");
    let bounds = value.bounds().expect("integers have bounds");
    let inside = bounds.0 >= limits.0 && bounds.1 <= limits.1;
    if !inside && (limits.0 < i64::MIN.into() || limits.1 > i64::MAX.into() && bounds.1 > limits.1) {
        return unsupported("a conversion between wide integers");
    }
    Ok((of(Some((bounds.0.max(limits.0), bounds.1.min(limits.1)))), !inside))
}

/// What a decimal is multiplied with or divided by to change its scale.
pub(crate) fn rescale_factor(power: i8) -> Result<i128> {
    let factor = 10i128.checked_pow(u32::from(power.unsigned_abs()));
    factor.ok_or_else(|| EngineError::Unsupported("a decimal scale change past 38 digits".into()))
}

/// A decimal of at most so many digits, and whether its bounds let it have more.
pub(crate) fn digits(value: &Facts, most: u8) -> Result<(Facts, bool)> {
    let Some(power) = 10i128.checked_pow(most.into()) else {
        return unsupported(format!("a decimal of {most} digits"));
    };
    let (low, high) = value.bounds().expect("integers have bounds");
    let (least, largest) = (1 - power, power - 1);
    let range = Some((low.clamp(least, largest), high.clamp(least, largest)));
    Ok((Facts { range, ..value.clone() }, low < least || high > largest))
}

/// A decimal divided by a power of ten and rounded.
pub(crate) fn rescale_down(value: &Facts, factor: i128) -> Facts {
    let range = value.range.map(|(low, high)| (low / factor - 1, high / factor + 1));
    Facts::new(Ty::I128, value.nullable, range)
}

/// The sum of squared deviations from a mean, of two sums and a count.
pub(crate) fn deviations(sums: [Facts; 3]) -> Result<Facts> {
    match sums.each_ref().map(|value| value.ty) {
        [Ty::I128, Ty::I128, Ty::I64] => Ok(Facts::new(Ty::F64, sums.iter().any(|value| value.nullable), None)),
        types => Err(EngineError::Malformed(format!("squared deviations of {types:?}"))),
    }
}

/// The results of a CASE as one: those of its branches, then the last one. Strings are codes of a dictionary that all
/// share.
pub(crate) fn case(mut results: Vec<Facts>) -> Result<Facts> {
    let ty = results.last().map(|otherwise| otherwise.ty).expect("the last one is there");
    if results.iter().any(|value| value.ty != ty) {
        return Err(EngineError::Malformed("CASE branches of several types".into()));
    }
    let own: Vec<_> = results.iter().filter_map(|value| value.dictionary.as_ref()).collect();
    let dictionary = (!own.is_empty()).then(|| merged(&own));
    if let Some(shared) = &dictionary {
        results.iter_mut().for_each(|value| translate(value, shared));
    }
    let range = results.iter().map(Facts::bounds).reduce(|a, b| Some((a?.0.min(b?.0), a?.1.max(b?.1)))).flatten();
    let nullable = results.iter().any(|value| value.nullable);
    Ok(Facts { dictionary, ..Facts::new(ty, nullable, range) })
}

/// A string as a code of a dictionary that has it.
pub(crate) fn translate(value: &mut Facts, shared: &Arc<Dictionary>) {
    if value.dictionary.as_ref().is_some_and(|own| !Arc::ptr_eq(own, shared)) {
        value.range = Some((0, shared.len().max(1) as i128 - 1));
        value.dictionary = Some(shared.clone());
    }
}

/// A part of a date; outside of the CPU's calendar there are none.
pub(crate) fn date_part(part: DatePart, days: &Facts) -> Facts {
    let year = |days: i128| 1970 + days.div_euclid(146_097) * 400 + days.rem_euclid(146_097) / 366;
    let range = match part {
        // The quotient by 366 is at most two years short, never past the year.
        DatePart::Year => days.bounds().map(|(a, b)| (year(a) - 3, year(b) + 3)),
        DatePart::Quarter => Some((1, 4)),
        DatePart::Month => Some((1, 12)),
        DatePart::Day => Some((1, 31)),
    };
    Facts::new(Ty::I32, days.nullable || may_leave_calendar(days), range)
}

/// Whether bounds of a date reach out of the CPU's calendar.
pub(crate) fn may_leave_calendar(days: &Facts) -> bool {
    days.bounds().is_some_and(|(low, high)| low < FIRST_DAY || high > LAST_DAY)
}

/// A date some months later.
pub(crate) fn add_months(days: &Facts, months: i32) -> Result<Facts> {
    let (low, high) = days.bounds().expect("integers have bounds");
    // Months have 28 to 31 days, and the last day of a month may be three days off.
    let months = i128::from(months);
    let (short, long) = if months < 0 { (31, 28) } else { (28, 31) };
    let range = (low + months * short - 3, high + months * long + 3);
    in_calendar(Some((low.min(range.0), high.max(range.1))), 1)?;
    Ok(Facts::new(Ty::I32, days.nullable, Some(range)))
}

/// Refuses bounds of dates or timestamps that do not prove them to be in the calendar.
pub(crate) fn in_calendar(bounds: Range, day_ticks: i64) -> Result<()> {
    let day = |ticks: i128| ticks.div_euclid(day_ticks.into());
    match bounds {
        Some((low, high)) if day(low) >= FIRST_DAY && day(high) <= LAST_DAY => Ok(()),
        _ => unsupported("a date that may leave the calendar"),
    }
}

/// A constant string: code 0 of a dictionary of its own.
pub(crate) fn text(constant: &str) -> Facts {
    let dictionary = Dictionary::from_sorted(StringArray::from(vec![constant]));
    Facts { dictionary: Some(Arc::new(dictionary)), ..Facts::new(Ty::U32, false, Some((0, 0))) }
}

/// The strings of a register of codes; a NULL in place of a column has none.
pub(crate) fn strings_of(input: &Facts) -> Result<&Arc<Dictionary>> {
    match &input.dictionary {
        Some(dictionary) => Ok(dictionary),
        None => unsupported("a function of a string that is NULL in every row"),
    }
}

/// What a table of a function's results has for a code.
pub(crate) fn looked_up(input: &Facts, table: &LookupTable, ty: Ty) -> Facts {
    let nullable = if table.null_in_null_out() { input.nullable } else { table.validity().is_some() };
    Facts { dictionary: table.dictionary(), ..Facts::new(ty, nullable, table.range()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(expr: &Expr, registers: &[Option<Facts>]) -> Result<(Facts, bool)> {
        analyse(&[expr], registers, Overflow::Raise).map(|(mut facts, fallible)| (facts.remove(0), fallible))
    }

    fn int(value: i128, ty: Ty) -> Expr {
        Expr::Literal(Literal::Int(value), ty)
    }

    #[test]
    fn bounds_prove_that_sums_and_conversions_raise_nothing() {
        let registers = [Some(Facts::new(Ty::I32, true, Some((-5, 90)))), Some(Facts::new(Ty::I32, false, None))];
        let sum = |register| Expr::binary(BinaryOp::Add, Expr::Reg(register), int(100, Ty::I32));
        let (facts, fallible) = of(&sum(0), &registers).unwrap();
        assert_eq!((facts.range, facts.nullable, fallible), (Some((95, 190)), true, false));
        let (facts, fallible) = of(&sum(1), &registers).unwrap();
        assert_eq!((facts.range.unwrap().1, fallible), (i32::MAX.into(), true));
        let (facts, fallible) = of(&Expr::Cast(Box::new(Expr::Reg(0)), Ty::I8), &registers).unwrap();
        assert_eq!((facts.range, fallible), (Some((-5, 90)), false));
        assert!(of(&Expr::Cast(Box::new(Expr::Reg(1)), Ty::I8), &registers).unwrap().1);
        assert!(of(&Expr::Reg(2), &registers).is_err());
    }

    #[test]
    fn digits_are_counted_where_bounds_do_not_prove_them() {
        let registers = [Some(Facts::new(Ty::I128, true, Some((-99, 100))))];
        let digits = |most| of(&Expr::Digits(Box::new(Expr::Reg(0)), most), &registers).unwrap();
        let (facts, fallible) = digits(2);
        assert_eq!((facts.range, facts.nullable, fallible), (Some((-99, 99)), true, true));
        let (facts, fallible) = digits(3);
        assert_eq!((facts.range, fallible), (Some((-99, 100)), false));
        assert_eq!(digits(0).0.range, Some((0, 0)));
    }

    #[test]
    fn truth_is_null_where_an_operand_is() {
        let registers = [Some(Facts::new(Ty::Bool, true, Some((0, 1)))), Some(truth(false))];
        let nullable = |expr: Expr| of(&expr, &registers).unwrap().0.nullable;
        assert!(nullable(Expr::binary(BinaryOp::And, Expr::Reg(1), Expr::Reg(0))));
        assert!(!nullable(Expr::binary(BinaryOp::Eq, Expr::Reg(1), Expr::Reg(1))));
        assert!(!nullable(Expr::Unary(UnaryOp::IsNull, Box::new(Expr::Reg(0)))));
    }

    #[test]
    fn strings_of_a_case_share_a_dictionary() {
        let text = |text: &str| Expr::Text(text.into());
        let case = Expr::Case(vec![(int(1, Ty::Bool), text("b"))], Box::new(text("a")));
        let (facts, _) = of(&case, &[]).unwrap();
        assert_eq!((facts.range, facts.dictionary.unwrap().len(), facts.nullable), (Some((0, 1)), 2, false));
        let null = Expr::Literal(Literal::Null, Ty::U32);
        assert!(of(&Expr::binary(BinaryOp::Eq, text("a"), null), &[]).unwrap().0.nullable);
        let code = Expr::binary(BinaryOp::Eq, text("a"), int(1, Ty::U32));
        assert!(matches!(of(&code, &[]), Err(EngineError::Unsupported(_))));
    }
}
