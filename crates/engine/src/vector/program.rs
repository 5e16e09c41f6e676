//! Expressions over the registers of a pipeline, as trees that are evaluated a vector at a time.
//!
//! Integers, codes and decimals are computed in 64 bits: what bounds do not prove to fit is refused, or checked where
//! the type has an error for it. What a row raises fails the run, and the CPU's plan tells whether the statement does.

use std::sync::Arc;

use warpcube_column::{Dictionary, Storage};

use super::values::{Data, Own, Register, Selection, Slots, Value, both, with_slots};
use crate::dictionaries::{codes, merged};
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, analyse, fits_i64, integer_arithmetic, is_null_string, rescale_factor};
use crate::ir::{BinaryOp, DatePart, Expr, Literal, Overflow, Ty, UnaryOp};
use crate::lookup::{self, LookupTable};

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    root: Node,
    /// The registers that it reads.
    pub(super) registers: Vec<usize>,
    pub(super) facts: Facts,
    /// Whether a row may raise an error.
    pub(super) is_fallible: bool,
}

/// What a bounded value may be.
type Bounds = (i64, i64);

#[derive(Debug)]
enum Node {
    Register(usize),
    Integer(i64),
    Float(f64),
    Null,
    /// Integers, the result within bounds where those are given.
    Arithmetic(BinaryOp, Box<[Node; 2]>, Option<Bounds>),
    /// An integer modulo two to the power of its type's bits.
    Wrapped(Box<Node>, Ty),
    FloatArithmetic(BinaryOp, Box<[Node; 2]>),
    Compare(BinaryOp, Box<[Node; 2]>, Order),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    /// Whether the value is NULL, or whether it is not.
    IsNull(Box<Node>, bool),
    IsTrue(Box<Node>),
    /// A float by a function.
    FloatOf(UnaryOp, Box<Node>),
    Absolute(Box<Node>),
    /// An integer that raises outside of these bounds.
    Within(Box<Node>, Bounds),
    /// An integer over a power of ten, as a float.
    ToFloat(Box<Node>, f64),
    /// Whether an integer is not zero.
    ToBool(Box<Node>),
    /// A quotient by a power of ten, halves rounded away from zero.
    Rounded(Box<Node>, i64),
    /// Entries by code; that of NULL is the last.
    Table(Box<Node>, Arc<Entries>),
    Case(Vec<(Node, Node)>, Box<Node>, bool),
    Part(DatePart, Box<Node>),
    Among(Box<Node>, Arc<[i64]>),
}

/// How values are compared.
#[derive(Debug, Clone, Copy)]
enum Order {
    Signed,
    Unsigned,
    Float,
}

/// The results of a function for every code.
#[derive(Debug)]
struct Entries {
    integers: Vec<i64>,
    floats: Vec<f64>,
    valid: Option<Vec<u8>>,
    null_of_null: bool,
}

/// What expressions are compiled against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) registers: &'a [Option<Facts>],
    pub(super) overflow: Overflow,
}

