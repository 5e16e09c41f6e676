//! Integers that leave their type raise, unless bounds prove that none does or the row is left out.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt64Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, EngineError, Expr, Fragment, JoinKind, Overflow, RunReport, Ty, UnaryOp,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const TYPES: [(Ty, DataType); 8] = [
    (Ty::I8, DataType::Int8),
    (Ty::I16, DataType::Int16),
    (Ty::I32, DataType::Int32),
    (Ty::I64, DataType::Int64),
    (Ty::U8, DataType::UInt8),
    (Ty::U16, DataType::UInt16),
    (Ty::U32, DataType::UInt32),
    (Ty::U64, DataType::UInt64),
];

/// Whether the fragment raised, where its outcome is the interpreter's.
#[track_caller]
fn raises(fragment: &Fragment, tables: &[&MemoryTable]) -> bool {
    check(fragment, tables).program().is_none()
}

/// How often a program raises: the library defines the call.
fn raising_places(report: &RunReport) -> usize {
    report.program().unwrap().source().matches("wc_raise(").count() - 1
}

/// Pairs of values at the edges of a type's sums, differences and products.
fn pairs(ty: Ty) -> Vec<(i128, i128)> {
    let (low, high) = ty.bounds().unwrap();
    let root = 1i128 << (128 - high.leading_zeros()).div_ceil(2);
    let least = if low < 0 { -1 } else { 0 };
    vec![
        (high, 1),
        (high - 1, 1),
        (low, 1),
        (low + 1, 1),
        (low, low),
        (high, high),
        (high, least),
        (low, least),
        (root, root),
        (root - 1, root),
        (root, root / 2 - 1),
        (5, 3),
        (3, 5),
        (0, low),
    ]
}

fn of_type(data_type: &DataType, values: &[i128]) -> ArrayRef {
    let exact = match data_type.is_signed_integer() {
        true => numbers::<Int64Type>(values.len(), |row| Some(values[row] as i64)),
        false => numbers::<UInt64Type>(values.len(), |row| Some(values[row] as u64)),
    };
    cast(&exact, data_type).unwrap()
}

#[test]
fn each_row_at_the_edge_raises_or_fits() {
    let rows = pairs(Ty::I64).len();
    let names: Vec<String> = (0..TYPES.len() * 2).map(|column| format!("c{column}")).collect();
    let column = |(column, name): (usize, &String)| {
        let (ty, data_type) = &TYPES[column / 2];
        let side = |(left, right): &(i128, i128)| if column % 2 == 0 { *left } else { *right };
        let values: Vec<i128> = pairs(*ty).iter().map(side).collect();
        (name.clone(), of_type(data_type, &values))
    };
    let mut columns: Vec<(String, ArrayRef)> = names.iter().enumerate().map(column).collect();
    columns.push(("id".into(), numbers::<Int32Type>(rows, |row| Some(row as i32))));
    let id = columns.len() - 1;
    let table = MemoryTable::new("t", columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect());
    // One program for all types, operators and rows: which is meant are arguments.
    let chosen = |expr: Expr, number: usize, wanted: usize, row: usize, ty: Ty| {
        let is_it = binary(BinaryOp::Eq, int(number as i128, Ty::I32), int(wanted as i128, Ty::I32));
        let is_row = binary(BinaryOp::Eq, reg(id), int(row as i128, Ty::I32));
        Expr::Case(vec![(binary(BinaryOp::And, is_it, is_row), expr)], Box::new(null(ty)))
    };
    let operations = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul];
    let fragment = |wanted: usize, row: usize| {
        let mut calls = Vec::new();
        for (index, (ty, data_type)) in TYPES.iter().enumerate() {
            let (left, right) = (reg(2 * index), reg(2 * index + 1));
            let mut all: Vec<Expr> = operations.iter().map(|op| binary(*op, left.clone(), right.clone())).collect();
            all.extend([UnaryOp::Negate, UnaryOp::Absolute].map(|op| unary(op, left.clone())));
            for expr in all {
                let expr = chosen(expr, calls.len(), wanted, row, *ty);
                calls.push(min(expr, data_type.clone()));
            }
        }
        single(id + 1, vec![], vec![], calls)
    };
    let engine = engine(LaneOrder::Forward);
    check_on(&engine, &fragment(0, 11), &[&table]);
    for wanted in 0..TYPES.len() * 5 {
        for row in 0..rows {
            compare_on(&engine, &fragment(wanted, row), &[&table]);
        }
    }
}

