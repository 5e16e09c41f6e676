//! The compile queue of a device, by program and architecture.
//!
//! A request has a [`Priority`] and returns a [`Handle`] to wait for, poll or drop. A program requested twice is
//! compiled once; a request of a higher priority raises one that waits. The rules:
//!
//! 1. Requests of one priority begin in the order of their arrival or raising, on a few workers.
//! 2. No request begins while one of a higher priority waits or runs.
//! 3. An idle request begins 20 ms after the last of the others, and not while a hold exists ([`Queue::hold_idle`]).
//! 4. A program that a call waits for while a worker under idle scheduling compiles it is compiled a second time; the
//!    first outcome counts.
//!
//! Compiled programs are cached, [`CACHED_MAX`] at most apart from those in use. An error reaches every handle, and a
//! later request compiles again. A worker is a thread that ends when no request of its priority waits. Workers are
//! joined, because `exit` destroys the state of the compiler, which a running thread would use.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backend::BackendModule;
use crate::error::{GpuError, Result};
use crate::program::Program;
use crate::threads::{Threads, lower_priority, use_idle_scheduling, uses_idle_scheduling};

/// Priority of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A call waits for the program, or a load will.
    Now,
    /// The CPU computes the rows meanwhile: workers run at a higher niceness than threads of statements.
    Soon,
    /// No statement waits: workers run under idle scheduling.
    Idle,
}

impl Priority {
    /// The priority of a request by this thread. Workers started by a thread under idle scheduling inherit it, so no
    /// statement may wait for them: `Now` becomes `Soon`.
    pub(crate) fn on_this_thread(self) -> Priority {
        if self == Priority::Now && uses_idle_scheduling() { Priority::Soon } else { self }
    }
}

/// Workers of each priority. Compilers of one process wait for each other most of the time: two threads take 0.6 times
/// the time of one for six programs, and more threads gain nothing.
const WORKERS: [usize; 3] = [2, 2, 1];

/// Time without other requests before an idle one begins: a statement requests its kernels right after its load.
const GRACE: Duration = Duration::from_millis(20);

/// Limit of cached programs; past it the least recently requested of the unused ones is evicted.
const CACHED_MAX: usize = 512;

/// Hash of a program, and its target architecture (`90` for Hopper).
type Key = (Arc<str>, u32);

/// A compiled program.
type Compiled = Arc<dyn BackendModule>;

/// Compiles a program; the flag is true if a compiler ran.
type Compiler = dyn Fn(&Program, u32) -> Result<(Compiled, bool)> + Send + Sync;

/// Requests, workers and compiled programs.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    threads: Threads,
}

struct Shared {
    compiler: Box<Compiler>,
    /// True if the compiler takes seconds a program: an idle worker then runs at a higher niceness only.
    slow: bool,
    state: Mutex<State>,
    /// Signals every change of the state.
    changed: Condvar,
    compiles: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: Vec<(Priority, Arc<Job>)>,
    running: Vec<Running>,
    cached: HashMap<Key, Cached>,
    cached_max: usize,
    /// Counts requests of cached programs.
    clock: u64,
    /// Threads of each priority.
    workers: [usize; 3],
    /// Guards that hold idle requests back.
    holds: usize,
    /// End of the last request that is not idle, or of the last hold.
    quiet_since: Option<Instant>,
    closed: bool,
}

/// A job on a worker.
struct Running {
    priority: Priority,
    /// True if the worker runs under idle scheduling: busy cores delay it without limit.
    idle_scheduling: bool,
    job: Arc<Job>,
}

struct Cached {
    module: Compiled,
    requested: u64,
}

struct Job {
    key: Key,
    program: Program,
    /// Set once, under the lock of the state.
    outcome: OnceLock<Result<Compiled>>,
}

/// One request.
pub(crate) struct Handle {
    job: Arc<Job>,
    shared: Arc<Shared>,
}

impl Handle {
    /// Waits for the outcome; [`GpuError::Cancelled`] for a cancelled request.
    pub(crate) fn wait(&self) -> Result<Compiled> {
        let mut state = self.shared.state.lock();
        loop {
            match self.poll() {
                Some(outcome) => return outcome,
                None => self.shared.changed.wait(&mut state),
            }
        }
    }

    /// The outcome, or none while the request waits or runs.
    pub(crate) fn poll(&self) -> Option<Result<Compiled>> {
        self.job.outcome.get().cloned()
    }
}

/// Delays idle requests until it is dropped ([`crate::Device::hold_idle`]).
pub struct IdleHold(Arc<Shared>);

