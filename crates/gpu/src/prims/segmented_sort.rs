//! Radix sort of the rows of each segment by their keys, stable, in time that depends little on how rows are
//! distributed over segments.
//!
//! The device classifies segments by size (`kernels/prims/segmented_sort.cuh`): many small ones are sorted together by
//! one block in shared memory, those that fill a block by one, larger ones by the passes of [`super::RadixSort`] with
//! counts and look-back of their own. The host waits for nothing and knows no sizes, so it allots scratch memory for
//! the worst of them.

use super::radix_sort::records::{
    self, BINS, EACH_KEY, Form, RadixOrder, RadixTuning, Records, TILE, check_records, places,
};
use super::{DeviceSlice, Element, KEYS, Key, Queue, check_scratch};
use crate::backend::LaunchShape;
use crate::buffer::{DeviceBuffer, PART_BYTES_MIN};
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/segmented_sort.cuh");
const PACKS: &str = include_str!("../../kernels/prims/segmented_pack.cuh");

/// Segments of a chunk at most, `CHUNK_MAX` of the kernels.
const CHUNK_MAX: u64 = 2048;
/// Threads of a block that classifies, `CLASSIFY_THREADS` of the kernels, and its shared memory in bytes.
const CLASSIFY_THREADS: u32 = 256;
const CLASSIFY_SHARED_BYTES: u32 = 16 * 4 + 2 * 8 + (CHUNK_MAX / 3 + 1 + CHUNK_MAX + 1) as u32 * 4;
/// Blocks a multiprocessor that classify, make plans and copy.
const BLOCKS: u32 = 4;
/// Bytes of `SegmentCounters` and `SegmentSlot`.
const COUNTERS_BYTES: usize = 24;
const SLOT_BYTES: usize = 24;

/// How a segmented sort is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentedTuning {
    /// Of large segments; its portions do not matter.
    pub radix: RadixTuning,
    /// Threads of a block that sorts a pack, a multiple of 32 of at least 256.
    pub pack_threads: u32,
    /// Rows of a thread; a pack has 2^15 rows at most, 32 a thread.
    pub pack_items: u32,
    /// Blocks a multiprocessor, which bounds registers.
    pub pack_blocks: u32,
    /// Rows that a row of a pack is compared with at most, in the mean; packs with more are sorted by digits. 0 but for
    /// keys of 4 and 8 bytes.
    pub pack_comparisons: u32,
    /// Blocks a multiprocessor that count digits.
    pub count_blocks: u32,
}

impl SegmentedTuning {
    /// The tuning for a device whose blocks have so much shared memory. Packs are the largest of which two fit into the
    /// shared memory and registers of a multiprocessor of an H200, and one into that of a block of the device. Large
    /// segments have fewer columns of counters than [`super::RadixSort`] has, since each adds its counts.
    ///
    /// On an H200 (2026-11-25), 2^28 u32 in 16 random segments: 5.48 ms with tiles of 23 rows a thread, 5.92 with 16;
    /// 5.65 where the next tile is drawn behind a tile instead of within. Packs by the highest bits in which keys
    /// differ, then by comparisons: 7.62 in place of 6.89 ms in 2^16 segments, 8.99 in place of 6.69 in 2^20.
    ///
    /// On an H200 (2026-11-23), 2^28 u32 in 2^24 random segments, a mean of 16 rows: 5.00 ms by comparisons, 8.29 by
    /// digits, predicted 3.9 by some 4 instructions a comparison; floor 0.55. Bounds of 32, 64, 128 and 256 comparisons
    /// a row: 7.12, 5.00, 5.02, 5.02 ms; in 2^20 segments 6.71, 6.73, 6.78, 7.01 (6.65 by digits alone). Packs of half
    /// the rows: 5.90 and 8.60 ms. Comparisons of keys within bounds of segments, in the kernel of packs: 7.73 ms.
    pub fn of(shared_bytes: usize, key: Element, payload: Option<Element>) -> SegmentedTuning {
        let mut radix = RadixTuning::of(shared_bytes, key, payload);
        radix.count_columns = (radix.count_columns / 4).max(1);
        let pack_items = match key.bytes().max(payload.map_or(0, Element::bytes)) {
            1..=4 => 16,
            5..=8 => 8,
            _ => 4,
        };
        let pack_comparisons = if matches!(key.bytes(), 4 | 8) { 64 } else { 0 };
        radix.count_threads = 512;
        let mut tuning =
            SegmentedTuning { radix, pack_threads: 512, pack_items, pack_blocks: 2, pack_comparisons, count_blocks: 3 };
        while tuning.pack_items > 1 && tuning.pack_shared_bytes(key) as usize > shared_bytes {
            tuning.pack_items /= 2;
        }
        tuning
    }

