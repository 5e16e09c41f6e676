//! Every program that ran on the emulated device is compiled by NVRTC too, where it is installed.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, Once};

use warpcube_gpu::{GpuError, Program, cuda::nvrtc};

/// Architectures: Ampere, Hopper, Blackwell for workstations.
const ARCHITECTURES: [u32; 3] = [80, 90, 120];

/// Compiles a program for all architectures, once a process.
pub fn compile_everywhere(program: &Program) {
    static DONE: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    static FIND: Once = Once::new();
    FIND.call_once(|| {
        // NVRTC from PyPI is looked for in `.venv` of the current folder, which is the workspace's for programs.
        let _ = std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        if let Err(error) = nvrtc::location() {
            eprintln!("skipped: generated programs are not compiled for GPUs: {error}");
        }
    });
    if !DONE.lock().unwrap().get_or_insert_default().insert(program.hash()) {
        return;
    }
    for architecture in ARCHITECTURES {
        match nvrtc::compile(program, architecture) {
            Ok(cubin) => assert!(!cubin.is_empty()),
            Err(GpuError::CompilerUnavailable { .. }) => return,
            Err(error) => panic!("sm_{architecture}: {error}\n{}", program.source),
        }
    }
}
