//! Pipelines that scan the groups of another: aggregations of aggregates, filters of groups, joins with groups.

use arrow::datatypes::{DataType, Int64Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, EngineError, Expr, Fragment, JoinKind, Pipeline, RunOptions, Sink, Source, Step, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

/// [`keyed_facts`] with decimals of money.
fn table(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let money = |row| Some(i128::from(mixed(row, 5) % 10_000_000_000) - 5_000_000_000);
    keyed_facts(rows, keys, spread, decimals(rows, 15, 2, money))
}

fn over(groups: usize, steps: Vec<Step>, by: Vec<(Expr, DataType)>, calls: Vec<AggregateCall>) -> Pipeline {
    Pipeline { source: Source::Output(groups), steps, sink: Sink::Aggregate { groups: by, aggregates: calls } }
}

fn decimal() -> DataType {
    DataType::Decimal128(38, 2)
}

/// Six aggregates, registers 1 to 6 (or 2 to 7 behind two groups).
fn inner_calls() -> Vec<AggregateCall> {
    vec![
        count(),
        sum(reg(2), DataType::Int64),
        min(reg(3), DataType::Float64),
        max(reg(3), DataType::Float64),
        max(reg(2), DataType::Int32),
        sum(reg(4), decimal()),
    ]
}

/// Aggregates of the aggregates of groups by a key and, where `strings`, by a string.
fn aggregates_of_aggregates(strings: bool) -> Fragment {
    let mut by = vec![(reg(0), DataType::Int64)];
    by.extend(strings.then(|| (reg(1), DataType::Utf8)));
    let first = by.len();
    let value = |call: usize| reg(first + call);
    let above = vec![
        count(),
        count_of(reg(0)),
        sum(value(0), DataType::Int64),
        sum(value(1), DataType::Int64),
        min(value(2), DataType::Float64),
        max(value(3), DataType::Float64),
        min(value(4), DataType::Int32),
        max(convert(value(5), Ty::I128), decimal()),
        min(reg(0), DataType::Int64),
    ];
    let group = if strings { (reg(1), DataType::Utf8) } else { (value(0), DataType::Int64) };
    fragment(&[5], vec![aggregates(0, vec![], by, inner_calls()), over(0, vec![], vec![group], above)])
}

#[test]
fn aggregates_of_aggregates_by_every_kind_of_grouping() {
    // Rows, keys and their distance: private cells, places by key, hashed ones.
    for (rows, keys, spread, text) in
        [(70_000, 3, 1, "mine["), (6_000, 2_500, 2, "+ 1;"), (5_000, 900, SPREAD, "wc_table_enter")]
    {
        let report = check_orders(&aggregates_of_aggregates(false), &[&table(rows, keys, spread)]);
        let source = report.program().unwrap().source().to_string();
        assert!(source.contains(text), "{keys} keys: no {text:?} in\n{source}");
    }
}

#[test]
fn strings_and_nulls_are_keys_of_groups_of_groups() {
    check_orders(&aggregates_of_aggregates(true), &[&table(6_000, 40, 5)]);
    check(&aggregates_of_aggregates(true), &[&table(3_000, 40, SPREAD)]);
}

#[test]
fn sums_of_a_block_are_scanned() {
    let calls = || vec![sum(reg(2), DataType::Int64), count()];
    let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64)], calls());
    let outer = over(0, vec![], vec![(reg(2), DataType::Int64)], vec![sum(reg(1), DataType::Int64), count()]);
    let report = check_orders(&fragment(&[5], vec![inner, outer]), &[&table(21_000, 200, 1)]);
    assert!(report.program().unwrap().source().contains("wc_add_halves(low"), "sums are in shared memory");
}

#[test]
fn groups_are_filtered_by_their_aggregates() {
    for spread in [1, SPREAD] {
        let many = filter(binary(BinaryOp::Gt, reg(1), int(4, Ty::I64)));
        let above = filter(binary(BinaryOp::Lt, reg(2), int(10_000, Ty::I64)));
        let null = filter(Expr::Unary(warpcube_engine::UnaryOp::IsNotNull, Box::new(reg(0))));
        let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64)], inner_calls());
        let outer = over(0, vec![many, above, null], vec![(reg(0), DataType::Int64)], vec![max(reg(6), decimal())]);
        check_orders(&fragment(&[5], vec![inner, outer]), &[&table(6_000, 1_000, spread)]);
    }
}

#[test]
fn rows_are_joined_with_groups_by_their_key() {
    for (spread, kind) in
        [(1, JoinKind::Inner), (SPREAD, JoinKind::Left), (SPREAD, JoinKind::Semi), (2, JoinKind::Anti)]
    {
        let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64)], inner_calls());
        let many = filter(binary(BinaryOp::Gt, reg(1), int(3, Ty::I64)));
        let payload = match kind {
            JoinKind::Inner | JoinKind::Left => vec![reg(1), reg(2), reg(4), reg(6)],
            _ => vec![],
        };
        let takes_payload = !payload.is_empty();
        let build = Pipeline {
            source: Source::Output(0),
            steps: vec![many],
            sink: Sink::Build { keys: vec![reg(0)], payload },
        };
        let mut calls = vec![count(), sum(reg(2), DataType::Int64)];
        if takes_payload {
            calls.extend([sum(reg(5), DataType::Int64), max(reg(7), DataType::Float64), max(reg(8), decimal())]);
        }
        let steps = vec![probe(1, vec![reg(0)], kind)];
        let root = aggregates(0, steps, vec![(reg(1), DataType::Utf8)], calls);
        check_orders(&fragment(&[5], vec![inner, build, root]), &[&table(6_000, 900, spread)]);
    }
}

