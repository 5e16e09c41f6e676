//! Joins in which a row has several matches: tables of keys that come several times.

use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{
    BinaryOp, EngineError, Expr, Fragment, JoinKind, Literal, Pipeline, Probe, Sink, Source, Step, TopK, Ty,
};
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
fn sums_over_joins_that_may_have_billions_of_rows_are_exact_and_count_them() {
    let unlike = |name: &'static str, rows: usize, keys: usize| {
        MemoryTable::new(
            name,
            vec![
                ("k", numbers::<Int64Type>(rows, move |row| Some((row % keys) as i64))),
                ("v", numbers::<Int64Type>(rows, |row| Some(i64::MAX / 40_000 - row as i64))),
            ],
        )
    };
    // Of 3,000 · 2,000 · 1,500 rows the keys leave 1,500 · 2 · 3.
    let tables = [&unlike("facts", 3_000, 1_000), &unlike("twice", 2_000, 1_000), &unlike("thrice", 1_500, 500)];
    let joins = |groups: Vec<(Expr, DataType)>, kinds: [JoinKind; 2]| {
        let steps = vec![probe(0, vec![reg(0)], kinds[0]), probe(1, vec![reg(0)], kinds[1])];
        let calls = vec![count(), sum(reg(2), DataType::Int64), sum(reg(3), DataType::Int64)];
        let build = |table| builds(table, vec![], vec![reg(0)], vec![reg(1)]);
        fragment(&[2, 2, 2], vec![build(1), build(2), aggregates(0, steps, groups, calls)])
    };
    let (inner, left) = (JoinKind::Inner, JoinKind::Left);
    check_orders(&joins(vec![], [inner, inner]), &tables);
    check_orders(&joins(vec![(reg(0), DataType::Int64)], [left, inner]), &tables);
    // The third table has half of the keys: a row without a match counts as one of a LEFT JOIN.
    for (kinds, matches) in [([inner, inner], 1_500 * 2 * 3), ([inner, left], 1_500 * 2 * 3 + 1_500 * 2)] {
        let counting = |most: u64| {
            let engine = engine(LaneOrder::Forward).with_tuning(format!("counted_matches={most}").parse().unwrap());
            run(&engine, &joins(vec![(reg(0), DataType::Int64)], kinds), &tables).map(|_| ())
        };
        counting(matches).unwrap();
        assert!(matches!(counting(matches - 1), Err(EngineError::Evaluation("an overflow"))));
    }
}

