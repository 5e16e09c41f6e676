//! Programs over the registers of a vector.
//!
//! What a row raises fails the run: the rows that a program is asked for are those that the plan computes it for.

use super::program::{Bounds, Entries, Node, Order, Program};
use super::values::{Data, Own, Register, Selection, Slots, Value, both, with_slots};
use crate::error::{EngineError, Result};
use crate::ir::{BinaryOp, DatePart, Ty, UnaryOp};

/// The error of a row that raises.
fn overflow() -> EngineError {
    EngineError::Evaluation("an overflow")
}

impl Program {
    /// The values of some rows; all registers that it reads have been read.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn evaluate<'a>(&self, registers: &'a [Register], rows: &Selection) -> Result<Value<'a>> {
        self.root.evaluate(registers, rows)
    }
}

/// Computes integers of rows.
fn integers(rows: &Selection, of: impl Fn(usize) -> i64) -> Own<i64> {
    let mut values = Own::new();
    rows.each(|row| values[row] = of(row));
    values
}

fn floats(rows: &Selection, of: impl Fn(usize) -> f64) -> Own<f64> {
    let mut values = Own::new();
    rows.each(|row| values[row] = of(row));
    values
}

impl Node {
    fn evaluate<'a>(&self, registers: &'a [Register], rows: &Selection) -> Result<Value<'a>> {
        let of = |node: &Node| node.evaluate(registers, rows);
        Ok(match self {
            Node::Register(register) => registers[*register].value(),
            Node::Integer(value) => Value { data: Data::Integers(Slots::Same(*value)), valid: None },
            Node::Float(value) => Value { data: Data::Floats(Slots::Same(*value)), valid: None },
            Node::Null => Value { data: Data::Integers(Slots::Same(0)), valid: Some(Slots::Same(0)) },
            Node::Arithmetic(op, operands, bounds) => {
                let [left, right] = [of(&operands[0])?, of(&operands[1])?];
                arithmetic(*op, left, right, *bounds, rows)?
            }
            Node::Wrapped(inner, ty) => {
                let inner = of(inner)?;
                let wrapped: fn(i64) -> i64 = match ty {
                    Ty::I8 => |value| i64::from(value as i8),
                    Ty::I16 => |value| i64::from(value as i16),
                    Ty::I32 => |value| i64::from(value as i32),
                    Ty::U8 => |value| i64::from(value as u8),
                    Ty::U16 => |value| i64::from(value as u16),
                    Ty::U32 => |value| i64::from(value as u32),
                    _ => return Ok(inner),
                };
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| wrapped(at(row))));
                Value::integers(values, inner.valid)
            }
            Node::FloatArithmetic(op, operands) => {
                let [left, right] = [of(&operands[0])?, of(&operands[1])?];
                let valid = both(&left.valid, &right.valid);
                let values = with_slots!(left.of_floats(), a => with_slots!(right.of_floats(), b => match op {
                    BinaryOp::Add => floats(rows, |row| a(row) + b(row)),
                    BinaryOp::Sub => floats(rows, |row| a(row) - b(row)),
                    BinaryOp::Mul => floats(rows, |row| a(row) * b(row)),
                    BinaryOp::Div => floats(rows, |row| a(row) / b(row)),
                    _ => floats(rows, |row| a(row) % b(row)),
                }));
                Value::floats(values, valid)
            }
            Node::Compare(op, operands, order) => {
                let [left, right] = [of(&operands[0])?, of(&operands[1])?];
                let valid = both(&left.valid, &right.valid);
                Value::integers(compare(*op, *order, &left, &right, rows), valid)
            }
            Node::And(operands) => guarded(operands, 0, registers, rows)?,
            Node::Or(operands) => guarded(operands, 1, registers, rows)?,
            Node::Not(inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| at(row) ^ 1));
                Value::integers(values, inner.valid)
            }
            Node::IsNull(inner, wanted) => {
                let inner = of(inner)?;
                Value::integers(integers(rows, |row| i64::from(inner.is_valid(row) != *wanted)), None)
            }
            Node::IsTrue(inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => {
                    integers(rows, |row| i64::from(inner.is_valid(row) && at(row) != 0))
                });
                Value::integers(values, None)
            }
            Node::FloatOf(op, inner) => {
                let inner = of(inner)?;
                let function: fn(f64) -> f64 = match op {
                    UnaryOp::Negate => |value| -value,
                    UnaryOp::Absolute => f64::abs,
                    UnaryOp::Floor => f64::floor,
                    UnaryOp::Ceil => f64::ceil,
                    UnaryOp::Round => f64::round,
                    UnaryOp::RoundEven => f64::round_ties_even,
                    UnaryOp::Truncate => |value| if value == 0.0 { 0.0 } else { value.trunc() },
                    UnaryOp::Root => f64::sqrt,
                    _ => |value| match value {
                        0.0 => 0.0,
                        value if value.is_nan() => value,
                        value => value.signum(),
                    },
                };
                let values = with_slots!(inner.of_floats(), at => floats(rows, |row| function(at(row))));
                Value::floats(values, inner.valid)
            }
            Node::Absolute(inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| at(row).wrapping_abs()));
                Value::integers(values, inner.valid)
            }
            Node::Within(inner, (low, high)) => {
                let inner = of(inner)?;
                let mut raises = false;
                with_slots!(inner.of_integers(), at => rows.each(|row| {
                    raises |= (at(row) < *low || at(row) > *high) && inner.is_valid(row);
                }));
                if raises {
                    return Err(overflow());
                }
                inner
            }
            Node::ToFloat(inner, scale) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => match scale {
                    0 => floats(rows, |row| at(row) as f64),
                    scale => floats(rows, |row| nearest(at(row), *scale)),
                });
                Value::floats(values, inner.valid)
            }
            Node::ToBool(inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| i64::from(at(row) != 0)));
                Value::integers(values, inner.valid)
            }
            Node::Rounded(inner, factor) => {
                let inner = of(inner)?;
                let rounded = |value: i64| {
                    let (quotient, rest) = (value / factor, value % factor);
                    let up = rest.unsigned_abs() >= factor.unsigned_abs() - rest.unsigned_abs();
                    quotient + if up { value.signum() } else { 0 }
                };
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| rounded(at(row))));
                Value::integers(values, inner.valid)
            }
            Node::Table(inner, entries) => entries.look_up(of(inner)?, rows),
            Node::Case(branches, otherwise, is_float) => case(branches, otherwise, *is_float, registers, rows)?,
            Node::Part(part, inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| date_part(*part, at(row))));
                Value::integers(values, inner.valid)
            }
            Node::Among(inner, list) => {
                let inner = of(inner)?;
                let is_there = |value: i64| i64::from(list.binary_search(&value).is_ok());
                let values = with_slots!(inner.of_integers(), at => integers(rows, |row| is_there(at(row))));
                Value::integers(values, inner.valid)
            }
        })
    }
}

