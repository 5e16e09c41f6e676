//! Integers of all widths: sums, extremes, wrapping arithmetic, division, conversions. What raises instead of wrapping
//! is in `overflow`.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt64Type};
use warpcube_engine::{AggregateCall, BinaryOp, Expr, Fragment, Overflow, Ty, UnaryOp};

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

/// Two columns of each type over its whole range, edges included, then a row number: column 2 t and 2 t + 1 are of the
/// t-th type.
fn edges(rows: usize, nulls: bool) -> MemoryTable {
    let names: Vec<String> = (0..TYPES.len() * 2).map(|column| format!("c{column}")).collect();
    let mut columns: Vec<(&str, ArrayRef)> = names
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let (ty, data_type) = &TYPES[column / 2];
            (name.as_str(), edge_column(*ty, data_type, rows, column as u64, nulls))
        })
        .collect();
    columns.push(("id", numbers::<Int32Type>(rows, |row| Some(row as i32))));
    MemoryTable::new("t", columns)
}

fn edge_column(ty: Ty, data_type: &DataType, rows: usize, seed: u64, nulls: bool) -> ArrayRef {
    let (low, high) = ty.bounds().unwrap();
    let value = |row: usize| {
        let spread = mixed(row, seed);
        match spread % 6 {
            0 => low,
            1 => high,
            2 => low + 1 + i128::from(spread >> 32) % 3,
            3 => (i128::from(spread >> 40) % 7 - 3).clamp(low, high),
            _ => low + (i128::from(mixed(row, seed + 50)) % (high - low + 1)),
        }
    };
    let valid = |row: usize| !nulls || mixed(row, seed + 90) % 5 != 0;
    let exact = match low < 0 {
        true => numbers::<Int64Type>(rows, |row| valid(row).then(|| value(row) as i64)),
        false => numbers::<UInt64Type>(rows, |row| valid(row).then(|| value(row) as u64)),
    };
    cast(&exact, data_type).unwrap()
}

const COLUMNS: usize = TYPES.len() * 2 + 1;

fn by_row() -> Vec<(Expr, DataType)> {
    vec![(reg(COLUMNS - 1), DataType::Int32)]
}

/// Calls for every type, of its type, Arrow type and two columns.
fn every_type(calls: impl Fn(Ty, &DataType, Expr, Expr) -> Vec<AggregateCall>) -> Vec<AggregateCall> {
    let of =
        |(index, (ty, data_type)): (usize, &(Ty, DataType))| calls(*ty, data_type, reg(2 * index), reg(2 * index + 1));
    TYPES.iter().enumerate().flat_map(of).collect()
}

fn sum_type(ty: Ty) -> DataType {
    if ty.bounds().unwrap().0 < 0 { DataType::Int64 } else { DataType::UInt64 }
}

fn wrapping(fragment: Fragment) -> Fragment {
    Fragment { overflow: Overflow::Wrap, ..fragment }
}

#[test]
fn every_width_is_summed_and_compared() {
    let calls = every_type(|ty, data_type, a, b| {
        let less = binary(BinaryOp::Lt, a.clone(), b.clone());
        vec![
            AggregateCall { filter: Some(less), ..sum(a.clone(), sum_type(ty)) },
            min(a.clone(), data_type.clone()),
            max(b, data_type.clone()),
            count_of(a),
        ]
    });
    for nulls in [true, false] {
        check(&wrapping(single(COLUMNS, vec![], vec![], calls.clone())), &[&edges(2_100, nulls)]);
    }
}

#[test]
fn arithmetic_wraps_at_the_operands_width() {
    let calls = every_type(|ty, data_type, a, b| {
        let of = |op| min(binary(op, a.clone(), b.clone()), data_type.clone());
        let negated = min(unary(UnaryOp::Negate, a.clone()), data_type.clone());
        // Magnitudes of the smallest integers raise under every rule.
        let smallest = ty.bounds().unwrap().0;
        let magnitude = unary(UnaryOp::Absolute, a.clone());
        let magnitude = guarded(binary(BinaryOp::Ne, a.clone(), int(smallest, ty)), magnitude, ty);
        vec![of(BinaryOp::Add), of(BinaryOp::Sub), of(BinaryOp::Mul), negated, min(magnitude, data_type.clone())]
    });
    check(&wrapping(single(COLUMNS, vec![], by_row(), calls)), &[&edges(700, true)]);
}

/// `then` where `when` holds, else NULL.
fn guarded(when: Expr, then: Expr, ty: Ty) -> Expr {
    Expr::Case(vec![(when, then)], Box::new(null(ty)))
}

#[test]
fn guarded_division_raises_nothing_and_unguarded_raises() {
    let calls = every_type(|ty, data_type, a, b| {
        let nonzero = binary(BinaryOp::Ne, b.clone(), int(0, ty));
        let safe = match ty.bounds().unwrap().0 {
            0 => nonzero,
            low => binary(BinaryOp::And, nonzero, binary(BinaryOp::Ne, a.clone(), int(low, ty))),
        };
        let of = |op| min(guarded(safe.clone(), binary(op, a.clone(), b.clone()), ty), data_type.clone());
        vec![of(BinaryOp::Div), of(BinaryOp::Rem)]
    });
    let table = edges(700, true);
    let report = check(&single(COLUMNS, vec![], by_row(), calls), &[&table]);
    assert!(report.program().is_some(), "guarded divisions do not raise");
    for (index, op) in [(0, BinaryOp::Div), (3, BinaryOp::Rem), (7, BinaryOp::Div)] {
        let unguarded = binary(op, reg(2 * index), reg(2 * index + 1));
        let fragment = single(COLUMNS, vec![], vec![], vec![min(unguarded, TYPES[index].1.clone())]);
        assert!(check(&fragment, &[&table]).program().is_none(), "{:?}", TYPES[index].0);
    }
}

