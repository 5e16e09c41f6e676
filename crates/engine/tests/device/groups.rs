//! Grouped aggregation by size of the group domain.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int8Type, Int32Type, Int64Type, UInt16Type};
use warpcube_engine::{AggregateCall, BinaryOp, BindingCache, Engine, EngineError, RunOptions, Tuning, Ty};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder, Priority};

use crate::support::*;

fn table(rows: usize, groups: u64, key: impl Fn(u64) -> i64) -> MemoryTable {
    let keys: ArrayRef = numbers::<Int64Type>(rows, |row| Some(key(mixed(row, 1) % groups)));
    MemoryTable::shaped(
        "facts",
        vec![
            ("k", keys),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 2) as i32))),
            ("w", numbers::<Int8Type>(rows, |row| (row % 11 != 3).then_some(mixed(row, 3) as i8))),
        ],
        Shape { partitions: 2, batch_rows: 20_000 },
    )
}

fn all_aggregates() -> Vec<AggregateCall> {
    let positive = binary(BinaryOp::Gt, reg(1), int(0, Ty::I32));
    vec![
        sum(reg(1), DataType::Int64),
        count(),
        count_of(reg(2)),
        min(reg(2), DataType::Int8),
        max(reg(1), DataType::Int32),
        AggregateCall { filter: Some(positive), ..sum(reg(2), DataType::Int64) },
    ]
}

#[test]
fn a_few_groups_have_private_cells() {
    // Six cells and the row count over at most eight groups; below 65,536 rows the same groups are dense.
    let calls =
        || vec![sum(reg(1), DataType::Int64), count(), max(reg(1), DataType::Int32), min(reg(1), DataType::Int32)];
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], calls());
    let report = check_orders(&fragment, &[&table(70_000, 5, |key| key as i64 - 2)]);
    assert!(report.program().unwrap().source().contains("mine["), "cells are private");
    let report = check(&fragment, &[&table(7_000, 5, |key| key as i64 - 2)]);
    assert!(!report.program().unwrap().source().contains("mine["), "cells are shared");
}

#[test]
fn private_cells_of_all_kinds_behind_a_filter() {
    let few = filter(binary(BinaryOp::Lt, reg(1), int(-1_900_000_000, Ty::I32)));
    let calls = vec![count_of(reg(2)), sum(convert(reg(2), Ty::F64), DataType::Float64), min(reg(2), DataType::Int8)];
    let fragment = single(3, vec![few], vec![(reg(0), DataType::Int64)], calls);
    let report = check(&fragment, &[&table(70_000, 4, |key| key as i64)]);
    assert!(report.program().unwrap().source().contains("mine["));
}

#[test]
fn crowded_groups_are_summed_a_block_in_halves() {
    // 300 groups of 60 rows and more; negative values borrow from the upper halves, wide ones carry into them.
    let calls = || vec![sum(reg(1), DataType::Int64), sum(convert(reg(2), Ty::I64), DataType::Int64), count()];
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], calls());
    let report = check_orders(&fragment, &[&table(21_000, 300, |key| key as i64 - 150)]);
    assert!(report.program().unwrap().source().contains("uint8_t* const marks"), "sums are in shared memory");
    let sparse = check(&fragment, &[&table(7_000, 300, |key| key as i64)]);
    assert!(!sparse.program().unwrap().source().contains("uint8_t* const marks"), "sums are in global memory");
}

#[test]
fn rows_of_common_groups_meet_in_a_cache_of_the_block() {
    // Half of the rows fall into one group, the others into 5,000: by key and hashed, with extremes and doubles.
    let skewed = |spread: i64| move |key: u64| if key < 2_500 { 7 } else { key as i64 * spread };
    for spread in [1, 1 << 40] {
        let double = sum(convert(reg(1), Ty::F64), DataType::Float64);
        let calls = [all_aggregates(), vec![double]].concat();
        let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], calls);
        let report = check_orders(&fragment, &[&table(12_000, 5_000, skewed(spread))]);
        assert!(report.program().unwrap().source().contains("= wc_owns(owners"), "{spread}");
    }
}

