//! The queue of programs to be compiled: one a device, by program and architecture.
//!
//! A request names a [`Priority`] and gets a [`Handle`], which its caller waits for, polls or drops. A program that is
//! requested twice is compiled once; a request of a higher priority raises one that has not begun. The rules:
//!
//! 1. Requests of one priority begin in the order in which they came or were raised, on a few workers.
//! 2. None begins while one of a higher priority waits or runs.
//! 3. An idle one begins 20 ms after the last of the others, and not while it is held back ([`Queue::hold_idle`]).
//! 4. A program that a call waits for while a worker that leaves the cores compiles it is begun again; the first
//!    outcome counts.
//!
//! Compiled programs are kept, up to [`KEPT_MAX`] of them that nothing else uses. An error reaches every handle, and a
//! later request compiles again. A worker is a thread that ends when no request of its priority waits; workers are
//! joined, since a process that ends while the compiler runs, or before a thread has given up what the compiler keeps
//! for it, takes the compiler apart under its own hands.

mod compilation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backend::BackendModule;
use crate::error::{GpuError, Result};
use crate::program::Program;
use crate::threads::{Threads, has_left_cores, leave_cores, stand_back};

pub use compilation::Compilation;

/// What waits for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A call, or a load that will ask for it once it has read.
    Now,
    /// A statement whose rows are computed by other means meanwhile: workers stand back behind threads of statements.
    Soon,
    /// Nothing: workers leave the cores to all other threads.
    Idle,
}

impl Priority {
    /// What a request of this priority counts for on this thread. A thread that left the cores works for later, and the
    /// workers that it starts leave the cores too: none of them may be one that a statement waits for.
    pub(crate) fn on_this_thread(self) -> Priority {
        if self == Priority::Now && has_left_cores() { Priority::Soon } else { self }
    }
}

/// Workers of each priority. Compilers of one process wait for each other most of the time: six programs take two
/// threads 0.6 times as long as one, and more threads no less.
const WORKERS: [usize; 3] = [2, 2, 1];

/// How long no other request must have been there before an idle one begins: a statement that has loaded its columns
/// asks for its kernels at once.
const GRACE: Duration = Duration::from_millis(20);

/// Compiled programs that are kept. Of more, those are given up that nothing uses, the least recently requested first.
const KEPT_MAX: usize = 512;

/// The hash of a program and the architecture that it is compiled for (`90` for Hopper).
type Key = (Arc<str>, u32);

/// A compiled program.
type Made = Arc<dyn BackendModule>;

/// Compiles a program; the flag says whether a compiler had to run.
type Compiler = dyn Fn(&Program, u32) -> Result<(Made, bool)> + Send + Sync;

/// Requests, workers and what they have made.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    threads: Threads,
}

struct Shared {
    compiler: Box<Compiler>,
    /// Whether a program takes the compiler seconds: an idle worker then takes its share of the cores.
    slow: bool,
    state: Mutex<State>,
    /// Told of every change of the state.
    changed: Condvar,
    compiles: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: Vec<(Priority, Arc<Job>)>,
    running: Vec<Running>,
    kept: HashMap<Key, Kept>,
    kept_max: usize,
    /// Counts requests for what is kept.
    clock: u64,
    /// Threads of each priority.
    workers: [usize; 3],
    /// Guards that hold idle requests back.
    holds: usize,
    /// When the last request that is not idle, or the last hold, ended.
    quiet_since: Option<Instant>,
    closed: bool,
}

/// A job on a worker.
struct Running {
    priority: Priority,
    /// Whether the worker left the cores: it may take any time while others want them.
    has_left_cores: bool,
    job: Arc<Job>,
}

struct Kept {
    made: Made,
    requested: u64,
}

struct Job {
    key: Key,
    program: Program,
    /// Set once, under the lock of the state.
    outcome: OnceLock<Result<Made>>,
}

/// One request.
pub(crate) struct Handle {
    job: Arc<Job>,
    shared: Arc<Shared>,
}

impl Handle {
    /// The program that was requested.
    pub(crate) fn program(&self) -> &Program {
        &self.job.program
    }

    /// Waits for the outcome: [`GpuError::Cancelled`] if the request was taken back.
    pub(crate) fn wait(&self) -> Result<Made> {
        let mut state = self.shared.state.lock();
        loop {
            match self.poll() {
                Some(outcome) => return outcome,
                None => self.shared.changed.wait(&mut state),
            }
        }
    }

    /// The outcome, if there is one by now.
    pub(crate) fn poll(&self) -> Option<Result<Made>> {
        self.job.outcome.get().cloned()
    }
}

/// Holds idle requests back until it is dropped ([`crate::Device::hold_idle`]).
pub struct IdleHold(Arc<Shared>);

impl fmt::Debug for IdleHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdleHold")
    }
}

