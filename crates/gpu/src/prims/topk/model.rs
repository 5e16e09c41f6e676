//! What each algorithm of top-k needs by its bytes.
//!
//! The formulas are those of paper 003, 4.6, with the reads that this library's kernels make and random keys: passes
//! over device memory at its bandwidth, steps of bitonic sorting at that of shared memory, and a time for each launch.

use super::{Algorithm, BitonicLevel, TopKSpec, plan};
use crate::prims::roofline::{self, DeviceRates};

/// What a device can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Bytes a second that kernels read from device memory.
    pub read_bandwidth: f64,
    /// Bytes a second of shared memory, all multiprocessors together.
    pub shared_bandwidth: f64,
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
    let k = spec.k.min(n).max(1);
    let digits = (spec.element.bytes() * 8).div_ceil(11) as f64;
    // Candidates are sorted by one block, or by five kernels that read and write them twice.
    let finish_ms = if k <= 2048 {
        4.0 * machine.launch_ms
    } else {
        5.0 * machine.launch_ms + 8.0 * k as f64 * pair / machine.read_bandwidth * 1e3
    };
    let passes_ms = (digits + 1.0) * machine.launch_ms;
    Some(match spec.algorithm {
        Algorithm::Threshold => read_ms + 4.0 * machine.launch_ms + passes_ms + finish_ms,
        Algorithm::SortAndChoose => {
            // Keys are read to count digits and in the first pass, all other passes move pairs.
            let passes = spec.element.bytes() as f64;
            let moved = 2.0 * bytes + (2.0 * passes - 1.0) * n as f64 * pair;
            moved / machine.sort_bandwidth * 1e3 + (passes + 3.0) * machine.launch_ms
        }
        // The first digit of a float is mostly exponent: two passes over all keys, and one that writes the third.
        Algorithm::RadixSelect => 3.0 * read_ms + passes_ms + finish_ms,
        Algorithm::BucketSelect => {
            let reads = if k == 1 { 2.0 } else { 4.0 };
            reads * read_ms + passes_ms + finish_ms
        }
        Algorithm::HeapShared => {
            let heap_bytes = spec.k.max(1) as usize * (spec.element.bytes() + plan::HEAP_STEP_BYTES);
            let threads = (machine.shared_bytes / heap_bytes).min(1024);
            // 1,024 threads with eight loads each reach the bandwidth.
            read_ms * (1024.0 / threads as f64).max(1.0) + passes_ms + finish_ms
        }
        Algorithm::HeapRegisters => {
            // A replaced element costs k comparisons; from 32 on the list leaves the registers.
            let spill = if spec.k > 32 { spec.k as f64 / 8.0 } else { 1.0 };
            read_ms * spill + passes_ms + finish_ms
        }
        Algorithm::Bitonic(level) => {
            let run = spec.k.max(1).next_power_of_two();
            return Some(bitonic_ms(machine, level, n as f64, bytes, pair, run) + finish_ms);
        }
    })
}

/// The sum over kernels of the larger of device and shared memory's time (paper 003, 4.6.2); level by level.
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
    // Chunks that meet in a bank, where neither padding nor turning keeps them apart.
    let conflicts = match level {
        BitonicLevel::Combined | BitonicLevel::SortedFirst => 2.0,
        BitonicLevel::Padded => 1.5,
        _ => 1.0,
    };
    let shared_ms = 2.0 * all * in_shared * conflicts / machine.shared_bandwidth * 1e3;
    let written = if level >= BitonicLevel::Fused { all / 8.0 } else { all * 6.0 };
    shared_ms.max((bytes + written) / machine.read_bandwidth * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DeviceInfo;
    use crate::prims::Element;
    use crate::{Device, EmulatorOptions};

    fn spec(k: u64, algorithm: Algorithm) -> TopKSpec {
        TopKSpec { rows: Element::U32, ..TopKSpec::new(Element::F32, k, algorithm) }
    }

    #[test]
    fn the_model_has_the_papers_shape() {
        let ms = |k, algorithm| predict_ms(&Machine::H200, &spec(k, algorithm), 1 << 29);
        let bitonic = |k| ms(k, Algorithm::Bitonic(BitonicLevel::Reassigned));
        // Bitonic Top-K beats radix select up to k of some 256, and cannot take a k of 4,096.
        assert!(bitonic(32) < ms(32, Algorithm::RadixSelect));
        assert!(bitonic(1024) > bitonic(32));
        assert_eq!(bitonic(4096), None);
        assert_eq!(ms(2048, Algorithm::HeapShared), None);
        // Sort and choose takes the same time for all k, and more than any selection.
        let sort = |k| ms(k, Algorithm::SortAndChoose).unwrap();
        assert!(sort(1) == sort(1 << 20) && sort(1) > 5.0 * ms(1 << 20, Algorithm::RadixSelect).unwrap());
        // Each optimisation but the first brings something.
        let levels = BitonicLevel::ALL.map(|level| ms(32, Algorithm::Bitonic(level)).unwrap());
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0]), "{levels:?}");
        assert!(levels[7] < levels[0] / 10.0);
        // The target of issue 20.
        assert!(ms(256, Algorithm::Threshold).unwrap() < 0.55);
        assert!(ms(1 << 20, Algorithm::Threshold).unwrap() < 0.7);
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
