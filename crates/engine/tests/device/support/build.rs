//! Shorthands that write fragments and data.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Decimal128Array, PrimitiveArray, StringArray,
};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};
use warpcube_engine::{
    AggregateCall, AggregateKind, BinaryOp, DictionaryFunction, Expr, Fragment, FragmentTable, JoinKind, Literal,
    Overflow, Pipeline, Probe, Sink, Source, Step, TextMatch, Ty, UnaryOp,
};

use super::source::MemoryTable;

pub fn reg(register: usize) -> Expr {
    Expr::Reg(register)
}

pub fn int(value: i128, ty: Ty) -> Expr {
    Expr::Literal(Literal::Int(value), ty)
}

pub fn float(value: f64, ty: Ty) -> Expr {
    Expr::Literal(Literal::Float(value), ty)
}

pub fn null(ty: Ty) -> Expr {
    Expr::Literal(Literal::Null, ty)
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::binary(op, left, right)
}

pub fn unary(op: UnaryOp, inner: Expr) -> Expr {
    Expr::Unary(op, Box::new(inner))
}

pub fn convert(inner: Expr, ty: Ty) -> Expr {
    Expr::Cast(Box::new(inner), ty)
}

pub fn count() -> AggregateCall {
    AggregateCall {
        kind: AggregateKind::Count,
        argument: None,
        filter: None,
        data_type: DataType::Int64,
        unites: false,
    }
}

pub fn aggregate(kind: AggregateKind, argument: Expr, data_type: DataType) -> AggregateCall {
    AggregateCall { kind, argument: Some(argument), filter: None, data_type, unites: false }
}

pub fn sum(argument: Expr, data_type: DataType) -> AggregateCall {
    aggregate(AggregateKind::Sum, argument, data_type)
}

pub fn exact_sum(argument: Expr) -> AggregateCall {
    aggregate(AggregateKind::ExactSum, argument, DataType::Float64)
}

pub fn min(argument: Expr, data_type: DataType) -> AggregateCall {
    aggregate(AggregateKind::Min, argument, data_type)
}

pub fn max(argument: Expr, data_type: DataType) -> AggregateCall {
    aggregate(AggregateKind::Max, argument, data_type)
}

pub fn count_of(argument: Expr) -> AggregateCall {
    aggregate(AggregateKind::Count, argument, DataType::Int64)
}

pub fn filter(expr: Expr) -> Step {
    Step::Filter(expr)
}

pub fn probe(build: usize, keys: Vec<Expr>, kind: JoinKind) -> Step {
    Step::Probe(Probe { build, keys, kind, unique: false, residual: None })
}

/// A probe whose matches meet a residual.
pub fn probe_where(build: usize, keys: Vec<Expr>, kind: JoinKind, residual: Expr) -> Step {
    Step::Probe(Probe { build, keys, kind, unique: false, residual: Some(residual) })
}

pub fn builds(table: usize, steps: Vec<Step>, keys: Vec<Expr>, payload: Vec<Expr>) -> Pipeline {
    Pipeline { source: Source::Table(table), steps, sink: Sink::Build { keys, payload } }
}

/// Groups of the smallest and the largest of each of these values, to be probed.
pub fn extremes(table: usize, steps: Vec<Step>, keys: &[(Expr, DataType)], values: &[(Expr, DataType)]) -> Pipeline {
    let both = |(value, data_type): &(Expr, DataType)| {
        [min(value.clone(), data_type.clone()), max(value.clone(), data_type.clone())]
    };
    aggregates(table, steps, keys.to_vec(), values.iter().flat_map(both).collect())
}

pub fn aggregates(
    table: usize,
    steps: Vec<Step>,
    groups: Vec<(Expr, DataType)>,
    aggregates: Vec<AggregateCall>,
) -> Pipeline {
    Pipeline { source: Source::Table(table), steps, sink: Sink::Aggregate { groups, aggregates } }
}

/// A fragment that reads the first `columns` columns of each table.
pub fn fragment(columns: &[usize], pipelines: Vec<Pipeline>) -> Fragment {
    let table = |(index, columns): (usize, &usize)| FragmentTable {
        name: format!("t{index}"),
        columns: (0..*columns).collect(),
    };
    let tables = columns.iter().enumerate().map(table).collect();
    Fragment { tables, pipelines, unions: Vec::new(), result: Vec::new(), overflow: Overflow::Raise }
}

/// A fragment over one table.
pub fn single(columns: usize, steps: Vec<Step>, groups: Vec<(Expr, DataType)>, calls: Vec<AggregateCall>) -> Fragment {
    fragment(&[columns], vec![aggregates(0, steps, groups, calls)])
}

/// A column of numbers from a function of the row; `None` is NULL.
pub fn numbers<T: ArrowPrimitiveType>(rows: usize, value: impl Fn(usize) -> Option<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter((0..rows).map(value)))
}

