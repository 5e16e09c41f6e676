//! Branches of UNION ALL that aggregate into one table of groups: every kind of grouping, and columns that differ from
//! branch to branch in bounds, NULLs and dictionaries.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, EngineError, Expr, Fragment, JoinKind, Pipeline, RunOptions, Sink, Source, Step, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

/// Pipelines of which the last `branches` are those of a union.
fn union(columns: &[usize], branches: usize, pipelines: Vec<Pipeline>) -> Fragment {
    let all = pipelines.len();
    let first = all - branches;
    Fragment { unions: std::iter::once(first..all).collect(), ..fragment(columns, pipelines) }
}

/// [`keyed_facts`] with decimals of 64 bits.
fn facts(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    keyed_facts(rows, keys, spread, decimals(rows, 15, 2, |row| Some(i128::from(mixed(row, 5) % 10_000_000_000) - 50)))
}

/// The same columns with other bounds: keys from 60 on, no NULLs, other strings, larger decimals.
fn others(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let wide = |row: usize| Some(i128::from(mixed(row, 6) >> 3) - (1 << 59));
    MemoryTable::new(
        "others",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| Some((mixed(row, 1) % keys) as i64 * spread + 60))),
            ("s", texts(rows, |row| Some(format!("name {}", mixed(row, 2) % 9 + 4)))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 3) as i32 / 2))),
            ("f", floats(rows, |row| Some((mixed(row, 4) % 8_000) as f64 / 8.0))),
            ("d", decimals(rows, 19, 2, wide)),
        ],
    )
}

fn all_aggregates() -> Vec<AggregateCall> {
    let positive = binary(BinaryOp::Gt, reg(2), int(0, Ty::I32));
    vec![
        count(),
        count_of(reg(2)),
        sum(reg(2), DataType::Int64),
        min(reg(2), DataType::Int32),
        max(reg(3), DataType::Float64),
        AggregateCall { filter: Some(positive), ..sum(convert(reg(2), Ty::I64), DataType::Int64) },
    ]
}

fn by_key() -> Vec<(Expr, DataType)> {
    vec![(reg(0), DataType::Int64)]
}

#[test]
fn branches_meet_in_every_kind_of_grouping() {
    let sums = || vec![sum(reg(2), DataType::Int64), count()];
    let few = || vec![sum(reg(2), DataType::Int64), count(), min(reg(2), DataType::Int32)];
    // Rows, keys and their distance; what is written of private cells, of those of a block, of a table, of hashes.
    for (rows, keys, spread, calls, text) in [
        (60_000, 3, 1, few as fn() -> Vec<AggregateCall>, "mine["),
        (21_000, 150, 1, sums, "wc_add_halves(low"),
        (5_000, 900, 2, all_aggregates, "+ 1;"),
        (5_000, 900, SPREAD, all_aggregates, "wc_table_enter"),
    ] {
        // Of few keys the rest, whose bounds are close.
        let key = if keys == 3 { binary(BinaryOp::Rem, reg(0), int(3, Ty::I64)) } else { reg(0) };
        let branch = |table| aggregates(table, vec![], vec![(key.clone(), DataType::Int64)], calls());
        let report = check_orders(
            &union(&[5, 5], 2, vec![branch(0), branch(1)]),
            &[&facts(rows, keys, spread), &others(rows / 2, keys, spread)],
        );
        let source = report.program().unwrap().source().to_string();
        assert!(source.contains(text), "{keys} keys: no {text:?} in\n{source}");
        assert_eq!(report.launch_groups.len(), 1, "branches share a launch");
    }
}

#[test]
fn branches_without_groups_are_one_group() {
    let branch = |table, steps| aggregates(table, steps, vec![], all_aggregates());
    let few = filter(binary(BinaryOp::Lt, reg(2), int(-20_000, Ty::I32)));
    let none = filter(binary(BinaryOp::Lt, reg(0), int(-1_000, Ty::I64)));
    let tables = [&facts(5_000, 40, 1), &others(3_000, 40, 1)];
    check_orders(&union(&[5, 5], 2, vec![branch(0, vec![few.clone()]), branch(1, vec![])]), &tables);
    // Nothing comes from any of them.
    check(&union(&[5, 5], 2, vec![branch(0, vec![none.clone()]), branch(1, vec![none])]), &tables);
    // Two scans of a table.
    check(&union(&[5], 2, vec![branch(0, vec![few]), branch(0, vec![])]), &tables[..1]);
}