fn arithmetic<'a>(
    op: BinaryOp,
    left: Value<'a>,
    right: Value<'a>,
    bounds: Option<Bounds>,
    rows: &Selection,
) -> Result<Value<'a>> {
    let valid = both(&left.valid, &right.valid);
    let values = with_slots!(left.of_integers(), a => with_slots!(right.of_integers(), b => match (op, bounds) {
        (BinaryOp::Add, None) => integers(rows, |row| a(row).wrapping_add(b(row))),
        (BinaryOp::Sub, None) => integers(rows, |row| a(row).wrapping_sub(b(row))),
        (BinaryOp::Mul, None) => integers(rows, |row| a(row).wrapping_mul(b(row))),
        _ => {
            let exact = |row: usize| match op {
                BinaryOp::Add => a(row).checked_add(b(row)),
                BinaryOp::Sub => a(row).checked_sub(b(row)),
                BinaryOp::Mul => a(row).checked_mul(b(row)),
                BinaryOp::Div => a(row).checked_div(b(row)),
                // The smallest integer by -1 leaves nothing.
                _ => (b(row) != 0).then(|| a(row).wrapping_rem(b(row))),
            };
            let (low, high) = bounds.unwrap_or((i64::MIN, i64::MAX));
            let (mut values, mut raises) = (Own::new(), false);
            let flags = valid.as_ref();
            rows.each(|row| match exact(row).filter(|value| (low..=high).contains(value)) {
                Some(value) => values[row] = value,
                None => raises |= flags.is_none_or(|flags| with_slots!(flags, at => at(row) != 0)),
            });
            if raises {
                return Err(overflow());
            }
            values
        }
    }));
    Ok(Value::integers(values, valid))
}

/// A float as an integer in its order: NaN is the largest, zeros of both signs are equal.
pub(super) fn ordered(value: f64) -> i64 {
    in_total_order(value + 0.0)
}

/// A float as an integer in its order: NaN is the largest, -0.0 comes before 0.0.
pub(super) fn in_total_order(value: f64) -> i64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() } as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// A decimal as the nearest double: its unscaled value over a power of ten.
fn nearest(value: i64, scale: u32) -> f64 {
    // Both operands are exact, so that the quotient is rounded once.
    if value.unsigned_abs() <= 1 << 53 && scale <= 22 {
        return value as f64 / 10f64.powi(scale as i32);
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

fn compare(op: BinaryOp, order: Order, left: &Value<'_>, right: &Value<'_>, rows: &Selection) -> Own<i64> {
    macro_rules! by {
        ($a:expr, $b:expr) => {
            match op {
                BinaryOp::Eq => integers(rows, |row| i64::from($a(row) == $b(row))),
                BinaryOp::Ne => integers(rows, |row| i64::from($a(row) != $b(row))),
                BinaryOp::Lt => integers(rows, |row| i64::from($a(row) < $b(row))),
                BinaryOp::Le => integers(rows, |row| i64::from($a(row) <= $b(row))),
                BinaryOp::Gt => integers(rows, |row| i64::from($a(row) > $b(row))),
                _ => integers(rows, |row| i64::from($a(row) >= $b(row))),
            }
        };
    }
    match order {
        Order::Signed => with_slots!(left.of_integers(), a => with_slots!(right.of_integers(), b => by!(a, b))),
        Order::Unsigned => with_slots!(left.of_integers(), a => with_slots!(right.of_integers(), b => {
            by!(|row: usize| a(row) as u64, |row: usize| b(row) as u64)
        })),
        Order::Float => with_slots!(left.of_floats(), a => with_slots!(right.of_floats(), b => {
            by!(|row: usize| ordered(a(row)), |row: usize| ordered(b(row)))
        })),
    }
}

/// Joins two conditions; a row that the left one decides raises nothing on the right.
fn guarded<'a>(operands: &[Node; 2], decided: i64, registers: &'a [Register], rows: &Selection) -> Result<Value<'a>> {
    let left = operands[0].evaluate(registers, rows)?;
    let right = operands[1].evaluate(registers, rows).or_else(|_| {
        let open = with_slots!(left.of_integers(), at => {
            rows.filtered(|row| at(row) != decided || !left.is_valid(row))
        });
        operands[1].evaluate(registers, &open)
    })?;
    Ok(kleene(left, right, rows, decided))
}

