//! Segmented reduce and scan: joins (sum, number, least, largest) over segments of any sizes, balanced by merging items
//! and ends of segments.

use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::monoid::{Joined, MONOID, Monoid, Reduction};
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::tuning::{Measured, on_h200};
use crate::prims::{DeviceSlice, Element, KEYS, Queue, ScanKind, check_element, check_length, check_scratch};
use crate::program::Program;

/// Positions of a thread, items and ends of segments.
const THREAD_ITEMS: u64 = 16;
/// Threads of a block that looks for the tiles' first segments.
const STARTS_BLOCK: u32 = 128;
/// Words of a state of look-back.
const WORDS: usize = 2;
/// The tuning for parts of up to 32 bits; wider ones take more registers. Not measured: other shapes, wider sums, other
/// segments.
const TUNING: Measured<TileTuning> = on_h200!(
    TileTuning { threads: 256, rows: 1, blocks: 4 },
    "2026-11-25",
    "2^31 words in segments of 1,000 reduced in 6.44 ms, scanned in 9.00, floors 1.89 and 4.09"
);
/// Blocks a multiprocessor for wider parts.
const WIDE_BLOCKS: u32 = 3;

/// Reductions of segments on a device.
#[derive(Clone)]
pub struct SegmentedReduce(Segmented);

/// Scans within segments on a device.
#[derive(Clone)]
pub struct SegmentedScan(Segmented);

/// What both are made of.
#[derive(Clone)]
struct Segmented {
    operation: &'static str,
    starts: Kernel,
    kernel: Kernel,
    types: Joined,
    tuning: TileTuning,
}

/// Where the parts of the scratch memory begin, and its size.
struct Layout {
    tiles: u64,
    starts: usize,
    bytes: usize,
}

impl SegmentedReduce {
    /// Compiles reductions of `input`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no such sums, and for the least and largest of 16 bytes.
    pub fn new(device: &Device, input: Element, of: Reduction) -> Result<SegmentedReduce> {
        SegmentedReduce::with_tuning(device, input, of, tuning(Joined { input, of }))
    }

    /// The same with blocks of another shape; a tile has 16 positions a thread, and rows do not count.
    ///
    /// # Errors
    /// As [`SegmentedReduce::new`].
    pub fn with_tuning(device: &Device, input: Element, of: Reduction, tuning: TileTuning) -> Result<SegmentedReduce> {
        Ok(SegmentedReduce(Segmented::new(device, "segmented reduce", (input, of), None, tuning)?))
    }

    /// Scratch memory that a launch over so many items and segments needs.
    pub fn scratch_bytes(&self, n: u64, segments: u64) -> usize {
        self.0.layout(n, segments).bytes
    }

    /// Writes the join of each segment to `out`. Segment `s` has the rows `offsets[s] .. offsets[s + 1]`; offsets
    /// ([`Element::U64`]) ascend from 0 to the length of the input. An empty segment has the result of nothing
    /// ([`Reduction`]).
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, or too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: &DeviceSlice,
        offsets: &DeviceSlice,
        out: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        check_length(self.0.operation, "the output", out, self.0.segments(offsets)?)?;
        self.0.launch(queue, [input, offsets, out], scratch)
    }
}

impl SegmentedScan {
    /// Compiles scans of `input`.
    ///
    /// # Errors
    /// As [`SegmentedReduce::new`].
    pub fn new(device: &Device, input: Element, of: Reduction, kind: ScanKind) -> Result<SegmentedScan> {
        SegmentedScan::with_tuning(device, input, of, kind, tuning(Joined { input, of }))
    }

    /// The same with blocks of another shape; a tile has 16 positions a thread, and rows do not count.
    ///
    /// # Errors
    /// As [`SegmentedScan::new`].
    pub fn with_tuning(
        device: &Device,
        input: Element,
        of: Reduction,
        kind: ScanKind,
        tuning: TileTuning,
    ) -> Result<SegmentedScan> {
        Ok(SegmentedScan(Segmented::new(device, "segmented scan", (input, of), Some(kind), tuning)?))
    }

    /// Scratch memory that a launch over so many items and segments needs.
    pub fn scratch_bytes(&self, n: u64, segments: u64) -> usize {
        self.0.layout(n, segments).bytes
    }

    /// Writes the scan of each segment to the rows of `out`; offsets as in [`SegmentedReduce::launch`].
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, or too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: &DeviceSlice,
        offsets: &DeviceSlice,
        out: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        check_length(self.0.operation, "the output", out, input.len())?;
        self.0.launch(queue, [input, offsets, out], scratch)
    }
}

