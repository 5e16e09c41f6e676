//! Every program that ran on the emulated device is compiled by NVRTC too, where it is installed.
//!
//! A program that compiled once for an architecture is remembered in the folder for tests' files, so that only changes
//! cost time.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, Once};

use warpcube_gpu::{Effort, GpuError, Program, cuda::nvrtc};

/// The architecture that every program is compiled for: Hopper.
const EVERY: u32 = 90;
/// Those that programs share, two for each: Ampere, Ada, Blackwell, of servers and of workstations.
const SHARED: [u32; 5] = [80, 86, 89, 100, 120];

/// Architectures of a program, and the effort with which it is compiled for them.
fn architectures(hash: &str) -> [(u32, Effort); 3] {
    let number = usize::from_str_radix(&hash[..8], 16).expect("hexadecimal digits");
    let shared = |place: usize| SHARED[(number + 2 * place) % SHARED.len()];
    [(EVERY, Effort::Full), (shared(0), Effort::Less), (shared(1), Effort::Least)]
}

/// Compiles a program for its architectures, once.
pub fn compile_everywhere(program: &Program) {
    static DONE: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    static FIND: Once = Once::new();
    FIND.call_once(|| {
        if let Err(error) = nvrtc::location(None) {
            eprintln!("skipped: generated programs are not compiled for GPUs: {error}");
        }
    });
    let hash = program.hash().to_string();
    let Ok((_, (major, minor))) = nvrtc::location(None) else { return };
    if !DONE.lock().unwrap().get_or_insert_default().insert(hash.clone()) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvrtc-{major}.{minor}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (architecture, effort) in architectures(&hash) {
        let marker = folder.join(format!("{hash}.sm_{architecture}"));
        if marker.exists() {
            continue;
        }
        match nvrtc::compile(&program.with_effort(effort), architecture) {
            Ok(cubin) => {
                assert!(!cubin.is_empty());
                std::fs::write(&marker, "").unwrap();
            }
            Err(GpuError::CompilerUnavailable { .. }) => return,
            Err(error) => panic!("sm_{architecture}: {error:?}\n{}", program.source()),
        }
    }
}