/// Kleene's conjunction, which is `decided` by 0, or his disjunction, which is by 1.
fn kleene<'a>(left: Value<'a>, right: Value<'a>, rows: &Selection, decided: i64) -> Value<'a> {
    let (a, b) = (left.of_integers().clone(), right.of_integers().clone());
    with_slots!(&a, a => with_slots!(&b, b => {
        let joined = |row: usize| if decided == 0 { a(row) & b(row) } else { a(row) | b(row) };
        if left.valid.is_none() && right.valid.is_none() {
            return Value::integers(integers(rows, joined), None);
        }
        let (mut values, mut valid) = (Own::new(), Own::new());
        rows.each(|row| {
            let (l, r) = (left.is_valid(row), right.is_valid(row));
            let is_decided = l && a(row) == decided || r && b(row) == decided;
            values[row] = if is_decided { decided } else { joined(row) };
            valid[row] = u8::from(is_decided || l && r);
        });
        Value::integers(values, Some(Slots::Own(valid)))
    }))
}

fn case<'a>(
    branches: &[(Node, Node)],
    otherwise: &Node,
    is_float: bool,
    registers: &'a [Register],
    rows: &Selection,
) -> Result<Value<'a>> {
    let (mut numbers, mut reals, mut valid) = (Own::<i64>::new(), Own::<f64>::new(), Own::<u8>::new());
    let mut put = |value: &Value<'_>, rows: &Selection| {
        match is_float && matches!(value.data, Data::Floats(_)) {
            true => with_slots!(value.of_floats(), at => rows.each(|row| reals[row] = at(row))),
            false => with_slots!(value.of_integers(), at => rows.each(|row| numbers[row] = at(row))),
        }
        rows.each(|row| valid[row] = u8::from(value.is_valid(row)));
    };
    let mut left = rows.filtered(|_| true);
    for (when, then) in branches {
        if left.is_empty() {
            break;
        }
        let when = when.evaluate(registers, &left)?;
        let is_true = |row: usize| with_slots!(when.of_integers(), at => at(row) != 0) && when.is_valid(row);
        let taken = left.filtered(is_true);
        if !taken.is_empty() {
            put(&then.evaluate(registers, &taken)?, &taken);
        }
        left.retain(|row| !is_true(row));
    }
    if !left.is_empty() {
        put(&otherwise.evaluate(registers, &left)?, &left);
    }
    let data = match is_float {
        true => Data::Floats(Slots::Own(reals)),
        false => Data::Integers(Slots::Own(numbers)),
    };
    Ok(Value { data, valid: Some(Slots::Own(valid)) })
}

impl Entries {
    fn look_up<'a>(&self, codes: Value<'a>, rows: &Selection) -> Value<'a> {
        let null = self.integers.len().max(self.floats.len()) - 1;
        let code = |row: usize| match codes.is_valid(row) {
            true => (with_slots!(codes.of_integers(), at => at(row)) as usize).min(null),
            false => null,
        };
        let valid = match (&self.valid, self.null_of_null) {
            (Some(valid), _) => {
                let mut flags = Own::new();
                rows.each(|row| flags[row] = valid[code(row)]);
                Some(Slots::Own(flags))
            }
            (None, true) => codes.valid.clone(),
            (None, false) => None,
        };
        let data = match self.floats.is_empty() {
            true => Data::Integers(Slots::Own(integers(rows, |row| self.integers[code(row)]))),
            false => Data::Floats(Slots::Own(floats(rows, |row| self.floats[code(row)]))),
        };
        Value { data, valid }
    }
}

/// A part of a date in days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn date_part(part: DatePart, days: i64) -> i64 {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    match part {
        DatePart::Year => year_of_era + era * 400 + i64::from(month <= 2),
        DatePart::Quarter => (month + 2) / 3,
        DatePart::Month => month,
        DatePart::Day => of_year - (153 * shifted_month + 2) / 5 + 1,
    }
}
