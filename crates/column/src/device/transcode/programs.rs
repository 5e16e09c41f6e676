//! The programs of profiles and encoders, and the times of their compilation.
//!
//! A first load waits for the compiler: it takes programs of the least effort, which compile while it reads. After the
//! second load of a process, better programs are compiled in the background.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use warpcube_gpu::{Device, Effort, IdleHold, Priority, Program};

use crate::device::remap;
use crate::error::Result;

/// The name of a program and the parts of its source.
pub(crate) type Parts = (&'static str, &'static [&'static str]);

/// All programs by name: the better one, and the one of the least effort.
static ALL: LazyLock<HashMap<&str, [Program; 2]>> = LazyLock::new(|| {
    let all = USUAL.into_iter().chain(OTHERS).map(|(name, parts)| {
        let better = Program::new(name, parts.concat()).with_effort(Effort::Less);
        let quick = better.with_effort(Effort::Least);
        (name, [better, quick])
    });
    all.collect()
});

/// The better program of parts. More effort gains nothing: its kernels run at the speed of memory.
fn better_program((name, _): Parts) -> Program {
    ALL[name][0].clone()
}

/// The program of the least effort, for a first load.
fn quick_program((name, _): Parts) -> Program {
    ALL[name][1].clone()
}

/// The better program if it is compiled, or if it is on disk and the quick one is not compiled; else the quick program.
/// An emulated device uses the better program alone.
pub(super) fn program(device: &Device, parts: Parts) -> Program {
    let (better, quick) = (better_program(parts), quick_program(parts));
    // A look at the disk takes longer than the kernels of a small column.
    let is_better = device.info().emulated
        || device.is_compiled(&better)
        || (!device.is_compiled(&quick) && device.is_cached(&better));
    if is_better { better } else { quick }
}

/// The text of a file of kernels.
macro_rules! kernels {
    ($name:literal) => {
        include_str!(concat!("../../../kernels/", $name, ".cuh"))
    };
}

/// The beginning of all programs.
const COMMON: &str = kernels!("encode");
const WALK: &str = kernels!("encode_walk");
const OFFSETS: &str = kernels!("encode_offsets");
pub(super) const SUMS: Parts = ("encode_sums", &[COMMON, kernels!("encode_sums")]);
pub(super) const BYTES: Parts = ("encode_bytes", &[COMMON, kernels!("encode_bytes")]);
pub(super) const RUNS: Parts = ("encode_runs", &[COMMON, WALK, kernels!("encode_runs")]);
pub(super) const BLOCKS: Parts = ("encode_blocks", &[COMMON, kernels!("encode_blocks")]);
pub(crate) const PACKED: Parts = ("encode_packed", &[COMMON, OFFSETS, kernels!("encode_packed")]);
pub(super) const PATCHES: Parts = ("encode_patches", &[COMMON, OFFSETS, kernels!("encode_patches")]);
pub(super) const ALP: Parts = ("encode_alp", &[COMMON, kernels!("encode_alp")]);
pub(crate) const DELTA: Parts = ("encode_delta", &[COMMON, kernels!("encode_delta")]);
const PASS: &str = kernels!("profile");
const WORDS: &str = kernels!("profile_words");
const PROFILE_WORDS4: Parts = ("profile_words4", &[COMMON, PASS, "#define WC_PROFILE_WORD uint32_t\n", WORDS]);
const PROFILE_WORDS8: Parts = ("profile_words8", &[COMMON, PASS, "#define WC_PROFILE_WORD uint64_t\n", WORDS]);
pub(crate) const PROFILE_ANY: Parts = ("profile_any", &[COMMON, PASS, WALK, kernels!("profile_any")]);
/// The parts of [`BASICS`]: profiles of columns, vector bounds and codes in one program, since each of them compiles as
/// fast as an empty program.
const BASIC_PARTS: [&str; 6] =
    [COMMON, OFFSETS, PASS, kernels!("profile_column"), kernels!("encode_bounds"), kernels!("encode_codes")];
pub(crate) const BASICS: Parts = ("encode_basics", &BASIC_PARTS);
/// Programs that each first load needs after the profile of vectors.
const FIRST: [Parts; 2] = [PACKED, BASICS];
/// Programs that encode most columns.
const USUAL: [Parts; 6] = [BASICS, PACKED, PROFILE_ANY, DELTA, PATCHES, SUMS];
/// All other programs.
const OTHERS: [Parts; 6] = [PROFILE_WORDS4, PROFILE_WORDS8, BYTES, RUNS, BLOCKS, ALP];

/// The profile program of segments without NULLs, for values of 4 or 8 bytes.
pub(crate) fn profile_words(width: usize) -> Option<Parts> {
    match width {
        4 => Some(PROFILE_WORDS4),
        8 => Some(PROFILE_WORDS8),
        _ => None,
    }
}

/// Programs of nearly all first loads that are not on disk, in their order of use: they compile while a device opens.
/// More programs would take cores from the load.
pub fn programs_of_first_loads(is_on_disk: &dyn Fn(&Program) -> bool) -> Vec<Program> {
    let parts = [PROFILE_WORDS4].into_iter().chain(FIRST);
    let missing = parts.filter(|parts| !is_on_disk(&better_program(*parts))).map(quick_program);
    missing.filter(|program| !is_on_disk(program)).chain(programs_of_plain_loads(is_on_disk)).collect()
}

/// As [`programs_of_first_loads`], for loads of plain columns.
pub fn programs_of_plain_loads(is_on_disk: &dyn Fn(&Program) -> bool) -> Vec<Program> {
    [remap::program()].into_iter().filter(|program| !is_on_disk(program)).collect()
}

/// Requests the first programs of a load of columns of these widths, and programs of most columns, which are idle until
/// the guard is dropped. An emulated device, whose compiler takes seconds a program, gets no requests.
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

/// Whether the encoders of most columns are compiled or on disk.
pub(crate) fn has_encoders(device: &Device) -> bool {
    [BASICS, PACKED].into_iter().all(|parts| device.is_cached(&program(device, parts)))
}

/// Requests the better forms of the programs that loads used.
pub(crate) fn request_better(device: &Device) {
    let used = USUAL.into_iter().chain(OTHERS).filter(|parts| device.is_compiled(&quick_program(*parts)));
    let better: Vec<Program> = used.map(better_program).filter(|program| !device.is_compiled(program)).collect();
    device.request(&better, Priority::Idle);
}

/// Compiles all better programs.
pub(crate) fn compile_all(device: &Device) -> Result<()> {
    let programs: Vec<Program> = USUAL.into_iter().chain(OTHERS).map(better_program).collect();
    device.compile_all(&programs)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn programs_on_disk_are_not_compiled() {
        assert_eq!(programs_of_first_loads(&|_| true), []);
        let all = programs_of_first_loads(&|_| false);
        assert_eq!((all.len(), all[0].name(), all[1].name()), (4, PROFILE_WORDS4.0, PACKED.0));
        let packed = all.iter().find(|program| program.name() == PACKED.0).unwrap();
        let better = packed.with_effort(Effort::Less);
        for kept in [packed, &better] {
            let missing = programs_of_first_loads(&|program| program == kept);
            assert!(missing.len() == 3 && !missing.contains(packed), "{:?} is on disk", kept.effort());
        }
    }

    #[test]
    fn kernels_compile_for_gpus() {
        for parts in USUAL.into_iter().chain(OTHERS) {
            // Hopper; Ampere and Blackwell for workstations in the quick form.
            let quick = quick_program(parts);
            for (architecture, program) in [(90, better_program(parts)), (80, quick.clone()), (120, quick)] {
                match nvrtc::compile(&program, architecture) {
                    Ok(cubin) => assert!(!cubin.is_empty()),
                    Err(GpuError::CompilerUnavailable { .. }) => return,
                    Err(error) => panic!("{} for sm_{architecture}: {error:?}", program.name()),
                }
            }
        }
    }
}
