//! Aggregates as accumulators: 64-bit cells that start at zero and are only added to or raised.
//!
//! | aggregate | cells |
//! |---|---|
//! | COUNT | number of rows |
//! | SUM of integers, decimals | one sum where the value range times the row count fits 64 bits, else the sums of the lower 32 bits (unsigned) and of the rest: exact and free of order below 2³² rows. A total of integers that leaves 64 bits raises |
//! | SUM of integers that wrap | sum modulo 2⁶⁴ |
//! | SUM of floats | double sum, order undefined |
//! | exact SUM of floats | limbs of a fixed-point number ([`crate::plan::float_limbs`]) and a word that counts what is not finite: exact and free of order below 2³⁰ rows |
//! | MIN, MAX | largest image under a map to unsigned integers that keeps (MAX) or turns (MIN) the order |
//!
//! Where an argument can be NULL or is filtered, a count of what went in tells NULL from a value.

use arrow::datatypes::DataType;

use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::error::{EngineError, Result, unsupported};
use crate::ir::{AggregateCall, AggregateKind, Expr, Overflow, Ty};
use crate::plan::float_limbs::FloatLimbs;

/// How a cell takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CellOp {
    /// Unsigned addition modulo 2⁶⁴.
    Add,
    /// Addition of doubles.
    AddFloat,
    /// Maximum of unsigned integers.
    Max,
    /// Addition of a float's parts to the limbs that this cell and the next ones are.
    AddFixed,
    /// A limb of the [`CellOp::AddFixed`] before it.
    Limb,
}

impl CellOp {
    /// Whether the cell is one of a sum that has limbs for every finite value.
    pub(crate) fn is_of_many_limbs(self) -> bool {
        matches!(self, CellOp::AddFixed | CellOp::Limb)
    }
}

/// One accumulator cell and what goes in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Operation.
    pub(crate) op: CellOp,
    /// C expression of the value, of type `uint64_t` or `double`; of a float in limbs, the name of its parts.
    pub(crate) value: String,
    /// C expression of the condition; `None` takes every row.
    pub(crate) condition: Option<String>,
    /// Most that a value differs from zero, where that is known of integers.
    pub(crate) most: Option<u128>,
}

impl Cell {
    /// Whether `values` values can be added up in 32 bits.
    pub(crate) fn adds_in_32_bits(&self, values: usize) -> bool {
        let sum = self.most.and_then(|most| most.checked_mul(values as u128));
        self.op == CellOp::Add && sum.is_some_and(|sum| sum < 1 << 31)
    }
}

/// How an aggregate's result is read from its cells.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// What is read.
    pub(crate) read: Read,
    /// Arrow type of the result.
    pub(crate) data_type: DataType,
    /// Cell that counts what went in; zero means NULL.
    pub(crate) count: Option<usize>,
    /// Strings behind codes.
    pub(crate) dictionary: Option<std::sync::Arc<warpcube_column::Dictionary>>,
}

/// How cells become a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// A cell as an unsigned or signed integer.
    Integer(usize),
    /// A cell as a double.
    Float(usize),
    /// An exact sum of floats.
    Fixed {
        /// Cell of the first limb; the others follow.
        cell: usize,
        /// The limbs.
        window: FloatLimbs,
        /// Cell that counts what is not finite.
        infinite: usize,
    },
    /// Sums of lower 32 bits and of upper parts.
    Wide(usize, usize),
    /// The image of an integer: `signed` flips the sign bit back, `turned` all bits.
    Image {
        /// Cell.
        cell: usize,
        /// Values are signed.
        signed: bool,
        /// The order was turned.
        turned: bool,
        /// Values are doubles in total order.
        float: bool,
    },
}

/// What is known of the rows that go into a sink's sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumBounds {
    /// Most rows.
    pub(crate) rows: u64,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(crate) whole_sums: bool,
    /// What integers do that overflow.
    pub(crate) overflow: Overflow,
}

/// What a cell that counts adds for a row.
pub(crate) const COUNTED: &str = "1ULL";
/// Rows below which limbs of 32 bits do not overflow a cell.
const FIXED_ROWS_MAX: u64 = 1 << 30;

/// Cells and outputs of a sink.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accumulators {
    /// Cells, equal ones shared.
    pub(crate) cells: Vec<Cell>,
    /// One output an aggregate.
    pub(crate) outputs: Vec<Output>,
    /// The cell of each request in order.
    pub(crate) requested: Vec<usize>,
    /// What `requested` was in the dry run, by which the memory was laid out. Names differ between the dry run and the
    /// kernel (columns of one left join share a validity only in the kernel), so sharing is decided once.
    pub(crate) settled: Option<Vec<usize>>,
    /// Floats that were taken apart into limbs: the value, its window, and the name of the parts.
    pub(crate) fixed: Vec<(String, FloatLimbs, String)>,
}

