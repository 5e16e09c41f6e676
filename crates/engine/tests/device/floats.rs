//! Floats: sums, order with NaN and both zeros, arithmetic, conversions.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type};
use warpcube_column::EncodingChoice;
use warpcube_engine::{AggregateCall, BinaryOp, Expr, JoinKind, Ty, UnaryOp};
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
    let of_one = [
        UnaryOp::Negate,
        UnaryOp::Absolute,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Round,
        UnaryOp::RoundEven,
        UnaryOp::Truncate,
    ];
    for op in of_one.into_iter().chain([UnaryOp::Sign, UnaryOp::Root]) {
        calls.push(min(unary(op, reg(0)), DataType::Float64));
        calls.push(max(unary(op, reg(2)), DataType::Float32));
    }
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

/// NaNs of both signs, quiet and signalling, with and without a payload.
const NANS: [u64; 5] = [0x7ff8 << 48, 0xfff8 << 48, 0x7ff8_0000_0057_4331, 0xfff0_0000_2000_0000, u64::MAX];
/// The one that results have.
const NAN_BITS: u64 = 0x7ff8 << 48;

fn nans(rows: usize) -> MemoryTable {
    let value = |at: u64| match at % 9 {
        5 => f64::INFINITY,
        6 => -0.0,
        7 => 0.0,
        8 => 1.5,
        nan => f64::from_bits(NANS[nan as usize]),
    };
    MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(rows, |row| (row % 10 != 3).then(|| value(mixed(row, 1))))),
            ("b", numbers::<Float64Type>(rows, |row| Some(value(mixed(row, 2))))),
            ("c", numbers::<Float32Type>(rows, |row| Some(value(mixed(row, 3)) as f32))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
            ("g", numbers::<Int32Type>(rows, |row| Some(row as i32 % 7))),
        ],
    )
}

#[test]
fn nans_are_one_and_largest_in_all_encodings() {
    let table = nans(1_400);
    let nan = |bits: u64, ty: Ty| float(f64::from_bits(bits), ty);
    let equal = |left: Expr, right: Expr| AggregateCall { filter: Some(binary(BinaryOp::Eq, left, right)), ..count() };
    let less = |left: Expr, right: Expr| AggregateCall { filter: Some(binary(BinaryOp::Lt, left, right)), ..count() };
    let calls = || {
        vec![
            equal(reg(0), reg(1)),
            less(reg(0), reg(1)),
            equal(reg(0), nan(NANS[1], Ty::F64)),
            less(reg(1), nan(NANS[3], Ty::F64)),
            equal(reg(2), nan(NANS[4], Ty::F32)),
            less(convert(reg(0), Ty::F32), reg(2)),
            min(reg(0), DataType::Float64),
            max(reg(0), DataType::Float64),
            max(reg(2), DataType::Float32),
        ]
    };
    let by = |key: Expr, data_type: DataType| single(5, vec![], vec![(key, data_type)], calls());
    let below = filter(binary(BinaryOp::Ge, reg(0), float(1.0, Ty::F64)));
    let fragments = [
        by(reg(0), DataType::Float64),
        by(reg(2), DataType::Float32),
        by(reg(4), DataType::Int32),
        single(5, vec![below], vec![], calls()),
    ];
    for choice in EncodingChoice::ALL {
        let engine = engine(LaneOrder::Forward);
        load(&engine, &table, &[choice, choice, choice]);
        rehearse(&engine, &fragments, &[&table]);
        for fragment in &fragments {
            compare_on(&engine, fragment, &[&table]);
        }
    }
    fragments.iter().for_each(|fragment| _ = check_orders(fragment, &[&table]));
}

