//! CUDA devices through the driver API.
//!
//! The first call loads the driver library; without it every call is an error with the reason. NVRTC ([`nvrtc`])
//! compiles modules, and a cache on disk ([`cache`]) holds them.

mod cache;
mod driver;
mod event;
mod host_write;
mod jitlink;
mod library;
pub mod nvrtc;
mod pci;
mod recording;
mod stream;

use std::collections::HashMap;
use std::ffi::CString;
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};
use std::thread::{self, ScopedJoinHandle};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use crate::backend::{Backend, BackendModule, BackendStream, DeviceInfo, Image, KernelAttributes};
use crate::compile::{Client, Priority, Queue};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::program::Program;

pub use crate::trust::private_folder;
pub use cache::cache_folder;
use driver::{Context, as_unavailable, check};
use host_write::HostWriter;

/// Default budget as a share of free memory; the rest serves the driver, other programs and fragmentation.
const BUDGET_SHARE_DEFAULT: f64 = 0.90;

/// Programs to be compiled when a device opens; `is_on_disk` is true for a program in the cache on disk.
pub type ToCompile = fn(is_on_disk: &dyn Fn(&Program) -> bool) -> Vec<Program>;

impl Device {
    /// Opens CUDA device `ordinal`. `budget` is the limit of device memory in bytes; by default nine tenths of the free
    /// memory.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] with reason and repair if there is no driver or no such device.
    pub fn cuda(ordinal: usize, budget: Option<u64>) -> Result<Device> {
        Device::cuda_with(ordinal, budget, |_| Vec::new())
    }

    /// As [`Device::cuda`], and compiles `programs` while the driver starts and creates a context. An error of a
    /// program is reported by later calls for it.
    ///
    /// # Errors
    /// As [`Device::cuda`].
    pub fn cuda_with(ordinal: usize, budget: Option<u64>, programs: ToCompile) -> Result<Device> {
        let (backend, compiler) = CudaBackend::open(ordinal, programs).map_err(as_unavailable)?;
        let budget = match budget {
            Some(bytes) => bytes,
            None => (backend.memory().map_err(as_unavailable)?.0 as f64 * BUDGET_SHARE_DEFAULT) as u64,
        };
        Ok(Device::new(Arc::new(backend), compiler, budget))
    }

    /// True if there seems to be a CUDA device; a cheap check, which opens none, and loads the driver library only
    /// where the driver's control node is missing (it takes 3 ms to load).
    pub fn is_cuda_installed() -> bool {
        driver::has_node() || driver::is_present()
    }

    /// Number of CUDA devices.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] if the driver does not start.
    pub fn cuda_count() -> Result<usize> {
        driver::count()
    }
}

struct CudaBackend {
    context: Arc<Context>,
    info: DeviceInfo,
    host_writer: HostWriter,
}

/// The queue that compiles cubins: one a process, as long as a device is open.
fn cubins() -> Arc<Queue> {
    static CUBINS: Mutex<Weak<Queue>> = Mutex::new(Weak::new());
    let mut known = CUBINS.lock();
    known.upgrade().unwrap_or_else(|| {
        let queue = Arc::new(Queue::new(false, |program, architecture| {
            let (cubin, ran) = cache::cubin(program, architecture)?;
            Ok((Image::Cubin(cubin), ran))
        }));
        *known = Arc::downgrade(&queue);
        queue
    })
}

impl CudaBackend {
    fn open(ordinal: usize, programs: ToCompile) -> Result<(CudaBackend, Client)> {
        let _span = tracing::info_span!("open").entered();
        let compiler = Client::new(cubins());
        let request = |architecture| {
            let programs = programs(&|program| cache::is_on_disk(program, architecture));
            programs.iter().for_each(|program| drop(compiler.request(program, architecture, Priority::Now)));
        };
        let context = thread::scope(|scope| {
            // On threads of their own: the key of the disk cache has the compiler's version, which loads the compiler.
            let start = |architecture| scope.spawn(move || request(architecture));
            let guess = pci::architecture().filter(|_| driver::seems_to_start());
            let mut requests = guess.map(start);
            let started = driver::start(ordinal).map(|(major, minor)| major * 10 + minor);
            if started.as_ref().ok() != guess.as_ref() {
                // Requests for a wrong guess are cancelled before others begin.
                requests.take().into_iter().for_each(joined);
                let architecture = started?;
                compiler.cancel(|_, guessed| guessed != architecture);
                requests = Some(start(architecture));
            }
            let context = Context::open(ordinal);
            requests.into_iter().for_each(joined);
            context.map(Arc::new)
        })?;
        let mut info = driver::describe(&context)?;
        let (major, minor) = info.compute_capability;
        let version = nvrtc::target(major * 10 + minor).ok().map(|(_, version)| version);
        info.params_bytes_max = info.params_bytes_max.min(driver::params_bytes_max(version));
        let host_writer = HostWriter::new(context.clone())?;
        Ok((CudaBackend { context, info, host_writer }, compiler))
    }
}

/// Joins a thread, so that its thread-local state is destroyed; a panic goes on here.
fn joined(thread: ScopedJoinHandle<'_, ()>) {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
}