impl Drop for IdleHold {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.holds -= 1;
        state.quiet_since = Some(Instant::now());
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// An empty queue; `slow` if a program takes the compiler seconds.
    pub(crate) fn new(
        slow: bool,
        compiler: impl Fn(&Program, u32) -> Result<(Made, bool)> + Send + Sync + 'static,
    ) -> Queue {
        let state = Mutex::new(State { kept_max: KEPT_MAX, ..State::default() });
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
                Priority::Idle if !shared.slow => leave_cores(),
                Priority::Soon | Priority::Idle => stand_back(),
            }
            shared.work(priority);
        };
        if let Err(error) = self.threads.spawn("compile", work) {
            tracing::warn!(%error, "no thread to compile on");
            if priority > Priority::Now {
                self.forget(|waiting, _| waiting == priority);
            }
            self.shared.work(priority);
        }
    }

    /// What was made of a program, if it is kept.
    pub(crate) fn get(&self, program: &Program, architecture: u32) -> Option<Made> {
        self.shared.state.lock().kept(&(program.hash().clone(), architecture))
    }

    /// Holds idle requests back.
    pub(crate) fn hold_idle(&self) -> IdleHold {
        self.shared.state.lock().holds += 1;
        IdleHold(self.shared.clone())
    }

    /// Takes back the waiting requests of these priorities and architectures.
    pub(crate) fn forget(&self, of: impl Fn(Priority, u32) -> bool) {
        self.shared.state.lock().forget(of);
        self.shared.changed.notify_all();
    }

    /// Takes back all waiting requests, and refuses further ones for what is not kept.
    pub(crate) fn close(&self) {
        self.shared.state.lock().closed = true;
        self.forget(|_, _| true);
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

    /// How often a compiler had to run.
    pub(crate) fn compiles(&self) -> u64 {
        self.shared.compiles.load(Ordering::Relaxed)
    }
}

impl Drop for Queue {
    /// Workers that run are joined as the threads are dropped.
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Compiles what waits at a priority until nothing does.
    fn work(&self, priority: Priority) {
        let has_left_cores = has_left_cores();
        let mut state = self.state.lock();
        while let Some(job) = self.begin(&mut state, priority) {
            state.running.push(Running { priority, has_left_cores, job: job.clone() });
            let outcome = MutexGuard::unlocked(&mut state, || self.compile(&job));
            let given_up = state.end(&job, has_left_cores, outcome);
            self.changed.notify_all();
            MutexGuard::unlocked(&mut state, || drop(given_up));
        }
        state.workers[priority as usize] -= 1;
        self.changed.notify_all();
    }

    /// Takes the next request of a priority as soon as one may begin; none if none waits.
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

    fn compile(&self, Job { program, key, .. }: &Job) -> Result<Made> {
        let name = || program.name().to_string();
        let panicked = |_| Err(GpuError::Compile { program: name(), log: "the compiler panicked".into() });
        match catch_unwind(AssertUnwindSafe(|| (self.compiler)(program, key.1))).unwrap_or_else(panicked) {
            Ok((made, ran)) => {
                self.compiles.fetch_add(u64::from(ran), Ordering::Relaxed);
                Ok(made)
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
    /// The job of a program, and whether it waits anew at this priority.
    fn request(&mut self, program: &Program, architecture: u32, priority: Priority) -> (Arc<Job>, bool) {
        let (key, program) = ((program.hash().clone(), architecture), program.clone());
        if let Some(made) = self.kept(&key) {
            return (Arc::new(Job { key, program, outcome: Ok(made).into() }), false);
        }
        let running = self.running.iter_mut().filter(|running| running.job.key == key);
        let running = match running.min_by_key(|running| running.priority) {
            Some(running) if !running.has_left_cores || priority > Priority::Now || self.closed => {
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

    fn kept(&mut self, key: &Key) -> Option<Made> {
        self.clock += 1;
        let kept = self.kept.get_mut(key)?;
        kept.requested = self.clock;
        Some(kept.made.clone())
    }

    /// How long until a request of a priority may begin; none if that depends on others.
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

    /// Ends a job, and gives what is no longer kept.
    fn end(&mut self, job: &Arc<Job>, has_left_cores: bool, outcome: Result<Made>) -> Vec<Made> {
        let is_it = |running: &Running| Arc::ptr_eq(&running.job, job) && running.has_left_cores == has_left_cores;
        let place = self.running.iter().position(is_it).expect("it was begun");
        if self.running.remove(place).priority < Priority::Idle {
            self.quiet_since = Some(Instant::now());
        }
        // It may wait, or run, a second time.
        self.waiting.retain(|(_, waiting)| !Arc::ptr_eq(waiting, job));
        if job.outcome.get().is_some() {
            return outcome.into_iter().collect();
        }
        let mut given_up = Vec::new();
        if let Ok(made) = &outcome {
            self.clock += 1;
            self.kept.insert(job.key.clone(), Kept { made: made.clone(), requested: self.clock });
            while self.kept.len() > self.kept_max
                && let Some(unused) = self.give_up()
            {
                given_up.push(unused);
            }
        }
        _ = job.outcome.set(outcome);
        given_up
    }

    /// Keeps the least recently requested program no longer, of those that nothing uses.
    fn give_up(&mut self) -> Option<Made> {
        let unused = self.kept.iter().filter(|(_, kept)| Arc::strong_count(&kept.made) == 1);
        let key = unused.min_by_key(|(_, kept)| kept.requested)?.0.clone();
        self.kept.remove(&key).map(|kept| kept.made)
    }

    fn forget(&mut self, of: impl Fn(Priority, u32) -> bool) {
        for (_, job) in self.waiting.extract_if(.., |(priority, job)| of(*priority, job.key.1)) {
            // One that runs already has an outcome to come.
            if !self.running.iter().any(|running| Arc::ptr_eq(&running.job, &job)) {
                _ = job.outcome.set(Err(GpuError::Cancelled));
            }
        }
    }
}
