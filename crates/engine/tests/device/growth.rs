//! Sinks with too little room at first: their scans stop, and go on with more, for every kind of scan and of sink.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, BindingCache, Engine, EngineError, Expr, Fragment, JoinKind, Literal, Pipeline,
    RunOptions, RunReport, Sink, Source, Step, Ty,
};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;
/// Tunings by which tables and results begin with too little room.
const SMALL: [&str; 3] =
    ["group_slots=2,expected_keys=1", "group_slots=64,expected_keys=40,launch_chunks=1", "group_slots=1000"];

/// Columns: a sparse key of so many values with NULLs, a narrow number, a value, a share of a thousand, a second key.
fn facts(rows: usize, keys: u64) -> MemoryTable {
    MemoryTable::shaped(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| (row % 23 != 7).then_some((mixed(row, 1) % keys) as i64 * SPREAD))),
            ("v", numbers::<Int32Type>(rows, |row| (row % 11 != 3).then_some(mixed(row, 2) as i32))),
            ("n", numbers::<Int64Type>(rows, |row| Some(row as i64 * 3))),
            ("p", numbers::<Int32Type>(rows, |row| Some((mixed(row, 3) % 1_000) as i32))),
            ("l", numbers::<Int64Type>(rows, |row| Some((mixed(row, 4) % 50) as i64 * i64::from(i32::MAX) * 3_000))),
        ],
        Shape { partitions: 3, batch_rows: 1_700 },
    )
}

fn calls() -> Vec<AggregateCall> {
    vec![
        count(),
        count_of(reg(1)),
        sum(reg(1), DataType::Int64),
        min(reg(1), DataType::Int32),
        max(reg(2), DataType::Int64),
    ]
}

/// Rows of which so many in a thousand are left.
fn per_mille(most: i128) -> Step {
    filter(binary(BinaryOp::Lt, reg(3), int(most, Ty::I32)))
}

fn by_key() -> Vec<(Expr, DataType)> {
    vec![(reg(0), DataType::Int64)]
}

/// Runs a fragment with each tuning in each order of lanes: it stops and goes on, gives what the interpreter does, and
/// the next run has room at once.
#[track_caller]
fn check_growth(fragment: &Fragment, tables: &[&MemoryTable]) -> Vec<RunReport> {
    let mut reports = Vec::new();
    for tuning in SMALL {
        for order in ORDERS {
            let engine = engine(order).with_tuning(tuning.parse().unwrap());
            let cache = BindingCache::default();
            let first = compare_again(&engine, fragment, &cache, tables);
            let again = compare_again(&engine, fragment, &cache, tables);
            assert_eq!((again.grown, again.reruns), (0, 0), "{tuning}: the room is kept");
            reports.push(first);
        }
    }
    reports.iter().for_each(|report| assert_eq!(report.reruns, 0, "nothing runs twice"));
    assert!(reports[0].grown > 0, "{}", reports[0].grown);
    if let Some(program) = reports[0].program() {
        compile_for_a_gpu(&program);
    }
    reports
}

fn text(report: &RunReport) -> String {
    report.program().unwrap().source().to_string()
}

#[test]
fn groups_of_rows_in_place() {
    let reports = check_growth(&single(5, vec![], by_key(), calls()), &[&facts(9_000, 2_500)]);
    assert!(text(&reports[0]).contains("wc_slot_of<") && !text(&reports[0]).contains("queue["));
    // 2, 16, 128, 1024 and 8192 slots.
    assert!(reports[0].grown >= 4, "{}", reports[0].grown);
}

#[test]
fn groups_of_rows_from_a_queue() {
    let reports = check_growth(&single(5, vec![per_mille(150)], by_key(), calls()), &[&facts(20_000, 2_500)]);
    assert!(text(&reports[0]).contains("queue["));
}

