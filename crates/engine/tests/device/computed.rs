//! Results whose columns are expressions over groups and aggregates, by every kind of grouping.

use arrow::datatypes::{DataType, Float64Type, Int64Type};
use warpcube_engine::{BinaryOp, Expr, Fragment, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const WIDE: DataType = DataType::Decimal128(38, 2);

/// Decimals whose sums are wider than 64 bits.
fn facts(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let value = |row: usize| (row % 13 != 4).then_some((mixed(row, 9) as i64 >> 1).into());
    keyed_facts(rows, keys, spread, decimals(rows, 19, 2, value))
}

fn over(sum: usize, count: usize) -> Expr {
    binary(BinaryOp::Div, reg(sum), convert(reg(count), Ty::F64))
}

/// The averages of a float and of a decimal by these keys, with what is computed of them and the keys.
fn averages(by: &[(usize, DataType)]) -> Fragment {
    let groups: Vec<(Expr, DataType)> = by.iter().map(|(key, data_type)| (reg(*key), data_type.clone())).collect();
    let calls = vec![
        sum(reg(3), DataType::Float64),
        count_of(reg(3)),
        sum(reg(4), WIDE),
        count_of(reg(4)),
        max(reg(2), DataType::Int32),
    ];
    let first = groups.len();
    let decimal = binary(BinaryOp::Div, Expr::Rescale(Box::new(reg(first + 2)), 4), convert(reg(first + 3), Ty::I128));
    let keys = by.iter().enumerate().map(|(key, (_, data_type))| (reg(key), data_type.clone()));
    let columns = [
        (over(first, first + 1), DataType::Float64),
        (decimal, DataType::Decimal128(38, 6)),
        (reg(first + 2), WIDE),
        (binary(BinaryOp::Add, reg(first + 4), int(7, Ty::I32)), DataType::Int32),
        (unary(UnaryOp::IsNull, over(first, first + 1)), DataType::Boolean),
    ];
    Fragment { result: keys.chain(columns).collect(), ..single(5, vec![], groups, calls) }
}

#[test]
fn averages_are_computed_by_every_kind_of_grouping() {
    let key = (0, DataType::Int64);
    // Rows, keys and their distance: private cells, places by key, hashed ones.
    for (rows, keys, spread, text) in
        [(70_000, 3, 1, "mine["), (6_000, 2_500, 2, "== 0) p."), (5_000, 900, 1_000_000_007, "wc_table_enter")]
    {
        let report = check_orders(&averages(std::slice::from_ref(&key)), &[&facts(rows, keys, spread)]);
        let source = report.program().unwrap().source().to_string();
        assert!(source.contains(text) && source.contains("compute_groups"), "{keys} keys: no {text:?} in\n{source}");
    }
    check_orders(&averages(&[]), &[&facts(5_000, 9, 1)]);
    check_orders(&averages(&[(1, DataType::Utf8), key.clone()]), &[&facts(3_000, 40, 1)]);
    // Keys of several words.
    check_orders(&averages(&[(3, DataType::Float64), key.clone()]), &[&facts(3_000, 300, i64::MAX / 512)]);
    for by in [vec![], vec![key]] {
        check(&averages(&by), &[&facts(0, 9, 1)]);
    }
}

#[test]
fn averages_of_groups_of_a_union() {
    let mut fragment = averages(&[(0, DataType::Int64)]);
    fragment.pipelines.push(fragment.pipelines[0].clone());
    fragment.unions.push(0..2);
    check_orders(&fragment, &[&facts(4_000, 200, 3)]);
}

#[test]
fn copies_of_cells_are_added_up() {
    let calls = vec![sum(reg(2), DataType::Int64), count_of(reg(2))];
    let average = binary(BinaryOp::Div, convert(reg(1), Ty::F64), convert(reg(2), Ty::F64));
    let result = vec![(reg(0), DataType::Int64), (average, DataType::Float64), (reg(1), DataType::Int64)];
    let fragment = Fragment { result, ..single(5, vec![], vec![(reg(0), DataType::Int64)], calls) };
    for order in ORDERS {
        let engine = engine(order).with_tuning("shared_bytes=0,private_bytes=0".parse().unwrap());
        let report = check_on(&engine, &fragment, &[&facts(40_000, 60, 1)]);
        assert!(report.program().unwrap().source().contains("b0 += "), "cells have copies");
    }
}

#[test]
fn averages_of_exact_sums_have_all_bits() {
    let near = |row: usize| match row % 3 {
        0 => 1e12,
        1 => -1e12,
        _ => mixed(row, 7) as i64 as f64 * 2f64.powi(-52),
    };
    let wild = |row: usize| match mixed(row, 5) % 11 {
        0 => -0.0,
        1 => f64::from_bits(mixed(row, 6) >> 12),
        2 => -1e300,
        _ => f64::from_bits(mixed(row, 7)).clamp(-1e299, 1e299),
    };
    let special =
        |row: usize| [f64::NAN, f64::INFINITY, -f64::INFINITY, 1.0, f64::MAX, -0.0][mixed(row, 8) as usize % 6];
    let values: [&dyn Fn(usize) -> f64; 3] = [&near, &wild, &special];
    for value in values {
        for groups in [1, 30, 900] {
            let table = MemoryTable::new(
                "t",
                vec![
                    ("a", numbers::<Float64Type>(3_000, |row| (row % 9 != 4).then(|| value(row)))),
                    ("g", numbers::<Int64Type>(3_000, |row| Some((mixed(row, 3) % groups) as i64 * 7))),
                ],
            );
            let by = if groups == 1 { vec![] } else { vec![(reg(1), DataType::Int64)] };
            let first = by.len();
            let keys: Vec<_> = by.iter().map(|(_, data_type)| (reg(0), data_type.clone())).collect();
            let columns = [(over(first, first + 1), DataType::Float64), (reg(first), DataType::Float64)];
            let result = keys.into_iter().chain(columns).collect();
            let fragment = Fragment { result, ..single(2, vec![], by, vec![exact_sum(reg(0)), count_of(reg(0))]) };
            check_on(&engine(LaneOrder::Seeded(groups)), &fragment, &[&table]);
        }
    }
}

#[test]
fn what_leaves_its_type_raises() {
    let value = |row: usize| Some(if row % 3 == 0 { i64::MAX / 2 } else { row as i64 });
    let table = MemoryTable::new(
        "wide",
        vec![("k", numbers::<Int64Type>(64, |row| Some(row as i64 % 3))), ("v", numbers::<Int64Type>(64, value))],
    );
    for by in [vec![], vec![(reg(0), DataType::Int64)]] {
        let result = vec![(reg(by.len()), DataType::Int64)];
        let fragment = Fragment { result, ..single(2, vec![], by, vec![sum(reg(1), DataType::Int64)]) };
        check_orders(&fragment, &[&table]);
    }
}
