//! Devices for Warpcube: the CUDA driver, the memory pool, run-time compilation and its cache, and an emulated device
//! that runs the same kernel source on the CPU for tests.
//!
//! This is the only crate that knows CUDA and the only one with `unsafe`. What must hold at its boundary: lengths,
//! ownership and device of every buffer are checked before a launch; buffers outlive the work that uses them;
//! launches never wait; a lost device is remembered and refuses further work.

mod backend;
mod buffer;
mod cancel;
mod compile;
pub mod cuda;
mod device;
mod emulated;
mod error;
mod pool;
pub mod prims;
mod program;
mod recording;
mod stream;
mod threads;
mod trust;

pub use backend::{DeviceInfo, KernelAttributes, LaunchShape};
pub use buffer::{DeviceBuffer, HostBuffer, PART_BYTES_MIN};
pub use cancel::{CancelSwitch, Watch};
pub use compile::{Compilation, IdleHold, Priority};
pub use device::{Device, Kernel, Module};
pub use emulated::{EmulatorFaults, EmulatorOptions, LaneOrder};
pub use error::{GpuError, Result};
pub use pool::{MemoryPool, PoolUsage, Reservation, size_class};
pub use program::{Effort, PRELUDE, Program};
pub use recording::{Output, Recording, Work};
pub use stream::{Mark, Params, Stream, Traffic};
pub use threads::Threads;