/// The tuning for a reduction.
pub(crate) fn tuning(types: Joined) -> TileTuning {
    let blocks = if types.part_bytes() > 4 { WIDE_BLOCKS } else { TUNING.value.blocks };
    TileTuning { blocks, ..TUNING.value }
}

impl Segmented {
    fn new(
        device: &Device,
        operation: &'static str,
        (input, of): (Element, Reduction),
        scan: Option<ScanKind>,
        tuning: TileTuning,
    ) -> Result<Segmented> {
        let types = Joined::in_states(operation, input, of)?;
        let module = device.compile(&program(types, scan, tuning))?;
        let (starts, kernel) = (module.kernel("wc_segment_starts")?, module.kernel("wc_segmented")?);
        Ok(Segmented { operation, starts, kernel, types, tuning })
    }

    fn tile_items(&self) -> u64 {
        u64::from(self.tuning.threads) * THREAD_ITEMS
    }

    fn layout(&self, n: u64, segments: u64) -> Layout {
        let tiles = (n + segments).div_ceil(self.tile_items());
        let starts = lookback::scratch_bytes(tiles, WORDS);
        Layout { tiles, starts, bytes: starts + (tiles as usize + 1) * size_of::<u64>() }
    }

    /// The segments between offsets.
    fn segments(&self, offsets: &DeviceSlice) -> Result<u64> {
        offsets.len().checked_sub(1).ok_or_else(|| {
            GpuError::Contract(format!("{}: 0 offsets, and one more than segments are needed", self.operation))
        })
    }

    fn launch(
        &self,
        queue: &mut impl Queue,
        [input, offsets, out]: [&DeviceSlice; 3],
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (operation, n, segments) = (self.operation, input.len(), self.segments(offsets)?);
        check_element(operation, "the input", input, self.types.input)?;
        check_element(operation, "the slice of offsets", offsets, Element::U64)?;
        check_element(operation, "the output", out, self.types.output())?;
        let layout = self.layout(n, segments);
        check_scratch(operation, scratch, layout.bytes)?;
        let (threads, padded) = (self.tuning.threads as usize, self.tile_items() as usize * 33 / 32);
        let head = (16 + threads / 32 * 12 + threads / 2 * 4).next_multiple_of(16);
        let shared = head + padded * (self.types.part_bytes() + self.types.input.bytes());
        let shape = self.tuning.shape(operation, layout.tiles, shared)?;
        lookback::reset(operation, queue, scratch, layout.tiles, WORDS)?;
        if layout.tiles == 0 {
            return Ok(());
        }
        let aligned = are_aligned(&[input], vector_items(self.types.input.bytes()));
        let params = Params::new().slice(input).slice(offsets).slice(out).buffer(scratch);
        let params = params.buffer_at(scratch, layout.starts).u64(n).u64(segments).u64(layout.tiles);
        let params = params.u64(aligned.into());
        let grid = (layout.tiles + 1).div_ceil(STARTS_BLOCK.into()) as u32;
        queue.launch(&self.starts, LaunchShape { grid, block: STARTS_BLOCK, shared_bytes: 0 }, &params)?;
        queue.launch(&self.kernel, shape, &params)
    }
}

/// The program of a reduce, or of a kind of scan.
pub(crate) fn program(types: Joined, scan: Option<ScanKind>, tuning: TileTuning) -> Program {
    let kind = match scan {
        None => "",
        Some(ScanKind::Inclusive) => "#define WC_SCAN\n",
        Some(ScanKind::Exclusive) => "#define WC_SCAN\n#define WC_EXCLUSIVE\n",
    };
    let shape = tuning.text(vector_items(types.input.bytes()));
    let text = include_str!("../../kernels/prims/segmented.cuh");
    Program::new("segmented", [&types.text(), kind, &shape, KEYS, TILE, LOOKBACK, MONOID, text].concat())
}

/// The joins of segments on the host.
pub fn segmented_reduce<T: Copy>(items: &[T], offsets: &[u64], monoid: Monoid<T>) -> Vec<T> {
    let segments = offsets.windows(2).map(|ends| &items[ends[0] as usize..ends[1] as usize]);
    segments.map(|segment| segment.iter().copied().fold(monoid.nothing, monoid.join)).collect()
}

/// The scans of segments on the host.
pub fn segmented_scan<T: Copy>(items: &[T], offsets: &[u64], kind: ScanKind, monoid: Monoid<T>) -> Vec<T> {
    let segments = offsets.windows(2).map(|ends| &items[ends[0] as usize..ends[1] as usize]);
    segments.flat_map(|segment| super::scan(segment.iter().copied(), kind, monoid)).collect()
}
