//! The first rows of joins and of groups: top-k above probes, and above the scan of a group table.

use arrow::datatypes::{DataType, Int64Type};
use warpcube_engine::{
    BinaryOp, EngineError, Expr, Fragment, JoinKind, OrderKey, Pipeline, Sink, Source, Step, TopK, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Rows from which a threshold is drawn.
const SAMPLED: usize = 1 << 15;
const SPREAD: i64 = 1_000_000_007;

/// [`keyed_facts`] with decimals of all 64 bits.
fn facts(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    keyed_facts(rows, keys, spread, decimals(rows, 38, 2, |row| Some(i128::from(mixed(row, 5)) - (1 << 63))))
}

/// One row a key: the key, a string, a number.
fn dimension(keys: usize, spread: i64) -> MemoryTable {
    MemoryTable::new(
        "dimension",
        vec![
            ("k", numbers::<Int64Type>(keys, |row| Some(row as i64 * spread - 40))),
            ("n", texts(keys, |row| (row % 9 != 4).then(|| format!("part {}", mixed(row, 6) % 50)))),
            ("w", numbers::<Int64Type>(keys, |row| (row % 4 != 1).then_some(mixed(row, 7) as i64 % 1_000))),
        ],
    )
}

fn decimal() -> DataType {
    DataType::Decimal128(38, 2)
}

fn top(
    source: Source,
    steps: Vec<Step>,
    keys: Vec<OrderKey>,
    k: Option<u64>,
    outputs: Vec<(Expr, DataType)>,
) -> Pipeline {
    Pipeline {
        source,
        steps,
        sink: Sink::TopK(TopK { keys, k, skip: 0, outputs, windows: vec![], first: None, algorithm: None }),
    }
}

/// The first groups by the sum of a column, the key among equal ones.
fn first_groups(k: Option<u64>, having: Vec<Step>) -> Fragment {
    let calls = vec![
        count(),
        sum(reg(2), DataType::Int64),
        min(reg(3), DataType::Float64),
        max(reg(2), DataType::Int32),
        sum(reg(4), decimal()),
    ];
    let by = vec![(reg(0), DataType::Int64), (reg(1), DataType::Utf8)];
    let average = binary(BinaryOp::Div, convert(reg(3), Ty::F64), convert(reg(2), Ty::F64));
    let outputs = vec![
        (reg(1), DataType::Utf8),
        (reg(0), DataType::Int64),
        (reg(6), decimal()),
        (average, DataType::Float64),
        (reg(4), DataType::Float64),
        (reg(5), DataType::Int32),
    ];
    let keys = vec![descending(reg(3)), ascending(reg(0)), ascending(reg(1))];
    fragment(&[5], vec![aggregates(0, vec![], by, calls), top(Source::Output(0), having, keys, k, outputs)])
}

#[test]
fn first_groups_of_every_kind_of_grouping() {
    let having = || vec![filter(binary(BinaryOp::Gt, reg(2), int(1, Ty::I64)))];
    // Places by key, hashed ones, and a table of so many places that a threshold is drawn.
    for (rows, keys, spread) in [(3_000, 5, 1), (5_000, 900, SPREAD), (20_000, 9_000, SPREAD)] {
        let table = facts(rows, keys, spread);
        let report = check_all_orders(&first_groups(Some(20), having()), &[&table]);
        assert_eq!(report.reruns, 0);
    }
    let engine = engine(LaneOrder::Forward);
    for (rows, k, having) in
        [(0, Some(5), vec![]), (4_000, Some(0), vec![]), (4_000, Some(1 << 20), vec![]), (4_000, None, having())]
    {
        check_rows_of(&engine, &first_groups(k, having), &[&facts(rows, 500, SPREAD)]);
    }
}

#[test]
fn first_rows_of_joins() {
    let (rows, keys) = (SAMPLED + 5_000, 700);
    for (kind, spread, semi) in [
        (JoinKind::Inner, 1, JoinKind::Semi),
        (JoinKind::Left, SPREAD, JoinKind::Anti),
        (JoinKind::Inner, SPREAD, JoinKind::Semi),
    ] {
        let (facts, dimension) = (facts(rows, keys, spread), dimension(keys as usize / 2, spread));
        let build = |payload: Vec<Expr>, steps: Vec<Step>| Pipeline {
            source: Source::Table(1),
            steps,
            sink: Sink::Build { keys: vec![reg(0)], payload },
        };
        let few = filter(binary(BinaryOp::Lt, reg(2), int(300, Ty::I64)));
        let steps = vec![
            probe(0, vec![reg(0)], kind),
            probe(1, vec![reg(0)], semi),
            filter(binary(BinaryOp::Lt, reg(2), int(90_000, Ty::I32))),
        ];
        let outputs = vec![
            (reg(5), DataType::Utf8),
            (binary(BinaryOp::Add, reg(6), convert(reg(2), Ty::I64)), DataType::Int64),
            (reg(1), DataType::Utf8),
            (binary(BinaryOp::Mul, reg(4), int(1 << 20, Ty::I128)), decimal()),
        ];
        let keys = vec![ascending(reg(5)), descending(reg(6)), ascending(reg(3))];
        let root = top(Source::Table(0), steps, keys, Some(90), outputs);
        let pipelines = vec![build(vec![reg(1), reg(2)], vec![]), build(vec![], vec![few]), root];
        let fragment = fragment(&[5, 3], pipelines);
        let report = check_all_orders(&fragment, &[&facts, &dimension]);
        assert!(report.top.unwrap().contains("rows drawn"));
    }
}

#[test]
fn what_raises_below_the_first_rows_raises() {
    let table = facts(4_000, 500, SPREAD);
    let engine = engine(LaneOrder::Forward);
    let raises = |fragment: &Fragment| matches!(run(&engine, fragment, &[&table]), Err(EngineError::Evaluation(_)));
    let by = vec![(reg(0), DataType::Int64)];
    let groups = |outputs: Vec<(Expr, DataType)>, steps: Vec<Step>| {
        let calls = vec![count(), min(reg(2), DataType::Int32)];
        let root = top(Source::Output(0), steps, vec![descending(reg(1)), ascending(reg(0))], Some(3), outputs);
        fragment(&[5], vec![aggregates(0, vec![], by.clone(), calls), root])
    };
    // One group has the divisor; it is not among the first by its number of rows.
    let least = binary(BinaryOp::Add, reg(0), int(40, Ty::I64));
    let quotient =
        binary(BinaryOp::Div, int(1, Ty::I64), binary(BinaryOp::Sub, least, int(9 * i128::from(SPREAD), Ty::I64)));
    assert!(raises(&groups(vec![(quotient.clone(), DataType::Int64)], vec![])));
    let others = filter(binary(BinaryOp::Gt, reg(0), int(9 * i128::from(SPREAD), Ty::I64)));
    check_rows_of(&engine, &groups(vec![(quotient, DataType::Int64)], vec![others]), &[&table]);
    // A sum that leaves its type.
    let wide = MemoryTable::new(
        "wide",
        vec![
            ("k", numbers::<Int64Type>(64, |row| Some(row as i64 % 9))),
            ("v", numbers::<Int64Type>(64, |row| Some(if row % 9 == 0 { i64::MAX / 2 } else { row as i64 }))),
        ],
    );
    let inner = aggregates(0, vec![], by.clone(), vec![count(), sum(reg(1), DataType::Int64)]);
    let root = top(Source::Output(0), vec![], vec![descending(reg(0))], Some(2), vec![(reg(2), DataType::Int64)]);
    let sums = fragment(&[2], vec![inner, root]);
    assert!(matches!(run(&engine, &sums, &[&wide]), Err(EngineError::Evaluation(_))));
}