#[test]
fn the_smallest_value_divided_by_minus_one_raises_and_leaves_no_remainder() {
    let table = MemoryTable::new(
        "t",
        vec![("a", numbers::<Int32Type>(1_030, |row| Some(if row == 7 { i32::MIN } else { 5 })))],
    );
    for (divisor, raises) in [(-1, true), (1, false), (-2, false)] {
        let quotient = binary(BinaryOp::Div, reg(0), int(divisor, Ty::I32));
        let report = check(&single(1, vec![], vec![], vec![min(quotient, DataType::Int32)]), &[&table]);
        assert_eq!(report.program().is_none(), raises, "divided by {divisor}");
        let remainder = binary(BinaryOp::Rem, reg(0), int(divisor, Ty::I32));
        let report = check(&single(1, vec![], vec![], vec![min(remainder, DataType::Int32)]), &[&table]);
        assert!(report.program().is_some(), "the remainder by {divisor}");
    }
}

#[test]
fn and_guards_its_right_side() {
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Int32Type>(3_000, |row| Some((mixed(row, 1) % 40) as i32 - 20))),
            ("b", numbers::<Int32Type>(3_000, |row| (row % 7 != 0).then_some((mixed(row, 2) % 5) as i32))),
        ],
    );
    let quotient = || binary(BinaryOp::Gt, binary(BinaryOp::Div, int(10, Ty::I32), reg(1)), int(3, Ty::I32));
    let nonzero = || binary(BinaryOp::Ne, reg(1), int(0, Ty::I32));
    let zero = || binary(BinaryOp::Eq, reg(1), int(0, Ty::I32));
    let positive = binary(BinaryOp::Gt, reg(0), int(0, Ty::I32));
    let guarded = [
        binary(BinaryOp::And, nonzero(), quotient()),
        binary(BinaryOp::Or, zero(), quotient()),
        binary(BinaryOp::And, binary(BinaryOp::And, positive.clone(), nonzero()), quotient()),
        binary(BinaryOp::Or, binary(BinaryOp::And, nonzero(), quotient()), positive),
    ];
    let calls = guarded.iter().map(|condition| AggregateCall { filter: Some(condition.clone()), ..count() }).collect();
    assert!(check(&single(2, vec![], vec![], calls), &[&table]).program().is_some());
    for (condition, raises) in [(guarded[0].clone(), false), (quotient(), true)] {
        let fragment = single(2, vec![filter(condition)], vec![], vec![count(), sum(reg(0), DataType::Int64)]);
        assert_eq!(check(&fragment, &[&table]).program().is_none(), raises);
    }
    let steps = vec![filter(nonzero()), filter(quotient())];
    assert!(check(&single(2, steps, vec![], vec![count()]), &[&table]).program().is_some());
}

#[test]
fn conversions_between_all_widths() {
    // Guarded by the bounds of the target, every conversion is exact; unguarded ones raise where values do not fit.
    let calls = every_type(|from, _, a, _| {
        let (low, high) = from.bounds().unwrap();
        let others = TYPES.iter().filter(|(to, _)| *to != from);
        let mut calls: Vec<AggregateCall> = others
            .map(|(to, result)| {
                let (to_low, to_high) = to.bounds().unwrap();
                let over = binary(BinaryOp::Ge, a.clone(), int(low.max(to_low), from));
                let under = binary(BinaryOp::Le, a.clone(), int(high.min(to_high), from));
                min(guarded(binary(BinaryOp::And, over, under), convert(a.clone(), *to), *to), result.clone())
            })
            .collect();
        calls.push(min(convert(a.clone(), Ty::F64), DataType::Float64));
        calls.push(min(convert(a.clone(), Ty::F32), DataType::Float32));
        calls.push(min(convert(a, Ty::Bool), DataType::Boolean));
        calls
    });
    let table = edges(600, true);
    assert!(check(&single(COLUMNS, vec![], by_row(), calls), &[&table]).program().is_some());
    for target in [0, 5] {
        // The key's bounds do not hold for rows that raise: nothing may be written past the groups.
        let (ty, data_type) = &TYPES[target];
        let by = vec![(convert(reg(6), *ty), data_type.clone())];
        assert!(check(&single(COLUMNS, vec![], by, vec![count()]), &[&table]).program().is_none(), "{ty:?}");
    }
}

#[test]
fn a_narrow_range_that_a_cast_leaves_raises_before_it_indexes() {
    let table = MemoryTable::new("t", vec![("a", numbers::<Int32Type>(2_000, |row| Some(100 + row as i32 % 200)))]);
    let fragment = single(1, vec![], vec![(convert(reg(0), Ty::I8), DataType::Int8)], vec![count()]);
    assert!(check_orders(&fragment, &[&table]).program().is_none());
}
