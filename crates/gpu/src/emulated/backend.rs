//! The emulated device as a [`Backend`].

use std::alloc::Layout;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compiler::Toolchain;
use super::memory::Memory;
use super::module::EmulatedModule;
use super::stream::EmulatedStream;
use super::{EmulatorFaults, EmulatorOptions};
use crate::backend::{Backend, BackendStream, DeviceInfo};
use crate::compile::Queue;
use crate::error::{GpuError, Result};

/// Alignment of host buffers in bytes.
const HOST_ALIGNMENT: usize = 64;

/// What streams share with their device.
pub(super) struct Shared {
    pub(super) options: EmulatorOptions,
    pub(super) toolchain: Arc<Toolchain>,
    pub(super) memory: Memory,
}

pub(super) struct EmulatedBackend {
    info: DeviceInfo,
    shared: Arc<Shared>,
}

impl EmulatedBackend {
    pub(super) fn new(options: EmulatorOptions) -> Result<EmulatedBackend> {
        let toolchain = Toolchain::get(options.cache_folder.as_deref(), options.sanitize)?;
        let info = DeviceInfo {
            name: "emulated device".into(),
            ordinal: 0,
            emulated: true,
            compute_capability: (9, 0),
            multiprocessors: options.multiprocessors,
            shared_memory_per_block: options.shared_memory_per_block,
            shared_memory_per_multiprocessor: options.shared_memory_per_multiprocessor(),
            params_bytes_max: options.params_bytes_max,
            l2_bytes: 1 << 20,
            memory_bytes: options.memory_bytes,
            peak_bandwidth: 0.0,
            driver: toolchain.compiler_version().to_string(),
        };
        let memory = Memory::new(options.memory_bytes, options.sanitize);
        Ok(EmulatedBackend { info, shared: Arc::new(Shared { options, toolchain, memory }) })
    }

    fn faults(&self) -> &EmulatorFaults {
        &self.shared.options.faults
    }

    /// What compiles programs for the device, and loads them.
    pub(super) fn compiler(&self) -> Queue {
        let shared = self.shared.clone();
        Queue::new(true, move |program, _| {
            if shared.options.faults.has_no_compiler() {
                return Err(GpuError::CompilerUnavailable {
                    reason: "a test has taken it away".into(),
                    repair: "give it back".into(),
                });
            }
            let (path, ran) = shared.toolchain.object(program)?;
            let limits = (shared.options.shared_memory_per_block, shared.options.shared_memory_per_multiprocessor());
            let module = EmulatedModule::load(&path, program.name(), shared.toolchain.clone(), limits)?;
            Ok((Arc::new(module), ran))
        })
    }
}

/// The error of a device that was lost at a test's wish.
pub(super) fn lost(operation: String) -> GpuError {
    let message = "a failure asked for by a test".to_string();
    GpuError::DeviceLost { operation, code: "EMULATED_FAULT".into(), message }
}

impl Backend for EmulatedBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<(u64, u64)> {
        Ok((self.shared.memory.free_bytes(), self.info.memory_bytes))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.shared.memory.allocate(bytes)
    }

    unsafe fn free(&self, address: u64, _bytes: usize) {
        self.shared.memory.free(address);
    }

    fn lend(&self, address: u64, bytes: usize, purpose: &str) -> Result<()> {
        if self.faults().allocation_finds_loss() {
            return Err(lost(format!("allocating {purpose}")));
        }
        if self.faults().allocation_fails() {
            return Err(GpuError::OutOfMemory {
                operation: format!("{purpose} (a failure asked for by a test)"),
                wanted: bytes as u64,
                free: self.shared.memory.free_bytes(),
                budget: self.info.memory_bytes,
            });
        }
        self.shared.memory.lend(address, bytes, purpose);
        Ok(())
    }

    fn set_redzones(&self, address: u64, redzones: &[Range<usize>]) {
        self.shared.memory.set_redzones(address, redzones);
    }

    fn take_back(&self, address: u64) {
        self.shared.memory.take_back(address);
    }

    fn allocate_host(&self, bytes: usize) -> Result<u64> {
        let layout = Layout::from_size_align(bytes, HOST_ALIGNMENT)
            .map_err(|_| GpuError::Contract(format!("a host buffer of {bytes} bytes")))?;
        // SAFETY: `bytes` is not zero (`HostBuffer` sees to it), so the layout's size is not.
        let address = unsafe { std::alloc::alloc(layout) };
        if address.is_null() {
            return Err(GpuError::OutOfMemory {
                operation: "a host buffer".into(),
                wanted: bytes as u64,
                free: 0,
                budget: 0,
            });
        }
        Ok(address as u64)
    }

    unsafe fn free_host(&self, address: u64, bytes: usize) {
        if let Ok(layout) = Layout::from_size_align(bytes, HOST_ALIGNMENT) {
            // SAFETY: the caller passes address and size of an allocation of `allocate_host`, which used this layout.
            unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        }
    }

    unsafe fn host_write(&self, address: u64, value: u64) -> Result<()> {
        // SAFETY: the word is found within one buffer of this device and is aligned by the caller's promise; kernels
        // read it with atomic loads.
        let store = || unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Release);
        self.shared.memory.write("a write beside running kernels", address, size_of::<u64>(), store)?;
        self.faults().host_wrote();
        Ok(())
    }

    fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        Some(self.shared.options.faults.clone())
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(EmulatedStream::new(self.shared.clone())))
    }
}
