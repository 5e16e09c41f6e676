//! The emulated device as a [`Backend`].

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compiler::Toolchain;
use super::faults::Operation;
use super::memory::Memory;
use super::module::EmulatedModule;
use super::shared::{Shared, lost};
use super::stream::EmulatedStream;
use super::{EmulatorFaults, EmulatorOptions, MULTIPROCESSORS, SHARED_BYTES_PER_MULTIPROCESSOR};
use crate::backend::{Backend, BackendModule, BackendStream, DeviceInfo, Image};
use crate::compile::Queue;
use crate::error::{GpuError, Result};
use crate::program::Program;

/// The reason for which a deferred program fails.
const DEFERRED: &str = "programs are deferred";

/// Host buffers are aligned to 64 bytes.
fn host_layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 64).expect("a host buffer is far below isize::MAX")
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
            emulated: true,
            runs_kernels: true,
            compute_capability: (9, 0),
            multiprocessors: MULTIPROCESSORS,
            shared_memory_per_block: options.shared_memory_per_block,
            shared_memory_per_multiprocessor: SHARED_BYTES_PER_MULTIPROCESSOR,
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

    /// The queue that compiles programs for the device: each has its own, whose faults concern no other device.
    pub(super) fn compiler(&self) -> Queue {
        let shared = self.shared.clone();
        Queue::new(true, move |program, _| {
            if shared.options.faults.is_compiler_missing() {
                return Err(GpuError::CompilerUnavailable {
                    reason: "an injected fault".into(),
                    repair: "restore it by `set_compiler_missing`".into(),
                });
            }
            if shared.options.faults.defers(program, || shared.toolchain.has_object(program)) {
                return Err(GpuError::CompilerUnavailable {
                    reason: DEFERRED.into(),
                    repair: "call `compile_deferred`".into(),
                });
            }
            let (path, ran) = shared.toolchain.object(program)?;
            Ok((Image::Object(path), ran))
        })
    }
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

    fn begin_buffer(&self, address: u64, bytes: usize, purpose: &str) -> Result<()> {
        if self.faults().lost_allocation.is_due() {
            return Err(lost(format!("allocating {purpose}")));
        }
        if self.faults().failed_allocation.is_due() {
            return Err(GpuError::OutOfMemory {
                operation: format!("{purpose} (an injected fault)"),
                wanted: bytes as u64,
                free: self.shared.memory.free_bytes(),
                budget: self.info.memory_bytes,
            });
        }
        self.shared.memory.begin_buffer(address, bytes, purpose);
        Ok(())
    }

    fn set_redzones(&self, address: u64, redzones: &[Range<usize>]) {
        self.shared.memory.set_redzones(address, redzones);
    }

    fn end_buffer(&self, address: u64) {
        self.shared.memory.end_buffer(address);
    }

    fn allocate_host(&self, bytes: usize) -> Result<u64> {
        // SAFETY: `HostBuffer` allocates at least one byte, so the layout's size is not zero.
        let address = unsafe { std::alloc::alloc(host_layout(bytes)) };
        if address.is_null() {
            handle_alloc_error(host_layout(bytes));
        }
        Ok(address as u64)
    }

    unsafe fn free_host(&self, address: u64, bytes: usize) {
        // Held past the time limit, the memory is freed all the same.
        _ = self.faults().hold(Operation::HostFree, "a free of host memory", self.shared.options.time_limit);
        // SAFETY: address and size are those of an allocation of `allocate_host`, which used this layout.
        unsafe { std::alloc::dealloc(address as *mut u8, host_layout(bytes)) };
    }

    unsafe fn host_write(&self, address: u64, value: u64) -> Result<()> {
        // SAFETY: `Memory::write` finds the word within one live buffer, and copies and fills run under its lock as
        // this store does; the caller promises that the word is aligned and that kernels read it by atomic loads.
        let store = || unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Release);
        self.shared.memory.write("a host write", address, size_of::<u64>(), store)?;
        self.faults().host_wrote();
        Ok(())
    }

    fn check_device_launches(&self) -> Result<()> {
        let reason = "kernels of the emulated device launch no kernels".to_string();
        Err(GpuError::Unavailable { reason, repair: "use a CUDA device, or let the host launch them".to_string() })
    }

    fn load(&self, program: &Program, image: &Image) -> Result<Arc<dyn BackendModule>> {
        let Image::Object(path) = image else {
            return Err(GpuError::Contract(format!("program '{}' is not of the emulated device", program.name())));
        };
        Ok(Arc::new(EmulatedModule::load(path, program.name(), self.shared.toolchain.clone())?))
    }

    fn compile_together(&self, programs: &[Program]) {
        if !self.faults().is_compiler_missing() && !self.faults().is_deferring() {
            self.shared.toolchain.compile_together(programs);
        }
    }

    fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        Some(self.shared.options.faults.clone())
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(EmulatedStream { shared: self.shared.clone() }))
    }
}