impl Scope<'_> {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Unsupported for what is not computed in 64 bits.
    pub(super) fn compile(&self, expr: &Expr) -> Result<Program> {
        let facts = self.facts(expr)?;
        let root = self.node(expr)?;
        let mut registers = Vec::new();
        expr.registers(&mut |register| registers.push(register));
        registers.sort_unstable();
        registers.dedup();
        let (_, is_fallible) = analyse(&[expr], self.registers, self.overflow)?;
        Ok(Program { root, registers, facts, is_fallible })
    }

    /// Compiles an expression whose strings are to be codes of this dictionary, which has all of them.
    ///
    /// # Errors
    /// As [`Scope::compile`].
    pub(super) fn compile_coded(&self, expr: &Expr, among: Option<&Arc<Dictionary>>) -> Result<Program> {
        let mut program = self.compile(expr)?;
        if let Some(all) = among {
            program.root = self.translated(expr, &program.facts, all)?;
        }
        Ok(program)
    }

    fn facts(&self, expr: &Expr) -> Result<Facts> {
        let facts = analyse(&[expr], self.registers, self.overflow)?.0.remove(0);
        if facts.is_wide() {
            return unsupported("decimals of more than 64 bits on the CPU's columns");
        }
        Ok(facts)
    }

    fn node(&self, expr: &Expr) -> Result<Node> {
        let boxed = |expr: &Expr| self.node(expr).map(Box::new);
        Ok(match expr {
            Expr::Reg(register) => Node::Register(*register),
            Expr::Literal(Literal::Null, _) => Node::Null,
            Expr::Literal(Literal::Float(value), Ty::F32) => Node::Float(f64::from(*value as f32)),
            Expr::Literal(Literal::Float(value), _) => Node::Float(*value),
            Expr::Literal(Literal::Int(value), ty) if ty.is_float() => Node::Float(*value as f64),
            Expr::Literal(Literal::Int(value), Ty::U64) => Node::Integer(*value as u64 as i64),
            Expr::Literal(Literal::Int(value), _) => Node::Integer(narrow(*value)?),
            Expr::Literal(Literal::Argument(_), _) => {
                return Err(EngineError::Malformed("an argument was given no value".into()));
            }
            Expr::Unary(op, inner) => self.unary(*op, inner)?,
            Expr::Binary(op, left, right) => self.binary(*op, left, right)?,
            Expr::Cast(inner, ty) => self.cast(inner, *ty)?,
            Expr::Rescale(inner, 0) => self.node(inner)?,
            Expr::Rescale(inner, power @ 1..) => {
                let factor = Expr::Literal(Literal::Int(rescale_factor(*power)?), Ty::I128);
                self.binary(BinaryOp::Mul, inner, &factor)?
            }
            Expr::Rescale(inner, power) => Node::Rounded(boxed(inner)?, narrow(rescale_factor(*power)?)?),
            Expr::Digits(inner, most) => {
                let bounds = 10i128.checked_pow((*most).into()).map(|power| (1 - power, power - 1));
                self.facts(inner)?;
                match bounds.filter(|bounds| fits_i64(Some(*bounds))) {
                    Some((low, high)) => Node::Within(boxed(inner)?, (low as i64, high as i64)),
                    None => self.node(inner)?,
                }
            }
            Expr::DecimalToFloat(inner, scale) => {
                self.facts(inner)?;
                Node::ToFloat(boxed(inner)?, 10f64.powi((*scale).into()))
            }
            Expr::Case(branches, otherwise) => self.case(expr, branches, otherwise)?,
            Expr::DatePart(part, inner) => {
                let facts = self.facts(inner)?;
                if crate::facts::may_leave_calendar(&facts) {
                    return unsupported("parts of dates that may leave the calendar on the CPU's columns");
                }
                Node::Part(*part, boxed(inner)?)
            }
            Expr::InCalendar(inner, _) => self.node(inner)?,
            Expr::Among(inner, values) => Node::Among(boxed(inner)?, values.clone()),
            Expr::Text(_) => Node::Integer(0),
            Expr::Lookup(register, function, ty) => {
                let input = self.facts_of(*register)?;
                let dictionary = crate::facts::strings_of(&input)?;
                let table = lookup::evaluate(dictionary, function, *ty)?;
                Node::Table(Box::new(Node::Register(*register)), Arc::new(Entries::of(&table, *ty)?))
            }
            Expr::AddMonths(..) | Expr::Quotient(..) | Expr::Deviations(_) | Expr::Match(..) | Expr::Place(_) => {
                return unsupported(format!("{} on the CPU's columns", name(expr)));
            }
        })
    }

    fn facts_of(&self, register: usize) -> Result<Facts> {
        match self.registers.get(register) {
            Some(Some(facts)) => Ok(facts.clone()),
            _ => Err(crate::facts::not_loaded(register)),
        }
    }

    fn unary(&self, op: UnaryOp, inner: &Expr) -> Result<Node> {
        let boxed = || self.node(inner).map(Box::new);
        Ok(match op {
            UnaryOp::Not => Node::Not(boxed()?),
            UnaryOp::IsNull | UnaryOp::IsNotNull => Node::IsNull(boxed()?, op == UnaryOp::IsNull),
            UnaryOp::IsTrue => Node::IsTrue(boxed()?),
            UnaryOp::Negate if !self.facts(inner)?.ty.is_float() => {
                let zero = Expr::Literal(Literal::Int(0), self.facts(inner)?.ty);
                self.binary(BinaryOp::Sub, &zero, inner)?
            }
            UnaryOp::Absolute if !self.facts(inner)?.ty.is_float() => {
                let facts = self.facts(inner)?;
                let (_, raises) = crate::facts::absolute(&facts)?;
                let least = facts.ty.bounds().map_or(i64::MIN, |(least, _)| least.max(i64::MIN.into()) as i64);
                match raises {
                    // The smallest integer of a type has no magnitude in it.
                    true => Node::Absolute(Box::new(Node::Within(boxed()?, (least + 1, i64::MAX)))),
                    false => Node::Absolute(boxed()?),
                }
            }
            op => Node::FloatOf(op, boxed()?),
        })
    }

    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Node> {
        let pair = || Ok::<_, EngineError>(Box::new([self.node(left)?, self.node(right)?]));
        match op {
            BinaryOp::And => return Ok(Node::And(pair()?)),
            BinaryOp::Or => return Ok(Node::Or(pair()?)),
            _ => {}
        }
        let (of_left, of_right) = (self.facts(left)?, self.facts(right)?);
        if op.is_comparison() {
            let order = match of_left.ty {
                ty if ty.is_float() => Order::Float,
                Ty::U64 => Order::Unsigned,
                _ => Order::Signed,
            };
            if of_left.dictionary.is_some() || of_right.dictionary.is_some() {
                return self.strings(op, (left, &of_left), (right, &of_right));
            }
            return Ok(Node::Compare(op, pair()?, order));
        }
        if of_left.ty.is_float() {
            if of_left.ty == Ty::F32 {
                return unsupported("arithmetic of floats of 32 bits on the CPU's columns");
            }
            return Ok(Node::FloatArithmetic(op, pair()?));
        }
        let known = integer_arithmetic(op, &of_left, &of_right, self.overflow)?;
        if known.facts.is_wide() {
            return unsupported("decimals of more than 64 bits on the CPU's columns");
        }
        let adds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        if adds && self.overflow == Overflow::Wrap {
            return Ok(Node::Wrapped(Box::new(Node::Arithmetic(op, pair()?, None)), of_left.ty));
        }
        let Some((low, high)) = of_left.ty.bounds().filter(|_| of_left.ty != Ty::U64) else {
            return unsupported("arithmetic of integers of 64 bits without a sign on the CPU's columns");
        };
        let bounds = (low.max(i64::MIN.into()) as i64, high.min(i64::MAX.into()) as i64);
        Ok(Node::Arithmetic(op, pair()?, known.raises.any().then_some(bounds)))
    }

    /// A comparison of strings by codes of a dictionary that has those of both.
    fn strings(&self, op: BinaryOp, left: (&Expr, &Facts), right: (&Expr, &Facts)) -> Result<Node> {
        if is_null_string(left.1) || is_null_string(right.1) {
            return Ok(Node::Null);
        }
        let own = [left.1, right.1].map(|facts| facts.dictionary.as_ref());
        let [Some(one), Some(other)] = own else { return unsupported("the comparison of a string and something else") };
        let all = merged(&[one, other]);
        let of = |(expr, facts): (&Expr, &Facts)| self.translated(expr, facts, &all);
        Ok(Node::Compare(op, Box::new([of(left)?, of(right)?]), Order::Signed))
    }

    /// An expression of strings as codes of a dictionary that has them.
    fn translated(&self, expr: &Expr, facts: &Facts, all: &Arc<Dictionary>) -> Result<Node> {
        let node = self.node(expr)?;
        Ok(match &facts.dictionary {
            Some(own) if !Arc::ptr_eq(own, all) => Node::Table(Box::new(node), Arc::new(Entries::codes(own, all))),
            _ => node,
        })
    }

    fn cast(&self, inner: &Expr, ty: Ty) -> Result<Node> {
        let facts = self.facts(inner)?;
        let node = Box::new(self.node(inner)?);
        if facts.ty == ty {
            return Ok(*node);
        }
        let (known, raises) = crate::facts::cast(&facts, ty)?;
        Ok(match (facts.ty.is_float(), ty) {
            (true, Ty::F64) => *node,
            (true, _) => return unsupported("conversions of floats on the CPU's columns"),
            (false, Ty::F64) if facts.ty != Ty::U64 => Node::ToFloat(node, 1.0),
            (false, Ty::Bool) => Node::ToBool(node),
            (false, ty) if ty.is_float() || ty == Ty::U64 || facts.ty == Ty::U64 => {
                return unsupported(format!("conversions of {:?} to {ty:?} on the CPU's columns", facts.ty));
            }
            (false, _) if !raises => *node,
            (false, _) => match ty.bounds().or(known.range) {
                Some((low, high)) => {
                    Node::Within(node, (low.max(i64::MIN.into()) as i64, high.min(i64::MAX.into()) as i64))
                }
                None => *node,
            },
        })
    }

    fn case(&self, expr: &Expr, branches: &[(Expr, Expr)], otherwise: &Expr) -> Result<Node> {
        let facts = self.facts(expr)?;
        let result = |expr: &Expr| match &facts.dictionary {
            Some(all) => self.translated(expr, &self.facts(expr)?, all),
            None => self.node(expr),
        };
        let branches = branches.iter().map(|(when, then)| Ok((self.node(when)?, result(then)?)));
        let branches = branches.collect::<Result<Vec<_>>>()?;
        Ok(Node::Case(branches, Box::new(result(otherwise)?), facts.ty.is_float()))
    }
}

