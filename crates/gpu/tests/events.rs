//! Events between two streams, on the emulated device and on a real one.

mod emulated_support;

use emulated_support::{Rig, kernel, shape};
use warpcube_gpu::{Device, GpuError, LaneOrder, Params};

/// Ends when the second word is set, then doubles the first.
const GATED: &str = "struct P { uint64_t* words; };
WC_KERNEL(gated, P, 32, 1) {
    if (threadIdx.x != 0) return;
    while (wc_load_relaxed(p.words + 1) == 0) wc_backoff();
    p.words[0] *= 2;
}";

#[test]
fn a_stream_waits_for_another() {
    for lanes in emulated_support::ORDERS {
        let mut rig = Rig::new(lanes);
        let mut other = rig.device.stream().unwrap();
        let buffer = rig.upload(&[7u64, 1]);
        let gated = kernel(&rig.device, "gated", GATED);
        rig.stream.launch(&gated, shape(1, 32, 0), &Params::new().buffer(&buffer)).unwrap();
        let doubled = rig.stream.record().unwrap();
        let copy = rig.device.buffer(8, "test").unwrap();
        other.wait(&doubled).unwrap();
        other.copy(&copy, 0, &buffer, 0, 8).unwrap();
        let copied = other.record().unwrap();
        // The stream that recorded the event may end first; buffers of the other one stay.
        drop(std::mem::replace(&mut rig.stream, rig.device.stream().unwrap()));
        copied.synchronize().unwrap();
        assert!(copied.is_done().unwrap() && doubled.is_done().unwrap());
        assert_eq!(rig.download::<u64>(&copy), [14]);
    }
}

#[test]
fn events_of_other_devices_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let event = Rig::new(LaneOrder::Forward).stream.record().unwrap();
    let refused = rig.stream.wait(&event);
    assert!(matches!(&refused, Err(GpuError::Contract(message)) if message.contains("another device")), "{refused:?}");
    rig.assert_works();
}

#[test]
fn a_lost_device_refuses_events() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let event = rig.stream.record().unwrap();
    let gated = kernel(&rig.device, "gated", GATED);
    let buffer = rig.upload(&[7u64, 1]);
    let Some(faults) = rig.device.emulator_faults() else { return };
    faults.fail_launch(1);
    let lost = rig.stream.launch(&gated, shape(1, 32, 0), &Params::new().buffer(&buffer));
    assert!(matches!(lost, Err(GpuError::DeviceLost { .. })), "{lost:?}");
    assert!(rig.stream.record().is_err() && rig.stream.wait(&event).is_err());
    assert!(event.is_done().is_err() && event.synchronize().is_err());
}

/// A kernel that the host holds: its event is not done, and another stream's copy waits for it.
#[test]
#[ignore = "needs a GPU"]
fn a_running_kernel_holds_its_event() {
    let device = Device::cuda(0, None).unwrap();
    let (mut first, mut second) = (device.stream().unwrap(), device.stream().unwrap());
    let (buffer, copy) = (device.buffer(16, "test").unwrap(), device.buffer(8, "test").unwrap());
    first.upload(&buffer, 0, bytemuck::cast_slice(&[7u64, 0])).unwrap();
    first.synchronize().unwrap();
    let gated = kernel(&device, "gated", GATED);
    first.launch(&gated, shape(1, 32, 0), &Params::new().buffer(&buffer)).unwrap();
    let doubled = first.record().unwrap();
    second.wait(&doubled).unwrap();
    second.copy(&copy, 0, &buffer, 0, 8).unwrap();
    let copied = second.record().unwrap();
    assert!(!doubled.is_done().unwrap() && !copied.is_done().unwrap());
    buffer.host_write(8, 1).unwrap();
    copied.synchronize().unwrap();
    assert!(doubled.is_done().unwrap());
    let mut word = [0; 8];
    second.download(&copy, 0, &mut word).unwrap();
    assert_eq!(u64::from_ne_bytes(word), 14);
}
