//! A program: kernel source as text, named, with its compile options.
//!
//! The same text is compiled by NVRTC for a GPU and by the host's C++ compiler for the emulated device; what differs
//! between the two stands in `kernels/prelude.cuh`, which is put in front of every program.

use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

/// The header that every program starts with: types, warp collectives, atomics, loads, for CUDA and emulated.
pub const PRELUDE: &str = include_str!("../kernels/prelude.cuh");

/// Threads that compile at once what will be asked for one after the other. Compilers of one process wait for each
/// other most of the time: six programs take two threads 0.6 times as long as one, and more threads no less, but then
/// what is wanted first may be done last.
const COMPILERS: usize = 2;

/// Does work for each program on a few threads, begun in their order, and waits for all of it.
pub(crate) fn in_turn(programs: &[Program], work: impl Fn(&Program) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..COMPILERS.min(programs.len()) {
            threads.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(program);
                }
            });
        }
    });
}

/// Source of one or more kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name for messages, traces and dumps.
    pub name: String,
    /// CUDA C++ text without the prelude.
    pub source: String,
    /// Further compiler options, for example `-DWIDTH=16`.
    pub options: Vec<String>,
    /// How far the compiler is to optimize.
    pub effort: Effort,
}

/// How far a compiler optimizes, where it has the choice: the less, the sooner it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// As far as it can.
    #[default]
    Full,
    /// Somewhat less: for kernels that wait for memory whatever they look like.
    Less,
    /// Little: for kernels that are wanted at once.
    Least,
}

impl Program {
    /// A program without further options.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Program {
        Program { name: name.into(), source: source.into(), options: Vec::new(), effort: Effort::Full }
    }

    /// What the compiler sees: the prelude, then the source.
    pub fn full_source(&self) -> String {
        format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", self.name, self.source)
    }

    /// Identity of the program's content: SHA-256 over prelude, source and options, in hexadecimal.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(PRELUDE.as_bytes());
        hasher.update([0]);
        hasher.update(self.source.as_bytes());
        for option in &self.options {
            hasher.update([0]);
            hasher.update(option.as_bytes());
        }
        hasher.update([0, self.effort as u8]);
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_options_and_source_apart() {
        let plain = Program::new("a", "x");
        let option = Program { options: vec!["x".into()], ..Program::new("a", "") };
        assert_ne!(plain.hash(), option.hash());
        assert_ne!(plain.hash(), Program { effort: Effort::Less, ..plain.clone() }.hash());
        assert_eq!(plain.hash(), Program::new("other name", "x").hash());
    }
}