#[test]
fn groups_of_vectors_that_are_left() {
    // Vectors outside of a range of the ascending column are left out.
    let range = [
        filter(binary(BinaryOp::Ge, reg(2), int(6_000, Ty::I64))),
        filter(binary(BinaryOp::Lt, reg(2), int(50_000, Ty::I64))),
    ];
    let fragment = single(5, range.to_vec(), by_key(), calls());
    for zones in ["skip_rows=0", "skip_rows=0,in_place=1.5"] {
        for tuning in SMALL {
            let tuning = format!("{tuning},{zones}");
            let engine = engine(LaneOrder::Seeded(3)).with_tuning(tuning.parse().unwrap());
            let report = compare_on(&engine, &fragment, &[&facts(20_000, 2_500)]);
            assert!(text(&report).contains("auto zone = ") && report.grown > 0 && report.reruns == 0, "{tuning}");
            assert_eq!(text(&report).contains("queue["), zones.contains("in_place"));
        }
    }
}

#[test]
fn groups_of_two_words() {
    let by = vec![(reg(0), DataType::Int64), (reg(4), DataType::Int64)];
    let reports = check_growth(&single(5, vec![], by, calls()), &[&facts(6_000, 90)]);
    assert!(text(&reports[0]).contains("wc_wide_enter("));
}

#[test]
fn groups_of_runs() {
    // Runs of one row to five, of long ones too; in no order.
    let run_of = |row: usize| if row % 3_000 < 2_000 { row / 3 + row % 3 / 2 } else { row / 3_000 + 900_000 };
    let key = |row: usize| (mixed(run_of(row), 5) % 1_900) as i64 * SPREAD;
    let table = MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(12_000, |row| (run_of(row) % 13 != 4).then(|| key(row)))),
            ("v", numbers::<Int32Type>(12_000, |row| Some(mixed(row, 2) as i32))),
            ("p", numbers::<Int32Type>(12_000, |row| Some((mixed(row, 3) % 1_000) as i32))),
        ],
    );
    let calls = || vec![count(), sum(reg(1), DataType::Int64), max(reg(1), DataType::Int32)];
    for steps in [vec![], vec![filter(binary(BinaryOp::Lt, reg(2), int(800, Ty::I32)))]] {
        let reports = check_growth(&single(3, steps, by_key(), calls()), &[&table]);
        assert!(text(&reports[0]).contains("wc_runs_left<"));
    }
}

#[test]
fn groups_that_another_pipeline_scans() {
    for by in [by_key(), vec![(reg(0), DataType::Int64), (reg(4), DataType::Int64)]] {
        let inner = aggregates(0, vec![], by.clone(), calls());
        let keys = by.len();
        let sink = Sink::Aggregate {
            groups: vec![(binary(BinaryOp::Rem, reg(keys), int(7, Ty::I64)), DataType::Int64)],
            aggregates: vec![count(), sum(reg(keys + 2), DataType::Int64), max(reg(0), DataType::Int64)],
        };
        let outer = Pipeline { source: Source::Output(0), steps: vec![], sink };
        check_growth(&fragment(&[5], vec![inner, outer]), &[&facts(9_000, 3_000)]);
    }
}

#[test]
fn groups_of_a_union() {
    let branch = |table, steps| aggregates(table, steps, by_key(), calls());
    let pipelines = vec![branch(0, vec![per_mille(100)]), branch(1, vec![]), branch(0, vec![])];
    let union = Fragment { unions: std::iter::once(0..3).collect(), ..fragment(&[5, 5], pipelines) };
    check_growth(&union, &[&facts(7_000, 2_000), &facts(5_000, 3_000)]);
}

