//! Sizes of a run of top-k: sample, candidate lists, pools, launches. Numbers alone, nothing of the device.

use super::{Algorithm, TopKSpec, TopKTuning};
use crate::backend::{DeviceInfo, LaunchShape};

/// Most keys: a block of a small device counts fewer than 2^32 of them, and no product of the sampling overflows.
pub(super) const ROWS_MAX: u64 = 1 << 36;
/// Scratch memory that does not grow with the input, in bytes, for all algorithms.
pub const FIXED_BYTES_MAX: u64 = 4 << 20;
/// Size of the kernels' state in bytes, rounded up.
const STATE_BYTES: usize = 256;
/// Counters of a selection pass.
const BINS: usize = 1 << 11;
const DIGIT_BITS: usize = 11;
/// Ranges of rows that ties are counted by.
pub(super) const TIE_RANGES: u64 = 8192;
/// Results up to this many are sorted by one block.
pub(super) const SMALL: u64 = 2048;
/// Keys that one kernel of one block puts in order, where they are all candidates and no launch has more: those of 128
/// bits with rows of 64 take 96 KB of shared memory.
pub const BLOCK_SORT_MAX: u64 = 4096;
/// Candidates whose ranks are staged in shared memory at most: 2^18 samples let some 20,000 pass for a small k.
const STAGED_MAX: u64 = 24 << 10;
/// Bytes of a cut's counters, with a few words beside.
const CUT_BYTES: usize = (1024 + 32 + 4 + 4) * 4;
/// Samples that a block takes.
const BLOCK_SAMPLES: u64 = 2048;
const SAMPLE_BLOCKS_MAX: u64 = 128;
/// Inputs below are candidates as a whole.
const SAMPLED_MIN: u64 = 1 << 15;
const BUCKETS_MAX: u64 = 2048;
/// Candidates expected in a bucket.
const BUCKET_MEAN: u64 = 640;
/// Samples that a splitter is drawn from: a bucket of 4,096, 6.4 times the mean, comes once in some 10^7 runs.
const BUCKET_SAMPLES: u64 = 4;
/// Samples of a sorted list, `TOPK_LIST` of the kernels, and lanes that look up one of them, `TOPK_SPLIT_LANES`.
const LIST: u64 = 256;
const SPLIT_LANES: u64 = 8;
/// Threads of a block that sorts a bucket, `TOPK_BUCKET_THREADS` of the kernels.
const BUCKET_THREADS: u32 = 256;
/// Slots of a warp's queue.
const QUEUE_SLOTS: usize = 64;
/// Threads of a block of the kernels that count and scatter candidates.
const SORT_THREADS: u32 = 1024;

/// Bytes of scratch memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Range {
    pub(super) offset: usize,
}

/// How the threshold is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) blocks: u32,
    /// Samples a block passes on, and the rank of the threshold among all.
    pub(super) keep: u64,
    pub(super) rank: u64,
    /// Keys at or above the threshold that are to be expected.
    candidates: u64,
    /// Candidates that there is room for.
    room: u64,
}

impl Sample {
    /// A sample whose threshold lets at least `k` of `n` keys pass but once in some 10^9 runs: `rank` lies six standard
    /// deviations and eight above the samples expected among the best k. None if all keys are candidates.
    fn new(n: u64, k: u64) -> Option<Sample> {
        if n < SAMPLED_MIN {
            return None;
        }
        // A thousand samples among the best k are enough.
        let wanted = (n / 16).min(1024 * n / k.max(1));
        let blocks = (wanted / BLOCK_SAMPLES).clamp(1, SAMPLE_BLOCKS_MAX);
        let samples = blocks * BLOCK_SAMPLES;
        let better = k as f64 * samples as f64 / n as f64;
        let rank = (better + 6.0 * better.sqrt() + 8.0).ceil();
        if rank >= samples as f64 / 2.0 {
            return None;
        }
        let of_block = rank / blocks as f64;
        let keep = ((of_block + 8.0 * of_block.sqrt() + 16.0).ceil() as u64).min(BLOCK_SAMPLES);
        let candidates = rank * n as f64 / samples as f64;
        // Eight standard deviations of the number of candidates.
        let room = candidates * (1.0 + 8.0 / rank.sqrt()) + 1024.0;
        let room = (room as u64).clamp(k, n);
        Some(Sample { blocks: blocks as u32, keep, rank: rank as u64, candidates: candidates as u64, room })
    }
}

/// Whether a threshold is drawn for so many keys; all of them are candidates otherwise.
pub(super) fn samples(n: u64, k: u64) -> bool {
    Sample::new(n, k.min(n)).is_some()
}

