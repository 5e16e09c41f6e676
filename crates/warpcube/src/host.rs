//! Two runtimes: one whose threads do the work, and one for this thread, which watches.
//!
//! Signals and timers are served by a runtime's idle threads. A statement may keep every working thread busy without a
//! pause, so Ctrl-C and timeouts are watched from a runtime that does nothing else. Threads have large stacks: plans
//! are trees, and walking one takes a frame a level.

use std::future::Future;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use warpcube_sql::{Database, SqlError};

use crate::error::{CliError, Result};
use crate::signals::Ending;

/// How often work that goes on is looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// Bytes of address space for the stack of each thread; memory is taken as it is touched.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// The runtimes of the program.
pub(crate) struct Host {
    watch: Runtime,
    ending: Ending,
    /// None only once the host is dropped.
    work: Mutex<Option<Runtime>>,
    /// A clone is held by each thread that ends a runtime; `ended` fails when none is left. None only once the host is
    /// dropped.
    alive: Option<Sender<()>>,
    ended: Mutex<Receiver<()>>,
}

impl Host {
    /// Starts the threads.
    pub(crate) fn new() -> Result<Host> {
        let failed = |error: std::io::Error| CliError::Usage(format!("the program cannot start its threads: {error}"));
        let watch = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let ending = Ending::listen().map_err(failed)?;
        let (alive, ended) = channel();
        let work = Mutex::new(Some(working().map_err(failed)?));
        Ok(Host { watch, ending, work, alive: Some(alive), ended: Mutex::new(ended) })
    }

    /// Remembers a database, which is closed when a signal ends the program.
    pub(crate) fn hold(&self, database: &Database) {
        self.ending.hold(database);
    }

    /// Leaves the end of the program to this thread at the first signal, which [`Interrupts`] tell of.
    pub(crate) fn serve(&self) {
        self.ending.serve();
    }

    /// Starts work on the working threads.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.threads().spawn(work)
    }

    /// Starts work that blocks.
    pub(crate) fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.threads().spawn_blocking(work)
    }

    /// Waits on this thread for work of other threads.
    pub(crate) fn block_on<T>(&self, waiting: impl Future<Output = T>) -> T {
        let _watching = self.ending.watching();
        self.watch.block_on(waiting)
    }

    /// Does work on the working threads until it ends or the user interrupts it.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        self.run_and(work, || {}, || true)
    }

    /// As [`Host::run`], and calls `tick` on this thread while the work goes on. An interrupt calls `cancel`; if that
    /// gives false, the work has committed its changes and is waited for.
    pub(crate) fn run_and<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
        mut tick: impl FnMut(),
        cancel: impl Fn() -> bool,
    ) -> Result<T> {
        let mut interrupts = self.interrupts()?;
        let mut task = self.spawn(work);
        self.block_on(async {
            let mut ticks = tokio::time::interval(TICK);
            let mut is_committed = false;
            loop {
                tokio::select! {
                    biased;
                    () = interrupts.recv(), if !is_committed => {
                        is_committed = !cancel();
                        if is_committed {
                            continue;
                        }
                        task.abort();
                        self.abandon()?;
                        return Err(SqlError::Cancelled.into());
                    }
                    _ = ticks.tick() => tick(),
                    ended = &mut task => {
                        return ended.unwrap_or_else(|error| Err(SqlError::Internal(error.to_string()).into()));
                    }
                }
            }
        })
    }

    /// Ctrl-C from now on, and the signals that end the program.
    pub(crate) fn interrupts(&self) -> Result<Interrupts> {
        let _guard = self.watch.enter();
        let interrupt = signal(SignalKind::interrupt());
        let interrupt = interrupt.map_err(|error| CliError::Usage(format!("no signals here: {error}")))?;
        Ok(Interrupts { interrupt, told: self.ending.told() })
    }

    /// Abandons all running work and goes on with new threads. The old threads end when their work returns control,
    /// which may be long after.
    pub(crate) fn abandon(&self) -> Result<()> {
        let fresh =
            working().map_err(|error| CliError::Usage(format!("the program cannot start its threads: {error}")))?;
        if let Some(old) = self.lock().replace(fresh) {
            self.end(old);
        }
        Ok(())
    }

    /// Ends a runtime on a new thread, which waits for the runtime's threads.
    fn end(&self, runtime: Runtime) {
        let alive = self.alive.clone();
        // If the thread cannot be made, this one waits.
        _ = std::thread::Builder::new().name("end".into()).spawn(move || drop((runtime, alive)));
    }

    /// The working threads.
    pub(crate) fn threads(&self) -> Handle {
        self.lock().as_ref().expect("the working threads live as long as their host").handle().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Runtime>> {
        // A runtime is replaced as a whole, so a panic elsewhere leaves a good one.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads that do the work of statements: their stacks are large enough for the plans of large ones.
///
/// # Errors
/// The system gives no threads.
pub fn working() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build()
}

/// Events that end a statement: Ctrl-C, and the end of the program.
pub(crate) struct Interrupts {
    interrupt: Signal,
    told: watch::Receiver<bool>,
}

impl Interrupts {
    /// Waits for the next Ctrl-C, or for the end of the program.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.told.wait_for(|told| *told) => {}
        }
    }

    /// Waits for the next Ctrl-C alone.
    pub(crate) async fn interrupt(&mut self) {
        self.interrupt.recv().await;
    }
}

/// How long the threads of a program that ends have to end before it.
const END: Duration = Duration::from_millis(200);

impl Drop for Host {
    fn drop(&mut self) {
        // Idle threads end at once and destroy their thread-local state while the libraries are still loaded. The
        // thread of an abandoned statement may still run; it is waited for no longer than `END`.
        let work = self.lock().take();
        if let Some(work) = work {
            self.end(work);
        }
        self.alive = None;
        // Nothing is ever sent: the wait ends when the last sender is dropped.
        _ = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(END);
    }
}
