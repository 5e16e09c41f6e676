//! Hash tables of joins: sparse keys, keys of several parts, duplicates, NULLs on both sides.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt8Type};
use warpcube_engine::{
    AggregateCall, BinaryOp, BindingCache, EngineError, Expr, Fragment, JoinKind, RunOptions, RunReport, Tuning, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const SPREAD: i64 = 1_000_000_007;

fn facts(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| (row % 19 != 4).then_some((mixed(row, 1) % 700) as i64 * SPREAD))),
            ("j", numbers::<UInt8Type>(rows, |row| (row % 31 != 4).then_some((mixed(row, 2) % 6) as u8))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 3) as i32 % 1_000))),
        ],
    )
}

/// 500 sparse keys in two versions each, some NULL.
fn sparse() -> MemoryTable {
    MemoryTable::new(
        "sparse",
        vec![
            ("k", numbers::<Int64Type>(1_000, |row| (row % 29 != 0).then_some((row / 2) as i64 * SPREAD))),
            ("j", numbers::<UInt8Type>(1_000, |row| (row % 37 != 0).then_some(row as u8 % 2 * 3))),
            ("p", numbers::<Int32Type>(1_000, |row| (row % 3 != 0).then_some(row as i32 * 5 - 400))),
        ],
    )
}

fn joined(keys: usize, kind: JoinKind, even_only: bool) -> Fragment {
    let payload = if matches!(kind, JoinKind::Inner | JoinKind::Left) { vec![reg(2)] } else { vec![] };
    let mut calls = vec![count(), sum(reg(2), DataType::Int64)];
    if !payload.is_empty() {
        calls.extend([sum(reg(3), DataType::Int64), count_of(reg(3)), max(reg(3), DataType::Int32)]);
    }
    let by = if keys == 1 { vec![reg(0)] } else { vec![reg(0), reg(1)] };
    let even = filter(binary(BinaryOp::Eq, reg(1), int(0, Ty::U8)));
    let steps = if even_only { vec![even] } else { vec![] };
    fragment(
        &[3, 3],
        vec![
            builds(1, steps, by.clone(), payload),
            aggregates(0, vec![probe(0, by, kind)], vec![(reg(1), DataType::UInt8)], calls),
        ],
    )
}

#[test]
fn sparse_keys_are_hashed() {
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        let (fragment, tables) = (joined(1, kind, true), [&facts(4_000), &sparse()]);
        check_orders(&fragment, &tables);
        let predicted = predicted_after_run(&engine(LaneOrder::Forward), &fragment, &tables);
        let size = predicted.pipelines[0].size.as_deref().unwrap_or_default();
        assert!(size == "hash, 2048 slots", "{size}");
    }
}

#[test]
fn keys_of_two_parts() {
    for kind in [JoinKind::Left, JoinKind::Anti] {
        check_orders(&joined(2, kind, false), &[&facts(4_000), &sparse()]);
    }
}

#[test]
fn duplicates_in_a_direct_table_count() {
    let twice = MemoryTable::new("twice", vec![("k", numbers::<UInt8Type>(12, |row| Some(row as u8 % 6)))]);
    for kind in [JoinKind::Inner, JoinKind::Semi] {
        let fragment = fragment(
            &[3, 1],
            vec![
                builds(1, vec![], vec![reg(0)], vec![]),
                aggregates(0, vec![probe(0, vec![reg(1)], kind)], vec![], vec![count()]),
            ],
        );
        check(&fragment, &[&facts(2_000), &twice]);
    }
}

#[test]
fn a_direct_table_of_two_parts() {
    let pairs = MemoryTable::new(
        "pairs",
        vec![
            ("a", numbers::<UInt8Type>(30, |row| Some(row as u8 % 5))),
            ("b", numbers::<Int32Type>(30, |row| Some(row as i32 / 5 * 100 - 200))),
            ("p", texts(30, |row| Some(format!("p{row}")))),
        ],
    );
    let hundreds = binary(BinaryOp::Mul, binary(BinaryOp::Div, reg(2), int(100, Ty::I32)), int(100, Ty::I32));
    let fragment = fragment(
        &[3, 3],
        vec![
            builds(1, vec![], vec![reg(0), reg(1)], vec![reg(2)]),
            aggregates(
                0,
                vec![probe(0, vec![reg(1), hundreds], JoinKind::Inner)],
                vec![(reg(3), DataType::Utf8)],
                vec![count()],
            ),
        ],
    );
    check_orders(&fragment, &[&facts(3_000), &pairs]);
}

