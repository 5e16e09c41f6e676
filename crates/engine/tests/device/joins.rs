//! Star joins over directly indexed tables: bitmaps on whole vectors, then the queue, then payload.

use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};
use warpcube_column::EncodingChoice;
use warpcube_engine::{BinaryOp, Fragment, JoinKind, Step, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn facts(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int32Type>(rows, |row| (row % 23 != 5).then_some((mixed(row, 1) % 400) as i32))),
            ("d", numbers::<Int32Type>(rows, |row| Some((mixed(row, 2) % 120) as i32))),
            ("v", numbers::<Int64Type>(rows, |row| Some(mixed(row, 3) as i64 % 1_000))),
        ],
    )
}

fn parts() -> MemoryTable {
    MemoryTable::new(
        "parts",
        vec![
            ("k", numbers::<Int32Type>(300, |row| Some(row as i32 + 1))),
            ("brand", texts(300, |row| (row % 9 != 0).then(|| format!("brand {}", row % 7)))),
            ("size", numbers::<Int32Type>(300, |row| Some(row as i32 % 50))),
            ("city", numbers::<Int16Type>(300, |row| (row % 8 != 0).then_some(row as i16 % 40 + 1_000))),
        ],
    )
}

fn dates() -> MemoryTable {
    MemoryTable::new(
        "dates",
        vec![
            ("k", numbers::<Int32Type>(100, |row| Some(row as i32))),
            ("year", numbers::<Int32Type>(100, |row| Some(1992 + row as i32 / 30))),
        ],
    )
}

/// Facts joined with parts of a size and with dates, grouped by year and brand.
fn star(size_below: i128, parts_kind: JoinKind, dates_kind: JoinKind) -> Fragment {
    let small = filter(binary(BinaryOp::Lt, reg(2), int(size_below, Ty::I32)));
    let steps = vec![probe(0, vec![reg(0)], parts_kind), probe(1, vec![reg(1)], dates_kind)];
    let mut groups = Vec::new();
    let mut next = 3;
    for (kind, ty) in [(parts_kind, DataType::Utf8), (dates_kind, DataType::Int32)] {
        if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            groups.push((reg(next), ty));
            next += 1;
        }
    }
    let payload = |kind: JoinKind| if matches!(kind, JoinKind::Semi | JoinKind::Anti) { vec![] } else { vec![reg(1)] };
    fragment(
        &[3, 4, 2],
        vec![
            builds(1, vec![small], vec![reg(0)], payload(parts_kind)),
            builds(2, vec![], vec![reg(0)], payload(dates_kind)),
            aggregates(0, steps, groups, vec![sum(reg(2), DataType::Int64), count()]),
        ],
    )
}

#[test]
fn a_star_join_with_payload_in_groups() {
    let tables = [&facts(20_000), &parts(), &dates()];
    // Few, some and all parts pass: the queue, and rows in place.
    for size in [2, 40, 60] {
        check_orders(&star(size, JoinKind::Inner, JoinKind::Inner), &tables);
    }
}

#[test]
fn every_kind_of_join() {
    let tables = [&facts(6_000), &parts(), &dates()];
    use JoinKind::*;
    for (parts, dates) in [(Left, Left), (Semi, Left), (Left, Anti), (Anti, Inner), (Inner, Semi)] {
        check(&star(25, parts, dates), &tables);
    }
}

#[test]
fn keys_that_are_codes_are_looked_up_as_codes() {
    let tables = [&facts(6_000), &parts(), &dates()];
    use JoinKind::*;
    for (parts, dates) in [(Inner, Semi), (Semi, Anti), (Anti, Inner), (Left, Anti)] {
        let engine = engine(LaneOrder::Seeded(3));
        load(&engine, tables[0], &[EncodingChoice::Dictionary, EncodingChoice::Dictionary, EncodingChoice::Auto]);
        let report = check_on(&engine, &star(25, parts, dates), &tables);
        let program = report.program().unwrap();
        assert!(program.source().contains("uint8_t* const map"), "{parts:?} {dates:?}");
    }
}

