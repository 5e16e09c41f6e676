//! The emulated device: runs the kernel source of a GPU on the CPU, for tests.
//!
//! The host's C++ compiler compiles a program against `kernels/emulator.h`. The threads of a block are fibers of the
//! launching thread (`kernels/emulator.cc`), and a launch has ended when `launch` returns. Behaviour that a GPU leaves
//! undefined is an error ([`GpuError::Emulator`](crate::GpuError::Emulator)): collectives that some lanes miss,
//! barriers that some threads miss, deadlocks, writes outside of buffers or of shared memory, unaligned or null
//! pointers, signed overflow, kernels launched early that access memory before they wait. Fresh memory holds poison,
//! not zeros. The device works on after such an error.
//!
//! Threads run in one of three orders ([`LaneOrder`]), all from one compiled object; a kernel whose answer depends on
//! the order is wrong. The device is stricter than a GPU in four points: `__syncthreads` needs all threads of the
//! block, exited ones too; a mask may not contain exited or missing lanes; lanes of one mask meet at one place in the
//! source; a kernel launched early reads addresses from its parameters after it has waited. The device finds no missing
//! fences: the prelude's acquire and release helpers contain them.
//!
//! Environment: `CXX` names the compiler (`g++` by default), `WARPCUBE_EMULATOR_CACHE` the folder of compiled objects.
//! `WARPCUBE_EMULATOR_SANITIZE=1` compiles kernels with the address sanitizer, which must be loaded before the process
//! begins: `LD_PRELOAD=$(g++ -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0`. The sanitizer ends the process
//! at the first finding.

mod backend;
mod compiler;
mod faults;
mod memory;
mod module;
mod runtime;
mod shared;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use faults::EmulatorFaults;

use crate::compile::Client;
use crate::device::Device;
use crate::error::Result;

/// Multiprocessors of the device.
const MULTIPROCESSORS: u32 = 3;
/// Blocks that run concurrently; the others follow.
const RESIDENT_BLOCKS: u32 = 4;
/// Largest shared memory of a block, and shared memory of a multiprocessor, of compute capability 9.0 in bytes.
const SHARED_BYTES_PER_BLOCK: usize = 227 << 10;
const SHARED_BYTES_PER_MULTIPROCESSOR: usize = 228 << 10;

/// The order of lanes, warps and blocks where the program leaves it open.
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

/// Properties of an emulated device.
#[derive(Debug, Clone)]
pub struct EmulatorOptions {
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Largest shared memory of a block in bytes.
    pub shared_memory_per_block: usize,
    /// Largest parameter struct of a kernel in bytes.
    pub params_bytes_max: usize,
    /// Order of threads.
    pub order: LaneOrder,
    /// A launch that takes longer is an error.
    pub time_limit: Duration,
    /// Folder of compiled objects, which belongs to this user alone; by default `WARPCUBE_EMULATOR_CACHE`, or
    /// `warpcube/emulated` in the user's cache folder.
    pub cache_folder: Option<PathBuf>,
    /// True to compile kernels with the address sanitizer; by default if `WARPCUBE_EMULATOR_SANITIZE` is 1.
    pub sanitize: bool,
    /// Injected faults.
    pub faults: Arc<EmulatorFaults>,
}

impl Default for EmulatorOptions {
    /// 1 GiB of memory, a time limit of 60 s.
    fn default() -> EmulatorOptions {
        EmulatorOptions {
            memory_bytes: 1 << 30,
            shared_memory_per_block: SHARED_BYTES_PER_BLOCK,
            params_bytes_max: 32_764,
            order: LaneOrder::Forward,
            time_limit: Duration::from_secs(60),
            cache_folder: None,
            sanitize: std::env::var_os("WARPCUBE_EMULATOR_SANITIZE").is_some_and(|value| value == "1"),
            faults: Arc::default(),
        }
    }
}

impl Device {
    /// An emulated device; `budget` is the limit of device memory in bytes.
    ///
    /// # Errors
    /// [`GpuError::CompilerUnavailable`](crate::GpuError::CompilerUnavailable) without a C++ compiler,
    /// [`GpuError::Unavailable`](crate::GpuError::Unavailable) without a folder for compiled objects.
    pub fn emulated(options: EmulatorOptions, budget: u64) -> Result<Device> {
        let backend = backend::EmulatedBackend::new(options)?;
        let compiler = Client::new(Arc::new(backend.compiler()));
        Ok(Device::new(Arc::new(backend), compiler, budget))
    }

    /// Ends the deferral that [`EmulatorFaults::defer_programs`] began and compiles the programs that were missing in
    /// few runs of the compiler; their number. What does not compile is left to the next request of it.
    pub fn compile_deferred(&self) -> usize {
        let missing = self.emulator_faults().map(|faults| faults.take_deferred()).unwrap_or_default();
        _ = self.compile_all(&missing);
        missing.len()
    }

    /// Runs work in vain while programs are deferred ([`EmulatorFaults::defer_programs`]) and compiles the missing ones
    /// together; on other devices nothing happens.
    pub fn rehearse(&self, name: Option<&'static str>, work: impl FnOnce()) {
        let Some(faults) = self.emulator_faults() else { return };
        faults.defer_programs(name);
        work();
        self.compile_deferred();
    }
}
