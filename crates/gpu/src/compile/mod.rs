//! A compile queue, by program and architecture; CUDA devices share that of the process.
//!
//! Devices are *clients* of a queue ([`Client`]). A request has a [`Priority`] and returns a [`Handle`] to wait for,
//! poll or drop. A program requested twice, by one client or by several, is compiled once, and the worker has each of
//! its clients load the machine code; a request of a higher priority raises one that waits. The rules:
//!
//! 1. Requests of one priority begin in the order of their arrival or raising, on a few workers.
//! 2. No request begins while one of a higher priority waits or runs.
//! 3. An idle request begins 20 ms after the last of the others, and not while a hold exists ([`Queue::hold_idle`]).
//! 4. A program that a call waits for while a worker under idle scheduling compiles it is compiled a second time; the
//!    first outcome counts.
//!
//! The last [`IMAGES_MAX`] images are cached; clients cache the modules they load ([`crate::modules`]). An error
//! reaches every handle, and a later request compiles again. A worker is a thread that ends when no request of its
//! priority waits. Workers are joined, because `exit` destroys the state of the compiler, which a running thread would
//! use.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::backend::Image;
use crate::error::{GpuError, Result};
use crate::modules::Recent;
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

/// Limit of cached images: those that were compiled before their device was open, and those that a second device loads.
const IMAGES_MAX: usize = 128;

/// Hash of a program, and its target architecture (`90` for Hopper).
type Key = (Arc<str>, u32);

/// Compiles a program; the flag is true if a compiler ran.
type Compiler = dyn Fn(&Program, u32) -> Result<(Image, bool)> + Send + Sync;

/// Loads the image of a program for a client.
type Loader = dyn Fn(&Program, &Image) + Send + Sync;

/// Requests, workers and images.
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

struct State {
    waiting: Vec<(Priority, Arc<Job>)>,
    running: Vec<Running>,
    images: Recent<Key, Image>,
    /// Loaders of the clients that have one, by their numbers.
    loaders: HashMap<u64, Arc<Loader>>,
    /// Threads of each priority.
    workers: [usize; 3],
    /// Guards that hold idle requests back.
    holds: usize,
    /// End of the last request that is not idle, or of the last hold.
    quiet_since: Option<Instant>,
}

/// A job on a worker.
struct Running {
    priority: Priority,
    /// True if the worker runs under idle scheduling: busy cores delay it without limit.
    idle_scheduling: bool,
    job: Arc<Job>,
}

struct Job {
    key: Key,
    program: Program,
    /// Numbers of the clients that have requested it and not cancelled. Changed under the lock of the state.
    clients: Mutex<BTreeSet<u64>>,
    /// Set once, under the lock of the state.
    outcome: OnceLock<Result<Arc<Image>>>,
}

/// A device's access to a queue. Dropping it closes it and waits for its requests that run.
pub(crate) struct Client {
    queue: Arc<Queue>,
    /// Unlike those of other clients of any queue.
    number: u64,
    closed: AtomicBool,
}

/// One request.
pub(crate) struct Handle {
    job: Arc<Job>,
    shared: Arc<Shared>,
}

impl Handle {
    /// Waits for the outcome; [`GpuError::Cancelled`] for a cancelled request.
    pub(crate) fn wait(&self) -> Result<Arc<Image>> {
        let mut state = self.shared.state.lock();
        loop {
            match self.poll() {
                Some(outcome) => return outcome,
                None => self.shared.changed.wait(&mut state),
            }
        }
    }

    /// The outcome, or none while the request waits or runs.
    pub(crate) fn poll(&self) -> Option<Result<Arc<Image>>> {
        self.job.outcome.get().cloned()
    }

