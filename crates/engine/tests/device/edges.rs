//! Row counts around the units of work: lanes, steps, vectors, tickets, chunks; and tables of no rows.

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_column::{EncodingChoice, LoadLimits};
use warpcube_engine::{BinaryOp, Engine, EngineError, Fragment, JoinKind, RunOptions, Ty};
use warpcube_gpu::{Device, EmulatorFaults, EmulatorOptions, LaneOrder};

use crate::support::*;

fn facts(rows: usize, shape: Shape) -> MemoryTable {
    MemoryTable::shaped(
        "facts",
        vec![
            ("k", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 64) as i32))),
            ("v", numbers::<Int64Type>(rows, |row| (mixed(row, 2) % 10 != 0).then_some(row as i64))),
        ],
        shape,
    )
}

fn side() -> MemoryTable {
    MemoryTable::new("side", vec![("k", numbers::<Int32Type>(64, |row| Some(row as i32)))])
}

/// A selective semi join, then a sum: vectors, the queue and the sink.
fn queued() -> Fragment {
    let few = filter(binary(BinaryOp::Lt, reg(0), int(9, Ty::I32)));
    fragment(
        &[2, 1],
        vec![
            builds(1, vec![few], vec![reg(0)], vec![]),
            aggregates(
                0,
                vec![probe(0, vec![reg(0)], JoinKind::Semi)],
                vec![],
                vec![sum(reg(1), DataType::Int64), count(), max(reg(0), DataType::Int32)],
            ),
        ],
    )
}

fn grouped() -> Fragment {
    single(2, vec![], vec![(reg(0), DataType::Int32)], vec![sum(reg(1), DataType::Int64), count()])
}

#[test]
fn row_counts_around_every_unit() {
    let one = Shape { partitions: 1, batch_rows: 1 << 20 };
    let counts = [0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 511, 513, 1023, 1024, 1025, 2048, 16_383, 16_384, 16_385];
    let rehearsed = engine(LaneOrder::Forward);
    rehearsed.device().rehearse(Some("fragment"), || {
        for rows in counts {
            let facts = facts(rows, one);
            drop(run(&rehearsed, &queued(), &[&facts, &side()]));
            drop(run(&rehearsed, &grouped(), &[&facts]));
        }
    });
    for rows in counts {
        let facts = facts(rows, one);
        check(&queued(), &[&facts, &side()]);
        check(&grouped(), &[&facts]);
    }
}

#[test]
fn engines_over_one_residency_share_its_columns() {
    let facts = facts(2_000, Shape { partitions: 1, batch_rows: 1 << 20 });
    let one = engine(LaneOrder::Forward);
    let two = Engine::over(one.residency().clone());
    let (first, second) = (run(&one, &grouped(), &[&facts]).unwrap(), run(&two, &grouped(), &[&facts]).unwrap());
    assert!(first.1.loaded.rows == 2_000 && second.1.loaded.rows == 0, "{:?}", second.1.loaded);
    assert_eq!(one.device().pool().usage().reserved, two.device().pool().usage().reserved);
}

#[test]
fn many_small_partitions() {
    for (rows, partitions, batch_rows) in [(1_000, 17, 9), (5_000, 5, 1_000), (3, 8, 1)] {
        let facts = facts(rows, Shape { partitions, batch_rows });
        check_orders(&queued(), &[&facts, &side()]);
        check_orders(&grouped(), &[&facts]);
    }
}

#[test]
fn rows_around_a_chunk() {
    for rows in [(1 << 20) - 1, (1 << 20) + 1] {
        let facts = facts(rows, Shape { partitions: 1, batch_rows: 300_000 });
        check(&queued(), &[&facts, &side()]);
    }
}

#[test]
fn empty_tables_give_one_row_or_none() {
    let empty = facts(0, Shape::default());
    check(&single(2, vec![], vec![], vec![count(), sum(reg(1), DataType::Int64)]), &[&empty]);
    check(&grouped(), &[&empty]);
    check(&queued(), &[&empty, &side()]);
}

#[test]
fn columns_without_values() {
    let types = [
        DataType::Int8,
        DataType::Int64,
        DataType::UInt64,
        DataType::Float64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::Date32,
        DataType::Decimal128(12, 2),
    ];
    let names: Vec<String> = types.iter().map(|ty| ty.to_string()).collect();
    let columns = names.iter().zip(&types).map(|(name, ty)| (name.as_str(), new_null_array(ty, 1_500))).collect();
    let table = MemoryTable::new("t", columns);
    let mut calls: Vec<_> = types.iter().enumerate().map(|(index, ty)| max(reg(index), ty.clone())).collect();
    calls.extend([
        sum(reg(1), DataType::Int64),
        sum(reg(3), DataType::Float64),
        sum(reg(7), DataType::Decimal128(22, 2)),
    ]);
    check(&single(8, vec![], vec![], calls.clone()), &[&table]);
    let by = [0, 1, 2, 4, 5, 6, 7].map(|column| (reg(column), types[column].clone())).to_vec();
    check(&single(8, vec![], by, calls), &[&table]);
}

#[test]
fn rows_without_columns() {
    let facts = facts(2_345, Shape::default());
    check(&single(0, vec![], vec![], vec![count()]), &[&facts]);
}

#[test]
fn an_engine_is_used_again() {
    let engine = engine(warpcube_gpu::LaneOrder::Forward);
    let facts = facts(3_000, Shape::default());
    let side = side();
    let first = check_on(&engine, &queued(), &[&facts, &side]);
    let second = check_on(&engine, &queued(), &[&facts, &side]);
    assert!(first.loaded.rows == 3_064 && second.loaded.rows == 0 && !second.compiled);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| check_on(&engine, &queued(), &[&facts, &side]));
        }
    });
    assert_eq!(engine.residency().summaries().len(), 2);
}

#[test]
fn a_kernel_that_leaves_its_zone_is_reported() {
    let faults = Arc::new(EmulatorFaults::default());
    let options = EmulatorOptions { faults: faults.clone(), sanitize: false, ..EmulatorOptions::default() };
    let engine = Engine::new(Device::emulated(options, 64 << 20).unwrap());
    let (facts, side) = (facts(2_000, Shape { partitions: 1, batch_rows: 1 << 20 }), side());
    run(&engine, &queued(), &[&facts, &side]).unwrap();
    for launch in [1, 2] {
        faults.damage_redzones(launch);
        let error = run(&engine, &queued(), &[&facts, &side]).unwrap_err().to_string();
        assert!(
            error.contains("was written, in the redzone at") && error.contains("hash tables and results"),
            "{error}"
        );
    }
    run(&engine, &queued(), &[&facts, &side]).unwrap();
}

#[test]
fn a_kernel_with_more_parameters_than_the_device_takes_is_refused() {
    let options = EmulatorOptions { params_bytes_max: 64, ..EmulatorOptions::default() };
    let engine = Engine::new(Device::emulated(options, 64 << 20).unwrap());
    let facts = facts(100, Shape { partitions: 1, batch_rows: 100 });
    let limits = LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() };
    let options = RunOptions { limits, ..RunOptions::default() };
    let error = engine.run(&grouped(), &requests(&grouped(), &[&facts]), &options).unwrap_err();
    let words = "bytes of parameters, where the device takes 64";
    assert!(matches!(&error, EngineError::Unsupported(reason) if reason.contains(words)), "{error}");
    assert!(error.falls_back() && engine.device().compiles() == 0);
}
