//! Two runtimes: one whose threads do the work, and one for this thread, which watches.
//!
//! Signals and timers are served by a runtime's idle threads. A statement may keep every working thread busy without a
//! pause, so Ctrl-C and timeouts are watched from a runtime that does nothing else.

use std::future::Future;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use warpcube_gpu::Device;
use warpcube_sql::{Session, SqlError};

use crate::error::{CliError, Result};

/// Where work and waiting are done.
pub(crate) struct Host {
    watch: Runtime,
    /// None only once the host is dropped.
    work: Mutex<Option<Runtime>>,
    /// Held by each thread that ends a runtime, and told when none is left. None only once the host is dropped.
    alive: Option<Sender<()>>,
    ended: Mutex<Receiver<()>>,
}

impl Host {
    /// Starts the threads.
    pub(crate) fn new() -> Result<Host> {
        let failed = |error: std::io::Error| CliError::Usage(format!("no threads to run on: {error}"));
        let watch = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (alive, ended) = channel();
        let work = Mutex::new(Some(Runtime::new().map_err(failed)?));
        Ok(Host { watch, work, alive: Some(alive), ended: Mutex::new(ended) })
    }

    /// Starts work on the working threads.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.runtime().spawn(work)
    }

    /// Starts work that blocks.
    pub(crate) fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.runtime().spawn_blocking(work)
    }

    /// Waits on this thread for what is done elsewhere.
    pub(crate) fn block_on<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.watch.block_on(waiting)
    }

    /// Does work on the working threads until it ends or the user interrupts it.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        let mut interrupts = self.interrupts()?;
        let mut task = self.spawn(work);
        self.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    task.abort();
                    self.abandon()?;
                    Err(SqlError::Cancelled.into())
                }
                ended = &mut task => match ended {
                    Ok(result) => result,
                    Err(error) => Err(SqlError::Internal(error.to_string()).into()),
                },
            }
        })
    }

    /// Ctrl-C from now on.
    pub(crate) fn interrupts(&self) -> Result<Signal> {
        let _guard = self.watch.enter();
        signal(SignalKind::interrupt()).map_err(|error| CliError::Usage(format!("no signals here: {error}")))
    }

    /// Lets go of everything that runs, and goes on with new threads: the old ones end when what they are busy with
    /// gives control back, which may be long after.
    pub(crate) fn abandon(&self) -> Result<()> {
        let fresh = Runtime::new().map_err(|error| CliError::Usage(format!("no threads to run on: {error}")))?;
        if let Some(old) = self.lock().replace(fresh) {
            self.end(old);
        }
        Ok(())
    }

    /// Ends a runtime on a thread that waits for its threads, since nobody else does.
    fn end(&self, runtime: Runtime) {
        let alive = self.alive.clone();
        // Without a thread to wait on this one does.
        _ = std::thread::Builder::new().name("end".into()).spawn(move || drop((runtime, alive)));
    }

    fn runtime(&self) -> Handle {
        self.lock().as_ref().expect("the working threads live as long as their host").handle().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Runtime>> {
        // A runtime is replaced as a whole, so a panic elsewhere leaves a good one.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of a session for good, before the process ends.
pub(crate) fn leave(session: &Session) {
    let device = session.device().close();
    // Statements that were let go may still be busy: they get no compiler that the end would take apart.
    device.iter().for_each(Device::close);
    session.close();
    // The driver takes back what a process leaves, and sooner than it is given back; nor is a thread that lets go of
    // the device last to do so beside the end.
    std::mem::forget(device);
}

/// How long the threads of a program that ends have to end before it.
const END: Duration = Duration::from_millis(200);

impl Drop for Host {
    fn drop(&mut self) {
        // Threads that have nothing to do end at once, and give up what libraries keep for them while those are there.
        // A statement that was let go may still be busy; nobody waits for it any longer.
        let work = self.lock().take();
        if let Some(work) = work {
            self.end(work);
        }
        self.alive = None;
        // Nothing is ever sent: this waits until nobody could.
        _ = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(END);
    }
}
