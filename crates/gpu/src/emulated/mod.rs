//! The emulated device: the same kernel source as on a GPU, run on the CPU, for tests.
//!
//! A program is compiled by the host's C++ compiler against `kernels/emulator.h`; the threads of a block are fibers of
//! the launching thread (`kernels/emulator.cc`), and a launch is over when `launch` returns. What a GPU leaves
//! undefined is an error here: lanes that miss each other in a collective, barriers not all threads reach, deadlocks,
//! writes outside of buffers or of shared memory, unaligned or null pointers, signed arithmetic that overflows, kernels
//! launched early that touch memory before they wait. Fresh memory holds poison, not zeros.
//! After such an error ([`GpuError::Emulator`](crate::GpuError::Emulator)) the device goes on working.
//!
//! Threads run in one of three orders ([`LaneOrder`]), all from one compiled object; a kernel whose answer depends on
//! the order is wrong. It is stricter than a GPU in four points: a call of `__syncthreads` needs all threads of the
//! block, exited ones too; a mask may not name exited or missing lanes; lanes of one mask meet at one place in the
//! source; a kernel launched early takes addresses from its parameters after it has waited. It sees no missing fences:
//! those live in the prelude's acquire and release helpers.
//!
//! Environment: `CXX` names the compiler (`g++` otherwise), `WARPCUBE_EMULATOR_CACHE` the folder of compiled objects.
//! `WARPCUBE_EMULATOR_SANITIZE=1` compiles kernels with the address sanitizer, which then must have been loaded before
//! the process began: `LD_PRELOAD=$(g++ -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0`. It ends the process
//! at the first finding, so it is for kernels that are thought to be right.

mod backend;
mod compiler;
mod faults;
mod memory;
mod module;
mod runtime;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use faults::EmulatorFaults;

use crate::device::Device;
use crate::error::Result;

/// The order in which lanes, warps and blocks run where the program leaves it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneOrder {
    /// Lowest number first.
    #[default]
    Forward,
    /// Highest number first.
    Reversed,
    /// Drawn from a seed, anew for each sweep over a warp; every eighth atomic lets other lanes run.
    Seeded(u64),
}

/// What an emulated device is like.
#[derive(Debug, Clone)]
pub struct EmulatorOptions {
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Multiprocessors it advertises.
    pub multiprocessors: u32,
    /// Largest shared memory of a block in bytes.
    pub shared_memory_per_block: usize,
    /// The most bytes of parameters that a kernel takes.
    pub params_bytes_max: usize,
    /// Blocks that run side by side; the others follow as these finish.
    pub resident_blocks: u32,
    /// In which order threads run.
    pub order: LaneOrder,
    /// A launch that takes longer is given up with an error.
    pub time_limit: Duration,
    /// Folder of compiled objects; where none is given, `WARPCUBE_EMULATOR_CACHE` or `warpcube/emulated` in the user's
    /// cache folder. It must belong to this user alone.
    pub cache_folder: Option<PathBuf>,
    /// Compile kernels with the address sanitizer; by default if `WARPCUBE_EMULATOR_SANITIZE` is 1.
    pub sanitize: bool,
    /// Failures on demand.
    pub faults: Arc<EmulatorFaults>,
}

impl Default for EmulatorOptions {
    /// 1 GiB of memory, 3 multiprocessors, the shared memory of compute capability 9.0, 4 resident blocks.
    fn default() -> EmulatorOptions {
        EmulatorOptions {
            memory_bytes: 1 << 30,
            multiprocessors: 3,
            shared_memory_per_block: 227 << 10,
            params_bytes_max: 32_764,
            resident_blocks: 4,
            order: LaneOrder::Forward,
            time_limit: Duration::from_secs(60),
            cache_folder: None,
            sanitize: std::env::var_os("WARPCUBE_EMULATOR_SANITIZE").is_some_and(|value| value == "1"),
            faults: Arc::default(),
        }
    }
}

impl EmulatorOptions {
    fn shared_memory_per_multiprocessor(&self) -> usize {
        self.shared_memory_per_block + (1 << 10)
    }
}

impl Device {
    /// An emulated device; `budget` is the most device memory to use, in bytes.
    ///
    /// # Errors
    /// [`GpuError::CompilerUnavailable`](crate::GpuError::CompilerUnavailable) without a C++ compiler,
    /// [`GpuError::Unavailable`](crate::GpuError::Unavailable) if no folder for compiled objects can be had.
    pub fn emulated(options: EmulatorOptions, budget: u64) -> Result<Device> {
        let backend = backend::EmulatedBackend::new(options)?;
        let compiler = backend.compiler();
        Ok(Device::new(Arc::new(backend), compiler, budget))
    }
}
