//! Cancelling on a real device: a kernel that would run for ever is ended from another thread.
//!
//! The test needs a GPU and NVRTC (`gpu/run.sh streams`). If host writes do not reach a running kernel, it never ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpcube_gpu::{CancelSwitch, Device, LaunchShape, Params, Program};

#[test]
#[ignore = "needs a GPU"]
fn a_kernel_that_fills_the_device_is_ended() {
    let device = Device::cuda(0, None).unwrap();
    let source = "struct P { uint64_t* b; };
        WC_KERNEL(endless, P, 1024, 1) {
            while (wc_load_relaxed(p.b + 1) == 0) { wc_add(p.b, (uint64_t)1); wc_backoff(); }
        }";
    let kernel = device.compile(&Program::new("endless", source)).unwrap().kernel("endless").unwrap();
    let blocks = kernel.blocks_per_multiprocessor(1024, 0).unwrap() * device.info().multiprocessors;
    let mut stream = device.stream().unwrap();
    let buffer = device.buffer(16, "test").unwrap();
    for _ in 0..20 {
        stream.fill(&buffer, 0, 0, 16).unwrap();
        stream.synchronize().unwrap();
        let switch = Arc::new(CancelSwitch::default());
        let watch = switch.watch(&buffer, 8).unwrap();
        // More blocks than are resident at once: waiting blocks end too.
        let shape = LaunchShape { grid: blocks * 2, block: 1024, shared_bytes: 0 };
        stream.launch(&kernel, shape, &Params::new().buffer(&buffer)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let clock = Instant::now();
        switch.throw();
        stream.synchronize().unwrap();
        println!("ended {:?} after the switch was thrown", clock.elapsed());
        drop(watch);
    }
}