pub fn floats(rows: usize, value: impl Fn(usize) -> Option<f64>) -> ArrayRef {
    numbers::<Float64Type>(rows, value)
}

pub fn decimals(rows: usize, precision: u8, scale: i8, value: impl Fn(usize) -> Option<i128>) -> ArrayRef {
    let array = Decimal128Array::from_iter((0..rows).map(value));
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

pub fn days(rows: usize, value: impl Fn(usize) -> Option<i32>) -> ArrayRef {
    Arc::new(Date32Array::from_iter((0..rows).map(value)))
}

pub fn truths(rows: usize, value: impl Fn(usize) -> Option<bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter((0..rows).map(value)))
}

pub fn texts(rows: usize, value: impl Fn(usize) -> Option<String>) -> ArrayRef {
    Arc::new(StringArray::from_iter((0..rows).map(value)))
}

/// Spreads rows over values without a pattern: a multiplicative hash of row and seed.
pub fn mixed(row: usize, seed: u64) -> u64 {
    let mut x = (row as u64).wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(1);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Keys from 0 on whose hashes begin at one slot of any table of up to 2²⁰ slots, under seed 0: the hash turned around.
pub fn colliding_keys(count: usize) -> Vec<i64> {
    (0u64..).map(|number| unhashed(number << 20)).filter(|key| *key < 1 << 62).map(|k| k as i64).take(count).collect()
}

/// The same of keys of two words whose first one is this: their second words.
pub fn colliding_second_words(first: u64, count: usize) -> Vec<i64> {
    // What each word's hash is added to.
    let step = 0x9e37_79b9_7f4a_7c15u64;
    let before = hashed(first).wrapping_add(step);
    let word = |number: u64| before ^ unhashed((number << 20).wrapping_sub(step));
    (0u64..).map(word).filter(|word| *word < 1 << 62).map(|word| word as i64).take(count).collect()
}

/// What `wc_hash` makes of a key.
fn hashed(key: u64) -> u64 {
    spread(key, [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53])
}

/// The key of a hash: the factors' inverses in turn.
fn unhashed(hash: u64) -> u64 {
    spread(hash, [0x9cb4_b2f8_1293_37db, 0x4f74_430c_22a5_4005])
}

fn spread(bits: u64, factors: [u64; 2]) -> u64 {
    let bits = factors.into_iter().fold(bits, |bits, factor| (bits ^ bits >> 33).wrapping_mul(factor));
    bits ^ bits >> 33
}

/// A dictionary function made of a Rust function over one string or NULL.
pub struct TextFunction<F>(pub &'static str, pub F);

impl<F> std::fmt::Debug for TextFunction<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl<F: Fn(&[Option<&str>]) -> ArrayRef + Send + Sync + 'static> DictionaryFunction for TextFunction<F> {
    fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        let strings: Vec<Option<&str>> =
            strings.as_any().downcast_ref::<StringArray>().expect("strings").iter().collect();
        Ok((self.1)(&strings))
    }

    fn describe(&self) -> String {
        self.0.into()
    }
}

pub fn lookup(
    register: usize,
    name: &'static str,
    ty: Ty,
    function: impl Fn(&[Option<&str>]) -> ArrayRef + Send + Sync + 'static,
) -> Expr {
    Expr::Lookup(register, Arc::new(TextFunction(name, function)), ty)
}

/// A function that is a test of its string.
#[derive(Debug)]
struct Test(TextMatch);

impl DictionaryFunction for Test {
    fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        let strings = strings.as_any().downcast_ref::<StringArray>().expect("strings");
        Ok(Arc::new(strings.iter().map(|text| text.map(|text| self.0.holds(text))).collect::<BooleanArray>()))
    }

    fn describe(&self) -> String {
        format!("{:?}", self.0)
    }

    fn over_bytes(&self) -> Option<Expr> {
        Some(Expr::Match(0, Arc::new(self.0.clone())))
    }
}

/// A test of a string register.
pub fn test(register: usize, test: TextMatch) -> Expr {
    Expr::Lookup(register, Arc::new(Test(test)), Ty::Bool)
}

/// Columns: a key, a string, a number with NULLs, a float, and these decimals.
pub fn keyed_facts(rows: usize, keys: u64, spread: i64, decimals: ArrayRef) -> MemoryTable {
    let key = |row: usize| (row % 31 != 7).then_some((mixed(row, 1) % keys) as i64 * spread - 40);
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(rows, key)),
            ("s", texts(rows, |row| (row % 23 != 5).then(|| format!("name {}", mixed(row, 2) % 7)))),
            ("v", numbers::<Int32Type>(rows, |row| (row % 5 != 1).then_some(mixed(row, 3) as i32 % 100_000))),
            ("f", floats(rows, |row| (row % 7 != 2).then_some((mixed(row, 4) % 4_000) as f64 / 8.0 - 250.0))),
            ("d", decimals),
        ],
    )
}
