//! Programs of primitives compile for GPUs, where NVRTC is installed.

use warpcube_gpu::cuda::nvrtc;
use warpcube_gpu::{Effort, GpuError, Program};

/// Hopper as programs run there; Ampere and Blackwell for workstations with the least effort, a third of the time.
/// Instructions and launch bounds that an architecture lacks are refused at every effort.
const TARGETS: [(u32, Effort); 3] = [(90, Effort::Full), (80, Effort::Least), (120, Effort::Least)];

/// Compiles a program for every target.
pub(crate) fn compile_for_gpus(program: &Program) {
    compile(program, &TARGETS);
}

/// Compiles a program for Hopper, if others of its kind are compiled for every target.
pub(crate) fn compile_for_hopper(program: &Program) {
    compile(program, &TARGETS[..1]);
}

fn compile(program: &Program, targets: &[(u32, Effort)]) {
    for (architecture, effort) in targets {
        match nvrtc::compile(&program.with_effort(*effort), *architecture) {
            Ok(cubin) => assert!(!cubin.is_empty()),
            Err(GpuError::CompilerUnavailable { .. }) => return,
            Err(error) => panic!("{} for sm_{architecture}: {error:?}", program.name()),
        }
    }
}
