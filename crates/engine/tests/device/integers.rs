//! Integers of all widths: sums, extremes, wrapping arithmetic, division, conversions.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt64Type};
use warpcube_engine::{BinaryOp, Expr, Ty, UnaryOp};

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

/// Two columns of a type over its whole range, edges included, and a row number.
fn edges(ty: Ty, data_type: &DataType, rows: usize, nulls: bool) -> MemoryTable {
    let (low, high) = ty.bounds().unwrap();
    let value = |row: usize, seed: u64| {
        let spread = mixed(row, seed);
        match spread % 6 {
            0 => low,
            1 => high,
            2 => low + 1 + i128::from(spread >> 32) % 3,
            3 => (i128::from(spread >> 40) % 7 - 3).clamp(low, high),
            _ => low + (i128::from(mixed(row, seed + 50)) % (high - low + 1)),
        }
    };
    let column = |seed: u64| -> ArrayRef {
        let valid = |row: usize| !nulls || mixed(row, seed + 9) % 5 != 0;
        match low < 0 {
            true => {
                cast(&numbers::<Int64Type>(rows, |row| valid(row).then(|| value(row, seed) as i64)), data_type).unwrap()
            }
            false => cast(&numbers::<UInt64Type>(rows, |row| valid(row).then(|| value(row, seed) as u64)), data_type)
                .unwrap(),
        }
    };
    let id = numbers::<Int32Type>(rows, |row| Some(row as i32));
    MemoryTable::new("t", vec![("a", column(1)), ("b", column(2)), ("id", id)])
}

fn sum_type(ty: Ty) -> DataType {
    if ty.bounds().unwrap().0 < 0 { DataType::Int64 } else { DataType::UInt64 }
}

#[test]
fn every_width_is_summed_and_compared() {
    for (ty, data_type) in &TYPES {
        let less = binary(BinaryOp::Lt, reg(0), reg(1));
        let calls = vec![
            sum(reg(0), sum_type(*ty)),
            min(reg(0), data_type.clone()),
            max(reg(1), data_type.clone()),
            count_of(reg(0)),
        ];
        let fragment = single(3, vec![filter(less)], vec![], calls);
        check(&fragment, &[&edges(*ty, data_type, 2_100, true)]);
        check(&fragment, &[&edges(*ty, data_type, 2_100, false)]);
    }
}

#[test]
fn arithmetic_wraps_at_the_operands_width() {
    for (ty, data_type) in &TYPES {
        let of = |op| binary(op, reg(0), reg(1));
        let calls = [of(BinaryOp::Add), of(BinaryOp::Sub), of(BinaryOp::Mul), unary(UnaryOp::Negate, reg(0))]
            .into_iter()
            .map(|expr| min(expr, data_type.clone()))
            .collect();
        check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&edges(*ty, data_type, 700, true)]);
    }
}

/// `then` where `when` holds, else NULL.
fn guarded(when: Expr, then: Expr, ty: Ty) -> Expr {
    Expr::Case(vec![(when, then)], Box::new(null(ty)))
}

#[test]
fn guarded_division_raises_nothing_and_unguarded_raises() {
    for (ty, data_type) in &TYPES {
        let nonzero = binary(BinaryOp::Ne, reg(1), int(0, *ty));
        let safe = match ty.bounds().unwrap().0 {
            0 => nonzero.clone(),
            low => binary(BinaryOp::And, nonzero.clone(), binary(BinaryOp::Ne, reg(0), int(low, *ty))),
        };
        let of = |op| guarded(safe.clone(), binary(op, reg(0), reg(1)), *ty);
        let calls = vec![min(of(BinaryOp::Div), data_type.clone()), min(of(BinaryOp::Rem), data_type.clone()), count()];
        let table = edges(*ty, data_type, 700, true);
        let report = check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&table]);
        assert!(report.program.is_some(), "{ty:?}: guarded divisions do not raise");
        let unguarded = binary(BinaryOp::Div, reg(0), reg(1));
        let report = check(&single(3, vec![], vec![], vec![min(unguarded, data_type.clone())]), &[&table]);
        assert!(report.program.is_none(), "{ty:?}: an unguarded division raises");
    }
}

