//! The threads that statements run on.
//!
//! An operator may keep a thread for long after its statement was cancelled, and all threads may be kept so. Where a
//! statement that was given up has not ended after a moment, those that begin from then on get threads of their own;
//! the former ones go with the last statement that runs on them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinHandle};

/// How long a statement that was given up may go on before it gets the threads to itself.
const GRACE: Duration = Duration::from_millis(100);

/// Makes threads.
pub type MakeThreads = fn() -> io::Result<Runtime>;

/// Threads that go with whatever still runs on them.
pub struct Threads(Option<Runtime>);

impl Threads {
    /// Starts work; none only if the threads are gone, which nobody has then.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<JoinHandle<T>> {
        self.0.as_ref().map(|runtime| runtime.spawn(work))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The threads of the statements that begin.
pub struct Crew {
    make: MakeThreads,
    state: Mutex<State>,
}

struct State {
    /// None once the server has ended.
    threads: Option<Arc<Threads>>,
    /// Statements that were given up on these threads, and when.
    given_up: Vec<(Instant, AbortHandle)>,
}

impl Crew {
    /// # Errors
    /// The system gives no threads.
    pub fn new(make: MakeThreads) -> io::Result<Crew> {
        let threads = Some(Arc::new(Threads(Some(make()?))));
        Ok(Crew { make, state: Mutex::new(State { threads, given_up: Vec::new() }) })
    }

    /// The threads of the next statement; none once the server has ended.
    pub fn threads(&self) -> Option<Arc<Threads>> {
        let mut state = self.lock();
        state.given_up.retain(|(_, task)| !task.is_finished());
        let is_kept = state.given_up.iter().any(|(since, _)| since.elapsed() > GRACE);
        // Without new threads the old ones have to do.
        if is_kept
            && state.threads.is_some()
            && let Ok(fresh) = (self.make)()
        {
            state.threads = Some(Arc::new(Threads(Some(fresh))));
            state.given_up.clear();
        }
        state.threads.clone()
    }

    /// Notes a statement that nobody waits for any more.
    pub fn give_up(&self, task: AbortHandle) {
        if !task.is_finished() {
            self.lock().given_up.push((Instant::now(), task));
        }
    }

    /// Ends the threads, for which idle ones have so long. Called outside of a runtime.
    pub fn end(&self, patience: Duration) {
        let threads = self.lock().threads.take();
        let runtime = threads.and_then(Arc::into_inner).and_then(|mut threads| threads.0.take());
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(patience);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn threads_that_are_kept_are_replaced() {
        let crew = Crew::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build()).unwrap();
        let first = crew.threads().unwrap();
        let ((release, kept), (began, begins)) = (channel::<()>(), channel());
        let busy = first.spawn(async move {
            began.send(()).unwrap();
            kept.recv()
        });
        let busy = busy.unwrap();
        begins.recv().unwrap();
        busy.abort();
        crew.give_up(busy.abort_handle());
        assert!(Arc::ptr_eq(&first, &crew.threads().unwrap()), "it has a moment to end");
        std::thread::sleep(GRACE * 2);
        let second = crew.threads().unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &crew.threads().unwrap()));
        let (sender, done) = channel();
        second.spawn(async move { sender.send(1).unwrap() });
        assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(1));
        drop(release);
        drop((first, second));
        crew.end(Duration::ZERO);
        assert!(crew.threads().is_none());
    }
}
