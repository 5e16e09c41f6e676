//! Decimals wider than 64 bits as keys of groups and joins, in entries of join tables, in lists and in results.

use arrow::datatypes::{DataType, Int32Type};
use warpcube_engine::{BinaryOp, Expr, JoinKind, Pipeline, Sink, Source, Ty};

use crate::support::*;

const WIDE: DataType = DataType::Decimal128(38, 2);

/// A decimal with NULLs of a few values that 56 bits hold, one without, and a number.
fn table(rows: usize, values: u64) -> MemoryTable {
    let value = move |row: usize, seed: u64| (i128::from(mixed(row, seed) % values) - 3) * ((1 << 50) + 1);
    MemoryTable::new(
        "t",
        vec![
            ("p", decimals(rows, 18, 2, move |row| (row % 9 != 4).then(|| value(row, 1)))),
            ("q", decimals(rows, 18, 2, move |row| Some(value(row, 2)))),
            ("n", numbers::<Int32Type>(rows, |row| (row % 11 != 2).then_some(row as i32 % 50))),
        ],
    )
}

/// A column times 2^45 + 1: more than 90 bits of both signs.
fn wide(column: usize) -> Expr {
    binary(BinaryOp::Mul, reg(column), int((1 << 45) + 1, Ty::I128))
}

#[test]
fn groups_by_wide_keys() {
    let calls = || vec![count(), sum(reg(2), DataType::Int64), max(reg(2), DataType::Int32)];
    for groups in [
        vec![(wide(0), WIDE)],
        vec![(wide(1), WIDE)],
        vec![(reg(2), DataType::Int32), (wide(1), WIDE), (wide(0), WIDE)],
    ] {
        check_orders(&single(3, vec![], groups, calls()), &[&table(2_500, 12)]);
    }
    // What is grouped is grouped again, and its keys are computed with.
    let by = vec![(wide(0), WIDE), (reg(2), DataType::Int32)];
    let inner = aggregates(0, vec![], by, vec![count()]);
    let doubled = binary(BinaryOp::Add, reg(0), reg(0));
    let above = Sink::Aggregate {
        groups: vec![(doubled, WIDE)],
        aggregates: vec![count(), sum(reg(2), DataType::Int64), max(reg(1), DataType::Int32)],
    };
    let root = Pipeline { source: Source::Output(0), steps: vec![], sink: above };
    check_orders(&fragment(&[3], vec![inner, root]), &[&table(2_500, 12)]);
}

#[test]
fn joins_by_wide_keys_with_wide_columns() {
    use JoinKind::*;
    // Few keys come several times, of many hardly any does.
    for (rows, values) in [(120, 9), (60, 4_000)] {
        for kind in [Inner, Left, Semi, Anti] {
            let has_columns = matches!(kind, Inner | Left);
            let payload = if has_columns { vec![wide(0), wide(1), reg(2)] } else { vec![] };
            let mut by = vec![(reg(2), DataType::Int32)];
            let mut calls = vec![count(), sum(reg(1), WIDE)];
            if has_columns {
                by.push((reg(3), WIDE));
                let grown = binary(BinaryOp::Gt, reg(4), wide(1));
                let larger = Expr::Case(vec![(grown, int(1, Ty::I64))], Box::new(int(0, Ty::I64)));
                calls.extend([count_of(reg(3)), sum(reg(5), DataType::Int64), sum(larger, DataType::Int64)]);
            }
            let build = builds(1, vec![], vec![wide(1)], payload);
            let probed = aggregates(0, vec![probe(0, vec![wide(0)], kind)], by, calls);
            check_orders(&fragment(&[3, 3], vec![build, probed]), &[&table(400, values), &table(rows, values)]);
        }
    }
    // Values that lie near each other and far from zero.
    let far = |column| binary(BinaryOp::Add, convert(reg(column), Ty::I128), int(10i128.pow(20), Ty::I128));
    let build = builds(1, vec![], vec![far(2)], vec![far(2), reg(1)]);
    let probed = aggregates(
        0,
        vec![probe(0, vec![far(2)], JoinKind::Left)],
        vec![(reg(3), WIDE)],
        vec![count(), sum(reg(4), WIDE)],
    );
    check(&fragment(&[3, 3], vec![build, probed]), &[&table(300, 8), &table(40, 8)]);
    // A wide value among narrow keys, and a narrow one among wide keys.
    for (own, other) in [(reg(1), wide(1)), (wide(1), reg(1))] {
        let build = builds(1, vec![], vec![own], vec![reg(2)]);
        let steps = vec![probe(0, vec![other], JoinKind::Inner)];
        let probed = aggregates(0, steps, vec![(reg(3), DataType::Int32)], vec![count()]);
        let report = check(&fragment(&[3, 3], vec![build, probed]), &[&table(300, 8), &table(300, 8)]);
        assert!(report.rows > 0, "zero is among both");
    }
}

#[test]
fn rows_with_wide_columns() {
    let columns = vec![(wide(0), WIDE), (reg(2), DataType::Int32), (wide(1), WIDE)];
    let list = Pipeline {
        source: Source::Table(0),
        steps: vec![filter(binary(BinaryOp::Gt, wide(1), int(-(1 << 70), Ty::I128)))],
        sink: Sink::Rows { columns: columns.clone(), limit: None },
    };
    check_orders(&fragment(&[3], vec![list.clone()]), &[&table(700, 20)]);
    let all = columns.iter().enumerate().map(|(at, (_, data_type))| (reg(at), data_type.clone())).collect();
    let above = filter(binary(BinaryOp::Lt, reg(0), reg(2)));
    let root =
        Pipeline { source: Source::Output(0), steps: vec![above], sink: Sink::Rows { columns: all, limit: None } };
    let report = check_orders(&fragment(&[3], vec![list, root]), &[&table(700, 20)]);
    assert!(report.rows > 100);
}