fn name(expr: &Expr) -> &'static str {
    match expr {
        Expr::AddMonths(..) => "sums of dates and months",
        Expr::Quotient(..) => "quotients of decimals",
        Expr::Deviations(_) => "deviations of decimals",
        _ => "strings without a dictionary",
    }
}

fn narrow(value: i128) -> Result<i64> {
    i64::try_from(value).or_else(|_| unsupported("constants of more than 64 bits on the CPU's columns"))
}

impl Entries {
    fn of(table: &LookupTable, ty: Ty) -> Result<Entries> {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        let run = table.true_run();
        match run {
            Some(run) => integers.extend((0..table.len()).map(|code| i64::from(run.contains(&code)))),
            None => {
                let width = table.storage().width();
                for bytes in table.values().chunks_exact(width) {
                    let mut word = [0; 8];
                    word[..width].copy_from_slice(bytes);
                    let bits = u64::from_le_bytes(word);
                    match table.storage() {
                        Storage::F64 => floats.push(f64::from_bits(bits)),
                        Storage::F32 => floats.push(f32::from_bits(bits as u32).into()),
                        storage if storage.is_signed() => {
                            let above = 64 - 8 * width as u32;
                            integers.push((bits << above) as i64 >> above);
                        }
                        _ => integers.push(bits as i64),
                    }
                }
            }
        }
        if ty.is_float() != integers.is_empty() {
            return unsupported("a function of a string whose results are of another type");
        }
        let valid = table.validity().map(<[u8]>::to_vec);
        Ok(Entries { integers, floats, valid, null_of_null: table.null_in_null_out() })
    }