    /// The requested program.
    pub(crate) fn program(&self) -> &Program {
        &self.job.program
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
        compiler: impl Fn(&Program, u32) -> Result<(Image, bool)> + Send + Sync + 'static,
    ) -> Queue {
        let state = State {
            waiting: Vec::new(),
            running: Vec::new(),
            images: Recent::new(IMAGES_MAX),
            loaders: HashMap::new(),
            workers: [0; 3],
            holds: 0,
            quiet_since: None,
        };
        let (state, changed, compiles) = (Mutex::new(state), Condvar::new(), AtomicU64::new(0));
        let shared = Shared { compiler: Box::new(compiler), slow, state, changed, compiles };
        Queue { shared: Arc::new(shared), threads: Threads::default() }
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
                self.shared.state.lock().cancel(|waiting, _| waiting == priority, None);
                self.shared.changed.notify_all();
            }
            self.shared.work(priority);
        }
    }
}

impl Client {
    /// A client of a queue, without requests.
    pub(crate) fn new(queue: Arc<Queue>) -> Client {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Client { queue, number: NUMBERS.fetch_add(1, Ordering::Relaxed), closed: AtomicBool::new(false) }
    }

    /// From now on workers call `load` for each program of this client that they have compiled, before its handles get
    /// the outcome.
    pub(crate) fn loads(&self, load: impl Fn(&Program, &Image) + Send + Sync + 'static) {
        self.queue.shared.state.lock().loaders.insert(self.number, Arc::new(load));
    }

    /// Requests a program for an architecture.
    pub(crate) fn request(&self, program: &Program, architecture: u32, priority: Priority) -> Handle {
        let (shared, mut state) = (self.queue.shared.clone(), self.queue.shared.state.lock());
        let closed = self.closed.load(Ordering::Relaxed);
        let (job, is_new) = state.request(program, architecture, priority, closed);
        job.clients.lock().insert(self.number);
        let workers = &mut state.workers[priority as usize];
        if is_new && *workers < WORKERS[priority as usize] {
            *workers += 1;
            drop(state);
            self.queue.start_worker(priority);
        }
        Handle { job, shared }
    }

    /// True if the image of a program is cached.
    pub(crate) fn has(&self, program: &Program, architecture: u32) -> bool {
        self.queue.shared.state.lock().images.get(&(program.hash().clone(), architecture)).is_some()
    }

    /// Delays idle requests, of all clients.
    pub(crate) fn hold_idle(&self) -> IdleHold {
        self.queue.shared.state.lock().holds += 1;
        IdleHold(self.queue.shared.clone())
    }

    /// Cancels the client's waiting requests of these priorities and architectures; a program that another client has
    /// requested, too, is compiled all the same.
    pub(crate) fn cancel(&self, of: impl Fn(Priority, u32) -> bool) {
        self.queue.shared.state.lock().cancel(of, Some(self.number));
        self.queue.shared.changed.notify_all();
    }

    /// Cancels the client's waiting requests, and later ones of programs that are not cached.
    pub(crate) fn close(&self) {
        let state = self.queue.shared.state.lock();
        self.closed.store(true, Ordering::Relaxed);
        drop(state);
        self.cancel(|_, _| true);
    }

    /// Waits until none of the client's requests waits or runs. If no other client has one either, waits until the
    /// workers have ended.
    pub(crate) fn settle(&self) {
        let mut state = self.queue.shared.state.lock();
        while state.jobs().any(|job| job.clients.lock().contains(&self.number))
            || (state.jobs().next().is_none() && state.workers != [0; 3])
        {
            self.queue.shared.changed.wait(&mut state);
        }
        let ended = state.workers == [0; 3];
        drop(state);
        if ended {
            self.queue.threads.join();
        }
    }

    /// Number of runs of the queue's compiler.
    pub(crate) fn compiles(&self) -> u64 {
        self.queue.shared.compiles.load(Ordering::Relaxed)
    }
}