#[test]
fn dense_groups_of_several_parts() {
    let rows = 12_000;
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int8Type>(rows, |row| Some((mixed(row, 1) % 10) as i8 - 5))),
            ("b", numbers::<UInt16Type>(rows, |row| (row % 13 != 0).then_some(60_000 + (mixed(row, 2) % 20) as u16))),
            ("c", truths(rows, |row| (row % 17 != 0).then_some(mixed(row, 3) & 1 == 0))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 4) as i32))),
        ],
    );
    let by = vec![(reg(0), DataType::Int8), (reg(1), DataType::UInt16), (reg(2), DataType::Boolean)];
    let fragment = single(4, vec![], by, vec![sum(reg(3), DataType::Int64), count()]);
    check_orders(&fragment, &[&facts]);
}

#[test]
fn many_dense_groups_are_compacted() {
    // 100,000 places and more than 64 KiB of cells: gathered by a kernel of their own.
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let report = check_orders(&fragment, &[&table(8_000, 100_000, |key| key as i64 * 7 % 100_000)]);
    assert!(report.program().unwrap().source().contains("compact_groups"));
}

#[test]
fn crowded_groups_past_shared_memory_have_copies() {
    // Ten sums over 900 groups: more than a block keeps, and enough rows that atomic operations would meet.
    let calls = || -> Vec<AggregateCall> {
        let above = |bound: i128| binary(BinaryOp::Gt, reg(1), int(bound, Ty::I32));
        (0..10).map(|at| AggregateCall { filter: Some(above(at << 25)), ..sum(reg(1), DataType::Int64) }).collect()
    };
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], calls());
    let report = check_orders(&fragment, &[&table(60_000, 900, |key| key as i64 - 450)]);
    assert!(report.program().unwrap().source().contains("const copy = "), "blocks add to copies");
    let sparse = check(&fragment, &[&table(9_000, 900, |key| key as i64)]);
    assert!(!sparse.program().unwrap().source().contains("const copy = "), "few rows need none");
}

#[test]
fn sparse_keys_are_hashed() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let spread = |key: u64| (key as i64 - 500) * 1_000_000_007;
    let report = check_orders(&fragment, &[&table(6_000, 1_000, spread)]);
    assert!(report.program().unwrap().source().contains("place = wc_table_enter"), "groups are hashed");
    assert_eq!(report.reruns, 0);
}

#[test]
fn a_hash_table_that_is_too_small_grows() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(6_000, 1_000, |key| (key as i64 - 500) * 1_000_000_007);
    let engine = engine(LaneOrder::Seeded(3));
    let options = RunOptions { group_slots: Some(16), ..RunOptions::default() };
    let (small, report) = engine.run(&fragment, &requests(&fragment, &[&facts]), &options).unwrap();
    assert_eq!((report.reruns, report.grown), (0, 2), "16, 128, 1024 slots");
    check_on(&engine, &fragment, &[&facts]);
    assert!(small.num_rows() > 512, "more than half of the second table");
}

#[test]
fn a_hash_table_that_outgrows_the_budget_is_refused_and_leaves_nothing() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(20_000, 15_000, |key| (key as i64 - 500) * 1_000_000_007);
    let few = table(20_000, 40, |key| (key as i64 - 500) * 1_000_000_007);
    // 16 slots at first: columns and first tables have room, the table of all groups has none.
    let options = RunOptions { group_slots: Some(16), ..RunOptions::default() };
    let engine = Engine::new(Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap());
    let (batch, _) = engine.run(&fragment, &requests(&fragment, &[&few]), &options).unwrap();
    assert_eq!(batch.num_rows(), 40);
    for _ in 0..2 {
        let refused = engine.run(&fragment, &requests(&fragment, &[&facts]), &options).unwrap_err().to_string();
        assert!(refused.starts_with("COL-002 ") && refused.contains("hash tables and results"), "{refused}");
        let columns: u64 =
            engine.residency().summaries().iter().flat_map(|table| &table.columns).map(|c| c.bytes).sum();
        assert_eq!(engine.device().pool().usage().live, columns);
    }
    let (batch, _) = engine.run(&fragment, &requests(&fragment, &[&few]), &options).unwrap();
    assert_eq!(batch.num_rows(), 40);
}

#[test]
fn more_groups_than_wanted_are_refused_and_remembered() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(6_000, 1_000, |key| (key as i64 - 500) * 1_000_000_007);
    let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::default());
    let few = RunOptions { groups_max: Some(100), ..RunOptions::default() };
    for _ in 0..2 {
        let refused = engine.run_again(&fragment, &cache, &requests(&fragment, &[&facts]), &few).unwrap_err();
        assert!(matches!(&refused, EngineError::Unsupported(reason) if reason.contains("groups")), "{refused}");
    }
    let all = RunOptions::default();
    let (batch, _) = engine.run_again(&fragment, &cache, &requests(&fragment, &[&facts]), &all).unwrap();
    assert!(batch.num_rows() > 900);
}

