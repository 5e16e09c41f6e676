//! Recorded work: repeated runs, their buffers, times.

mod emulated_support;

use emulated_support::{ORDERS, Rig, kernel, shape};
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
        assert_eq!(bytemuck::pod_read_unaligned::<u64>(recording.output(&head).unwrap()), 1);
        let values: Vec<u64> = recording.output(&all).unwrap().chunks(8).map(bytemuck::pod_read_unaligned).collect();
        assert_eq!(values, [1, 11, 13, 0x0101_0101_0101_0101]);
        assert!(recording.elapsed_ms(start, end).unwrap() > 0.0 && recording.elapsed_ms(start, start).unwrap() == 0.0);
        // Work between two runs may write to the buffer.
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
fn a_part_of_a_recorded_buffer_is_no_other_buffer() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let whole = rig.device.buffer(1024, "test").unwrap();
    let mut work = Work::new(&rig.device);
    // Parts before and behind the first use of the whole.
    work.fill(&whole.part(0, 8).unwrap(), 0, 9, 8).unwrap();
    work.fill(&whole, 0, 7, 1024).unwrap();
    work.fill(&whole.part(256, 512).unwrap(), 0, 8, 512).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    assert!(recording.is_on(&[&whole]) && !recording.is_on(&[&whole.part(256, 512).unwrap()]));
    rig.stream.run(&mut recording, &[&whole]).unwrap();
    let bytes = rig.download::<u8>(&whole);
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (256..768).contains(&at) { 8 } else { 7 }));
}

#[test]
fn recorded_work_of_another_device_is_refused() {
    let (mut rig, mut other) = (Rig::new(LaneOrder::Forward), Rig::new(LaneOrder::Forward));
    let buffer = rig.upload(&[1u64; 4]);
    let work = || {
        let mut work = Work::new(&rig.device);
        work.fill(&buffer, 0, 7, 32).unwrap();
        work
    };
    let refused = other.stream.prepare(work()).err().unwrap();
    let words = "the recorded work belongs to another device than the stream";
    assert!(matches!(&refused, GpuError::Contract(message) if message == words), "{refused}");
    let mut recording = rig.stream.prepare(work()).unwrap();
    let refused = other.stream.run(&mut recording, &[&buffer]).unwrap_err();
    assert!(matches!(&refused, GpuError::Contract(message) if message == words), "{refused}");
    assert_eq!(rig.download::<u64>(&buffer), [1; 4]);
    rig.stream.run(&mut recording, &[&buffer]).unwrap();
    assert_eq!(rig.download::<u8>(&buffer), [7; 32]);
    other.assert_works();
}

#[test]
fn an_output_of_other_work_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.upload(&[1u64; 40]);
    let output = |bytes| {
        let mut work = Work::new(&rig.device);
        let output = work.download(&buffer, 0, bytes).unwrap();
        (work, output)
    };
    let ((work, small), (_, large)) = (output(8), output(320));
    let mut recording = rig.stream.prepare(work).unwrap();
    rig.stream.run(&mut recording, &[&buffer]).unwrap();
    assert_eq!(recording.output(&small).unwrap(), 1u64.to_ne_bytes());
    assert!(matches!(recording.output(&large), Err(GpuError::Contract(_))));
}

#[test]
fn an_error_of_a_recorded_kernel_is_reported() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.device.buffer(8, "test").unwrap();
    let twice = kernel(&rig.device, "twice", DOUBLE);
    let mut work = Work::new(&rig.device);
    // One value more than there is room for: the guard behind the buffer is written.
    work.launch(&twice, shape(1, 64, 0), &Params::new().buffer(&buffer).u64(2), false).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    assert!(rig.stream.run(&mut recording, &[&buffer]).is_err());
}

/// Runs a kernel that is launched early, over values that it may double.
fn run_early(order: LaneOrder, name: &str, body: &str) -> Result<Vec<u64>, GpuError> {
    let source = format!("struct P {{ uint64_t* values; uint64_t n; }};\nWC_KERNEL({name}, P, 64, 1) {{\n{body}\n}}");
    let mut rig = Rig::new(order);
    let buffer = rig.upload(&[1u64, 2, 3]);
    let early = kernel(&rig.device, name, &source);
    let mut work = Work::new(&rig.device);
    work.launch(&early, shape(6, 64, 64), &Params::new().buffer(&buffer).u64(3), true).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    let outcome = rig.stream.run(&mut recording, &[&buffer]);
    rig.assert_works();
    outcome.map(|()| rig.download(&buffer))
}

#[test]
fn a_kernel_launched_early_waits_before_it_touches_memory() {
    for order in ORDERS {
        // Its own indices, shared memory and plain parameters are there from the start.
        let right = "uint64_t i = threadIdx.x;
            if (i < p.n && blockIdx.x == 0) ((uint64_t*)wc_shared())[i] = p.n * i;
            __syncthreads();
            wc_wait_previous();
            if (i < p.n && blockIdx.x == 0) p.values[i] += ((uint64_t*)wc_shared())[i];";
        assert_eq!(run_early(order, "right", right).unwrap(), [1, 5, 9]);
        let wrongs = [
            ("reads", "uint64_t x = p.values[0]; wc_wait_previous(); if (threadIdx.x == 0) p.values[1] = x;"),
            ("writes", "if (threadIdx.x == 0) p.values[0] = 7; wc_wait_previous();"),
            ("adds", "wc_add(p.values, 1ul); wc_wait_previous();"),
            ("never", "if (threadIdx.x == 0) p.values[0] = 7;"),
            // The last block alone, which starts when others are done.
            ("one_block", "if (blockIdx.x == 5) p.values[0] = 7; wc_wait_previous();"),
            ("one_thread", "if (threadIdx.x == 0) wc_wait_previous(); __syncthreads(); p.values[threadIdx.x % 3] = 7;"),
        ];
        for (name, body) in wrongs {
            let error = run_early(order, name, body).unwrap_err().to_string();
            let words = "access to memory before wc_wait_previous(), in a kernel launched early";
            assert!(error.contains(words) && error.contains(&format!("kernel '{name}'")), "{error}");
        }
        let error = run_early(order, "idle", "if (p.n == 0) wc_wait_previous();").unwrap_err().to_string();
        assert!(error.contains("ends without wc_wait_previous()"), "{error}");
    }
}
