//! Aggregates as accumulators: 64-bit cells that start at zero and are only added to or raised.
//!
//! | aggregate | cells |
//! |---|---|
//! | COUNT | number of rows |
//! | SUM of integers, decimals | one sum where the value range times the row count fits 64 bits, else the sums of the lower 32 bits (unsigned) and of the rest: exact and free of order below 2³² rows, which a scan counts that multiplies its rows; of decimals whose rest may leave 64 bits, the sums of 32 bits, of the next 32 and of the rest; a value raises that so many of would leave 38 digits. A total of integers that leaves 64 bits raises |
//! | SUM of integers that wrap | sum modulo 2⁶⁴ |
//! | SUM of floats | double sum, order undefined |
//! | SUM of integers as doubles | their sum, where doubles hold each of them and 63 bits the sum |
//! | exact SUM of floats | limbs of a fixed-point number ([`crate::plan::float_limbs`]) and a word that counts what is not finite: exact and free of order below 2³⁰ rows |
//! | MIN, MAX | largest image under a map to unsigned integers that keeps (MAX) or turns (MIN) the order |
//! | what unites accumulators | the cells of the scanned groups: sums are added up, extremes keep the largest image |
//!
//! Where an argument can be NULL or is filtered, a count of what went in tells NULL from a value. Equal cells are one:
//! those that take the same part of the same argument, and counts of the same rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::Dictionary;

use crate::error::Result;
use crate::facts::{Facts, Validity, analyse, validity};
use crate::ir::{AggregateCall, AggregateKind, Expr, Overflow};
use crate::plan::float_limbs::FloatLimbs;

/// Rows below which lower parts of 32 bits do not overflow a cell.
pub(super) const WIDE_ROWS_MAX: u64 = 1 << 32;

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

/// What a cell takes of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// One.
    One,
    /// The value, an integer of at most 64 bits.
    Integer,
    /// The lower 32 bits of an integer.
    Low,
    /// The 32 bits above these.
    Middle,
    /// An integer without its lower 32 bits; `signed` of 64 bits.
    High {
        /// Whether the sign is extended first.
        signed: bool,
    },
    /// A decimal without its lower 64 bits.
    Highest,
    /// The value as a double.
    Float,
    /// All limbs of a float; or one of a sum that keeps every limb, to which nothing is added by itself.
    Limbs,
    /// One limb of a float, where it is not zero.
    Limb(usize),
    /// What tells that a float is not finite, where it is not.
    Infinite,
    /// The image of a value.
    Image {
        /// Values are signed.
        signed: bool,
        /// The order is turned.
        turned: bool,
        /// Values are doubles in total order.
        float: bool,
    },
    /// A cell of a scanned group, which this register holds.
    Cell(usize),
}

/// One accumulator cell and what goes in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Operation.
    pub(crate) op: CellOp,
    /// What is taken of a row.
    pub(crate) part: Part,
    /// The aggregate whose argument and rows it takes; none counts all rows.
    pub(crate) call: Option<usize>,
    /// Most that a value differs from zero, where that is known of integers.
    pub(crate) most: Option<u128>,
}

impl Cell {
    /// The register of the cell of a scanned group that it takes.
    pub(crate) fn of_scanned(&self) -> Option<usize> {
        if let Part::Cell(register) = self.part { Some(register) } else { None }
    }

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
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

/// How cells become a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// A cell as an unsigned or signed integer.
    Integer(usize),
    /// A cell as a double.
    Float(usize),
    /// A cell as a signed integer that is read as the nearest double.
    Nearest(usize),
    /// An exact sum of floats.
    Fixed {
        /// Cell of the first limb; the others follow.
        cell: usize,
        /// The limbs.
        window: FloatLimbs,
        /// Cell that counts what is not finite.
        infinite: usize,
    },
    /// Sums of lower 32 bits and of upper parts; of the next 32 bits between them, if there are any of these.
    Wide {
        /// Cell of the lower bits.
        low: usize,
        /// Cell of the next ones.
        middle: Option<usize>,
        /// Cell of the rest.
        high: usize,
        /// Most that a value may differ from zero for all of them to stay within 38 digits, where larger ones may
        /// come: one of these raises.
        most: Option<i128>,
    },
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
    /// Most rows that are none of a join with several matches; none if there is no such join.
    pub(crate) unmatched: Option<u64>,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(crate) whole_sums: bool,
    /// What integers do that overflow.
    pub(crate) overflow: Overflow,
}

