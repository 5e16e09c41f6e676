//! Running kernels are cancelled from another thread.

mod emulated_support;

use std::sync::Arc;
use std::time::Duration;

use emulated_support::{ORDERS, Rig, kernel, shape};
use warpcube_gpu::{CancelSwitch, DeviceBuffer, GpuError, Params};

/// Adds to `b[0]` until `b[1]` is not zero.
const ENDLESS: &str = "struct P { uint64_t* b; };
    WC_KERNEL(endless, P, 32, 1) {
        while (wc_load_relaxed(p.b + 1) == 0) { wc_add(p.b, (uint64_t)1); wc_backoff(); }
    }";

fn launch(rig: &mut Rig, buffer: &DeviceBuffer) -> Result<(), GpuError> {
    let endless = kernel(&rig.device, "endless", ENDLESS);
    rig.stream.launch(&endless, shape(2, 32, 0), &Params::new().buffer(buffer))
}

#[test]
fn a_thrown_switch_ends_a_kernel_that_would_run_for_ever() {
    for order in ORDERS {
        let mut rig = Rig::new(order);
        let buffer = rig.upload(&[0u64, 0]);
        let faults = rig.device.emulator_faults().unwrap();
        let switch = Arc::new(CancelSwitch::default());
        std::thread::scope(|scope| {
            let watch = switch.watch(&buffer, 8).unwrap();
            scope.spawn(|| {
                assert!(faults.wait_until_held(Duration::from_secs(60)));
                // The launch is resumed first, so that the kernel runs when the switch is thrown.
                faults.release();
                switch.throw();
            });
            faults.hold_launch();
            launch(&mut rig, &buffer).unwrap();
            drop(watch);
        });
        let words: Vec<u64> = rig.download(&buffer);
        assert_eq!(words[1], 1, "{order:?}");
        rig.assert_works();
    }
}

#[test]
fn the_word_is_written_again_where_earlier_work_zeroes_it() {
    let mut rig = Rig::new(ORDERS[0]);
    let buffer = rig.upload(&[0u64, 0]);
    let faults = rig.device.emulator_faults().unwrap();
    let switch = Arc::new(CancelSwitch::default());
    let watch = switch.watch(&buffer, 8).unwrap();
    switch.throw();
    // A fill that was in the stream before the switch was thrown.
    rig.stream.fill(&buffer, 0, 0, 16).unwrap();
    faults.hold_launch();
    launch(&mut rig, &buffer).unwrap();
    drop(watch);
}

#[test]
fn a_thrown_switch_refuses_a_watch_and_writes_no_word_after_its_end() {
    let mut rig = Rig::new(ORDERS[0]);
    let buffer = rig.upload(&[0u64, 0]);
    let switch = Arc::new(CancelSwitch::default());
    drop(switch.watch(&buffer, 8).unwrap());
    switch.throw();
    assert!(switch.is_thrown() && matches!(switch.watch(&buffer, 8), Err(GpuError::Cancelled)));
    assert_eq!(rig.download::<u64>(&buffer), [0, 0]);
}

#[test]
fn a_word_outside_of_the_buffer_is_refused() {
    let mut rig = Rig::new(ORDERS[0]);
    let buffer = rig.upload(&[0u64, 0]);
    for offset in [4, 12, 16, usize::MAX - 7] {
        assert!(matches!(buffer.host_write(offset, 1), Err(GpuError::Contract(_))), "{offset}");
    }
    buffer.host_write(8, 7).unwrap();
    assert_eq!(rig.download::<u64>(&buffer), [0, 7]);
}

#[test]
fn a_held_launch_runs_after_its_release() {
    let mut rig = Rig::new(ORDERS[0]);
    let faults = rig.device.emulator_faults().unwrap();
    faults.hold_launch();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(faults.wait_until_held(Duration::from_secs(60)));
            faults.release();
        });
        rig.assert_works();
    });
}