    /// The codes of strings among those of a dictionary that has all of them.
    fn codes(of: &Arc<Dictionary>, among: &Arc<Dictionary>) -> Entries {
        let integers = codes(of, among).into_iter().map(i64::from).chain([0]).collect();
        Entries { integers, floats: Vec::new(), valid: None, null_of_null: true }
    }
}

/// The error of a row that raises.
fn overflow() -> EngineError {
    EngineError::Evaluation("an overflow")
}

impl Program {
    /// The register, if the expression is one.
    pub(super) fn register(&self) -> Option<usize> {
        if let Node::Register(register) = self.root { Some(register) } else { None }
    }

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
            Node::And(operands) => kleene(of(&operands[0])?, of(&operands[1])?, rows, 0),
            Node::Or(operands) => kleene(of(&operands[0])?, of(&operands[1])?, rows, 1),
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
                    UnaryOp::Truncate => |value| if value == 0.0 { 0.0 } else { value.trunc() },
                    UnaryOp::Root => f64::sqrt,
                    _ => |value| if value == 0.0 || value.is_nan() { value } else { value.signum() },
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
            Node::ToFloat(inner, divisor) => {
                let inner = of(inner)?;
                let values = with_slots!(inner.of_integers(), at => floats(rows, |row| at(row) as f64 / divisor));
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
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    let bits = value.to_bits() as i64;
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
    }
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
