//! The interface that CUDA and the emulated device implement below [`crate::Device`].
//!
//! Calls take raw addresses and are `unsafe`; the safe types above ([`crate::DeviceBuffer`], [`crate::Stream`],
//! [`crate::Kernel`]) uphold their obligations. Invariants: addresses are 64-bit and non-zero; work submitted to one
//! stream runs in order; only `synchronize` and the two `free` calls wait for the device.

use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::emulated::EmulatorFaults;
use crate::error::{GpuError, Result};
use crate::program::Program;

/// Facts about a device.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    /// Marketing name, for example `NVIDIA H200`.
    pub name: String,
    /// True for the emulated device of the tests.
    pub emulated: bool,
    /// Whether it runs kernels; the host does not.
    pub runs_kernels: bool,
    /// Compute capability, major and minor: (9, 0) for Hopper.
    pub compute_capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Largest dynamic shared memory of a block after opting in, in bytes.
    pub shared_memory_per_block: usize,
    /// Shared memory of one multiprocessor, in bytes.
    pub shared_memory_per_multiprocessor: usize,
    /// Largest parameter struct of a kernel in bytes.
    pub params_bytes_max: usize,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: usize,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Peak memory bandwidth by clock and bus width in bytes a second; zero if unknown.
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

/// The compiler's figures of a kernel.
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

/// Machine code of a program, which devices load.
#[derive(Debug)]
pub(crate) enum Image {
    /// A whole cubin made by NVRTC.
    Cubin(Vec<u8>),
    /// A shared object of the emulated device.
    Object(PathBuf),
}

/// One device.
pub(crate) trait Backend: Send + Sync {
    /// Facts about the device.
    fn info(&self) -> &DeviceInfo;

    /// Free and total device memory in bytes, as the driver sees them.
    fn memory(&self) -> Result<(u64, u64)>;

    /// Allocates device memory, aligned to 256 bytes at least. `bytes` is not zero.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees memory of [`Backend::allocate`].
    ///
    /// # Safety
    /// `address` came from `allocate` of this backend with the same `bytes`, is freed once, and no submitted work
    /// uses it.
    unsafe fn free(&self, address: u64, bytes: usize);

    /// A buffer of `bytes` begins at an allocation's start. The emulated device guards the buffer's end, which lies
    /// before that of its size class, and may inject a fault.
    fn begin_buffer(&self, _address: u64, _bytes: usize, _purpose: &str) -> Result<()> {
        Ok(())
    }

    /// Declares the unused ranges of a buffer, in bytes from its address. The emulated device guards them.
    fn set_redzones(&self, _address: u64, _redzones: &[Range<usize>]) {}

    /// The buffer at an allocation's start ends.
    fn end_buffer(&self, _address: u64) {}

    /// Refuses writes to the allocation of a range from now on, until its buffer ends; a write in progress has ended
    /// when the call returns.
    ///
    /// # Errors
    /// Where buffers are not in host memory.
    fn freeze(&self, _address: u64, _bytes: usize) -> Result<()> {
        Err(GpuError::Contract("a buffer on a device cannot be read where it lies".into()))
    }

    /// Allocates host memory that the device copies from and to without staging, aligned to 64 bytes at least.
    fn allocate_host(&self, bytes: usize) -> Result<u64>;

    /// Frees memory of [`Backend::allocate_host`].
    ///
    /// # Safety
    /// As for [`Backend::free`].
    unsafe fn free_host(&self, address: u64, bytes: usize);

    /// Writes a 64-bit word without waiting for running kernels; returns when it is written.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes and 8 bytes there lie in a live allocation; kernels that read it meanwhile use
    /// relaxed or stronger atomics.
    unsafe fn host_write(&self, address: u64, value: u64) -> Result<()>;

    /// Refuses kernels that launch kernels where there are none.
    fn check_device_launches(&self) -> Result<()>;

    /// Loads the machine code of a program.
    fn load(&self, program: &Program, image: &Image) -> Result<Arc<dyn BackendModule>>;

    /// Compiles programs that are requested next, where a backend has an advantage in compiling them together.
    fn compile_together(&self, _programs: &[Program]) {}

    /// Injected faults of an emulated device.
    fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        None
    }

    /// A new stream.
    fn stream(&self) -> Result<Box<dyn BackendStream>>;

    /// True if the machine code of a program is cached on disk.
    fn is_on_disk(&self, _program: &Program) -> bool {
        false
    }
}

/// A queue of device work, run in order.
pub(crate) trait BackendStream: Send {
    /// Copies host memory to the device. Pageable memory has been read when the call returns.
    ///
    /// # Safety
    /// `[source, source + bytes)` is readable, and is not written, until a wait has ended the copy; page-locked memory
    /// stays allocated for ever where the wait fails. `[target, target + bytes)` lies in one device allocation that
    /// lives as long and that no other stream touches meanwhile.
    unsafe fn upload(&mut self, target: u64, source: *const u8, bytes: usize) -> Result<()>;

    /// Copies device memory to the host. Pageable memory has been written when the call returns.
    ///
    /// # Safety
    /// As for `upload`, with the roles exchanged; the host reads nothing of the target until the wait.
    unsafe fn download(&mut self, target: *mut u8, source: u64, bytes: usize) -> Result<()>;

