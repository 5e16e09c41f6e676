//! Random tables and fragments from a seed.

use arrow::array::{ArrayRef, BooleanArray, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use std::sync::Arc;
use warpcube_engine::{
    AggregateCall, AggregateKind, BinaryOp, DatePart, Expr, Fragment, JoinKind, Overflow, Pipeline, Sink, Step, Ty,
    UnaryOp,
};

use crate::support::*;

/// Columns that every table has, in this order; the first is its key.
pub(super) const COLUMNS: [(Ty, DataType); 11] = [
    (Ty::I32, DataType::Int32),
    (Ty::I64, DataType::Int64),
    (Ty::I8, DataType::Int8),
    (Ty::U16, DataType::UInt16),
    (Ty::F64, DataType::Float64),
    (Ty::Bool, DataType::Boolean),
    (Ty::U32, DataType::Utf8),
    (Ty::I128, DataType::Decimal128(15, 2)),
    (Ty::I32, DataType::Date32),
    (Ty::F32, DataType::Float32),
    (Ty::U64, DataType::UInt64),
];
/// The column of strings, and that of dates.
const TEXT: usize = 6;
const DATE: usize = 8;

/// A register: its type, the Arrow type of its values, and whether they are strings.
#[derive(Debug, Clone)]
pub(super) struct Register {
    ty: Ty,
    pub(super) data_type: DataType,
    text: bool,
}

pub struct Generator {
    state: u64,
    nullable: Vec<Vec<bool>>,
    dimensions: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let mut generator =
            Generator { state: seed.wrapping_mul(0x1234_5678_9abc_def1) + 1, nullable: vec![], dimensions: 0 };
        generator.dimensions = generator.below(3);
        generator.nullable =
            (0..=generator.dimensions).map(|_| (0..COLUMNS.len()).map(|_| generator.below(3) == 0).collect()).collect();
        generator
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        mixed(self.state as usize, 77)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// A table of facts and one of each dimension, whose keys are unique and partly sparse.
    pub fn tables(&mut self, rows: usize) -> Vec<MemoryTable> {
        (0..=self.dimensions)
            .map(|table| {
                let seed = self.next();
                let rows = if table == 0 { rows } else { 40 + self.below(100) };
                // Where some rows hold the extremes of their types, arithmetic overflows in some programs.
                let extreme = self.below(6) == 0;
                let sparse = if table > 0 && self.below(3) == 0 { 10_000_019 } else { 1 };
                let columns = COLUMNS.iter().enumerate().map(|(column, (_, data_type))| {
                    let null = self.nullable[table][column];
                    let valid = |row: usize| !null || mixed(row, seed ^ 3 ^ column as u64) % 6 != 0;
                    let raw = |row: usize| mixed(row, seed.wrapping_add(column as u64));
                    let key = (table > 0 && column == 0).then_some(sparse);
                    (
                        ["k", "l", "b", "u", "f", "t", "s", "d", "date", "g", "v"][column],
                        column_of(data_type, rows, key.map_or(Content::Any { extreme }, Content::Key), valid, raw),
                    )
                });
                MemoryTable::new(&format!("t{table}"), columns.collect())
            })
            .collect()
    }

    /// The registers of a table.
    pub(super) fn base(&self) -> Vec<Register> {
        let register = |(column, (ty, data_type)): (usize, &(Ty, DataType))| Register {
            ty: *ty,
            data_type: data_type.clone(),
            text: column == TEXT,
        };
        COLUMNS.iter().enumerate().map(register).collect()
    }

    /// A fragment over the tables.
    pub fn fragment(&mut self) -> Fragment {
        let base = self.base();
        let mut pipelines: Vec<Pipeline> = Vec::new();
        let (mut registers, mut steps) = (base.clone(), Vec::new());
        for dimension in 1..=self.dimensions {
            let filters = if self.below(2) == 0 { vec![filter(self.expr(Ty::Bool, &base, 2))] } else { vec![] };
            use JoinKind::*;
            let kind = self.one_of(&[Inner, Inner, Left, Semi, Anti, Mark]);
            let mut payload = Vec::new();
            // What a semi or anti join's residual reads of the last table: no register comes behind it.
            let is_joined = matches!(kind, JoinKind::Inner | JoinKind::Left);
            let mut both = registers.clone();
            let has_payload = is_joined || kind != Mark && dimension == self.dimensions;
            for _ in 0..if has_payload { self.below(3) } else { 0 } {
                let column = 1 + self.below(COLUMNS.len() - 1);
                payload.push(reg(column));
                both.push(base[column].clone());
            }
            if is_joined {
                registers.clone_from(&both);
            }
            pipelines.push(builds(dimension, filters, vec![reg(0)], payload));
            if self.below(2) == 0 {
                steps.push(filter(self.expr(Ty::Bool, &base, 2)));
            }
            if kind == Mark {
                registers.push(Register { ty: Ty::Bool, data_type: DataType::Boolean, text: false });
            }
            let may_have = matches!(kind, Left | Mark) || kind != Inner && dimension == self.dimensions;
            steps.push(match may_have && self.below(2) == 0 {
                true => probe_where(dimension - 1, vec![reg(0)], kind, self.expr(Ty::Bool, &both, 2)),
                false => probe(dimension - 1, vec![reg(0)], kind),
            });
        }
        for _ in 0..self.below(3) {
            steps.push(self.filter(&registers));
        }
        let groups = (0..self.below(5)).map(|_| self.group(&registers)).collect();
        let (calls, types): (Vec<_>, Vec<_>) = (0..2 + self.below(7)).map(|_| self.call(&registers)).unzip();
        pipelines.push(aggregates(0, steps, groups, calls));
        let overflow = self.one_of(&[Overflow::Raise, Overflow::Raise, Overflow::Wrap]);
        let whole = Fragment { overflow, ..fragment(&vec![COLUMNS.len(); self.dimensions + 1], pipelines) };
        if self.below(3) == 0 { self.united(whole, &base, &types) } else { whole }
    }

    /// The fragment with further branches of a union, each over a table; `types` are those of its arguments.
    fn united(&mut self, mut whole: Fragment, base: &[Register], types: &[Ty]) -> Fragment {
        let first = whole.pipelines.len() - 1;
        let Sink::Aggregate { groups, aggregates: calls } = whole.pipelines[first].sink.clone() else { return whole };
        for _ in 0..1 + self.below(2) {
            let steps = (0..self.below(2)).map(|_| self.filter(base)).collect();
            let by = groups.iter().map(|(_, data_type)| {
                let known = COLUMNS.iter().find(|(_, known)| known == data_type);
                let ty = known.map_or(Ty::I32, |(ty, _)| *ty);
                let depth = if ty == Ty::U32 || ty == Ty::Bool { 2 } else { 0 };
                (self.expr(ty, base, depth), data_type.clone())
            });
            let by = by.collect();
            let calls = calls.iter().zip(types).map(|(call, ty)| AggregateCall {
                argument: Some(self.argument(call.kind, *ty, base)),
                filter: (self.below(4) == 0).then(|| self.expr(Ty::Bool, base, 2)),
                ..call.clone()
            });
            let calls = calls.collect();
            let table = self.below(self.dimensions + 1);
            whole.pipelines.push(aggregates(table, steps, by, calls));
        }
        whole.unions.push(first..whole.pipelines.len());
        whole
    }

    pub(super) fn filter(&mut self, registers: &[Register]) -> Step {
        filter(self.expr(Ty::Bool, registers, 3))
    }

    fn group(&mut self, registers: &[Register]) -> (Expr, DataType) {
        match self.below(6) {
            0 => (Expr::DatePart(DatePart::Year, Box::new(reg(DATE))), DataType::Int32),
            1 => (self.expr(Ty::Bool, registers, 2), DataType::Boolean),
            2 => (self.expr(Ty::U32, registers, 2), DataType::Utf8),
            _ => {
                let register = self.below(registers.len());
                (reg(register), registers[register].data_type.clone())
            }
        }
    }

    /// An aggregate, and the type of its argument.
    fn call(&mut self, registers: &[Register]) -> (AggregateCall, Ty) {
        let filter = (self.below(4) == 0).then(|| self.expr(Ty::Bool, registers, 2));
        let ty = self.one_of(&[Ty::I32, Ty::I64, Ty::I8, Ty::U16, Ty::F64, Ty::I128, Ty::U64, Ty::F32]);
        let kind = self.one_of(&[
            AggregateKind::Count,
            AggregateKind::Sum,
            AggregateKind::Sum,
            AggregateKind::ExactSum,
            AggregateKind::Min,
            AggregateKind::Max,
        ]);
        let is_sum = matches!(kind, AggregateKind::Sum | AggregateKind::ExactSum);
        let ty = if kind == AggregateKind::ExactSum || is_sum && ty == Ty::F32 { Ty::F64 } else { ty };
        let own = COLUMNS.iter().find(|(known, _)| *known == ty).unwrap().1.clone();
        let data_type = match (kind, ty) {
            (AggregateKind::Count, _) => DataType::Int64,
            (AggregateKind::Sum, Ty::U16 | Ty::U64) => DataType::UInt64,
            (AggregateKind::Sum, Ty::I128) => DataType::Decimal128(38, 2),
            (AggregateKind::Sum, Ty::F64) => DataType::Float64,
            (AggregateKind::Sum, _) => DataType::Int64,
            _ => own,
        };
        let argument = Some(self.argument(kind, ty, registers));
        (AggregateCall { kind, argument, filter, data_type, unites: false }, ty)
    }

    fn argument(&mut self, kind: AggregateKind, ty: Ty, registers: &[Register]) -> Expr {
        // The order of a float sum is open: its arguments keep one sign and one size.
        match (kind, ty) {
            (AggregateKind::Sum | AggregateKind::ExactSum, Ty::F64) => reg(4),
            _ => self.expr(ty, registers, 3),
        }
    }

    /// A random expression of a type; of 32 bits without a sign those are strings.
    pub(super) fn expr(&mut self, ty: Ty, registers: &[Register], depth: usize) -> Expr {
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(ty, registers);
        }
        match (ty, self.below(10)) {
            (Ty::Bool, 0..=3) => {
                let operands = [Ty::I32, Ty::I64, Ty::U16, Ty::F64, Ty::I128, Ty::U32, Ty::U64, Ty::F32];
                let operands = self.one_of(&operands);
                let op =
                    self.one_of(&[BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge]);
                binary(op, self.expr(operands, registers, depth - 1), self.leaf(operands, registers))
            }
            (Ty::Bool, 4..=6) => {
                let op = self.one_of(&[BinaryOp::And, BinaryOp::Or]);
                binary(op, self.expr(Ty::Bool, registers, depth - 1), self.expr(Ty::Bool, registers, depth - 1))
            }
            (Ty::Bool, 7) => {
                let op = self.one_of(&[UnaryOp::Not, UnaryOp::IsTrue]);
                unary(op, self.expr(Ty::Bool, registers, depth - 1))
            }
            (Ty::Bool, 8) => {
                let inner = self.one_of(&[Ty::I32, Ty::Bool, Ty::F64]);
                let op = self.one_of(&[UnaryOp::IsNull, UnaryOp::IsNotNull]);
                unary(op, self.expr(inner, registers, depth - 1))
            }
            (_, 0 | 1) => Expr::Case(
                vec![(self.expr(Ty::Bool, registers, depth - 1), self.expr(ty, registers, depth - 1))],
                Box::new(self.expr(ty, registers, depth - 1)),
            ),
            (Ty::Bool | Ty::U32, _) => self.leaf(ty, registers),
            (Ty::F32, 2 | 3) => {
                let from = self.one_of(&[Ty::F64, Ty::I32, Ty::I64, Ty::U64]);
                convert(self.expr(from, registers, depth - 1), Ty::F32)
            }
            (Ty::F64, 4) => {
                let from = self.one_of(&[Ty::F32, Ty::U64, Ty::I128]);
                convert(self.expr(from, registers, depth - 1), Ty::F64)
            }
            (Ty::U64, 2 | 3) => convert(self.leaf(self.narrower(), registers), Ty::U64),
            (Ty::I64, 8) => {
                let from = self.one_of(&[Ty::U64, Ty::F64, Ty::F32]);
                convert(self.leaf(from, registers), Ty::I64)
            }
            (Ty::I32, 7) => Expr::AddMonths(Box::new(reg(DATE)), self.below(60) as i32 - 30),
            (Ty::I128, 4 | 5) => {
                let (dividend, divisor) = (self.expr(ty, registers, depth - 1), self.leaf(ty, registers));
                let nonzero = binary(BinaryOp::Ne, divisor.clone(), int(0, ty));
                let quotient = Expr::Quotient(Box::new([dividend, divisor]), self.one_of(&[0, 2, 8]));
                let quotient = if self.below(3) > 0 { Expr::Digits(Box::new(quotient), 15) } else { quotient };
                Expr::Case(vec![(nonzero, quotient)], Box::new(self.leaf(ty, registers)))
            }
            (Ty::I64, 2 | 3) => convert(self.expr(self.narrower(), registers, depth - 1), Ty::I64),
            (Ty::I32, 2) => {
                Expr::DatePart(self.one_of(&[DatePart::Month, DatePart::Day, DatePart::Quarter]), Box::new(reg(DATE)))
            }
            (Ty::I32, 3) => text_length(self.one_of(&texts_of(registers))),
            (Ty::F64, 2) => convert(self.expr(Ty::I32, registers, depth - 1), Ty::F64),
            (Ty::F64, 3) => Expr::DecimalToFloat(Box::new(self.leaf(Ty::I128, registers)), 2),
            (Ty::I128, 2) => Expr::Rescale(Box::new(self.leaf(Ty::I128, registers)), self.one_of(&[1, -1, 2])),
            (Ty::I128, 7) => Expr::Digits(Box::new(self.leaf(Ty::I128, registers)), self.one_of(&[4, 9, 18, 30])),
            (Ty::I128, 3) => convert(self.expr(Ty::I32, registers, depth - 1), Ty::I128),
            (Ty::I32 | Ty::I64 | Ty::I8 | Ty::U16 | Ty::U64, 4) => {
                let divisor = self.leaf(ty, registers);
                let nonzero = binary(BinaryOp::Gt, divisor.clone(), int(0, ty));
                let op = self.one_of(&[BinaryOp::Div, BinaryOp::Rem]);
                let quotient = binary(op, self.expr(ty, registers, depth - 1), divisor);
                Expr::Case(vec![(nonzero, quotient)], Box::new(self.leaf(ty, registers)))
            }
            (Ty::I32 | Ty::I64 | Ty::I8 | Ty::F64, 5) => {
                let op = self.one_of(&[UnaryOp::Negate, UnaryOp::Absolute]);
                unary(op, self.expr(ty, registers, depth - 1))
            }
            (Ty::F64, 6) => {
                let op =
                    self.one_of(&[UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Round, UnaryOp::RoundEven, UnaryOp::Sign]);
                unary(op, self.expr(ty, registers, depth - 1))
            }
            (Ty::I128, 8) => unary(UnaryOp::Absolute, self.expr(ty, registers, depth - 1)),
            (Ty::I128, 6) => binary(BinaryOp::Mul, self.leaf(ty, registers), self.leaf(ty, registers)),
            _ => {
                let op = match ty {
                    Ty::I128 => self.one_of(&[BinaryOp::Add, BinaryOp::Sub]),
                    _ => self.one_of(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul]),
                };
                binary(op, self.expr(ty, registers, depth - 1), self.leaf(ty, registers))
            }
        }
    }

    fn narrower(&self) -> Ty {
        [Ty::I32, Ty::I8, Ty::U16][(mixed(self.state as usize, 5) % 3) as usize]
    }

    fn leaf(&mut self, ty: Ty, registers: &[Register]) -> Expr {
        if ty == Ty::U32 {
            return match self.below(5) {
                0 => Expr::Text("x7".into()),
                1 => null(ty),
                _ => reg(self.one_of(&texts_of(registers))),
            };
        }
        let fitting: Vec<usize> =
            (0..registers.len()).filter(|r| registers[*r].ty == ty && !registers[*r].text).collect();
        match (ty, self.below(8)) {
            (Ty::Bool, 0..=4) => text_contains(self.one_of(&texts_of(registers))),
            (_, 0) => null(ty),
            (Ty::F64 | Ty::F32, 1 | 2) => float(self.below(100) as f64 / 8.0, ty),
            (Ty::Bool, _) => reg(self.one_of(&fitting)),
            (_, 1 | 2) => int(self.below(100) as i128, ty),
            _ => reg(self.one_of(&fitting)),
        }
    }
}