impl Accumulators {
    /// Index of a cell, shared with an equal one.
    pub(crate) fn cell(&mut self, op: CellOp, value: &str, condition: Option<&str>) -> usize {
        self.bounded(op, value, condition, None)
    }

    /// Index of a cell that counts.
    pub(crate) fn count(&mut self, condition: Option<&str>) -> usize {
        self.bounded(CellOp::Add, COUNTED, condition, Some(1))
    }

    /// Index of a cell whose values differ from zero by `most` at most.
    fn bounded(&mut self, op: CellOp, value: &str, condition: Option<&str>, most: Option<u128>) -> usize {
        let cell = Cell { op, value: value.to_string(), condition: condition.map(str::to_string), most };
        let index = match &self.settled {
            Some(settled) => settled.get(self.requested.len()).copied().unwrap_or(self.cells.len()),
            None => self.cells.iter().position(|known| *known == cell).unwrap_or(self.cells.len()),
        };
        if index == self.cells.len() {
            self.cells.push(cell);
        }
        self.requested.push(index);
        index
    }

    /// Writes the arguments of an aggregate and adds its cells.
    pub(crate) fn add(&mut self, emitter: &mut Emitter, call: &AggregateCall, bounds: SumBounds) -> Result<()> {
        let filter =
            call.filter.as_ref().map(|filter| Ok::<_, EngineError>(emitter.emit(filter)?.truth())).transpose()?;
        let Some(argument) = &call.argument else {
            let cell = self.count(filter.as_deref());
            self.push(Read::Integer(cell), call, None, None);
            return Ok(());
        };
        // Rows that are left out raise nothing.
        let value = emitter.emit_guarded(argument, filter.as_deref())?;
        let condition = match (&value.valid, &filter) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (Some(valid), Some(filter)) => Some(format!("({valid} && {filter})")),
        };
        let condition = condition.as_deref();
        if call.kind == AggregateKind::Count {
            let cell = self.count(condition);
            self.push(Read::Integer(cell), call, None, None);
            return Ok(());
        }
        let count = condition.map(|condition| self.count(Some(condition)));
        let read = match call.kind {
            AggregateKind::Sum => self.sum(&value, condition, bounds)?,
            AggregateKind::ExactSum => self.exact_sum(emitter, argument, &value, condition, bounds)?,
            kind => self.extreme(&value, condition, kind == AggregateKind::Min)?,
        };
        self.push(read, call, count, value.dictionary.clone());
        Ok(())
    }

    fn push(
        &mut self,
        read: Read,
        call: &AggregateCall,
        count: Option<usize>,
        dictionary: Option<std::sync::Arc<warpcube_column::Dictionary>>,
    ) {
        self.outputs.push(Output { read, data_type: call.data_type.clone(), count, dictionary });
    }

    fn sum(&mut self, value: &Value, condition: Option<&str>, bounds: SumBounds) -> Result<Read> {
        if value.dictionary.is_some() || value.ty == Ty::Bool {
            return unsupported("a sum of strings or truth values");
        }
        if value.ty.is_float() {
            return Ok(Read::Float(self.cell(CellOp::AddFloat, &format!("(double){}", value.code), condition)));
        }
        let rows = u128::from(bounds.rows.max(1));
        let most = value.bounds().map(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()));
        let stays_below = |most: Option<u128>, limit: u128| {
            most.and_then(|most| most.checked_mul(rows)).is_some_and(|sum| sum < limit)
        };
        let is_unsigned = value.ty.bounds().is_some_and(|(low, _)| low == 0);
        let fits = stays_below(most, if is_unsigned { 1 << 64 } else { 1 << 63 });
        let wraps = value.ty != Ty::I128 && bounds.overflow == Overflow::Wrap;
        if fits || wraps {
            let code = format!("(uint64_t)(int64_t){}", value.code);
            return Ok(Read::Integer(self.bounded(CellOp::Add, &code, condition, most)));
        }
        // Upper parts are summed in 63 bits, lower ones (32 bits each) in 64.
        if rows >= 1 << 32 || !stays_below(most.map(|most| (most >> 32) + 1), 1 << 63) {
            let what = if value.ty == Ty::I128 { "decimals" } else { "integers" };
            return unsupported(format!("a sum of {what} whose upper parts may exceed 63 bits"));
        }
        let wide = if value.ty == Ty::I128 || is_unsigned { "" } else { "(int64_t)" };
        let low = self.cell(CellOp::Add, &format!("(uint64_t)(uint32_t){}", value.code), condition);
        let high = self.cell(CellOp::Add, &format!("(uint64_t)(int64_t)({wide}{} >> 32)", value.code), condition);
        Ok(Read::Wide(low, high))
    }

    /// Takes the value apart into limbs and adds those that are not zero, usually two or three.
    fn exact_sum(
        &mut self,
        emitter: &mut Emitter,
        argument: &Expr,
        value: &Value,
        condition: Option<&str>,
        bounds: SumBounds,
    ) -> Result<Read> {
        if !value.ty.is_float() {
            return Err(EngineError::Malformed(format!("an exact sum of floats over {:?}", value.ty)));
        }
        if bounds.rows >= FIXED_ROWS_MAX {
            return unsupported(format!("an exact sum of floats over {} rows, 2³⁰ or more", bounds.rows));
        }
        let window = match bounds.whole_sums {
            true => FloatLimbs::WHOLE,
            false => FloatLimbs::guess(argument, &|register| emitter.registers.get(register)?.as_deref()),
        };
        let known = self.fixed.iter().find(|(code, known, _)| *code == value.code && *known == window);
        let parts = match known {
            Some((_, _, parts)) => parts.clone(),
            None => {
                let first = emitter.params.add("int64_t", Argument::I64(window.first as i64));
                let call = format!("wc_fixed((double){}, {first}, {})", value.code, window.limbs);
                let parts = emitter.define("WcFixed", &call);
                self.fixed.push((value.code.clone(), window, parts.clone()));
                parts
            }
        };
        let also =
            |test: String| condition.map_or_else(|| test.clone(), |condition| format!("({condition} && {test})"));
        emitter.raise_flag(&also(format!("!{parts}.fits")), "WC_SUM_WINDOW");
        let limb = |accumulators: &mut Accumulators, limb: usize| match bounds.whole_sums {
            // Only two or three of many limbs change.
            true if limb == 0 => accumulators.cell(CellOp::AddFixed, &parts, condition),
            true => accumulators.cell(CellOp::Limb, &format!("limb {limb} of {parts}"), condition),
            false => {
                let test = also(format!("wc_fixed_part({parts}, {limb}) != 0"));
                accumulators.cell(CellOp::Add, &format!("wc_fixed_limb({parts}, {limb})"), Some(&test))
            }
        };
        let cell = limb(self, 0);
        (1..window.limbs).for_each(|index| _ = limb(self, index));
        let test = also(format!("{parts}.infinite != 0"));
        let infinite = self.cell(CellOp::Add, &format!("{parts}.infinite"), Some(&test));
        Ok(Read::Fixed { cell, window, infinite })
    }

    fn extreme(&mut self, value: &Value, condition: Option<&str>, turned: bool) -> Result<Read> {
        if value.ty == Ty::I128 && !value.is_narrow() {
            return unsupported("MIN or MAX of decimals wider than 64 bits");
        }
        let float = value.ty.is_float();
        let signed = float || matches!(value.ty, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::I128);
        let image = match (float, signed) {
            (true, _) => format!("((uint64_t)wc_order({}) ^ 0x8000000000000000ULL)", value.code),
            (false, true) => format!("((uint64_t)(int64_t){} ^ 0x8000000000000000ULL)", value.code),
            (false, false) => format!("(uint64_t){}", value.code),
        };
        let image = if turned { format!("~{image}") } else { image };
        Ok(Read::Image { cell: self.cell(CellOp::Max, &image, condition), signed, turned, float })
    }
}

/// Whether all that aggregates add of a nullable column is the column itself.
pub(crate) fn are_sums_of(column: usize, aggregates: &[AggregateCall]) -> bool {
    fn is_itself(expr: &Expr) -> bool {
        match expr {
            Expr::Reg(_) => true,
            Expr::Cast(inner, _) => is_itself(inner),
            _ => false,
        }
    }
    let is_of = |call: &&AggregateCall| {
        let mut found = false;
        call.argument.iter().for_each(|argument| argument.registers(&mut |register| found |= register == column));
        found && matches!(call.kind, AggregateKind::Sum | AggregateKind::ExactSum)
    };
    // A filter may be the column's validity, whatever is added.
    aggregates.iter().all(|call| call.filter.is_none())
        && aggregates.iter().filter(is_of).all(|call| call.argument.as_ref().is_some_and(is_itself))
}
