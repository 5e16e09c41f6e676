//! Threads that somebody waits for to the very end.
//!
//! Libraries keep things by thread, which a thread gives up as the last it does, after all of its work. A process whose
//! first thread ends meanwhile takes the libraries apart beside it; a thread that was joined is past that.

use std::io;
use std::panic::resume_unwind;
use std::thread::{self, Builder, JoinHandle, ScopedJoinHandle};

use parking_lot::Mutex;

/// Does `work` on so many threads, each of which is told its number, and what is to be done `here` beside them; waits
/// until they have ended. A scope alone ends before threads have given up what they keep.
///
/// # Panics
/// If one of them does.
pub fn beside<T>(threads: usize, work: impl Fn(usize) + Sync, here: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        let done = here();
        let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        if let Some(panic) = ended.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
        done
    })
}

/// Threads that were started and not joined; they have ended when this has been dropped, but for the one that does so.
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

impl Drop for Threads {
    fn drop(&mut self) {
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        self.0.get_mut().drain(..).filter(is_other).for_each(join);
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
            thread::sleep(Duration::from_millis(20));
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
        let told = ended.clone();
        threads.spawn("dropped", move || KEPT.with(|kept| kept.set(Slow(Some(told))))).unwrap();
        drop(threads);
        assert_eq!(ended.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn threads_of_a_scope_are_waited_for_as_long() {
        let ended = Arc::new(AtomicUsize::new(0));
        let work = |number| KEPT.with(|kept| kept.set(Slow((number > 0).then(|| ended.clone()))));
        assert_eq!(beside(3, work, || "here"), "here");
        assert_eq!(ended.load(Ordering::Relaxed), 2);
        let panicked = std::panic::catch_unwind(|| beside(2, |number| assert_eq!(number, 0), || ()));
        assert!(panicked.is_err());
    }

    #[test]
    fn who_drops_them_may_be_one_of_them() {
        let threads = Arc::new(Threads::default());
        let (own, (told, is_told)) = (threads.clone(), std::sync::mpsc::channel());
        let (go, waits) = std::sync::mpsc::channel::<()>();
        let work = move || {
            _ = waits.recv();
            drop(own);
            told.send(()).unwrap();
        };
        threads.spawn("last", work).unwrap();
        drop(threads);
        drop(go);
        is_told.recv().unwrap();
    }
}