    /// Rows of a pack at most.
    fn pack(&self) -> u64 {
        u64::from(self.pack_threads) * u64::from(self.pack_items)
    }

    /// Rows of a segment that shares a pack, at most.
    fn small(&self) -> u64 {
        self.pack() / 4
    }

    /// Bytes of `PackMemory`.
    fn pack_shared_bytes(&self, key: Element) -> u32 {
        let warps = self.pack_threads / 32;
        let rows = self.pack() as u32;
        let words = rows + warps * BINS as u32 + rows / 32 * 2 + warps + 3;
        let chunk_max = CHUNK_MAX as u32;
        (rows * key.bytes() as u32 + words * 4 + chunk_max * 8 + (chunk_max + 1) * 2).next_multiple_of(16)
    }
}

/// A segmented sort of keys of one type, alone or with payload of one type.
#[derive(Clone)]
pub struct SegmentedSort {
    key: Element,
    payload: Option<Element>,
    offset: Element,
    tuning: SegmentedTuning,
    multiprocessors: u32,
    classify: Kernel,
    pack: Kernel,
    compare: Option<Kernel>,
    count: Kernel,
    plan: Kernel,
    pass: Kernel,
    copy: Kernel,
}

/// Where the parts of the scratch memory begin, in bytes, and how many of what they have room for.
struct Scratch {
    tickets: usize,
    packs: usize,
    slots: usize,
    counts: usize,
    plans: usize,
    tile_slots: usize,
    words: usize,
    bytes: usize,
    packs_max: u64,
    slots_max: u64,
    tiles_max: u64,
}

impl SegmentedSort {
    /// Compiles the sort for a device; `offset` is the type of offsets, `U32` or `U64`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types of offsets; those of [`Device::compile`].
    pub fn new(device: &Device, key: Element, payload: Option<Element>, offset: Element) -> Result<SegmentedSort> {
        let tuning = SegmentedTuning::of(device.info().shared_memory_per_block, key, payload);
        SegmentedSort::with_tuning(device, key, payload, offset, tuning)
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`SegmentedSort::new`].
    pub fn with_tuning(
        device: &Device,
        key: Element,
        payload: Option<Element>,
        offset: Element,
        tuning: SegmentedTuning,
    ) -> Result<SegmentedSort> {
        if !matches!(offset, Element::U32 | Element::U64) {
            return Err(GpuError::Contract(format!("segmented_sort: offsets of {offset}, and u32 or u64 are needed")));
        }
        let module = device.compile(&program(key, payload, offset, &tuning))?;
        let kernel = |name: &str| module.kernel(&format!("segmented_sort_{name}"));
        Ok(SegmentedSort {
            key,
            payload,
            offset,
            tuning,
            multiprocessors: device.info().multiprocessors,
            classify: kernel("classify")?,
            pack: kernel("pack")?,
            compare: if tuning.pack_comparisons > 0 { Some(kernel("compare")?) } else { None },
            count: kernel("count")?,
            plan: kernel("plan")?,
            pass: kernel("pass")?,
            copy: kernel("copy")?,
        })
    }

    fn chunk(&self, segments: u64) -> u64 {
        chunk(self.multiprocessors, segments)
    }

    fn scratch(&self, rows: u64, segments: u64) -> Scratch {
        scratch(&self.tuning, self.key, self.multiprocessors, rows, segments)
    }