/// Builds of the second table, one by a sparse key and one by a dense one, that the first probes.
fn joined(kind: JoinKind, least: i128, root: impl Fn(Vec<Step>, usize) -> Pipeline) -> Fragment {
    let few = filter(binary(BinaryOp::Ge, reg(3), int(least, Ty::I32)));
    let third = binary(BinaryOp::Div, reg(2), int(3, Ty::I64));
    let sparse = builds(1, vec![few.clone()], vec![reg(2)], vec![reg(1), reg(3)]);
    let dense = builds(1, vec![few], vec![third], vec![reg(0)]);
    let steps = vec![probe(0, vec![reg(2)], kind), probe(1, vec![convert(reg(3), Ty::I64)], JoinKind::Semi)];
    fragment(&[5, 5], vec![sparse, dense, root(steps, 5)])
}

/// Rows of which one in a thousand is expected to pass [`many`], and nearly all do.
fn side(rows: usize) -> MemoryTable {
    let share = |row: usize| if row < 1_000 { row as i32 } else { 5_000 };
    MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| Some((mixed(row, 1) >> 20) as i64))),
            ("v", numbers::<Int32Type>(rows, |row| (row % 11 != 3).then_some(mixed(row, 2) as i32))),
            ("n", numbers::<Int64Type>(rows, |row| Some(row as i64 * SPREAD))),
            ("p", numbers::<Int32Type>(rows, |row| Some(share(row)))),
        ],
    )
}

fn many() -> Step {
    filter(binary(BinaryOp::Eq, reg(3), int(5_000, Ty::I32)))
}

#[test]
fn join_tables_for_the_rows_that_are_expected() {
    let direct = filter(binary(BinaryOp::Lt, reg(3), int(600, Ty::I32)));
    for words in [vec![reg(2)], vec![reg(2), reg(0)]] {
        let build = builds(1, vec![many()], words.clone(), vec![reg(1), reg(3)]);
        let beside = builds(1, vec![direct.clone()], vec![reg(3)], vec![reg(1)]);
        let calls = vec![count(), sum(reg(4), DataType::Int64), count_of(reg(6))];
        let steps = vec![probe(0, words, JoinKind::Inner), probe(1, vec![reg(1)], JoinKind::Left)];
        let root = aggregates(0, steps, vec![], calls);
        let fragment = fragment(&[4, 4], vec![build, beside, root]);
        let facts = side(12_000);
        for order in ORDERS {
            let tuning = "expected_keys=1".parse().unwrap();
            let engine = engine(order).with_tuning(tuning);
            let cache = BindingCache::default();
            let report = compare_again(&engine, &fragment, &cache, &[&facts, &side(12_000)]);
            assert!(report.grown > 0 && report.reruns == 0, "{} {}", report.grown, report.reruns);
            assert_eq!(compare_again(&engine, &fragment, &cache, &[&facts, &side(12_000)]).grown, 0);
        }
    }
}

#[test]
fn rows_of_unions() {
    let rows = |table, most, columns: &[Expr]| Pipeline {
        source: Source::Table(table),
        steps: vec![per_mille(most)],
        sink: Sink::Rows { columns: columns.iter().map(|expr| (expr.clone(), DataType::Int64)).collect(), limit: None },
    };
    let null = Expr::Literal(Literal::Null, Ty::I64);
    // Columns that only one branch has, and one word or several a row.
    for columns in [[vec![reg(2)], vec![reg(4)]], [vec![reg(0), reg(2), reg(4)], vec![reg(4), null, reg(0)]]] {
        let [first, second] = &columns;
        let calls = vec![count(), count_of(reg(first.len() - 1)), sum(reg(first.len() / 2), DataType::Int64)];
        let by = if first.len() > 1 { by_key() } else { vec![] };
        let root = Pipeline {
            source: Source::Output(1),
            steps: vec![],
            sink: Sink::Aggregate { groups: by, aggregates: calls },
        };
        let pipelines = vec![rows(0, 700, first), rows(1, 900, second), root];
        let whole = Fragment { unions: std::iter::once(0..2).collect(), ..fragment(&[5, 5], pipelines) };
        check_growth(&whole, &[&facts(6_000, 60), &facts(3_000, 90)]);
    }
}

