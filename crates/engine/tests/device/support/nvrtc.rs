//! Every program that ran on the emulated device is compiled by NVRTC too, where it is installed: for one architecture,
//! with one effort, which programs share among them.
//!
//! A program that compiled once is remembered in the folder for tests' files, so that only changes cost time.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, Once};

use warpcube_gpu::{Effort, GpuError, Program, cuda::nvrtc};

/// Ampere, Ada, Hopper, Blackwell, of servers and of workstations.
const ARCHITECTURES: [u32; 6] = [80, 86, 89, 90, 100, 120];
/// The least effort, with which a statement's program is compiled first, takes a third of the time of the others.
const EFFORTS: [Effort; 4] = [Effort::Full, Effort::Less, Effort::Least, Effort::Least];

/// The architecture of a program, and the effort with which it is compiled for it.
fn target(hash: &str) -> (u32, Effort) {
    let number = usize::from_str_radix(&hash[..8], 16).expect("hexadecimal digits");
    (ARCHITECTURES[number % ARCHITECTURES.len()], EFFORTS[number / ARCHITECTURES.len() % EFFORTS.len()])
}

/// Compiles a program for its architecture, once.
pub fn compile_for_a_gpu(program: &Program) {
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
    let (architecture, effort) = target(&hash);
    let marker = folder.join(format!("{hash}.sm_{architecture}"));
    if marker.exists() {
        return;
    }
    match nvrtc::compile(&program.with_effort(effort), architecture) {
        Ok(cubin) => {
            assert!(!cubin.is_empty());
            std::fs::write(&marker, "").unwrap();
        }
        Err(GpuError::CompilerUnavailable { .. }) => {}
        Err(error) => panic!("sm_{architecture}: {error:?}\n{}", program.source()),
    }
}
