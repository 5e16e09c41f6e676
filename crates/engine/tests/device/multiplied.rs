//! What rows of joins with several matches go into beside groups and results: the first rows by an order, tables of
//! other joins, rows that another pipeline scans.

use arrow::array::Array;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{
    BinaryOp, BindingCache, Expr, Fragment, JoinKind, OrderKey, Pipeline, RunOptions, Sink, Source, Step, TopK,
    TopKAlgorithm, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;
const KINDS: [JoinKind; 2] = [JoinKind::Inner, JoinKind::Left];

/// Columns: a key with NULLs, a narrow key, the row, a double with both zeros and NaN, a number of all 64 bits.
fn facts(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let double = |row: usize| match mixed(row, 6) % 9 {
        0 => None,
        1 => Some(-0.0),
        2 => Some(f64::NAN),
        other => Some(other as f64 * 1.5 - 6.0),
    };
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| (row % 19 != 4).then_some((mixed(row, 1) % keys) as i64 * spread))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 31 != 4).then_some((mixed(row, 2) % 6) as u8))),
            ("row", numbers::<Int32Type>(rows, |row| Some(row as i32))),
            ("f", numbers::<Float64Type>(rows, double)),
            ("w", numbers::<Int64Type>(rows, |row| (row % 11 != 3).then_some(mixed(row, 8) as i64))),
        ],
    )
}

/// Several rows a key, more of some: a key with NULLs, a narrow key, the row and a string with NULLs.
fn several(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let key = move |row: usize| (mixed(row, 4) % keys * (mixed(row, 5) % 3) / 2) as i64 * spread;
    MemoryTable::new(
        "several",
        vec![
            ("k", numbers::<Int64Type>(rows, move |row| (row % 29 != 0).then_some(key(row)))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 37 != 0).then_some(row as u8 % 5))),
            ("row", numbers::<Int32Type>(rows, |row| Some(row as i32))),
            ("s", texts(rows, |row| (row % 7 != 2).then(|| format!("text {}", row % 11)))),
        ],
    )
}

/// The first `k` rows of facts joined with [`several`] by the first key, whose row and string it brings.
fn first_matches(kind: JoinKind, steps: Vec<Step>, keys: Vec<OrderKey>, k: Option<u64>) -> Fragment {
    let outputs = vec![
        (reg(2), DataType::Int32),
        (reg(6), DataType::Utf8),
        (reg(5), DataType::Int32),
        (reg(3), DataType::Float64),
        (binary(BinaryOp::Add, reg(2), reg(2)), DataType::Int32),
        (reg(4), DataType::Int64),
    ];
    let sink = Sink::TopK(TopK { keys, k, skip: 0, outputs, windows: vec![], first: None, algorithm: None });
    let steps = [probe(0, vec![reg(0)], kind)].into_iter().chain(steps).collect();
    let root = Pipeline { source: Source::Table(0), steps, sink };
    fragment(&[5, 4], vec![builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]), root])
}

/// No two matches are equal by the last two.
fn by_string() -> Vec<OrderKey> {
    vec![descending(reg(6)), ascending(reg(1)), ascending(reg(2)), descending(reg(5))]
}

#[test]
fn first_rows_are_matches() {
    for kind in KINDS {
        for (keys, k, spread) in [(by_string(), 30, 1), (by_string(), 5_000, SPREAD)] {
            let fragment = first_matches(kind, vec![], keys, Some(k));
            let report = check_all_orders(&fragment, &[&facts(600, 90, spread), &several(500, 90, spread)]);
            assert_eq!(report.reruns, 1, "the table is built again with room for several rows");
        }
        // A sort, of what a filter behind the join leaves.
        let few = filter(binary(BinaryOp::Lt, reg(2), int(70, Ty::I32)));
        let keys = vec![ascending(reg(3)), descending(reg(2)), ascending(reg(5))];
        let fragment = first_matches(kind, vec![few], keys, None);
        check_all_orders(&fragment, &[&facts(600, 90, 1), &several(500, 90, 1)]);
    }
}