/// Whether one kernel does all.
pub(super) fn is_block_sorted(spec: &TopKSpec) -> bool {
    spec.algorithm == Algorithm::Threshold && spec.keys.is_some_and(|keys| keys <= BLOCK_SORT_MAX)
}

/// Where the final sort of a large k has its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sort {
    pub(super) buckets: u64,
    pub(super) lists: Range,
    pub(super) splitters: Range,
    pub(super) sizes: Range,
    pub(super) starts: Range,
    pub(super) bases: Range,
    pub(super) bucket_of: Range,
    pub(super) sorted: Range,
}

/// Sizes and places of one run.
#[derive(Debug, Clone)]
pub(super) struct TopKPlan {
    pub(super) n: u64,
    pub(super) results: u64,
    pub(super) sample: Option<Sample>,
    pub(super) above_max: u64,
    pub(super) equal_max: u64,
    pub(super) pool_max: u64,
    pub(super) state: Range,
    pub(super) bins: Range,
    pub(super) tie_counts: Range,
    pub(super) kept: Range,
    pub(super) extents: Range,
    pub(super) ranks: Range,
    pub(super) rows: Range,
    pub(super) pool_ranks: Range,
    pub(super) pool_rows: Range,
    pub(super) sort: Option<Sort>,
    /// Bytes from the start on that are zero when the first kernel begins.
    pub(super) zeroed: usize,
    /// All bytes.
    pub(super) bytes: usize,
}

/// Hands out scratch memory in pieces aligned to 256 bytes.
#[derive(Default)]
struct Layout {
    bytes: usize,
}

impl Layout {
    fn take(&mut self, bytes: usize) -> Range {
        let range = Range { offset: self.bytes };
        self.bytes += bytes.next_multiple_of(256);
        range
    }
}

impl TopKPlan {
    pub(super) fn new(spec: &TopKSpec, shapes: &Shapes, n: u64) -> TopKPlan {
        let results = spec.k.min(n);
        let (rank_bytes, row_bytes) = (spec.element.bytes(), spec.rows.bytes());
        let pair = rank_bytes + row_bytes;
        let is_threshold = spec.algorithm == Algorithm::Threshold;
        let sample = if is_threshold { Sample::new(n, results) } else { None };
        let above_max = match &sample {
            Some(sample) => sample.room,
            None if is_threshold => n,
            None => results,
        };
        // One more than can be wanted: where all places are used, more rows may equal the threshold. Without a sample
        // the threshold is the smallest rank.
        let skips_equal = spec.skips_smallest && is_threshold && sample.is_none() && results > SMALL;
        let equal_max = if skips_equal { 0 } else { results + 1 };
        let list = (above_max + equal_max).max(1) as usize;
        let mut layout = Layout::default();
        let state = layout.take(STATE_BYTES);
        let bins = layout.take(BINS * 8);
        let tie_counts = layout.take((TIE_RANGES as usize + 1) * 8);
        let zeroed = layout.bytes;
        let kept = layout.take(sample.map_or(0, |sample| u64::from(sample.blocks) * sample.keep) as usize * rank_bytes);
        let extents = layout.take(shapes.select().grid as usize * 2 * rank_bytes);
        let (ranks, rows) = (layout.take(list * rank_bytes), layout.take(list * row_bytes));
        // The pools of the selection and the memory of the final sort are not used at the same time.
        let first = layout.bytes;
        let sort = (results > SMALL).then(|| {
            let expected = sample.map_or(above_max, |sample| sample.candidates).max(results);
            let buckets = (expected / BUCKET_MEAN).next_power_of_two().clamp(LIST / BUCKET_SAMPLES, BUCKETS_MAX);
            Sort {
                buckets,
                lists: layout.take((buckets * BUCKET_SAMPLES) as usize * shapes.aligned_pair_bytes()),
                splitters: layout.take(buckets as usize * shapes.aligned_pair_bytes()),
                sizes: layout.take(buckets as usize * 4),
                starts: layout.take((buckets as usize + 1) * 4),
                bases: layout.take(buckets as usize * shapes.multiprocessors as usize * 4),
                bucket_of: layout.take(list * 2),
                sorted: layout.take(list * shapes.aligned_pair_bytes()),
            }
        });
        let end = layout.bytes;
        layout.bytes = first;
        // Two pools of so many candidates have an eighth of the keys' bytes.
        let pool_share = n * rank_bytes as u64 / 16 / pair as u64;
        let pool_max = match spec.algorithm {
            // Radix and bucket select live by their pools.
            Algorithm::RadixSelect | Algorithm::BucketSelect => pool_share.max(1024),
            Algorithm::HeapShared | Algorithm::HeapRegisters => shapes.heap_results(spec),
            _ if sample.is_some() => (n / 64).min(pool_share).clamp(1024, 1 << 20),
            _ => 0,
        };
        let pool_ranks = layout.take(2 * pool_max as usize * rank_bytes);
        let pool_rows = layout.take(2 * pool_max as usize * row_bytes);
        let bytes = layout.bytes.max(end);
        TopKPlan {
            n,
            results,
            sample,
            above_max,
            equal_max,
            pool_max,
            state,
            bins,
            tie_counts,
            kept,
            extents,
            ranks,
            rows,
            pool_ranks,
            pool_rows,
            sort,
            zeroed,
            bytes,
        }
    }
}

