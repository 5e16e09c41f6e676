//! Rows whose keys come in runs: preaggregated by runs, and groups in the order of a sorted key.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int8Type, Int32Type, Int64Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, Expr, Fragment, JoinKind, Pipeline, RunReport, Sink, Source, Step, Tuning, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

/// The number of the run that a row belongs to: runs have one row to nine, or many.
fn run_of(row: usize) -> usize {
    match row % 2_000 {
        at @ 0..1_200 => row / 2_000 * 401 + at / 9 * 3 + [0, 0, 0, 0, 1, 1, 1, 2, 2][at % 9],
        // One that is longer than a step, and crosses several.
        _ => row / 2_000 * 401 + 400,
    }
}

/// Keys by run, a value that is never NULL and three that may be.
fn table(rows: usize, key: impl Fn(usize) -> Option<i64>) -> MemoryTable {
    let money = |row| (row % 6 != 2).then_some(i128::from(mixed(row, 5) % 10_000_000_000) - 5_000_000_000);
    let keys: ArrayRef = numbers::<Int64Type>(rows, |row| key(run_of(row)));
    MemoryTable::new(
        "facts",
        vec![
            ("k", keys),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 2) as i32))),
            ("w", numbers::<Int8Type>(rows, |row| (row % 11 != 3).then_some(mixed(row, 3) as i8))),
            ("f", floats(rows, |row| (row % 7 != 2).then_some((mixed(row, 4) % 4_000) as f64 / 8.0 - 250.0))),
            ("d", decimals(rows, 15, 2, money)),
        ],
    )
}

/// Aggregates of all kinds, in lists that a block has shared memory for.
fn calls() -> Vec<Vec<AggregateCall>> {
    let positive = binary(BinaryOp::Gt, reg(1), int(0, Ty::I32));
    vec![
        vec![sum(reg(1), DataType::Int64), count(), max(reg(1), DataType::Int32), min(reg(1), DataType::Int32)],
        vec![count_of(reg(2)), min(reg(2), DataType::Int8), sum(reg(2), DataType::Int64)],
        vec![sum(reg(4), DataType::Decimal128(38, 2)), max(reg(4), DataType::Decimal128(15, 2))],
        vec![sum(reg(3), DataType::Float64), min(reg(3), DataType::Float64)],
        vec![AggregateCall { filter: Some(positive), ..sum(reg(2), DataType::Int64) }, max(reg(3), DataType::Float64)],
        vec![],
    ]
}

fn source(report: &RunReport) -> String {
    report.program().unwrap().source().to_string()
}

/// Keys that come in runs, in no order; some are NULL.
fn shuffled(spread: i64) -> impl Fn(usize) -> Option<i64> {
    move |run| (run % 13 != 4).then_some((mixed(run, 9) % 1_500) as i64 * spread - 40)
}

#[test]
fn rows_of_a_run_meet_the_table_together() {
    for spread in [7, SPREAD] {
        for calls in calls() {
            let fragment = single(5, vec![], vec![(reg(0), DataType::Int64)], calls);
            let report = check_orders(&fragment, &[&table(7_000, shuffled(spread))]);
            assert!(source(&report).contains("wc_find_runs<"), "rows are added up by runs");
        }
    }
}

#[test]
fn rows_that_are_left_out_are_no_part_of_runs() {
    let some = filter(binary(BinaryOp::Lt, reg(1), int(900_000_000, Ty::I32)));
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int64Type>(1_000, |row| Some(row as i64 * 7 - 40))),
            ("p", numbers::<Int32Type>(1_000, |row| (row % 9 != 1).then_some(mixed(row, 6) as i32 % 50))),
        ],
    );
    for steps in [vec![some.clone()], vec![some, probe(0, vec![reg(0)], JoinKind::Left)]] {
        let joins = steps.len() > 1;
        let mut calls = vec![sum(reg(1), DataType::Int64), count()];
        calls.extend(joins.then(|| max(reg(5), DataType::Int32)));
        let fragment = fragment(
            &[5, 2],
            vec![
                builds(1, vec![], vec![reg(0)], if joins { vec![reg(1)] } else { vec![] }),
                aggregates(0, steps, vec![(reg(0), DataType::Int64)], calls),
            ],
        );
        let report = check_orders(&fragment, &[&table(7_000, shuffled(7)), &side]);
        assert!(source(&report).contains("wc_find_runs<"));
    }
}

#[test]
fn keys_of_two_columns_come_in_runs_where_both_do() {
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int64Type>(6_000, |row| Some((mixed(row / 8, 1) % 300) as i64))),
            ("b", numbers::<Int32Type>(6_000, |row| (row / 40 % 9 != 0).then_some((mixed(row / 40, 2) % 400) as i32))),
            ("v", numbers::<Int32Type>(6_000, |row| Some(mixed(row, 3) as i32))),
        ],
    );
    let by = |keys: [usize; 2]| vec![(reg(keys[0]), DataType::Int64), (reg(keys[1]), DataType::Int32)];
    let calls = || vec![sum(reg(2), DataType::Int64), count()];
    let report = check_orders(&single(3, vec![], by([0, 1]), calls()), &[&facts]);
    assert!(source(&report).contains("wc_find_runs<"));
    let report = check(&single(3, vec![], by([0, 2]), calls()), &[&facts]);
    assert!(!source(&report).contains("wc_find_runs<"), "the second column has another value in each row");
}