#[test]
fn an_empty_build_side() {
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Anti] {
        let empty = MemoryTable::new(
            "empty",
            vec![
                ("k", numbers::<Int64Type>(0, |_| None)),
                ("j", numbers::<UInt8Type>(0, |_| None)),
                ("p", numbers::<Int32Type>(0, |_| None)),
            ],
        );
        check(&joined(2, kind, false), &[&facts(1_500), &empty]);
    }
}

#[test]
fn payload_of_every_width() {
    let wide = MemoryTable::new(
        "wide",
        vec![
            ("k", numbers::<UInt8Type>(6, |row| Some(row as u8))),
            (
                "w",
                numbers::<Int64Type>(6, |row| {
                    (row != 2).then_some([i64::MIN + 1, i64::MAX - 1, 0, -1, 5, 1 << 40][row])
                }),
            ),
            ("f", numbers::<arrow::datatypes::Float64Type>(6, |row| Some(row as f64 * 0.5))),
            ("g", numbers::<arrow::datatypes::Float32Type>(6, |row| Some(row as f32 * -0.25))),
            ("t", truths(6, |row| (row != 4).then_some(row % 2 == 0))),
            ("d", days(6, |row| Some(10_000 + row as i32 * 400))),
            ("u", numbers::<arrow::datatypes::UInt64Type>(6, |row| Some(u64::MAX - row as u64))),
        ],
    );
    let fragment = fragment(
        &[3, 7],
        vec![
            builds(1, vec![], vec![reg(0)], (1..7).map(reg).collect()),
            aggregates(
                0,
                vec![probe(0, vec![reg(1)], JoinKind::Inner)],
                vec![(reg(6), DataType::Boolean), (reg(7), DataType::Date32)],
                vec![
                    max(reg(3), DataType::Int64),
                    min(reg(3), DataType::Int64),
                    sum(reg(4), DataType::Float64),
                    min(reg(5), DataType::Float32),
                    max(reg(8), DataType::UInt64),
                    sum(reg(8), DataType::UInt64),
                ],
            ),
        ],
    );
    check_orders(&fragment, &[&facts(2_000), &wide]);
}

#[test]
fn keys_of_several_words() {
    let key = |row: usize, seed: u64| mixed(row % 500, seed) as i64;
    let side = MemoryTable::new(
        "side",
        vec![
            ("a", numbers::<Int64Type>(400, |row| (row % 31 != 0).then(|| key(row, 1)))),
            ("b", numbers::<Int64Type>(400, |row| Some(key(row, 2)))),
            ("p", numbers::<Int32Type>(400, |row| (row % 3 != 0).then_some(row as i32 * 5 - 400))),
        ],
    );
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int64Type>(3_000, |row| (row % 17 != 0).then(|| key(row, 1)))),
            ("b", numbers::<Int64Type>(3_000, |row| Some(key(row + row / 1_000, 2)))),
            ("v", numbers::<Int32Type>(3_000, |row| Some(mixed(row, 3) as i32 % 1_000))),
        ],
    );
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        let takes = matches!(kind, JoinKind::Inner | JoinKind::Left);
        let payload = if takes { vec![reg(2)] } else { vec![] };
        let mut calls = vec![count(), sum(reg(2), DataType::Int64)];
        calls.extend(takes.then(|| sum(reg(3), DataType::Int64)));
        let joined = |calls| {
            fragment(
                &[3, 3],
                vec![
                    builds(1, vec![], vec![reg(0), reg(1)], payload.clone()),
                    aggregates(0, vec![probe(0, vec![reg(0), reg(1)], kind)], vec![], calls),
                ],
            )
        };
        let report = check_orders(&joined(calls.clone()), &[&facts, &side]);
        assert!(report.program().unwrap().source().contains("wc_wide_find("), "{kind:?}");
        // The facts have keys several times over.
        check(&joined(calls), &[&side, &facts]);
    }
}

