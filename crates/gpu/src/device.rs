//! The safe interface of a device: its memory, its programs, its streams.
//!
//! Invariants: device memory is charged to the device's [`MemoryPool`] before it is allocated; a buffer outlives the
//! work that uses it (streams hold their arguments until they are synchronised); launches never wait. A lost device
//! refuses every further call with [`GpuError::DeviceLost`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::{Backend, BackendModule, DeviceInfo, Image, KernelAttributes};
use crate::compile::{Client, Handle, IdleHold, Priority};
use crate::emulated::EmulatorFaults;
use crate::error::{GpuError, LOST_BEFORE, Result};
use crate::modules::Modules;
use crate::pool::{MemoryPool, size_class};
use crate::program::Program;
use crate::threads::{Threads, lower_priority, use_idle_scheduling};

/// A device that can run kernels; cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<DeviceShared>,
}

pub(crate) struct DeviceShared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) pool: Arc<MemoryPool>,
    /// Dropped before the modules, whose loads it waits for.
    compiler: Client,
    modules: Arc<Modules>,
    architecture: u32,
    /// Threads that free memory.
    reclaimers: Threads,
    lost: AtomicBool,
}

impl Drop for DeviceShared {
    /// Frees cached blocks: the driver may serve other handles of the same device.
    fn drop(&mut self) {
        self.reclaimers.join();
        self.pool.trim(self.backend.as_ref());
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", self.info()).finish_non_exhaustive()
    }
}

impl Device {
    /// A device over a backend and a client of its compiler; `budget` is the limit of device memory in bytes.
    pub(crate) fn new(backend: Arc<dyn Backend>, compiler: Client, budget: u64) -> Device {
        let (major, minor) = backend.info().compute_capability;
        let (architecture, pool) = (major * 10 + minor, Arc::new(MemoryPool::new(budget)));
        let (reclaimers, lost) = (Threads::default(), AtomicBool::new(false));
        let modules = Arc::new(Modules::new(backend.clone()));
        let loads = Arc::downgrade(&modules);
        // An error is that of the next request, which loads again.
        compiler.loads(move |program, image| drop(loads.upgrade().map(|modules| modules.load(program, image))));
        Device { shared: Arc::new(DeviceShared { backend, pool, compiler, modules, architecture, reclaimers, lost }) }
    }

    /// Facts about the device.
    pub fn info(&self) -> &DeviceInfo {
        self.shared.backend.info()
    }

