//! The safe face of a device: buffers that know their owner, programs compiled once, streams that keep alive what
//! they use.
//!
//! Invariants: device memory is charged to the device's [`MemoryPool`] before it exists; a buffer outlives the work
//! that uses it (streams hold their arguments until they are synchronised); launches never wait. A device that was
//! lost refuses every further call with [`GpuError::DeviceLost`].

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::backend::{Backend, BackendModule, DeviceInfo, KernelAttributes};
use crate::behind::{Aside, Behind, Compiling, Urgent, stand_back};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::emulated::EmulatorFaults;
use crate::error::{GpuError, LOST_BEFORE, Result};
use crate::pool::{MemoryPool, size_class};
use crate::program::{Program, in_turn};
use crate::stream::Stream;
use crate::threads::beside;

/// A device that can run kernels; cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<DeviceShared>,
}

pub(crate) struct DeviceShared {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) pool: Arc<MemoryPool>,
    /// By the hash of a program the place of its module.
    modules: Mutex<HashMap<String, Arc<Place>>>,
    compiles: AtomicU64,
    behind: Arc<Behind>,
    lost: AtomicBool,
}

impl Drop for DeviceShared {
    /// The driver may serve other handles of the same device, which have use for the memory.
    fn drop(&mut self) {
        self.pool.trim(self.backend.as_ref());
    }
}

/// A loaded program once it is there; who compiles it holds the lock, and others wait. It is no [`Module`], which keeps
/// the device it is kept by.
type Place = Mutex<Option<Arc<dyn BackendModule>>>;

fn is_there(place: &Place) -> bool {
    place.try_lock().is_some_and(|module| module.is_some())
}

/// Modules of programs that are compiled in the background, once they are there.
pub type Modules = Arc<OnceLock<Vec<Arc<Module>>>>;

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", self.info()).finish_non_exhaustive()
    }
}

