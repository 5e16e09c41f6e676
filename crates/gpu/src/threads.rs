//! Threads that are joined, and what they count for beside others.
//!
//! Libraries keep things by thread, which a thread gives up as the last it does, after all of its work. A process whose
//! first thread ends meanwhile takes the libraries apart; a thread that was joined is past that.

use std::io;
use std::panic::resume_unwind;
use std::thread::{self, Builder, JoinHandle, ScopedJoinHandle};

use parking_lot::Mutex;

/// Threads that were started and not joined; they have ended when this has been dropped, but for the one that does so.
#[derive(Debug, Default)]
pub struct Threads {
    running: Mutex<Vec<JoinHandle<()>>>,
    /// Held by a join to its end. The list is not: a thread that is joined may wait for one that is started meanwhile.
    joining: Mutex<()>,
}

impl Threads {
    /// Does `work` on that many threads, each of which is given its number, and joins them: a scope alone ends before
    /// threads have given up what libraries keep for them.
    ///
    /// # Panics
    /// If one of them does.
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
    /// If there can be no more threads; the work is dropped.
    pub fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = self.running.lock();
        threads.extract_if(.., |thread| thread.is_finished()).for_each(join);
        threads.push(Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// Waits until all threads have ended that were started before. Threads can be started meanwhile; another join
    /// waits for this one. None of the threads may call it.
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

/// How much less a thread counts that works beside a statement which takes its answer from elsewhere: a third of one
/// that works on a statement (nice(2)).
#[cfg(target_os = "linux")]
const NICENESS: libc::c_int = 5;

/// Lets statements have the cores first: this thread and those it starts count less. On Linux alone.
pub(crate) fn stand_back() {
    // SAFETY: the calls take numbers alone; on Linux they concern the calling thread, and one that is refused changes
    // nothing.
    #[cfg(target_os = "linux")]
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < NICENESS {
            libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
        }
    }
}

/// Leaves the cores to all other threads: this one, and those it starts, run where a core is idle, and are stopped as
/// soon as another thread wants it (`SCHED_IDLE` of sched(7), on Linux alone). Niceness is not as much: a thread that
/// wakes up waits for a nicer one until that one's slice of some milliseconds ends.
pub(crate) fn leave_cores() {
    // SAFETY: the call reads the parameters it is given; it concerns the calling thread, and one that is refused
    // changes nothing.
    #[cfg(target_os = "linux")]
    unsafe {
        let parameters = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
    }
}

/// Whether this thread left the cores ([`leave_cores`]), or was started by one that did.
pub(crate) fn has_left_cores() -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes a number alone, and reads what holds for the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        policy == libc::SCHED_IDLE
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

fn join(thread: JoinHandle<()>) {
    // What panicked has told so already.
    drop(thread.join());
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