#[test]
fn keys_in_no_runs_and_many_cells_are_entered_row_by_row() {
    let random = |run: usize| move |row: usize| Some((mixed(row / run, 1) % 20_000) as i64);
    let facts = |run: usize| {
        let values = numbers::<Int32Type>(6_000, |row| Some(mixed(row, 3) as i32));
        MemoryTable::new("facts", vec![("k", numbers::<Int64Type>(6_000, random(run))), ("v", values)])
    };
    let above = |bound: i128| filter_of(binary(BinaryOp::Gt, reg(1), int(bound, Ty::I32)));
    let calls = |count: i128| (0..count).map(|at| above(at << 25)).collect();
    let by = || vec![(reg(0), DataType::Int64)];
    for (run, count, by_runs) in [(1, 2, false), (3, 2, true), (3, 9, false)] {
        let report = check(&single(2, vec![], by(), calls(count)), &[&facts(run)]);
        assert_eq!(source(&report).contains("wc_find_runs<"), by_runs, "{run} rows a run, {count} cells");
    }
    let engine = engine(LaneOrder::Forward).with_tuning("run_rows=1e9".parse().unwrap());
    let report = check_on(&engine, &single(2, vec![], by(), calls(2)), &[&facts(3)]);
    assert!(!source(&report).contains("wc_find_runs<"), "runs do not pay");
}

/// A sum over the rows that a condition holds for.
fn filter_of(condition: Expr) -> AggregateCall {
    AggregateCall { filter: Some(condition), ..sum(reg(1), DataType::Int64) }
}

/// Groups by the first column behind `steps`, and aggregates of them.
fn groups_of_groups(steps: Vec<Step>, calls: Vec<AggregateCall>) -> Fragment {
    let own = |(at, call): (usize, &AggregateCall)| match &call.data_type {
        DataType::Decimal128(_, _) => max(convert(reg(1 + at), Ty::I128), DataType::Decimal128(38, 2)),
        data_type => max(reg(1 + at), data_type.clone()),
    };
    let mut outer = vec![count(), min(reg(0), DataType::Int64), max(reg(0), DataType::Int64)];
    outer.extend(calls.iter().enumerate().map(own));
    let many = filter(binary(BinaryOp::Gt, reg(0), int(0, Ty::I64)));
    let last = Pipeline {
        source: Source::Output(0),
        steps: vec![many],
        sink: Sink::Aggregate { groups: vec![], aggregates: outer },
    };
    fragment(&[5], vec![aggregates(0, steps, vec![(reg(0), DataType::Int64)], calls), last])
}

#[test]
fn groups_by_a_sorted_key_are_a_list() {
    let sorted = |run: usize| Some(run as i64 * SPREAD - 40);
    for rows in [1, 31, 257, 7_000] {
        for calls in calls() {
            let report = check_orders(&groups_of_groups(vec![], calls), &[&table(rows, sorted)]);
            assert_eq!(source(&report).contains("places_of_step.take("), rows > 1, "{rows} rows");
        }
    }
}

#[test]
fn groups_in_order_of_runs_of_any_length() {
    let calls = || vec![sum(reg(1), DataType::Int64), count()];
    for run in [1, 255, 256, 257, 5_000] {
        let keys = numbers::<Int64Type>(5_000, |row| Some((row / run) as i64 * SPREAD));
        let values = numbers::<Int32Type>(5_000, |row| Some(mixed(row, 3) as i32));
        let last = numbers::<Int64Type>(5_000, |_| None);
        let facts = MemoryTable::new(
            "facts",
            vec![("k", keys), ("v", values), ("a", last.clone()), ("b", last.clone()), ("c", last)],
        );
        let report = check_orders(&groups_of_groups(vec![], calls()), &[&facts]);
        assert_eq!(source(&report).contains("places_of_step.take("), run < 5_000, "{run} rows a key");
    }
}

#[test]
fn groups_in_order_behind_filters() {
    let some = |bound: i128| filter(binary(BinaryOp::Lt, reg(1), int(bound, Ty::I32)));
    let sorted = table(7_000, |run| Some(run as i64 * SPREAD));
    let calls = || vec![sum(reg(1), DataType::Int64), count()];
    // Whole runs are left out too, and whole steps.
    let ranges =
        vec![some(1_200_000_000), filter(binary(BinaryOp::Gt, reg(0), int(i128::from(200 * SPREAD), Ty::I64)))];
    for steps in [vec![some(0)], ranges] {
        let report = check_orders(&groups_of_groups(steps, calls()), &[&sorted]);
        assert!(source(&report).contains("places_of_step.take("));
    }
    let engine = engine(LaneOrder::Forward).with_tuning("ordered_groups=false".parse().unwrap());
    let report = check_on(&engine, &groups_of_groups(vec![], calls()), &[&sorted]);
    assert!(!source(&report).contains("places_of_step.take(") && source(&report).contains("wc_find_runs<"));
}

