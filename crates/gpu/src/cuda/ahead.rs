//! Programs that are compiled from the moment on that the driver makes a context, which takes as long as a compiler
//! does. Nobody waits for them but who asks for one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::program::Program;

type Compile = dyn Fn(&Program) -> Option<Vec<u8>> + Send + Sync;

/// Programs that are being compiled, and those that were.
pub(super) struct Ahead {
    work: Arc<Work>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Work {
    /// Machine code by the hash of its program, where it could be made; whoever comes first makes it.
    images: HashMap<String, OnceLock<Option<Vec<u8>>>>,
    compile: Box<Compile>,
}

impl Work {
    fn image(&self, program: &Program) -> Option<&[u8]> {
        self.images.get(&program.hash())?.get_or_init(|| (self.compile)(program)).as_deref()
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("programs", &self.work.images.len()).finish_non_exhaustive()
    }
}

impl Ahead {
    /// Begins with `programs`, a thread each; `compile` gives their machine code where it can.
    pub(super) fn begin(
        programs: Vec<Program>,
        compile: impl Fn(&Program) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Ahead {
        let images = programs.iter().map(|program| (program.hash(), OnceLock::new())).collect();
        let work = Arc::new(Work { images, compile: Box::new(compile) });
        let begin = |program: Program| {
            let work = work.clone();
            // Without a thread it is compiled when it is asked for.
            std::thread::Builder::new().spawn(move || _ = work.image(&program)).ok()
        };
        let threads = Mutex::new(programs.into_iter().filter_map(begin).collect());
        Ahead { work, threads }
    }

    /// The machine code of a program, which may have to be waited for; none if it is not one of these, or could not be
    /// compiled.
    pub(super) fn image(&self, program: &Program) -> Option<&[u8]> {
        self.work.image(program)
    }

    /// Whether the machine code of a program is there by now.
    pub(super) fn is_there(&self, program: &Program) -> bool {
        self.work.images.get(&program.hash()).and_then(OnceLock::get).is_some_and(Option::is_some)
    }

    /// Waits until none of them is being compiled.
    pub(super) fn wait(&self) {
        // Others that wait do so until all threads have been joined.
        let mut threads = self.threads.lock();
        threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Ahead {
    /// Who finds no device may end the process.
    fn drop(&mut self) {
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_program_is_compiled_once_and_waited_for() {
        let (quick, slow, broken) =
            (Program::new("quick", "q"), Program::new("slow", "s"), Program::new("broken", "b"));
        let (count, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
        let (counted, barrier) = (count.clone(), begun.clone());
        let ahead = Ahead::begin(vec![quick.clone(), slow.clone(), broken.clone()], move |program| {
            counted.fetch_add(1, Ordering::Relaxed);
            if program.name == "slow" {
                barrier.wait();
            }
            (program.name != "broken").then(|| program.source.clone().into_bytes())
        });
        assert_eq!(ahead.image(&quick), Some(&b"q"[..]));
        assert!(!ahead.is_there(&slow), "it is still being compiled");
        std::thread::scope(|threads| {
            threads.spawn(|| begun.wait());
            assert_eq!(ahead.image(&slow), Some(&b"s"[..]));
        });
        ahead.wait();
        assert!(ahead.is_there(&quick) && ahead.is_there(&slow));
        assert!(ahead.image(&broken).is_none() && !ahead.is_there(&broken));
        assert!(ahead.image(&Program::new("other", "o")).is_none());
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }
}
