//! What each algorithm of top-k needs by its bytes and its instructions.
//!
//! The formulas are those of paper 003, 4.6, with the reads that this library's kernels make and random keys: passes
//! over device memory at its bandwidth, steps of bitonic sorting at that of shared memory, and a time for each launch.
//! Where instructions take longer than bytes, their number a key counts, each measured on an H200.

use super::{Algorithm, BitonicLevel, TopKSpec, plan};
use crate::prims::Measured;
use crate::prims::roofline::{self, DeviceRates};
use crate::prims::tuning::on_h200;

/// Instructions of a key that a pass counts by its digit; shared memory serves few bins one lane after the other.
const COUNT: Measured<f64> =
    on_h200!(78.0, "2026-11-23", "2^29 floats, k of 32 to 256: two counts and a read in 3.39 ms");
/// Instructions of a key that no heap, or no list, takes.
const HEAP_KEY: Measured<f64> = on_h200!(43.0, "2026-11-23", "2^29 floats, k = 1: 0.837 ms");
const LIST_KEY: Measured<f64> = on_h200!(37.0, "2026-11-23", "2^29 floats, k = 1: 0.726 ms");
/// Instructions of a level that a key of a heap sinks by, and its cycles where few warps hide them.
const HEAP_LEVEL: Measured<f64> = on_h200!(35.0, "2026-11-23", "2^29 floats, k = 4, 8, 16: 1.08, 1.41, 2.11 ms");
const HEAP_LEVEL_CYCLES: Measured<f64> = on_h200!(225.0, "2026-11-23", "k = 64, 128, 256: 5.84, 12.5, 26.5 ms");
/// Instructions of a slot, and a word of it, of a list that takes a key; twice as many where it leaves the registers.
const LIST_SLOT: Measured<f64> = on_h200!(20.0, "2026-11-23", "2^29 floats, k = 8, 16, 32: 1.32, 3.02, 9.17 ms");
/// Instructions of a word of a candidate: before its first step, and of a step, among several at once or by itself.
const BITONIC_WORD: Measured<f64> = on_h200!(17.0, "2026-11-23", "2^29 floats, k = 1: 1.63 ms");
const BITONIC_STEP: Measured<f64> = on_h200!(5.5, "2026-11-23", "2^29 floats, k = 32, 256: 5.62, 10.1 ms");
const BITONIC_STEP_ALONE: Measured<f64> = on_h200!(9.0, "2026-11-23", "2^29 floats, k = 32, fused: 9.74 ms");

/// Instructions of a candidate that is sorted by five kernels, of 32 bits and of more.
const CANDIDATE: Measured<f64> = on_h200!(2900.0, "2026-11-25", "2^29 floats, k = 256, 2^20: 0.522, 0.653 ms");
const CANDIDATE_WIDE: Measured<f64> = on_h200!(9800.0, "2026-11-25", "2^28 doubles, k = 256, 2^20: 0.550, 0.918 ms");

/// What a device can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Bytes a second that kernels read from device memory.
    pub read_bandwidth: f64,
    /// Bytes a second of shared memory, all multiprocessors together.
    pub shared_bandwidth: f64,
    /// Instructions of lanes a second, all multiprocessors together.
    pub issue: f64,
    /// Cycles of a multiprocessor a second.
    pub clock: f64,
    /// Bytes a second that passes of a radix sort read and write.
    pub sort_bandwidth: f64,
    /// Milliseconds that a small kernel takes behind another one.
    pub launch_ms: f64,
    /// Shared memory of a block in bytes.
    pub shared_bytes: usize,
}

impl Machine {
    /// One H200.
    pub const H200: Machine = Machine::of(&roofline::H200);

    /// A device by its rates.
    pub const fn of(rates: &DeviceRates) -> Machine {
        Machine {
            read_bandwidth: rates.read.value,
            shared_bandwidth: rates.shared.value,
            issue: rates.issue.value,
            clock: rates.clock.value,
            sort_bandwidth: rates.sorted.value,
            launch_ms: rates.launch_ms.value,
            shared_bytes: rates.shared_bytes.value,
        }
    }
}