    /// Bytes of scratch memory for so many rows and segments: up to 1.1 times those of keys and payload. The worst
    /// sizes decide: a segment just too large for a pack has 2 KB of counts for each byte of a key. At 2^28 rows
    /// and segments: u8 0.7 bytes a row, u32 1.4 (with payload of 8 bytes 2.8), u64 4.8, u128 17.6; few segments have
    /// 2 KB a tile alone, which are 0.17 to 0.6 bytes a row.
    pub fn scratch_bytes(&self, rows: u64, segments: u64) -> usize {
        self.scratch(rows, segments).bytes
    }

    /// Sorts each segment of `input` to its place in `output`, by way of `other`, whose content is undefined then. The
    /// three lie apart. `offsets` has one element more than there are segments; they ascend and end at the number of
    /// rows at most. Rows in no segment are not written. Input without payload stands for the numbers of rows.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types, lengths and bits, and too little scratch memory; those of a launch.
    #[expect(clippy::too_many_arguments, reason = "operands of the primitive")]
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: Records<'_>,
        output: Records<'_>,
        other: Records<'_>,
        offsets: &DeviceSlice,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = input.keys.len();
        check_records("segmented_sort", "the input", input, self.key, self.payload, rows, true)?;
        check_records("segmented_sort", "the output", output, self.key, self.payload, rows, false)?;
        self.sort(queue, [input, output, other], offsets, order, Form::Apart, scratch)
    }

    /// Sorts each segment where it is, by way of `other`, whose content is undefined then.
    ///
    /// # Errors
    /// As [`SegmentedSort::launch`].
    pub fn launch_in_place(
        &self,
        queue: &mut impl Queue,
        records: Records<'_>,
        other: Records<'_>,
        offsets: &DeviceSlice,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = records.keys.len();
        check_records("segmented_sort", "the input", records, self.key, self.payload, rows, false)?;
        self.sort(queue, [records, records, other], offsets, order, Form::InPlace, scratch)
    }

    /// Sorts each segment of `other` to its place in `output`; the content of `other` is undefined then. An even number
    /// of passes costs a copy.
    pub(crate) fn launch_from_other(
        &self,
        queue: &mut impl Queue,
        output: Records<'_>,
        other: Records<'_>,
        offsets: &DeviceSlice,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = other.keys.len();
        check_records("segmented_sort", "the output", output, self.key, self.payload, rows, false)?;
        self.sort(queue, [other, output, other], offsets, order, Form::FromOther, scratch)
    }

    fn sort(
        &self,
        queue: &mut impl Queue,
        all: [Records<'_>; 3],
        offsets: &DeviceSlice,
        order: &RadixOrder,
        form: Form,
        memory: &DeviceBuffer,
    ) -> Result<()> {
        let rows = all[0].keys.len();
        check_records("segmented_sort", "the other place", all[2], self.key, self.payload, rows, false)?;
        super::check_element("segmented_sort", "the offsets", offsets, self.offset)?;
        order.check("segmented_sort", self.key)?;
        let segments = offsets.len().checked_sub(1).ok_or_else(|| {
            GpuError::Contract("segmented_sort: 0 offsets, and one more than segments are needed".into())
        })?;
        let scratch = self.scratch(rows, segments);
        check_scratch("segmented_sort", memory, scratch.bytes)?;
        if rows == 0 || segments == 0 {
            return Ok(());
        }
        // Comparisons are by whole keys.
        let is_whole = order.bits == RadixOrder::of(self.key, false).bits;
        let window = self.tuning.pack() - self.tuning.small();
        let comparisons = if is_whole { window * u64::from(self.tuning.pack_comparisons) } else { 0 };
        let params = |pass: u64| {
            let params = order.digits(places(Params::new(), all)).slice(offsets).u64(segments);
            let params = params.u64(self.chunk(segments)).u64(form as u64).buffer(memory);
            let parts = [scratch.packs, scratch.slots, scratch.counts, scratch.plans, scratch.tile_slots];
            let params = parts.iter().fold(params, |params, part| params.buffer_at(memory, *part));
            let params = params.buffer_at(memory, scratch.words).buffer_at(memory, scratch.tickets);
            params.u64(comparisons).u64(pass)
        };
        let passes = order.passes().0;
        let tuning = &self.tuning;
        let shape = |work: u64, blocks: u32, block: u32, shared_bytes: u32| {
            let grid = work.clamp(1, u64::from(self.multiprocessors * blocks)) as u32;
            LaunchShape { grid, block, shared_bytes }
        };
        queue.fill(memory, 0, 0, scratch.packs)?;
        let chunks = segments.div_ceil(self.chunk(segments));
        let classify = shape(chunks, BLOCKS, CLASSIFY_THREADS, CLASSIFY_SHARED_BYTES);
        queue.launch(&self.classify, classify, &params(0))?;
        let shared_bytes = tuning.pack_shared_bytes(self.key);
        let pack = shape(scratch.packs_max, tuning.pack_blocks, tuning.pack_threads, shared_bytes);
        if let Some(compare) = self.compare.as_ref().filter(|_| is_whole) {
            queue.launch(compare, pack, &params(0))?;
        }
        queue.launch(&self.pack, pack, &params(0))?;
        if scratch.slots_max == 0 {
            return Ok(());
        }
        let shared_bytes = passes * BINS as u32 * tuning.radix.count_columns * 4;
        let count = shape(scratch.tiles_max, tuning.count_blocks, tuning.radix.count_threads, shared_bytes);
        queue.launch(&self.count, count, &params(0))?;
        queue.launch(&self.plan, shape(scratch.slots_max, BLOCKS, BINS as u32, 64), &params(0))?;
        let widest = self.key.bytes().max(self.payload.map_or(0, Element::bytes));
        let shared_bytes = tuning.radix.tile_shared_bytes(widest);
        let pass_shape = shape(scratch.tiles_max, tuning.radix.blocks, tuning.radix.threads, shared_bytes);
        for pass in 0..u64::from(passes) {
            queue.launch(&self.pass, pass_shape, &params(pass))?;
        }
        queue.launch(&self.copy, shape(scratch.tiles_max, BLOCKS * 2, BINS as u32, 0), &params(0))
    }
}

