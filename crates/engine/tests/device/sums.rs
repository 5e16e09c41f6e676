//! Global aggregation: filters, several aggregates, reports.

use arrow::array::Array;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{BinaryOp, EngineError, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn facts(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 100) as i32))),
            ("b", numbers::<Int64Type>(rows, |row| Some(mixed(row, 2) as i64 % 1_000_000))),
            ("c", numbers::<Int32Type>(rows, |row| Some((mixed(row, 3) % 100) as i32 - 50))),
        ],
    )
}

#[test]
fn global_sum_with_a_filter() {
    let below = binary(BinaryOp::Lt, reg(0), int(25, Ty::I32));
    let calls = vec![sum(reg(1), DataType::Int64), count()];
    let report = check_orders(&single(3, vec![filter(below)], vec![], calls), &[&facts(5_000)]);
    assert_eq!(report.launch_groups.len(), 1);
    assert!(report.program().unwrap().source().contains("pipeline_0"));
}

#[test]
fn filters_of_every_selectivity() {
    // Few survivors go through the queue, many are worked on in place; the estimate says which.
    let table = facts(9_000);
    for limit in [0, 1, 5, 60, 100] {
        let below = binary(BinaryOp::Lt, reg(0), int(limit, Ty::I32));
        let above = binary(BinaryOp::Ge, reg(2), int(-20, Ty::I32));
        let calls = vec![sum(reg(1), DataType::Int64), min(reg(2), DataType::Int32), max(reg(2), DataType::Int32)];
        check(&single(3, vec![filter(below), filter(above)], vec![], calls), &[&table]);
    }
}

#[test]
fn a_filter_that_drops_all_rows_gives_null() {
    let none = binary(BinaryOp::Gt, reg(0), int(1_000, Ty::I32));
    let calls = vec![sum(reg(1), DataType::Int64), count(), min(reg(0), DataType::Int32), count_of(reg(0))];
    let fragment = single(3, vec![filter(none)], vec![], calls);
    let (batch, _) = run(&engine(LaneOrder::Forward), &fragment, &[&facts(3_000)]).unwrap();
    assert!(batch.column(0).is_null(0) && batch.column(2).is_null(0));
    check(&fragment, &[&facts(3_000)]);
}

#[test]
fn constants_are_arguments_not_source() {
    let table = facts(2_000);
    let program = |limit: i128| {
        let below = binary(BinaryOp::Lt, reg(0), int(limit, Ty::I32));
        check(&single(3, vec![filter(below)], vec![], vec![count()]), &[&table]).program().unwrap().hash().to_string()
    };
    assert_eq!(program(20), program(21));
}

#[test]
fn generated_source_can_be_dumped() {
    let folder = std::env::temp_dir().join(format!("warpcube-dump-{}", std::process::id()));
    let (table, fragment) = (facts(2_000), single(3, vec![], vec![], vec![count()]));
    let options = warpcube_engine::RunOptions { dump: Some(folder.clone()), ..Default::default() };
    let (_, report) = engine(LaneOrder::Forward).run(&fragment, &requests(&fragment, &[&table]), &options).unwrap();
    let program = report.program().unwrap();
    let path = folder.join(format!("fragment-{}.cu", &program.hash()[..16]));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), program.full_source());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "a file").unwrap();
    let error = engine(LaneOrder::Forward).run(&fragment, &requests(&fragment, &[&table]), &options).unwrap_err();
    assert!(matches!(error, EngineError::Dump { .. }) && !error.falls_back(), "{error}");
    std::fs::remove_file(&folder).unwrap();
}

#[test]
fn malformed_fragments_are_told() {
    let table = facts(10);
    let refused = |fragment| match run(&engine(LaneOrder::Forward), &fragment, &[&table]) {
        Err(EngineError::Malformed(reason)) => reason,
        other => panic!("{other:?}"),
    };
    refused(single(3, vec![], vec![], vec![sum(reg(7), DataType::Int64)]));
    refused(single(3, vec![filter(binary(BinaryOp::Eq, reg(0), reg(1)))], vec![], vec![count()]));
    refused(fragment(&[3], vec![builds(0, vec![], vec![reg(0)], vec![])]));
    refused(fragment(&[3], vec![aggregates(3, vec![], vec![], vec![count()])]));
    refused(fragment(&[3], vec![]));
}

#[test]
fn a_launch_that_is_refused_falls_back() {
    let (table, fragment) = (facts(2_000), single(3, vec![], vec![], vec![sum(reg(1), DataType::Int64)]));
    let engine = engine(LaneOrder::Forward);
    check_on(&engine, &fragment, &[&table]);
    engine.device().emulator_faults().unwrap().refuse_launch(1);
    let error = run(&engine, &fragment, &[&table]).unwrap_err();
    assert!(error.falls_back() && error.to_string().starts_with("GPU-010 "), "{error}");
    check_on(&engine, &fragment, &[&table]);
}