/// The rows that an aggregate takes, and what it takes of them.
#[derive(Debug, Clone)]
pub(crate) struct CallInput {
    filter: Option<Expr>,
    argument: Option<Expr>,
    /// For which rows the argument is valid.
    pub(crate) valid: Validity,
}

impl CallInput {
    fn of(call: &AggregateCall, registers: &[Option<Facts>], overflow: Overflow) -> Result<CallInput> {
        let valid = call.argument.as_ref().map(|argument| validity(argument, registers, overflow)).transpose()?;
        let (filter, argument) = (call.filter.clone(), call.argument.clone());
        Ok(CallInput { filter, argument, valid: valid.unwrap_or(Validity::Always) })
    }

    /// Whether there are rows that it does not take.
    fn is_conditional(&self) -> bool {
        self.filter.is_some() || self.valid != Validity::Always
    }

    /// The one register whose validity tells which rows it takes.
    pub(crate) fn by_register(&self) -> Option<usize> {
        self.valid.register().filter(|_| self.filter.is_none())
    }

    /// Whether the argument is a register, or the same number in another type: zero where that is.
    pub(crate) fn is_register(&self) -> bool {
        fn is_itself(expr: &Expr) -> bool {
            match expr {
                Expr::Reg(_) => true,
                Expr::Cast(inner, _) => is_itself(inner),
                _ => false,
            }
        }
        self.argument.as_ref().is_some_and(is_itself)
    }

    /// Whether both take the same rows.
    fn has_rows_of(&self, other: &CallInput) -> bool {
        let are_valid = match (&self.valid, &other.valid) {
            (Validity::Own, Validity::Own) => same(&self.argument, &other.argument),
            (own, other) => own == other,
        };
        are_valid && same(&self.filter, &other.filter)
    }

    /// Whether both take the same of the same rows.
    fn is_as(&self, other: &CallInput) -> bool {
        same(&self.argument, &other.argument) && same(&self.filter, &other.filter)
    }
}

fn same(one: &Option<Expr>, other: &Option<Expr>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    }
}

/// The accumulators of an aggregate of scanned groups, which are united to those of fewer groups. Cells are only added
/// to or raised: sums of cells and the largest of them are what all rows together would have left.
#[derive(Debug, Clone)]
pub(crate) struct United {
    /// What is known of the result.
    pub(crate) facts: Facts,
    /// How each cell takes one of a scanned group, and the register of that.
    pub(crate) cells: Vec<(CellOp, usize)>,
    /// How the result is read, by the positions of these cells.
    pub(crate) output: Output,
}

impl Read {
    /// The cells that it reads, with their operations.
    pub(super) fn cells(self) -> Vec<(CellOp, usize)> {
        let add = |cell| (CellOp::Add, cell);
        match self {
            Read::Integer(cell) | Read::Nearest(cell) => vec![add(cell)],
            Read::Float(cell) => vec![(CellOp::AddFloat, cell)],
            Read::Wide { low, middle, high, .. } => [low].into_iter().chain(middle).chain([high]).map(add).collect(),
            Read::Image { cell, .. } => vec![(CellOp::Max, cell)],
            Read::Fixed { cell, window, infinite } => (cell..cell + window.limbs).chain([infinite]).map(add).collect(),
        }
    }