#[test]
fn rows_and_lists() {
    let root = |steps: Vec<Step>, _| Pipeline {
        source: Source::Table(0),
        steps,
        sink: Sink::Rows { columns: vec![(reg(0), DataType::Int64), (reg(5), DataType::Int32)], limit: None },
    };
    check_growth(&joined(JoinKind::Left, 0, root), &[&facts(4_000, 60), &facts(3_000, 60)]);
    for columns in [vec![reg(1)], vec![reg(0), reg(4), reg(1)]] {
        let columns: Vec<_> = columns.into_iter().map(|column| (column, DataType::Int64)).collect();
        let width = columns.len();
        let list = Pipeline {
            source: Source::Table(0),
            steps: vec![per_mille(700)],
            sink: Sink::Rows { columns, limit: None },
        };
        let calls = vec![count(), sum(reg(width - 1), DataType::Int64)];
        let outer = Pipeline {
            source: Source::Output(0),
            steps: vec![],
            sink: Sink::Aggregate { groups: vec![], aggregates: calls },
        };
        check_growth(&fragment(&[5], vec![list, outer]), &[&facts(6_000, 60)]);
    }
}

/// Runs a fragment until it knows which tables have several rows for a key, with too little room for what follows.
#[track_caller]
fn check_several(fragment: &Fragment, tables: &[&MemoryTable]) {
    for tuning in ["group_slots=2", "group_slots=100,launch_chunks=1"] {
        for order in ORDERS {
            let engine = engine(order).with_tuning(tuning.parse().unwrap());
            let cache = BindingCache::default();
            let report = compare_again(&engine, fragment, &cache, tables);
            assert!(report.grown > 0, "{tuning}: {} {}", report.grown, report.reruns);
            let again = compare_again(&engine, fragment, &cache, tables);
            assert_eq!((again.grown, again.reruns), (0, 0), "{tuning}");
        }
    }
}

#[test]
fn rows_with_several_matches() {
    let tables = [&facts(700, 40), &facts(900, 60)];
    let build = || builds(1, vec![], vec![reg(0)], vec![reg(1), reg(3)]);
    let join = |kind| vec![probe(0, vec![reg(0)], kind)];
    for kind in [JoinKind::Inner, JoinKind::Left] {
        // Into groups.
        let by = vec![(reg(5), DataType::Int32), (reg(0), DataType::Int64)];
        let root = aggregates(0, join(kind), by, vec![count(), sum(reg(6), DataType::Int64)]);
        check_several(&fragment(&[5, 5], vec![build(), root]), &tables);
        // Into rows.
        let columns = vec![(reg(2), DataType::Int64), (reg(5), DataType::Int32), (reg(6), DataType::Int32)];
        let root = Pipeline { source: Source::Table(0), steps: join(kind), sink: Sink::Rows { columns, limit: None } };
        check_several(&fragment(&[5, 5], vec![build(), root]), &tables);
    }
    // Two joins in turn, into rows.
    let steps = vec![probe(0, vec![reg(0)], JoinKind::Inner), probe(1, vec![reg(6)], JoinKind::Inner)];
    let columns = vec![(reg(2), DataType::Int64), (reg(5), DataType::Int32), (reg(7), DataType::Int64)];
    let root = Pipeline { source: Source::Table(0), steps, sink: Sink::Rows { columns, limit: None } };
    let other = builds(1, vec![per_mille(300)], vec![reg(3)], vec![reg(2)]);
    check_several(&fragment(&[5, 5], vec![build(), other, root]), &[&facts(150, 40), &facts(900, 60)]);
}

#[test]
fn tables_of_rows_with_several_matches() {
    let product = |column: usize| binary(BinaryOp::Mul, convert(reg(column), Ty::I64), int(SPREAD.into(), Ty::I64));
    for keys in [vec![product(3)], vec![product(3), reg(0)], vec![reg(3)]] {
        let first = builds(1, vec![], vec![reg(0)], vec![reg(2)]);
        let below = builds(0, vec![probe(0, vec![reg(0)], JoinKind::Inner)], keys.clone(), vec![reg(5)]);
        let calls = vec![count(), sum(reg(5), DataType::Int64)];
        let root = aggregates(0, vec![probe(1, keys, JoinKind::Inner)], vec![], calls);
        check_several(&fragment(&[5, 5], vec![first, below, root]), &[&facts(400, 30), &facts(500, 30)]);
    }
}

