//! Devices for Warpcube: the CUDA driver, the memory pool, run-time compilation and its cache, and an emulated device
//! that runs the same kernel source on the CPU for tests. The host is a device too, whose buffers the CPU reads.
//!
//! Only this crate knows CUDA, and contains `unsafe`, but for what `vector` dispatches. Invariants at its boundary:
//! length, ownership and device of every buffer are checked before a launch; buffers outlive the work that uses them;
//! launches never wait; a lost device refuses further work.

// Files that other crates' tests share name this crate as those do.
#[cfg(test)]
extern crate self as warpcube_gpu;

mod backend;
mod buffer;
mod cancel;
mod compile;
pub mod cuda;
mod device;
mod emulated;
mod error;
mod event;
mod host;
mod launch;
mod modules;
mod pool;
pub mod prims;
mod program;
mod recording;
mod stream;
mod threads;
mod trust;

pub use backend::{DeviceInfo, KernelAttributes, LaunchShape};
pub use buffer::{DeviceBuffer, DevicePtr, HostBuffer, PART_BYTES_MIN};
pub use cancel::{CancelSwitch, Watch};
pub use compile::{IdleHold, Priority};
pub use device::{Compilation, Device, Kernel, Module};
pub use emulated::{EmulatorFaults, EmulatorOptions, LaneOrder};
pub use error::{GpuError, Result};
pub use event::Event;
pub use launch::{Mark, Params, Traffic};
pub use pool::{MemoryPool, PoolUsage, Reservation, size_class};
pub use program::{Effort, PRELUDE, Program};
pub use recording::{Output, Recording, Work};
pub use stream::Stream;
pub use threads::Threads;