#[test]
fn keys_that_may_be_null_or_descend_are_hashed() {
    let calls = || vec![sum(reg(1), DataType::Int64), count()];
    let null = |run: usize| (run % 13 != 4).then_some(run as i64 * SPREAD);
    let descending = |run: usize| Some(run as i64 * -SPREAD);
    for facts in [table(7_000, null), table(7_000, descending)] {
        let report = check(&groups_of_groups(vec![], calls()), &[&facts]);
        assert!(source(&report).contains("wc_table_enter(") && !source(&report).contains("places_of_step.take("));
    }
}

/// Facts of key and group joined with the extremes by key of a second table of so many columns.
fn extremes_of(columns: usize, steps: Vec<Step>) -> Fragment {
    let build = extremes(1, steps, &[(reg(0), DataType::Int64)], &[(reg(1), DataType::Int64)]);
    let calls = vec![count_of(reg(2)), min(reg(2), DataType::Int64), max(reg(3), DataType::Int64)];
    let probes = vec![probe(0, vec![reg(0)], JoinKind::Left)];
    let root = aggregates(0, probes, vec![(reg(1), DataType::Int8)], calls);
    fragment(&[2, columns], vec![build, root])
}

#[test]
fn extremes_by_runs() {
    // Entries of four bytes and of eight; keys that index the table and keys that are hashed.
    for (spread, wide) in [(1, false), (SPREAD, false), (1, true)] {
        let many = MemoryTable::new(
            "many",
            vec![
                ("k", numbers::<Int64Type>(3_000, |row| (row / 7 % 19 != 3).then_some((row / 7) as i64 * spread))),
                (
                    "p",
                    numbers::<Int64Type>(3_000, |row| {
                        let value = mixed(row, 5) as i64;
                        (row % 3 != 0 && row > 20).then_some(if wide { value / 2 } else { value % 100_000 })
                    }),
                ),
            ],
        );
        let facts = MemoryTable::new(
            "facts",
            vec![
                ("k", numbers::<Int64Type>(1_500, |row| Some((mixed(row, 1) % 500) as i64 * spread))),
                ("g", numbers::<Int8Type>(1_500, |row| Some(row as i8 % 5))),
            ],
        );
        let some = filter(binary(BinaryOp::Ne, reg(1), int(77, Ty::I64)));
        for steps in [vec![], vec![some]] {
            let report = check_orders(&extremes_of(2, steps), &[&facts, &many]);
            let source = source(&report);
            assert!(source.contains("wc_find_runs<"));
            assert_eq!(source.contains("(uint32_t)total0"), !wide, "entries of four bytes");
        }
    }
}

#[test]
fn extremes_by_a_sorted_key_are_written_once() {
    let tuning: Tuning = "ordered_bytes=0".parse().unwrap();
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(1_500, |row| Some((mixed(row, 1) % 2_000) as i64))),
            ("g", numbers::<Int8Type>(1_500, |row| Some(row as i8 % 5))),
        ],
    );
    let value = |row: usize| (row % 3 != 0 && row > 20).then_some(mixed(row, 5) as i64);
    let many = |wide: bool, key: &dyn Fn(usize) -> Option<i64>| {
        let values =
            numbers::<Int64Type>(5_000, |row| value(row).map(|value| if wide { value / 2 } else { value % 100_000 }));
        let others = numbers::<Int32Type>(5_000, |row| Some(mixed(row, 7) as i32));
        MemoryTable::new("many", vec![("k", numbers::<Int64Type>(5_000, key)), ("p", values), ("q", others)])
    };
    let some = filter(binary(BinaryOp::Lt, reg(2), int(1_000_000_000, Ty::I32)));
    for (wide, steps, run) in [(false, vec![], 4), (true, vec![some.clone()], 4), (false, vec![some], 700)] {
        let fragment = extremes_of(3, steps);
        let sorted = many(wide, &|row| Some((row / run) as i64));
        let mut written = Vec::new();
        for order in ORDERS {
            let engine = engine(order).with_tuning(tuning.clone());
            written.push(source(&check_on(&engine, &fragment, &[&facts, &sorted])).contains("enter_ends"));
        }
        assert_eq!(written, [true; 3], "{run} rows a key");
        // Keys that descend or are NULL may come again.
        let descends = |row: usize| Some(1_250 - (row / 4) as i64);
        let has_null = |row: usize| (row != 9).then_some((row / 4) as i64);
        for many in [many(wide, &descends), many(wide, &has_null)] {
            let report = check_on(&engine(LaneOrder::Forward).with_tuning(tuning.clone()), &fragment, &[&facts, &many]);
            assert!(source(&report).contains("wc_find_runs<") && !source(&report).contains("enter_ends"));
        }
    }
}
