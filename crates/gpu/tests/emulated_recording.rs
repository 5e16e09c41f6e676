//! Recorded work: repeats, what it may touch, times.

mod emulated_support;

use emulated_support::{Rig, kernel, shape};
use warpcube_gpu::{GpuError, LaneOrder, Params, Work};

const DOUBLE: &str = "struct P { uint64_t* values; uint64_t n; };
WC_KERNEL(twice, P, 64, 1) {
    wc_wait_previous();
    for (uint64_t i = threadIdx.x; i < p.n; i += 64) p.values[i] = 2 * p.values[i] + 1;
}";

#[test]
fn a_recording_does_the_same_each_time() {
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    let buffer = rig.device.buffer(32, "test").unwrap();
    let twice = kernel(&rig.device, "twice", DOUBLE);
    let mut work = Work::new(&rig.device);
    work.upload(&buffer, 8, bytemuck::cast_slice(&[5u64, 6])).unwrap();
    work.fill(&buffer, 0, 0, 8).unwrap();
    work.fill(&buffer, 24, 1, 8).unwrap();
    let start = work.mark();
    work.launch(&twice, shape(1, 64, 0), &Params::new().buffer(&buffer).u64(3), true).unwrap();
    let end = work.mark();
    let (head, all) = (work.download(&buffer, 0, 8).unwrap(), work.download(&buffer, 0, 32).unwrap());
    let mut recording = rig.stream.prepare(work).unwrap();
    for _ in 0..3 {
        rig.stream.run(&mut recording, &[&buffer]).unwrap();
        assert_eq!(bytemuck::pod_read_unaligned::<u64>(recording.output(&head)), 1);
        let values: Vec<u64> = recording.output(&all).chunks(8).map(bytemuck::pod_read_unaligned).collect();
        assert_eq!(values, [1, 11, 13, 0x0101_0101_0101_0101]);
        assert!(recording.elapsed_ms(start, end).unwrap() > 0.0 && recording.elapsed_ms(start, start).unwrap() == 0.0);
        // Whatever happens to the buffer between two runs.
        rig.stream.fill(&buffer, 0, 0xff, 32).unwrap();
    }
}

#[test]
fn other_buffers_than_those_recorded_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let (one, other) = (rig.device.buffer(64, "test").unwrap(), rig.device.buffer(64, "test").unwrap());
    let mut work = Work::new(&rig.device);
    work.fill(&one, 0, 7, 64).unwrap();
    assert!(matches!(work.fill(&one, 60, 7, 8), Err(GpuError::Contract(_))));
    let mut recording = rig.stream.prepare(work).unwrap();
    assert!(recording.is_on(&[&other, &one]) && !recording.is_on(&[&other]));
    let refused = rig.stream.run(&mut recording, &[&other]).unwrap_err();
    assert!(refused.to_string().contains("other buffers"), "{refused}");
    rig.stream.run(&mut recording, &[&one]).unwrap();
    assert_eq!(rig.download::<u8>(&one), [7; 64]);
}

#[test]
fn a_kernel_that_fails_in_a_recording_is_told_and_nothing_hangs() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.device.buffer(8, "test").unwrap();
    let twice = kernel(&rig.device, "twice", DOUBLE);
    let mut work = Work::new(&rig.device);
    // One value more than there is room for: the guard behind the buffer is written.
    work.launch(&twice, shape(1, 64, 0), &Params::new().buffer(&buffer).u64(2), false).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    assert!(rig.stream.run(&mut recording, &[&buffer]).is_err());
}
