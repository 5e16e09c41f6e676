//! Cancelling a statement whose kernels run.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_column::LoadLimits;
use warpcube_engine::{BinaryOp, BindingCache, Engine, EngineError, Fragment, JoinKind, RunOptions, Ty};
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

/// Facts of one key, and a condition that none of its matches meets.
fn walked(kind: JoinKind) -> Fragment {
    let never = binary(BinaryOp::Gt, reg(2), int(100, Ty::I32));
    let probes = vec![probe_where(0, vec![reg(0)], kind, never)];
    fragment(&[2, 2], vec![builds(1, vec![], vec![reg(0)], vec![reg(1)]), aggregates(0, probes, vec![], vec![count()])])
}

#[test]
fn a_walk_over_the_matches_of_one_key_stops() {
    let engine = engine(LaneOrder::Forward);
    let one_key = |name: &str, rows: usize| {
        let keys = numbers::<Int64Type>(rows, |_| Some(5));
        MemoryTable::new(name, vec![("k", keys), ("v", numbers::<Int32Type>(rows, |row| Some(row as i32 % 7)))])
    };
    // Matches enough for many times the device's time limit, which an uncancelled run would end with.
    let (facts, dimension) = (one_key("facts", 300_000), one_key("dimension", 300_000));
    let faults = engine.device().emulator_faults().unwrap();
    for kind in [JoinKind::Semi, JoinKind::Inner] {
        let (fragment, switch) = (walked(kind), Arc::new(CancelSwitch::default()));
        let tables = requests(&fragment, &[&facts, &dimension]);
        let outcome = std::thread::scope(|scope| {
            faults.hold_launch();
            scope.spawn(|| {
                assert!(faults.wait_until_held(Duration::from_secs(60)));
                faults.release();
                // Time for the run to find that the key has several rows, and to come to the walk.
                std::thread::sleep(Duration::from_secs(2));
                switch.throw();
            });
            engine.run_again(&fragment, &BindingCache::default(), &tables, &options(&switch))
        });
        assert!(matches!(outcome, Err(EngineError::Gpu(GpuError::Cancelled))), "{kind:?}: {outcome:?}");
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
