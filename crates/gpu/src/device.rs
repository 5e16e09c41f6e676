//! The safe face of a device: buffers that know their owner, programs that are requested, streams that keep alive
//! what they use.
//!
//! Invariants: device memory is charged to the device's [`MemoryPool`] before it exists; a buffer outlives the work
//! that uses it (streams hold their arguments until they are synchronised); launches never wait. A device that was
//! lost refuses every further call with [`GpuError::DeviceLost`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::{Backend, BackendModule, DeviceInfo, KernelAttributes};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::compile::{Compilation, IdleHold, Priority, Queue};
use crate::emulated::EmulatorFaults;
use crate::error::{GpuError, LOST_BEFORE, Result};
use crate::pool::{MemoryPool, size_class};
use crate::program::Program;
use crate::stream::Stream;
use crate::threads::{Threads, leave_cores, stand_back};

/// A device that can run kernels; cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<DeviceShared>,
}

pub(crate) struct DeviceShared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) pool: Arc<MemoryPool>,
    compiler: Queue,
    architecture: u32,
    /// Threads that give memory back.
    reclaimers: Threads,
    lost: AtomicBool,
}

impl Drop for DeviceShared {
    /// The driver may serve other handles of the same device, which have use for the memory.
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
    /// Wraps a backend and what compiles for it; `budget` is the most device memory to use, in bytes.
    pub(crate) fn new(backend: Arc<dyn Backend>, compiler: Queue, budget: u64) -> Device {
        let (major, minor) = backend.info().compute_capability;
        let (architecture, pool) = (major * 10 + minor, Arc::new(MemoryPool::new(budget)));
        let (reclaimers, lost) = (Threads::default(), AtomicBool::new(false));
        Device { shared: Arc::new(DeviceShared { backend, pool, compiler, architecture, reclaimers, lost }) }
    }

    /// Facts about the device.
    pub fn info(&self) -> &DeviceInfo {
        self.shared.backend.info()
    }