#[test]
fn errors_are_those_of_the_whole_run() {
    // Behind a table that is not whole, rows would find nothing, and their groups would be divided by zero.
    let build = builds(1, vec![many()], vec![reg(2)], vec![reg(3)]);
    let by = vec![(binary(BinaryOp::Rem, reg(0), int(50, Ty::I64)), DataType::Int64)];
    let join = vec![many(), probe(0, vec![reg(2)], JoinKind::Left)];
    let inner = aggregates(0, join, by, vec![count_of(reg(4))]);
    let quotient = binary(BinaryOp::Div, int(1_000, Ty::I64), reg(1));
    let outer = Pipeline {
        source: Source::Output(1),
        steps: vec![],
        sink: Sink::Aggregate { groups: vec![], aggregates: vec![sum(quotient, DataType::Int64)] },
    };
    let engine = engine(LaneOrder::Reversed).with_tuning(SMALL[0].parse().unwrap());
    let report = compare_on(&engine, &fragment(&[4, 4], vec![build, inner, outer]), &[&side(9_000), &side(9_000)]);
    assert!(report.grown > 0 && report.reruns == 0 && report.program().is_some());
    // A row that raises does so whether the scan stops or not.
    let raises = filter(binary(BinaryOp::Gt, binary(BinaryOp::Div, int(9, Ty::I64), reg(2)), int(-1, Ty::I64)));
    let fragment = single(5, vec![raises], by_key(), vec![count()]);
    let error = run(&engine, &fragment, &[&facts(5_000, 90)]).unwrap_err();
    assert!(matches!(error, EngineError::Evaluation("a division by zero")), "{error}");
}

#[test]
fn behind_a_limit_there_is_room_for_all() {
    // Rows that a limit has let pass are not known again.
    let steps = vec![Step::Limit { skip: 10, rows: 1_500 }];
    let fragment = single(5, steps, by_key(), vec![count()]);
    let engine = engine(LaneOrder::Forward).with_tuning(SMALL[0].parse().unwrap());
    let (batch, report) = run(&engine, &fragment, &[&facts(6_000, 2_500)]).unwrap();
    assert_eq!((report.reruns, report.grown), (0, 0));
    let counts = batch.column(1).as_any().downcast_ref::<arrow::array::Int64Array>().unwrap();
    assert_eq!(counts.iter().flatten().sum::<i64>(), 1_500);
}

#[test]
fn without_memory_for_both_the_run_begins_anew() {
    let fragment = single(5, vec![], by_key(), calls());
    let facts = facts(9_000, 2_500);
    let few = |budget: u64| {
        let device = Device::emulated(EmulatorOptions::default(), budget).unwrap();
        let engine = Engine::new(device).with_tuning("group_slots=1024".parse().unwrap());
        engine.run(&fragment, &requests(&fragment, &[&facts]), &RunOptions::default())
    };
    let (expected, report) = few(64 << 20).unwrap();
    assert_eq!((report.reruns, report.grown), (0, 1));
    // With less and less memory there is first none for both, then none for the second.
    let mut anew = 0;
    for budget in (0..).map(|step| (4 << 20) - step * (16 << 10)) {
        match few(budget) {
            Ok((batch, report)) => {
                assert_eq!((batch.num_rows(), report.reruns + report.grown), (expected.num_rows(), 1));
                anew += report.reruns;
            }
            Err(error) => {
                assert!(error.to_string().starts_with("COL-002 "), "{error}");
                break;
            }
        }
    }
    assert!(anew > 0);
}