#[test]
fn what_is_run_again_gets_better_kernels() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(6_000, 1_000, |key| (key as i64 - 500) * 1_000_000_007);
    let tuning = Tuning { tiers: 2, ..Tuning::default() };
    let (engine, cache) = (engine(LaneOrder::Forward).with_tuning(tuning), BindingCache::default());
    let run = || {
        let (batch, report) =
            engine.run_again(&fragment, &cache, &requests(&fragment, &[&facts]), &RunOptions::default()).unwrap();
        (batch.num_rows(), report)
    };
    let (rows, first) = run();
    let program = first.program().unwrap();
    assert!(first.in_haste && !engine.device().is_compiled(&program));
    engine.device().settle();
    assert!(!engine.device().is_compiled(&program), "what is run once is compiled once");
    assert_eq!(run().0, rows);
    engine.device().settle();
    assert!(engine.device().is_compiled(&program));
    let (again, third) = run();
    assert!(again == rows && !third.in_haste);
    check_on(&engine, &fragment, &[&facts]);
    // What is at hand already is taken at once.
    let (_, other) = engine.run(&fragment, &requests(&fragment, &[&facts]), &RunOptions::default()).unwrap();
    assert!(!other.in_haste);
}

#[test]
fn who_may_go_elsewhere_does_not_wait_for_a_compiler() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(6_000, 1_000, |key| (key as i64 - 500) * 1_000_000_007);
    let elsewhere = RunOptions { elsewhere: true, ..RunOptions::default() };
    for tiers in [0, 2] {
        let tuning = Tuning { tiers, yields: 2, ..Tuning::default() };
        let engine = engine(LaneOrder::Forward).with_tuning(tuning);
        let run = || engine.run(&fragment, &requests(&fragment, &[&facts]), &elsewhere);
        let Err(EngineError::NotCompiled(behind)) = run() else { panic!("it waited") };
        let is_there = |program: &warpcube_gpu::Program| engine.device().is_compiled(program);
        assert!(behind.loaded.bytes > 0 && !behind.programs.iter().any(is_there));
        engine.device().request(&behind.programs, Priority::Soon).wait().unwrap();
        assert!(behind.programs.iter().all(is_there));
        let (batch, report) = run().unwrap();
        assert!(batch.num_rows() > 900 && !report.compiled && report.loaded.bytes == 0);
        check_on(&engine, &fragment, &[&facts]);
    }
}

#[test]
fn a_large_result_comes_with_the_run_from_the_second_time_on() {
    let fragment = single(3, vec![], vec![(reg(0), DataType::Int64)], all_aggregates());
    let facts = table(9_000, 6_000, |key| (key as i64 - 500) * 1_000_000_007);
    let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::default());
    let run = || engine.run_again(&fragment, &cache, &requests(&fragment, &[&facts]), &RunOptions::default()).unwrap();
    let runs = [run(), run(), run()];
    assert!(runs.iter().all(|(batch, _)| *batch == runs[0].0) && runs[0].0.num_rows() > 4_000);
    // At first the rest is fetched by its size; a recording has room for a power of two.
    let [first, second, third] = runs.map(|(_, report)| report.traffic.downloaded);
    assert!(first > 128 << 10 && second > first && third == second, "{first} {second} {third}");
    check_on(&engine, &fragment, &[&facts]);
}

#[test]
fn two_sparse_parts_with_nulls() {
    let rows = 5_000;
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int64Type>(rows, |row| (row % 5 != 0).then_some((mixed(row, 1) % 30) as i64 * 1_000_003))),
            ("b", numbers::<Int32Type>(rows, |row| (row % 7 != 0).then_some((mixed(row, 2) % 30) as i32 * -90_001))),
        ],
    );
    let by = vec![(reg(0), DataType::Int64), (reg(1), DataType::Int32)];
    check(&single(2, vec![], by, vec![count(), sum(reg(0), DataType::Int64)]), &[&facts]);
}

#[test]
fn groups_over_expressions() {
    let rem = binary(BinaryOp::Rem, reg(1), int(7, Ty::I32));
    let both = binary(BinaryOp::Lt, reg(1), int(0, Ty::I32));
    let by = vec![(rem, DataType::Int32), (both, DataType::Boolean)];
    check(&single(3, vec![], by, vec![count(), min(reg(1), DataType::Int32)]), &[&table(4_000, 10, |key| key as i64)]);
}

