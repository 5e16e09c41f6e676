//! The shape of device work: a fragment is a list of pipelines, each scanning one table or what an earlier pipeline
//! leaves, groups or rows, passing rows through filters and probes, and ending in a sink.
//!
//! A shape is lowered when a statement is planned; everything that depends on data (value ranges, dictionaries, kinds
//! of hash tables) is decided when it is bound to loaded columns. Invariants: pipelines come in dependency order, the
//! last one is the root; a pipeline has exactly one breaker, its sink, and only the groups and the list of a union
//! have several pipelines; registers are numbered per pipeline, first the source's columns in order, then the payload
//! of each probe that has any ([`Probe::has_payload`]) in step order, a mark behind it.

mod operators;
mod visit;
mod windows;

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use warpcube_gpu::prims::topk::Algorithm;

pub use operators::{BinaryOp, UnaryOp};
pub use windows::{FirstOfPartitions, Frame, FrameBound, WindowCall, WindowFunction};

use crate::text_match::TextMatch;

/// Machine type of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ty {
    /// Truth value.
    Bool,
    /// Signed integers by bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits; dates in days.
    I32,
    /// 64 bits; timestamps.
    I64,
    /// Unsigned integers by bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits; codes of strings.
    U32,
    /// 64 bits.
    U64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Unscaled value of a decimal; computed in 64 bits where value ranges allow it.
    I128,
}

impl Ty {
    /// Whether this is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Bounds of the integer types; `None` for floats.
    pub fn bounds(self) -> Option<(i128, i128)> {
        Some(match self {
            Ty::Bool => (0, 1),
            Ty::I8 => (i8::MIN.into(), i8::MAX.into()),
            Ty::I16 => (i16::MIN.into(), i16::MAX.into()),
            Ty::I32 => (i32::MIN.into(), i32::MAX.into()),
            Ty::I64 => (i64::MIN.into(), i64::MAX.into()),
            Ty::U8 => (0, u8::MAX.into()),
            Ty::U16 => (0, u16::MAX.into()),
            Ty::U32 => (0, u32::MAX.into()),
            Ty::U64 => (0, u64::MAX.into()),
            Ty::I128 => (i128::MIN, i128::MAX),
            Ty::F32 | Ty::F64 => return None,
        })
    }

    /// The type of a column or result of an Arrow type. Decimals of 256 bits are computed in 128: one that does not fit
    /// overflows, which is an error of its row.
    pub fn of(data_type: &DataType) -> Option<Ty> {
        Some(match data_type {
            DataType::Boolean => Ty::Bool,
            DataType::Int8 => Ty::I8,
            DataType::Int16 => Ty::I16,
            DataType::Int32 | DataType::Date32 => Ty::I32,
            DataType::Int64 | DataType::Date64 | DataType::Timestamp(_, _) | DataType::Duration(_) => Ty::I64,
            DataType::UInt8 => Ty::U8,
            DataType::UInt16 => Ty::U16,
            DataType::UInt32 => Ty::U32,
            DataType::UInt64 => Ty::U64,
            DataType::Float32 => Ty::F32,
            DataType::Float64 => Ty::F64,
            DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => Ty::I128,
            other if warpcube_column::is_string(other) => Ty::U32,
            _ => return None,
        })
    }
}

/// A constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// Of any integer type, boolean or decimal.
    Int(i128),
    /// Of a float type.
    Float(f64),
    /// NULL.
    Null,
    /// What a run gives it: see [`Fragment::with_arguments`].
    Argument(usize),
}

/// Parts of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatePart {
    /// Year.
    Year,
    /// Quarter of the year, from 1.
    Quarter,
    /// Month of the year, from 1.
    Month,
    /// Day of the month, from 1.
    Day,
}

/// A function of one string column, computed once over its dictionary.
pub trait DictionaryFunction: Any + Debug + Send + Sync {
    /// Applies the function to some of the distinct strings or NULL, each by itself; the result has one value for each.
    fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String>;

    /// The function as text, for EXPLAIN and for recognising repeats.
    fn describe(&self) -> String;

    /// The function as an expression over register 0, if tests of its string are all that it needs: columns without a
    /// dictionary are computed with that.
    fn over_bytes(&self) -> Option<Expr> {
        None
    }

    /// Whether another function gives the same results for all strings, as far as that is known.
    fn is_same(&self, _other: &dyn DictionaryFunction) -> bool {
        false
    }

    /// The function in two steps, if it has them: one that gives strings, and what is done with those.
    fn steps(&self) -> Option<[Arc<dyn DictionaryFunction>; 2]> {
        None
    }
}