/// Shapes of launches on a device, for types and tuning.
#[derive(Debug, Clone)]
pub(super) struct Shapes {
    pub(super) multiprocessors: u32,
    pub(super) shared_bytes_max: usize,
    tuning: TopKTuning,
    rank_bytes: usize,
    row_bytes: usize,
}

impl Shapes {
    pub(super) fn new(info: &DeviceInfo, spec: &TopKSpec, tuning: TopKTuning) -> Shapes {
        Shapes {
            multiprocessors: info.multiprocessors,
            shared_bytes_max: info.shared_memory_per_block,
            tuning,
            rank_bytes: spec.element.bytes(),
            row_bytes: spec.rows.bytes(),
        }
    }

    fn pair_bytes(&self) -> usize {
        self.rank_bytes + self.row_bytes
    }

    fn queue_bytes(&self, threads: u32) -> usize {
        threads as usize / 32 * QUEUE_SLOTS * self.pair_bytes()
    }

    pub(super) fn sample(&self, blocks: u32) -> LaunchShape {
        let shared = BLOCK_SAMPLES as usize * self.rank_bytes + CUT_BYTES;
        LaunchShape { grid: blocks, block: 1024, shared_bytes: shared as u32 }
    }

    /// Places in shared memory for `n` keys.
    pub(super) fn block_sort_places(&self, n: u64) -> u64 {
        n.next_multiple_of(16)
    }

    pub(super) fn block_sort(&self, n: u64) -> LaunchShape {
        let shared = self.block_sort_places(n) as usize * self.pair_bytes() + 4;
        LaunchShape { grid: 1, block: 1024, shared_bytes: shared as u32 }
    }

    pub(super) fn filter(&self) -> LaunchShape {
        let (threads, blocks) = (self.tuning.filter_threads, self.tuning.filter_blocks);
        let shared_bytes = 2 * self.queue_bytes(threads) as u32;
        LaunchShape { grid: self.multiprocessors * blocks, block: threads, shared_bytes }
    }

    pub(super) fn select(&self) -> LaunchShape {
        let (threads, blocks) = (self.tuning.select_threads, self.tuning.select_blocks);
        let shared = BINS * 4 + 32 * 8 + 2 * self.queue_bytes(threads);
        LaunchShape { grid: self.multiprocessors * blocks, block: threads, shared_bytes: shared as u32 }
    }

    pub(super) fn extent(&self) -> LaunchShape {
        let shared = 2 * self.tuning.select_threads as usize * self.rank_bytes + 16;
        LaunchShape { shared_bytes: shared as u32, ..self.select() }
    }

    pub(super) fn ties(&self) -> LaunchShape {
        LaunchShape { grid: self.multiprocessors * 4, block: 256, shared_bytes: 33 * 8 + 32 * 4 }
    }

    /// Shared memory of `topk_finish` beside staged ranks.
    fn finish_bytes(&self) -> usize {
        SMALL as usize * self.pair_bytes() + CUT_BYTES
    }

    /// Candidates whose ranks `topk_finish` has in shared memory.
    pub(super) fn staged_max(&self) -> u64 {
        STAGED_MAX.min(((self.shared_bytes_max - self.finish_bytes()) / self.rank_bytes) as u64 & !3)
    }

    pub(super) fn finish(&self) -> LaunchShape {
        let shared = self.finish_bytes() + self.staged_max() as usize * self.rank_bytes;
        LaunchShape { grid: 1, block: 1024, shared_bytes: shared as u32 }
    }

    /// Size of `TopKPair`.
    fn aligned_pair_bytes(&self) -> usize {
        self.pair_bytes().next_multiple_of(if self.rank_bytes == 16 { 16 } else { 8 })
    }

    /// Candidates that a bucket of the final sort may have in shared memory.
    pub(super) fn bucket_max(&self) -> u64 {
        self.tuning.bucket_max.min((self.shared_bytes_max / self.aligned_pair_bytes()) as u64)
    }

