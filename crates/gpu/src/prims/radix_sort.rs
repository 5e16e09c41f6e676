//! Radix sort of keys and of keys with payload, stable, over any range of the keys' bits, by the algorithm of a name
//! ([`RadixAlgorithm`]).
//!
//! One kernel counts the digits of all passes, one makes the plan of the passes, and each pass moves keys and payload
//! once, from one place to another (`kernels/prims/radix_sort.cuh`). A pass whose digit is the same in all keys moves
//! nothing; the device knows alone which these are, so the host waits for nothing. Most significant digit first, one
//! such pass leaves bins in the other place, and a segmented sort takes them from there to the output.

mod algorithm;
pub(crate) mod records;

use std::ops::Range;

pub use algorithm::RadixAlgorithm;
pub use records::{RadixOrder, RadixTuning, Records, reference};

use records::{BINS, DIGIT_BITS, EACH_KEY, Form, PORTION_ROWS_MAX, TILE, check_records, places};

use super::segmented_sort::{SegmentedSort, SegmentedTuning};
use super::{DeviceSlice, Element, KEYS, Queue, check_scratch};
use crate::backend::LaunchShape;
use crate::buffer::{DeviceBuffer, PART_BYTES_MIN};
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/radix_sort.cuh");
/// Rows of a step of a block that copies.
const COPY_ROWS: u64 = BINS as u64 * 16;

/// A radix sort of keys of one type, alone or with payload of one type.
#[derive(Clone)]
pub struct RadixSort {
    key: Element,
    payload: Option<Element>,
    tuning: RadixTuning,
    multiprocessors: u32,
    count: Kernel,
    plan: Kernel,
    pass: Kernel,
    copy: Kernel,
    /// What sorts the bins of the most significant digit, where that comes first.
    bins: Option<Box<SegmentedSort>>,
}

impl RadixTuning {
    /// Rows of a launch, a multiple of the tile's.
    fn portion(&self) -> u64 {
        (self.portion_rows.min(PORTION_ROWS_MAX - 1) / self.tile()).max(1) * self.tile()
    }

    fn scratch(&self, key: Element, rows: u64) -> Scratch {
        let passes = key.bytes();
        let tiles = rows.min(self.portion()).div_ceil(self.tile()) as usize;
        let portions = rows.div_ceil(self.portion()) as usize;
        let (counts, aligned) = (0, |bytes: usize| bytes.next_multiple_of(PART_BYTES_MIN));
        // Behind the last count is the number of rows.
        let tickets = counts + aligned(passes * BINS * 8 + 8);
        let plan = tickets + aligned(passes * portions * 4);
        let carry = plan + aligned((passes + 1) * 4);
        let words = carry + 2 * BINS * 8;
        Scratch { counts, tickets, plan, carry, words, bytes: words + tiles * BINS * 4 }
    }

    /// Scratch memory of a sort of `rows` keys of a type, in bytes.
    pub(crate) fn scratch_bytes(&self, key: Element, rows: u64) -> usize {
        self.scratch(key, rows).bytes
    }
}

/// Where the parts of the scratch memory begin, in bytes.
struct Scratch {
    counts: usize,
    tickets: usize,
    plan: usize,
    carry: usize,
    words: usize,
    bytes: usize,
}

