//! Programs that are compiled while the driver starts and makes a context, which takes as long as two compilers do.
//! Nobody waits for them but who asks for one.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::program::{Program, in_turn};
use crate::threads::Threads;

type Compile = dyn Fn(&Program) -> Option<Vec<u8>> + Send + Sync;

/// Programs that are being compiled, and those that were.
pub(super) struct Ahead {
    work: Arc<Work>,
    threads: Threads,
}

struct Work {
    /// Machine code by the hash of its program, where it could be made; whoever comes first makes it.
    images: HashMap<String, OnceLock<Option<Vec<u8>>>>,
    compile: Box<Compile>,
    ended: AtomicBool,
}

impl Work {
    fn image(&self, program: &Program) -> Option<&[u8]> {
        self.images.get(program.hash())?.get_or_init(|| (self.compile)(program)).as_deref()
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("programs", &self.work.images.len()).finish_non_exhaustive()
    }
}

impl Ahead {
    /// Begins with `programs`, what is asked for first being first; `compile` gives their machine code where it can.
    pub(super) fn begin(
        programs: Vec<Program>,
        compile: impl Fn(&Program) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Ahead {
        let images = programs.iter().map(|program| (program.hash().to_string(), OnceLock::new())).collect();
        let work = Arc::new(Work { images, compile: Box::new(compile), ended: AtomicBool::new(false) });
        let (shared, any) = (work.clone(), !programs.is_empty());
        let all = move || {
            in_turn(&programs, |program| {
                if !shared.ended.load(Ordering::Relaxed) {
                    shared.image(program);
                }
            });
        };
        let threads = Threads::default();
        if any {
            // Without a thread each is compiled when it is asked for.
            _ = threads.spawn("ahead", all);
        }
        Ahead { work, threads }
    }

    /// The machine code of a program, which may have to be waited for; none if it is not one of these, or could not be
    /// compiled.
    pub(super) fn image(&self, program: &Program) -> Option<&[u8]> {
        self.work.image(program)
    }

    /// Whether the machine code of a program is there by now.
    pub(super) fn is_there(&self, program: &Program) -> bool {
        self.work.images.get(program.hash()).and_then(OnceLock::get).is_some_and(Option::is_some)
    }

    /// Begins with no further program, and waits until none is being compiled.
    pub(super) fn end(&self) {
        self.work.ended.store(true, Ordering::Relaxed);
        self.threads.join();
    }
}

impl Drop for Ahead {
    /// Who finds no device may end the process.
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_program_is_compiled_once_and_waited_for() {
        let (quick, slow, broken) =
            (Program::new("quick", "q"), Program::new("slow", "s"), Program::new("broken", "b"));
        let (count, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
        let (counted, barrier) = (count.clone(), begun.clone());
        let ahead = Ahead::begin(vec![quick.clone(), slow.clone(), broken.clone()], move |program| {
            counted.fetch_add(1, Ordering::Relaxed);
            if program.name() == "slow" {
                barrier.wait();
            }
            (program.name() != "broken").then(|| program.source().as_bytes().to_vec())
        });
        assert_eq!(ahead.image(&quick), Some(&b"q"[..]));
        assert!(!ahead.is_there(&slow), "it is still being compiled");
        std::thread::scope(|threads| {
            threads.spawn(|| begun.wait());
            assert_eq!(ahead.image(&slow), Some(&b"s"[..]));
        });
        assert!(ahead.image(&broken).is_none() && !ahead.is_there(&broken));
        ahead.end();
        assert!(ahead.is_there(&quick) && ahead.is_there(&slow));
        assert!(ahead.image(&Program::new("other", "o")).is_none());
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_was_not_begun_is_left_when_a_device_goes() {
        let programs: Vec<Program> = (0..9).map(|index| Program::new(format!("p{index}"), index.to_string())).collect();
        let (begun, count) = (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
        let (barrier, counted) = (begun.clone(), count.clone());
        let ahead = Ahead::begin(programs.clone(), move |program| {
            counted.fetch_add(1, Ordering::Relaxed);
            if ["p0", "p1"].contains(&program.name()) {
                barrier.wait();
            }
            Some(Vec::new())
        });
        // Two are being compiled, in their order.
        while count.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        ahead.work.ended.store(true, Ordering::Relaxed);
        begun.wait();
        ahead.end();
        assert!(ahead.is_there(&programs[0]) && ahead.is_there(&programs[1]) && !ahead.is_there(&programs[2]));
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