impl Backend for CudaBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<(u64, u64)> {
        self.context.bind()?;
        let (free, total) = check("asking for free memory", result::mem_get_info())?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.context.bind()?;
        // SAFETY: a context is current on this thread.
        match unsafe { result::malloc_sync(bytes) } {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = self.memory()?;
                let operation = "an allocation".to_string();
                Err(GpuError::OutOfMemory { operation, wanted: bytes as u64, free, budget: total })
            }
            other => check("allocating device memory", other),
        }
    }

    unsafe fn free(&self, address: u64, _bytes: usize) {
        if self.context.bind().is_ok() {
            // SAFETY: the caller promises that the address came from `allocate`, is unused and freed once. A failure
            // means that the context, and so the memory, no longer exists.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn allocate_host(&self, bytes: usize) -> Result<u64> {
        self.context.bind()?;
        // SAFETY: a context is current on this thread.
        let pointer = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        Ok(check("allocating page-locked host memory", pointer)? as u64)
    }

    unsafe fn free_host(&self, address: u64, _bytes: usize) {
        if self.context.bind().is_ok() {
            // SAFETY: as for `free`.
            let _ = unsafe { result::free_host(address as *mut _) };
        }
    }

    unsafe fn host_write(&self, address: u64, value: u64) -> Result<()> {
        // SAFETY: the caller's obligations are the same.
        unsafe { self.host_writer.write(address, value) }
    }

    fn load(&self, program: &Program, image: &Image) -> Result<Arc<dyn BackendModule>> {
        let Image::Cubin(cubin) = image else {
            return Err(GpuError::Contract(format!("program '{}' is not of a CUDA device", program.name())));
        };
        Ok(Arc::new(CudaModule::load(self.context.clone(), &self.info, cubin)?))
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(stream::CudaStream::new(self.context.clone())?))
    }

    fn check_device_launches(&self) -> Result<()> {
        let (major, minor) = self.info.compute_capability;
        nvrtc::check_device_launches(major * 10 + minor)
    }

    fn is_on_disk(&self, program: &Program) -> bool {
        let (major, minor) = self.info.compute_capability;
        cache::is_on_disk(program, major * 10 + minor)
    }
}

/// A loaded program, unloaded when dropped.
pub(super) struct CudaModule {
    context: Arc<Context>,
    handle: sys::CUmodule,
    /// Limit of a block's dynamic shared memory in bytes.
    shared_bytes_max: usize,
    /// True if kernels may start while their predecessor runs: the device has programmatic dependent launch.
    pub(super) can_start_early: bool,
    functions: Mutex<HashMap<String, Function>>,
}

// SAFETY: any thread may use module and function handles while their context is current, which each call ensures by
// `bind`; the driver serialises calls.
unsafe impl Send for CudaModule {}
// SAFETY: as for `Send`; the module's handle never changes, and the functions are behind a mutex.
unsafe impl Sync for CudaModule {}

#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) handle: sys::CUfunction,
    attributes: KernelAttributes,
}

impl CudaModule {
    fn load(context: Arc<Context>, info: &DeviceInfo, cubin: &[u8]) -> Result<CudaModule> {
        context.bind()?;
        // SAFETY: the context is current. `cubin` is a whole image, whose length is part of it: NVRTC or nvJitLink made
        // it, and the cache on disk has compared its digest. The driver copies it before the call returns.
        let handle = check("loading a compiled kernel", unsafe { result::module::load_data(cubin.as_ptr().cast()) })?;
        let (shared_bytes_max, can_start_early) = (info.shared_memory_per_block, info.compute_capability.0 >= 9);
        Ok(CudaModule { context, handle, shared_bytes_max, can_start_early, functions: Mutex::default() })
    }

    pub(super) fn function(&self, name: &str) -> Result<Function> {
        if let Some(function) = self.functions.lock().get(name) {
            return Ok(*function);
        }
        self.context.bind()?;
        let c_name = CString::new(name).map_err(|_| GpuError::Contract(format!("kernel name {name:?}")))?;
        // SAFETY: the module is loaded for as long as `self` lives, and its context is current.
        let handle = check("finding a kernel", unsafe { result::module::get_function(self.handle, c_name) })?;
        let attribute = |which| {
            // SAFETY: the handle was just given by the driver.
            let value = unsafe { result::function::get_function_attribute(handle, which) };
            check("asking for a kernel's attributes", value).map(|value| value as u32)
        };
        use sys::CUfunction_attribute_enum as A;
        let attributes = KernelAttributes {
            registers: attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            threads_per_block_max: attribute(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        let dynamic = self.shared_bytes_max as i32 - attributes.static_shared_bytes as i32;
        let which = A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: as above; the limit is the device's own.
        let raised = unsafe { result::function::set_function_attribute(handle, which, dynamic) };
        check("raising a kernel's shared memory", raised)?;
        let function = Function { handle, attributes };
        self.functions.lock().insert(name.to_string(), function);
        Ok(function)
    }
}

impl BackendModule for CudaModule {
    fn attributes(&self, kernel: &str) -> Result<KernelAttributes> {
        Ok(self.function(kernel)?.attributes)
    }

    fn blocks_per_multiprocessor(&self, kernel: &str, block: u32, shared_bytes: u32) -> Result<u32> {
        let function = self.function(kernel)?;
        self.context.bind()?;
        let (block, shared_bytes) = (block as i32, shared_bytes as usize);
        // SAFETY: the handle is live.
        let blocks =
            unsafe { result::occupancy::max_active_block_per_multiprocessor(function.handle, block, shared_bytes) };
        Ok(check("asking for a kernel's occupancy", blocks)? as u32)
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded once, unloaded once, with its context current. Streams and recordings hold the modules of
            // their kernels until the work has ended, and leak them where the wait for it failed.
            let _ = unsafe { result::module::unload(self.handle) };
        }
    }
}