impl Drop for IdleHold {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.holds -= 1;
        state.quiet_since = Some(Instant::now());
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// An empty queue; `slow` if the compiler takes seconds a program.
    pub(crate) fn new(
        slow: bool,
        compiler: impl Fn(&Program, u32) -> Result<(Compiled, bool)> + Send + Sync + 'static,
    ) -> Queue {
        let state = Mutex::new(State { cached_max: CACHED_MAX, ..State::default() });
        let (changed, compiles) = (Condvar::new(), AtomicU64::new(0));
        let shared = Shared { compiler: Box::new(compiler), slow, state, changed, compiles };
        Queue { shared: Arc::new(shared), threads: Threads::default() }
    }

    /// Requests a program for an architecture.
    pub(crate) fn request(&self, program: &Program, architecture: u32, priority: Priority) -> Handle {
        let (shared, mut state) = (self.shared.clone(), self.shared.state.lock());
        let (job, is_new) = state.request(program, architecture, priority);
        let workers = &mut state.workers[priority as usize];
        if is_new && *workers < WORKERS[priority as usize] {
            *workers += 1;
            drop(state);
            self.start_worker(priority);
        }
        Handle { job, shared }
    }

    fn start_worker(&self, priority: Priority) {
        let shared = self.shared.clone();
        let work = move || {
            match priority {
                Priority::Now => {}
                Priority::Idle if !shared.slow => use_idle_scheduling(),
                Priority::Soon | Priority::Idle => lower_priority(),
            }
            shared.work(priority);
        };
        if let Err(error) = self.threads.spawn("compile", work) {
            tracing::warn!(%error, "no thread could be started to compile");
            if priority > Priority::Now {
                self.cancel(|waiting, _| waiting == priority);
            }
            self.shared.work(priority);
        }
    }

    /// A cached program.
    pub(crate) fn get(&self, program: &Program, architecture: u32) -> Option<Compiled> {
        self.shared.state.lock().cached(&(program.hash().clone(), architecture))
    }

    /// Delays idle requests.
    pub(crate) fn hold_idle(&self) -> IdleHold {
        self.shared.state.lock().holds += 1;
        IdleHold(self.shared.clone())
    }

    /// Cancels the waiting requests of these priorities and architectures.
    pub(crate) fn cancel(&self, of: impl Fn(Priority, u32) -> bool) {
        self.shared.state.lock().cancel(of);
        self.shared.changed.notify_all();
    }

    /// Cancels all waiting requests, and later ones of programs that are not cached.
    pub(crate) fn close(&self) {
        self.shared.state.lock().closed = true;
        self.cancel(|_, _| true);
    }

    /// Waits until no request waits or runs, and until the workers have ended.
    pub(crate) fn settle(&self) {
        let mut state = self.shared.state.lock();
        while state.workers != [0; 3] {
            self.shared.changed.wait(&mut state);
        }
        drop(state);
        self.threads.join();
    }

    /// Number of runs of the compiler.
    pub(crate) fn compiles(&self) -> u64 {
        self.shared.compiles.load(Ordering::Relaxed)
    }
}

impl Drop for Queue {
    /// Dropping `threads` joins the workers.
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Compiles the waiting requests of a priority until none waits.
    fn work(&self, priority: Priority) {
        let idle_scheduling = uses_idle_scheduling();
        let mut state = self.state.lock();
        while let Some(job) = self.begin(&mut state, priority) {
            state.running.push(Running { priority, idle_scheduling, job: job.clone() });
            let outcome = MutexGuard::unlocked(&mut state, || self.compile(&job));
            let evicted = state.end(&job, idle_scheduling, outcome);
            self.changed.notify_all();
            MutexGuard::unlocked(&mut state, || drop(evicted));
        }
        state.workers[priority as usize] -= 1;
        self.changed.notify_all();
    }

    /// Takes the next request of a priority as soon as one may begin; none if no request waits.
    fn begin(&self, state: &mut MutexGuard<'_, State>, priority: Priority) -> Option<Arc<Job>> {
        loop {
            let next = state.waiting.iter().position(|(waiting, _)| *waiting == priority)?;
            match state.begins_in(priority) {
                Some(Duration::ZERO) => return Some(state.waiting.remove(next).1),
                Some(time) => _ = self.changed.wait_for(state, time),
                None => self.changed.wait(state),
            }
        }
    }

