//! Floats: sums, order with NaN and both zeros, arithmetic, conversions.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type};
use warpcube_engine::{BinaryOp, EngineError, Expr, JoinKind, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPECIAL: [f64; 9] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.5, -2.75, 1e-300, 3e9];

fn table(rows: usize) -> MemoryTable {
    let value = |row: usize, seed: u64| SPECIAL[(mixed(row, seed) % 9) as usize];
    MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(rows, |row| (row % 8 != 1).then(|| value(row, 1)))),
            ("b", numbers::<Float64Type>(rows, |row| Some(value(row, 2)))),
            ("c", numbers::<Float32Type>(rows, |row| (row % 9 != 2).then(|| value(row, 3) as f32))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    )
}

#[test]
fn order_and_equality_with_nan_and_zeros() {
    let operators = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
    let compare = |left: Expr, right: Expr| {
        operators.map(|op| min(binary(op, left.clone(), right.clone()), DataType::Boolean)).to_vec()
    };
    let mut calls = compare(reg(0), reg(1));
    calls.extend(compare(reg(2), convert(reg(1), Ty::F32)));
    calls.extend(compare(reg(0), float(0.0, Ty::F64)));
    check(&single(4, vec![], vec![(reg(3), DataType::Int32)], calls), &[&table(600)]);
}

#[test]
fn arithmetic_of_both_widths() {
    let operators = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem];
    let mut calls: Vec<_> = operators.iter().map(|op| min(binary(*op, reg(0), reg(1)), DataType::Float64)).collect();
    let single_precision = convert(reg(1), Ty::F32);
    calls.extend(operators.iter().map(|op| min(binary(*op, reg(2), single_precision.clone()), DataType::Float32)));
    calls.push(min(unary(UnaryOp::Negate, reg(0)), DataType::Float64));
    calls.push(min(convert(reg(2), Ty::F64), DataType::Float64));
    check(&single(4, vec![], vec![(reg(3), DataType::Int32)], calls), &[&table(600)]);
}

#[test]
fn extremes_order_zeros_and_nan() {
    let extremes = |values: &'static [f64]| {
        let table =
            MemoryTable::new("t", vec![("a", numbers::<Float64Type>(1_100, |row| Some(values[row % values.len()])))]);
        let calls = vec![min(reg(0), DataType::Float64), max(reg(0), DataType::Float64)];
        let fragment = single(1, vec![], vec![], calls);
        let (batch, _) = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap();
        [0, 1].map(|column| batch.column(column).as_primitive::<Float64Type>().value(0).to_bits())
    };
    let bits = |low: f64, high: f64| [low.to_bits(), high.to_bits()];
    assert_eq!(extremes(&[0.0, -0.0]), bits(-0.0, 0.0));
    assert_eq!(extremes(&[-1.0, -3.5, -2.0]), bits(-3.5, -1.0));
    assert_eq!(extremes(&[1.0, f64::NAN, -1.0]), bits(-1.0, f64::NAN));
    assert_eq!(extremes(&[f64::INFINITY, f64::NEG_INFINITY]), bits(f64::NEG_INFINITY, f64::INFINITY));
}

#[test]
fn sums_by_group_and_overall() {
    let rows = 5_000;
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(rows, |row| (row % 8 != 1).then(|| mixed(row, 1) as f64 / 1e15))),
            ("b", numbers::<Float32Type>(rows, |row| Some(row as f32 * 0.25))),
            ("g", numbers::<Int32Type>(rows, |row| Some(row as i32 % 9))),
        ],
    );
    let calls = vec![
        sum(reg(0), DataType::Float64),
        sum(reg(1), DataType::Float64),
        sum(binary(BinaryOp::Mul, reg(0), convert(reg(1), Ty::F64)), DataType::Float64),
        max(reg(1), DataType::Float32),
    ];
    for groups in [vec![], vec![(reg(2), DataType::Int32)]] {
        check_orders(&single(3, vec![], groups, calls.clone()), &[&table]);
    }
    let tiny = MemoryTable::new("t", vec![("a", numbers::<Float64Type>(1_100, |row| Some(SPECIAL[row % 2])))]);
    check(&single(1, vec![], vec![], vec![sum(reg(0), DataType::Float64)]), &[&tiny]);
}

