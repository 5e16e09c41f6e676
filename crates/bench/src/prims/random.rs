//! Rates that the roofline is made of: random words of 8 bytes and pairs of them from regions of all sizes, random
//! additions to words, and copies over the bus.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_gpu::prims::{Element, Queue};
use warpcube_gpu::{LaunchShape, Params};

use super::Bench;
use super::hashed::{kernel, numbers, room, walk, word};
use super::keyed::KEYED;
use crate::operators::roofline::Roofline;
use crate::stats::Sample;
use crate::suite::Failure;

/// Sums of words at random places, eight asked for at once; additions to every other word.
const TEXT: &str = "struct RandomParams { uint64_t* words; uint64_t mask; uint64_t n; uint64_t seed; uint64_t* sum; };
WC_DEVICE uint32_t wc_place(uint64_t seed, uint64_t row, uint64_t mask) {
    return wc_mix((uint32_t)(row + seed)) & (uint32_t)mask;
}
WC_KERNEL(random_reads, RandomParams, 256, 4) {
    uint64_t sum = 0;
    for (uint64_t row = wc_first(); row + 7 * wc_stride() < p.n; row += 8 * wc_stride()) {
        uint64_t found[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            found[i] = wc_load_cached(p.words + wc_place(p.seed, row + i * wc_stride(), p.mask));
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += found[i];
    }
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0) wc_add(p.sum, sum);
}
WC_KERNEL(random_shared, RandomParams, 1024, 1) {
    uint64_t* copy = (uint64_t*)wc_shared();
    for (uint64_t at = threadIdx.x; at <= p.mask; at += blockDim.x) copy[at] = p.words[at];
    __syncthreads();
    uint64_t sum = 0;
    for (uint64_t row = wc_first(); row + 7 * wc_stride() < p.n; row += 8 * wc_stride()) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += copy[wc_place(p.seed, row + i * wc_stride(), p.mask)];
    }
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0) wc_add(p.sum, sum);
}
WC_KERNEL(random_pairs, RandomParams, 256, 4) {
    const uint4* pairs = (const uint4*)p.words;
    uint64_t sum = 0;
    for (uint64_t row = wc_first(); row + 3 * wc_stride() < p.n; row += 4 * wc_stride()) {
        uint4 found[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            found[i] = wc_load_cached(pairs + wc_place(p.seed, row + i * wc_stride(), p.mask / 2));
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += found[i].x ^ found[i].y ^ found[i].z ^ found[i].w;
    }
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0) wc_add(p.sum, sum);
}
WC_KERNEL(random_shared_pairs, RandomParams, 1024, 1) {
    uint64_t* copy = (uint64_t*)wc_shared();
    for (uint64_t at = threadIdx.x; at <= p.mask; at += blockDim.x) copy[at] = p.words[at];
    __syncthreads();
    const uint4* pairs = (const uint4*)copy;
    uint64_t sum = 0;
    for (uint64_t row = wc_first(); row + 3 * wc_stride() < p.n; row += 4 * wc_stride()) {
        uint4 found[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) found[i] = pairs[wc_place(p.seed, row + i * wc_stride(), p.mask / 2)];
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += found[i].x ^ found[i].y ^ found[i].z ^ found[i].w;
    }
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0) wc_add(p.sum, sum);
}
WC_KERNEL(random_adds, RandomParams, 256, 4) {
    for (uint64_t row = wc_first(); row < p.n; row += wc_stride()) {
        wc_add(p.words + wc_place(p.seed, row, p.mask), 1ull);
    }
}
WC_KERNEL(random_shared_adds, RandomParams, 1024, 1) {
    uint32_t* copy = (uint32_t*)wc_shared();
    for (uint64_t at = threadIdx.x; at <= p.mask; at += blockDim.x) copy[at] = 0;
    __syncthreads();
    uint32_t sum = 0;
    for (uint64_t row = wc_first(); row + 7 * wc_stride() < p.n; row += 8 * wc_stride()) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += atomicAdd(copy + wc_place(p.seed, row + i * wc_stride(), p.mask), 1u);
    }
    sum = __reduce_add_sync(WC_FULL_MASK, sum);
    if (wc_lane() == 0) wc_add(p.sum, (uint64_t)sum);
}
WC_KERNEL(random_check, RandomParams, 256, 1) {
    uint64_t sum = 0;
    for (uint64_t at = wc_first(); at <= p.mask; at += wc_stride()) sum += p.words[at];
    if (sum != 0) wc_add(p.sum, sum);
}";

