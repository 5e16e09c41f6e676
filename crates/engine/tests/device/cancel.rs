//! Cancelling a statement whose kernels run.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_column::LoadLimits;
use warpcube_engine::{BindingCache, Engine, EngineError, Fragment, JoinKind, RunOptions};
use warpcube_gpu::{CancelSwitch, GpuError, LaneOrder};

use crate::support::*;

fn table(name: &str, rows: usize) -> MemoryTable {
    let keys = numbers::<Int64Type>(rows, |row| Some(row as i64));
    MemoryTable::new(name, vec![("k", keys), ("v", numbers::<Int32Type>(rows, |row| Some(row as i32 % 7)))])
}

fn joined() -> Fragment {
    let calls = vec![count(), sum(reg(2), DataType::Int64)];
    let probes = vec![probe(0, vec![reg(0)], JoinKind::Inner)];
    fragment(
        &[2, 2],
        vec![
            builds(1, vec![], vec![reg(0)], vec![reg(1)]),
            aggregates(0, probes, vec![(reg(1), DataType::Int32)], calls),
        ],
    )
}

fn options(switch: &Arc<CancelSwitch>) -> RunOptions {
    let limits = LoadLimits { cancelled: switch.flag().clone(), ..LoadLimits::default() };
    RunOptions { limits, cancel: switch.clone(), ..RunOptions::default() }
}

/// Throws a switch while the launch that is held stands still, and gives what the run said.
fn cancelled_in_launch(engine: &Engine, cache: &BindingCache, tables: &[&MemoryTable]) -> EngineError {
    let (fragment, switch) = (joined(), Arc::new(CancelSwitch::default()));
    let faults = engine.device().emulator_faults().unwrap();
    faults.hold_launch();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(faults.wait_until_held(Duration::from_secs(60)));
            // Writes beside the kernel, which lets it go: without that the launch would fail at the time limit.
            switch.throw();
        });
        engine.run_again(&fragment, cache, &requests(&fragment, tables), &options(&switch)).unwrap_err()
    })
}

#[test]
fn a_running_statement_stops_leaves_nothing_and_the_next_one_is_right() {
    for order in [LaneOrder::Forward, LaneOrder::Seeded(3)] {
        let engine = engine(order);
        let (facts, dimension) = (table("facts", 9_000), table("dimension", 3_000));
        let tables = [&facts, &dimension];
        let fragment = joined();
        check_on(&engine, &fragment, &tables);
        let resident = engine.device().pool().usage();
        let cache = BindingCache::default();
        for _ in 0..3 {
            let error = cancelled_in_launch(&engine, &cache, &tables);
            assert!(matches!(error, EngineError::Gpu(GpuError::Cancelled)), "{error}");
            let usage = engine.device().pool().usage();
            assert_eq!((usage.reserved, usage.live), (resident.reserved, resident.live));
        }
        check_on(&engine, &fragment, &tables);
    }
}

#[test]
fn a_switch_thrown_before_the_start_starts_nothing() {
    let engine = engine(LaneOrder::Forward);
    let (facts, dimension) = (table("facts", 900), table("dimension", 300));
    let (fragment, tables) = (joined(), [&facts, &dimension]);
    check_on(&engine, &fragment, &tables);
    let switch = Arc::new(CancelSwitch::default());
    switch.throw();
    engine.device().emulator_faults().unwrap().fail_launch(1);
    let outcome =
        engine.run_again(&fragment, &BindingCache::default(), &requests(&fragment, &tables), &options(&switch));
    // A launch would have lost the device.
    assert!(matches!(outcome, Err(EngineError::Gpu(GpuError::Cancelled))), "{outcome:?}");
}
