//! Threads for statements.
//!
//! An operator of the CPU looks at no switch within a batch, and keeps its thread until the batch is done, however long
//! that takes. So each running statement has a set of threads to itself, on which no other one waits. Sets are used
//! again once all their threads are idle: those that a statement has left behind in the midst of a batch are not. There
//! are no more sets in use than a number; statements beyond it share them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Makes threads.
pub type MakeThreads = fn() -> io::Result<Runtime>;

/// A set of threads, which go with whatever still runs on them.
pub struct Threads(Option<Runtime>);

impl Threads {
    /// Starts work; none only if the threads are gone, which nobody has then.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<JoinHandle<T>> {
        self.0.as_ref().map(|runtime| runtime.spawn(work))
    }

    /// Whether no thread works: a count of its pauses and their ends is odd during a pause.
    fn are_idle(&self) -> bool {
        self.0.as_ref().is_some_and(|runtime| {
            let metrics = runtime.metrics();
            (0..metrics.num_workers()).all(|worker| metrics.worker_park_unpark_count(worker) % 2 == 1)
        })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The sets of threads of statements.
pub struct Crew {
    make: MakeThreads,
    /// Sets in use at once.
    most: usize,
    /// None once the crew has ended.
    sets: Mutex<Option<Vec<Arc<Threads>>>>,
}

impl Crew {
    /// A crew of which so many sets of threads are in use at once; the first one is made now.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn new(make: MakeThreads, most: usize) -> io::Result<Crew> {
        let first = Arc::new(Threads(Some(make()?)));
        Ok(Crew { make, most: most.max(1), sets: Mutex::new(Some(vec![first])) })
    }

    /// The threads of the next statement, which uses them while it holds this; none once the crew has ended.
    pub fn threads(&self) -> Option<Arc<Threads>> {
        let mut sets = self.lock();
        let sets = sets.as_mut()?;
        let users = |set: &Arc<Threads>| Arc::strong_count(set) - 1;
        if let Some(free) = sets.iter().find(|set| users(set) == 0 && set.are_idle()) {
            return Some(free.clone());
        }
        // Without new threads those that are there have to do.
        if sets.iter().filter(|set| users(set) > 0).count() < self.most
            && let Ok(fresh) = (self.make)()
        {
            sets.push(Arc::new(Threads(Some(fresh))));
            return sets.last().cloned();
        }
        let used = sets.iter().filter(|set| users(set) > 0).min_by_key(|set| users(set));
        used.or(sets.first()).cloned()
    }

    /// Ends the threads, for which idle ones have so long. Called outside of a runtime.
    pub fn end(&self, patience: Duration) {
        let sets = self.lock().take().unwrap_or_default();
        let runtimes = sets.into_iter().filter_map(|set| Arc::into_inner(set)?.0.take());
        let (mut left, began) = (patience, std::time::Instant::now());
        for runtime in runtimes {
            runtime.shutdown_timeout(left);
            left = patience.saturating_sub(began.elapsed());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Arc<Threads>>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use tokio::runtime::Builder;

    use super::*;

    fn make() -> io::Result<Runtime> {
        Builder::new_multi_thread().worker_threads(1).enable_all().build()
    }

    /// A crew whose first set of threads has begun to wait for work.
    fn settled(most: usize) -> Crew {
        let crew = Crew::new(make, most).unwrap();
        let first = crew.lock().as_ref().unwrap()[0].clone();
        settle(&first);
        crew
    }

    /// Waits until a set of threads is idle.
    fn settle(set: &Arc<Threads>) {
        let clock = Instant::now();
        while !set.are_idle() {
            assert!(clock.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }

    #[test]
    fn each_statement_has_threads_to_itself_as_long_as_there_are_sets() {
        let crew = settled(2);
        let (first, second) = (crew.threads().unwrap(), crew.threads().unwrap());
        assert!(!Arc::ptr_eq(&first, &second));
        let third = crew.threads().unwrap();
        assert!(Arc::ptr_eq(&first, &third), "the sets are shared then");
        assert!(Arc::ptr_eq(&second, &crew.threads().unwrap()), "evenly");
        settle(&second);
        let known = Arc::downgrade(&second);
        drop(second);
        assert_eq!(Arc::as_ptr(&crew.threads().unwrap()), known.as_ptr(), "a set is used again");
    }

    #[test]
    fn threads_that_are_kept_are_not_used_again() {
        let crew = settled(1);
        let first = crew.threads().unwrap();
        let ((release, kept), (began, begins)) = (channel::<()>(), channel());
        let busy = first.spawn(async move {
            began.send(()).unwrap();
            kept.recv()
        });
        begins.recv().unwrap();
        // Nobody waits for it any more, and it goes on.
        busy.unwrap().abort();
        let known = Arc::downgrade(&first);
        drop(first);
        let second = crew.threads().unwrap();
        assert_ne!(Arc::as_ptr(&second), known.as_ptr());
        let (sender, done) = channel();
        second.spawn(async move { sender.send(1).unwrap() });
        assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(1));
        drop(release);
        let first = known.upgrade().unwrap();
        settle(&first);
        drop(first);
        assert_eq!(Arc::as_ptr(&crew.threads().unwrap()), known.as_ptr(), "once they are free they are");
        drop(second);
        crew.end(Duration::ZERO);
        assert!(crew.threads().is_none());
    }
}
