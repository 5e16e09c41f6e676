//! The narrow waist below [`crate::Device`]: what a device must be able to do, once with CUDA and once emulated.
//!
//! Everything here speaks in raw addresses and is `unsafe` to call; the safe types above it ([`crate::DeviceBuffer`],
//! [`crate::Stream`], [`crate::Kernel`]) uphold the obligations. Invariants: addresses are 64-bit and non-zero; work
//! submitted to one stream runs in order; nothing but `synchronize` and `free` waits for the device.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::emulated::EmulatorFaults;
use crate::error::Result;
use crate::program::Program;

/// What a device is and how much it can do at once.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    /// Marketing name, for example `NVIDIA H200`.
    pub name: String,
    /// Position among the devices of this host.
    pub ordinal: usize,
    /// Whether this is the emulated device of the tests.
    pub emulated: bool,
    /// Compute capability, major and minor: (9, 0) for Hopper.
    pub compute_capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Largest dynamic shared memory of a block after opting in, in bytes.
    pub shared_memory_per_block: usize,
    /// Shared memory of one multiprocessor, in bytes.
    pub shared_memory_per_multiprocessor: usize,
    /// The most bytes of parameters that a kernel takes.
    pub params_bytes_max: usize,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: usize,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Peak memory bandwidth by clock and bus width, bytes a second; zero where unknown.
    pub peak_bandwidth: f64,
    /// Driver version as shown to users, for example `13.0`.
    pub driver: String,
}

/// Shape of one kernel launch; grids and blocks here are one-dimensional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks in the grid.
    pub grid: u32,
    /// Threads in a block.
    pub block: u32,
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

/// What the compiler says about a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelAttributes {
    /// Registers a thread.
    pub registers: u32,
    /// Local memory (spills, stack) a thread, in bytes.
    pub local_bytes: u32,
    /// Static shared memory a block, in bytes.
    pub static_shared_bytes: u32,
    /// Largest block the kernel can be launched with.
    pub threads_per_block_max: u32,
}

/// One device.
pub(crate) trait Backend: Send + Sync {
    /// Facts about the device.
    fn info(&self) -> &DeviceInfo;

    /// Free and total device memory in bytes, as the driver sees them.
    fn memory(&self) -> Result<(u64, u64)>;

    /// Allocates device memory, aligned to 256 bytes at least. `bytes` is not zero.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees what [`Backend::allocate`] gave.
    ///
    /// # Safety
    /// `address` came from `allocate` of this backend with the same `bytes`, is freed once, and no submitted work
    /// uses it any more.
    unsafe fn free(&self, address: u64, bytes: usize);

    /// Says that a buffer of `bytes` now begins at an allocation's start. The emulated device marks the buffer's end,
    /// which lies before that of its size class, and may refuse to test what follows.
    fn lend(&self, _address: u64, _bytes: usize, _purpose: &str) -> Result<()> {
        Ok(())
    }

    /// Says which ranges of the buffer at this address no structure uses, in bytes from there. The emulated device
    /// watches them.
    fn set_redzones(&self, _address: u64, _redzones: &[Range<usize>]) {}

    /// Says that the buffer at an allocation's start is gone.
    fn take_back(&self, _address: u64) {}

    /// Allocates host memory the device can copy from and to without staging, aligned to 64 bytes at least.
    fn allocate_host(&self, bytes: usize) -> Result<u64>;

    /// Frees what [`Backend::allocate_host`] gave.
    ///
    /// # Safety
    /// As for [`Backend::free`].
    unsafe fn free_host(&self, address: u64, bytes: usize);

    /// Writes a 64-bit word while kernels may be running, without waiting for them; returns when it is written.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes and 8 bytes there lie in a live allocation; kernels that read it meanwhile do so
    /// as memory that others write.
    unsafe fn host_write(&self, address: u64, value: u64) -> Result<()>;