#[test]
fn payload_registers_keep_their_numbers_when_probes_are_reordered() {
    // The second probe is the more selective one and is taken first; payload of both is read at the end.
    let tables = [&facts(6_000), &parts(), &dates()];
    let few = filter(binary(BinaryOp::Lt, reg(0), int(9, Ty::I32)));
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let fragment = fragment(
            &[3, 4, 2],
            vec![
                builds(1, vec![], vec![reg(0)], vec![reg(3), reg(1)]),
                builds(2, vec![few.clone()], vec![reg(0)], vec![reg(1)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(0)], kind), probe(1, vec![reg(1)], JoinKind::Inner)],
                    vec![(reg(4), DataType::Utf8)],
                    vec![sum(reg(3), DataType::Int64), max(reg(5), DataType::Int32), count()],
                ),
            ],
        );
        check(&fragment, &tables);
    }
}

#[test]
fn columns_of_one_left_join_share_their_validity() {
    // Both counts ask for rows with a match; in the kernel that is one and the same condition.
    let tables = [&facts(3_000), &dates()];
    let fragment = fragment(
        &[3, 2],
        vec![
            builds(1, vec![], vec![reg(0)], vec![reg(0), reg(1)]),
            aggregates(
                0,
                vec![probe(0, vec![reg(1)], JoinKind::Left)],
                vec![],
                vec![
                    count_of(reg(3)),
                    count_of(reg(4)),
                    sum(reg(3), DataType::Int64),
                    sum(reg(4), DataType::Int64),
                    count(),
                ],
            ),
        ],
    );
    check_orders(&fragment, &tables);
}

#[test]
fn a_snowflake_chain() {
    let brands = MemoryTable::new(
        "cities",
        vec![
            ("k", numbers::<Int16Type>(45, |row| Some(995 + row as i16))),
            ("region", texts(45, |row| Some(["north", "south", "east"][row % 3].into()))),
        ],
    );
    let south = lookup(1, "= south", Ty::Bool, |strings| {
        std::sync::Arc::new(
            strings.iter().map(|text| text.map(|text| text == "south")).collect::<arrow::array::BooleanArray>(),
        )
    });
    let chain = |filtered: bool| {
        let steps = if filtered { vec![filter(south.clone())] } else { vec![] };
        fragment(
            &[3, 4, 2],
            vec![
                builds(2, steps, vec![reg(0)], vec![reg(1)]),
                builds(1, vec![probe(0, vec![reg(3)], JoinKind::Inner)], vec![reg(0)], vec![reg(4), reg(2)]),
                aggregates(
                    0,
                    vec![probe(1, vec![reg(0)], JoinKind::Inner)],
                    vec![(reg(3), DataType::Utf8)],
                    vec![sum(reg(2), DataType::Int64), sum(reg(4), DataType::Int64)],
                ),
            ],
        )
    };
    for filtered in [false, true] {
        check_orders(&chain(filtered), &[&facts(6_000), &parts(), &brands]);
    }
}

#[test]
fn one_table_probed_in_two_roles() {
    let fragment = fragment(
        &[3, 2],
        vec![
            builds(1, vec![filter(binary(BinaryOp::Gt, reg(0), int(10, Ty::I32)))], vec![reg(0)], vec![reg(1)]),
            aggregates(
                0,
                vec![probe(0, vec![reg(1)], JoinKind::Inner), probe(0, vec![reg(0)], JoinKind::Inner)],
                vec![(reg(3), DataType::Int32), (reg(4), DataType::Int32)],
                vec![count()],
            ),
        ],
    );
    check_orders(&fragment, &[&facts(6_000), &dates()]);
}

