//! The programs that look at columns and encode them, and when they are compiled.
//!
//! A first load waits for the compiler, so it takes what is compiled soonest, while it reads; once a second statement
//! has loaded something, better programs are compiled in the background.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use warpcube_gpu::{Device, Effort, IdleHold, Priority, Program};

use crate::device::remap;
use crate::error::Result;

/// The name of a program and the parts of its source.
pub(crate) type Parts = (&'static str, &'static [&'static str]);

/// All programs by their names: as good as they are worth, and compiled sooner.
static ALL: LazyLock<HashMap<&str, [Program; 2]>> = LazyLock::new(|| {
    let all = USUAL.into_iter().chain(OTHERS).map(|(name, parts)| {
        let better = Program::new(name, parts.concat()).with_effort(Effort::Less);
        let quick = better.with_effort(Effort::Least);
        (name, [better, quick])
    });
    all.collect()
});

/// A program of parts, as good as it is worth: what it does it does at the speed of memory anyway.
fn source((name, _): Parts) -> Program {
    ALL[name][0].clone()
}

/// The same for a first load, which waits for the compiler.
fn quick_source((name, _): Parts) -> Program {
    ALL[name][1].clone()
}

/// The better program if it is there, or at hand and the other is not there yet; or else the one that is sooner
/// compiled. An emulated device has but one.
pub(super) fn program(device: &Device, parts: Parts) -> Program {
    let (better, quick) = (source(parts), quick_source(parts));
    // Every column asks: to look at the disk takes longer than kernels do for a small one.
    let is_better = device.info().emulated
        || device.is_compiled(&better)
        || (!device.is_compiled(&quick) && device.is_cached(&better));
    if is_better { better } else { quick }
}

/// What all kernels begin with.
const COMMON: &str = include_str!("../../../kernels/encode.cuh");
const WALK: &str = include_str!("../../../kernels/encode_walk.cuh");
const OFFSETS: &str = include_str!("../../../kernels/encode_offsets.cuh");
pub(super) const SUMS: Parts = ("encode_sums", &[COMMON, include_str!("../../../kernels/encode_sums.cuh")]);
pub(super) const BYTES: Parts = ("encode_bytes", &[COMMON, include_str!("../../../kernels/encode_bytes.cuh")]);
pub(super) const RUNS: Parts = ("encode_runs", &[COMMON, WALK, include_str!("../../../kernels/encode_runs.cuh")]);
pub(super) const BLOCKS: Parts = ("encode_blocks", &[COMMON, include_str!("../../../kernels/encode_blocks.cuh")]);
pub(crate) const PACKED: Parts =
    ("encode_packed", &[COMMON, OFFSETS, include_str!("../../../kernels/encode_packed.cuh")]);
pub(super) const PATCHES: Parts =
    ("encode_patches", &[COMMON, OFFSETS, include_str!("../../../kernels/encode_patches.cuh")]);
pub(super) const ALP: Parts = ("encode_alp", &[COMMON, include_str!("../../../kernels/encode_alp.cuh")]);
pub(crate) const DELTA: Parts = ("encode_delta", &[COMMON, include_str!("../../../kernels/encode_delta.cuh")]);
const PASS: &str = include_str!("../../../kernels/profile.cuh");
const WORDS: &str = include_str!("../../../kernels/profile_words.cuh");
const PROFILE_WORDS4: Parts = ("profile_words4", &[COMMON, PASS, "#define WC_PROFILE_WORD uint32_t\n", WORDS]);
const PROFILE_WORDS8: Parts = ("profile_words8", &[COMMON, PASS, "#define WC_PROFILE_WORD uint64_t\n", WORDS]);
pub(crate) const PROFILE_ANY: Parts =
    ("profile_any", &[COMMON, PASS, WALK, include_str!("../../../kernels/profile_any.cuh")]);
/// What a column's profile is put together by, and what bounds of vectors and codes are made by: one program, since an
/// empty one takes a compiler as long as what either adds.
pub(crate) const BASICS: Parts = (
    "encode_basics",
    &[
        COMMON,
        OFFSETS,
        PASS,
        include_str!("../../../kernels/profile_column.cuh"),
        include_str!("../../../kernels/encode_bounds.cuh"),
        include_str!("../../../kernels/encode_codes.cuh"),
    ],
);
/// Programs that every first load needs after the profile.
const FIRST: [Parts; 2] = [PACKED, BASICS];
/// Programs that encode most columns.
const USUAL: [Parts; 6] = [BASICS, PACKED, PROFILE_ANY, DELTA, PATCHES, SUMS];
/// All others.
const OTHERS: [Parts; 6] = [PROFILE_WORDS4, PROFILE_WORDS8, BYTES, RUNS, BLOCKS, ALP];

/// The pass over segments of values of so many bytes that have no NULLs, where there is one for such.
pub(crate) fn profile_words(width: usize) -> Option<Parts> {
    match width {
        4 => Some(PROFILE_WORDS4),
        8 => Some(PROFILE_WORDS8),
        _ => None,
    }
}

/// What nearly all first loads will wait for, of programs that are told not to be kept on disk, in the order in which
/// it is asked for: to be compiled while a device is opened. More would take cores from the load.
pub fn programs_of_first_loads(is_kept: &dyn Fn(&Program) -> bool) -> Vec<Program> {
    let parts = [PROFILE_WORDS4].into_iter().chain(FIRST);
    let missing = parts.filter(|parts| !is_kept(&source(*parts))).map(quick_source);
    missing.filter(|program| !is_kept(program)).chain(programs_of_plain_loads(is_kept)).collect()
}

/// As [`programs_of_first_loads`], where nothing is encoded.
pub fn programs_of_plain_loads(is_kept: &dyn Fn(&Program) -> bool) -> Vec<Program> {
    [remap::program()].into_iter().filter(|program| !is_kept(program)).collect()
}

/// Requests the programs that a load of columns of these widths will ask for first, while it reads, and those that a
/// load may ask for, which are idle until the guard is dropped. Not for an emulated device, whose compiler takes
/// seconds for each.
pub(crate) fn request_for_load(device: &Device, widths: impl IntoIterator<Item = usize>) -> Option<IdleHold> {
    if device.info().emulated {
        return None;
    }
    let is_missing = |program: &Program| !device.is_compiled(program);
    let missing = |parts: &[Parts]| -> Vec<Program> {
        parts.iter().map(|parts| program(device, *parts)).filter(is_missing).collect()
    };
    let widths: BTreeSet<usize> = widths.into_iter().collect();
    let passes = widths.into_iter().filter_map(profile_words);
    let first: Vec<Parts> = passes.chain(FIRST).collect();
    let hold = device.hold_idle();
    device.request(&missing(&first), Priority::Now);
    device.request(&missing(&USUAL), Priority::Idle);
    Some(hold)
}

/// Whether what encodes most columns need not be compiled first.
pub(crate) fn has_encoders(device: &Device) -> bool {
    [BASICS, PACKED].into_iter().all(|parts| device.is_cached(&program(device, parts)))
}

/// Requests better programs, in place of those that a load has used, for the next.
pub(crate) fn request_better(device: &Device) {
    let used = USUAL.into_iter().chain(OTHERS).filter(|parts| device.is_compiled(&quick_source(*parts)));
    let better: Vec<Program> = used.map(source).filter(|program| !device.is_compiled(program)).collect();
    device.request(&better, Priority::Idle);
}

/// Compiles all programs as good as they are worth.
pub(crate) fn compile_all(device: &Device) -> Result<()> {
    let programs: Vec<Program> = USUAL.into_iter().chain(OTHERS).map(source).collect();
    device.compile_all(&programs)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    /// Ampere, Hopper, Blackwell for workstations.
    const ARCHITECTURES: [u32; 3] = [80, 90, 120];

    #[test]
    fn first_loads_wait_for_nothing_that_is_kept() {
        assert_eq!(programs_of_first_loads(&|_| true), []);
        let all = programs_of_first_loads(&|_| false);
        assert_eq!((all.len(), all[0].name(), all[1].name()), (4, PROFILE_WORDS4.0, PACKED.0));
        let packed = all.iter().find(|program| program.name() == PACKED.0).unwrap();
        let better = packed.with_effort(Effort::Less);
        for kept in [packed, &better] {
            let missing = programs_of_first_loads(&|program| program == kept);
            assert!(missing.len() == 3 && !missing.contains(packed), "{:?} is at hand", kept.effort());
        }
    }

    #[test]
    fn kernels_compile_for_gpus() {
        for program in USUAL.into_iter().chain(OTHERS).flat_map(|parts| [source(parts), quick_source(parts)]) {
            for architecture in ARCHITECTURES {
                match nvrtc::compile(&program, architecture) {
                    Ok(cubin) => assert!(!cubin.is_empty()),
                    Err(GpuError::CompilerUnavailable { .. }) => return,
                    Err(error) => panic!("{} for sm_{architecture}: {error:?}", program.name()),
                }
            }
        }
    }
}
