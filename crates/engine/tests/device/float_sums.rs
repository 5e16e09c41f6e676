//! Exact sums of floats: the bits of the plain-Rust accumulator, in every order, in every kind of grouping.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type};
use warpcube_engine::{AggregateCall, BinaryOp, BindingCache, EngineError, FloatSum, RunOptions, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Values whose sum in any order of doubles is wrong, of exponents that a guessed window holds.
fn near(row: usize, seed: u64) -> f64 {
    match row % 4 {
        0 => 1e12,
        1 => -1e12,
        2 => (mixed(row, seed) as i64 >> 12) as f64 * 2f64.powi(-45),
        _ => mixed(row, seed) as f64 * 1e-15,
    }
}

/// Doubles of any exponent, subnormals and both zeros among them.
fn wild(row: usize, seed: u64) -> f64 {
    let value = f64::from_bits(mixed(row, seed));
    match row % 7 {
        0 => -0.0,
        1 => f64::from_bits(mixed(row, seed) >> 12),
        _ if value.is_finite() => value * 1e-10,
        _ => 1e300,
    }
}

fn table(rows: usize, groups: usize, value: impl Fn(usize, u64) -> f64) -> MemoryTable {
    MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(rows, |row| (row % 9 != 4).then(|| value(row, 1)))),
            ("b", numbers::<Float32Type>(rows, |row| Some(value(row, 2) as f32 / 3.0))),
            ("g", numbers::<Int32Type>(rows, |row| Some((mixed(row, 3) % groups as u64) as i32))),
        ],
    )
}

fn calls() -> Vec<AggregateCall> {
    let product = binary(BinaryOp::Mul, reg(0), convert(reg(1), Ty::F64));
    let some = binary(BinaryOp::Gt, reg(1), float(0.0, Ty::F32));
    vec![
        exact_sum(reg(0)),
        exact_sum(convert(reg(1), Ty::F64)),
        exact_sum(product),
        AggregateCall { filter: Some(some), ..exact_sum(reg(0)) },
        count_of(reg(0)),
    ]
}

#[test]
fn sums_have_the_same_bits_in_all_groupings_and_orders() {
    let by_group = || vec![(reg(2), DataType::Int32)];
    for (rows, groups) in [(5_000, 1), (5_000, 40), (70_000, 2), (20_000, 100)] {
        let by = if groups == 1 { vec![] } else { by_group() };
        check_orders(&single(3, vec![], by, calls()), &[&table(rows, groups, near)]);
    }
}

#[test]
fn columns_of_one_kind_fit_the_guessed_window() {
    let calls = vec![exact_sum(reg(0)), exact_sum(convert(reg(1), Ty::F64))];
    assert_eq!(check(&single(3, vec![], vec![], calls), &[&table(5_000, 1, near)]).reruns, 0);
}

#[test]
fn hashed_groups_and_keys_of_several_words() {
    let keys = |row: usize, seed| Some((mixed(row % 300, seed) as i64) as f64);
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Float64Type>(3_000, |row| Some(near(row, 1)))),
            ("k", numbers::<Float64Type>(3_000, |row| keys(row, 5))),
            ("l", numbers::<Float64Type>(3_000, |row| keys(row, 6))),
        ],
    );
    let by = |keys: &[usize]| keys.iter().map(|key| (reg(*key), DataType::Float64)).collect::<Vec<_>>();
    for keys in [&[1][..], &[1, 2]] {
        check_orders(&single(3, vec![], by(keys), vec![exact_sum(reg(0))]), &[&table]);
    }
}

#[test]
fn values_outside_of_the_window_run_again_with_all_limbs() {
    let calls = || vec![exact_sum(reg(0)), exact_sum(convert(reg(1), Ty::F64)), count()];
    for by in [vec![], vec![(reg(2), DataType::Int32)]] {
        let report = check_orders(&single(3, vec![], by, calls()), &[&table(3_000, 30, wild)]);
        assert_eq!(report.reruns, 1);
    }
    // What was found out is remembered.
    let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::default());
    let (table, fragment) = (table(3_000, 30, wild), single(3, vec![], vec![], calls()));
    let again = || {
        let options = RunOptions::default();
        engine.run_again(&fragment, &cache, &requests(&fragment, &[&table]), &options).unwrap().1.reruns
    };
    assert_eq!([again(), again()], [1, 0]);
}

#[test]
fn sums_are_those_of_the_accumulator() {
    for value in [near, wild] {
        let table = table(2_000, 1, value);
        let fragment = single(3, vec![], vec![], vec![exact_sum(reg(0))]);
        let (batch, _) = run(&engine(LaneOrder::Seeded(3)), &fragment, &[&table]).unwrap();
        let mut sum = FloatSum::new();
        sum.extend((0..2_000).filter(|row| row % 9 != 4).rev().map(|row| value(row, 1)));
        assert_eq!(batch.column(0).as_primitive::<Float64Type>().value(0).to_bits(), sum.value().to_bits());
    }
}

#[test]
fn what_is_not_finite_and_zeros() {
    let special = |values: &[f64]| {
        let column = numbers::<Float64Type>(1_100, |row| Some(values[row % values.len()]));
        let table = MemoryTable::new("t", vec![("a", column)]);
        let fragment = single(1, vec![], vec![], vec![exact_sum(reg(0))]);
        check_orders(&fragment, &[&table]);
        let (batch, _) = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap();
        batch.column(0).as_primitive::<Float64Type>().value(0)
    };
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    assert!(special(&[1.0, nan]).is_nan() && special(&[infinity, 1.0, -infinity]).is_nan());
    assert_eq!([special(&[infinity, -1e300]), special(&[2.5, -infinity])], [infinity, -infinity]);
    assert_eq!([special(&[-0.0]), special(&[-0.0, 0.0]), special(&[1e-320, -1e-320])].map(f64::to_bits), [0; 3]);
    assert_eq!([special(&[f64::MAX]), special(&[-1e306])], [infinity, -1e306 * 1_100.0]);
}

#[test]
fn no_rows_are_null_and_no_float_is_refused() {
    let table = table(500, 1, near);
    let none = filter(binary(BinaryOp::Gt, reg(2), int(7, Ty::I32)));
    check(&single(3, vec![none], vec![], calls()), &[&table]);
    let error = run(&engine(LaneOrder::Forward), &single(3, vec![], vec![], vec![exact_sum(reg(2))]), &[&table]);
    assert!(matches!(error, Err(EngineError::Malformed(_))));
}

#[test]
fn many_sums_with_all_limbs_fit_shared_memory() {
    let product = |factor: usize| exact_sum(binary(BinaryOp::Mul, reg(0), float(factor as f64 + 0.5, Ty::F64)));
    let calls = (0..14).map(product).chain([count(), sum(reg(2), DataType::Int64)]).collect();
    let report = check_orders(&single(3, vec![], vec![], calls), &[&table(2_000, 9, wild)]);
    assert_eq!(report.reruns, 1);
}

#[test]
fn many_cells_are_added_up_some_at_a_time() {
    let shifted = |number: usize| {
        let shifted = binary(BinaryOp::Add, reg(2), int(number as i128, Ty::I32));
        if number % 3 == 0 { max(shifted, DataType::Int32) } else { sum(shifted, DataType::Int64) }
    };
    check_orders(&single(3, vec![], vec![], (0..150).map(shifted).collect()), &[&table(2_000, 90, near)]);
}