/// Regions, as powers of two bytes.
const LOGS: std::ops::RangeInclusive<u32> = 13..=32;
/// The largest region that is copied to shared memory.
const SHARED_LOG_MAX: u32 = 17;
/// Bytes sent over the bus.
const SENT_BYTES: usize = 1 << 30;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    sent(bench)?;
    let kinds = ["reads", "pairs", "adds", "shared", "shared_pairs", "shared_adds"];
    let wanted: Vec<(u32, &str, String)> = LOGS
        .flat_map(|log| kinds.map(|kind| (log, kind, format!("random/{kind}/{}", 1u64 << log))))
        .filter(|(log, kind, case)| (!kind.starts_with("shared") || *log <= SHARED_LOG_MAX) && bench.wants(case))
        .collect();
    let Some(log_max) = wanted.iter().map(|(log, ..)| *log).max() else { return Ok(()) };
    let (device, n) = (bench.device.clone(), bench.rows(28));
    let words = numbers(&device, &mut bench.stream, 1 << (log_max - 2), 21)?;
    let sum = room(&device, Element::U64, 1)?;
    let check = kernel(&device, "random_check", &[KEYED, TEXT].concat())?;
    for (log, kind, case) in wanted {
        let measured = kernel(&device, &format!("random_{kind}"), &[KEYED, TEXT].concat())?;
        let mask = (1u64 << (log - 3)) - 1;
        let params = Params::new().slice(&words).u64(mask).u64(n).u64(5).slice(&sum);
        let multiprocessors = device.info().multiprocessors;
        let shape = match kind {
            "shared" | "shared_pairs" => LaunchShape { grid: multiprocessors, block: 1024, shared_bytes: 1 << log },
            "shared_adds" => LaunchShape { grid: multiprocessors, block: 1024, shared_bytes: 1 << (log - 1) },
            "adds" => LaunchShape { grid: multiprocessors * 8, block: 256, shared_bytes: 0 },
            _ => LaunchShape { grid: multiprocessors * 4, block: 256, shared_bytes: 0 },
        };
        let threads = u64::from(shape.grid) * u64::from(shape.block);
        if kind != "adds" && n < 8 * threads {
            bench.leave_out(&case, &format!("{n} reads are fewer than 8 of each of {threads} threads"));
            continue;
        }
        let total = |bench: &mut Bench<'_>| -> Result<u64, Failure> {
            bench.stream.fill(sum.buffer(), 0, 0, 8)?;
            bench.stream.launch(&check, walk(&device), &params)?;
            Ok(word(&mut bench.stream, &sum, 0)?)
        };
        let before = total(bench)?;
        // Both are added to, and keep what they have before the first run.
        bench.stream.fill(sum.buffer(), 0, 0, 8)?;
        let used = [words.buffer(), sum.buffer()];
        let ms = bench.time(&used, &[], |work| Queue::launch(work, &measured, shape, &params))?;
        let found = word(&mut bench.stream, &sum, 0)?;
        let added = total(bench)?.wrapping_sub(before);
        // Each run adds one to `n` words; reads leave them alone, and add what they read.
        let is_right = if kind == "adds" { added > 0 && added.is_multiple_of(n) } else { added == 0 && found != 0 };
        if !is_right {
            return Err(format!("{case}: {added} were added, reads have the sum {found}").into());
        }
        let floor_ms = bench.rates.probe_ms(n as f64, (1u64 << log) as f64, 0.0);
        let more = json!({"accesses": n, "per_second": n as f64 / ms.ms * 1e3, "region_bytes": 1u64 << log});
        bench.add(&case, ms, 32 * n, 32.0 * n as f64 / floor_ms * 1e3, more);
    }
    Ok(())
}

/// Page-locked memory sent to the device.
fn sent(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let case = "random/sent";
    if !bench.wants(case) {
        return Ok(());
    }
    let host = Arc::new(bench.device.host_buffer(SENT_BYTES)?);
    let target = bench.device.buffer(SENT_BYTES, "a benchmark")?;
    let mut times = Vec::new();
    for _ in 0..5 {
        bench.run.go_on()?;
        let start = Instant::now();
        bench.stream.upload_from(&target, 0, &host, 0, SENT_BYTES)?;
        bench.stream.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    bench.add(case, Sample::of(&times), SENT_BYTES as u64, bench.rates.sent.value, json!({"bytes": SENT_BYTES}));
    Ok(())
}
