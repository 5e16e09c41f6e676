//! Joins in which a row has several matches: tables of keys that come several times.

use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{BinaryOp, EngineError, Expr, Fragment, JoinKind, Pipeline, Probe, Sink, Source, Step, TopK, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;
const KINDS: [JoinKind; 2] = [JoinKind::Inner, JoinKind::Left];

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

/// Several rows a key, more of some: a key with NULLs, a narrow key, a number and a string with NULLs.
fn several(rows: usize, keys: u64, spread: i64) -> MemoryTable {
    let key = move |row: usize| (mixed(row, 4) % keys * (mixed(row, 5) % 3) / 2) as i64 * spread;
    MemoryTable::new(
        "several",
        vec![
            ("k", numbers::<Int64Type>(rows, move |row| (row % 29 != 0).then_some(key(row)))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 37 != 0).then_some(row as u8 % 2 * 3))),
            ("p", numbers::<Int32Type>(rows, |row| (row % 3 != 0).then_some(row as i32 * 5 - 400))),
            ("s", texts(rows, |row| (row % 7 != 2).then(|| format!("text {}", row % 11)))),
        ],
    )
}

fn calls(first: usize) -> Vec<warpcube_engine::AggregateCall> {
    vec![
        count(),
        sum(reg(2), DataType::Int64),
        sum(reg(first), DataType::Int64),
        count_of(reg(first)),
        max(reg(first + 1), DataType::Utf8),
    ]
}

fn joined(by: Vec<Expr>, kind: JoinKind, groups: Vec<(Expr, DataType)>) -> Fragment {
    let build = builds(1, vec![], by.clone(), vec![reg(2), reg(3)]);
    fragment(&[3, 4], vec![build, aggregates(0, vec![probe(0, by, kind)], groups, calls(3))])
}

#[test]
fn rows_go_on_once_a_match() {
    let by_string = || vec![(reg(4), DataType::Utf8)];
    for kind in KINDS {
        // Direct, hashed and wide keys; one group and many.
        let direct = joined(vec![reg(0)], kind, by_string());
        let report = check_orders(&direct, &[&facts(3_000, 300, 1), &several(900, 300, 1)]);
        assert_eq!(report.reruns, 1, "the table is built again with room for several rows");
        check_orders(&joined(vec![reg(0)], kind, vec![]), &[&facts(3_000, 300, SPREAD), &several(900, 300, SPREAD)]);
        let both = vec![reg(0), reg(1)];
        check_orders(&joined(both, kind, by_string()), &[&facts(2_000, 60, SPREAD), &several(700, 60, SPREAD)]);
    }
}

#[test]
fn nothing_on_either_side() {
    let engine = engine(LaneOrder::Forward);
    for kind in KINDS {
        for (left, right) in [(0, 50), (50, 0), (0, 0), (1, 2), (33, 40)] {
            let fragment = joined(vec![reg(0)], kind, vec![(reg(1), DataType::UInt8)]);
            check_on(&engine, &fragment, &[&facts(left, 5, 1), &several(right, 5, 1)]);
        }
        let null = |table: &str, rows: usize| {
            MemoryTable::new(
                table,
                vec![
                    ("k", numbers::<Int64Type>(rows, |_| None)),
                    ("j", numbers::<UInt8Type>(rows, |_| None)),
                    ("p", numbers::<Int32Type>(rows, |row| Some(row as i32))),
                    ("s", texts(rows, |_| None)),
                ],
            )
        };
        let fragment = joined(vec![reg(0)], kind, vec![]);
        check_on(&engine, &fragment, &[&null("facts", 70), &several(90, 5, 1)]);
        check_on(&engine, &fragment, &[&facts(70, 5, 1), &null("several", 90)]);
    }
}

#[test]
fn one_key_in_half_of_the_rows() {
    let skewed = |rows: usize, salt: u64| {
        let key = move |row: usize| if mixed(row, salt) % 2 == 0 { 7 } else { mixed(row, salt + 1) as i64 % 400 };
        MemoryTable::new(
            "skewed",
            vec![
                ("k", numbers::<Int64Type>(rows, move |row| Some(key(row) * SPREAD))),
                ("j", numbers::<UInt8Type>(rows, |row| Some(row as u8 % 3))),
                ("p", numbers::<Int32Type>(rows, |row| Some(row as i32))),
                ("s", texts(rows, |row| Some(format!("{}", row % 5)))),
            ],
        )
    };
    check_orders(
        &joined(vec![reg(0)], JoinKind::Inner, vec![(reg(1), DataType::UInt8)]),
        &[&skewed(700, 20), &skewed(500, 30)],
    );
}

