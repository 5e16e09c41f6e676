//! Expressions over the registers of a pipeline, as trees that are evaluated a vector at a time.
//!
//! Integers, codes and decimals are computed in 64 bits: what bounds do not prove to fit is refused, or checked where
//! the type has an error for it. What a row raises fails the run, and the CPU's plan tells whether the statement does.

use std::sync::Arc;

use warpcube_column::{Dictionary, Storage};

use crate::dictionaries::{codes, merged};
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, analyse, fits_i64, integer_arithmetic, is_null_string, rescale_factor};
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
pub(super) type Bounds = (i64, i64);

/// A node of an expression.
#[derive(Debug)]
pub(super) enum Node {
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
    ToFloat(Box<Node>, u32),
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
pub(super) enum Order {
    Signed,
    Unsigned,
    Float,
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
                decimal_to_float(boxed(inner)?, *scale)?
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
                    // An integer without a sign is its magnitude.
                    _ if least == 0 => *boxed()?,
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
            (false, Ty::F64) if facts.ty != Ty::U64 => Node::ToFloat(node, 0),
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

fn decimal_to_float(inner: Box<Node>, scale: i8) -> Result<Node> {
    match u32::try_from(scale) {
        Ok(scale) => Ok(Node::ToFloat(inner, scale)),
        Err(_) => unsupported("decimals of a negative scale on the CPU's columns"),
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

impl Program {
    /// The register, if the expression is one.
    pub(super) fn register(&self) -> Option<usize> {
        if let Node::Register(register) = self.root { Some(register) } else { None }
    }
}
