//! Accumulators that are united: groups of groups whose aggregates are those of all rows below, as grouping sets have
//! them.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{AggregateCall, BinaryOp, EngineError, Expr, Fragment, Overflow, Pipeline, Sink, Source, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

/// [`keyed_facts`] with decimals whose sums have 128 bits.
fn table(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let wide = |row: usize| Some(i128::from(mixed(row, 6) >> 3) - (1 << 59));
    keyed_facts(rows, keys, spread, decimals(rows, 19, 2, wide))
}

/// Every kind of accumulator: counts, integers, floats, strings, sums of 128 bits, exact sums, a filter.
fn all_aggregates() -> Vec<AggregateCall> {
    let positive = binary(BinaryOp::Gt, reg(2), int(0, Ty::I32));
    vec![
        count(),
        count_of(reg(2)),
        sum(reg(2), DataType::Int64),
        sum(reg(3), DataType::Float64),
        min(reg(3), DataType::Float64),
        max(reg(1), DataType::Utf8),
        sum(reg(4), DataType::Decimal128(38, 2)),
        exact_sum(binary(BinaryOp::Div, reg(3), float(3.0, Ty::F64))),
        AggregateCall { filter: Some(positive), ..sum(convert(reg(2), Ty::I64), DataType::Int64) },
    ]
}

/// The same aggregates of the groups that a pipeline leaves behind so many keys.
fn united(calls: &[AggregateCall], keys: usize) -> Vec<AggregateCall> {
    let call = |(at, call): (usize, &AggregateCall)| AggregateCall {
        argument: Some(reg(keys + at)),
        filter: None,
        unites: true,
        ..call.clone()
    };
    calls.iter().enumerate().map(call).collect()
}

fn over(groups: usize, by: Vec<(Expr, DataType)>, calls: Vec<AggregateCall>) -> Pipeline {
    Pipeline { source: Source::Output(groups), steps: vec![], sink: Sink::Aggregate { groups: by, aggregates: calls } }
}

fn key(expr: Expr) -> (Expr, DataType) {
    (expr, DataType::Int64)
}

fn name(expr: Expr) -> (Expr, DataType) {
    (expr, DataType::Utf8)
}

#[test]
fn groups_of_groups_in_every_kind_of_grouping() {
    // Rows, keys and their distance: few groups, places by key, hashed ones.
    for (rows, keys, spread) in [(20_000, 3, 1), (5_000, 900, 2), (5_000, 900, SPREAD)] {
        let table = table(rows, keys, spread);
        let calls = all_aggregates();
        let finest = || aggregates(0, vec![], vec![key(reg(0)), name(reg(1))], calls.clone());
        let of_key = || over(0, vec![key(reg(0))], united(&calls, 2));
        check_orders(&fragment(&[5], vec![finest(), of_key()]), &[&table]);
        // Groups that are united again, to one.
        check_orders(&fragment(&[5], vec![finest(), of_key(), over(1, vec![], united(&calls, 1))]), &[&table]);
    }
}

/// ROLLUP of a key and a string, with the empty set twice.
fn rolled_up(steps: Vec<warpcube_engine::Step>, calls: &[AggregateCall]) -> Fragment {
    let number = |number: i128| (int(number, Ty::U8), DataType::UInt8);
    let pipelines = vec![
        aggregates(0, steps, vec![key(reg(0)), name(reg(1))], calls.to_vec()),
        over(0, vec![key(reg(0))], united(calls, 2)),
        over(1, vec![], united(calls, 1)),
        over(0, vec![key(reg(0)), name(reg(1)), number(0)], united(calls, 2)),
        over(1, vec![key(reg(0)), name(null(Ty::U32)), number(1)], united(calls, 1)),
        over(2, vec![key(null(Ty::I64)), name(null(Ty::U32)), number(3)], united(calls, 0)),
        over(2, vec![key(null(Ty::I64)), name(null(Ty::U32)), number(7)], united(calls, 0)),
    ];
    Fragment { unions: std::iter::once(3..7).collect(), ..fragment(&[5], pipelines) }
}

#[test]
fn sets_meet_in_one_table_of_groups() {
    for (rows, keys, spread) in [(9_000, 3, 1), (3_000, 400, 2), (3_000, 400, SPREAD)] {
        check_orders(&rolled_up(vec![], &all_aggregates()), &[&table(rows, keys, spread)]);
    }
    // No row at all: the empty sets have theirs.
    let none = filter(binary(BinaryOp::Lt, reg(0), int(-1_000, Ty::I64)));
    check(&rolled_up(vec![none], &all_aggregates()), &[&table(2_000, 40, 1)]);
}

#[test]
fn more_sets_than_a_launch_takes_meet_in_one_table() {
    let calls = vec![count(), sum(reg(2), DataType::Int64), max(reg(1), DataType::Utf8)];
    let set = |number: i128| {
        let by = vec![key(reg(0)), (int(number, Ty::U8), DataType::UInt8)];
        over(0, by, united(&calls, 1))
    };
    let finest = aggregates(0, vec![], vec![key(reg(0))], calls.clone());
    let pipelines = std::iter::once(finest).chain((0..20).map(set)).collect();
    let all = Fragment { unions: std::iter::once(1..21).collect(), ..fragment(&[5], pipelines) };
    // Places by key, and hashed ones, which find no room and grow while later launches wait.
    for (rows, keys, spread) in [(2_000, 300, 2), (6_000, 3_000, SPREAD)] {
        let report = check_orders(&all, &[&table(rows, keys, spread)]);
        assert_eq!(report.launch_groups.len(), 3, "one of groups, two of sets");
    }
}

#[test]
fn totals_alone_leave_their_type() {
    // Of each key and name one total leaves BIGINT; those of a key are small.
    let large = |row: usize| Some(if row.is_multiple_of(2) { i64::MAX } else { -i64::MAX + row as i64 });
    let table = MemoryTable::new(
        "large",
        vec![
            ("k", numbers::<Int64Type>(4_000, |row| Some(row as i64 % 10 / 2))),
            ("s", texts(4_000, |row| Some(format!("side {}", row % 2)))),
            ("v", numbers::<Int32Type>(4_000, |row| Some(row as i32))),
            ("x", numbers::<Int64Type>(4_000, large)),
        ],
    );
    let calls = vec![sum(reg(3), DataType::Int64), count()];
    let finest = || aggregates(0, vec![], vec![key(reg(0)), name(reg(1))], calls.clone());
    let of_key = || over(0, vec![key(reg(0))], united(&calls, 2));
    check_orders(&fragment(&[4], vec![finest(), of_key()]), &[&table]);
    let of_name = over(0, vec![name(reg(1))], united(&calls, 2));
    let raises = fragment(&[4], vec![finest(), of_name]);
    check_orders(&raises, &[&table]);
    let engine = engine(LaneOrder::Forward);
    assert!(matches!(run(&engine, &raises, &[&table]), Err(EngineError::Evaluation(_))), "a total of BIGINT is lost");
    check_orders(&Fragment { overflow: Overflow::Wrap, ..raises }, &[&table]);
}

#[test]
fn what_is_no_aggregate_is_not_united() {
    let calls = vec![count()];
    let finest = aggregates(0, vec![], vec![key(reg(0))], calls.clone());
    // The register of the key.
    let wrong = over(0, vec![], united(&calls, 0));
    let engine = engine(LaneOrder::Forward);
    let refused = run(&engine, &fragment(&[5], vec![finest, wrong]), &[&table(100, 10, 1)]);
    assert!(matches!(refused, Err(EngineError::Malformed(_))), "a key was united");
}