#[test]
fn groups_are_probed_by_groups() {
    let inner = |by: usize, data_type| {
        aggregates(0, vec![], vec![(reg(by), data_type)], vec![count(), max(reg(2), DataType::Int32)])
    };
    let build = Pipeline {
        source: Source::Output(0),
        steps: vec![],
        sink: Sink::Build { keys: vec![reg(2)], payload: vec![] },
    };
    let root =
        over(2, vec![probe(1, vec![reg(2)], JoinKind::Semi)], vec![], vec![count(), sum(reg(1), DataType::Int64)]);
    let pipelines = vec![inner(1, DataType::Utf8), build, inner(0, DataType::Int64), root];
    check_orders(&fragment(&[5], pipelines), &[&table(5_000, 700, 3)]);
}

#[test]
fn groups_of_nothing_are_no_rows() {
    check(&aggregates_of_aggregates(false), &[&table(0, 10, 1)]);
    let nothing = filter(binary(BinaryOp::Gt, reg(0), int(i64::MAX.into(), Ty::I64)));
    let inner = aggregates(0, vec![nothing], vec![(reg(0), DataType::Int64)], inner_calls());
    let outer = over(0, vec![], vec![], vec![count(), sum(reg(1), DataType::Int64), min(reg(3), DataType::Float64)]);
    check(&fragment(&[5], vec![inner, outer]), &[&table(3_000, 50, SPREAD)]);
}

#[test]
fn group_tables_that_are_scanned_grow() {
    let engine = engine(LaneOrder::Forward);
    let (fragment, facts) = (aggregates_of_aggregates(false), table(9_000, 4_000, SPREAD));
    let options = RunOptions { group_slots: Some(16), ..RunOptions::default() };
    let (batch, report) = engine.run(&fragment, &requests(&fragment, &[&facts]), &options).unwrap();
    assert!(report.grown > 0 && report.reruns == 0, "the first table is too small");
    let (expected, _) = run(&engine, &fragment, &[&facts]).unwrap();
    assert_eq!(batch.num_rows(), expected.num_rows());
    check_on(&engine, &fragment, &[&facts]);
}

#[test]
fn sums_of_groups_that_leave_their_type_raise() {
    let wide = MemoryTable::new(
        "wide",
        vec![
            ("k", numbers::<Int64Type>(64, |row| Some(row as i64 % 3))),
            ("v", numbers::<Int64Type>(64, |row| Some(if row % 3 == 0 { i64::MAX / 2 } else { row as i64 }))),
        ],
    );
    let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64)], vec![sum(reg(1), DataType::Int64)]);
    let outer = over(0, vec![], vec![], vec![max(reg(1), DataType::Int64)]);
    check_orders(&fragment(&[2], vec![inner, outer]), &[&wide]);
}

#[test]
fn one_group_without_a_key_is_one_row() {
    let calls = || vec![count(), sum(reg(2), DataType::Int64), min(reg(3), DataType::Float64), exact_sum(reg(3))];
    let none = || filter(binary(BinaryOp::Gt, reg(2), int(1 << 30, Ty::I32)));
    for (rows, steps) in [(3_000, vec![]), (0, vec![]), (3_000, vec![none()])] {
        let facts = table(rows, 50, 3);
        let whole = || aggregates(0, steps.clone(), vec![], calls());
        let above = vec![count(), sum(reg(1), DataType::Int64), max(reg(3), DataType::Float64)];
        check_orders(&fragment(&[5], vec![whole(), over(0, vec![], vec![], above)]), &[&facts]);
        let columns = (0..4).zip([DataType::Int64, DataType::Int64, DataType::Float64, DataType::Float64]);
        let columns = columns.map(|(register, data_type)| (reg(register), data_type)).collect();
        let sink = Sink::Rows { columns, limit: None };
        let all = Pipeline { source: Source::Output(0), steps: vec![], sink };
        check_orders(&fragment(&[5], vec![whole(), all]), &[&facts]);
        // Each row is compared with it.
        let one = || vec![int(1, Ty::I64)];
        let build = Pipeline {
            source: Source::Output(0),
            steps: vec![],
            sink: Sink::Build { keys: one(), payload: vec![reg(1), reg(0)] },
        };
        let less = filter(binary(BinaryOp::Lt, convert(reg(2), Ty::I64), binary(BinaryOp::Div, reg(5), reg(6))));
        let root = aggregates(0, vec![probe(1, one(), JoinKind::Inner), less], vec![], vec![count()]);
        check_orders(&fragment(&[5], vec![whole(), build, root]), &[&facts]);
    }
}

