//! Mark joins: every row goes on once, with a register that tells whether it has a match.

use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{BinaryOp, Expr, Fragment, JoinKind, Pipeline, Sink, Source, Step, TopK, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

/// Columns: a key with NULLs, a narrow key, a number.
fn facts(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| (row % 19 != 4).then_some((mixed(row, 1) % keys) as i64 * spread))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 31 != 4).then_some((mixed(row, 2) % 6) as u8))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 3) as i32 % 1_000))),
        ],
    )
}

/// Several rows for some keys: a key with NULLs, a narrow key, a number with NULLs.
fn set(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let key = move |row: usize| (mixed(row, 4) % keys * (mixed(row, 5) % 3) / 2) as i64 * spread;
    MemoryTable::new(
        "set",
        vec![
            ("k", numbers::<Int64Type>(rows, move |row| (row % 29 != 0).then_some(key(row)))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 37 != 0).then_some(row as u8 % 2 * 3))),
            ("p", numbers::<Int32Type>(rows, |row| (row % 3 != 0).then_some(row as i32 * 5 - 400))),
        ],
    )
}

/// Rows of a large number, or that are found in the set.
fn either(mark: usize) -> Step {
    filter(binary(BinaryOp::Or, reg(mark), binary(BinaryOp::Gt, reg(2), int(700, Ty::I32))))
}

fn calls() -> Vec<warpcube_engine::AggregateCall> {
    vec![count(), sum(reg(2), DataType::Int64)]
}

fn marked(keys: Vec<Expr>) -> Fragment {
    let steps = vec![probe(0, keys.clone(), JoinKind::Mark), either(3)];
    let groups = vec![(reg(1), DataType::UInt8), (reg(3), DataType::Boolean)];
    fragment(&[3, 3], vec![builds(1, vec![], keys, vec![]), aggregates(0, steps, groups, calls())])
}

#[test]
fn a_mark_tells_whether_there_is_a_match() {
    // Direct, hashed and wide keys.
    check_orders(&marked(vec![reg(0)]), &[&facts(3_000, 300, 1), &set(200, 300, 1)]);
    check_orders(&marked(vec![reg(0)]), &[&facts(2_000, 300, SPREAD), &set(300, 300, SPREAD)]);
    check_orders(&marked(vec![reg(0), reg(1)]), &[&facts(2_000, 60, SPREAD), &set(100, 60, SPREAD)]);
}

#[test]
fn nothing_on_either_side() {
    let engine = engine(LaneOrder::Forward);
    for (left, right) in [(0, 50), (50, 0), (0, 0), (1, 2), (33, 40)] {
        check_on(&engine, &marked(vec![reg(0)]), &[&facts(left, 5, 1), &set(right, 5, 1)]);
    }
}

#[test]
fn matches_meet_a_residual() {
    // Of the registers behind the probe the residual reads the payload, all else the mark.
    let residual = || binary(BinaryOp::Lt, reg(3), reg(2));
    let of = |keys: Vec<Expr>| {
        let steps = vec![probe_where(0, keys.clone(), JoinKind::Mark, residual()), either(4)];
        let groups = vec![(reg(4), DataType::Boolean)];
        fragment(&[3, 3], vec![builds(1, vec![], keys, vec![reg(2)]), aggregates(0, steps, groups, calls())])
    };
    let report = check_orders(&of(vec![reg(0)]), &[&facts(2_000, 200, 1), &set(700, 200, 1)]);
    assert_eq!(report.reruns, 1, "the table is built again with room for several rows");
    check_orders(&of(vec![reg(0), reg(1)]), &[&facts(1_500, 60, SPREAD), &set(500, 60, SPREAD)]);
    // One key for all rows: a condition without an equality.
    check_orders(&of(vec![int(1, Ty::I64)]), &[&facts(400, 60, 1), &set(90, 60, 1)]);
}

#[test]
fn marks_beside_joins_with_several_matches() {
    // Two marks, one of a key that a join brings; behind the join both are looked up again.
    let not_both = binary(BinaryOp::And, reg(3), reg(5));
    let steps = vec![
        probe(0, vec![reg(0)], JoinKind::Mark),
        probe(1, vec![reg(1)], JoinKind::Left),
        probe(2, vec![reg(4)], JoinKind::Mark),
        filter(unary(UnaryOp::Not, not_both)),
    ];
    let groups = vec![(reg(3), DataType::Boolean), (reg(5), DataType::Boolean)];
    let mut calls = calls();
    calls.push(sum(reg(4), DataType::Int64));
    let pipelines = vec![
        builds(1, vec![], vec![reg(0)], vec![]),
        builds(1, vec![], vec![reg(1)], vec![reg(2)]),
        builds(1, vec![], vec![reg(2)], vec![]),
        aggregates(0, steps, groups, calls),
    ];
    check_orders(&fragment(&[3, 3], pipelines), &[&facts(500, 90, 1), &set(120, 90, 1)]);
}

#[test]
fn marks_of_first_rows_and_of_rows() {
    let steps = || vec![probe(0, vec![reg(0)], JoinKind::Mark), either(3)];
    let outputs = || vec![(reg(2), DataType::Int32), (reg(0), DataType::Int64), (reg(3), DataType::Boolean)];
    let keys = vec![descending(reg(3)), ascending(reg(2)), ascending(reg(0))];
    let build = || builds(1, vec![], vec![reg(0)], vec![]);
    let first = Sink::TopK(TopK {
        keys,
        k: Some(40),
        skip: 0,
        outputs: outputs(),
        windows: vec![],
        first: None,
        algorithm: None,
    });
    let all = Sink::Rows { columns: outputs(), limit: None };
    let of = |sink: Sink| {
        let root = Pipeline { source: Source::Table(0), steps: steps(), sink };
        fragment(&[3, 3], vec![build(), root])
    };
    check_all_orders(&of(first), &[&facts(900, 300, 1), &set(150, 300, 1)]);
    let (batch, _) = run(&engine(LaneOrder::Seeded(7)), &of(all), &[&facts(900, 300, 1), &set(150, 300, 1)]).unwrap();
    let marks = batch.column(2).as_any().downcast_ref::<arrow::array::BooleanArray>().unwrap();
    assert!(marks.true_count() > 0 && marks.false_count() > 0, "{marks:?}");
}
