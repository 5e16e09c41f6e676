//! What each algorithm of top-k needs by its bytes, and the choice among them.
//!
//! The formulas are those of paper 003, 4.6, with the reads that this library's kernels make and random keys: passes
//! over device memory at its bandwidth, steps of bitonic sorting at that of shared memory, and a time for each launch.

use super::{Algorithm, BitonicLevel, TopKSpec};
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

/// An algorithm with what is expected of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Predicted milliseconds.
    pub ms: f64,
    /// The reason, for EXPLAIN.
    pub reason: String,
}

/// Predicted milliseconds of `spec.algorithm` over `n` random keys; none if it cannot take the spec.
pub fn predict_ms(machine: &Machine, spec: &TopKSpec, n: u64) -> Option<f64> {
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
            let heap_bytes = k as usize * (spec.element.bytes() + 4);
            let threads = (machine.shared_bytes / heap_bytes).min(1024);
            if threads < 32 {
                return None;
            }
            // 1,024 threads with eight loads each reach the bandwidth.
            read_ms * (1024.0 / threads as f64).max(1.0) + passes_ms + finish_ms
        }
        Algorithm::HeapRegisters => {
            if k > 64 {
                return None;
            }
            // A replaced element costs k comparisons; from 32 on the list leaves the registers.
            let spill = if k > 32 { k as f64 / 8.0 } else { 1.0 };
            read_ms * spill + passes_ms + finish_ms
        }
        Algorithm::Bitonic(level) => {
            let run = k.next_power_of_two();
            if super::bitonic::k_max(level, pair as usize, machine.shared_bytes) < run {
                return None;
            }
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

/// The algorithm with the least predicted time, and words for EXPLAIN. Heaps are taken by name alone: ascending keys
/// slow them down beyond any prediction.
pub fn choose(machine: &Machine, spec: &TopKSpec, n: u64) -> Choice {
    let robust = |algorithm: &Algorithm| !matches!(algorithm, Algorithm::HeapShared | Algorithm::HeapRegisters);
    let all = Algorithm::ALL.into_iter().filter(robust).filter_map(|algorithm| {
        let ms = predict_ms(machine, &TopKSpec { algorithm, ..*spec }, n)?;
        Some((algorithm, ms))
    });
    let mut ranked: Vec<(Algorithm, f64)> = all.collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (algorithm, ms) = ranked[0];
    let why = match algorithm {
        Algorithm::Threshold => "a sampled threshold leaves few candidates after one read of the keys",
        Algorithm::SortAndChoose => "all keys are sorted",
        Algorithm::RadixSelect => "digits decide with few candidates left",
        Algorithm::BucketSelect => "minimum and maximum decide",
        Algorithm::HeapShared => "a heap a thread fits in shared memory",
        Algorithm::HeapRegisters => "a list a thread fits in registers",
        Algorithm::Bitonic(_) => "a tile of runs fits in shared memory",
    };
    let next = ranked.get(1).map_or(String::new(), |(next, ms)| format!("; {next} {ms:.3} ms"));
    let k = spec.k.min(n);
    let reason = format!("{algorithm}: {k} of {n} {} keys, {ms:.3} ms predicted, {why}{next}", spec.element);
    Choice { algorithm, ms, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::Element;

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
    fn a_choice_says_why() {
        for k in [8, 256, 1 << 20] {
            let choice = choose(&Machine::H200, &spec(k, Algorithm::Threshold), 1 << 29);
            assert_eq!(choice.algorithm, Algorithm::Threshold);
            let start = format!("{}: {k} of 536870912 f32 keys, 0.", choice.algorithm);
            assert!(choice.reason.starts_with(&start), "{}", choice.reason);
        }
    }
}
