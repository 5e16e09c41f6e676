//! The threads that statements run on, and waiting for them from Python.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::Runtime;
use warpcube::{Database, WeakDatabase};

/// How often a waiting thread looks for Ctrl-C.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The threads of the process that has made them.
struct Threads {
    process: u32,
    runtime: Mutex<Option<Arc<Runtime>>>,
}

static THREADS: OnceLock<Threads> = OnceLock::new();

/// The threads; they are made when they are first asked for.
///
/// # Errors
/// A forked child has none of its parent's threads, and nothing would ever run; so has an interpreter that ends.
pub(crate) fn runtime() -> PyResult<Arc<Runtime>> {
    let threads = THREADS.get_or_init(|| Threads {
        process: std::process::id(),
        runtime: Mutex::new(warpcube::runtime().ok().map(Arc::new)),
    });
    if threads.process != std::process::id() {
        return Err(PyRuntimeError::new_err(
            "this process was forked from one that uses warpcube, whose threads it does not have; start processes by \
             'spawn', as multiprocessing.set_start_method('spawn') does",
        ));
    }
    let runtime = threads.runtime.lock().unwrap_or_else(PoisonError::into_inner);
    runtime
        .clone()
        .ok_or_else(|| PyRuntimeError::new_err("warpcube has no threads: none can be made, or the program ends"))
}

/// The databases that are open, while something holds them.
static DATABASES: Mutex<Vec<WeakDatabase>> = Mutex::new(Vec::new());

/// Has a database closed as the interpreter ends, if it is still open then.
pub(crate) fn close_at_end(database: &Database) {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    databases.retain(|database| database.upgrade().is_some());
    databases.push(database.downgrade());
}

/// Ends the threads as the interpreter ends, without waiting for statements that still run, and closes devices: a
/// compiler that a thread starts later would find its library destroyed.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    let databases = std::mem::take(&mut *DATABASES.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| databases.iter().filter_map(WeakDatabase::upgrade).for_each(|database| warpcube::close(&database)));
    let Some(threads) = THREADS.get().filter(|threads| threads.process == std::process::id()) else { return };
    let runtime = threads.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(runtime) = runtime.and_then(Arc::into_inner) {
        runtime.shutdown_background();
    }
}

/// Does work on the threads and waits for it without the interpreter's lock. The work is given up when Python has an
/// exception to raise, as KeyboardInterrupt after Ctrl-C.
pub(crate) fn wait<T: Send + 'static>(py: Python<'_>, work: impl Future<Output = T> + Send + 'static) -> PyResult<T> {
    let mut task = runtime()?.spawn(work);
    loop {
        match py.detach(|| done_within(Pin::new(&mut task), TICK)) {
            Some(Ok(done)) => return Ok(done),
            Some(Err(error)) => return Err(PyRuntimeError::new_err(error.to_string())),
            None => py.check_signals().inspect_err(|_| task.abort())?,
        }
    }
}

/// Waits for work of other threads for so long, on whatever thread this is: one of another runtime too.
pub(crate) fn done_within<T>(mut work: Pin<&mut impl Future<Output = T>>, time: Duration) -> Option<T> {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let (mut context, end) = (Context::from_waker(&waker), Instant::now() + time);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return Some(done);
        }
        let left = end.checked_duration_since(Instant::now())?;
        std::thread::park_timeout(left);
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