#[test]
fn several_tables_with_several_matches() {
    // Facts, two tables of several rows a key, a table of unique keys and one that is only asked.
    let unique = MemoryTable::new(
        "unique",
        vec![
            ("k", numbers::<UInt8Type>(6, |row| Some(row as u8))),
            ("n", texts(6, |row| (row != 3).then(|| format!("unique {row}")))),
        ],
    );
    for (kinds, spread) in [([JoinKind::Inner, JoinKind::Left], 1), ([JoinKind::Left, JoinKind::Inner], SPREAD)] {
        let few = filter(binary(BinaryOp::Lt, reg(2), int(300, Ty::I32)));
        let steps = vec![
            probe(0, vec![reg(0)], kinds[0]),
            probe(2, vec![reg(1)], JoinKind::Left),
            // A key that the first match gives.
            probe(1, vec![convert(reg(3), Ty::I64)], kinds[1]),
            probe(3, vec![reg(0)], JoinKind::Semi),
            filter(binary(BinaryOp::Ge, reg(2), int(100, Ty::I32))),
        ];
        let groups = vec![(reg(5), DataType::Utf8), (reg(4), DataType::Utf8)];
        let calls = vec![count(), sum(reg(2), DataType::Int64), sum(reg(6), DataType::Int64), count_of(reg(3))];
        let by_number = || vec![convert(binary(BinaryOp::Rem, reg(2), int(700, Ty::I32)), Ty::I64)];
        let pipelines = vec![
            builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]),
            builds(1, vec![], by_number(), vec![reg(2)]),
            builds(2, vec![], vec![reg(0)], vec![reg(1)]),
            builds(1, vec![few], vec![reg(0)], vec![]),
            aggregates(0, steps, groups, calls),
        ];
        let tables = [&facts(1_500, 200, spread), &several(600, 200, spread), &unique];
        check_orders(&fragment(&[3, 4, 2], pipelines), &tables);
    }
}

#[test]
fn matches_are_rows_of_a_result() {
    let columns =
        vec![(reg(0), DataType::Int64), (reg(2), DataType::Int32), (reg(3), DataType::Int32), (reg(4), DataType::Utf8)];
    for kind in KINDS {
        let root = Pipeline {
            source: Source::Table(0),
            steps: vec![probe(0, vec![reg(0)], kind)],
            sink: Sink::Rows { columns: columns.clone(), limit: None },
        };
        let pipelines = vec![builds(1, vec![], vec![reg(0)], vec![reg(2), reg(3)]), root];
        check_orders(&fragment(&[3, 4], pipelines), &[&facts(900, 150, SPREAD), &several(800, 150, SPREAD)]);
    }
}

#[test]
fn sums_of_many_matches_are_exact() {
    // Each of 100 rows has 5,000 matches: more than 64 bits hold where values are large.
    let (left, right) = (100, 5_000);
    let large = MemoryTable::new(
        "large",
        vec![
            ("k", numbers::<Int64Type>(left, |_| Some(1))),
            ("v", numbers::<Int64Type>(left, |row| Some(i64::MAX / 400_000 - row as i64))),
            ("w", numbers::<Int64Type>(left, |row| Some(i64::MAX / 4 - row as i64))),
        ],
    );
    let twice = MemoryTable::new("twice", vec![("k", numbers::<Int64Type>(right, |_| Some(1)))]);
    let of = |column: usize| {
        let build = builds(1, vec![], vec![reg(0)], vec![]);
        let calls = vec![count(), sum(reg(column), DataType::Int64)];
        fragment(&[3, 1], vec![build, aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Inner)], vec![], calls)])
    };
    let engine = engine(LaneOrder::Forward);
    check_on(&engine, &of(2), &[&large, &twice]);
    check_on(&engine, &of(1), &[&large, &twice]);
}

#[test]
fn where_one_match_is_asked_for_several_are_refused() {
    let tables = [&facts(500, 60, 1), &several(300, 60, 1)];
    let engine = engine(LaneOrder::Forward);
    let refusal = |fragment: &Fragment| match run(&engine, fragment, &tables) {
        Err(EngineError::Unsupported(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let one = Step::Probe(Probe { build: 0, keys: vec![reg(0)], kind: JoinKind::Left, unique: true });
    let build = || builds(1, vec![], vec![reg(0)], vec![reg(2)]);
    let asks = fragment(&[3, 4], vec![build(), aggregates(0, vec![one], vec![], vec![count()])]);
    assert!(refusal(&asks).contains("several rows for one key"));
    let probe = || probe(0, vec![reg(0)], JoinKind::Inner);
    let keys = vec![descending(reg(3)), ascending(reg(2))];
    let outputs = vec![(reg(3), DataType::Int32)];
    let sink = Sink::TopK(TopK { keys, k: Some(3), outputs, algorithm: None });
    let first = Pipeline { source: Source::Table(0), steps: vec![probe()], sink };
    assert!(refusal(&fragment(&[3, 4], vec![build(), first])).contains("several matches"));
    // A table of what a join multiplies.
    let below = builds(0, vec![probe()], vec![reg(0)], vec![reg(3)]);
    let above = aggregates(0, vec![crate::support::probe(1, vec![reg(0)], JoinKind::Inner)], vec![], vec![count()]);
    assert!(refusal(&fragment(&[3, 4], vec![build(), below, above])).contains("several matches"));
}