impl Device {
    /// Wraps a backend; `budget` is the most device memory to use, in bytes.
    pub(crate) fn new(backend: Box<dyn Backend>, budget: u64) -> Device {
        Device {
            shared: Arc::new(DeviceShared {
                backend,
                pool: Arc::new(MemoryPool::new(budget)),
                modules: Mutex::new(HashMap::new()),
                compiles: AtomicU64::new(0),
                behind: Arc::default(),
                lost: AtomicBool::new(false),
            }),
        }
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

    /// Gives memory that waits for buffers of about `bytes` bytes back to the driver: nothing of that size is needed
    /// soon.
    pub fn let_go(&self, bytes: usize) {
        self.shared.pool.trim_class(self.shared.backend.as_ref(), size_class(bytes.max(1)));
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
    pub fn compile(&self, program: &Program) -> Result<Arc<Module>> {
        self.check()?;
        let place = self.place(program);
        let _urgent = (!is_there(&place)).then(|| Urgent::begin(&self.shared.behind));
        self.compile_in(&place, program)
    }

    /// Where a program's module is, or will be.
    fn place(&self, program: &Program) -> Arc<Place> {
        self.shared.modules.lock().entry(program.hash().to_string()).or_default().clone()
    }

    fn compile_in(&self, place: &Place, program: &Program) -> Result<Arc<Module>> {
        let module =
            |backend| Arc::new(Module { name: program.name().to_string(), device: self.shared.clone(), backend });
        let mut place = place.lock();
        if let Some(backend) = place.as_ref() {
            return Ok(module(backend.clone()));
        }
        let compiling = Compiling::begin(&self.shared.behind)?;
        let loaded = self.shared.note(self.shared.backend.load(program));
        drop(compiling);
        let (backend, compiled) = loaded.inspect_err(|error| {
            if let GpuError::Compile { program, log } = error {
                tracing::error!(program, log, "a kernel did not compile");
            }
        })?;
        if compiled {
            self.shared.compiles.fetch_add(1, Ordering::Relaxed);
        }
        Ok(module(place.insert(backend).clone()))
    }

    /// Programs, compiled and loaded side by side; their modules in the same order.
    pub fn compile_all(&self, programs: &[Program]) -> Result<Vec<Arc<Module>>> {
        let places = self.places(programs);
        let _urgent = places.iter().any(|(place, _)| !is_there(place)).then(|| Urgent::begin(&self.shared.behind));
        self.compile_side_by_side(&places)
    }

    fn places<'a>(&self, programs: &'a [Program]) -> Vec<(Arc<Place>, &'a Program)> {
        programs.iter().map(|program| (self.place(program), program)).collect()
    }

    fn compile_side_by_side(&self, places: &[(Arc<Place>, &Program)]) -> Result<Vec<Arc<Module>>> {
        self.check()?;
        // What is left of it is done on this thread, which waits for those that others are at.
        let missing: Vec<_> = places.iter().filter(|(place, _)| !is_there(place)).skip(1).collect();
        let compile = |(place, program): &(Arc<Place>, &Program)| self.compile_in(place, program);
        beside(missing.len(), |number| drop(compile(missing[number])), || places.iter().map(compile).collect())
    }

    /// Whether a program was compiled in this process.
    pub fn is_compiled(&self, program: &Program) -> bool {
        let place = self.shared.modules.lock().get(program.hash()).cloned();
        place.is_some_and(|place| is_there(&place))
    }

    /// Whether a program was compiled in this process, or by another one that kept it.
    pub fn is_at_hand(&self, program: &Program) -> bool {
        self.is_compiled(program) || self.shared.backend.is_kept(program)
    }

    /// Compiles programs in the background, those of one call side by side, one call after the other, and not while
    /// anybody waits for a compiler: they share what lies in one process. Where that fails it is logged, and there are
    /// no modules.
    pub fn compile_behind(&self, programs: Vec<Program>) -> Modules {
        let modules = Modules::default();
        let mut jobs = self.shared.behind.jobs.lock();
        jobs.waiting.push_back((programs, modules.clone()));
        if std::mem::replace(&mut jobs.running, true) {
            return modules;
        }
        drop(jobs);
        if !self.elsewhere(Device::work_behind, || ()) {
            let mut jobs = self.shared.behind.jobs.lock();
            jobs.running = false;
            self.shared.behind.forget(&mut jobs);
        }
        modules
    }

    /// Compiles what waits until nothing does.
    fn work_behind(&self) {
        self.leave_the_cores();
        let behind = &self.shared.behind;
        loop {
            let mut jobs = behind.jobs.lock();
            if !jobs.waiting.is_empty() {
                let forgotten = jobs.forgotten;
                behind.wait_for_quiet(&mut jobs, forgotten);
            }
            let Some((programs, modules)) = jobs.waiting.pop_front() else {
                jobs.running = false;
                return;
            };
            drop(jobs);
            match self.compile_side_by_side(&self.places(&programs)) {
                Ok(compiled) => drop(modules.set(compiled)),
                Err(error) => tracing::warn!(%error, "compiling in the background failed"),
            }
        }
    }

    /// Compiles programs in the background, side by side and before what nobody waits for, and calls `done` when they
    /// are at hand or do not compile. Without a thread to do so `done` is dropped.
    pub fn compile_aside(&self, programs: Vec<Program>, done: impl FnOnce() + Send + 'static) {
        let urgent = Urgent::begin(&self.shared.behind);
        self.elsewhere(
            move |device| {
                stand_back();
                device.compile_for_later(&programs);
                drop(urgent);
            },
            done,
        );
    }

    /// Compiles programs on other threads, in the order in which they will be asked for; who asks waits for the rest.
    /// Then `others` that may be asked for, one after the other, none being begun while anybody waits for a compiler,
    /// nor while what this returns is kept.
    pub fn compile_early(&self, programs: Vec<Program>, others: Vec<Program>) -> Urgent {
        let (urgent, kept) = (Urgent::begin(&self.shared.behind), Urgent::begin(&self.shared.behind));
        let forgotten = self.shared.behind.jobs.lock().forgotten;
        let work = move |device: &Device| {
            in_turn(&programs, |program| device.compile_for_later(std::slice::from_ref(program)));
            drop(urgent);
            // A load may wait for one of them: they get their share of the cores.
            stand_back();
            for other in &others {
                let mut jobs = device.shared.behind.jobs.lock();
                if device.shared.behind.wait_for_quiet(&mut jobs, forgotten) {
                    return;
                }
                drop(jobs);
                device.compile_for_later(std::slice::from_ref(other));
            }
        };
        self.elsewhere(work, || ());
        kept
    }

    /// Compiles programs side by side; who asks for them next is told of errors.
    fn compile_for_later(&self, programs: &[Program]) {
        if let Err(error) = self.compile_side_by_side(&self.places(programs)) {
            tracing::debug!(%error, "compiling in the background failed");
        }
    }

    /// Does work on a thread of its own, which [`Device::settle`] waits for, and then what is `done`; whether there is
    /// such a thread.
    fn elsewhere(&self, work: impl FnOnce(&Device) + Send + 'static, done: impl FnOnce() + Send + 'static) -> bool {
        {
            let mut jobs = self.shared.behind.jobs.lock();
            if jobs.closed {
                return false;
            }
            jobs.aside += 1;
        }
        let (device, ended) = (self.clone(), Aside(self.shared.behind.clone()));
        let work = move || {
            work(&device);
            drop(ended);
            done();
        };
        let spawned = self.shared.behind.threads.spawn("aside", work);
        spawned.inspect_err(|error| tracing::warn!(%error, "no thread to compile in the background")).is_ok()
    }

    /// Leaves the cores to all other threads: this one, and those it starts, run where a core is idle, and are stopped
    /// as soon as another thread wants it (`SCHED_IDLE` of sched(7), on Linux alone). Niceness is not as much: a thread
    /// that wakes up waits for a nicer one until that one's slice of some milliseconds ends. Threads that work for an
    /// emulated device, whose compilers take seconds, stand back by their niceness.
    pub fn leave_the_cores(&self) {
        if self.info().emulated {
            return stand_back();
        }
        // SAFETY: the call reads the parameters it is given; it concerns the calling thread, and one that is refused
        // changes nothing.
        #[cfg(target_os = "linux")]
        unsafe {
            let parameters = libc::sched_param { sched_priority: 0 };
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
        }
    }

    /// Forgets what waits to be compiled in the background and was not begun.
    pub fn forget_waiting(&self) {
        self.shared.behind.forget(&mut self.shared.behind.jobs.lock());
    }

    /// Compiles nothing more, whoever asks: calls that need a compiler are answered with [`GpuError::Cancelled`], and
    /// nothing begins in the background. For a process that is about to end.
    pub fn close(&self) {
        let mut jobs = self.shared.behind.jobs.lock();
        jobs.closed = true;
        self.shared.behind.forget(&mut jobs);
    }

    /// Waits until nothing is compiled, and until threads that did have ended: a process that ends meanwhile may take
    /// the compiler apart under its own hands.
    pub fn settle(&self) {
        let behind = &self.shared.behind;
        let mut jobs = behind.jobs.lock();
        while jobs.aside > 0 || jobs.compiling > 0 {
            behind.done.wait(&mut jobs);
        }
        drop(jobs);
        behind.threads.join();
        self.shared.backend.settle();
    }

    /// How many programs the compiler was run for, caches not counted.
    pub fn compiles(&self) -> u64 {
        self.shared.compiles.load(Ordering::Relaxed)
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
    name: String,
    pub(crate) device: Arc<DeviceShared>,
    pub(crate) backend: Arc<dyn BackendModule>,
}

impl Module {
    /// One of the program's kernels.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Result<Kernel> {
        let attributes = self.backend.attributes(name)?;
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
        let behind = device.compile_behind(vec![program("behind")]);
        let module = device.compile(&program("early")).unwrap();
        drop(device.buffer(1, "a test").unwrap());
        device.settle();
        assert_eq!(behind.get().map(Vec::len), Some(1));
        let (shared, pool) = (Arc::downgrade(&device.shared), device.pool().clone());
        assert!(pool.usage().cached > 0);
        drop((device, behind));
        assert!(shared.upgrade().is_some(), "a module holds it");
        drop(module);
        assert!(shared.upgrade().is_none());
        assert_eq!(pool.usage().cached, 0);
    }

    fn program(name: &str) -> Program {
        let source = format!("struct P {{ uint64_t* out; }};\nWC_KERNEL({name}, P, 32, 1) {{ p.out[0] = 1; }}");
        Program::new(name, source)
    }

    #[test]
    fn the_background_waits_while_a_call_waits_for_a_compiler() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let urgent = Urgent::begin(&device.shared.behind);
        let behind = device.compile_behind(vec![program("behind")]);
        // What was asked for later and does not wait is there first.
        for name in ["aside", "beside"] {
            let (done, is_done) = std::sync::mpsc::channel();
            device.compile_aside(vec![program(name)], move || done.send(()).unwrap());
            is_done.recv().unwrap();
            assert!(device.is_compiled(&program(name)));
        }
        assert!(behind.get().is_none());
        drop(urgent);
        device.settle();
        assert_eq!(behind.get().map(Vec::len), Some(1));
    }