/// Predicted milliseconds of `spec.algorithm` over `n` random keys; none if [`super::TopK::new`] refuses the spec for
/// its k. Launchers are made for k, so fewer keys than k do not help an algorithm that cannot take it.
pub fn predict_ms(machine: &Machine, spec: &TopKSpec, n: u64) -> Option<f64> {
    if spec.k > plan::k_max(spec, machine.shared_bytes) {
        return None;
    }
    let bytes = n as f64 * spec.element.bytes() as f64;
    let pair = spec.element.bytes() as f64 + spec.rows.bytes() as f64;
    let read_ms = bytes / machine.read_bandwidth * 1e3;
    let issued = |instructions: f64| instructions / machine.issue * 1e3;
    let counted_ms = read_ms.max(issued(n as f64 * COUNT.value));
    let k = spec.k.min(n).max(1);
    let digits = (spec.element.bytes() * 8).div_ceil(11) as f64;
    let finish_ms = finish_ms(machine, spec, k);
    let passes_ms = (digits + 1.0) * machine.launch_ms;
    Some(match spec.algorithm {
        Algorithm::Threshold => read_ms + 4.0 * machine.launch_ms + passes_ms + finish_ms,
        Algorithm::SortAndChoose => {
            // Keys are read to count digits and in the first pass, all other passes move pairs.
            let passes = spec.element.bytes() as f64;
            let moved = 2.0 * bytes + (2.0 * passes - 1.0) * n as f64 * pair;
            moved / machine.sort_bandwidth * 1e3 + (passes + 3.0) * machine.launch_ms
        }
        // The first digit of a float is mostly exponent: two passes count all keys, and one writes the third.
        Algorithm::RadixSelect => {
            let counts = if spec.element.is_float() { 2.0 } else { 1.0 };
            counts * counted_ms + read_ms + passes_ms + finish_ms
        }
        // The extent is read first; buckets between the extremes leave a range that a pass reads and writes.
        Algorithm::BucketSelect => {
            let selected_ms = if k == 1 { read_ms } else { counted_ms + 2.0 * read_ms };
            read_ms + selected_ms + passes_ms + finish_ms
        }
        Algorithm::HeapShared | Algorithm::HeapRegisters => {
            heap_ms(machine, spec, n as f64).max(read_ms) + passes_ms + finish_ms
        }
        Algorithm::Bitonic(level) => {
            let run = spec.k.max(1).next_power_of_two();
            return Some(bitonic_ms(machine, level, n as f64, bytes, pair, run) + finish_ms);
        }
    })
}

/// Predicted milliseconds of ordering the `k` keys that were selected: by one block, or by five kernels that read and
/// write them twice.
pub fn finish_ms(machine: &Machine, spec: &TopKSpec, k: u64) -> f64 {
    if k <= 2048 {
        return 4.0 * machine.launch_ms;
    }
    let pair = spec.element.bytes() as f64 + spec.rows.bytes() as f64;
    let candidate = if spec.element.bytes() <= 4 { CANDIDATE } else { CANDIDATE_WIDE };
    let moved_ms = 8.0 * k as f64 * pair / machine.read_bandwidth * 1e3;
    5.0 * machine.launch_ms + moved_ms + k as f64 * candidate.value / machine.issue * 1e3
}

/// Heaps or lists of all threads: each key is looked at, and lanes of a warp wait for each other's replacements. Of
/// random keys the i-th of a thread is among its best k with probability k / i, so a warp replaces at all of the first
/// 32 k keys and at a share of 32 k / i of the others.
fn heap_ms(machine: &Machine, spec: &TopKSpec, n: f64) -> f64 {
    let in_shared = spec.algorithm == Algorithm::HeapShared;
    let warps = f64::from(plan::heaps_resident(spec, machine.shared_bytes).0 * plan::heap_threads(spec) / 32);
    // Lanes of all multiprocessors issue `issue / clock` instructions a cycle, four warps a multiprocessor.
    let multiprocessors = machine.issue / machine.clock / 128.0;
    let keys = n / (multiprocessors * warps * 32.0);
    let (k, all) = (spec.k.max(1) as f64, 32.0 * spec.k.max(1) as f64);
    let replacements = if keys > all { all * (1.0 + (keys / all).ln()) } else { keys };
    let issue_cycles = warps / 4.0;
    let replaced_cycles = if in_shared {
        (k.log2() + 1.0) * HEAP_LEVEL_CYCLES.value.max(HEAP_LEVEL.value * issue_cycles)
    } else {
        let (words, spilled) = ((spec.element.bytes() as f64 / 4.0).max(1.0), if spec.k > 32 { 2.0 } else { 1.0 });
        k * words * spilled * LIST_SLOT.value * issue_cycles
    };
    let key = if in_shared { HEAP_KEY } else { LIST_KEY };
    (keys * key.value * issue_cycles + replacements * replaced_cycles) / machine.clock * 1e3
}

