//! Programs over the registers of a vector.
//!
//! What a row raises fails the run: the rows that a program is asked for are those that the plan computes it for.

use super::calendar::{date_part, months_later};
use super::program::{Bounds, Entries, Kind, Node, Order, Program, overflow, within_i64};
use super::values::{Data, Own, Register, Selection, Slots, Value, both, with_slots};
use super::wide::{self, nearest};
use crate::error::Result;
use crate::facts::{FIRST_DAY, LAST_DAY};
use crate::ir::{BinaryOp, Ty, UnaryOp};

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

/// A function of integers.
fn mapped<'a>(value: Value<'a>, rows: &Selection, of: impl Fn(i64) -> i64) -> Value<'a> {
    let values = with_slots!(value.of_integers(), at => integers(rows, |row| of(at(row))));
    Value::integers(values, value.valid)
}

/// Floats as integers within bounds, without the digits behind the point.
fn truncated<'a>(value: Value<'a>, (low, high): Bounds<i128>, rows: &Selection) -> Result<Value<'a>> {
    // The bounds of 64 bits are no doubles; the powers of two beside them are.
    let (low, above) = (low as f64, (high + 1) as f64);
    let is_unsigned = high > i64::MAX.into();
    let mut raises = false;
    let mut values = Own::new();
    with_slots!(value.of_floats(), at => rows.each(|row| {
        let whole = at(row).trunc();
        raises |= !(low..above).contains(&whole) && value.is_valid(row);
        values[row] = if is_unsigned { whole as u64 as i64 } else { whole as i64 };
    }));
    match raises {
        true => Err(overflow()),
        false => Ok(Value::integers(values, value.valid)),
    }
}