#[test]
fn first_rows_of_nothing_of_null_and_of_one_key() {
    let engine = engine(LaneOrder::Forward);
    let null = |table: &str, rows: usize| {
        let columns = vec![
            ("k", numbers::<Int64Type>(rows, |_| None)),
            ("j", numbers::<UInt8Type>(rows, |_| None)),
            ("row", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ];
        let others = match table {
            "facts" => vec![("f", numbers::<Float64Type>(rows, |_| None)), ("w", numbers::<Int64Type>(rows, |_| None))],
            _ => vec![("s", texts(rows, |_| None))],
        };
        MemoryTable::new(table, columns.into_iter().chain(others).collect())
    };
    for kind in KINDS {
        let fragment = first_matches(kind, vec![], by_string(), Some(40));
        for (left, right) in [(0, 50), (50, 0), (0, 0), (1, 2), (33, 40)] {
            check_rows_of(&engine, &fragment, &[&facts(left, 5, 1), &several(right, 5, 1)]);
        }
        check_rows_of(&engine, &fragment, &[&null("facts", 70), &several(90, 5, 1)]);
        check_rows_of(&engine, &fragment, &[&facts(70, 5, 1), &null("several", 90)]);
        // One key: each row has half of the others as matches.
        check_rows_of(&engine, &fragment, &[&facts(150, 1, 1), &several(200, 1, 1)]);
    }
}

#[test]
fn many_matches_are_sampled_and_their_list_grows() {
    let engine = engine(LaneOrder::Seeded(3));
    let tables = [&facts(1_200, 20, 1), &several(1_000, 20, 1)];
    let fragment = first_matches(JoinKind::Inner, vec![], by_string(), Some(50));
    let report = check_rows_of(&engine, &fragment, &tables);
    let top = report.top.unwrap();
    assert!(top.starts_with("threshold") && top.contains("rows drawn"), "{top}");
    let named = by(fragment.clone(), TopKAlgorithm::RadixSelect);
    assert!(check_rows_of(&engine, &named, &tables).top.unwrap().starts_with("radix_select"));
    // The list has room for too few rows, twice.
    let options = RunOptions { group_slots: Some(1 << 10), ..RunOptions::default() };
    let cache = BindingCache::seeded(5);
    let run = || engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &options).unwrap();
    let (rows, report) = run();
    assert_eq!((rows.num_rows(), report.reruns, report.grown), (50, 1, 2), "several rows, 8 and 64 times the room");
    let report = run().1;
    assert_eq!((report.reruns, report.grown), (0, 0), "the room is kept");
}

#[test]
fn joins_follow_several_matches_before_an_order() {
    // Two tables of several rows a key, the second by what the first match gives.
    let steps = vec![
        probe(0, vec![reg(0)], JoinKind::Inner),
        probe(1, vec![convert(binary(BinaryOp::Rem, reg(5), int(40, Ty::I32)), Ty::I64)], JoinKind::Left),
        filter(binary(BinaryOp::Ne, reg(5), reg(2))),
    ];
    let outputs = vec![(reg(2), DataType::Int32), (reg(5), DataType::Int32), (reg(7), DataType::Utf8)];
    let keys = vec![ascending(reg(7)), ascending(reg(2)), ascending(reg(5)), ascending(reg(6))];
    let root = Pipeline {
        source: Source::Table(0),
        steps,
        sink: Sink::TopK(TopK { keys, k: Some(300), skip: 0, outputs, windows: vec![], first: None, algorithm: None }),
    };
    let pipelines = vec![
        builds(1, vec![], vec![reg(0)], vec![reg(2)]),
        builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]),
        root,
    ];
    check_all_orders(&fragment(&[5, 4], pipelines), &[&facts(200, 60, 1), &several(250, 60, 1)]);
}

/// A table of rows that have several matches in another, asked by the second key of facts.
fn table_of_matches(kind: JoinKind, payload: Vec<Expr>, by: Expr) -> Fragment {
    // Registers of the build: those of several, then the row and the string of its matches in several itself.
    let below = builds(1, vec![probe(0, vec![reg(0)], JoinKind::Inner)], vec![by], payload);
    let groups = vec![(reg(5), DataType::Int32)];
    let calls = match kind {
        JoinKind::Inner | JoinKind::Left => {
            vec![count(), sum(reg(6), DataType::Int64), max(reg(7), DataType::Utf8), sum(reg(2), DataType::Int64)]
        }
        _ => vec![count(), sum(reg(2), DataType::Int64)],
    };
    let groups = if calls.len() > 2 { groups } else { vec![(reg(1), DataType::UInt8)] };
    let root = aggregates(0, vec![probe(1, vec![reg(1)], kind)], groups, calls);
    fragment(&[5, 4], vec![builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]), below, root])
}

