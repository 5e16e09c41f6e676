//! CUDA devices through the driver API.
//!
//! The driver library is looked for when asked for; without it every call here is an error with a reason, never a
//! panic. Modules come from NVRTC ([`nvrtc`]) through a cache on disk ([`cache`]).

mod ahead;
mod cache;
mod driver;
mod library;
pub mod nvrtc;
mod pci;
mod poke;
mod recording;
mod stream;

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use crate::backend::{Backend, BackendModule, BackendStream, DeviceInfo, KernelAttributes};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::program::Program;

pub use crate::trust::private_folder;
use ahead::Ahead;
pub use cache::cache_folder;
use driver::{Context, as_unavailable, check};

/// Part of the device's memory that is left to the driver, to other programs and to fragmentation by default.
const BUDGET_SHARE_DEFAULT: f64 = 0.90;

/// Names programs to be compiled, and is told of each whether it was kept on disk.
pub type ToCompile = fn(is_kept: &dyn Fn(&Program) -> bool) -> Vec<Program>;

impl Device {
    /// Opens CUDA device number `ordinal`. `budget` is the most memory to use in bytes; by default nine tenths of what
    /// is free now.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] with the reason and its repair where there is no driver or no such device.
    pub fn cuda(ordinal: usize, budget: Option<u64>) -> Result<Device> {
        Device::cuda_with(ordinal, budget, |_| Vec::new())
    }

    /// As [`Device::cuda`], and has programs compiled while the driver starts and makes a context: those that `ahead`
    /// names. Where that fails, who asks for the program is told.
    ///
    /// # Errors
    /// As [`Device::cuda`].
    pub fn cuda_with(ordinal: usize, budget: Option<u64>, ahead: ToCompile) -> Result<Device> {
        let backend = CudaBackend::open(ordinal, ahead).map_err(as_unavailable)?;
        let budget = match budget {
            Some(bytes) => bytes,
            None => (backend.memory().map_err(as_unavailable)?.0 as f64 * BUDGET_SHARE_DEFAULT) as u64,
        };
        Ok(Device::new(Box::new(backend), budget))
    }

    /// Whether the driver is installed; asking costs next to nothing, and whether a device opens is another matter.
    pub fn cuda_seems_present() -> bool {
        driver::is_present()
    }

    /// How many CUDA devices there are, or why that cannot be told.
    pub fn cuda_count() -> Result<usize> {
        driver::count()
    }
}

struct CudaBackend {
    context: Arc<Context>,
    info: DeviceInfo,
    poker: poke::Poker,
    ahead: Ahead,
}

/// Begins to compile what is asked for and was not kept on disk.
fn begin(ahead: ToCompile, architecture: u32) -> Ahead {
    let programs = ahead(&|program| cache::is_kept(program, architecture));
    Ahead::begin(programs, move |program| match cache::cubin(program, architecture) {
        Ok((image, _)) => Some(image),
        Err(error) => {
            tracing::debug!(%error, "compiling ahead failed");
            None
        }
    })
}

impl CudaBackend {
    fn open(ordinal: usize, ahead: ToCompile) -> Result<CudaBackend> {
        let _span = tracing::info_span!("open").entered();
        // To look for what is kept takes the compiler's version, and so the compiler.
        let start = |architecture| thread::spawn(move || begin(ahead, architecture));
        let begun = |thread: JoinHandle<Ahead>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let guess = pci::architecture().filter(|_| driver::seems_to_start());
        let guessed = guess.map(start);
        let started = driver::start(ordinal).map(|(major, minor)| major * 10 + minor);
        let thread = match guessed {
            Some(thread) if started.as_ref().ok() == guess.as_ref() => thread,
            // A wrong guess is taken back before anything else is begun.
            wrong => {
                drop(wrong.map(begun));
                start(started?)
            }
        };
        let context = Context::open(ordinal);
        let ahead = begun(thread);
        let context = Arc::new(context?);
        let mut info = driver::describe(&context, ordinal)?;
        let (major, minor) = info.compute_capability;
        let compiler = nvrtc::target(major * 10 + minor).ok().map(|(_, version)| version);
        info.params_bytes_max = info.params_bytes_max.min(driver::params_bytes_max(compiler));
        let poker = poke::Poker::new(context.clone())?;
        Ok(CudaBackend { context, info, poker, ahead })
    }
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
            // SAFETY: by the caller's promise the address is ours, unused and freed once. A failure means that the
            // context is gone, and the memory with it.
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
            // SAFETY: by the caller's promise, as for `free`.
            let _ = unsafe { result::free_host(address as *mut _) };
        }
    }

    unsafe fn poke(&self, address: u64, value: u64) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.poker.poke(address, value) }
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(stream::CudaStream::new(self.context.clone())?))
    }

    fn is_kept(&self, program: &Program) -> bool {
        let (major, minor) = self.info.compute_capability;
        self.ahead.is_there(program) || cache::is_kept(program, major * 10 + minor)
    }

    fn settle(&self) {
        self.ahead.end();
    }

    fn load(&self, program: &Program) -> Result<(Arc<dyn BackendModule>, bool)> {
        let (major, minor) = self.info.compute_capability;
        let (cubin, compiled) = match self.ahead.image(program) {
            Some(image) => (Cow::Borrowed(image), true),
            None => {
                let (image, compiled) = cache::cubin(program, major * 10 + minor)?;
                (Cow::Owned(image), compiled)
            }
        };
        self.context.bind()?;
        // SAFETY: a context is current and `cubin` is a whole image made by NVRTC, checked by the cache.
        let module = unsafe { result::module::load_data(cubin.as_ptr().cast()) };
        let module = check("loading a compiled kernel", module)?;
        let module = CudaModule {
            context: self.context.clone(),
            module,
            functions: Mutex::new(HashMap::new()),
            shared_bytes_max: self.info.shared_memory_per_block,
            can_start_early: major >= 9,
        };
        Ok((Arc::new(module), compiled))
    }
}

/// A loaded module; unloaded when dropped.
pub(super) struct CudaModule {
    context: Arc<Context>,
    module: sys::CUmodule,
    functions: Mutex<HashMap<String, Function>>,
    shared_bytes_max: usize,
    /// Whether the device has programmatic dependent launch.
    pub(super) can_start_early: bool,
}

// SAFETY: module and function handles may be used from any thread with the context current, which `bind` sees to.
unsafe impl Send for CudaModule {}
// SAFETY: as for `Send`; the map is behind a mutex.
unsafe impl Sync for CudaModule {}

#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) handle: sys::CUfunction,
    attributes: KernelAttributes,
}

impl CudaModule {
    pub(super) fn function(&self, name: &str) -> Result<Function> {
        if let Some(function) = self.functions.lock().get(name) {
            return Ok(*function);
        }
        self.context.bind()?;
        let c_name = CString::new(name).map_err(|_| GpuError::Contract(format!("kernel name {name:?}")))?;
        // SAFETY: the module is loaded for as long as `self` lives.
        let handle = check("finding a kernel", unsafe { result::module::get_function(self.module, c_name) })?;
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
        check("raising a kernel's shared memory", unsafe {
            result::function::set_function_attribute(handle, which, dynamic)
        })?;
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
        let mut blocks = 0;
        // SAFETY: the handle is live and `blocks` is writable.
        let status = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function.handle,
                block as i32,
                shared_bytes as usize,
            )
        };
        check("asking for a kernel's occupancy", status.result())?;
        Ok(blocks as u32)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded once, unloaded once; kernels hold the module, streams hold kernels' work until it is done.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
