//! Exclusive scan of 2^28 numbers of 32 bits.

use serde_json::json;
use warpcube_gpu::Params;
use warpcube_gpu::prims::{Element, Reduction, Scan, ScanKind};

use super::Bench;
use super::hashed::{kernel, numbers, room, scratch, walk, word};
use crate::operators::roofline::Roofline;
use crate::suite::Failure;

/// Counts the rows whose sum is not that of the row before and its item.
const CHECK: &str = "struct CheckParams { const uint32_t* in; const uint32_t* out; uint64_t* wrong; uint64_t n; };
WC_KERNEL(scan_check, CheckParams, 256, 1) {
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t wrong = 0;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.n; row += stride) {
        const uint32_t expected = row == 0 ? 0u : p.out[row - 1] + p.in[row - 1];
        if (p.out[row] != expected) wrong++;
    }
    if (wrong != 0) wc_add(p.wrong, wrong);
}";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let case = "scan/u32";
    let shapes = bench.shapes(case, Scan::tuning(Element::U32, Reduction::Sum(Element::U32)));
    if shapes.is_empty() {
        return Ok(());
    }
    let (device, n) = (bench.device.clone(), bench.rows(28));
    let input = numbers(&device, &mut bench.stream, n, 4)?;
    let (out, wrong) = (room(&device, Element::U32, n)?, room(&device, Element::U64, 1)?);
    let check = kernel(&device, "scan_check", CHECK)?;
    for (case, tuning) in shapes {
        let kind = ScanKind::Exclusive;
        let scans = Scan::with_tuning(&device, Element::U32, Reduction::Sum(Element::U32), kind, tuning)?;
        let memory = scratch(&device, scans.scratch_bytes(n))?;
        let written = [out.buffer(), &memory];
        let ms = bench.time(&[input.buffer()], &written, |work| scans.launch(work, &input, &out, &memory))?;
        bench.stream.fill(wrong.buffer(), 0, 0, 8)?;
        let params = Params::new().slice(&input).slice(&out).slice(&wrong).u64(n);
        bench.stream.launch(&check, walk(&device), &params)?;
        match word(&mut bench.stream, &wrong, 0)? {
            0 => {
                let more = json!({"rows": n, "predicted_ms": bench.rates.scan_ms(n, 4, 4)});
                bench.add(&case, ms, 8 * n, bench.ceiling(4 * n, 4 * n), more);
            }
            wrong => return Err(format!("{case}: {wrong} of {n} sums are wrong").into()),
        }
    }
    Ok(())
}
