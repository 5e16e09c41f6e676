//! Shared by the tests of the emulated device: devices of every order, and one call from arrays to arrays. Those of
//! primitives run on the first GPU if `WARPCUBE_TEST_DEVICE` is `cuda`, each once instead of in several orders.

// Each test program uses a part of it.
#![allow(dead_code)]

use bytemuck::Pod;
use warpcube_gpu::{
    Device, DeviceBuffer, EmulatorOptions, GpuError, Kernel, LaneOrder, LaunchShape, Params, Program, Stream,
};

/// Device memory that the tests may use, in bytes.
pub const BUDGET: u64 = 256 << 20;

/// Orders of threads; a correct kernel gives the same answer in all.
pub const ORDERS: [LaneOrder; 5] = [
    LaneOrder::Forward,
    LaneOrder::Reversed,
    LaneOrder::Seeded(1),
    LaneOrder::Seeded(2),
    LaneOrder::Seeded(0x1234_5678_9abc_def0),
];

/// True if tests of primitives run on the first GPU.
pub fn is_on_cuda() -> bool {
    std::env::var("WARPCUBE_TEST_DEVICE").is_ok_and(|device| device == "cuda")
}

/// The orders that a test of primitives runs in: of those given all on the emulated device, one on a GPU.
pub fn orders(all: &[LaneOrder]) -> impl Iterator<Item = LaneOrder> {
    let count = if is_on_cuda() { 1 } else { all.len() };
    all[..count].iter().copied()
}

pub fn device(order: LaneOrder) -> Device {
    Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, BUDGET).unwrap()
}

pub fn kernel(device: &Device, name: &str, source: &str) -> Kernel {
    device.compile(&Program::new(name, source)).unwrap().kernel(name).unwrap()
}

pub fn shape(grid: u32, block: u32, shared_bytes: u32) -> LaunchShape {
    LaunchShape { grid, block, shared_bytes }
}

/// A device with a stream.
pub struct Rig {
    pub device: Device,
    pub stream: Stream,
}

impl Rig {
    pub fn new(order: LaneOrder) -> Rig {
        let device = if is_on_cuda() { Device::cuda(0, Some(BUDGET)).unwrap() } else { device(order) };
        let stream = device.stream().unwrap();
        Rig { device, stream }
    }

    pub fn upload<T: Pod>(&mut self, values: &[T]) -> DeviceBuffer {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = self.device.buffer(bytes.len(), "test").unwrap();
        self.stream.upload(&buffer, 0, bytes).unwrap();
        buffer
    }

    pub fn download<T: Pod>(&mut self, buffer: &DeviceBuffer) -> Vec<T> {
        let mut values = vec![T::zeroed(); buffer.bytes() / size_of::<T>()];
        self.stream.download(buffer, 0, bytemuck::cast_slice_mut(&mut values)).unwrap();
        values
    }

    /// Launches the kernel `name` of `source` over two buffers, the input and a zeroed output; returns the output.
    pub fn run<I: Pod, O: Pod>(
        &mut self,
        name: &str,
        source: &str,
        shape: LaunchShape,
        input: &[I],
        output: usize,
    ) -> Result<Vec<O>, GpuError> {
        let kernel = kernel(&self.device, name, source);
        let input = self.upload(input);
        let output = self.upload(&vec![O::zeroed(); output]);
        let params = Params::new().buffer(&input).buffer(&output);
        self.stream.launch(&kernel, shape, &params)?;
        Ok(self.download(&output))
    }

    /// Runs a trivial kernel, which fails on an unusable device.
    pub fn assert_works(&mut self) {
        let source = "struct P { const uint64_t* in; uint64_t* out; };
            WC_KERNEL(works, P, 64, 1) { __syncthreads(); p.out[threadIdx.x] = p.in[threadIdx.x] + 1; }";
        let input: Vec<u64> = (0..64).collect();
        let output: Vec<u64> = self.run("works", source, shape(1, 64, 0), &input, 64).unwrap();
        assert!(output.iter().zip(&input).all(|(after, before)| *after == before + 1));
    }
}

/// Runs a kernel in all orders and checks that each gives `expected`.
pub fn check<I: Pod, O: Pod + PartialEq + std::fmt::Debug>(
    name: &str,
    source: &str,
    shape: LaunchShape,
    input: &[I],
    expected: &[O],
) {
    for order in ORDERS {
        let output: Vec<O> = Rig::new(order).run(name, source, shape, input, expected.len()).unwrap();
        assert!(output == expected, "{name} in order {order:?}: {output:?} instead of {expected:?}");
    }
}