#[test]
fn the_smallest_value_divided_by_minus_one_raises() {
    let table = MemoryTable::new(
        "t",
        vec![("a", numbers::<Int32Type>(1_030, |row| Some(if row == 7 { i32::MIN } else { 5 })))],
    );
    for (divisor, raises) in [(-1, true), (1, false), (-2, false)] {
        let quotient = binary(BinaryOp::Div, reg(0), int(divisor, Ty::I32));
        let report = check(&single(1, vec![], vec![], vec![min(quotient, DataType::Int32)]), &[&table]);
        assert_eq!(report.program.is_none(), raises, "divided by {divisor}");
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
    for (condition, raises) in [
        (binary(BinaryOp::And, nonzero(), quotient()), false),
        (binary(BinaryOp::Or, zero(), quotient()), false),
        (binary(BinaryOp::And, binary(BinaryOp::And, positive.clone(), nonzero()), quotient()), false),
        (binary(BinaryOp::Or, binary(BinaryOp::And, nonzero(), quotient()), positive), false),
        (quotient(), true),
    ] {
        let fragment = single(2, vec![filter(condition)], vec![], vec![count(), sum(reg(0), DataType::Int64)]);
        assert_eq!(check(&fragment, &[&table]).program.is_none(), raises);
    }
    let steps = vec![filter(nonzero()), filter(quotient())];
    assert!(check(&single(2, steps, vec![], vec![count()]), &[&table]).program.is_some());
}

#[test]
fn conversions_between_all_widths() {
    // Guarded by the bounds of the target, every conversion is exact; unguarded ones raise where values do not fit.
    for (from, data_type) in &TYPES {
        let (low, high) = from.bounds().unwrap();
        let table = edges(*from, data_type, 600, true);
        let mut calls = Vec::new();
        for (to, result) in TYPES.iter().filter(|(to, _)| to != from) {
            let (to_low, to_high) = to.bounds().unwrap();
            let over = binary(BinaryOp::Ge, reg(0), int(low.max(to_low), *from));
            let under = binary(BinaryOp::Le, reg(0), int(high.min(to_high), *from));
            let fits = binary(BinaryOp::And, over, under);
            calls.push(min(guarded(fits, convert(reg(0), *to), *to), result.clone()));
        }
        calls.push(min(convert(reg(0), Ty::F64), DataType::Float64));
        calls.push(min(convert(reg(0), Ty::F32), DataType::Float32));
        calls.push(min(convert(reg(0), Ty::Bool), DataType::Boolean));
        let report = check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&table]);
        assert!(report.program.is_some(), "{from:?}");
    }
    let table = edges(Ty::I64, &DataType::Int64, 600, true);
    for ty in [Ty::I8, Ty::U16, Ty::I32] {
        let narrow = convert(reg(0), ty);
        // The key's bounds do not hold for rows that raise: nothing may be written past the groups.
        let fragment = single(
            3,
            vec![],
            vec![(narrow, TYPES.iter().find(|(known, _)| *known == ty).unwrap().1.clone())],
            vec![count()],
        );
        assert!(check(&fragment, &[&table]).program.is_none(), "{ty:?}");
    }
}

#[test]
fn a_narrow_range_that_a_cast_leaves_raises_before_it_indexes() {
    let table = MemoryTable::new("t", vec![("a", numbers::<Int32Type>(2_000, |row| Some(100 + row as i32 % 200)))]);
    let fragment = single(1, vec![], vec![(convert(reg(0), Ty::I8), DataType::Int8)], vec![count()]);
    assert!(check_orders(&fragment, &[&table]).program.is_none());
}