impl Node {
    fn evaluate<'a>(&self, registers: &'a [Register], rows: &Selection) -> Result<Value<'a>> {
        let of = |node: &Node| node.evaluate(registers, rows);
        Ok(match self {
            Node::Register(register) => registers[*register].value(),
            Node::Integer(value) => Value { data: Data::Integers(Slots::Same(*value)), valid: None },
            Node::Float(value) => Value { data: Data::Floats(Slots::Same(*value)), valid: None },
            Node::Wide(value) => Value { data: Data::Wide(Slots::Same(*value)), valid: None },
            Node::Null => Value { data: Data::Integers(Slots::Same(0)), valid: Some(Slots::Same(0)) },
            Node::Arithmetic(op, operands, bounds) => {
                let [left, right] = [of(&operands[0])?, of(&operands[1])?];
                arithmetic(*op, left, right, *bounds, rows)?
            }
            Node::Widened(inner, is_unsigned) => wide::widened(of(inner)?, *is_unsigned, rows),
            Node::Narrowed(inner) => wide::narrowed(of(inner)?, rows),
            Node::WideArithmetic(op, operands, bounds) => {
                wide::arithmetic(*op, &of(&operands[0])?, &of(&operands[1])?, *bounds, rows)?
            }
            Node::Quotient(operands, factor) => wide::quotient(&of(&operands[0])?, &of(&operands[1])?, *factor, rows)?,
            Node::Deviations(sums) => wide::deviations([&of(&sums[0])?, &of(&sums[1])?, &of(&sums[2])?], rows),
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
                mapped(inner, rows, wrapped)
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
            Node::Not(inner) => mapped(of(inner)?, rows, |value| value ^ 1),
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
                match inner.data {
                    Data::Wide(_) => wide::mapped(inner, rows, i128::wrapping_abs),
                    _ => mapped(inner, rows, i64::wrapping_abs),
                }
            }
            Node::Within(inner, bounds) => {
                let inner = of(inner)?;
                let mut raises = false;
                let (least, most) = within_i64(*bounds);
                match &inner.data {
                    Data::Wide(slots) => with_slots!(slots, at => rows.each(|row| {
                        raises |= (at(row) < bounds.0 || at(row) > bounds.1) && inner.is_valid(row);
                    })),
                    _ => with_slots!(inner.of_integers(), at => rows.each(|row| {
                        raises |= (at(row) < least || at(row) > most) && inner.is_valid(row);
                    })),
                }
                if raises {
                    return Err(overflow());
                }
                inner
            }
            Node::ToFloat(inner, scale) => {
                let inner = of(inner)?;
                let values = match (&inner.data, scale) {
                    (Data::Wide(slots), 0) => with_slots!(slots, at => floats(rows, |row| at(row) as f64)),
                    (Data::Wide(slots), scale) => {
                        with_slots!(slots, at => floats(rows, |row| nearest(at(row), *scale)))
                    }
                    (_, 0) => with_slots!(inner.of_integers(), at => floats(rows, |row| at(row) as f64)),
                    (_, scale) => {
                        with_slots!(inner.of_integers(), at => floats(rows, |row| nearest(at(row).into(), *scale)))
                    }
                };
                Value::floats(values, inner.valid)
            }
            Node::ToSingle(inner) => {
                let inner = of(inner)?;
                let values = match &inner.data {
                    Data::Wide(slots) => with_slots!(slots, at => floats(rows, |row| f64::from(at(row) as f32))),
                    _ => with_slots!(inner.of_integers(), at => floats(rows, |row| f64::from(at(row) as f32))),
                };
                Value::floats(values, inner.valid)
            }
            Node::Single(inner) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_floats(), at => floats(rows, |row| f64::from(at(row) as f32)));
                Value::floats(values, inner.valid)
            }
            Node::Truncated(inner, bounds) => truncated(of(inner)?, *bounds, rows)?,
            Node::ToBool(inner) => {
                let inner = of(inner)?;
                let values = match &inner.data {
                    Data::Integers(slots) => with_slots!(slots, at => integers(rows, |row| i64::from(at(row) != 0))),
                    Data::Floats(slots) => with_slots!(slots, at => integers(rows, |row| i64::from(at(row) != 0.0))),
                    Data::Wide(slots) => with_slots!(slots, at => integers(rows, |row| i64::from(at(row) != 0))),
                };
                Value::integers(values, inner.valid)
            }
            Node::Rounded(inner, factor) => {
                let inner = of(inner)?;
                match inner.data {
                    Data::Wide(_) => wide::mapped(inner, rows, |value| wide::rounded(value, *factor)),
                    _ => {
                        let factor = *factor as i64;
                        mapped(inner, rows, |value| {
                            let (quotient, rest) = (value / factor, value % factor);
                            let up = rest.unsigned_abs() >= factor.unsigned_abs() - rest.unsigned_abs();
                            quotient + if up { value.signum() } else { 0 }
                        })
                    }
                }
            }
            Node::Table(inner, entries) => entries.look_up(of(inner)?, rows),
            Node::Case(branches, otherwise, kind) => case(branches, otherwise, *kind, registers, rows)?,
            Node::Part(part, inner, false) => mapped(of(inner)?, rows, |days| date_part(*part, days)),
            Node::Part(part, inner, true) => {
                let inner = of(inner)?;
                let mut valid = Own::new();
                with_slots!(inner.of_integers(), at => rows.each(|row| {
                    let is_inside = (FIRST_DAY..=LAST_DAY).contains(&at(row).into());
                    valid[row] = u8::from(is_inside && inner.is_valid(row));
                }));
                Value { valid: Some(Slots::Own(valid)), ..mapped(inner, rows, |days| date_part(*part, days)) }
            }
            Node::AddMonths(inner, months) => mapped(of(inner)?, rows, |days| months_later(days, (*months).into())),
            Node::Among(inner, list) => {
                let inner = of(inner)?;
                let is_there = |value: i64| i64::from(list.binary_search(&value).is_ok());
                match &inner.data {
                    Data::Wide(slots) => {
                        let is_there = |value: i128| i64::try_from(value).map_or(0, is_there);
                        let values = with_slots!(slots, at => integers(rows, |row| is_there(at(row))));
                        Value::integers(values, inner.valid)
                    }
                    _ => mapped(inner, rows, is_there),
                }
            }
        })
    }
}

fn arithmetic<'a>(
    op: BinaryOp,
    left: Value<'a>,
    right: Value<'a>,
    bounds: Option<Bounds<i64>>,
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
        Order::Wide => with_slots!(left.of_wide(), a => with_slots!(right.of_wide(), b => by!(a, b))),
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
    kind: Kind,
    registers: &'a [Register],
    rows: &Selection,
) -> Result<Value<'a>> {
    let (mut numbers, mut reals, mut wide, mut valid) = (Own::new(), Own::new(), Own::new(), Own::<u8>::new());
    let mut put = |value: &Value<'_>, rows: &Selection| {
        match &value.data {
            Data::Integers(slots) => with_slots!(slots, at => rows.each(|row| numbers[row] = at(row))),
            Data::Floats(slots) => with_slots!(slots, at => rows.each(|row| reals[row] = at(row))),
            Data::Wide(slots) => with_slots!(slots, at => rows.each(|row| wide[row] = at(row))),
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
    let data = match kind {
        Kind::Integers => Data::Integers(Slots::Own(numbers)),
        Kind::Floats => Data::Floats(Slots::Own(reals)),
        Kind::Wide => Data::Wide(Slots::Own(wide)),
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