    /// Free and total device memory in bytes, as the driver sees them.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.shared.check()?;
        self.shared.note(self.shared.backend.memory())
    }

    /// The pool that budgets the device's memory.
    pub fn pool(&self) -> &Arc<MemoryPool> {
        &self.shared.pool
    }

    /// Frees the cached blocks for buffers of about `bytes` bytes on a background thread.
    pub fn free_cached(&self, bytes: usize) {
        if self.shared.pool.discard(size_class(bytes.max(1))) {
            self.shared.reclaim();
        }
    }

    /// Succeeds if kernels can launch kernels ([`Program::with_device_launches`]).
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] on the emulated device; [`GpuError::CompilerUnavailable`] without nvJitLink and the
    /// device runtime library beside NVRTC.
    pub fn check_device_launches(&self) -> Result<()> {
        self.shared.backend.check_device_launches()
    }

    /// The program, compiled once a process and loaded once a device; the backend may cache machine code on disk.
    ///
    /// # Errors
    /// As [`Compilation::wait`].
    pub fn compile(&self, program: &Program) -> Result<Arc<Module>> {
        Ok(self.compile_all(std::slice::from_ref(program))?.remove(0))
    }

    /// Modules of programs, in the same order, compiled in parallel; on the emulated device in few runs of its
    /// compiler.
    ///
    /// # Errors
    /// As [`Compilation::wait`].
    pub fn compile_all(&self, programs: &[Program]) -> Result<Vec<Arc<Module>>> {
        self.shared.check()?;
        if programs.len() > 1 && self.info().emulated {
            self.shared.backend.compile_together(programs);
        }
        self.request(programs, Priority::Now).wait()
    }

    /// Requests programs of the compile queue, in their order. A thread under idle scheduling requests
    /// [`Priority::Now`] as [`Priority::Soon`].
    pub fn request(&self, programs: &[Program], priority: Priority) -> Compilation {
        let (Device { shared }, priority) = (self.clone(), priority.on_this_thread());
        let request = |program: &Program| match shared.modules.get(program) {
            Some(module) => Requested::Loaded(module),
            None => Requested::Compiled(shared.compiler.request(program, shared.architecture, priority)),
        };
        Compilation { programs: programs.iter().map(request).collect(), device: shared }
    }

    /// Delays all requests of [`Priority::Idle`] until the guard is dropped.
    pub fn hold_idle(&self) -> IdleHold {
        self.shared.compiler.hold_idle()
    }

    /// True if a module of the program is loaded, or its machine code is cached in this process.
    pub fn is_compiled(&self, program: &Program) -> bool {
        let Device { shared } = self;
        shared.modules.get(program).is_some() || shared.compiler.has(program, shared.architecture)
    }

    /// True if [`Device::is_compiled`], or the machine code is cached on disk.
    pub fn is_cached(&self, program: &Program) -> bool {
        self.is_compiled(program) || self.shared.backend.is_on_disk(program)
    }

    /// Runs this thread, and those that it starts, on idle cores alone (`SCHED_IDLE` of sched(7)). Under an emulated
    /// device, whose compiler takes seconds, the thread runs at a higher niceness instead.
    pub fn use_idle_scheduling(&self) {
        match self.info().emulated {
            true => lower_priority(),
            false => use_idle_scheduling(),
        }
    }

    /// Cancels the device's waiting requests below [`Priority::Now`]. A program that another device requested is
    /// compiled all the same.
    pub fn cancel_waiting(&self) {
        self.shared.compiler.cancel(|priority, _| priority > Priority::Now);
    }

    /// Ends requests before the process ends: a program that is not cached is [`GpuError::Cancelled`].
    pub fn close(&self) {
        self.shared.compiler.close();
    }

    /// Waits until no request of this device waits or runs, and joins threads that compile and free memory: `exit`
    /// destroys the state of compiler and driver, which a running thread would use. Threads that compile for another
    /// device are joined when that device settles. An engine calls it when it is dropped, a session when it closes or
    /// is settled.
    pub fn settle(&self) {
        self.shared.compiler.settle();
        self.shared.reclaimers.join();
    }

    /// Number of runs of the compiler, which CUDA devices share; a program found in a cache counts none.
    pub fn compiles(&self) -> u64 {
        self.shared.compiler.compiles()
    }

    /// Injected faults of an emulated device; none on a CUDA device.
    pub fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        self.shared.backend.emulator_faults()
    }

    /// True if both are handles of one device.
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// True if the device was lost; a restart of the process recovers it.
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }
}

impl DeviceShared {
    /// Refuses work on a lost device.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_lost() {
            return Err(GpuError::DeviceLost {
                operation: "an earlier statement".into(),
                code: LOST_BEFORE.into(),
                message: "the device has been unusable since then".into(),
            });
        }
        Ok(())
    }

    /// Marks the device as lost if `result` says so; gives the result.
    pub(crate) fn note<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(GpuError::is_device_lost) {
            self.lost.store(true, Ordering::Release);
        }
        result
    }

    /// The outcome of a wait for submitted work. If a wait fails, work may still be in flight, so the device is lost
    /// whatever the status is. A finding of the emulated device is no failed wait: its work ends before a call returns.
    pub(crate) fn ended(&self, waited: Result<()>) -> Result<()> {
        self.note(waited.map_err(|error| match error {
            GpuError::Driver { operation, code, message } => GpuError::DeviceLost { operation, code, message },
            other => other,
        }))
    }

    /// True if the device was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Frees surplus memory of the pool on a background thread, or on this one if none can start.
    pub(crate) fn reclaim(&self) {
        let (pool, backend) = (self.pool.clone(), self.backend.clone());
        if self.reclaimers.spawn("reclaim", move || pool.reclaim(backend.as_ref())).is_err() {
            self.pool.reclaim(self.backend.as_ref());
        }
    }
}