#[test]
fn nans_that_are_computed_are_one() {
    let table = nans(900);
    // Zero by zero, infinity less infinity, the remainder of infinity, and what a conversion keeps of them.
    let quotient = || binary(BinaryOp::Div, binary(BinaryOp::Sub, reg(1), reg(1)), float(0.0, Ty::F64));
    let remainder = || binary(BinaryOp::Rem, reg(1), float(0.0, Ty::F64));
    let narrow = || convert(unary(UnaryOp::Negate, quotient()), Ty::F32);
    let same = binary(BinaryOp::Eq, quotient(), unary(UnaryOp::Negate, remainder()));
    let calls = vec![
        AggregateCall { filter: Some(same), ..count() },
        max(quotient(), DataType::Float64),
        min(unary(UnaryOp::Negate, remainder()), DataType::Float64),
        min(narrow(), DataType::Float32),
        sum(unary(UnaryOp::Negate, quotient()), DataType::Float64),
    ];
    let keys = vec![(quotient(), DataType::Float64), (narrow(), DataType::Float32)];
    for groups in [vec![], keys] {
        let fragment = single(5, vec![], groups.clone(), calls.clone());
        check(&fragment, &[&table]);
        let (batch, _) = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap();
        assert_eq!(batch.num_rows(), 1, "all NaNs are one group");
        for column in batch.columns().iter().filter(|column| *column.data_type() == DataType::Float64) {
            assert_eq!(column.as_primitive::<Float64Type>().value(0).to_bits(), NAN_BITS);
        }
        for column in batch.columns().iter().filter(|column| *column.data_type() == DataType::Float32) {
            assert_eq!(column.as_primitive::<Float32Type>().value(0).to_bits(), 0x7fc0 << 16);
        }
    }
}

#[test]
fn extremes_of_infinities_are_not_taken_for_none() {
    let value = |row: usize| match row % 4 {
        0 => Some(f64::INFINITY),
        1 => Some(f64::NEG_INFINITY),
        2 => Some(f64::from_bits(NANS[4])),
        _ => None,
    };
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(1_200, value)),
            ("g", numbers::<Int32Type>(1_200, |row| Some(row as i32 % 4))),
        ],
    );
    let calls = vec![min(reg(0), DataType::Float64), max(reg(0), DataType::Float64), count_of(reg(0))];
    check_orders(&single(2, vec![], vec![(reg(1), DataType::Int32)], calls.clone()), &[&table]);
    for group in 0..4 {
        let only = filter(binary(BinaryOp::Eq, reg(1), int(group, Ty::I32)));
        check(&single(2, vec![only], vec![], calls.clone()), &[&table]);
    }
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
    assert!(report.program().is_some());
    for (ty, data_type) in [(Ty::I8, DataType::Int8), (Ty::U64, DataType::UInt64)] {
        let fragment = single(3, vec![], vec![], vec![min(convert(reg(0), ty), data_type)]);
        assert!(check(&fragment, &[&table]).program().is_none(), "{ty:?}");
    }
    for special in [f64::NAN, 9.3e18, f64::INFINITY] {
        let one = MemoryTable::new(
            "t",
            vec![("a", numbers::<Float64Type>(3, |row| Some(if row == 1 { special } else { 1.0 })))],
        );
        let fragment = single(1, vec![], vec![], vec![min(convert(reg(0), Ty::I64), DataType::Int64)]);
        assert!(check(&fragment, &[&one]).program().is_none(), "{special}");
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
fn floats_are_join_keys() {
    for column in [1, 2] {
        for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Anti] {
            let payload = if kind == JoinKind::Anti { vec![] } else { vec![reg(3)] };
            let mut calls = vec![count(), count_of(reg(column))];
            calls.extend((kind != JoinKind::Anti).then(|| count_of(reg(4))));
            let fragment = fragment(
                &[4, 4],
                vec![
                    builds(1, vec![], vec![reg(column)], payload),
                    aggregates(0, vec![probe(0, vec![reg(column)], kind)], vec![], calls),
                ],
            );
            check_orders(&fragment, &[&table(300), &table(120)]);
        }
    }
}