#[test]
fn what_bounds_prove_is_not_checked() {
    // Prices and discounts as those of a star schema: the product fits 32 bits, its sum 64.
    let rows = 3_000;
    let table = |largest: i32| {
        MemoryTable::new(
            "t",
            vec![
                ("price", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 10_000_000) as i32 + 1))),
                ("discount", numbers::<Int32Type>(rows, |row| Some(if row == 9 { largest } else { row as i32 % 11 }))),
                ("revenue", numbers::<Int64Type>(rows, |row| Some((mixed(row, 2) % (1 << 40)) as i64))),
                ("g", numbers::<Int32Type>(rows, |row| Some(row as i32 % 40))),
            ],
        )
    };
    let product = || binary(BinaryOp::Mul, reg(0), reg(1));
    let difference = || binary(BinaryOp::Sub, reg(2), convert(product(), Ty::I64));
    for groups in [vec![], vec![(reg(3), DataType::Int32)]] {
        let calls = vec![sum(product(), DataType::Int64), sum(difference(), DataType::Int64)];
        let fragment = single(4, vec![], groups, calls);
        let report = check(&fragment, &[&table(10)]);
        assert_eq!(raising_places(&report), 0);
        let wraps = Fragment { overflow: Overflow::Wrap, ..fragment.clone() };
        assert_eq!(check(&wraps, &[&table(10)]).program().unwrap().hash(), report.program().unwrap().hash());
        // Bounds that prove nothing, of values that overflow nowhere: one test.
        let guarded = binary(BinaryOp::Lt, reg(1), int(11, Ty::I32));
        let checked = Expr::Case(vec![(guarded, product())], Box::new(int(0, Ty::I32)));
        let fragment = single(4, vec![], vec![], vec![sum(checked, DataType::Int64)]);
        assert_eq!(raising_places(&check(&fragment, &[&table(1 << 20)])), 1);
    }
    assert!(raises(&single(4, vec![], vec![], vec![sum(product(), DataType::Int64)]), &[&table(1 << 20)]));
}

/// Rows whose products overflow, one of a hundred, and a mark of those.
fn few_overflow(rows: usize) -> MemoryTable {
    let overflows = |row: usize| mixed(row, 5) % 100 == 3;
    MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Int32Type>(rows, |row| Some(if overflows(row) { i32::MAX } else { row as i32 % 30_000 }))),
            ("mark", numbers::<Int32Type>(rows, |row| Some(overflows(row).into()))),
            ("n", numbers::<Int32Type>(rows, |row| (!overflows(row)).then_some(2))),
            ("g", numbers::<Int32Type>(rows, |row| Some(row as i32 % 7))),
            ("rare", numbers::<Int32Type>(rows, |row| Some((!overflows(row) && row % 50 == 0).into()))),
        ],
    )
}

#[test]
fn rows_that_are_left_out_raise_nothing() {
    let table = few_overflow(5_000);
    let unmarked = || binary(BinaryOp::Eq, reg(1), int(0, Ty::I32));
    let square = || binary(BinaryOp::Mul, reg(0), reg(0));
    let by = |grouped: bool| if grouped { vec![(reg(3), DataType::Int32)] } else { vec![] };
    let dropping = |grouped: bool| {
        // Most rows are worked on in place, few come through the queue.
        let dropped = [unmarked(), binary(BinaryOp::Eq, reg(4), int(1, Ty::I32))];
        dropped.map(|dropped| single(5, vec![filter(dropped)], by(grouped), vec![sum(square(), DataType::Int64)]))
    };
    let others = |grouped: bool| {
        let filtered = AggregateCall { filter: Some(unmarked()), ..sum(square(), DataType::Int64) };
        let counted = AggregateCall { filter: Some(unmarked()), ..count_of(square()) };
        // NULL times anything is NULL.
        let nulled = binary(BinaryOp::Mul, reg(0), reg(2));
        let small = binary(BinaryOp::And, unmarked(), binary(BinaryOp::Gt, square(), int(100, Ty::I32)));
        [
            single(5, vec![], by(grouped), vec![filtered, count()]),
            single(5, vec![], by(grouped), vec![counted]),
            single(5, vec![], by(grouped), vec![sum(nulled, DataType::Int64)]),
            single(5, vec![filter(small)], by(grouped), vec![count()]),
        ]
    };
    let raising = |grouped: bool| single(5, vec![], by(grouped), vec![sum(square(), DataType::Int64)]);
    let all = |grouped| dropping(grouped).into_iter().chain(others(grouped)).chain([raising(grouped)]);
    rehearse(&engine(LaneOrder::Forward), &[false, true].into_iter().flat_map(all).collect::<Vec<_>>(), &[&table]);
    for grouped in [false, true] {
        for fragment in dropping(grouped) {
            check_orders(&fragment, &[&table]);
            assert!(!raises(&fragment, &[&table]));
        }
        for fragment in others(grouped) {
            assert!(!raises(&fragment, &[&table]));
        }
        assert!(raises(&raising(grouped), &[&table]));
    }
}