fn texts_of(registers: &[Register]) -> Vec<usize> {
    (0..registers.len()).filter(|register| registers[*register].text).collect()
}

fn text_length(register: usize) -> Expr {
    lookup(register, "length", Ty::I32, |strings| {
        Arc::new(strings.iter().map(|text| text.map(|text| text.len() as i32)).collect::<Int32Array>())
    })
}

fn text_contains(register: usize) -> Expr {
    lookup(register, "contains 3", Ty::Bool, |strings| {
        Arc::new(strings.iter().map(|text| text.map(|text| text.contains('3'))).collect::<BooleanArray>())
    })
}

/// What a column holds.
#[derive(Clone, Copy)]
enum Content {
    /// Unique keys so far apart.
    Key(i64),
    /// Any values; extremes of the type among them, where these are asked for.
    Any { extreme: bool },
}

fn column_of(
    data_type: &DataType,
    rows: usize,
    content: Content,
    valid: impl Fn(usize) -> bool,
    raw: impl Fn(usize) -> u64,
) -> ArrayRef {
    let small = |bound: u64, offset: i64| {
        numbers::<Int64Type>(rows, |row| valid(row).then(|| (raw(row) % bound) as i64 + offset))
    };
    match (data_type, content) {
        (_, Content::Key(stride)) => {
            let keys = numbers::<Int64Type>(rows, |row| valid(row).then_some(row as i64 * stride % 2_000_000_011));
            cast(&keys, data_type).unwrap()
        }
        (DataType::Float64 | DataType::Float32, _) => {
            let floats = numbers::<Float64Type>(rows, |row| valid(row).then(|| (raw(row) % 4_000) as f64 / 16.0));
            cast(&floats, data_type).unwrap()
        }
        (DataType::UInt64, Content::Any { extreme }) => numbers::<UInt64Type>(rows, |row| {
            valid(row).then(|| if extreme && raw(row) % 47 == 7 { u64::MAX } else { raw(row) % (1 << 40) })
        }),
        (DataType::Boolean, _) => truths(rows, |row| valid(row).then(|| raw(row) % 2 == 0)),
        (DataType::Utf8, _) => {
            let text =
                |row: usize| valid(row).then(|| "x".repeat((raw(row) % 4) as usize) + &(raw(row) % 40).to_string());
            Arc::new((0..rows).map(text).collect::<StringArray>())
        }
        (DataType::Decimal128(precision, scale), _) => {
            decimals(rows, *precision, *scale, |row| valid(row).then(|| i128::from(raw(row) % 1_000_000) - 500_000))
        }
        (DataType::Date32, _) => days(rows, |row| valid(row).then(|| (raw(row) % 9_000) as i32)),
        (DataType::UInt16, _) => {
            let wide = numbers::<UInt64Type>(rows, |row| valid(row).then(|| raw(row) % 65_536));
            cast(&wide, data_type).unwrap()
        }
        (DataType::Int8, _) => cast(&small(100, -50), data_type).unwrap(),
        (DataType::Int32, Content::Any { extreme }) => {
            let edge = |row: usize| (extreme && raw(row) % 41 == 7).then_some([i32::MIN, i32::MAX][row % 2]);
            let value = |row: usize| valid(row).then(|| edge(row).unwrap_or((raw(row) % 120) as i32 - 5));
            numbers::<Int32Type>(rows, value)
        }
        (_, Content::Any { extreme }) => {
            let edge = |row: usize| (extreme && raw(row) % 43 == 7).then_some([i64::MIN, i64::MAX][row % 2]);
            numbers::<Int64Type>(rows, |row| {
                valid(row).then(|| edge(row).unwrap_or((raw(row) % (1 << 30)) as i64 - (1 << 29)))
            })
        }
    }
}