impl RadixSort {
    /// Compiles the sort for a device.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub fn new(device: &Device, key: Element, payload: Option<Element>) -> Result<RadixSort> {
        let tuning = RadixTuning::of(device.info().shared_memory_per_block, key, payload);
        RadixSort::with_tuning(device, key, payload, tuning)
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`RadixSort::new`].
    pub fn with_tuning(
        device: &Device,
        key: Element,
        payload: Option<Element>,
        tuning: RadixTuning,
    ) -> Result<RadixSort> {
        let module = device.compile(&program(key, payload, &tuning))?;
        let multiprocessors = device.info().multiprocessors;
        let kernel = |name| module.kernel(name);
        let (count, plan) = (kernel("radix_sort_count")?, kernel("radix_sort_plan")?);
        let (pass, copy) = (kernel("radix_sort_pass")?, kernel("radix_sort_copy")?);
        Ok(RadixSort { key, payload, tuning, multiprocessors, count, plan, pass, copy, bins: None })
    }

    /// The same by an algorithm, passes over all rows cut as told.
    ///
    /// # Errors
    /// As [`RadixSort::new`].
    pub fn with_algorithm(
        device: &Device,
        key: Element,
        payload: Option<Element>,
        algorithm: RadixAlgorithm,
        tuning: RadixTuning,
    ) -> Result<RadixSort> {
        match algorithm {
            RadixAlgorithm::Lsd => RadixSort::with_tuning(device, key, payload, tuning),
            RadixAlgorithm::Msd => {
                let bins = SegmentedTuning::of(device.info().shared_memory_per_block, key, payload);
                RadixSort::most_significant_first(device, key, payload, tuning, bins)
            }
        }
    }

    /// The same by the most significant digit first, the sort of its bins cut as told too.
    ///
    /// # Errors
    /// As [`RadixSort::new`].
    pub fn most_significant_first(
        device: &Device,
        key: Element,
        payload: Option<Element>,
        tuning: RadixTuning,
        bins: SegmentedTuning,
    ) -> Result<RadixSort> {
        let sort = RadixSort::with_tuning(device, key, payload, tuning)?;
        let bins = SegmentedSort::with_tuning(device, key, payload, Element::U64, bins)?;
        Ok(RadixSort { bins: Some(Box::new(bins)), ..sort })
    }

    /// Type of the keys.
    pub fn key(&self) -> Element {
        self.key
    }

    /// Bytes of scratch memory for `rows` rows: descriptors of 1 KB for each tile of a launch, which are 0.08 to 0.3
    /// bytes a row by the types of keys and payload; past 2^30 rows, in several launches, no more. Most significant
    /// digit first, those of a segmented sort of 256 segments too.
    pub fn scratch_bytes(&self, rows: u64) -> usize {
        let own = self.scratch(rows).bytes;
        match &self.bins {
            Some(bins) => own.next_multiple_of(PART_BYTES_MIN) + bins.scratch_bytes(rows, BINS as u64),
            None => own,
        }
    }

    /// Rows of a launch, a multiple of the tile's.
    fn portion(&self) -> u64 {
        self.tuning.portion()
    }

    fn scratch(&self, rows: u64) -> Scratch {
        self.tuning.scratch(self.key, rows)
    }

    /// Sorts `input` to `output`, by way of `other`, whose content is undefined then. The three lie apart. Input
    /// without payload stands for the numbers of rows where payload is sorted.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types, lengths and bits, and too little scratch memory; those of a launch.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: Records<'_>,
        output: Records<'_>,
        other: Records<'_>,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = input.keys.len();
        check_records("radix_sort", "the input", input, self.key, self.payload, rows, true)?;
        check_records("radix_sort", "the output", output, self.key, self.payload, rows, false)?;
        self.sort(queue, [input, output, other], order, Form::Apart, scratch)
    }

    /// Sorts `records` where they are, by way of `other`, whose content is undefined then. An odd number of passes
    /// costs a copy.
    ///
    /// # Errors
    /// As [`RadixSort::launch`].
    pub fn launch_in_place(
        &self,
        queue: &mut impl Queue,
        records: Records<'_>,
        other: Records<'_>,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = records.keys.len();
        check_records("radix_sort", "the input", records, self.key, self.payload, rows, false)?;
        self.sort(queue, [records, records, other], order, Form::InPlace, scratch)
    }

    /// Sorts the keys of `records` where they are, and writes the numbers that their rows had to its payload.
    ///
    /// # Errors
    /// As [`RadixSort::launch`].
    pub fn launch_numbering(
        &self,
        queue: &mut impl Queue,
        records: Records<'_>,
        other: Records<'_>,
        order: &RadixOrder,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let rows = records.keys.len();
        let input = Records { values: None, ..records };
        check_records("radix_sort", "the input", input, self.key, self.payload, rows, true)?;
        check_records("radix_sort", "the output", records, self.key, self.payload, rows, false)?;
        self.sort(queue, [input, records, other], order, Form::Numbering, scratch)
    }

    fn sort(
        &self,
        queue: &mut impl Queue,
        all: [Records<'_>; 3],
        order: &RadixOrder,
        form: Form,
        memory: &DeviceBuffer,
    ) -> Result<()> {
        let rows = all[0].keys.len();
        check_records("radix_sort", "the other place", all[2], self.key, self.payload, rows, false)?;
        order.check("radix_sort", self.key)?;
        check_scratch("radix_sort", memory, self.scratch_bytes(rows))?;
        if rows == 0 {
            return Ok(());
        }
        let Range { start, end } = order.bits;
        let Some(bins) = self.bins.as_ref().filter(|_| end - start > DIGIT_BITS) else {
            return self.passes(queue, all, order, form, memory);
        };
        let [input, output, other] = all;
        let (highest, below) = (end - DIGIT_BITS..end, start..end - DIGIT_BITS);
        let by = |bits| RadixOrder { bits, descending: order.descending };
        self.passes(queue, [input, other, other], &by(highest), Form::Apart, memory)?;
        let scratch = self.scratch(rows);
        let offsets = DeviceSlice::new(memory, scratch.counts, Element::U64, BINS as u64 + 1)?;
        let from = scratch.bytes.next_multiple_of(PART_BYTES_MIN);
        let rest = memory.part(from, memory.bytes() - from)?;
        bins.launch_from_other(queue, output, other, &offsets, &by(below), &rest)
    }

    /// Counts all digits and makes the passes by them, the least significant first.
    fn passes(
        &self,
        queue: &mut impl Queue,
        all: [Records<'_>; 3],
        order: &RadixOrder,
        form: Form,
        memory: &DeviceBuffer,
    ) -> Result<()> {
        let (rows, scratch) = (all[0].keys.len(), self.scratch(all[0].keys.len()));
        let (passes, _) = order.passes();
        let (portion, tile) = (self.portion(), self.tuning.tile());
        let portions = rows.div_ceil(portion);
        queue.fill(memory, scratch.counts, 0, scratch.plan)?;
        queue.fill(memory, scratch.words, 0xff, scratch.bytes - scratch.words)?;
        if passes > 0 {
            self.launch_count(queue, all[0].keys, order, memory, scratch.counts)?;
        }
        let shape = LaunchShape { grid: 1, block: BINS as u32, shared_bytes: 64 };
        let params = Params::new().buffer_at(memory, scratch.counts).buffer_at(memory, scratch.plan);
        let params = params.u64(rows).u64(passes.into()).u64(form as u64).u64(portions);
        queue.launch(&self.plan, shape, &params)?;
        for pass in 0..u64::from(passes) {
            for at in 0..portions {
                let (row, end) = (at * portion, rows.min((at + 1) * portion));
                let carry = |at: u64| scratch.carry + at as usize % 2 * BINS * 8;
                let starts = if at == 0 { scratch.counts + pass as usize * BINS * 8 } else { carry(at) };
                let params = order.digits(places(Params::new(), all)).u64(row).u64(end).u64(pass).u64(at);
                let params = params.buffer_at(memory, scratch.plan).buffer_at(memory, starts);
                let last = at + 1 == portions;
                let params = if last { params.null() } else { params.buffer_at(memory, carry(at + 1)) };
                let ticket = scratch.tickets + (pass * portions + at) as usize * 4;
                let params = params.buffer_at(memory, scratch.words).buffer_at(memory, ticket);
                queue.launch(&self.pass, self.pass_shape((end - row).div_ceil(tile)), &params)?;
            }
        }
        let grid = rows.div_ceil(COPY_ROWS).min(u64::from(self.multiprocessors) * 8) as u32;
        let shape = LaunchShape { grid, block: BINS as u32, shared_bytes: 0 };
        let params = places(Params::new(), all).u64(rows).buffer_at(memory, scratch.plan + passes as usize * 4);
        queue.launch(&self.copy, shape, &params)
    }

    fn launch_count(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        order: &RadixOrder,
        memory: &DeviceBuffer,
        counts: usize,
    ) -> Result<()> {
        let RadixTuning { count_threads: block, count_columns, .. } = self.tuning;
        let step = u64::from(block) * 4 * (16 / self.key.bytes() as u64);
        let grid = keys.len().div_ceil(step).min(self.multiprocessors.into()) as u32;
        let shared_bytes = order.passes().0 * BINS as u32 * count_columns * 4;
        let params = order.digits(Params::new().slice(keys).u64(keys.len())).buffer_at(memory, counts);
        queue.launch(&self.count, LaunchShape { grid, block, shared_bytes }, &params)
    }

    fn pass_shape(&self, tiles: u64) -> LaunchShape {
        let widest = self.key.bytes().max(self.payload.map_or(0, Element::bytes));
        let shared_bytes = self.tuning.tile_shared_bytes(widest);
        LaunchShape { grid: tiles as u32, block: self.tuning.threads, shared_bytes }
    }
}

/// The program of a sort.
pub(crate) fn program(key: Element, payload: Option<Element>, tuning: &RadixTuning) -> Program {
    let definitions = tuning.definitions(key, payload);
    let name = format!("radix_sort_{key}_{}", payload.map_or(0, Element::bytes));
    Program::new(name, format!("{KEYS}{EACH_KEY}{definitions}{TILE}{KERNELS}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn scratch_memory_is_that_of_tiles() {
        let payloads = || std::iter::once(None).chain(Element::ALL.map(Some));
        for (key, payload) in Element::ALL.into_iter().flat_map(|key| payloads().map(move |payload| (key, payload))) {
            let tuning = RadixTuning::of(227 << 10, key, payload);
            let a_row = tuning.scratch_bytes(key, 1 << 28) as f64 / 2f64.powi(28);
            assert!((0.08..0.3).contains(&a_row), "{key} with {payload:?}: {a_row}");
            let [one, many] = [1 << 30, 1 << 34].map(|rows| tuning.scratch_bytes(key, rows));
            assert!(many < one + (1 << 16), "{key} with {payload:?}: {one} and {many}");
        }
    }

    #[test]
    fn kernels_compile_for_gpus() {
        for (key, payload) in [
            (Element::U32, None),
            (Element::F32, Some(Element::U32)),
            (Element::U64, Some(Element::U32)),
            (Element::U8, Some(Element::U128)),
            (Element::U32, Some(Element::U8)),
            (Element::I128, Some(Element::U64)),
        ] {
            compile_for_gpus(&program(key, payload, &RadixTuning::of(99 << 10, key, payload)));
        }
    }
}