/// Three columns that span 64 bits each, two of them with NULLs; every fourth row repeats an earlier key.
fn wide_table(rows: usize) -> MemoryTable {
    let at = |row: usize, seed: u64| mixed(row / 4 * 3 % 977, seed) as i64;
    let ends = |row: usize, seed: u64| match row % 97 {
        5 => i64::MIN,
        6 => i64::MAX,
        _ => at(row, seed),
    };
    MemoryTable::new(
        "wide",
        vec![
            ("a", numbers::<Int64Type>(rows, |row| (row % 13 != 0).then(|| ends(row, 1)))),
            ("b", numbers::<Int64Type>(rows, |row| Some(ends(row, 2)))),
            ("c", numbers::<Int64Type>(rows, |row| (row % 7 != 0).then(|| at(row, 3) >> 20))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 4) as i32))),
        ],
    )
}

#[test]
fn keys_of_several_words_are_hashed_together() {
    let by = |keys: &[usize]| keys.iter().map(|key| (reg(*key), DataType::Int64)).collect::<Vec<_>>();
    let calls = || vec![count(), sum(reg(3), DataType::Int64), min(reg(3), DataType::Int32), count_of(reg(2))];
    for keys in [&[0, 1, 2][..], &[0], &[1], &[2, 1, 0, 1, 0, 2]] {
        let report = check_orders(&single(4, vec![], by(keys), calls()), &[&wide_table(5_000)]);
        assert!(report.program().unwrap().source().contains("wc_wide_enter("), "{keys:?}");
    }
}

#[test]
fn a_table_of_wide_keys_that_is_too_small_grows() {
    let by = vec![(reg(0), DataType::Int64), (reg(1), DataType::Int64)];
    let fragment = single(4, vec![], by, vec![count(), max(reg(3), DataType::Int32)]);
    let wide = wide_table(5_000);
    for order in [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(5)] {
        let engine = engine(order);
        let options = RunOptions { group_slots: Some(64), ..RunOptions::default() };
        let (batch, report) = engine.run(&fragment, &requests(&fragment, &[&wide]), &options).unwrap();
        let (whole, _) = engine.run(&fragment, &requests(&fragment, &[&wide]), &RunOptions::default()).unwrap();
        assert_eq!((report.grown, batch.num_rows()), (2, whole.num_rows()), "64, 512, 4096 slots");
        check_on(&engine, &fragment, &[&wide]);
    }
}

#[test]
fn sixteen_keys_of_every_kind() {
    let rows = 3_000;
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for key in 0..16u64 {
        let small = |row: usize| mixed(row % 400, key);
        columns.push((
            format!("k{key}"),
            match key % 4 {
                0 => numbers::<Int64Type>(rows, |row| (row % 5 != 0).then(|| small(row) as i64)),
                1 => texts(rows, |row| (row % 11 != 0).then(|| format!("{}", small(row) % 50))),
                2 => days(rows, |row| Some((small(row) % 3_000) as i32)),
                _ => numbers::<Int8Type>(rows, |row| Some(small(row) as i8)),
            },
        ));
    }
    let named = columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect();
    let table = MemoryTable::new("many", named);
    let types = [DataType::Int64, DataType::Utf8, DataType::Date32, DataType::Int8];
    let by = (0..16).map(|key| (reg(key), types[key % 4].clone())).collect();
    check(&single(16, vec![], by, vec![count(), sum(reg(3), DataType::Int64)]), &[&table]);
}

#[test]
fn groups_made_to_collide_are_hashed_with_another_seed() {
    let keys = colliding_keys(1_500);
    let table = MemoryTable::new("t", vec![("k", numbers::<Int64Type>(3_000, |row| Some(keys[row % 1_500])))]);
    let fragment = single(1, vec![], vec![(reg(0), DataType::Int64)], vec![count()]);
    let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::seeded(0));
    for reruns in [1, 0] {
        let again = engine.run_again(&fragment, &cache, &requests(&fragment, &[&table]), &RunOptions::default());
        let (batch, report) = again.unwrap();
        assert_eq!((report.reruns, batch.num_rows()), (reruns, 1_500));
    }
    check_on(&engine, &fragment, &[&table]);
}
