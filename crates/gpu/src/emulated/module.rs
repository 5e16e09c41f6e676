//! A loaded program: its kernels with the size of their parameters and their largest block.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use libloading::Library;
use parking_lot::Mutex;

use super::compiler::{Toolchain, symbol_part};
use super::runtime::Entry;
use super::{SHARED_BYTES_PER_BLOCK, SHARED_BYTES_PER_MULTIPROCESSOR};
use crate::backend::{BackendModule, KernelAttributes};
use crate::error::{GpuError, Result};

/// Most threads and most blocks of one multiprocessor.
const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
const BLOCKS_PER_MULTIPROCESSOR_MAX: u32 = 4;
/// Shared memory that a block takes beyond its request, in bytes.
const SHARED_BYTES_RESERVED: usize = 1 << 10;

/// The symbols that `WC_KERNEL` defines for one kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmulatedKernel {
    pub(super) entry: Entry,
    pub(super) params_bytes: usize,
    pub(super) threads_max: u32,
}

pub(super) struct EmulatedModule {
    program: String,
    /// What its symbols have between prefix and kernel.
    symbol_part: String,
    kernels: Mutex<HashMap<String, EmulatedKernel>>,
    library: Library,
    // Kernels call the runtime, so it is unloaded after them: fields are dropped in this order.
    _toolchain: Arc<Toolchain>,
}

impl EmulatedModule {
    /// Loads an object.
    pub(super) fn load(path: &Path, program: &str, toolchain: Arc<Toolchain>) -> Result<EmulatedModule> {
        // SAFETY: the object was built from kernel source of this program, which has no initialisers, into a folder
        // that only this user can write.
        let library = unsafe { Library::new(path) }.map_err(|error| GpuError::Driver {
            operation: format!("loading program '{program}' on the emulated device"),
            code: "DLOPEN".into(),
            message: error.to_string(),
        })?;
        let (program, symbol_part) = (program.to_string(), symbol_part(path));
        Ok(EmulatedModule { program, symbol_part, kernels: Mutex::default(), library, _toolchain: toolchain })
    }

    /// The kernel of that name.
    pub(super) fn kernel(&self, name: &str) -> Result<EmulatedKernel> {
        if let Some(kernel) = self.kernels.lock().get(name) {
            return Ok(*kernel);
        }
        let missing = || GpuError::Contract(format!("program '{}' has no kernel '{name}'", self.program));
        let own = &self.symbol_part;
        let symbol = |prefix: &str| CString::new(format!("{prefix}{own}_{name}")).map_err(|_| missing());
        // SAFETY: only WC_KERNEL defines symbols of these names, with these types.
        let kernel = unsafe {
            EmulatedKernel {
                entry: *self.library.get::<Entry>(symbol("wc_entry_")?).map_err(|_| missing())?,
                params_bytes: **self.library.get::<*const u32>(symbol("wc_params_")?).map_err(|_| missing())? as usize,
                threads_max: **self.library.get::<*const u32>(symbol("wc_threads_")?).map_err(|_| missing())?,
            }
        };
        self.kernels.lock().insert(name.to_string(), kernel);
        Ok(kernel)
    }
}

impl BackendModule for EmulatedModule {
    fn attributes(&self, kernel: &str) -> Result<KernelAttributes> {
        let kernel = self.kernel(kernel)?;
        Ok(KernelAttributes { threads_per_block_max: kernel.threads_max, ..KernelAttributes::default() })
    }

    fn blocks_per_multiprocessor(&self, kernel: &str, block: u32, shared_bytes: u32) -> Result<u32> {
        let shared_bytes = shared_bytes as usize;
        if block == 0 || block > self.kernel(kernel)?.threads_max || shared_bytes > SHARED_BYTES_PER_BLOCK {
            return Ok(0);
        }
        let by_shared = SHARED_BYTES_PER_MULTIPROCESSOR / (shared_bytes + SHARED_BYTES_RESERVED);
        Ok((THREADS_PER_MULTIPROCESSOR / block).min(by_shared as u32).min(BLOCKS_PER_MULTIPROCESSOR_MAX))
    }
}