#[test]
fn conversions_to_integers_truncate_and_raise() {
    let rows = 600;
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(rows, |row| (row % 8 != 1).then_some((row as f64 - 300.0) * 0.7))),
            ("c", numbers::<Float32Type>(rows, |row| Some(row as f32 * 0.4))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let calls = vec![
        min(convert(reg(0), Ty::I64), DataType::Int64),
        min(convert(reg(0), Ty::I16), DataType::Int16),
        min(convert(reg(1), Ty::U8), DataType::UInt8),
        min(convert(reg(1), Ty::U64), DataType::UInt64),
        min(convert(reg(0), Ty::Bool), DataType::Boolean),
    ];
    let report = check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&table]);
    assert!(report.program.is_some());
    for (ty, data_type) in [(Ty::I8, DataType::Int8), (Ty::U64, DataType::UInt64)] {
        let fragment = single(3, vec![], vec![], vec![min(convert(reg(0), ty), data_type)]);
        assert!(check(&fragment, &[&table]).program.is_none(), "{ty:?}");
    }
    for special in [f64::NAN, 9.3e18, f64::INFINITY] {
        let one = MemoryTable::new(
            "t",
            vec![("a", numbers::<Float64Type>(3, |row| Some(if row == 1 { special } else { 1.0 })))],
        );
        let fragment = single(1, vec![], vec![], vec![min(convert(reg(0), Ty::I64), DataType::Int64)]);
        assert!(check(&fragment, &[&one]).program.is_none(), "{special}");
    }
}

#[test]
fn floats_as_group_keys() {
    let by = |keys: &[usize]| {
        let types = [DataType::Float64, DataType::Float64, DataType::Float32];
        keys.iter().map(|key| (reg(*key), types[*key].clone())).collect::<Vec<_>>()
    };
    let calls = || vec![count(), sum(reg(3), DataType::Int64)];
    for keys in [&[0][..], &[2], &[0, 1, 2]] {
        check_orders(&single(4, vec![], by(keys), calls()), &[&table(1_500)]);
    }
    // Both zeros are one group, and it is the positive one.
    let zeros =
        MemoryTable::new("t", vec![("a", numbers::<Float64Type>(10, |row| Some(if row < 9 { -0.0 } else { 0.0 })))]);
    let (batch, _) = run(&engine(LaneOrder::Forward), &single(1, vec![], by(&[0]), vec![count()]), &[&zeros]).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Float64Type>().values().to_vec(), [0.0]);
    assert!(batch.column(0).as_primitive::<Float64Type>().value(0).is_sign_positive());
}

#[test]
fn float_payload_with_nulls() {
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int32Type>(60, |row| Some(row as i32 * 3))),
            ("f", numbers::<Float64Type>(60, |row| (row % 4 != 1).then(|| SPECIAL[row % 9]))),
            ("g", numbers::<Float32Type>(60, |row| (row % 5 != 2).then(|| SPECIAL[(row + 3) % 9] as f32))),
        ],
    );
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let fragment = fragment(
            &[4, 3],
            vec![
                builds(1, vec![], vec![reg(0)], vec![reg(1), reg(2)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(3)], kind)],
                    vec![(reg(3), DataType::Int32)],
                    vec![
                        count_of(reg(4)),
                        count_of(reg(5)),
                        max(reg(4), DataType::Float64),
                        min(reg(5), DataType::Float32),
                    ],
                ),
            ],
        );
        check_orders(&fragment, &[&table(300), &side]);
    }
}

#[test]
fn floats_are_refused_as_join_keys() {
    let fragment = fragment(
        &[4, 4],
        vec![
            builds(1, vec![], vec![reg(1)], vec![]),
            aggregates(0, vec![probe(0, vec![reg(1)], JoinKind::Semi)], vec![], vec![count()]),
        ],
    );
    let error = run(&engine(LaneOrder::Forward), &fragment, &[&table(100), &table(50)]).unwrap_err();
    assert!(matches!(&error, EngineError::Unsupported(reason) if reason.contains("join on floats")), "{error}");
}
