//! Every program that ran on the emulated device is compiled by NVRTC too, where it is installed.
//!
//! A program that compiled once for an architecture is remembered in the folder for tests' files, so that only changes
//! cost time.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, Once};

use warpcube_gpu::{Effort, GpuError, Program, cuda::nvrtc};

/// Architectures, and the effort with which programs are compiled for them: Ampere, Hopper, Blackwell for workstations.
const ARCHITECTURES: [(u32, Effort); 3] = [(80, Effort::Less), (90, Effort::Full), (120, Effort::Least)];

/// Compiles a program for all architectures, once.
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
    let hash = program.hash();
    let Ok((_, (major, minor))) = nvrtc::location() else { return };
    if !DONE.lock().unwrap().get_or_insert_default().insert(hash.clone()) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvrtc-{major}.{minor}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (architecture, effort) in ARCHITECTURES {
        let marker = folder.join(format!("{hash}.sm_{architecture}"));
        if marker.exists() {
            continue;
        }
        match nvrtc::compile(&Program { effort, ..program.clone() }, architecture) {
            Ok(cubin) => {
                assert!(!cubin.is_empty());
                std::fs::write(&marker, "").unwrap();
            }
            Err(GpuError::CompilerUnavailable { .. }) => return,
            Err(error) => panic!("sm_{architecture}: {error:?}\n{}", program.source),
        }
    }
}