    /// The same of other cells, which are in the order of [`Read::cells`].
    pub(super) fn of_cells(self, cells: &[usize]) -> Read {
        match self {
            Read::Integer(_) => Read::Integer(cells[0]),
            Read::Nearest(_) => Read::Nearest(cells[0]),
            Read::Float(_) => Read::Float(cells[0]),
            Read::Wide { middle, most, .. } => {
                let middle = middle.map(|_| cells[1]);
                Read::Wide { low: cells[0], middle, high: cells[1 + usize::from(middle.is_some())], most }
            }
            Read::Image { signed, turned, float, .. } => Read::Image { cell: cells[0], signed, turned, float },
            Read::Fixed { window, .. } => Read::Fixed { cell: cells[0], window, infinite: cells[window.limbs] },
        }
    }
}

/// Cells and outputs of a sink.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accumulators {
    /// Cells, equal ones shared.
    pub(crate) cells: Vec<Cell>,
    /// One output an aggregate.
    pub(crate) outputs: Vec<Output>,
    /// What each aggregate takes.
    pub(crate) inputs: Vec<CallInput>,
    /// Matches past which the scan raises an overflow; none if it does not count them.
    pub(crate) matches_max: Option<u64>,
}

impl Accumulators {
    /// The cells of some aggregates over registers of these facts, each with what it unites. A global aggregation
    /// (`single`) counts its rows to tell NULL from a value.
    ///
    /// # Errors
    /// Unsupported for sums and extremes that no cells hold.
    pub(crate) fn of(
        aggregates: &[(&AggregateCall, Option<&United>)],
        registers: &[Option<Facts>],
        single: bool,
        bounds: SumBounds,
    ) -> Result<Accumulators> {
        let mut cells = Accumulators::default();
        for (call, united) in aggregates {
            match united {
                Some(united) => cells.unite(united),
                None => {
                    cells.inputs.push(CallInput::of(call, registers, bounds.overflow)?);
                    cells.add(call, registers, bounds)?;
                }
            }
        }
        if single {
            let counted = cells.cell(CellOp::Add, Part::One, None, Some(1));
            for (output, (call, _)) in cells.outputs.iter_mut().zip(aggregates) {
                if output.count.is_none() && call.kind != AggregateKind::Count {
                    output.count = Some(counted);
                }
            }
        }
        Ok(cells)
    }

    /// Index of a cell, shared with an equal one.
    pub(super) fn cell(&mut self, op: CellOp, part: Part, call: Option<usize>, most: Option<u128>) -> usize {
        let call = call.filter(|call| part != Part::One || self.inputs[*call].is_conditional());
        let is_equal = |known: &Cell| {
            let same_rows = match (known.call, call) {
                (None, None) => true,
                (Some(known), Some(call)) if part == Part::One => self.inputs[known].has_rows_of(&self.inputs[call]),
                (Some(known), Some(call)) => self.inputs[known].is_as(&self.inputs[call]),
                _ => false,
            };
            (known.op, known.part, known.most) == (op, part, most) && same_rows
        };
        let index = self.cells.iter().position(is_equal).unwrap_or(self.cells.len());
        if index == self.cells.len() {
            self.cells.push(Cell { op, part, call, most });
        }
        index
    }

    /// Adds the cells of an aggregate that takes those of scanned groups.
    fn unite(&mut self, united: &United) {
        let position = self.inputs.len();
        self.inputs.push(CallInput { filter: None, argument: None, valid: Validity::Always });
        let cell = |(op, register): &(CellOp, usize)| self.cell(*op, Part::Cell(*register), Some(position), None);
        let cells: Vec<usize> = united.cells.iter().map(cell).collect();
        let Output { read, count, .. } = united.output;
        self.outputs.push(Output {
            read: read.of_cells(&cells),
            count: count.map(|count| cells[count]),
            ..united.output.clone()
        });
    }