/// Segments of a chunk: few enough that all multiprocessors classify.
fn chunk(multiprocessors: u32, segments: u64) -> u64 {
    (segments / u64::from(multiprocessors * BLOCKS)).next_power_of_two().clamp(1, CHUNK_MAX)
}

/// The scratch memory of a sort on a device of so many multiprocessors.
fn scratch(tuning: &SegmentedTuning, key: Element, multiprocessors: u32, rows: u64, segments: u64) -> Scratch {
    let (pack, small) = (tuning.pack(), tuning.small());
    let chunks = segments.div_ceil(chunk(multiprocessors, segments));
    let packs_max = (rows / (pack - small) + rows / (small + 1) + chunks + 1).min(segments);
    let slots_max = (rows / (pack + 1)).min(segments);
    let tiles_max = rows / tuning.radix.tile() + slots_max;
    let passes = key.bytes();
    let mut bytes = 0;
    let mut part = |size: usize| {
        let at = bytes;
        bytes = (at + size).next_multiple_of(PART_BYTES_MIN);
        at
    };
    let (slots, tiles) = (slots_max as usize, tiles_max as usize);
    part(COUNTERS_BYTES);
    let (tickets, packs) = (part(passes * 4), part(packs_max as usize * 8));
    let (slots, counts) = (part(slots * SLOT_BYTES), part(slots * passes * BINS * 8));
    let plans = part(slots_max as usize * (passes + 1) * 4);
    let (tile_slots, words) = (part(tiles * 4), part(tiles * BINS * 8));
    Scratch { tickets, packs, slots, counts, plans, tile_slots, words, bytes, packs_max, slots_max, tiles_max }
}

/// The program of a sort.
fn program(key: Element, payload: Option<Element>, offset: Element, tuning: &SegmentedTuning) -> Program {
    let definitions = format!(
        "{}#define WC_SEGMENT_OFFSET {}\n#define WC_PACK_THREADS {}\n#define WC_PACK_ITEMS {}\n\
         #define WC_PACK_BLOCKS {}\n#define WC_PACK_COMPARISONS {}u\n\
         #define WC_SEGMENT_COUNT_BLOCKS {}\n",
        tuning.radix.definitions(key, payload),
        offset.c_type(),
        tuning.pack_threads,
        tuning.pack_items,
        tuning.pack_blocks,
        tuning.pack_comparisons,
        tuning.count_blocks,
    );
    let name = format!("segmented_sort_{key}_{}", payload.map_or(0, Element::bytes));
    Program::new(name, format!("{KEYS}{EACH_KEY}{definitions}{TILE}{KERNELS}{PACKS}"))
}

