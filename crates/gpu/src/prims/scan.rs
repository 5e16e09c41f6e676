//! Scan: the join (sum, number, least, largest) of all inputs up to or before each; single pass with decoupled
//! look-back.

use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::monoid::{Joined, MONOID, Monoid, Reduction};
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::{DeviceSlice, Element, KEYS, Queue, check_element, check_length};
use crate::program::Program;

const NAME: &str = "scan";
/// Bytes of sums that a lane holds.
const LANE_BYTES: u32 = 128;

/// What an output of a scan counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanKind {
    /// The item itself and all before it.
    Inclusive,
    /// All items before it.
    Exclusive,
}

/// Scans of one pair of types on a device.
#[derive(Clone)]
pub struct Scan {
    kernel: Kernel,
    types: Joined,
    vector: u32,
    tuning: TileTuning,
    /// Distance in tiles of the one that a block brings to the L2 cache.
    ahead: u64,
}

/// What a scan is made for, before its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSpec {
    /// Type of the items.
    pub input: Element,
    /// What they are joined to.
    pub of: Reduction,
    /// What an output counts in.
    pub kind: ScanKind,
}

impl ScanSpec {
    /// What [`Scan::new`] compiles, for callers that compile it beside other programs.
    pub fn program(&self) -> Program {
        let ScanSpec { input, of, kind } = *self;
        program(Joined { input, of }, kind, Scan::tuning(input, of))
    }

    /// Scratch memory for `n` items in bytes, as [`Scan::scratch_bytes`] of a scan made for it.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        let ScanSpec { input, of, .. } = *self;
        scratch_bytes(Joined { input, of }, Scan::tuning(input, of), n)
    }
}

impl Scan {
    /// The tuning for joins of these types. 2^28 u32 on an H200 (2026-11-23, with a launch; floor 0.51 ms): 0.625 ms
    /// with the tile brought to the L2 cache that comes 264 tiles later, 0.645 for 132 and 0.641 for 396; without,
    /// 0.754, and 0.742 in blocks of 512 threads, 0.693 in blocks of 1,024, which with prefetches take 0.636 and 0.675.
    pub fn tuning(input: Element, of: Reduction) -> TileTuning {
        let bytes = Joined { input, of }.part_bytes();
        let lane_row_bytes = vector_items(input.bytes()) * bytes as u32;
        let blocks = if bytes > 4 { 2 } else { 4 };
        TileTuning { threads: 256, rows: (LANE_BYTES / lane_row_bytes).clamp(1, 8), blocks }
    }

    /// Compiles scans of `input`.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for types that have no such sums, and for the least and largest of 16 bytes.
    pub fn new(device: &Device, input: Element, of: Reduction, kind: ScanKind) -> Result<Scan> {
        Scan::with_tuning(device, input, of, kind, Scan::tuning(input, of))
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`Scan::new`].
    pub fn with_tuning(
        device: &Device,
        input: Element,
        of: Reduction,
        kind: ScanKind,
        tuning: TileTuning,
    ) -> Result<Scan> {
        let types = Joined::in_states(NAME, input, of)?;
        let kernel = device.compile(&program(types, kind, tuning))?.kernel("wc_scan")?;
        // Half of the tiles that are worked on at once.
        let ahead = u64::from(device.info().multiprocessors * tuning.blocks) / 2;
        Ok(Scan { kernel, types, vector: vector_items(input.bytes()), tuning, ahead })
    }

    /// Scratch memory that a launch over `n` items needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        scratch_bytes(self.types, self.tuning, n)
    }

    /// Writes the joins of `input` to `out`, which may be the input where types have one size.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for other types or lengths, or too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: &DeviceSlice,
        out: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let n = input.len();
        check_element(NAME, "the input", input, self.types.input)?;
        check_element(NAME, "the output", out, self.types.output())?;
        check_length(NAME, "the output", out, n)?;
        let tiles = self.tuning.tiles(self.vector, n);
        let shape = self.tuning.shape(NAME, tiles, shared_bytes(self.types, self.tuning))?;
        lookback::reset(NAME, queue, scratch, tiles, self.types.words())?;
        if n == 0 {
            return Ok(());
        }
        let aligned = are_aligned(&[input, out], self.vector);
        let params = Params::new().slice(input).slice(out).buffer(scratch).u64(n).u64(aligned.into()).u64(self.ahead);
        queue.launch(&self.kernel, shape, &params)
    }
}

/// Scratch memory of a scan of `n` items in bytes: states of look-back.
fn scratch_bytes(types: Joined, tuning: TileTuning, n: u64) -> usize {
    lookback::scratch_bytes(tuning.tiles(vector_items(types.input.bytes()), n), types.words())
}

/// Size of `ScanShared`.
fn shared_bytes(types: Joined, tuning: TileTuning) -> usize {
    16 + tuning.threads as usize / 32 * types.part_bytes().max(8)
}

/// The program of one kind of scan.
pub(crate) fn program(types: Joined, kind: ScanKind, tuning: TileTuning) -> Program {
    let exclusive = if kind == ScanKind::Exclusive { "#define WC_EXCLUSIVE\n" } else { "" };
    let text = include_str!("../../kernels/prims/scan.cuh");
    let shape = tuning.text(vector_items(types.input.bytes()));
    Program::new(NAME, [&types.text(), exclusive, &shape, KEYS, TILE, LOOKBACK, MONOID, text].concat())
}

/// The same on the host.
pub fn scan<T: Copy>(input: impl IntoIterator<Item = T>, kind: ScanKind, monoid: Monoid<T>) -> Vec<T> {
    let mut joined = monoid.nothing;
    let next = |item: T| {
        let before = joined;
        joined = (monoid.join)(joined, item);
        if kind == ScanKind::Exclusive { before } else { joined }
    };
    input.into_iter().map(next).collect()
}