#[test]
fn columns_differ_in_dictionaries_and_nulls() {
    let tables = [&facts(4_000, 40, 1), &others(3_000, 40, 1)];
    let text = |text: &str| Expr::Text(text.into());
    let branch = |table, name: Expr, source: Expr, key: Expr| {
        let by = vec![(name, DataType::Utf8), (source, DataType::Utf8), (key, DataType::Int64)];
        let calls = vec![count(), sum(reg(2), DataType::Int64), max(reg(1), DataType::Utf8)];
        aggregates(table, vec![], by, calls)
    };
    let branches = vec![
        branch(0, reg(1), text("t"), binary(BinaryOp::Rem, reg(0), int(4, Ty::I64))),
        branch(1, reg(1), text("a"), int(7, Ty::I64)),
        branch(1, null(Ty::U32), text("m"), null(Ty::I64)),
        branch(0, text("name 2"), null(Ty::U32), reg(0)),
    ];
    check_orders(&union(&[5, 5], 4, branches), &tables);
    // No string anywhere.
    let nothing = vec![branch(0, null(Ty::U32), text("t"), reg(0)), branch(1, null(Ty::U32), text("t"), reg(0))];
    check(&union(&[5, 5], 2, nothing), &tables);
}

#[test]
fn counts_take_what_the_branches_have() {
    let tables = [&facts(4_000, 40, 1), &others(3_000, 40, 1)];
    let branch = |table, argument: Option<Expr>, filter: Option<Expr>| {
        let calls = vec![
            AggregateCall { argument, ..count() },
            AggregateCall { filter, ..count_of(reg(2)) },
            sum(reg(2), DataType::Int64),
        ];
        aggregates(table, vec![], by_key(), calls)
    };
    let positive = binary(BinaryOp::Gt, reg(2), int(0, Ty::I32));
    let branches = vec![branch(0, Some(reg(1)), None), branch(1, None, Some(positive)), branch(1, Some(reg(1)), None)];
    check(&union(&[5, 5], 3, branches), &tables);
}

#[test]
fn wide_and_exact_sums_have_room_for_all_branches() {
    let calls = |decimal| {
        vec![
            sum(decimal, DataType::Decimal128(38, 2)),
            exact_sum(reg(3)),
            sum(convert(reg(2), Ty::I64), DataType::Int64),
        ]
    };
    // Decimals of one branch are computed in 64 bits, those of the other in 128.
    let decimal = |table| match table {
        0 => reg(4),
        _ => binary(BinaryOp::Mul, reg(4), int(1_000_003, Ty::I128)),
    };
    let branch = |table, by| aggregates(table, vec![], by, calls(decimal(table)));
    let tables = [&facts(4_000, 40, SPREAD), &others(3_000, 40, SPREAD)];
    for by in [vec![], by_key()] {
        check(&union(&[5, 5], 2, vec![branch(0, by.clone()), branch(1, by)]), &tables);
    }
}

#[test]
fn rows_that_a_filter_of_an_aggregate_leaves_out_raise_nothing() {
    let quotient = binary(BinaryOp::Div, int(1_000, Ty::I32), reg(2));
    let call = |filter| AggregateCall { filter, ..sum(quotient.clone(), DataType::Int64) };
    let branch = |table, filter| aggregates(table, vec![], by_key(), vec![call(filter)]);
    let positive = || Some(binary(BinaryOp::Gt, reg(2), int(0, Ty::I32)));
    let zeros = MemoryTable::new(
        "zeros",
        vec![
            ("k", numbers::<Int64Type>(2_000, |row| Some(row as i64 % 9))),
            ("s", texts(2_000, |_| Some("x".into()))),
            ("v", numbers::<Int32Type>(2_000, |row| Some(row as i32 % 5 - 2))),
        ],
    );
    let tables = [&facts(2_000, 10, 1), &zeros];
    check(&union(&[3, 3], 2, vec![branch(0, positive()), branch(1, positive())]), &tables);
    // One of them is not filtered: it raises.
    check(&union(&[3, 3], 2, vec![branch(0, positive()), branch(1, None)]), &tables);
}