    fn compile(&self, Job { program, key, .. }: &Job) -> Result<Compiled> {
        let name = || program.name().to_string();
        let panicked = |_| Err(GpuError::Compile { program: name(), log: "the compiler panicked".into() });
        match catch_unwind(AssertUnwindSafe(|| (self.compiler)(program, key.1))).unwrap_or_else(panicked) {
            Ok((module, ran)) => {
                self.compiles.fetch_add(u64::from(ran), Ordering::Relaxed);
                Ok(module)
            }
            Err(error) => {
                match &error {
                    GpuError::Compile { program, log } => tracing::error!(program, log, "a kernel did not compile"),
                    error => tracing::debug!(%error, program = program.name(), "not compiled"),
                }
                Err(error)
            }
        }
    }
}

impl State {
    /// The job of a program; the flag is true if this request made the job wait at this priority.
    fn request(&mut self, program: &Program, architecture: u32, priority: Priority) -> (Arc<Job>, bool) {
        let (key, program) = ((program.hash().clone(), architecture), program.clone());
        if let Some(module) = self.cached(&key) {
            return (Arc::new(Job { key, program, outcome: Ok(module).into() }), false);
        }
        let running = self.running.iter_mut().filter(|running| running.job.key == key);
        let running = match running.min_by_key(|running| running.priority) {
            Some(running) if !running.idle_scheduling || priority > Priority::Now || self.closed => {
                running.priority = priority.min(running.priority);
                return (running.job.clone(), false);
            }
            running => running.map(|running| running.job.clone()),
        };
        let job = match self.waiting.iter().position(|(_, job)| job.key == key) {
            Some(place) if self.waiting[place].0 <= priority => return (self.waiting[place].1.clone(), false),
            Some(place) => self.waiting.remove(place).1,
            None => running.unwrap_or_else(|| Arc::new(Job { key, program, outcome: OnceLock::new() })),
        };
        if self.closed {
            _ = job.outcome.set(Err(GpuError::Cancelled));
            return (job, false);
        }
        self.waiting.push((priority, job.clone()));
        (job, true)
    }

    fn cached(&mut self, key: &Key) -> Option<Compiled> {
        self.clock += 1;
        let cached = self.cached.get_mut(key)?;
        cached.requested = self.clock;
        Some(cached.module.clone())
    }

    /// Time until a request of a priority may begin; none if it waits for other requests or a hold.
    fn begins_in(&self, priority: Priority) -> Option<Duration> {
        let running = self.running.iter().map(|running| running.priority);
        if self.waiting.iter().map(|(waiting, _)| *waiting).chain(running).any(|other| other < priority) {
            return None;
        }
        match priority {
            Priority::Idle if self.holds > 0 => None,
            Priority::Idle => {
                Some(self.quiet_since.map_or(Duration::ZERO, |since| GRACE.saturating_sub(since.elapsed())))
            }
            Priority::Now | Priority::Soon => Some(Duration::ZERO),
        }
    }

    /// Ends a job; the programs to be dropped without the lock.
    fn end(&mut self, job: &Arc<Job>, idle_scheduling: bool, outcome: Result<Compiled>) -> Vec<Compiled> {
        let is_it = |running: &Running| Arc::ptr_eq(&running.job, job) && running.idle_scheduling == idle_scheduling;
        let place = self.running.iter().position(is_it).expect("it was begun");
        if self.running.remove(place).priority < Priority::Idle {
            self.quiet_since = Some(Instant::now());
        }
        // The job may wait, or run, a second time.
        self.waiting.retain(|(_, waiting)| !Arc::ptr_eq(waiting, job));
        if job.outcome.get().is_some() {
            return outcome.into_iter().collect();
        }
        let mut evicted = Vec::new();
        if let Ok(module) = &outcome {
            self.clock += 1;
            self.cached.insert(job.key.clone(), Cached { module: module.clone(), requested: self.clock });
            while self.cached.len() > self.cached_max
                && let Some(unused) = self.evict()
            {
                evicted.push(unused);
            }
        }
        _ = job.outcome.set(outcome);
        evicted
    }

    /// Evicts the least recently requested of the unused programs.
    fn evict(&mut self) -> Option<Compiled> {
        let unused = self.cached.iter().filter(|(_, cached)| Arc::strong_count(&cached.module) == 1);
        let key = unused.min_by_key(|(_, cached)| cached.requested)?.0.clone();
        self.cached.remove(&key).map(|cached| cached.module)
    }

    fn cancel(&mut self, of: impl Fn(Priority, u32) -> bool) {
        for (_, job) in self.waiting.extract_if(.., |(priority, job)| of(*priority, job.key.1)) {
            // A job that runs gets its outcome from the worker.
            if !self.running.iter().any(|running| Arc::ptr_eq(&running.job, &job)) {
                _ = job.outcome.set(Err(GpuError::Cancelled));
            }
        }
    }
}