    /// Free and total device memory in bytes, as the driver sees them.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.check()?;
        self.shared.note(self.shared.backend.memory())
    }

    /// The pool that budgets this device's memory.
    pub fn pool(&self) -> &Arc<MemoryPool> {
        &self.shared.pool
    }

    /// Allocates `bytes` of device memory (at least one), content undefined; `purpose` names it in errors.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] past the budget or the device.
    pub fn buffer(&self, bytes: usize, purpose: &str) -> Result<DeviceBuffer> {
        self.check()?;
        self.shared.note(DeviceBuffer::allocate(self.shared.clone(), bytes, purpose))
    }

    /// Gives memory that waits for buffers of about `bytes` bytes back to the driver, from a thread of its own: nothing
    /// of that size is needed soon.
    pub fn let_go(&self, bytes: usize) {
        if self.shared.pool.discard(size_class(bytes.max(1))) {
            let (pool, backend) = (self.shared.pool.clone(), self.shared.backend.clone());
            if self.shared.reclaimers.spawn("reclaim", move || pool.reclaim(backend.as_ref())).is_err() {
                self.shared.pool.reclaim(self.shared.backend.as_ref());
            }
        }
    }

    /// Allocates `bytes` of host memory that the device copies from and to at full speed, zeroed.
    pub fn host_buffer(&self, bytes: usize) -> Result<HostBuffer> {
        self.check()?;
        self.shared.note(HostBuffer::allocate(self.shared.clone(), bytes))
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        self.check()?;
        Ok(Stream::new(self.shared.clone(), self.shared.note(self.shared.backend.stream())?))
    }

    /// The program, compiled and loaded; compiled once a process and kept on disk where the backend can.
    ///
    /// # Errors
    /// As [`Compilation::wait`].
    pub fn compile(&self, program: &Program) -> Result<Arc<Module>> {
        Ok(self.compile_all(std::slice::from_ref(program))?.remove(0))
    }

    /// Programs, compiled and loaded side by side; their modules in the same order.
    ///
    /// # Errors
    /// As [`Compilation::wait`].
    pub fn compile_all(&self, programs: &[Program]) -> Result<Vec<Arc<Module>>> {
        self.check()?;
        self.request(programs, Priority::Now).wait()
    }

    /// Has programs compiled on other threads, begun by priority and in their order. A thread that left the cores
    /// requests as [`Priority::Soon`] what it would request now.
    pub fn request(&self, programs: &[Program], priority: Priority) -> Compilation {
        let (Device { shared }, priority) = (self.clone(), priority.on_this_thread());
        let request = |program| shared.compiler.request(program, shared.architecture, priority);
        Compilation { programs: programs.iter().map(request).collect(), device: shared }
    }

    /// Begins to compile nothing that was requested as [`Priority::Idle`] until the guard is dropped.
    pub fn hold_idle(&self) -> IdleHold {
        self.shared.compiler.hold_idle()
    }

    /// Whether a program was compiled in this process and is still loaded.
    pub fn is_compiled(&self, program: &Program) -> bool {
        self.shared.compiler.get(program, self.shared.architecture).is_some()
    }

    /// Whether a program was compiled in this process, or by another one that kept it.
    pub fn is_at_hand(&self, program: &Program) -> bool {
        self.is_compiled(program) || self.shared.backend.is_kept(program)
    }

    /// Gives this thread the cores that no other one wants, and those that it starts; see sched(7), `SCHED_IDLE`.
    /// Threads that work for an emulated device, whose compilers take seconds, stand back by their niceness.
    pub fn leave_cores(&self) {
        match self.info().emulated {
            true => stand_back(),
            false => leave_cores(),
        }
    }

    /// Takes back what was requested, nothing waits for, and was not begun.
    pub fn forget_waiting(&self) {
        self.shared.compiler.forget(|priority, _| priority > Priority::Now);
    }

    /// Compiles nothing more: calls that need a compiler are answered with [`GpuError::Cancelled`]. For a process that
    /// is about to end.
    pub fn close(&self) {
        self.shared.compiler.close();
    }

    /// Waits until no request waits or runs, and until threads that compiled, or gave memory back, have ended: a
    /// process that ends meanwhile takes compiler and driver apart under their hands.
    pub fn settle(&self) {
        self.shared.compiler.settle();
        self.shared.reclaimers.join();
    }

    /// How many programs the compiler was run for, caches not counted.
    pub fn compiles(&self) -> u64 {
        self.shared.compiler.compiles()
    }

    /// What makes an emulated device fail or wait on demand; none on a real one.
    pub fn emulator_faults(&self) -> Option<Arc<EmulatorFaults>> {
        self.shared.backend.emulator_faults()
    }

    /// Whether the device was lost; it comes back with a restart of the process.
    pub fn is_lost(&self) -> bool {
        self.shared.lost.load(Ordering::Acquire)
    }

    /// Whether both are handles of one device.
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn check(&self) -> Result<()> {
        self.shared.check()
    }
}

impl DeviceShared {
    /// Refuses work on a lost device.
    pub(crate) fn check(&self) -> Result<()> {
        if self.lost.load(Ordering::Acquire) {
            return Err(GpuError::DeviceLost {
                operation: "an earlier statement".into(),
                code: LOST_BEFORE.into(),
                message: "the device has been unusable since then".into(),
            });
        }
        Ok(())
    }

    /// Remembers a lost device on its way to the caller.
    pub(crate) fn note<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.is_device_lost()
        {
            self.lost.store(true, Ordering::Release);
        }
        result
    }
}

/// A loaded program.
pub struct Module {
    pub(crate) name: String,
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) backend: Arc<dyn BackendModule>,
}

impl Module {
    /// One of the program's kernels.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Result<Kernel> {
        let attributes = self.device.note(self.backend.attributes(name))?;
        Ok(Kernel { module: self.clone(), name: name.to_string(), attributes })
    }

    /// Name of the program.
    pub fn name(&self) -> &str {
        &self.name
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

    /// What the compiler says about it.
    pub fn attributes(&self) -> KernelAttributes {
        self.attributes
    }

    /// How many blocks of this shape are resident on one multiprocessor; at least one for a shape that can run.
    pub fn blocks_per_multiprocessor(&self, block: u32, shared_bytes: u32) -> Result<u32> {
        self.module.backend.blocks_per_multiprocessor(&self.name, block, shared_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EmulatorOptions;

    #[test]
    fn a_device_that_nobody_holds_is_gone_with_all_it_compiled() {
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