#[test]
fn joins_and_groups_are_branches() {
    let dimension = MemoryTable::new(
        "dimension",
        vec![
            ("k", numbers::<Int64Type>(300, |row| Some(row as i64 % 150 - 40)) as ArrayRef),
            ("s", texts(300, |row| Some(format!("group {}", row % 6)))),
        ],
    );
    let by = || vec![(reg(0), DataType::Int64)];
    let text = |expr: Expr| vec![(expr, DataType::Utf8)];
    // Keys of the dimension come twice: rows of the first branch do too.
    let build = builds(2, vec![], vec![reg(0)], vec![reg(1)]);
    let grouped = aggregates(1, vec![], by(), vec![max(reg(2), DataType::Int32), count()]);
    let calls = |value: Expr| vec![count(), sum(value, DataType::Int64)];
    let joined = aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Inner)], text(reg(5)), calls(reg(2)));
    let groups = Pipeline {
        source: Source::Output(1),
        steps: vec![],
        sink: Sink::Aggregate { groups: text(Expr::Text("grouped".into())), aggregates: calls(reg(1)) },
    };
    let plain = aggregates(1, vec![], text(reg(1)), calls(reg(2)));
    let tables = [&facts(4_000, 100, 1), &others(3_000, 100, 1), &dimension];
    check_orders(&union(&[5, 5, 2], 3, vec![build, grouped, joined, groups, plain]), &tables);
}

#[test]
fn groups_of_a_union_are_scanned() {
    for spread in [1, SPREAD] {
        let branch = |table| aggregates(table, vec![], by_key(), all_aggregates());
        let over = |steps: Vec<Step>| Pipeline {
            source: Source::Output(1),
            steps,
            sink: Sink::Aggregate {
                groups: vec![(reg(1), DataType::Int64)],
                aggregates: vec![count(), max(reg(3), DataType::Int64), min(reg(5), DataType::Float64)],
            },
        };
        let many = filter(binary(BinaryOp::Gt, reg(1), int(20, Ty::I64)));
        let pipelines = vec![branch(0), branch(1), over(vec![many])];
        let whole = Fragment { unions: std::iter::once(0..2).collect(), ..fragment(&[5, 5], pipelines) };
        check_orders(&whole, &[&facts(4_000, 80, spread), &others(3_000, 80, spread)]);
    }
}

#[test]
fn unions_that_make_no_sense_are_malformed() {
    let tables = [&facts(100, 10, 1), &others(100, 10, 1)];
    let branch = |table, by, calls| aggregates(table, vec![], by, calls);
    let engine = engine(LaneOrder::Forward);
    let malformed = |whole: Fragment| {
        let requests = requests(&whole, &tables);
        matches!(engine.run(&whole, &requests, &RunOptions::default()), Err(EngineError::Malformed(_)))
    };
    let pair = |other| union(&[5, 5], 2, vec![branch(0, by_key(), vec![count()]), other]);
    assert!(malformed(pair(branch(1, vec![], vec![count()]))), "other groups");
    assert!(malformed(pair(branch(1, by_key(), vec![count_of(reg(1)), count()]))), "more aggregates");
    assert!(malformed(pair(branch(1, vec![(reg(0), DataType::Int32)], vec![count()]))), "another type");
    assert!(malformed(pair(branch(1, vec![(reg(2), DataType::Int64)], vec![count()]))), "another machine type");
    let past = Fragment { unions: std::iter::once(0..3).collect(), ..pair(branch(1, by_key(), vec![count()])) };
    assert!(malformed(past), "a branch that is not there");
}