    #[test]
    fn a_closed_device_compiles_nothing_more() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        device.compile(&program("before")).unwrap();
        let urgent = Urgent::begin(&device.shared.behind);
        let (behind, kept) =
            (device.compile_behind(vec![program("behind")]), device.compile_early(vec![], vec![program("other")]));
        device.close();
        // What waits for others to be done ends, whoever they are.
        device.settle();
        assert!(device.compile(&program("before")).is_ok());
        assert!(matches!(device.compile(&program("after")), Err(GpuError::Cancelled)));
        let later = device.compile_behind(vec![program("behind")]);
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        device.compile_aside(vec![program("aside")], move || done.send(()).unwrap());
        assert!(is_done.recv().is_err(), "nobody is told of what does not begin");
        drop((urgent, kept));
        device.settle();
        assert!(behind.get().is_none() && later.get().is_none());
        assert!(["behind", "other", "aside", "after"].iter().all(|name| !device.is_compiled(&program(name))));
    }

    #[test]
    fn what_may_be_asked_for_is_forgotten_when_nothing_more_is() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let urgent = Urgent::begin(&device.shared.behind);
        let kept = device.compile_early(vec![program("first")], vec![program("other")]);
        while !device.is_compiled(&program("first")) {
            std::thread::yield_now();
        }
        device.forget_waiting();
        // The thread ends, whoever waits for a compiler.
        device.shared.behind.threads.join();
        drop((urgent, kept));
        assert!(!device.is_compiled(&program("other")));
        drop(device.compile_early(vec![], vec![program("other")]));
        device.settle();
        assert!(device.is_compiled(&program("other")));
    }
}