#[test]
fn a_bitmap_too_large_for_shared_memory_is_probed_in_global_memory() {
    let rows = 4_000;
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 3_000_000) as i32))),
            ("v", numbers::<Int64Type>(rows, |row| Some(row as i64))),
        ],
    );
    let wide = MemoryTable::new("wide", vec![("k", numbers::<Int32Type>(200_000, |row| Some(row as i32 * 15)))]);
    let fragment = fragment(
        &[2, 1],
        vec![
            builds(1, vec![], vec![reg(0)], vec![]),
            aggregates(
                0,
                vec![probe(0, vec![reg(0)], JoinKind::Semi)],
                vec![],
                vec![sum(reg(1), DataType::Int64), count()],
            ),
        ],
    );
    let report = check(&fragment, &[&facts, &wide]);
    let source = report.program().unwrap().source().to_string();
    assert!(!source.contains("wc_stage(bits") && !source.contains("wc_stage_from(bits"), "nothing is staged");
}

#[test]
fn a_bitmap_of_middle_size_takes_one_large_block() {
    let rows = 3_000;
    let facts = MemoryTable::new(
        "facts",
        vec![("k", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 500_000) as i32)))],
    );
    let wide = MemoryTable::new("wide", vec![("k", numbers::<Int32Type>(40_000, |row| Some(row as i32 * 12)))]);
    let fragment = fragment(
        &[1, 1],
        vec![
            builds(1, vec![], vec![reg(0)], vec![]),
            aggregates(
                0,
                vec![probe(0, vec![reg(0)], JoinKind::Anti)],
                vec![],
                vec![count(), min(reg(0), DataType::Int32)],
            ),
        ],
    );
    let report = check_orders(&fragment, &[&facts, &wide]);
    assert!(
        report.program().unwrap().source().contains("launch_group_1_params, 1024, 1)"),
        "one block a multiprocessor"
    );
}

#[test]
fn offsets_of_packed_keys_meet_the_bitmap_of_another_range() {
    let rows = 3_000;
    // Keys that begin before the table's, within them, or past them all; and some NULLs.
    for (first, keys, has_nulls) in [(0, 700, false), (137, 90, true), (260, 900, false), (5_000, 40, true)] {
        let key = |row: usize| (first + mixed(row, 1) % keys) as i32;
        let is_null = |row: usize| has_nulls && row.is_multiple_of(11);
        let facts = MemoryTable::new(
            "facts",
            vec![
                ("k", numbers::<Int32Type>(rows, |row| (!is_null(row)).then(|| key(row)))),
                ("l", numbers::<Int32Type>(rows, |row| Some(first as i32 + (mixed(row, 2) % 64) as i32))),
            ],
        );
        let wide = MemoryTable::new("wide", vec![("k", numbers::<Int32Type>(300, |row| Some(100 + row as i32 * 3)))]);
        for kinds in
            [[JoinKind::Semi, JoinKind::Anti], [JoinKind::Anti, JoinKind::Semi], [JoinKind::Inner, JoinKind::Semi]]
        {
            let probes = vec![probe(0, vec![reg(0)], kinds[0]), probe(0, vec![reg(1)], kinds[1])];
            let fragment = fragment(
                &[2, 1],
                vec![
                    builds(1, vec![], vec![reg(0)], vec![]),
                    aggregates(0, probes, vec![], vec![count(), sum(reg(1), DataType::Int64), count_of(reg(0))]),
                ],
            );
            for order in [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)] {
                let engine = engine(order);
                load(&engine, &facts, &[EncodingChoice::Packed; 2]);
                let report = check_on(&engine, &fragment, &[&facts, &wide]);
                let source = report.program().unwrap().source().to_string();
                let kernel = &source[source.find("void pipeline_1(").unwrap()..];
                assert!(kernel.contains("wc_found<"), "{first}, {keys}, {has_nulls}: {kernel}");
            }
        }
    }
}