    /// What makes an emulated device fail or wait on demand.
    fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        None
    }

    /// A new stream.
    fn stream(&self) -> Result<Box<dyn BackendStream>>;

    /// Whether the machine code of a program is on disk, as far as that is known.
    fn is_kept(&self, _program: &Program) -> bool {
        false
    }
}

/// A queue of device work, run in order.
pub(crate) trait BackendStream: Send {
    /// Copies host memory to the device.
    ///
    /// # Safety
    /// `[source, source + bytes)` is readable until the stream is synchronised, `[target, target + bytes)` lies in one
    /// live device allocation that no other stream touches meanwhile.
    unsafe fn upload(&mut self, target: u64, source: *const u8, bytes: usize) -> Result<()>;

    /// Copies device memory to the host.
    ///
    /// # Safety
    /// As for `upload`, with the roles exchanged.
    unsafe fn download(&mut self, target: *mut u8, source: u64, bytes: usize) -> Result<()>;

    /// Copies between two live device allocations of the same device.
    ///
    /// # Safety
    /// Both ranges lie in live allocations and do not overlap.
    unsafe fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<()>;

    /// Sets every byte of a range.
    ///
    /// # Safety
    /// The range lies in a live allocation.
    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()>;

    /// Launches a kernel with one parameter struct passed by value. One that is launched `early` may start while the
    /// one before it still runs, where the device can, and waits by itself for what comes before it.
    ///
    /// # Safety
    /// `params` has the layout of the kernel's parameter struct; every address in it is valid for what the kernel does
    /// with it until the stream is synchronised.
    unsafe fn launch(
        &mut self,
        module: &dyn BackendModule,
        kernel: &str,
        shape: LaunchShape,
        params: &[u8],
        early: bool,
    ) -> Result<()>;

    /// Prepares work that is replayed as a whole, with host memory at an address.
    ///
    /// # Safety
    /// Modules of the steps are of this device; they and the host memory live as long as the recording.
    unsafe fn record(&mut self, steps: &[WorkStep], host: u64) -> Result<Box<dyn BackendRecording>>;

    /// Submits recorded work; `steps` and `host` are those it was recorded from.
    ///
    /// # Safety
    /// For every step, what the method of the same name asks for. The recording is not in flight already, and the
    /// host memory of its steps is neither read nor written until the stream is synchronised.
    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], host: u64) -> Result<()>;

    /// Whether all submitted work is done, without waiting.
    fn is_done(&mut self) -> Result<bool>;

    /// Waits until all submitted work is done and reports its errors.
    fn synchronize(&mut self) -> Result<()>;
}

/// One step of recorded work, by address.
pub(crate) enum WorkStep {
    /// As [`BackendStream::upload`]; `host` is a range of the recording's host memory.
    Upload { target: u64, host: Range<usize> },
    /// As [`BackendStream::download`].
    Download { source: u64, host: Range<usize> },
    /// As [`BackendStream::fill`].
    Fill { target: u64, value: u8, bytes: usize },
    /// As [`BackendStream::launch`].
    Launch { module: Arc<dyn BackendModule>, kernel: String, shape: LaunchShape, params: Vec<u8>, early: bool },
    /// A point in time, numbered from zero within the recording.
    Mark,
}

/// Work that a stream submits by one call.
pub(crate) trait BackendRecording: Send {
    /// Milliseconds between two marks of the last replay, which was waited for.
    fn elapsed_ms(&self, from: usize, to: usize) -> Result<f64>;

    /// For the backend to find its own type again.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A compiled program, loaded at the latest when a kernel of it is asked for.
pub(crate) trait BackendModule: Send + Sync {
    /// What the compiler says about a kernel; an error if there is no such kernel.
    fn attributes(&self, kernel: &str) -> Result<KernelAttributes>;

    /// How many blocks of this shape are resident on one multiprocessor.
    fn blocks_per_multiprocessor(&self, kernel: &str, block: u32, shared_bytes: u32) -> Result<u32>;

    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