/// The sum over kernels of device memory's time and the larger of shared memory's and the instructions' (paper 003,
/// 4.6.2, has the larger of the first two: kernels wait at barriers between loads and steps); level by level.
fn bitonic_ms(machine: &Machine, level: BitonicLevel, n: f64, bytes: f64, pair: f64, run: u64) -> f64 {
    let log_k = f64::from(run.ilog2());
    let sort_steps = log_k * (log_k + 1.0) / 2.0;
    // Merges and rebuilds halve the candidates, so all together step over as many again.
    let steps = sort_steps + 2.0 + log_k;
    let all = n * pair;
    if level == BitonicLevel::Global {
        return 2.0 * all * steps / machine.read_bandwidth * 1e3;
    }
    // Distances that one access to shared memory serves.
    let at_once: f64 = if level >= BitonicLevel::Padded { 4.0 } else { 3.0 };
    let combined = if level >= BitonicLevel::Combined { at_once } else { 1.0 };
    let in_registers = if level >= BitonicLevel::SortedFirst { at_once.min(log_k) } else { 0.0 };
    let in_shared = (steps - in_registers * (in_registers + 1.0) / 2.0).max(1.0) / combined;
    // Chunks that meet in a bank, where neither padding nor turning keeps them apart: eight keys a thread.
    let conflicts = match level {
        BitonicLevel::Combined | BitonicLevel::SortedFirst => 8.0,
        BitonicLevel::Padded => 1.5,
        _ => 1.0,
    };
    let shared_ms = 2.0 * all * in_shared * conflicts / machine.shared_bandwidth * 1e3;
    let step = if level >= BitonicLevel::Combined { BITONIC_STEP } else { BITONIC_STEP_ALONE };
    let issued_ms = all / 4.0 * (BITONIC_WORD.value + steps * step.value) / machine.issue * 1e3;
    let written = if level >= BitonicLevel::Fused { all / 8.0 } else { all * 6.0 };
    shared_ms.max(issued_ms) + (bytes + written) / machine.read_bandwidth * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DeviceInfo;
    use crate::device::Device;
    use crate::emulated::EmulatorOptions;
    use crate::prims::Element;
    use crate::prims::Element::{F32, U64};

    fn spec(k: u64, algorithm: Algorithm) -> TopKSpec {
        TopKSpec { rows: Element::U32, ..TopKSpec::new(Element::F32, k, algorithm) }
    }

    #[test]
    fn the_model_has_the_papers_shape() {
        let ms = |k, algorithm| predict_ms(&Machine::H200, &spec(k, algorithm), 1 << 29);
        let bitonic = |k| ms(k, Algorithm::Bitonic(BitonicLevel::Reassigned));
        // Bitonic Top-K beats radix select for small k, and cannot take a k of 4,096.
        assert!(bitonic(4) < ms(4, Algorithm::RadixSelect) && bitonic(64) > ms(64, Algorithm::RadixSelect));
        assert!(bitonic(1024) > bitonic(32));
        assert_eq!(bitonic(4096), None);
        assert_eq!(ms(2048, Algorithm::HeapShared), None);
        // Sort and choose takes the same time for all k, and more than any selection.
        let sort = |k| ms(k, Algorithm::SortAndChoose).unwrap();
        assert!(sort(1) == sort(1 << 20) && sort(1) > 4.0 * ms(1 << 20, Algorithm::RadixSelect).unwrap());
        // Each optimisation brings something, but that several distances at once meet in banks until padding.
        let levels = BitonicLevel::ALL.map(|level| ms(32, Algorithm::Bitonic(level)).unwrap());
        let gains = levels.windows(2).map(|pair| pair[1] <= pair[0]).collect::<Vec<_>>();
        assert_eq!(gains, [true, true, false, true, true, true, true], "{levels:?}");
        assert!(levels[7] < levels[0] / 7.0);
        // What is asked of the default.
        assert!(ms(256, Algorithm::Threshold).unwrap() < 0.55);
        assert!(ms(1 << 20, Algorithm::Threshold).unwrap() < 0.7);
    }

    /// Milliseconds of the k largest of 2 GiB of uniform keys, on one H200, 2026-11-26.
    const MEASURED: [(Element, u64, &str, f64); 36] = [
        (F32, 1, "threshold", 0.510),
        (F32, 1, "sort_and_choose", 15.678),
        (F32, 1, "bucket_select", 0.977),
        (F32, 1, "heap_shared", 0.840),
        (F32, 1, "heap_registers", 0.724),
        (F32, 1, "bitonic", 1.630),
        (F32, 32, "threshold", 0.515),
        (F32, 32, "sort_and_choose", 15.712),
        (F32, 32, "radix_select", 3.377),
        (F32, 32, "bucket_select", 2.843),
        (F32, 32, "heap_shared", 3.164),
        (F32, 32, "heap_registers", 9.158),
        (F32, 32, "bitonic", 5.635),
        (F32, 256, "threshold", 0.522),
        (F32, 256, "sort_and_choose", 15.704),
        (F32, 256, "radix_select", 3.386),
        (F32, 256, "bucket_select", 2.862),
        (F32, 256, "heap_shared", 26.525),
        (F32, 256, "bitonic", 10.153),
        (F32, 1_048_576, "threshold", 0.652),
        (F32, 1_048_576, "sort_and_choose", 15.702),
        (F32, 1_048_576, "radix_select", 3.865),
        (F32, 32, "bitonic_global", 49.529),
        (F32, 32, "bitonic_shared", 13.651),
        (F32, 32, "bitonic_fused", 9.733),
        (F32, 32, "bitonic_combined", 16.478),
        (F32, 32, "bitonic_sorted_first", 11.302),
        (F32, 32, "bitonic_padded", 5.931),
        (F32, 32, "bitonic_permuted", 5.866),
        (U64, 1, "threshold", 0.512),
        (U64, 32, "threshold", 0.519),
        (U64, 32, "sort_and_choose", 20.690),
        (U64, 32, "radix_select", 1.179),
        (U64, 32, "bitonic", 4.386),
        (U64, 256, "threshold", 0.523),
        (U64, 1_048_576, "threshold", 0.903),
    ];

    #[test]
    fn algorithms_are_predicted_within_three_tenths() {
        let levels = BitonicLevel::ALL.map(Algorithm::Bitonic);
        let algorithms: Vec<Algorithm> = Algorithm::ALL.into_iter().chain(levels).collect();
        for (element, k, name, measured) in MEASURED {
            let algorithm = *algorithms.iter().find(|algorithm| algorithm.to_string() == name).unwrap();
            let spec = TopKSpec { element, ..spec(k, algorithm) };
            let ratio = measured / predict_ms(&Machine::H200, &spec, (1 << 31) / element.bytes() as u64).unwrap();
            assert!(
                (1.0 / 1.3..1.3).contains(&ratio),
                "{k} of {element} by {algorithm}: {ratio:.2} times the prediction"
            );
        }
    }

    #[test]
    fn algorithms_that_launchers_refuse_have_no_prediction() {
        let levels = BitonicLevel::ALL.map(Algorithm::Bitonic);
        let algorithms: Vec<Algorithm> = Algorithm::ALL.into_iter().chain(levels).collect();
        let ks = [0, 64, 65, 512, 513, 907, 908, 1024, 1025, 2000, 1 << 20, (1 << 20) + 1];
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        for shared_bytes in [99 << 10, 227 << 10] {
            let info = DeviceInfo { shared_memory_per_block: shared_bytes, ..device.info().clone() };
            let machine = Machine { shared_bytes, ..Machine::H200 };
            for element in [Element::U8, Element::F32, Element::F64, Element::I128] {
                for (k, algorithm) in ks.into_iter().flat_map(|k| algorithms.iter().map(move |it| (k, *it))) {
                    let spec = TopKSpec { element, ..spec(k, algorithm) };
                    let is_refused = spec.check(&info).is_err();
                    for n in [100, 1 << 29] {
                        let ms = predict_ms(&machine, &spec, n);
                        assert_eq!(ms.is_none(), is_refused, "{spec:?}, {n} keys: {ms:?}");
                        assert!(ms.is_none_or(|ms| ms > 0.0 && ms.is_finite()), "{spec:?}, {n} keys: {ms:?}");
                    }
                }
            }
        }
        // Few keys do not make a launcher for more of them.
        let bitonic = Algorithm::Bitonic(BitonicLevel::Reassigned);
        assert_eq!(predict_ms(&Machine::H200, &spec(2000, bitonic), 100), None);
        // A word beside the heaps of 32 threads.
        assert!(predict_ms(&Machine::H200, &spec(907, Algorithm::HeapShared), 1 << 29).is_some());
        assert_eq!(predict_ms(&Machine::H200, &spec(908, Algorithm::HeapShared), 1 << 29), None);
    }
}