    /// Adds the cells of the aggregate whose rows were noted last.
    fn add(&mut self, call: &AggregateCall, registers: &[Option<Facts>], bounds: SumBounds) -> Result<()> {
        let position = self.inputs.len() - 1;
        let Some(argument) = call.argument.as_ref().filter(|_| call.kind != AggregateKind::Count) else {
            // An argument that is refused is, whatever is made of it.
            let argument: Vec<&Expr> = call.argument.iter().collect();
            analyse(&argument, registers, bounds.overflow)?;
            let cell = self.cell(CellOp::Add, Part::One, Some(position), Some(1));
            self.push(Read::Integer(cell), call, None, None);
            return Ok(());
        };
        let value = analyse(&[argument], registers, bounds.overflow)?.0.remove(0);
        let is_conditional = self.inputs[position].is_conditional();
        let count = is_conditional.then(|| self.cell(CellOp::Add, Part::One, Some(position), Some(1)));
        let read = match call.kind {
            AggregateKind::Sum | AggregateKind::ExactSum => {
                let is_exact = call.kind == AggregateKind::ExactSum;
                match self.sum_of_integers(position, argument, registers, bounds)? {
                    Some(sum) => sum,
                    None if is_exact => self.exact_sum(position, (argument, &value), registers, bounds)?,
                    None => self.sum(position, &value, bounds)?,
                }
            }
            kind => self.extreme(position, &value, kind == AggregateKind::Min)?,
        };
        self.push(read, call, count, value.dictionary);
        Ok(())
    }

