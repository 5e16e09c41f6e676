//! The threads that statements run on, and waiting for them from Python.
//!
//! A statement may keep every thread of its own ([`Crew`]) busy without a pause. So its time is watched by the thread
//! that waits for it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use warpcube::{Crew, Database, Threads, WeakDatabase};

/// How often a waiting thread looks for Ctrl-C.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// Sets of threads for statements that run at once.
const SETS: usize = 16;

/// What the process has.
struct Shared {
    process: u32,
    /// None if no threads can be made.
    crew: Option<Crew>,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

/// The databases that are open, while something holds them.
static DATABASES: Mutex<Vec<WeakDatabase>> = Mutex::new(Vec::new());

/// The error where there are no threads.
pub(crate) fn ended() -> PyErr {
    PyRuntimeError::new_err("warpcube has no threads: none can be made, or the program ends")
}

fn shared() -> &'static Shared {
    SHARED.get_or_init(|| Shared { process: std::process::id(), crew: Crew::new(warpcube::runtime, SETS).ok() })
}

/// The threads; they are made when they are first asked for.
///
/// # Errors
/// A forked child has none of its parent's threads, and nothing would ever run; so has an interpreter that ends.
pub(crate) fn threads() -> PyResult<Arc<Threads>> {
    let shared = shared();
    if shared.process != std::process::id() {
        return Err(PyRuntimeError::new_err(
            "this process was forked from one that uses warpcube, whose threads it does not have; start processes by \
             'spawn', as multiprocessing.set_start_method('spawn') does",
        ));
    }
    shared.crew.as_ref().and_then(Crew::threads).ok_or_else(ended)
}

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
    if let Some(crew) = SHARED.get().and_then(|shared| shared.crew.as_ref()) {
        crew.end(Duration::ZERO);
    }
}

/// Does work on the threads and waits for it without the interpreter's lock. The work is given up when Python has an
/// exception to raise, as KeyboardInterrupt after Ctrl-C.
pub(crate) fn wait<T: Send + 'static>(py: Python<'_>, work: impl Future<Output = T> + Send + 'static) -> PyResult<T> {
    let threads = threads()?;
    let mut task = threads.spawn(work).ok_or_else(ended)?;
    loop {
        match py.detach(|| done_within(Pin::new(&mut task), TICK)) {
            Some(Ok(done)) => return Ok(done),
            Some(Err(error)) => return Err(PyRuntimeError::new_err(error.to_string())),
            None => {
                if let Err(raised) = py.check_signals() {
                    task.abort();
                    return Err(raised);
                }
            }
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
