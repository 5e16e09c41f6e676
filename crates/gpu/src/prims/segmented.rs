//! Segmented reduce and scan: sums over segments of any sizes, balanced by merging items and ends of segments.

use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::sum::{Sum, SumType};
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
/// The tuning for sums of up to 32 bits; wider ones take more registers. Not measured: other shapes, wider sums, other
/// segments.
const TUNING: Measured<TileTuning> = on_h200!(
    TileTuning { threads: 256, rows: 1, blocks: 4 },
    "2026-11-25",
    "2^31 words in segments of 1,000 reduced in 6.44 ms, scanned in 9.00, floors 1.89 and 4.09"
);
/// Blocks a multiprocessor for wider sums.
const WIDE_BLOCKS: u32 = 3;

/// Sums of segments on a device.
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
    types: SumType,
    tuning: TileTuning,
}

/// Where the parts of the scratch memory begin, and its size.
struct Layout {
    tiles: u64,
    starts: usize,
    bytes: usize,
}

impl SegmentedReduce {
    /// Compiles sums of `input` in elements of `sum`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no sums.
    pub fn new(device: &Device, input: Element, sum: Element) -> Result<SegmentedReduce> {
        SegmentedReduce::with_tuning(device, input, sum, tuning(sum))
    }

    /// The same with blocks of another shape; a tile has 16 positions a thread, and rows do not count.
    ///
    /// # Errors
    /// As [`SegmentedReduce::new`].
    pub fn with_tuning(device: &Device, input: Element, sum: Element, tuning: TileTuning) -> Result<SegmentedReduce> {
        Ok(SegmentedReduce(Segmented::new(device, "segmented reduce", [input, sum], None, tuning)?))
    }

    /// Scratch memory that a launch over so many items and segments needs.
    pub fn scratch_bytes(&self, n: u64, segments: u64) -> usize {
        self.0.layout(n, segments).bytes
    }

    /// Writes the sum of each segment to `out`. Segment `s` has the rows `offsets[s] .. offsets[s + 1]`; offsets
    /// ([`Element::U64`]) ascend from 0 to the length of the input. An empty segment has the sum 0.
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
    /// Compiles scans of `input` with sums in `sum`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no sums.
    pub fn new(device: &Device, input: Element, sum: Element, kind: ScanKind) -> Result<SegmentedScan> {
        SegmentedScan::with_tuning(device, input, sum, kind, tuning(sum))
    }

    /// The same with blocks of another shape; a tile has 16 positions a thread, and rows do not count.
    ///
    /// # Errors
    /// As [`SegmentedScan::new`].
    pub fn with_tuning(
        device: &Device,
        input: Element,
        sum: Element,
        kind: ScanKind,
        tuning: TileTuning,
    ) -> Result<SegmentedScan> {
        Ok(SegmentedScan(Segmented::new(device, "segmented scan", [input, sum], Some(kind), tuning)?))
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

/// The tuning for a type of sums.
pub(crate) fn tuning(sum: Element) -> TileTuning {
    let blocks = if sum.bytes() > 4 { WIDE_BLOCKS } else { TUNING.value.blocks };
    TileTuning { blocks, ..TUNING.value }
}

impl Segmented {
    fn new(
        device: &Device,
        operation: &'static str,
        [input, sum]: [Element; 2],
        scan: Option<ScanKind>,
        tuning: TileTuning,
    ) -> Result<Segmented> {
        let types = SumType::new(operation, input, sum)?;
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
        check_element(operation, "the output", out, self.types.sum)?;
        let layout = self.layout(n, segments);
        check_scratch(operation, scratch, layout.bytes)?;
        let (threads, padded) = (self.tuning.threads as usize, self.tile_items() as usize * 33 / 32);
        let head = (16 + threads / 32 * 12 + threads / 2 * 4).next_multiple_of(16);
        let shared = head + padded * (self.types.sum.bytes() + self.types.input.bytes());
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
pub(crate) fn program(types: SumType, scan: Option<ScanKind>, tuning: TileTuning) -> Program {
    let kind = match scan {
        None => "",
        Some(ScanKind::Inclusive) => "#define WC_SCAN\n",
        Some(ScanKind::Exclusive) => "#define WC_SCAN\n#define WC_EXCLUSIVE\n",
    };
    let shape = tuning.text(vector_items(types.input.bytes()));
    let text = include_str!("../../kernels/prims/segmented.cuh");
    Program::new("segmented", [&types.text(), kind, &shape, KEYS, TILE, LOOKBACK, text].concat())
}

/// The sums of segments on the host.
pub fn segmented_reduce<S: Sum>(items: &[S], offsets: &[u64]) -> Vec<S> {
    let segments = offsets.windows(2).map(|ends| &items[ends[0] as usize..ends[1] as usize]);
    segments.map(|segment| super::sum(segment.iter().copied())).collect()
}

/// The scans of segments on the host.
pub fn segmented_scan<S: Sum>(items: &[S], offsets: &[u64], kind: ScanKind) -> Vec<S> {
    let segments = offsets.windows(2).map(|ends| &items[ends[0] as usize..ends[1] as usize]);
    segments.flat_map(|segment| super::scan(segment.iter().copied(), kind)).collect()
}
