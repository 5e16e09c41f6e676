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
pub struct Threads(Mutex<Vec<JoinHandle<()>>>);

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