    fn push(&mut self, read: Read, call: &AggregateCall, count: Option<usize>, dictionary: Option<Arc<Dictionary>>) {
        self.outputs.push(Output { read, data_type: call.data_type.clone(), count, dictionary });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Ty;

    fn registers() -> Vec<Option<Facts>> {
        let integer = |nullable| Some(Facts::new(Ty::I64, nullable, Some((0, 99))));
        vec![integer(true), integer(true), integer(false)]
    }

    fn call(kind: AggregateKind, argument: Option<Expr>) -> AggregateCall {
        AggregateCall { kind, argument, filter: None, data_type: DataType::Int64, unites: false }
    }

    fn cells(aggregates: &[AggregateCall], single: bool) -> Accumulators {
        let bounds = SumBounds { rows: 1 << 20, unmatched: None, whole_sums: false, overflow: Overflow::Raise };
        let aggregates: Vec<_> = aggregates.iter().map(|call| (call, None)).collect();
        Accumulators::of(&aggregates, &registers(), single, bounds).unwrap()
    }

    #[test]
    fn equal_cells_are_one() {
        let sum = || Expr::binary(crate::ir::BinaryOp::Add, Expr::Reg(0), Expr::Reg(2));
        let aggregates = [
            call(AggregateKind::Sum, Some(Expr::Reg(0))),
            call(AggregateKind::Count, Some(sum())),
            call(AggregateKind::Sum, Some(sum())),
            call(AggregateKind::Sum, Some(sum())),
            call(AggregateKind::Count, Some(Expr::Reg(1))),
            call(AggregateKind::Count, Some(Expr::Reg(2))),
            call(AggregateKind::Count, None),
        ];
        let Accumulators { cells, outputs, .. } = cells(&aggregates, false);
        let taken: Vec<_> = cells.iter().map(|cell| (cell.part, cell.call)).collect();
        let (one, integer) = (Part::One, Part::Integer);
        // A sum is NULL where no valid value went in: the count of these is that of the aggregate beside it.
        assert_eq!(taken, [(one, Some(0)), (integer, Some(0)), (integer, Some(2)), (one, Some(4)), (one, None)]);
        let reads: Vec<_> = outputs.iter().map(|output| (output.read, output.count)).collect();
        let at = |read, count| (Read::Integer(read), count);
        let sums = [at(1, Some(0)), at(0, None), at(2, Some(0)), at(2, Some(0))];
        assert_eq!(reads, [&sums[..], &[at(3, None), at(4, None), at(4, None)]].concat());
    }

    #[test]
    fn matches_are_counted_where_more_rows_than_cells_hold_may_come() {
        let sum = call(AggregateKind::Sum, Some(Expr::Reg(3)));
        let wide = [registers(), vec![Some(Facts::new(Ty::I64, false, Ty::I64.bounds()))]].concat();
        let of = |rows: u64, unmatched: Option<u64>| {
            let bounds = SumBounds { rows, unmatched, whole_sums: false, overflow: Overflow::Raise };
            Accumulators::of(&[(&sum, None)], &wide, false, bounds).map(|cells| cells.matches_max)
        };
        let most = WIDE_ROWS_MAX / 2;
        assert_eq!(of(most - 1, Some(0)).unwrap(), None);
        assert_eq!(of(WIDE_ROWS_MAX, Some(0)).unwrap(), Some(most));
        assert_eq!(of(1 << 60, Some(7)).unwrap(), Some(most - 7), "those of other branches of a union are not counted");
        assert!(of(1 << 60, Some(most + 1)).is_err() && of(1 << 60, None).is_err());
        // Sums of small numbers, and counts, have room for them.
        let small = call(AggregateKind::Sum, Some(Expr::Reg(2)));
        let bounds = SumBounds { rows: 1 << 40, unmatched: Some(0), whole_sums: false, overflow: Overflow::Raise };
        let cells = Accumulators::of(&[(&small, None)], &wide, false, bounds).unwrap();
        assert_eq!((cells.cells.len(), cells.matches_max), (1, None));
    }

    #[test]
    fn integers_as_doubles_have_no_limbs() {
        let double = |register| Some(Expr::Cast(Box::new(Expr::Reg(register)), Ty::F64));
        let exact = |register| call(AggregateKind::ExactSum, double(register));
        let quick = call(AggregateKind::Sum, double(2));
        let known = cells(&[exact(2), call(AggregateKind::Sum, Some(Expr::Reg(2))), quick], false);
        let read: Vec<Read> = known.outputs.iter().map(|output| output.read).collect();
        assert_eq!(read, [Read::Nearest(0), Read::Integer(1), Read::Nearest(0)]);
        // Not all integers of 64 bits are doubles.
        let wide = [registers(), vec![Some(Facts::new(Ty::I64, false, Ty::I64.bounds()))]].concat();
        let bounds = SumBounds { rows: 9, unmatched: None, whole_sums: false, overflow: Overflow::Raise };
        let cells = Accumulators::of(&[(&exact(3), None)], &wide, false, bounds).unwrap();
        assert!(matches!(cells.outputs[0].read, Read::Fixed { .. }));
    }

    #[test]
    fn filters_tell_cells_apart() {
        let filter = |constant| Expr::binary(crate::ir::BinaryOp::Gt, Expr::Reg(2), int(constant));
        let of =
            |constant| AggregateCall { filter: Some(filter(constant)), ..call(AggregateKind::Sum, Some(Expr::Reg(2))) };
        assert_eq!(cells(&[of(1), of(1)], true).cells.len(), 3, "rows, those that pass, and their sum");
        assert_eq!(cells(&[of(1), of(2)], true).cells.len(), 5);
    }

    #[test]
    fn arguments_are_registers_or_the_same_in_another_type() {
        let is_register = |expr| cells(&[call(AggregateKind::Sum, Some(expr))], true).inputs[0].is_register();
        assert!(is_register(Expr::Cast(Box::new(Expr::Reg(0)), Ty::I64)));
        assert!(!is_register(Expr::binary(crate::ir::BinaryOp::Add, Expr::Reg(0), Expr::Reg(2))));
    }

    fn int(value: i128) -> Expr {
        Expr::Literal(crate::ir::Literal::Int(value), Ty::I64)
    }
}