#[test]
fn rows_are_a_result() {
    let all = |from: usize| {
        let columns = vec![
            (reg(from), DataType::Int64),
            (reg(from + 1), DataType::Utf8),
            (reg(from + 2), DataType::Int32),
            (binary(BinaryOp::Mul, reg(from + 3), float(-0.0, Ty::F64)), DataType::Float64),
            (reg(from + 4), DataType::Decimal128(15, 2)),
        ];
        Sink::Rows { columns, limit: None }
    };
    let facts = table(6_000, 900, 7);
    let some = filter(binary(BinaryOp::Lt, reg(2), int(60_000, Ty::I32)));
    let rows = Pipeline { source: Source::Table(0), steps: vec![some], sink: all(0) };
    check_orders(&fragment(&[5], vec![rows]), &[&facts]);
    check(
        &fragment(&[5], vec![Pipeline { source: Source::Table(0), steps: vec![], sink: all(0) }]),
        &[&table(0, 9, 7)],
    );
    // Joined with groups, of which few are left, and more rows than the result has room for at first.
    let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64)], inner_calls());
    let many = filter(binary(BinaryOp::Gt, reg(1), int(5, Ty::I64)));
    let sink = Sink::Build { keys: vec![reg(0)], payload: vec![reg(2)] };
    let build = Pipeline { source: Source::Output(0), steps: vec![many], sink };
    let join = probe(1, vec![reg(0)], JoinKind::Inner);
    let root = Pipeline {
        source: Source::Table(0),
        steps: vec![join],
        sink: Sink::Rows { columns: vec![(reg(1), DataType::Utf8), (reg(5), DataType::Int64)], limit: None },
    };
    let joined = fragment(&[5], vec![inner, build, root]);
    check_orders(&joined, &[&facts]);
    let engine = engine(LaneOrder::Forward);
    let options = RunOptions { group_slots: Some(1024), ..RunOptions::default() };
    let (batch, report) = engine.run(&joined, &requests(&joined, &[&facts]), &options).unwrap();
    assert!(report.grown > 0 && batch.num_rows() > 1024, "{} rows", batch.num_rows());
    // Some of them are enough.
    let mut some = joined.clone();
    let Some(Sink::Rows { limit, .. }) = some.pipelines.last_mut().map(|root| &mut root.sink) else {
        panic!("no rows")
    };
    *limit = Some(700);
    let (found, report) = engine.run(&some, &requests(&some, &[&facts]), &RunOptions::default()).unwrap();
    assert_eq!((found.num_rows(), report.reruns), (700, 0));
    let text = |batch: &arrow::record_batch::RecordBatch| -> std::collections::HashSet<String> {
        (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns())).collect()
    };
    assert!(text(&found).is_subset(&text(&batch)));
    let options = RunOptions { groups_max: Some(1024), ..RunOptions::default() };
    let refused = engine.run(&joined, &requests(&joined, &[&facts]), &options);
    assert!(matches!(refused, Err(EngineError::Unsupported(reason)) if reason.contains("more than pay")));
}

#[test]
fn keys_of_several_words_are_scanned() {
    let by = vec![
        (reg(3), DataType::Float64),
        (reg(0), DataType::Int64),
        (reg(1), DataType::Utf8),
        (convert(reg(2), Ty::I64), DataType::Int64),
    ];
    let inner = || aggregates(0, vec![], by.clone(), vec![count(), sum(reg(4), decimal())]);
    let calls = || {
        vec![
            count(),
            count_of(reg(0)),
            min(reg(0), DataType::Float64),
            max(reg(5), decimal()),
            sum(reg(3), DataType::Int64),
        ]
    };
    let facts = table(4_000, 300, SPREAD);
    check_orders(&fragment(&[5], vec![inner(), over(0, vec![], vec![(reg(2), DataType::Utf8)], calls())]), &[&facts]);
    check(&fragment(&[5], vec![inner(), over(0, vec![], vec![(reg(1), DataType::Int64)], calls())]), &[&facts]);
    // A full word has no place for NULL.
    let all = MemoryTable::new(
        "all",
        vec![
            (
                "k",
                numbers::<Int64Type>(900, |row| {
                    (row % 7 != 3).then(|| [i64::MIN, i64::MAX, 0, -1, row as i64][row % 5])
                }),
            ),
            ("j", numbers::<Int64Type>(900, |row| (row % 5 != 2).then(|| [i64::MAX, i64::MIN, 5][row % 3]))),
        ],
    );
    let inner = aggregates(0, vec![], vec![(reg(0), DataType::Int64), (reg(1), DataType::Int64)], vec![count()]);
    let outer = over(
        0,
        vec![],
        vec![(reg(1), DataType::Int64)],
        vec![count(), count_of(reg(0)), max(reg(0), DataType::Int64), min(reg(0), DataType::Int64)],
    );
    check_orders(&fragment(&[2], vec![inner, outer]), &[&all]);
}