/// Requested programs of a device ([`Device::request`]); dropping it cancels none.
pub struct Compilation {
    device: Arc<DeviceShared>,
    programs: Vec<Requested>,
}

enum Requested {
    Loaded(Arc<dyn BackendModule>),
    Compiled(Handle),
}

impl Compilation {
    /// Waits for all modules, in the order of the programs.
    ///
    /// # Errors
    /// The first error of a program; [`GpuError::Cancelled`] for a cancelled request.
    pub fn wait(&self) -> Result<Vec<Arc<Module>>> {
        let wait = |requested: &Requested| match requested {
            Requested::Loaded(module) => Ok(self.module(module.clone())),
            Requested::Compiled(handle) => handle.wait().and_then(|image| self.load(handle, &image)),
        };
        self.programs.iter().map(wait).collect()
    }

    /// As [`Compilation::wait`], or none while a request waits or runs.
    pub fn poll(&self) -> Option<Result<Vec<Arc<Module>>>> {
        let poll = |requested: &Requested| match requested {
            Requested::Loaded(module) => Some(Ok(self.module(module.clone()))),
            Requested::Compiled(handle) => Some(handle.poll()?.and_then(|image| self.load(handle, &image))),
        };
        self.programs.iter().map(poll).collect()
    }

    /// The module that the compiler's thread has loaded, or that is loaded now: machine code that was compiled before
    /// the device was opened, or for another one.
    fn load(&self, handle: &Handle, image: &Image) -> Result<Arc<Module>> {
        Ok(self.module(self.device.note(self.device.modules.load(handle.program(), image))?))
    }

    fn module(&self, backend: Arc<dyn BackendModule>) -> Arc<Module> {
        Arc::new(Module { device: self.device.clone(), backend })
    }
}

/// A compiled program.
pub struct Module {
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) backend: Arc<dyn BackendModule>,
}

impl Module {
    /// One of the program's kernels.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Result<Kernel> {
        let attributes = self.device.note(self.backend.attributes(name))?;
        Ok(Kernel { module: self.clone(), name: name.to_string(), attributes })
    }
}

/// A kernel that can be launched; cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) module: Arc<Module>,
    pub(crate) name: String,
    attributes: KernelAttributes,
}

impl Kernel {
    /// Name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compiler's figures: registers, memory, largest block.
    pub fn attributes(&self) -> KernelAttributes {
        self.attributes
    }

    /// Resident blocks of this shape on one multiprocessor; at least one for a shape that can run.
    pub fn blocks_per_multiprocessor(&self, block: u32, shared_bytes: u32) -> Result<u32> {
        self.module.backend.blocks_per_multiprocessor(&self.name, block, shared_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulated::EmulatorOptions;

    #[test]
    fn the_last_handle_frees_the_device_and_its_modules() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let program = |name: &str| {
            let source = format!("struct P {{ uint64_t* out; }};\nWC_KERNEL({name}, P, 32, 1) {{ p.out[0] = 1; }}");
            Program::new(name, source)
        };
        let idle = device.request(&[program("idle")], Priority::Idle);
        let module = device.compile(&program("now")).unwrap();
        drop(device.buffer(1, "a test").unwrap());
        device.settle();
        assert_eq!(idle.poll().map(|modules| modules.unwrap().len()), Some(1));
        assert!(device.is_compiled(&program("now")) && !device.is_compiled(&program("never")));
        device.close();
        assert!(device.compile(&program("now")).is_ok());
        assert!(matches!(device.compile(&program("never")), Err(GpuError::Cancelled)));
        let (shared, pool) = (Arc::downgrade(&device.shared), device.pool().clone());
        assert!(pool.usage().cached > 0);
        drop((device, idle));
        assert!(shared.upgrade().is_some(), "a module holds it");
        drop(module);
        assert!(shared.upgrade().is_none());
        assert_eq!(pool.usage().cached, 0);
    }
}
