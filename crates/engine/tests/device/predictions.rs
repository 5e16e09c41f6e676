//! What is predicted before a fragment runs, and once its columns are there.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{BinaryOp, BindingCache, Fragment, JoinKind, Rows, RunOptions, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const ROWS: usize = 5_000;

fn facts() -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int64Type>(ROWS, |row| Some(row as i64 % 200))),
            ("v", numbers::<Int32Type>(ROWS, |row| Some(row as i32 % 100))),
        ],
    )
}

fn dimension() -> MemoryTable {
    MemoryTable::new(
        "dimension",
        vec![
            ("id", numbers::<Int64Type>(200, |row| Some(row as i64))),
            ("colour", numbers::<Int32Type>(200, |row| Some(row as i32 % 3))),
        ],
    )
}

/// `SELECT colour, sum(v) FROM facts JOIN dimension ON k = id WHERE v < 50 GROUP BY colour`.
fn joined() -> Fragment {
    let filters = vec![filter(binary(BinaryOp::Lt, reg(1), int(50, Ty::I32))), probe(0, vec![reg(0)], JoinKind::Inner)];
    fragment(
        &[2, 2],
        vec![
            builds(1, vec![], vec![reg(0)], vec![reg(1)]),
            aggregates(0, filters, vec![(reg(2), DataType::Int32)], vec![sum(reg(1), DataType::Int64)]),
        ],
    )
}

#[test]
fn before_the_first_run_sizes_are_unknown_and_bytes_those_of_whole_columns() {
    let (facts, dimension) = (facts(), dimension());
    let (fragment, tables) = (joined(), [&facts, &dimension]);
    let engine = engine(LaneOrder::Forward);
    let predicted = engine.predict(&fragment, &BindingCache::default(), &table_facts(&fragment, &tables));
    let [build, scan] = predicted.pipelines.as_slice() else { panic!("{predicted:?}") };
    assert_eq!((build.rows, build.bytes, build.size.as_deref()), (Some(200), Some(200 * 12), None));
    assert_eq!((scan.rows, scan.columns, scan.resident), (Some(ROWS as u64), 2, 0));
    let steps: Vec<&str> = scan.steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(steps, ["filter v < 50", "inner join on k = id"]);
    assert_eq!((scan.steps[1].build, scan.steps[1].rows), (Some(0), None));
    assert_eq!((build.name.as_str(), scan.name.as_str()), ("table 0", "the result"));
    assert_eq!(build.sink, "build table 0 of id with colour");
    assert_eq!(scan.sink, "group by colour: sum(v)");
    assert_eq!((predicted.launches, predicted.arena_bytes), (2, None));
    assert_eq!((predicted.bytes, predicted.load_bytes), (Some(12 * 5_200), Some(12 * 5_200)));
    // The emulated device tells no bandwidth.
    assert_eq!(predicted.device, None);
}

#[test]
fn after_a_run_they_are_those_of_the_binding() {
    let (facts, dimension) = (facts(), dimension());
    let (fragment, tables) = (joined(), [&facts, &dimension]);
    let engine = engine(LaneOrder::Forward);
    let cache = BindingCache::default();
    let ran = engine.run_again(&fragment, &cache, &requests(&fragment, &tables), &RunOptions::default());
    let report = ran.unwrap().1;
    let predicted = engine.predict(&fragment, &cache, &table_facts(&fragment, &tables));
    let [build, scan] = predicted.pipelines.as_slice() else { panic!("{predicted:?}") };
    assert_eq!(build.size.as_deref(), Some("direct, 200 places"));
    assert_eq!((build.leaves, scan.leaves), (Some(Rows::About(200)), None));
    assert_eq!((scan.resident, scan.steps[0].rows), (2, Some(ROWS as u64 / 2)));
    assert_eq!((predicted.load_bytes, predicted.bytes), (Some(0), Some(report.bytes)));
    assert_eq!(predicted.arena_bytes, Some(report.arena_bytes));
    assert_eq!(predicted.launches as usize, report.launch_groups.len());
    // What went over the bus: the constants up, control and groups down.
    assert!(report.traffic.uploaded > 0 && report.traffic.downloaded > 0, "{:?}", report.traffic);
    // Once the columns leave, the binding says nothing any more.
    engine.residency().clear();
    let predicted = engine.predict(&fragment, &cache, &table_facts(&fragment, &tables));
    assert_eq!((predicted.arena_bytes, predicted.load_bytes), (None, Some(12 * 5_200)));
}