    pub(super) fn lists(&self, sort: &Sort) -> LaunchShape {
        let shared = LIST as usize * self.aligned_pair_bytes();
        let lists = sort.buckets * BUCKET_SAMPLES / LIST;
        LaunchShape { grid: lists as u32, block: LIST as u32, shared_bytes: shared as u32 }
    }

    pub(super) fn split(&self, sort: &Sort) -> LaunchShape {
        let threads = sort.buckets * BUCKET_SAMPLES * SPLIT_LANES;
        LaunchShape { grid: (threads / 256) as u32, block: 256, shared_bytes: 0 }
    }

    pub(super) fn count(&self, sort: &Sort) -> LaunchShape {
        let shared = sort.buckets as usize * (self.aligned_pair_bytes() + 4);
        LaunchShape { grid: self.multiprocessors, block: SORT_THREADS, shared_bytes: shared as u32 }
    }

    pub(super) fn scatter(&self, sort: &Sort) -> LaunchShape {
        let shared = (32 + sort.buckets as usize) * 4;
        LaunchShape { grid: self.multiprocessors, block: SORT_THREADS, shared_bytes: shared as u32 }
    }

    pub(super) fn sort_buckets(&self, sort: &Sort) -> LaunchShape {
        let shared = self.bucket_max() as usize * self.aligned_pair_bytes();
        LaunchShape { grid: sort.buckets as u32, block: BUCKET_THREADS, shared_bytes: shared as u32 }
    }

    /// Passes of a selection: one a digit, and the last.
    pub(super) fn select_passes(&self) -> usize {
        (self.rank_bytes * 8).div_ceil(DIGIT_BITS) + 1
    }

    /// Blocks of heaps that are resident at once.
    pub(super) fn heap(&self, spec: &TopKSpec) -> LaunchShape {
        let (resident, shared_bytes) = heaps_resident(spec, self.shared_bytes_max);
        LaunchShape { grid: self.multiprocessors * resident, block: heap_threads(spec), shared_bytes }
    }

    /// Candidates that the heaps of all threads hold.
    pub(super) fn heap_results(&self, spec: &TopKSpec) -> u64 {
        let shape = self.heap(spec);
        u64::from(shape.grid) * u64::from(shape.block) * spec.k
    }
}

/// The largest k of the spec's algorithm on a device whose blocks have so much shared memory.
pub(super) fn k_max(spec: &TopKSpec, shared_bytes_max: usize) -> u64 {
    let rank_bytes = spec.element.bytes();
    match spec.algorithm {
        Algorithm::HeapShared => {
            let heaps = shared_bytes_max.saturating_sub(HEAP_HEAD_BYTES);
            (heaps / (32 * (rank_bytes + HEAP_STEP_BYTES))) as u64
        }
        Algorithm::HeapRegisters => HEAP_REGISTERS_MAX,
        Algorithm::Bitonic(level) => super::bitonic::k_max(level, rank_bytes + spec.rows.bytes(), shared_bytes_max),
        _ => super::K_MAX,
    }
}

/// Bytes that a heap keeps beside a rank: the number of the thread's step.
pub(super) const HEAP_STEP_BYTES: usize = 4;
/// Shared memory of a block beside its heaps.
const HEAP_HEAD_BYTES: usize = 16;
/// Shared memory that the device takes for itself in each block.
const RESERVED_BYTES: usize = 1024;
/// Longest list of a thread: from some 40 slots of 32-bit keys on they are in local memory.
const HEAP_REGISTERS_MAX: u64 = 64;

/// Blocks of heaps that a multiprocessor runs beside each other, and the shared memory of each.
pub(super) fn heaps_resident(spec: &TopKSpec, shared_bytes_max: usize) -> (u32, u32) {
    let threads = heap_threads(spec) as usize;
    let heaps = match spec.algorithm {
        Algorithm::HeapShared => threads * spec.k as usize * (spec.element.bytes() + HEAP_STEP_BYTES),
        _ => 0,
    };
    let (bytes, most) = (heaps + HEAP_HEAD_BYTES, shared_bytes_max + RESERVED_BYTES);
    ((most / (bytes + RESERVED_BYTES)).clamp(1, 1024 / threads) as u32, bytes as u32)
}

/// Threads of a block of heaps: as many heaps of k as fit beside each other, in one block or more.
pub(super) fn heap_threads(spec: &TopKSpec) -> u32 {
    if spec.algorithm == Algorithm::HeapRegisters {
        return 128;
    }
    let bytes = spec.k.max(1) * (spec.element.bytes() + HEAP_STEP_BYTES) as u64;
    match bytes {
        0..=512 => 128,
        513..=1024 => 64,
        _ => 32,
    }
}