#[test]
fn tables_hold_rows_with_several_matches() {
    let payload = || vec![reg(2), reg(4), reg(5)];
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        let payload = if matches!(kind, JoinKind::Inner | JoinKind::Left) { payload() } else { vec![] };
        for spread in [1, SPREAD] {
            let fragment = table_of_matches(kind, payload.clone(), reg(1));
            check_orders(&fragment, &[&facts(40, 30, spread), &several(120, 30, spread)]);
        }
    }
}

#[test]
fn tables_of_matches_are_found_by_what_a_match_gives_and_grow() {
    let engine = engine(LaneOrder::Seeded(5));
    // Each of 900 rows has some of 900 matches; keys are theirs, more than there are rows where both make one.
    let both = binary(
        BinaryOp::Add,
        binary(BinaryOp::Mul, convert(reg(2), Ty::I64), int(SPREAD.into(), Ty::I64)),
        convert(reg(4), Ty::I64),
    );
    let wanted = binary(BinaryOp::Mul, convert(reg(2), Ty::I64), int(i128::from(SPREAD) + 1, Ty::I64));
    for kind in [JoinKind::Inner, JoinKind::Semi, JoinKind::Anti] {
        let joins = kind == JoinKind::Inner;
        let payload = if joins { vec![reg(4)] } else { vec![] };
        let below = builds(1, vec![probe(0, vec![reg(0)], JoinKind::Inner)], vec![both.clone()], payload);
        let calls = vec![count(), sum(reg(if joins { 5 } else { 2 }), DataType::Int64)];
        let root = aggregates(0, vec![probe(1, vec![wanted.clone()], kind)], vec![], calls);
        let fragment = fragment(&[5, 4], vec![builds(1, vec![], vec![reg(0)], vec![reg(2)]), below, root]);
        let tables = [&facts(900, 30, 1), &several(900, 60, 1)];
        check_on(&engine, &fragment, &tables);
        // There is room for too few at first.
        let options = RunOptions { group_slots: Some(64), ..RunOptions::default() };
        let cache = BindingCache::seeded(5);
        let run = || engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &options).unwrap();
        let (grown, report) = run();
        assert!(report.grown > 1, "{}", report.grown);
        let (whole, _) = engine.run(&fragment, &requests(&fragment, &tables), &RunOptions::default()).unwrap();
        assert_eq!(grown, whole);
        assert_eq!(run().1.grown, 0, "the room is kept");
    }
}

#[test]
fn rows_are_scanned_by_another_pipeline() {
    // All types, packed into one word and into several.
    for columns in [vec![1, 2, 6], vec![0, 1, 2, 3, 4, 5, 6]] {
        let types = [
            DataType::Int64,
            DataType::UInt8,
            DataType::Int32,
            DataType::Float64,
            DataType::Int64,
            DataType::Int32,
            DataType::Utf8,
        ];
        let some: Vec<(Expr, DataType)> = columns.iter().map(|at| (reg(*at), types[*at].clone())).collect();
        let list = Pipeline {
            source: Source::Table(0),
            steps: vec![probe(0, vec![reg(0)], JoinKind::Left)],
            sink: Sink::Rows { columns: some.clone(), limit: None },
        };
        let all = some.iter().enumerate().map(|(at, (_, data_type))| (reg(at), data_type.clone())).collect();
        let row = columns.iter().position(|at| *at == 2).unwrap();
        let steps = vec![filter(binary(BinaryOp::Ge, reg(row), int(10, Ty::I32)))];
        let root = Pipeline { source: Source::Output(1), steps, sink: Sink::Rows { columns: all, limit: None } };
        let build = builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]);
        let report =
            check_orders(&fragment(&[5, 4], vec![build, list, root]), &[&facts(300, 60, 1), &several(250, 60, 1)]);
        assert!(report.rows > 300);
    }
    // A list of no column counts its rows.
    let list = Pipeline {
        source: Source::Table(0),
        steps: vec![filter(binary(BinaryOp::Lt, reg(2), int(1_500, Ty::I32)))],
        sink: Sink::Rows { columns: vec![], limit: None },
    };
    let root = Pipeline {
        source: Source::Output(0),
        steps: vec![],
        sink: Sink::Aggregate { groups: vec![], aggregates: vec![count()] },
    };
    let table = facts(4_000, 60, 1);
    let (rows, _) = run(&engine(LaneOrder::Forward), &fragment(&[5], vec![list, root]), &[&table]).unwrap();
    let counted = rows.column(0).as_any().downcast_ref::<arrow::array::Int64Array>().unwrap();
    assert_eq!((counted.len(), counted.value(0)), (1, 1_500));
}