#[test]
fn columns_that_rows_of_the_queue_are_asked_for_again_are_loaded_to_stay() {
    let rows = 3_000;
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 400) as i32))),
            ("d", numbers::<Int32Type>(rows, |row| Some((mixed(row, 2) % 64) as i32))),
        ],
    );
    let parts = MemoryTable::new(
        "parts",
        vec![
            ("k", numbers::<Int32Type>(40, |row| Some(row as i32 * 10))),
            ("size", numbers::<Int32Type>(40, |row| Some(row as i32 % 7))),
        ],
    );
    let dates = MemoryTable::new("dates", vec![("d", numbers::<Int32Type>(16, |row| Some(row as i32 * 4)))]);
    let probes = vec![probe(0, vec![reg(0)], JoinKind::Inner), probe(1, vec![reg(1)], JoinKind::Semi)];
    let fragment = fragment(
        &[2, 2, 1],
        vec![
            builds(1, vec![filter(binary(BinaryOp::Eq, reg(1), int(3, Ty::I32)))], vec![reg(0)], vec![reg(1)]),
            builds(2, vec![], vec![reg(0)], vec![]),
            aggregates(0, probes, vec![(reg(2), DataType::Int32)], vec![count()]),
        ],
    );
    for order in [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)] {
        let engine = engine(order);
        load(&engine, &facts, &[EncodingChoice::Packed; 2]);
        let report = check_on(&engine, &fragment, &[&facts, &parts, &dates]);
        let source = report.program().unwrap().source().to_string();
        let kernel = &source[source.find("void pipeline_2(").unwrap()..];
        // The payload is looked up by `k` once more; what `d` tells is known.
        assert!(kernel.contains("d0.load<true>(c0") && kernel.contains("d1.load(c1"), "{kernel}");
    }
}

#[test]
fn joins_that_give_every_row_its_match_test_nothing() {
    let years = |keys: Vec<i32>| {
        let year = |row: usize| Some(1992 + row as i32 / 30);
        let rows = keys.len();
        let keys = numbers::<Int32Type>(rows, |row| Some(keys[row]));
        MemoryTable::new("days", vec![("k", keys), ("year", numbers::<Int32Type>(rows, year))])
    };
    let facts = facts(6_000);
    let few = filter(binary(BinaryOp::Lt, reg(0), int(90, Ty::I32)));
    let ask = |days: &MemoryTable, key: usize, kind: JoinKind, steps: Vec<Step>| {
        let payload = if kind == JoinKind::Inner { vec![reg(1)] } else { vec![] };
        let group = if kind == JoinKind::Inner { reg(3) } else { reg(1) };
        let fragment = fragment(
            &[3, 2],
            vec![
                builds(1, steps, vec![reg(0)], payload),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(key)], kind)],
                    vec![(group, DataType::Int32)],
                    vec![sum(reg(2), DataType::Int64), count()],
                ),
            ],
        );
        let tables = [&facts, days];
        check_orders(&fragment, &tables);
        let engine = engine(LaneOrder::Forward);
        let predicted = predicted_after_run(&engine, &fragment, &tables);
        let decisions = predicted.pipelines.iter().flat_map(|pipeline| &pipeline.decisions);
        decisions.filter(|decision| decision.starts_with("1 joins without a test")).count()
    };
    let (whole, backward) = (years((0..120).collect()), years((0..120).rev().collect()));
    assert_eq!(ask(&whole, 1, JoinKind::Inner, vec![]), 1);
    assert_eq!(ask(&backward, 1, JoinKind::Inner, vec![]), 1);
    assert_eq!(ask(&whole, 1, JoinKind::Inner, vec![few]), 0, "of rows that are filtered");
    assert_eq!(ask(&years((0..119).collect()), 1, JoinKind::Inner, vec![]), 0, "a row has a larger key");
    assert_eq!(ask(&years((1..120).collect()), 1, JoinKind::Inner, vec![]), 0, "a row has a smaller key");
    let holed = years((0..121).filter(|key| *key != 50).collect());
    assert_eq!(ask(&holed, 1, JoinKind::Inner, vec![]), 0, "a key between has no row");
    assert_eq!(ask(&years((0..400).collect()), 0, JoinKind::Inner, vec![]), 0, "a row has no key");
    assert_eq!(ask(&whole, 1, JoinKind::Left, vec![]), 0);
    assert_eq!(ask(&whole, 1, JoinKind::Anti, vec![]), 0);
}
