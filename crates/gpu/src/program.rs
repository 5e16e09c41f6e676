//! A program: kernel source as text, named, with its compile options.
//!
//! NVRTC compiles the text for a GPU, the host's C++ compiler for the emulated device. The differences between the two
//! are in `kernels/prelude.cuh`, which precedes every program.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// The header of every program: types, warp collectives, atomics, loads, for CUDA and emulated.
pub const PRELUDE: &str = include_str!("../kernels/prelude.cuh");

/// The option of programs whose kernels launch kernels: they are linked with the device runtime.
const RELOCATABLE: &str = "-rdc=true";

/// Source of one or more kernels; cheap to clone.
#[derive(Clone)]
pub struct Program(Arc<Content>);

struct Content {
    name: String,
    /// Texts that many programs begin with.
    library: Vec<&'static str>,
    /// What follows the library.
    own: String,
    options: Vec<String>,
    effort: Effort,
    /// Cached result of [`Program::source`], where there is a library.
    source: OnceLock<String>,
    /// Cached result of [`Program::hash`], which every request of a kernel needs.
    hash: OnceLock<Arc<str>>,
}

/// Optimisation effort of the compiler, if it has the choice: less effort takes less time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Full optimisation.
    #[default]
    Full,
    /// Less: for kernels that are bound by memory.
    Less,
    /// Least: for kernels that a statement waits for.
    Least,
}

impl Program {
    /// A program without further options.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Program {
        Program::over(Vec::new(), name, source)
    }

    /// A program whose source is the texts of `library`, then `own`. The hash of a library is computed once: programs
    /// that are generated for a statement pay for their own text alone.
    pub fn over(library: Vec<&'static str>, name: impl Into<String>, own: impl Into<String>) -> Program {
        Program::of(name.into(), library, own.into(), Vec::new(), Effort::Full)
    }

    fn of(name: String, library: Vec<&'static str>, own: String, options: Vec<String>, effort: Effort) -> Program {
        let (source, hash) = (OnceLock::new(), OnceLock::new());
        Program(Arc::new(Content { name, library, own, options, effort, source, hash }))
    }

    /// The program with these further compiler options, for example `-DWIDTH=16`.
    pub fn with_options(&self, options: Vec<String>) -> Program {
        let Content { name, library, own, effort, .. } = &*self.0;
        Program::of(name.clone(), library.clone(), own.clone(), options, *effort)
    }

    /// The program with kernels that launch kernels (CUDA Dynamic Parallelism); for devices that pass
    /// [`Device::check_device_launches`](crate::Device::check_device_launches).
    pub fn with_device_launches(&self) -> Program {
        self.with_options(self.options().iter().cloned().chain([RELOCATABLE.to_string()]).collect())
    }

    /// True if its kernels launch kernels.
    pub fn has_device_launches(&self) -> bool {
        self.options().iter().any(|option| option == RELOCATABLE)
    }

    /// The program with another effort.
    pub fn with_effort(&self, effort: Effort) -> Program {
        let Content { name, library, own, options, .. } = &*self.0;
        Program::of(name.clone(), library.clone(), own.clone(), options.clone(), effort)
    }

    /// Name for messages, traces and dumps.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// CUDA C++ text without the prelude.
    pub fn source(&self) -> &str {
        let Content { library, own, source, .. } = &*self.0;
        if library.is_empty() { own } else { source.get_or_init(|| library.concat() + own) }
    }

    /// Further compiler options.
    pub fn options(&self) -> &[String] {
        &self.0.options
    }

    /// Optimisation effort.
    pub fn effort(&self) -> Effort {
        self.0.effort
    }

    /// The compiler's input: the prelude, then the source.
    pub fn full_source(&self) -> String {
        format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", self.name(), self.source())
    }

    /// SHA-256 over prelude, source, options and effort, in hexadecimal.
    pub fn hash(&self) -> &Arc<str> {
        self.0.hash.get_or_init(|| {
            let mut hasher = hasher_behind(&self.0.library);
            hasher.update(self.0.own.as_bytes());
            for option in self.options() {
                hasher.update([0]);
                hasher.update(option.as_bytes());
            }
            hasher.update([0, self.effort() as u8]);
            hexadecimal(hasher, 32).into()
        })
    }
}

/// The hash's state behind the prelude and a library. States are kept: a library's texts live as long as the process.
fn hasher_behind(library: &[&'static str]) -> Sha256 {
    /// States by the address and the length of each text.
    type States = Mutex<HashMap<Vec<(usize, usize)>, Sha256>>;
    static STATES: LazyLock<States> = LazyLock::new(Mutex::default);
    let key = library.iter().map(|text| (text.as_ptr().addr(), text.len())).collect();
    let begin = || {
        let mut hasher = Sha256::new();
        hasher.update(PRELUDE.as_bytes());
        hasher.update([0]);
        library.iter().for_each(|text| hasher.update(text.as_bytes()));
        hasher
    };
    STATES.lock().entry(key).or_insert_with(begin).clone()
}

/// The first `bytes` bytes of a digest, as text.
pub(crate) fn hexadecimal(hasher: Sha256, bytes: usize) -> String {
    hasher.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.name() == other.name() && self.hash() == other.hash()
    }
}

impl Eq for Program {}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut program = f.debug_struct("Program");
        program.field("name", &self.name()).field("options", &self.options()).field("effort", &self.effort());
        program.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_source_options_and_effort() {
        let plain = Program::new("a", "x");
        let option = Program::new("a", "").with_options(vec!["x".into()]);
        assert_ne!(plain.hash(), option.hash());
        assert_ne!(plain.hash(), plain.with_effort(Effort::Less).hash());
        assert_eq!(plain.hash(), Program::new("other name", "x").hash());
    }

    #[test]
    fn a_library_and_ones_own_text_are_one_source() {
        let whole = Program::new("a", "xyz");
        for (library, own) in [(vec!["x", "y"], "z"), (vec!["xy"], "z"), (vec!["xy"], "z"), (vec!["x"], "yz")] {
            let program = Program::over(library, "a", own);
            assert_eq!((program.source(), program.hash()), (whole.source(), whole.hash()));
            assert_ne!(program.hash(), program.with_effort(Effort::Less).hash());
        }
        assert_ne!(Program::over(vec!["x"], "a", "z").hash(), whole.hash());
    }
}