#[test]
fn a_table_by_key_gives_way_to_slots_that_take_less() {
    let table = |stride: i64| {
        let keys = numbers::<Int64Type>(3_000, |row| Some(row as i64 * stride));
        MemoryTable::new("t", vec![("k", keys), ("v", numbers::<Int64Type>(3_000, |row| Some(row as i64 * 1_000_003)))])
    };
    let probes = || vec![probe(0, vec![reg(0)], JoinKind::Inner)];
    let joined = || {
        fragment(
            &[2, 2],
            vec![
                builds(1, vec![], vec![reg(0)], vec![reg(1)]),
                aggregates(0, probes(), vec![], vec![count(), sum(reg(2), DataType::Int64)]),
            ],
        )
    };
    // Calls of the search for a slot, besides its definition.
    let searches = |report: &RunReport| report.program().unwrap().source().matches("wc_table_find(").count() - 1;
    let facts = table(8);
    for (stride, direct_bytes, wanted) in [(16, "1000000", 0), (16, "0", 1), (1, "0", 0)] {
        let tuning: Tuning = format!("direct_bytes={direct_bytes}").parse().unwrap();
        for order in ORDERS {
            let engine = engine(order).with_tuning(tuning.clone());
            let report = check_on(&engine, &joined(), &[&facts, &table(stride)]);
            assert_eq!(searches(&report), wanted, "keys {stride} apart, by key up to {direct_bytes} bytes");
        }
    }
}

#[test]
fn a_key_that_nearly_all_rows_share() {
    let many = MemoryTable::new("many", vec![("k", numbers::<UInt8Type>(4_000, |row| Some(row as u8 / 250 % 2 * 3)))]);
    for kind in [JoinKind::Semi, JoinKind::Anti] {
        let fragment = fragment(
            &[3, 1],
            vec![
                builds(1, vec![], vec![reg(0)], vec![]),
                aggregates(0, vec![probe(0, vec![reg(1)], kind)], vec![], vec![count()]),
            ],
        );
        check_orders(&fragment, &[&facts(2_000), &many]);
    }
}

#[test]
fn extremes_by_key() {
    // Keys several times over, sparse and dense; values of several types with NULLs.
    let many = MemoryTable::new(
        "many",
        vec![
            ("k", numbers::<Int64Type>(900, |row| (row % 29 != 0).then_some((row / 7) as i64 * SPREAD))),
            ("j", numbers::<UInt8Type>(900, |row| (row % 37 != 0).then_some(row as u8 % 5))),
            ("p", numbers::<Int32Type>(900, |row| (row % 3 != 0 && row > 20).then_some(mixed(row, 5) as i32))),
            ("s", texts(900, |row| (row % 4 != 0).then(|| format!("s{}", mixed(row, 6) % 60)))),
            ("w", numbers::<Int64Type>(900, |row| Some([i64::MIN + 1, i64::MAX - 1, 0, -5][row % 4]))),
        ],
    );
    let values = [(reg(2), DataType::Int32), (reg(3), DataType::Utf8), (reg(4), DataType::Int64)];
    let (sparse, dense) = ((reg(0), DataType::Int64), (reg(1), DataType::UInt8));
    for groups in [vec![sparse.clone()], vec![dense.clone()], vec![sparse, dense]] {
        let keys: Vec<Expr> = groups.iter().map(|(key, _)| key.clone()).collect();
        let unlike = binary(BinaryOp::Or, binary(BinaryOp::Ne, reg(3), reg(2)), binary(BinaryOp::Ne, reg(4), reg(2)));
        let fragment = fragment(
            &[3, 5],
            vec![
                extremes(1, vec![], &groups, &values),
                aggregates(
                    0,
                    vec![probe(0, keys, JoinKind::Left)],
                    vec![(reg(1), DataType::UInt8)],
                    vec![
                        sum(reg(3), DataType::Int64),
                        max(reg(4), DataType::Int32),
                        max(reg(5), DataType::Utf8),
                        min(reg(6), DataType::Utf8),
                        min(reg(7), DataType::Int64),
                        max(reg(8), DataType::Int64),
                        count_of(reg(3)),
                        AggregateCall { filter: Some(unlike), ..count() },
                    ],
                ),
            ],
        );
        check_orders(&fragment, &[&facts(3_000), &many]);
    }
}