/// For each row of the output the number of its row in the input; rows in no segment stay.
pub fn reference<K: Key>(keys: &[K], offsets: &[u64], order: &RadixOrder) -> Vec<u64> {
    let mut rows: Vec<u64> = (0..keys.len() as u64).collect();
    for segment in offsets.windows(2) {
        let range = segment[0] as usize..segment[1] as usize;
        let sorted = records::reference(&keys[range.clone()], order);
        rows[range].iter_mut().zip(sorted).for_each(|(row, at)| *row = segment[0] + at);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        let types = [
            (99, Element::U32, None),
            (227, Element::U32, None),
            (99, Element::F32, Some(Element::U8)),
            (99, Element::F64, Some(Element::U32)),
            (99, Element::U128, Some(Element::U64)),
        ];
        for (kilobytes, key, payload) in types {
            let tuning = SegmentedTuning::of(kilobytes << 10, key, payload);
            compile_for_gpus(&program(key, payload, Element::U64, &tuning));
        }
    }

    /// Types of keys and of payload.
    fn all_types() -> impl Iterator<Item = (Element, Option<Element>)> {
        let payloads = || std::iter::once(None).chain(Element::ALL.map(Some));
        Element::ALL.into_iter().flat_map(move |key| payloads().map(move |payload| (key, payload)))
    }

    #[test]
    fn blocks_fit_into_the_shared_memory_of_a_device() {
        // sm_86, 89 and 120 have 99 KB; sm_80 has 163, sm_90 and 100 have 227.
        for (shared_bytes, (key, payload)) in
            [99 << 10, 163 << 10, 227 << 10].into_iter().flat_map(|bytes| all_types().map(move |types| (bytes, types)))
        {
            let tuning = SegmentedTuning::of(shared_bytes, key, payload);
            let widest = key.bytes().max(payload.map_or(0, Element::bytes));
            let counts = (key.bytes() * BINS) as u32 * tuning.radix.count_columns * 4;
            for bytes in [tuning.pack_shared_bytes(key), tuning.radix.tile_shared_bytes(widest), counts] {
                assert!(bytes as usize <= shared_bytes, "{key} with {payload:?}: {bytes} of {shared_bytes} bytes");
            }
        }
        assert_eq!(SegmentedTuning::of(227 << 10, Element::U32, None).pack_items, 16);
        assert_eq!(SegmentedTuning::of(99 << 10, Element::U32, None).pack_items, 8);
    }

    #[test]
    fn scratch_memory_is_that_of_the_data() {
        let rows = 1u64 << 28;
        for (shared_bytes, (key, payload)) in
            [99 << 10, 227 << 10].into_iter().flat_map(|bytes| all_types().map(move |types| (bytes, types)))
        {
            let tuning = SegmentedTuning::of(shared_bytes, key, payload);
            let row_bytes = (key.bytes() + payload.map_or(0, Element::bytes)) as f64;
            let bytes = scratch(&tuning, key, 132, rows, rows).bytes as f64;
            assert!(bytes < 1.11 * row_bytes * rows as f64, "{key} with {payload:?}: {}", bytes / rows as f64);
        }
        let a_row = |key, payload| {
            let tuning = SegmentedTuning::of(227 << 10, key, payload);
            (scratch(&tuning, key, 132, rows, rows).bytes as f64 / rows as f64 * 10.0).round() / 10.0
        };
        let found = [
            a_row(Element::U8, None),
            a_row(Element::U32, None),
            a_row(Element::U32, Some(Element::U64)),
            a_row(Element::U64, None),
            a_row(Element::U128, None),
        ];
        assert_eq!(found, [0.7, 1.4, 2.8, 4.8, 17.6]);
    }
}
