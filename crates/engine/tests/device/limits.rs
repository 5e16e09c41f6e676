//! Limits within a fragment: any rows, of which so many go on.

use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{BinaryOp, EngineError, Expr, Fragment, JoinKind, Pipeline, Sink, Source, Step, TopK, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Columns: a number of the row, a key that is the same for all rows, a number that is the same for all rows.
fn table(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "table",
        vec![
            ("n", numbers::<Int64Type>(rows, |row| Some(row as i64))),
            ("k", numbers::<UInt8Type>(rows, |_| Some(7))),
            ("v", numbers::<Int32Type>(rows, |_| Some(3))),
        ],
    )
}

fn below(bound: i128) -> Step {
    filter(binary(BinaryOp::Lt, reg(0), int(bound, Ty::I64)))
}

/// What does not depend on which rows they are.
fn counted(mut steps: Vec<Step>, limit: Step, groups: Vec<(Expr, DataType)>) -> Fragment {
    steps.push(limit);
    single(3, steps, groups, vec![count(), sum(reg(2), DataType::Int64)])
}

#[test]
fn so_many_rows_go_on() {
    let by_key = || vec![(reg(1), DataType::UInt8)];
    let of = |skip: u64, rows: u64| Step::Limit { skip, rows };
    for limit in [(0, 1), (0, 700), (0, 5_000), (300, 100), (2_900, 500), (4_000, 10), (0, 0), (1, u64::MAX)] {
        let engine = engine(LaneOrder::Seeded(7));
        for groups in [vec![], by_key()] {
            let fragment = counted(vec![below(3_000)], of(limit.0, limit.1), groups);
            check_on(&engine, &fragment, &[&table(4_000)]);
            check_on(&engine, &fragment, &[&table(0)]);
        }
    }
    check_orders(&counted(vec![], of(10, 900), by_key()), &[&table(2_500)]);
}

#[test]
fn limits_behind_joins_with_several_matches() {
    let by_remainder = || binary(BinaryOp::Rem, reg(0), int(50, Ty::I64));
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Mark] {
        let build = builds(1, vec![below(90)], vec![by_remainder()], vec![reg(2)]);
        let steps = vec![probe(0, vec![by_remainder()], kind), Step::Limit { skip: 20, rows: 1_100 }];
        let root = aggregates(0, steps, vec![(reg(1), DataType::UInt8)], vec![count(), sum(reg(2), DataType::Int64)]);
        check_orders(&fragment(&[3, 3], vec![build, root]), &[&table(1_000), &table(100)]);
    }
}

#[test]
fn limits_of_join_tables_and_of_branches() {
    // Any 40 of the rows are in the table: as many rows meet it.
    let build = builds(1, vec![Step::Limit { skip: 5, rows: 40 }], vec![reg(0)], vec![]);
    let root = aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Semi)], vec![], vec![count()]);
    check_orders(&fragment(&[3, 3], vec![build, root]), &[&table(1_000), &table(200)]);
    let branch = |rows: u64| {
        let groups = vec![(reg(1), DataType::UInt8)];
        aggregates(0, vec![Step::Limit { skip: 0, rows }], groups, vec![count()])
    };
    let mut united = fragment(&[3], vec![branch(30), branch(7), branch(2_000)]);
    united.unions.push(0..3);
    check_orders(&united, &[&table(1_000)]);
}

#[test]
fn first_rows_of_a_limit_are_refused() {
    let keys = vec![ascending(reg(0))];
    let sink = Sink::TopK(TopK {
        keys,
        k: Some(3),
        skip: 0,
        outputs: vec![(reg(0), DataType::Int64)],
        windows: vec![],
        first: None,
        algorithm: None,
    });
    let root = Pipeline { source: Source::Table(0), steps: vec![Step::Limit { skip: 0, rows: 9 }], sink };
    match run(&engine(LaneOrder::Forward), &fragment(&[3], vec![root]), &[&table(50)]) {
        Err(EngineError::Unsupported(reason)) => assert!(reason.contains("limit"), "{reason}"),
        other => panic!("{other:?}"),
    }
}