#[test]
fn where_one_match_is_asked_for_several_are_refused() {
    let tables = [&facts(500, 60, 1), &several(300, 60, 1)];
    let engine = engine(LaneOrder::Forward);
    let refusal = |fragment: &Fragment| match run(&engine, fragment, &tables) {
        Err(EngineError::Unsupported(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let one = Step::Probe(Probe { build: 0, keys: vec![reg(0)], kind: JoinKind::Left, unique: true, residual: None });
    let build = || builds(1, vec![], vec![reg(0)], vec![reg(2)]);
    let asks = fragment(&[3, 4], vec![build(), aggregates(0, vec![one], vec![], vec![count()])]);
    assert!(refusal(&asks).contains("several rows for one key"));
}

/// Kinds of joins that look at a condition over both sides.
const RESIDUAL_KINDS: [JoinKind; 3] = [JoinKind::Left, JoinKind::Semi, JoinKind::Anti];

/// Facts joined by these keys where `residual` holds, over a table that has the number and the string of its rows.
fn joined_where(by: Vec<Expr>, kind: JoinKind, residual: Expr, groups: Vec<(Expr, DataType)>) -> Fragment {
    let build = builds(1, vec![], by.clone(), vec![reg(2), reg(3)]);
    let calls = if kind == JoinKind::Left { calls(3) } else { vec![count(), sum(reg(2), DataType::Int64)] };
    fragment(&[3, 4], vec![build, aggregates(0, vec![probe_where(0, by, kind, residual)], groups, calls)])
}

/// The payload's number is below that of the row.
fn is_below() -> Expr {
    binary(BinaryOp::Lt, reg(3), reg(2))
}

#[test]
fn matches_meet_a_residual() {
    for kind in RESIDUAL_KINDS {
        let by_key = || vec![(reg(1), DataType::UInt8)];
        let of = |keys: Vec<Expr>| joined_where(keys, kind, is_below(), by_key());
        // Direct, hashed and wide keys; keys that come once.
        let report = check_orders(&of(vec![reg(0)]), &[&facts(3_000, 300, 1), &several(900, 300, 1)]);
        assert_eq!(report.reruns, 1, "the table is built again with room for several rows");
        check_orders(&of(vec![reg(0)]), &[&facts(2_000, 200, SPREAD), &several(700, 200, SPREAD)]);
        check_orders(&of(vec![reg(0), reg(1)]), &[&facts(2_000, 60, SPREAD), &several(700, 60, SPREAD)]);
        let once = MemoryTable::new(
            "once",
            vec![
                ("k", numbers::<Int64Type>(150, |row| Some(row as i64 * 2))),
                ("j", numbers::<UInt8Type>(150, |row| Some(row as u8 % 3))),
                ("p", numbers::<Int32Type>(150, |row| (row % 5 != 0).then_some(row as i32 * 7 - 300))),
                ("s", texts(150, |row| Some(format!("{}", row % 4)))),
            ],
        );
        let report = check_orders(&of(vec![reg(0)]), &[&facts(1_500, 300, 1), &once]);
        assert_eq!(report.reruns, 0);
    }
}

#[test]
fn residuals_of_nothing_of_null_and_of_all() {
    let engine = engine(LaneOrder::Forward);
    for kind in RESIDUAL_KINDS {
        let of = |residual: Expr| joined_where(vec![reg(0)], kind, residual, vec![]);
        for (left, right) in [(0, 50), (50, 0), (1, 2), (33, 40)] {
            check_on(&engine, &of(is_below()), &[&facts(left, 5, 1), &several(right, 5, 1)]);
        }
        let tables = [&facts(500, 60, 1), &several(300, 60, 1)];
        let at_least = |bound| binary(BinaryOp::Ge, binary(BinaryOp::Add, reg(3), reg(2)), int(bound, Ty::I32));
        check_on(&engine, &of(at_least(-1_000_000)), &tables);
        check_on(&engine, &of(at_least(1_000_000)), &tables);
        check_on(&engine, &of(Expr::Literal(Literal::Null, Ty::Bool)), &tables);
        // One match among very many.
        let last = binary(BinaryOp::Eq, reg(3), int(3 * 5 - 400, Ty::I32));
        let one = |row: usize| Some(row as i64 - row as i64);
        let many = MemoryTable::new(
            "many",
            vec![
                ("k", numbers::<Int64Type>(900, one)),
                ("j", numbers::<UInt8Type>(900, |_| None)),
                ("p", numbers::<Int32Type>(900, |row| Some(row as i32 * 5 - 400))),
                ("s", texts(900, |row| Some(format!("{}", row % 3)))),
            ],
        );
        check_on(&engine, &of(last), &[&facts(120, 3, 1), &many]);
    }
}

#[test]
fn residuals_that_raise() {
    let engine = engine(LaneOrder::Forward);
    // Zero divides where the row has a match of that number alone.
    let quotient = binary(BinaryOp::Div, int(100, Ty::I32), binary(BinaryOp::Sub, reg(3), int(20, Ty::I32)));
    let residual = || binary(BinaryOp::Gt, quotient.clone(), reg(2));
    for kind in RESIDUAL_KINDS {
        for rows in [60, 300] {
            let fragment = joined_where(vec![reg(0)], kind, residual(), vec![]);
            check_on(&engine, &fragment, &[&facts(400, 50, 1), &several(rows, 50, 1)]);
        }
        // Rows without any match raise nothing.
        let of_row = binary(BinaryOp::Div, reg(3), binary(BinaryOp::Sub, reg(2), int(7, Ty::I32)));
        let fragment = joined_where(vec![reg(0)], kind, binary(BinaryOp::Lt, of_row, int(9, Ty::I32)), vec![]);
        let rows = |of: fn(usize) -> Option<i64>| numbers::<Int64Type>(90, of);
        let lonely = MemoryTable::new(
            "lonely",
            vec![
                ("k", rows(|row| Some(if row % 9 == 7 { -5 } else { row as i64 % 30 }))),
                ("j", numbers::<UInt8Type>(90, |_| None)),
                ("v", numbers::<Int32Type>(90, |row| Some(row as i32 % 9))),
            ],
        );
        check_on(&engine, &fragment, &[&lonely, &several(200, 40, 1)]);
    }
}

#[test]
fn residuals_beside_other_joins() {
    // The residual of one join reads what another brings, whose rows have several matches; first rows read a left
    // join's payload again.
    for kind in RESIDUAL_KINDS {
        let first = reg(3);
        let sum_of_both = binary(BinaryOp::Add, reg(4), first.clone());
        let residual = binary(BinaryOp::Gt, sum_of_both, reg(2));
        let steps = vec![
            probe(0, vec![reg(0)], JoinKind::Inner),
            probe_where(1, vec![reg(1)], kind, residual),
            filter(binary(BinaryOp::Ge, reg(2), int(100, Ty::I32))),
        ];
        let calls = vec![count(), sum(reg(2), DataType::Int64), sum(first, DataType::Int64)];
        let pipelines = vec![
            builds(1, vec![], vec![reg(0)], vec![reg(2)]),
            builds(1, vec![], vec![reg(1)], vec![reg(2)]),
            aggregates(0, steps, vec![(reg(1), DataType::UInt8)], calls),
        ];
        check_orders(&fragment(&[3, 4], pipelines), &[&facts(300, 90, 1), &several(150, 90, 1)]);
    }
    let once = MemoryTable::new(
        "once",
        vec![
            ("k", numbers::<Int64Type>(80, |row| Some(row as i64 * SPREAD))),
            ("p", numbers::<Int32Type>(80, |row| Some(row as i32 * 11 - 300))),
        ],
    );
    let outputs = vec![(reg(2), DataType::Int32), (reg(3), DataType::Int32)];
    let keys = vec![descending(reg(3)), ascending(reg(2)), ascending(reg(1))];
    let root = Pipeline {
        source: Source::Table(0),
        steps: vec![probe_where(0, vec![reg(0)], JoinKind::Left, is_below())],
        sink: Sink::TopK(TopK { keys, k: Some(40), skip: 0, outputs, windows: vec![], first: None, algorithm: None }),
    };
    let pipelines = vec![builds(1, vec![], vec![reg(0)], vec![reg(1)]), root];
    check_all_orders(&fragment(&[3, 2], pipelines), &[&facts(900, 110, SPREAD), &once]);
}