#[test]
fn keys_made_to_collide_are_hashed_with_another_seed() {
    let keys = colliding_keys(1_700);
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int64Type>(1_500, |row| Some(keys[row]))),
            ("p", numbers::<Int32Type>(1_500, |row| Some(row as i32))),
        ],
    );
    let facts = MemoryTable::new("facts", vec![("k", numbers::<Int64Type>(4_000, |row| Some(keys[row % 1_700])))]);
    let fragment = fragment(
        &[1, 2],
        vec![
            builds(1, vec![], vec![reg(0)], vec![reg(1)]),
            aggregates(
                0,
                vec![probe(0, vec![reg(0)], JoinKind::Inner)],
                vec![],
                vec![count(), sum(reg(1), DataType::Int64)],
            ),
        ],
    );
    let tables = [&facts, &side];
    let engine = engine(LaneOrder::Forward);
    let (expected, random) = run(&engine, &fragment, &tables).unwrap();
    assert_eq!(random.reruns, 0, "nobody knows a random seed");
    let cache = BindingCache::seeded(0);
    for reruns in [1, 0] {
        let again = engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &RunOptions::default());
        let (batch, report) = again.unwrap();
        assert_eq!((report.reruns, batch), (reruns, expected.clone()));
    }
    check_on(&engine, &fragment, &tables);
}

#[test]
fn tables_have_slots_for_the_rows_that_are_expected_to_pass() {
    // One value in a thousand is expected; of 7 there are nearly all rows.
    let of = |row: usize| if row < 1_000 { row as i32 } else { 7 };
    let rows = 60_000;
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int64Type>(rows, |row| Some(row as i64 * SPREAD))),
            ("x", numbers::<Int32Type>(rows, |row| Some(of(row)))),
            ("p", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let facts = MemoryTable::new("facts", vec![("k", numbers::<Int64Type>(rows, |row| Some(row as i64 * SPREAD)))]);
    let tables = [&facts, &side];
    let mut sizes = Vec::new();
    for (wanted, first_grown) in [(8, 0), (7, 1)] {
        let steps = vec![filter(Expr::binary(BinaryOp::Eq, reg(1), int(wanted, Ty::I32)))];
        let calls = vec![count(), sum(reg(1), DataType::Int64)];
        let fragment = fragment(
            &[1, 3],
            vec![
                builds(1, steps, vec![reg(0)], vec![reg(2)]),
                aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Inner)], vec![], calls),
            ],
        );
        let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::default());
        for grown in [first_grown, 0] {
            let again = engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &RunOptions::default());
            let (batch, report) = again.unwrap();
            let passing = (0..rows).filter(|row| of(*row) == wanted as i32).count();
            assert_eq!((report.grown, batch.column(0).as_primitive::<Int64Type>().value(0)), (grown, passing as i64));
            sizes.push(report.arena_bytes);
        }
        check_on(&engine, &fragment, &tables);
    }
    assert!(sizes[1] * 3 < sizes[3], "{sizes:?}");
}

