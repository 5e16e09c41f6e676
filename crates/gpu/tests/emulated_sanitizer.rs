//! Kernels under the address sanitizer: correct ones pass, and a finding ends the process with a report.
//!
//! The sanitizer must be loaded before a process begins, so each test starts this program again with it.

mod emulated_support;

use std::process::{Command, Output};

use emulated_support::{ORDERS, Rig, shape};

/// Names the kernel that a restarted process runs.
const CASE: &str = "WARPCUBE_TEST_SANITIZER_CASE";

const RIGHT: &str = "struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(right, P, 128, 1) {
    uint64_t* arena = (uint64_t*)wc_shared();
    uint64_t local[8];
    for (uint32_t i = 0; i < 8; i++) local[i] = p.in[threadIdx.x] + i;
    arena[threadIdx.x] = wc_warp_sum(local[threadIdx.x % 8]);
    __syncthreads();
    p.out[threadIdx.x] = arena[blockDim.x - 1 - threadIdx.x];
}";

const PAST_SHARED: &str = "struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(past_shared, P, 128, 1) { p.out[0] = ((uint64_t*)wc_shared())[threadIdx.x + 1]; }";

const PAST_BUFFER: &str = "struct P { const uint64_t* in; uint64_t* out; };
WC_KERNEL(past_buffer, P, 128, 1) { p.out[0] = p.in[threadIdx.x + 1]; }";

/// Runs in the restarted process alone.
#[test]
fn case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (name, source) = match case.as_str() {
        "right" => ("right", RIGHT),
        "past_shared" => ("past_shared", PAST_SHARED),
        _ => ("past_buffer", PAST_BUFFER),
    };
    for order in ORDERS {
        let input: Vec<u64> = (0..128).collect();
        let output: Vec<u64> = Rig::new(order).run(name, source, shape(6, 128, 1024), &input, 128).unwrap();
        let warp_sum = |warp: u64| (0..32).map(|lane| warp * 32 + lane + lane % 8).sum::<u64>();
        let expected: Vec<u64> = (0..128).map(|thread| warp_sum((127 - thread) / 32)).collect();
        assert_eq!(output, expected);
    }
}

/// Output of the restarted process; none if the compiler has no sanitizer.
fn restart(case: &str) -> Option<Output> {
    let found = Command::new("g++").arg("-print-file-name=libasan.so").output().ok()?;
    let library = String::from_utf8(found.stdout).ok()?.trim().to_string();
    if !library.starts_with('/') {
        eprintln!("skipped: this compiler has no libasan.so");
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "case", "--nocapture"]).env(CASE, case).env("WARPCUBE_EMULATOR_SANITIZE", "1");
    Some(command.env("LD_PRELOAD", library).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap())
}

#[test]
fn right_kernels_pass() {
    let Some(output) = restart("right") else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn reads_past_shared_memory_and_past_buffers_are_found() {
    for case in ["past_shared", "past_buffer"] {
        let Some(output) = restart(case) else { return };
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && report.contains("AddressSanitizer"), "{case}: {report}");
        assert!(report.contains(&format!("{case}.cu:2")), "{case}: {report}");
    }
}
