//! The CPU's top-k, as paper 003, 4.5.7 has it: a heap a core, keys compared with its least one many at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread;
use std::time::Instant;

use serde_json::json;
use warpcube_gpu::prims::Key;

use super::Bench;
use crate::stats::Sample;
use crate::suite::Failure;

/// Keys that are compared before the heap is looked at: the compiler makes one vector loop of it.
const CHUNK: usize = 256;
const KS: [usize; 4] = [1, 32, 256, 1 << 20];

/// The best first: ordered bits, then the smallest row.
type Entry = (u32, Reverse<usize>);

/// The best k of a part whose first row is `first`.
fn part(keys: &[f32], first: usize, k: usize) -> BinaryHeap<Reverse<Entry>> {
    let mut heap = BinaryHeap::with_capacity(k + 1);
    // No key of the heap or above it is below this one. A NaN is not below any.
    let mut bound = f32::NEG_INFINITY;
    for (at, chunk) in keys.chunks(CHUNK).enumerate() {
        // Each lane of the loop looks for itself, without a branch.
        if chunk.iter().fold(true, |below, key| below & (*key < bound)) {
            continue;
        }
        for (slot, key) in chunk.iter().enumerate() {
            if *key < bound {
                continue;
            }
            let entry = (key.ordered_bits() as u32, Reverse(first + at * CHUNK + slot));
            if heap.len() < k {
                heap.push(Reverse(entry));
            } else if let Some(mut least) = heap.peek_mut()
                && entry > least.0
            {
                *least = Reverse(entry);
            }
            if heap.len() == k
                && let Some(Reverse((_, Reverse(row)))) = heap.peek()
            {
                bound = keys[row - first];
                if bound.is_nan() {
                    bound = f32::INFINITY;
                }
            }
        }
    }
    heap
}

/// The best k of all keys, in order.
fn top_k(keys: &[f32], k: usize, threads: usize) -> Vec<Entry> {
    let length = keys.len().div_ceil(threads).max(1);
    let mut all: Vec<Entry> = thread::scope(|scope| {
        let own = |(at, own)| {
            scope.spawn(move || part(own, at * length, k).into_iter().map(|entry| entry.0).collect::<Vec<Entry>>())
        };
        let parts: Vec<_> = keys.chunks(length).enumerate().map(own).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    });
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.truncate(k);
    all
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Keys of a distribution, made by all threads.
fn make(distribution: &str, n: usize, threads: usize) -> Vec<f32> {
    let mut keys = vec![0.0; n];
    let length = n.div_ceil(threads).max(1);
    let ascending = distribution == "ascending";
    thread::scope(|scope| {
        for (at, own) in keys.chunks_mut(length).enumerate() {
            scope.spawn(move || {
                for (slot, key) in own.iter_mut().enumerate() {
                    let i = (at * length + slot) as u64;
                    *key = if ascending { (i as f64 / n as f64) as f32 } else { (mix(i) >> 40) as f32 / 16_777_216.0 };
                }
            });
        }
    });
    keys
}

/// True if the keys better than the last key of the result are as many as the result has before it, and its rows have
/// its keys.
fn is_right(keys: &[f32], result: &[Entry]) -> bool {
    let Some((last, _)) = result.last() else { return keys.is_empty() };
    let better = keys.iter().filter(|key| key.ordered_bits() as u32 > *last).count();
    let rows = result.iter().all(|(bits, Reverse(row))| keys[*row].ordered_bits() as u32 == *bits);
    let ordered = result.windows(2).all(|pair| pair[0] > pair[1]);
    rows && ordered && result.iter().filter(|(bits, _)| bits > last).count() == better
}

/// Runs the cases that were asked for.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for distribution in ["uniform", "ascending"] {
        let wanted: Vec<usize> = KS
            .into_iter()
            // Each ascending key goes to the heap: minutes for the largest.
            .filter(|k| distribution == "uniform" || *k <= 256)
            .filter(|k| bench.wants(&format!("topk/f32/{distribution}/{k}/cpu_heap")))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let keys = make(distribution, bench.rows(29) as usize, threads);
        for k in wanted {
            let mut times = Vec::new();
            let mut result = Vec::new();
            for _ in 0..3 {
                if bench.run.is_stopped() {
                    return Ok(());
                }
                let start = Instant::now();
                result = top_k(&keys, k.min(keys.len()), threads);
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            let case = format!("topk/f32/{distribution}/{k}");
            if !is_right(&keys, &result) {
                return Err(format!("{case} by cpu_heap: the result is wrong").into());
            }
            let more = json!({"algorithm": "cpu_heap", "n": keys.len(), "k": k, "threads": threads});
            bench.add(&case, Sample::of(&times), 4 * keys.len() as u64, bench.rates.read.value, more);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpcube_gpu::prims::topk;

    #[test]
    fn heaps_find_what_the_reference_finds() {
        let mut keys = make("uniform", 5_000, 3);
        let check = |keys: &[f32]| {
            for k in [1, 7, 300, 5_000] {
                let result = top_k(keys, k, 3);
                let rows: Vec<u64> = result.iter().map(|(_, Reverse(row))| *row as u64).collect();
                assert_eq!(rows, topk::top_k(keys, k as u64, topk::Order::Largest));
                assert!(is_right(keys, &result));
            }
        };
        check(&keys);
        check(&make("ascending", 5_000, 3));
        for (at, key) in keys.iter_mut().enumerate() {
            *key = [f32::NAN, f32::INFINITY, -0.0, 0.0, f32::NEG_INFINITY][at % 5];
        }
        check(&keys);
        assert!(!is_right(&keys, &[(0, Reverse(2))]));
    }
}
