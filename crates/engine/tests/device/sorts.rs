//! Sorts of all rows of tables: by a selection and by the radix sort, by every kind of key, and with room that proves
//! too small.

use arrow::datatypes::DataType;
use warpcube_engine::{BinaryOp, BindingCache, EngineError, Fragment, OrderKey, RunOptions, Sink, Step, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;
use crate::top_k::all_kinds;

/// All rows of a table by an order.
fn all_rows(table: &MemoryTable, steps: Vec<Step>, keys: Vec<OrderKey>) -> Fragment {
    let mut fragment = first_rows(table, steps, keys, 0);
    let Some(Sink::TopK(top)) = fragment.pipelines.last_mut().map(|root| &mut root.sink) else { panic!("no top-k") };
    top.k = None;
    fragment
}

/// Rows whose column of that number is less.
fn below(column: usize, bound: i128) -> Step {
    filter(binary(BinaryOp::Lt, reg(column), int(bound, Ty::I32)))
}

#[test]
fn all_rows_by_keys_of_every_kind() {
    let table = all_kinds(2_000);
    // The last two have tails.
    let orders = [
        vec![ascending(reg(1))],
        vec![descending(reg(5)), ascending(reg(0))],
        vec![ascending(reg(9)), descending(reg(6)), ascending(reg(8))],
        vec![OrderKey { nulls_first: true, ..ascending(reg(2)) }, ascending(reg(10))],
        vec![ascending(reg(8)), descending(reg(5)), ascending(reg(3))],
        vec![descending(reg(10)), ascending(reg(3)), descending(reg(5)), ascending(reg(4))],
    ];
    for (tuning, name) in [("", "selection"), ("selected_rows_max=0", "radix_sort")] {
        let engine = engine(LaneOrder::Seeded(5)).with_tuning(tuning.parse().unwrap());
        let fragments: Vec<Fragment> = orders
            .iter()
            .flat_map(|keys| [vec![], vec![below(1, 20)]].map(|steps| all_rows(&table, steps, keys.clone())))
            .collect();
        for report in check_all_rows(&engine, &fragments, &table) {
            let top = report.top.unwrap();
            assert!(top.starts_with(&format!("{name}: room for 2000 of 2000 rows")), "{top}");
            assert_eq!(report.reruns, 0);
        }
    }
}

#[test]
fn any_number_of_rows_is_sorted() {
    for tuning in ["", "selected_rows_max=0"] {
        let engine = engine(LaneOrder::Reversed).with_tuning(tuning.parse().unwrap());
        for rows in [0, 1, 31, 1024, 2_100] {
            let table = all_kinds(rows);
            check_rows_on(&engine, &all_rows(&table, vec![], vec![descending(reg(3)), ascending(reg(9))]), &table);
        }
        let table = all_kinds(1_500);
        check_rows_on(&engine, &all_rows(&table, vec![below(1, -50)], vec![descending(reg(3))]), &table);
    }
}

#[test]
fn room_for_a_sort_grows_and_is_kept() {
    let table = all_kinds(2_500);
    for (tuning, keys) in [
        ("", vec![ascending(reg(1)), ascending(reg(2))]),
        ("selected_rows_max=0", vec![ascending(reg(1)), ascending(reg(2))]),
        ("selected_rows_max=100", vec![ascending(reg(1)), ascending(reg(3)), descending(reg(5))]),
    ] {
        let engine = engine(LaneOrder::Forward).with_tuning(tuning.parse().unwrap());
        let fragment = all_rows(&table, vec![below(1, 20)], keys);
        let options = RunOptions { group_slots: Some(16), ..RunOptions::default() };
        let cache = BindingCache::seeded(5);
        let run = |options: &RunOptions| engine.run_again(&fragment, &cache, &requests(&fragment, &[&table]), options);
        let (rows, report) = run(&options).unwrap();
        assert_eq!(rows.num_rows(), check_rows_on(&engine, &fragment, &table).rows as usize);
        assert_eq!(report.reruns, 3, "{tuning}: 8, 64 and 512 times the room");
        assert_eq!(run(&options).unwrap().1.reruns, 0, "the room is kept");
        // Rows that do not pay are refused before there is room for them.
        let few = RunOptions { groups_max: Some(10), ..options };
        let refused = engine.run_again(&fragment, &BindingCache::seeded(5), &requests(&fragment, &[&table]), &few);
        let Err(EngineError::Unsupported(reason)) = refused else { panic!("{tuning}") };
        assert_eq!(reason, "a result of 17 rows, more than pay to bring back");
    }
}

#[test]
fn a_sort_of_groups_takes_either_way() {
    let table = all_kinds(3_000);
    let fragment = sorted_groups(&table, 1, DataType::Int32);
    for tuning in ["", "selected_rows_max=0"] {
        let engine = engine(LaneOrder::Forward).with_tuning(tuning.parse().unwrap());
        check_rows_on(&engine, &fragment, &table);
    }
}

#[test]
fn groups_beyond_what_one_block_sorts_are_sorted_in_a_second_run() {
    for (rows, reruns) in [(4_000, 0), (9_000, 1)] {
        let table = all_kinds(rows);
        let (engine, fragment) = (engine(LaneOrder::Seeded(3)), sorted_groups(&table, 2, DataType::Int64));
        let groups = check_rows_on(&engine, &fragment, &table).rows;
        assert_eq!(groups > 4096, reruns > 0, "{groups} groups");
        let cache = BindingCache::seeded(5);
        let run = || engine.run_again(&fragment, &cache, &requests(&fragment, &[&table]), &RunOptions::default());
        assert_eq!(run().unwrap().1.reruns, reruns, "{groups} groups");
        assert_eq!(run().unwrap().1.reruns, 0, "the number is kept");
    }
}

/// Groups by column `key` and another, in order.
fn sorted_groups(table: &MemoryTable, key: usize, of: DataType) -> Fragment {
    let by = vec![(reg(key), of.clone()), (reg(9), DataType::Utf8)];
    let calls = vec![count(), max(reg(2), DataType::Int64)];
    let outputs = vec![(reg(1), DataType::Utf8), (reg(0), of), (reg(3), DataType::Int64)];
    let keys = vec![descending(reg(2)), ascending(reg(0)), ascending(reg(1))];
    let sorted = all_rows(table, vec![], keys);
    let mut root = sorted.pipelines[0].clone();
    root.source = warpcube_engine::Source::Output(0);
    let Sink::TopK(top) = &mut root.sink else { panic!("no top-k") };
    top.outputs = outputs;
    fragment(&[11], vec![aggregates(0, vec![], by, calls), root])
}