#[test]
fn rows_without_a_partner_raise_nothing() {
    let table = few_overflow(4_000);
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int32Type>(40, |row| Some(if row == 0 { 0 } else { row as i32 * 3 }))),
            ("v", numbers::<Int32Type>(40, |row| Some(row as i32))),
        ],
    );
    let square = binary(BinaryOp::Mul, reg(0), reg(0));
    for kind in [JoinKind::Inner, JoinKind::Semi] {
        let payload = if kind == JoinKind::Inner { vec![reg(1)] } else { vec![] };
        let fragment = fragment(
            &[5, 2],
            vec![
                builds(1, vec![], vec![reg(0)], payload),
                aggregates(0, vec![probe(0, vec![reg(1)], kind)], vec![], vec![sum(square.clone(), DataType::Int64)]),
            ],
        );
        check_orders(&fragment, &[&table, &side]);
        assert!(!raises(&fragment, &[&table, &side]));
    }
}

#[test]
fn only_the_total_of_a_sum_overflows() {
    let rows = 1_800;
    // Groups: one, few, some thousand places with few rows, keys far apart.
    let keys: [fn(usize) -> i64; 4] =
        [|_| 0, |row| row as i64 / 2 % 5, |row| row as i64 / 2, |row| (row as i64 / 2) << 40];
    let calls = || vec![sum(reg(0), DataType::Int64), sum(reg(1), DataType::UInt64), count_of(reg(0))];
    for (number, key) in keys.iter().enumerate() {
        let table = |total: i64| {
            let values = numbers::<Int64Type>(rows, |row| match row / 2 {
                0 => Some(if row == 0 { total } else { 0 }),
                pair if pair % 9 == 4 => None,
                _ if row % 2 == 1 => Some(i64::MAX),
                _ => Some(-i64::MAX),
            });
            let large = (total as u64) << 1;
            let unsigned = numbers::<UInt64Type>(rows, |row| Some(if row == 0 { large } else { 0 }));
            MemoryTable::new(
                "t",
                vec![("v", values), ("u", unsigned), ("g", numbers::<Int64Type>(rows, |row| Some(key(row))))],
            )
        };
        let by = if number == 0 { vec![] } else { vec![(reg(2), DataType::Int64)] };
        let fragment = single(3, vec![], by, calls());
        check_orders(&fragment, &[&table(i64::MAX)]);
        assert!(!raises(&fragment, &[&table(i64::MAX)]));
        assert!(!raises(&fragment, &[&table(i64::MIN)]));
    }
    let over = |values: ArrayRef, data_type: DataType, overflow: Overflow| {
        let fragment = single(1, vec![], vec![], vec![sum(reg(0), data_type)]);
        raises(&Fragment { overflow, ..fragment }, &[&MemoryTable::new("t", vec![("v", values)])])
    };
    let signed = |first: i64, rest: i64| numbers::<Int64Type>(9, |row| Some(if row == 0 { first } else { rest }));
    let unsigned = |first: u64, rest: u64| numbers::<UInt64Type>(9, |row| Some(if row == 0 { first } else { rest }));
    assert!(over(signed(i64::MAX - 7, 1), DataType::Int64, Overflow::Raise));
    assert!(!over(signed(i64::MAX - 8, 1), DataType::Int64, Overflow::Raise));
    assert!(over(signed(i64::MIN + 7, -1), DataType::Int64, Overflow::Raise));
    assert!(!over(signed(i64::MIN + 8, -1), DataType::Int64, Overflow::Raise));
    assert!(over(unsigned(u64::MAX - 7, 1), DataType::UInt64, Overflow::Raise));
    assert!(!over(unsigned(u64::MAX - 8, 1), DataType::UInt64, Overflow::Raise));
    assert!(!over(signed(i64::MAX, 1), DataType::Int64, Overflow::Wrap));
}

#[test]
fn an_overflow_is_the_cpus_to_tell() {
    let table = few_overflow(300);
    let square = binary(BinaryOp::Mul, reg(0), reg(0));
    let fragment = single(5, vec![], vec![], vec![sum(square, DataType::Int64)]);
    let error = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap_err();
    assert!(matches!(error, EngineError::Evaluation("an overflow")) && error.falls_back(), "{error}");
}