/// An expression over the registers of a pipeline.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A register.
    Reg(usize),
    /// A constant of a type; becomes a kernel argument.
    Literal(Literal, Ty),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands of one type.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Conversion; values that do not fit raise.
    Cast(Box<Expr>, Ty),
    /// A decimal times or divided by a power of ten (rounding half away from zero).
    Rescale(Box<Expr>, i8),
    /// A decimal of at most so many digits; others raise.
    Digits(Box<Expr>, u8),
    /// A decimal as a double: unscaled value ÷ 10^scale.
    DecimalToFloat(Box<Expr>, i8),
    /// A decimal times a power of ten over another, truncated; computed in 256 bits. Zero divisors raise, and so do
    /// quotients of more than 38 digits.
    Quotient(Box<[Expr; 2]>, u8),
    /// `n Σx² − (Σx)²`, the sum of squared deviations from the mean times the count, rounded once to a double: of the
    /// sum of decimals, of the sum of their squares, and of their number, an integer of 64 bits.
    Deviations(Box<[Expr; 3]>),
    /// The first branch whose condition is true, else the last expression; all of one type.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// A part of a date in days since 1970.
    DatePart(DatePart, Box<Expr>),
    /// A date in days some months later; past the end of a shorter month its last day.
    AddMonths(Box<Expr>, i32),
    /// A date or timestamp of so many ticks a day. Its bounds prove it to be in the CPU's calendar; the fragment is
    /// refused otherwise.
    InCalendar(Box<Expr>, i64),
    /// Whether an integer is one of these, which ascend and fit 64 bits.
    Among(Box<Expr>, Arc<[i64]>),
    /// A constant string.
    Text(Arc<str>),
    /// A function of a string register, with the type of its result.
    Lookup(usize, Arc<dyn DictionaryFunction>, Ty),
    /// A test of a string register without a dictionary; binding puts them in the place of functions.
    Match(usize, Arc<TextMatch>),
    /// Where the string of a register without a dictionary lies in its column; binding puts it in the place of strings
    /// that are only given back.
    Place(usize),
}

/// How probed rows are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Rows with a match, with its payload, once for each match.
    Inner,
    /// All rows; payload is NULL without a match.
    Left,
    /// Rows with a match.
    Semi,
    /// Rows without a match.
    Anti,
    /// All rows, once, with a register that tells whether there is a match: a mark join.
    Mark,
}

impl JoinKind {
    /// Whether rows without a match go on.
    pub(crate) fn keeps_rows(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Mark)
    }
}

/// A look-up in the table that an earlier pipeline built.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Index of the pipeline whose sink is the table.
    pub build: usize,
    /// Probe keys, as many as the table's keys and of the same types.
    pub keys: Vec<Expr>,
    /// What becomes of rows with and without a match.
    pub kind: JoinKind,
    /// True if an inner or left join takes one match a row at most: a table with several rows for a key is refused.
    /// Otherwise a row goes on once for each of its matches.
    pub unique: bool,
    /// A condition over the row and the payload, whose registers it alone reads if the kind is a semi, anti or mark
    /// join: an entry of the key for which it is not true is no match. Inner joins have filters instead.
    pub residual: Option<Expr>,
}

impl Probe {
    /// Whether the table's payload has registers: that of inner and left joins, and what a residual reads.
    pub fn has_payload(&self) -> bool {
        matches!(self.kind, JoinKind::Inner | JoinKind::Left) || self.residual.is_some()
    }

    /// Number of registers behind the probe, of a table with so many columns of payload: these, then the mark.
    pub fn width(&self, payload: usize) -> usize {
        let payload = if self.has_payload() { payload } else { 0 };
        payload + usize::from(self.kind == JoinKind::Mark)
    }

    /// Calls `visit` for the keys and the residual.
    pub(crate) fn each(&self, visit: &mut impl FnMut(&Expr)) {
        self.keys.iter().chain(&self.residual).for_each(visit);
    }
}

/// What happens to a row on its way.
#[derive(Debug, Clone)]
pub enum Step {
    /// Rows for which the expression is true go on.
    Filter(Expr),
    /// Joins the row with a built table; its payload becomes registers.
    Probe(Probe),
    /// Of the rows that come here so many go on, any of them, after as many have been skipped; the last step.
    Limit {
        /// Rows that are left out first.
        skip: u64,
        /// Rows that go on.
        rows: u64,
    },
}

/// Aggregate functions the device accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// Number of rows, or of valid arguments.
    Count,
    /// Sum.
    Sum,
    /// Exact sum of floats, rounded once: the same bits whatever the order of rows (see [`crate::FloatSum`]).
    ExactSum,
    /// Smallest; NaN only where all are.
    Min,
    /// Largest; NaN where one is.
    Max,
}

