//! Threads that are joined, and their scheduling.
//!
//! Libraries keep thread-local state, which a thread destroys after its work. A process whose first thread ends
//! meanwhile destroys the libraries under it; a joined thread has destroyed its state.

use std::io;
use std::panic::resume_unwind;
use std::thread::{self, Builder, JoinHandle, ScopedJoinHandle};

use parking_lot::Mutex;

/// Threads that were started and not joined. Dropping it joins them, except for the dropping thread.
#[derive(Debug, Default)]
pub struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    /// Held by a join to its end. The list is not: a thread that is joined may wait for one that is started meanwhile.
    joining: Mutex<()>,
}

impl Threads {
    /// Runs `work` on `number` threads, each with its own number, and joins them: a scope alone ends before threads
    /// have destroyed their thread-local state.
    ///
    /// # Panics
    /// If a thread panics.
    pub fn run(number: usize, work: impl Fn(usize) + Sync) {
        thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..number).map(|number| scope.spawn(move || work(number))).collect();
            let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
            if let Some(panic) = ended.into_iter().find_map(Result::err) {
                resume_unwind(panic);
            }
        });
    }

    /// Starts a thread of that name.
    ///
    /// # Errors
    /// If the system starts no thread; the work is dropped.
    pub fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = self.running.lock();
        threads.extract_if(.., |thread| thread.is_finished()).for_each(join);
        threads.push(Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// Joins all threads started before; threads can be started meanwhile, and another call waits for this one. Not to
    /// be called by one of the threads.
    pub fn join(&self) {
        let _joining = self.joining.lock();
        let started = std::mem::take(&mut *self.running.lock());
        started.into_iter().for_each(join);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        self.running.get_mut().drain(..).filter(is_other).for_each(join);
    }
}

/// A panic of the thread has been reported by its hook.
fn join(thread: JoinHandle<()>) {
    drop(thread.join());
}

/// Niceness of threads whose result no statement waits for: a third of the share of a statement's thread (nice(2)).
const NICENESS: libc::c_int = 5;

/// Lowers the priority of this thread, and of those that it starts, below the threads of statements.
pub(crate) fn lower_priority() {
    // SAFETY: the calls take numbers alone; on Linux they concern the calling thread, and a refused call has no effect.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < NICENESS {
            libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
        }
    }
}

/// Runs this thread, and those that it starts, on idle cores alone (`SCHED_IDLE` of sched(7)): any other thread
/// preempts it at once. Niceness does less: a thread that wakes up waits for some milliseconds until the slice of a
/// nicer one ends.
pub(crate) fn use_idle_scheduling() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads `parameters`; it concerns the calling thread, and a refused call has no effect.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// True if this thread, or the one that started it, called [`use_idle_scheduling`].
pub(crate) fn uses_idle_scheduling() -> bool {
    // SAFETY: the call takes a number alone, and reads the policy of the calling thread.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_IDLE }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_starts_while_one_that_waits_for_it_is_joined() {
        let threads = Threads::default();
        let (sender, receiver) = mpsc::channel();
        let (told, heard) = mpsc::channel();
        let waits = move || told.send(receiver.recv_timeout(Duration::from_secs(20)).is_ok()).unwrap();
        threads.spawn("waits", waits).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| threads.join());
            while !threads.joining.is_locked() || threads.running.try_lock().is_some_and(|running| !running.is_empty())
            {
                thread::yield_now();
            }
            threads.spawn("is waited for", move || sender.send(()).unwrap()).unwrap();
        });
        assert!(heard.recv().unwrap(), "the thread did not start before the join gave up");
    }
}
