//! Expressions over the registers of a pipeline, as trees that are evaluated a vector at a time.
//!
//! Integers, codes and decimals are computed in 64 bits. Decimals whose bounds do not fit those, and operations of
//! integers of 64 bits without a sign, are computed in 128 ([`super::wide`]): a node's value is wide where its facts
//! are. What a row raises fails the run, and the CPU's plan tells whether the statement does.

use std::sync::Arc;

use warpcube_column::{Dictionary, Storage};

use crate::dictionaries::{codes, merged};
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{DECIMAL_MAX, Facts, analyse, fits_i64, integer_arithmetic, is_null_string, rescale_factor};
use crate::ir::{BinaryOp, DatePart, Expr, Literal, Overflow, Ty, UnaryOp};
use crate::lookup::{self, LookupTable};

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) root: Node,
    /// The registers that it reads.
    pub(super) registers: Vec<usize>,
    pub(super) facts: Facts,
    /// Whether a row may raise an error.
    pub(super) is_fallible: bool,
}

/// What a bounded value may be.
pub(super) type Bounds<T> = (T, T);

/// A node of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Register(usize),
    Integer(i64),
    Float(f64),
    /// A decimal of more than 64 bits.
    Wide(i128),
    Null,
    /// An integer in 128 bits; `true` of those without a sign.
    Widened(Box<Node>, bool),
    /// A wide integer that 64 bits hold.
    Narrowed(Box<Node>),
    /// Integers, the result within bounds where those are given.
    Arithmetic(BinaryOp, Box<[Node; 2]>, Option<Bounds<i64>>),
    /// The same of wide ones.
    WideArithmetic(BinaryOp, Box<[Node; 2]>, Option<Bounds<i128>>),
    /// A wide decimal times a factor over another, truncated, of at most 38 digits.
    Quotient(Box<[Node; 2]>, i128),
    /// `n Σx² − (Σx)²` of wide decimals and a count, rounded once.
    Deviations(Box<[Node; 3]>),
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
    Within(Box<Node>, Bounds<i128>),
    /// An integer over a power of ten, as a float.
    ToFloat(Box<Node>, i32),
    /// An integer as a float of 32 bits.
    ToSingle(Box<Node>),
    /// A float rounded to 32 bits.
    Single(Box<Node>),
    /// A float without its digits behind the point, as an integer that raises outside of these bounds.
    Truncated(Box<Node>, Bounds<i128>),
    /// Whether a number is not zero.
    ToBool(Box<Node>),
    /// A quotient by a power of ten, halves rounded away from zero.
    Rounded(Box<Node>, i128),
    /// Entries by code; that of NULL is the last.
    Table(Box<Node>, Arc<Entries>),
    Case(Vec<(Node, Node)>, Box<Node>, Kind),
    /// A part of a date, and whether dates may leave the calendar, which are NULL.
    Part(DatePart, Box<Node>, bool),
    /// A date so many months later.
    AddMonths(Box<Node>, i32),
    Among(Box<Node>, Arc<[i64]>),
}

/// How values are compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Signed,
    Unsigned,
    Float,
    Wide,
}

/// What values lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integers,
    Floats,
    Wide,
}

impl Kind {
    pub(super) fn of(facts: &Facts) -> Kind {
        match facts.ty {
            ty if ty.is_float() => Kind::Floats,
            _ if facts.is_wide() => Kind::Wide,
            _ => Kind::Integers,
        }
    }
}