    /// Copies between two live device allocations of the same device.
    ///
    /// # Safety
    /// Both ranges lie in allocations of this device that live until a wait has ended the copy, for ever where the wait
    /// fails, and do not overlap.
    unsafe fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<()>;

    /// Sets every byte of a range.
    ///
    /// # Safety
    /// The range lies in an allocation of this device that lives as for `copy`.
    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()>;

    /// Launches a kernel with one parameter struct passed by value. A kernel launched `early` may start while the one
    /// before it runs, if the device can, and waits for its predecessors itself.
    ///
    /// # Safety
    /// The module is of this device and lives as for `copy`. `params` has the layout of the kernel's parameter struct;
    /// every address in it, and in tables that the kernel reads, is valid for the kernel's accesses as long.
    unsafe fn launch(
        &mut self,
        module: &dyn BackendModule,
        kernel: &str,
        shape: LaunchShape,
        params: &[u8],
        early: bool,
    ) -> Result<()>;

    /// Prepares work that is replayed as a whole, with host memory at address `host`.
    ///
    /// # Safety
    /// Modules of the steps are of this device; they and the host memory live as long as the recording.
    unsafe fn record(&mut self, steps: &[WorkStep], host: u64) -> Result<Box<dyn BackendRecording>>;

    /// Submits recorded work; `steps` and `host` are those of the recording.
    ///
    /// # Safety
    /// Every step meets the obligations of the method of its name. The recording is not in flight, and the host memory
    /// of its steps is neither read nor written until a wait has ended the work.
    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], host: u64) -> Result<()>;

    /// An event behind all submitted work.
    fn record_event(&mut self) -> Result<Arc<dyn BackendEvent>>;

    /// Work submitted afterwards starts when the event is done; an event of any stream of the device.
    fn wait_event(&mut self, event: &dyn BackendEvent) -> Result<()>;

    /// Waits until all submitted work is done and reports its errors. After an error other than
    /// [`crate::GpuError::Emulator`] work may be in flight for ever.
    fn synchronize(&mut self) -> Result<()>;
}

/// A point in the work of a stream; the backend downcasts it.
pub(crate) trait BackendEvent: Any + Send + Sync {
    /// Whether the work in front of it is done, without waiting.
    fn is_done(&self) -> Result<bool>;

    /// Waits until it is.
    fn synchronize(&self) -> Result<()>;
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

/// A recording whose steps are submitted one by one: the times of its last replay; the caller keeps the steps.
#[derive(Default)]
pub(crate) struct Submitted {
    marks: Vec<Instant>,
}

impl Submitted {
    /// Replays a recording, which is one of these.
    ///
    /// # Safety
    /// Every step meets the obligations of the stream's method of its name.
    pub(crate) unsafe fn replay<S: BackendStream>(
        recording: &mut dyn BackendRecording,
        stream: &mut S,
        steps: &[WorkStep],
        base: u64,
    ) -> Result<()> {
        let recording = (recording as &mut dyn Any)
            .downcast_mut::<Submitted>()
            .ok_or_else(|| GpuError::Contract("the recording belongs to another device".into()))?;
        recording.marks.clear();
        // SAFETY: by the caller's promise.
        unsafe {
            submit_steps(stream, steps, base, |_| {
                recording.marks.push(Instant::now());
                Ok(())
            })
        }
    }
}

impl BackendRecording for Submitted {
    fn elapsed_ms(&self, from: usize, to: usize) -> Result<f64> {
        match (self.marks.get(from), self.marks.get(to)) {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(*from).as_secs_f64() * 1e3),
            _ => Err(GpuError::Contract("the recording has no such mark".into())),
        }
    }
}

/// Submits recorded steps one by one over host memory at address `base`; `mark` is called for each point in time.
///
/// # Safety
/// Every step meets the obligations of the stream's method of its name.
pub(crate) unsafe fn submit_steps<S: BackendStream>(
    stream: &mut S,
    steps: &[WorkStep],
    base: u64,
    mut mark: impl FnMut(&mut S) -> Result<()>,
) -> Result<()> {
    for step in steps {
        // SAFETY: by the caller's promise.
        unsafe {
            match step {
                WorkStep::Upload { target, host } => {
                    stream.upload(*target, (base + host.start as u64) as *const u8, host.len())?;
                }
                WorkStep::Download { source, host } => {
                    stream.download((base + host.start as u64) as *mut u8, *source, host.len())?;
                }
                WorkStep::Fill { target, value, bytes } => stream.fill(*target, *value, *bytes)?,
                WorkStep::Launch { module, kernel, shape, params, early } => {
                    stream.launch(module.as_ref(), kernel, *shape, params, *early)?;
                }
                WorkStep::Mark => mark(stream)?,
            }
        }
    }
    Ok(())
}

/// Work that a stream submits by one call; the backend downcasts it.
pub(crate) trait BackendRecording: Any + Send {
    /// Milliseconds between two marks of the last replay, which the stream has synchronised.
    fn elapsed_ms(&self, from: usize, to: usize) -> Result<f64>;
}

/// A loaded program; the backend downcasts it.
pub(crate) trait BackendModule: Any + Send + Sync {
    /// The compiler's figures of a kernel; an error if the program has no such kernel.
    fn attributes(&self, kernel: &str) -> Result<KernelAttributes>;

    /// Resident blocks of this shape on one multiprocessor.
    fn blocks_per_multiprocessor(&self, kernel: &str, block: u32, shared_bytes: u32) -> Result<u32>;
}