/// One aggregate.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Function.
    pub kind: AggregateKind,
    /// Argument; `None` counts rows.
    pub argument: Option<Expr>,
    /// Rows for which this is not true are left out.
    pub filter: Option<Expr>,
    /// Arrow type of the result; of an exact sum also Binary, for [`crate::FloatSum::to_bytes`].
    pub data_type: DataType,
    /// Whether it unites the accumulators of an aggregate of the same kind, whose register of the scanned groups the
    /// argument is: the result is that of all rows of these groups. It has no filter.
    pub unites: bool,
}

impl AggregateCall {
    /// The expressions whose values it takes of a row.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Expr> {
        self.argument.iter().filter(|_| !self.unites).chain(&self.filter)
    }
}

/// Where a pipeline's rows end.
#[derive(Debug, Clone)]
pub enum Sink {
    /// A table that later pipelines probe. Keys that are NULL never match and are left out.
    Build {
        /// Key expressions.
        keys: Vec<Expr>,
        /// Expressions that become registers of the probing pipeline.
        payload: Vec<Expr>,
    },
    /// Grouped or global aggregation. A later pipeline may probe groups whose aggregates are smallest and largest
    /// values: registers are the aggregates, and groups of a key that is NULL are not found.
    Aggregate {
        /// Group expressions with the Arrow types of the result's columns.
        groups: Vec<(Expr, DataType)>,
        /// Aggregates.
        aggregates: Vec<AggregateCall>,
    },
    /// The first rows by an order.
    TopK(TopK),
    /// Rows in no order: the result, or what a later pipeline scans.
    Rows {
        /// Expressions with the Arrow types of the result's columns.
        columns: Vec<(Expr, DataType)>,
        /// Rows of a result that are enough, any of them; all if none is given.
        limit: Option<u64>,
    },
}

/// One key of an order.
#[derive(Debug, Clone)]
pub struct OrderKey {
    /// The value.
    pub expr: Expr,
    /// Whether large values come first. NaN is the largest float, zeros of both signs are equal.
    pub descending: bool,
    /// Whether NULL comes before all values, or behind them.
    pub nulls_first: bool,
}

/// The first rows by an order, of equal ones those that come first in the table; of groups any.
#[derive(Debug, Clone)]
pub struct TopK {
    /// The order, the most significant key first.
    pub keys: Vec<OrderKey>,
    /// Rows that are wanted; fewer are the result if fewer pass the steps. All rows if none is given: a sort.
    pub k: Option<u64>,
    /// Of the rows that are wanted so many, the first ones, are left out; none of a result.
    pub skip: u64,
    /// Columns of the result with their Arrow types, computed for these rows alone; those that may raise an error are
    /// computed for every row that passes the steps.
    pub outputs: Vec<(Expr, DataType)>,
    /// Columns behind the outputs, of all rows in their order. Empty unless `k` is None and another pipeline scans the
    /// rows.
    pub windows: Vec<WindowCall>,
    /// The rows that are wanted; all if none are told.
    pub first: Option<FirstOfPartitions>,
    /// The algorithm; the cost model chooses if none is named.
    pub algorithm: Option<Algorithm>,
}

impl Sink {
    /// Calls `visit` with every register that is asked for of each row.
    pub fn registers(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Sink::Build { keys, payload } => {
                keys.iter().chain(payload).for_each(|expr| expr.registers(visit));
            }
            Sink::Aggregate { groups, aggregates } => {
                groups.iter().for_each(|(expr, _)| expr.registers(visit));
                for call in aggregates {
                    call.argument.iter().chain(&call.filter).for_each(|expr| expr.registers(visit));
                }
            }
            Sink::TopK(top) => top.keys.iter().for_each(|key| key.expr.registers(visit)),
            Sink::Rows { columns, .. } => columns.iter().for_each(|(expr, _)| expr.registers(visit)),
        }
    }
}

/// What a pipeline scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A table of the fragment, by index; registers are its columns.
    Table(usize),
    /// What an earlier pipeline leaves, groups, rows or first rows, by index; registers are its group expressions, then
    /// its aggregates, or its columns.
    Output(usize),
}

impl Source {
    /// The table, if it is one.
    pub fn table(self) -> Option<usize> {
        match self {
            Source::Table(table) => Some(table),
            Source::Output(_) => None,
        }
    }
}

/// A scan with its steps and its sink.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// What is scanned.
    pub source: Source,
    /// Steps in the order of the plan; binding may reorder filters and inner or semi probes.
    pub steps: Vec<Step>,
    /// Where rows end.
    pub sink: Sink,
}

/// A table of a fragment: its columns by position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentTable {
    /// Name for reports.
    pub name: String,
    /// Columns in register order.
    pub columns: Vec<usize>,
}

