//! Who compiles on a device, who waits for it, and what is compiled behind them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::device::Modules;
use crate::error::{GpuError, Result};
use crate::program::Program;
use crate::threads::Threads;

/// What is compiled in the background.
#[derive(Default)]
pub(crate) struct Behind {
    pub(crate) jobs: Mutex<Jobs>,
    /// Told when something of them ends or is forgotten.
    pub(crate) done: Condvar,
    pub(crate) threads: Threads,
}

#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) waiting: VecDeque<(Vec<Program>, Modules)>,
    /// Whether there is a thread that works on them.
    pub(crate) running: bool,
    /// Threads that compile in the background, that one among them.
    pub(crate) aside: usize,
    /// Calls that wait for a compiler.
    pub(crate) urgent: usize,
    /// When the last of them ended.
    quiet_since: Option<Instant>,
    /// Programs that are being compiled or loaded.
    pub(crate) compiling: usize,
    /// How often what waits was forgotten.
    pub(crate) forgotten: u64,
    /// Whether nothing is compiled any more.
    pub(crate) closed: bool,
}

/// How long nobody must have waited for a compiler before something is compiled that nobody waits for: a statement that
/// has loaded its columns asks for its kernels at once.
const GRACE: Duration = Duration::from_millis(20);

impl Behind {
    /// Forgets what waits.
    pub(crate) fn forget(&self, jobs: &mut Jobs) {
        jobs.waiting.clear();
        jobs.forgotten += 1;
        self.done.notify_all();
    }

    /// Waits until nobody has waited for a compiler for a while; whether what waits was forgotten once more instead.
    pub(crate) fn wait_for_quiet(&self, jobs: &mut MutexGuard<'_, Jobs>, forgotten: u64) -> bool {
        while jobs.forgotten == forgotten {
            let quiet = jobs.quiet_since.map_or(GRACE, |since| since.elapsed());
            match jobs.urgent {
                0 if quiet >= GRACE => return false,
                0 => _ = self.done.wait_for(jobs, GRACE - quiet),
                _ => self.done.wait(jobs),
            }
        }
        true
    }
}

/// How much less a thread counts that compiles beside a statement which takes its answer from elsewhere: a third of one
/// that works on a statement (nice(2)).
#[cfg(target_os = "linux")]
const ASIDE_NICENESS: libc::c_int = 5;

/// Lets statements have the cores first: this thread and those it starts count less. On Linux alone.
pub(crate) fn stand_back() {
    // SAFETY: the calls take numbers alone; on Linux they concern the calling thread, and one that is refused changes
    // nothing.
    #[cfg(target_os = "linux")]
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < ASIDE_NICENESS {
            libc::setpriority(libc::PRIO_PROCESS, 0, ASIDE_NICENESS);
        }
    }
}

/// A thread that compiles in the background, until it is dropped.
pub(crate) struct Aside(pub(crate) Arc<Behind>);

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.jobs.lock().aside -= 1;
        self.0.done.notify_all();
    }
}

/// A call that waits for a compiler, or will soon, until it is dropped.
pub struct Urgent(Arc<Behind>);

impl fmt::Debug for Urgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Urgent")
    }
}

impl Urgent {
    pub(crate) fn begin(behind: &Arc<Behind>) -> Urgent {
        behind.jobs.lock().urgent += 1;
        Urgent(behind.clone())
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        let mut jobs = self.0.jobs.lock();
        jobs.urgent -= 1;
        jobs.quiet_since = Some(Instant::now());
        self.0.done.notify_all();
    }
}

/// A program that is being compiled or loaded, until it is dropped.
pub(crate) struct Compiling<'a>(&'a Behind);

impl Compiling<'_> {
    /// Begins, unless nothing is compiled any more.
    pub(crate) fn begin(behind: &Behind) -> Result<Compiling<'_>> {
        let mut jobs = behind.jobs.lock();
        if jobs.closed {
            return Err(GpuError::Cancelled);
        }
        jobs.compiling += 1;
        Ok(Compiling(behind))
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        self.0.jobs.lock().compiling -= 1;
        self.0.done.notify_all();
    }
}