/// A join by two keys, the first of which is the same in nearly all rows, and which need two words; `second` gives the
/// other one.
fn of_two_words(second: &[i64]) -> (Fragment, [MemoryTable; 2]) {
    let keys = |rows: usize| {
        let row = move |row: usize| row % second.len();
        // The first row makes both parts wide.
        let first = numbers::<Int64Type>(rows, |at| Some(if row(at) == 0 { 0 } else { i64::MAX }));
        [("a", first), ("b", numbers::<Int64Type>(rows, |at| Some(if row(at) == 0 { 0 } else { second[row(at)] })))]
    };
    let [a, b] = keys(second.len());
    let payload = ("p", numbers::<Int32Type>(second.len(), |row| Some(row as i32)));
    let tables = [MemoryTable::new("facts", keys(4_000).to_vec()), MemoryTable::new("side", vec![a, b, payload])];
    let by = vec![reg(0), reg(1)];
    let fragment = fragment(
        &[2, 3],
        vec![
            builds(1, vec![], by.clone(), vec![reg(2)]),
            aggregates(0, vec![probe(0, by, JoinKind::Inner)], vec![], vec![count(), sum(reg(2), DataType::Int64)]),
        ],
    );
    (fragment, tables)
}

#[test]
fn keys_of_two_words_that_collide_are_hashed_with_another_seed() {
    let (fragment, [facts, side]) = of_two_words(&colliding_second_words(i64::MAX as u64, 1_500));
    let (tables, engine) = ([&facts, &side], engine(LaneOrder::Forward));
    let report = check_on(&engine, &fragment, &tables);
    assert!(report.program().unwrap().source().contains("wc_wide_find("));
    let cache = BindingCache::seeded(0);
    for reruns in [1, 0] {
        let again = engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &RunOptions::default());
        assert_eq!(again.unwrap().1.reruns, reruns);
    }
}

#[test]
fn keys_that_collide_under_every_seed_are_given_up() {
    let (wide, [wide_facts, wide_side]) = of_two_words(&colliding_second_words(i64::MAX as u64, 1_500));
    let keys = colliding_keys(1_500);
    let column = |name| (name, numbers::<Int64Type>(1_500, |row| Some(keys[row])));
    let [facts, side] = ["facts", "side"].map(|name| MemoryTable::new(name, vec![column("k")]));
    let narrow = fragment(
        &[1, 1],
        vec![
            builds(1, vec![], vec![reg(0)], vec![]),
            aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Semi)], vec![], vec![count()]),
        ],
    );
    let engine = engine(LaneOrder::Forward);
    for (fragment, tables) in [(narrow, [&facts, &side]), (wide, [&wide_facts, &wide_side])] {
        let cache = BindingCache::always_seeded(0);
        let error = engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &RunOptions::default());
        let error = error.unwrap_err();
        let reason = "join keys that collide in a hash table whatever its seed";
        assert!(matches!(&error, EngineError::Unsupported(found) if found == reason) && error.falls_back(), "{error}");
    }
}

#[test]
fn payload_is_not_read_through_the_cache_of_constants() {
    // A kernel may start while the one that writes the table still runs. Only payload is kept as singles here.
    let key = |row: usize| row as i64 * SPREAD;
    let single = |rows: usize| numbers::<arrow::datatypes::Float32Type>(rows, |row| Some(row as f32 / 8.0));
    let keyed = |key: &dyn Fn(usize) -> i64| {
        let key = numbers::<Int64Type>(300, |row| Some(key(row)));
        MemoryTable::new("side", vec![("k", key), ("p", single(300))])
    };
    let fragment = fragment(
        &[1, 2],
        vec![
            builds(1, vec![], vec![reg(0)], vec![reg(1)]),
            aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Inner)], vec![], vec![sum(reg(1), DataType::Float64)]),
        ],
    );
    for side in [keyed(&|row| row as i64), keyed(&key)] {
        let report = check(&fragment, &[&side, &side]);
        let program = report.program().unwrap();
        let source = program.source();
        let pointers: Vec<&str> = source.lines().filter_map(|line| line.trim().strip_prefix("const float* ")).collect();
        assert_eq!(pointers.len(), 1, "{pointers:?}");
        let pointer = format!("p.{}", pointers[0].trim_end_matches(';'));
        assert!(source.contains(&format!("{pointer}[")), "{pointer}");
        assert!(!source.contains(&format!("({pointer} ")) && !source.contains("__ldg"), "{pointer}");
    }
}