impl Drop for Client {
    /// Dropping the last client's queue joins the workers.
    fn drop(&mut self) {
        self.close();
        self.settle();
        self.queue.shared.state.lock().loaders.remove(&self.number);
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
            if let Ok(image) = &outcome {
                self.load(&mut state, &job, image);
            }
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

    /// Has each client of a job load its image, those too that request it meanwhile.
    fn load(&self, state: &mut MutexGuard<'_, State>, job: &Job, image: &Image) {
        let mut loaded = BTreeSet::new();
        let next = |state: &State, loaded: &mut BTreeSet<u64>| {
            let clients = job.clients.lock();
            let number =
                clients.iter().find(|number| !loaded.contains(*number) && state.loaders.contains_key(*number))?;
            loaded.insert(*number);
            state.loaders.get(number).cloned()
        };
        while let Some(load) = next(state, &mut loaded) {
            // A module that was not loaded is loaded, and its error reported, at its first use.
            MutexGuard::unlocked(state, || drop(catch_unwind(AssertUnwindSafe(|| load(&job.program, image)))));
        }
    }

    fn compile(&self, Job { program, key, .. }: &Job) -> Result<Arc<Image>> {
        let name = || program.name().to_string();
        let panicked = |_| Err(GpuError::Compile { program: name(), log: "the compiler panicked".into() });
        match catch_unwind(AssertUnwindSafe(|| (self.compiler)(program, key.1))).unwrap_or_else(panicked) {
            Ok((image, ran)) => {
                self.compiles.fetch_add(u64::from(ran), Ordering::Relaxed);
                Ok(Arc::new(image))
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
    fn request(&mut self, program: &Program, architecture: u32, priority: Priority, closed: bool) -> (Arc<Job>, bool) {
        let (key, program, clients) = ((program.hash().clone(), architecture), program.clone(), Mutex::default());
        if let Some(image) = self.images.get(&key) {
            return (Arc::new(Job { key, program, clients, outcome: Ok(image).into() }), false);
        }
        let running = self.running.iter_mut().filter(|running| running.job.key == key);
        let running = match running.min_by_key(|running| running.priority) {
            Some(running) if !running.idle_scheduling || priority > Priority::Now || closed => {
                running.priority = priority.min(running.priority);
                return (running.job.clone(), false);
            }
            running => running.map(|running| running.job.clone()),
        };
        let job = match self.waiting.iter().position(|(_, job)| job.key == key) {
            // A closed client raises no request of another.
            Some(place) if self.waiting[place].0 <= priority || closed => {
                return (self.waiting[place].1.clone(), false);
            }
            Some(place) => self.waiting.remove(place).1,
            None if closed => {
                let outcome = Err(GpuError::Cancelled).into();
                return (Arc::new(Job { key, program, clients, outcome }), false);
            }
            None => running.unwrap_or_else(|| Arc::new(Job { key, program, clients, outcome: OnceLock::new() })),
        };
        self.waiting.push((priority, job.clone()));
        (job, true)
    }

    /// Jobs that wait or run.
    fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.waiting.iter().map(|(_, job)| job).chain(self.running.iter().map(|running| &running.job))
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

    /// Ends a job; the images to be dropped without the lock.
    fn end(&mut self, job: &Arc<Job>, idle_scheduling: bool, outcome: Result<Arc<Image>>) -> Vec<Arc<Image>> {
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
        let evicted = match &outcome {
            Ok(image) => self.images.insert(job.key.clone(), image.clone()),
            Err(_) => Vec::new(),
        };
        _ = job.outcome.set(outcome);
        evicted
    }

    /// Cancels the waiting jobs of these priorities and architectures that no client but this one has requested, or all
    /// of them.
    fn cancel(&mut self, of: impl Fn(Priority, u32) -> bool, client: Option<u64>) {
        let State { waiting, running, .. } = self;
        let runs = |job: &Arc<Job>| running.iter().any(|running| Arc::ptr_eq(&running.job, job));
        let is_left = |priority: Priority, job: &Arc<Job>| {
            let mut clients = job.clients.lock();
            match client {
                _ if !of(priority, job.key.1) => false,
                None => true,
                Some(number) if !clients.contains(&number) => false,
                // A client waits for a job that runs, though it waits a second time.
                Some(_) if runs(job) => clients.len() == 1,
                Some(number) => clients.remove(&number) && clients.is_empty(),
            }
        };
        for (_, job) in waiting.extract_if(.., |(priority, job)| is_left(*priority, job)) {
            // A job that runs gets its outcome from the worker.
            if !runs(&job) {
                _ = job.outcome.set(Err(GpuError::Cancelled));
            }
        }
    }
}
