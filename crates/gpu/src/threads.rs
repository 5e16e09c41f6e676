//! Threads that somebody waits for to the very end.
//!
//! Libraries keep things by thread, which a thread gives up as the last it does, after all of its work. A process whose
//! first thread ends meanwhile takes the libraries apart beside it; a thread that was joined is past that.

use std::io;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

/// Threads that were started and not joined.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Starts a thread of that name.
    ///
    /// # Errors
    /// If there can be no more threads; the work is dropped.
    pub fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = self.0.lock();
        threads.extract_if(.., |thread| thread.is_finished()).for_each(join);
        threads.push(Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// Waits until all have ended that were started before. Others that wait or start one do so after this; it is not
    /// for one of them.
    pub fn join(&self) {
        self.0.lock().drain(..).for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    // What panicked has told so already.
    drop(thread.join());
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Slow(Option<Arc<AtomicUsize>>);

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(20));
            self.0.take().map(|ended| ended.fetch_add(1, Ordering::Relaxed));
        }
    }

    thread_local! {
        static KEPT: Cell<Slow> = Cell::default();
    }

    #[test]
    fn threads_are_waited_for_until_they_have_given_up_what_they_kept() {
        let (threads, ended) = (Threads::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..3 {
            let ended = ended.clone();
            let work = move || KEPT.with(|kept| kept.set(Slow(Some(ended))));
            threads.spawn("slow", work).unwrap();
        }
        threads.join();
        assert_eq!(ended.load(Ordering::Relaxed), 3);
    }
}