/// The results of a function for every code.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) integers: Vec<i64>,
    pub(super) floats: Vec<f64>,
    pub(super) valid: Option<Vec<u8>>,
    pub(super) null_of_null: bool,
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
    /// Unsupported for what is not computed here.
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

    /// Compiles an expression whose values are to be as those of these facts: strings are codes of their dictionary,
    /// decimals wide where they are.
    ///
    /// # Errors
    /// As [`Scope::compile`].
    pub(super) fn compile_as(&self, expr: &Expr, facts: &Facts) -> Result<Program> {
        let program = self.compile(expr)?;
        Ok(Program { root: self.node_as(expr, facts)?, ..program })
    }

    fn facts(&self, expr: &Expr) -> Result<Facts> {
        Ok(analyse(&[expr], self.registers, self.overflow)?.0.remove(0))
    }

    /// An expression whose values are as those of these facts.
    fn node_as(&self, expr: &Expr, facts: &Facts) -> Result<Node> {
        match &facts.dictionary {
            Some(all) => self.translated(expr, &self.facts(expr)?, all),
            None if facts.is_wide() => self.wide(expr),
            None => self.node(expr),
        }
    }

    /// An integer in 128 bits.
    fn wide(&self, expr: &Expr) -> Result<Node> {
        let (facts, node) = (self.facts(expr)?, self.node(expr)?);
        Ok(if facts.is_wide() { node } else { Node::Widened(Box::new(node), facts.ty == Ty::U64) })
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
            Expr::Literal(Literal::Int(value), _) => i64::try_from(*value).map_or(Node::Wide(*value), Node::Integer),
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
            Expr::Rescale(inner, power) => {
                let factor = rescale_factor(*power)?;
                let is_narrow = !self.facts(inner)?.is_wide();
                match i64::try_from(factor).is_ok() && is_narrow {
                    true => Node::Rounded(boxed(inner)?, factor),
                    false => self.fitted(expr, Node::Rounded(Box::new(self.wide(inner)?), factor))?,
                }
            }
            Expr::Digits(inner, most) => {
                let of_inner = self.facts(inner)?;
                let (facts, raises) = crate::facts::digits(&of_inner, *most)?;
                match (raises, facts.range) {
                    (true, Some(bounds)) => {
                        let within = Node::Within(boxed(inner)?, bounds);
                        if of_inner.is_wide() { self.fitted(expr, within)? } else { within }
                    }
                    _ => self.node(inner)?,
                }
            }
            Expr::DecimalToFloat(inner, scale) => Node::ToFloat(boxed(inner)?, (*scale).into()),
            Expr::Quotient(operands, power) => {
                let [dividend, divisor] = operands.as_ref();
                Node::Quotient(Box::new([self.wide(dividend)?, self.wide(divisor)?]), 10i128.pow((*power).into()))
            }
            Expr::Deviations(sums) => {
                let [sum, squares, count] = sums.as_ref();
                Node::Deviations(Box::new([self.wide(sum)?, self.wide(squares)?, self.wide(count)?]))
            }
            Expr::AddMonths(inner, months) => Node::AddMonths(boxed(inner)?, *months),
            Expr::Case(branches, otherwise) => self.case(expr, branches, otherwise)?,
            Expr::DatePart(part, inner) => {
                let leaves = crate::facts::may_leave_calendar(&self.facts(inner)?);
                Node::Part(*part, boxed(inner)?, leaves)
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
            Expr::Match(..) | Expr::Place(_) => {
                return unsupported("strings without a dictionary on the CPU's columns");
            }
        })
    }

    /// A wide value of an expression in as many bits as its facts tell.
    fn fitted(&self, expr: &Expr, wide: Node) -> Result<Node> {
        Ok(if self.facts(expr)?.is_wide() { wide } else { Node::Narrowed(Box::new(wide)) })
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
                let (magnitude, raises) = crate::facts::absolute(&facts)?;
                let (least, most) = facts.ty.bounds().unwrap_or((i128::MIN, i128::MAX));
                match raises {
                    // An integer without a sign is its magnitude.
                    _ if least == 0 => *boxed()?,
                    // The smallest integer of a type has no magnitude in it.
                    true => Node::Absolute(Box::new(Node::Within(boxed()?, (least + 1, most)))),
                    false if magnitude.is_wide() => Node::Absolute(Box::new(self.wide(inner)?)),
                    false if facts.is_wide() => Node::Narrowed(Box::new(Node::Absolute(boxed()?))),
                    false => Node::Absolute(boxed()?),
                }
            }
            op => rounded(self.facts(inner)?.ty, Node::FloatOf(op, boxed()?)),
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
            if of_left.dictionary.is_some() || of_right.dictionary.is_some() {
                return self.strings(op, (left, &of_left), (right, &of_right));
            }
            if of_left.is_wide() || of_right.is_wide() {
                return Ok(Node::Compare(op, Box::new([self.wide(left)?, self.wide(right)?]), Order::Wide));
            }
            let order = match of_left.ty {
                ty if ty.is_float() => Order::Float,
                Ty::U64 => Order::Unsigned,
                _ => Order::Signed,
            };
            return Ok(Node::Compare(op, pair()?, order));
        }
        if of_left.ty.is_float() {
            return Ok(rounded(of_left.ty, Node::FloatArithmetic(op, pair()?)));
        }
        let known = integer_arithmetic(op, &of_left, &of_right, self.overflow)?;
        let adds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        if adds && of_left.ty != Ty::I128 && !known.raises.any() {
            let exact = Node::Arithmetic(op, pair()?, None);
            return Ok(match self.overflow {
                Overflow::Wrap => Node::Wrapped(Box::new(exact), of_left.ty),
                Overflow::Raise => exact,
            });
        }
        let limits = match of_left.ty {
            Ty::I128 if adds => (-DECIMAL_MAX, DECIMAL_MAX),
            ty => ty.bounds().unwrap_or((i128::MIN, i128::MAX)),
        };
        let bounds = known.raises.any().then_some(limits);
        // What raises is found in 64 bits where their own limits are those of the type.
        let is_told = of_left.ty.bounds().is_some_and(|bounds| fits_i64(Some(bounds))) || fits_i64(known.exact);
        if fits_i64(of_left.bounds()) && fits_i64(of_right.bounds()) && !known.facts.is_wide() && is_told {
            return Ok(Node::Arithmetic(op, pair()?, bounds.map(within_i64)));
        }
        let wide = Node::WideArithmetic(op, Box::new([self.wide(left)?, self.wide(right)?]), bounds);
        Ok(if known.facts.is_wide() { wide } else { Node::Narrowed(Box::new(wide)) })
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
        let (facts, node) = (self.facts(inner)?, self.node(inner)?);
        if facts.ty == ty {
            return Ok(node);
        }
        let (known, raises) = crate::facts::cast(&facts, ty)?;
        let limits = ty.bounds();
        Ok(match (facts.ty.is_float(), ty, limits) {
            (_, Ty::Bool, _) => Node::ToBool(Box::new(node)),
            (true, _, None) => rounded(ty, node),
            (true, _, Some(limits)) => Node::Truncated(Box::new(node), limits),
            (false, _, None) => {
                let number = Box::new(if facts.ty == Ty::U64 { self.wide(inner)? } else { node });
                if ty == Ty::F32 { Node::ToSingle(number) } else { Node::ToFloat(number, 0) }
            }
            (false, _, Some(limits)) => {
                let is_wide = facts.is_wide() || known.is_wide() || !fits_i64(facts.bounds());
                let number = if is_wide { self.wide(inner)? } else { node };
                let number = if raises { Node::Within(Box::new(number), limits) } else { number };
                if is_wide && !known.is_wide() { Node::Narrowed(Box::new(number)) } else { number }
            }
        })
    }

    fn case(&self, expr: &Expr, branches: &[(Expr, Expr)], otherwise: &Expr) -> Result<Node> {
        let facts = self.facts(expr)?;
        let result = |expr: &Expr| self.node_as(expr, &facts);
        let branches = branches.iter().map(|(when, then)| Ok((self.node(when)?, result(then)?)));
        let branches = branches.collect::<Result<Vec<_>>>()?;
        Ok(Node::Case(branches, Box::new(result(otherwise)?), Kind::of(&facts)))
    }
}

/// A float of a type.
fn rounded(ty: Ty, node: Node) -> Node {
    if ty == Ty::F32 { Node::Single(Box::new(node)) } else { node }
}

/// Bounds of what 64 bits hold.
pub(super) fn within_i64((low, high): Bounds<i128>) -> Bounds<i64> {
    (low.max(i64::MIN.into()) as i64, high.min(i64::MAX.into()) as i64)
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

impl Program {
    /// The register, if the expression is one.
    pub(super) fn register(&self) -> Option<usize> {
        if let Node::Register(register) = self.root { Some(register) } else { None }
    }
}

/// The error of a row that raises.
pub(super) fn overflow() -> EngineError {
    EngineError::Evaluation("an overflow")
}