/// What sums, differences, products, negations and SUMs of integers do that leave their type.
///
/// Quotients and conversions that do raise under both rules; decimals have 128 bits and are refused beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The row raises an evaluation error. A SUM raises only if its total leaves 64 bits, whatever the order of rows.
    #[default]
    Raise,
    /// Results are taken modulo two to the power of the type's bits.
    Wrap,
}

/// A whole piece of device work.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// Tables scanned.
    pub tables: Vec<FragmentTable>,
    /// Pipelines, builds before those that probe them, the root last.
    pub pipelines: Vec<Pipeline>,
    /// Branches of UNION ALL: ranges of neighbouring pipelines that aggregate into one table of groups, or leave their
    /// rows in one list, which is the last one's. Their sinks have as many groups and the same aggregates, or as many
    /// columns, of the same types.
    pub unions: Vec<Range<usize>>,
    /// What a result of groups has for columns, with their Arrow types: expressions over the registers that a scan of
    /// the groups has. The groups and aggregates themselves if there are none.
    pub result: Vec<(Expr, DataType)>,
    /// What integers do that overflow.
    pub overflow: Overflow,
}

impl Expr {
    /// A binary expression.
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }

    /// A comparison of a register with an integer, the register on its left, if the expression is one.
    pub(crate) fn against_constant(&self) -> Option<(usize, BinaryOp, i128)> {
        let Expr::Binary(op, left, right) = self else { return None };
        let (register, op, constant) = match (left.as_ref(), right.as_ref()) {
            (Expr::Reg(register), Expr::Literal(Literal::Int(constant), _)) => (register, *op, constant),
            (Expr::Literal(Literal::Int(constant), _), Expr::Reg(register)) => (register, op.mirrored(), constant),
            _ => return None,
        };
        op.is_comparison().then_some((*register, op, *constant))
    }
}

impl Fragment {
    /// The pipelines that leave the same groups or rows as this one: itself alone if it is no branch of a union.
    pub fn branches(&self, pipeline: usize) -> Range<usize> {
        let union = self.unions.iter().find(|union| union.contains(&pipeline));
        union.cloned().unwrap_or(pipeline..pipeline + 1)
    }

    /// Whether a pipeline's table or groups are probed.
    pub(crate) fn is_probed(&self, pipeline: usize) -> bool {
        let mut steps = self.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
        steps.any(|step| matches!(step, Step::Probe(probe) if probe.build == pipeline))
    }

    /// What a pipeline scans, in words.
    pub fn source_name(&self, source: Source) -> String {
        match source {
            Source::Table(table) => self.tables.get(table).map_or_else(String::new, |table| table.name.clone()),
            Source::Output(pipeline) => {
                let what = match self.pipelines.get(pipeline).map(|pipeline| &pipeline.sink) {
                    Some(Sink::Rows { .. }) => "rows",
                    Some(Sink::TopK(top)) if top.k.is_none() => "sorted rows",
                    Some(Sink::TopK(_)) => "first rows",
                    _ => "groups",
                };
                format!("{what} of pipeline {pipeline}")
            }
        }
    }
}

impl Pipeline {
    /// The pipeline with every register's number raised by `by`.
    pub(crate) fn shifted(&self, by: usize) -> Pipeline {
        let mut pipeline = self.clone();
        pipeline.change(&mut |expr| {
            if let Expr::Reg(register) | Expr::Lookup(register, _, _) | Expr::Match(register, _) = expr {
                *register += by;
            }
        });
        pipeline
    }

    /// Calls `fill` for every expression within, from the inside out.
    pub(crate) fn change(&mut self, fill: &mut impl FnMut(&mut Expr)) {
        for step in &mut self.steps {
            match step {
                Step::Filter(expr) => expr.change(fill),
                Step::Probe(probe) => {
                    probe.keys.iter_mut().chain(&mut probe.residual).for_each(|expr| expr.change(fill));
                }
                Step::Limit { .. } => {}
            }
        }
        match &mut self.sink {
            Sink::Build { keys, payload } => {
                keys.iter_mut().chain(payload).for_each(|expr| expr.change(fill));
            }
            Sink::Aggregate { groups, aggregates } => {
                groups.iter_mut().for_each(|(expr, _)| expr.change(fill));
                for call in aggregates {
                    call.argument.iter_mut().chain(&mut call.filter).for_each(|expr| expr.change(fill));
                }
            }
            Sink::TopK(top) => {
                top.keys.iter_mut().for_each(|key| key.expr.change(fill));
                top.outputs.iter_mut().for_each(|(expr, _)| expr.change(fill));
            }
            Sink::Rows { columns, .. } => columns.iter_mut().for_each(|(expr, _)| expr.change(fill)),
        }
    }
}
