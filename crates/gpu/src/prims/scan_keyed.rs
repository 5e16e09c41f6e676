//! Scan by key: the join (sum, number, least, largest) of the inputs of a run of equal keys up to or before each; heads
//! of runs come from the keys. Single pass with decoupled look-back.

use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::monoid::{Joined, MONOID, Monoid, Reduction};
use crate::prims::scan::ScanSpec;
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::{DeviceSlice, Element, KEYS, Key, Queue, ScanKind, check_element, check_length};
use crate::program::Program;

const NAME: &str = "scan_keyed";
/// Words of a state of look-back.
const WORDS: usize = 2;
/// The tuning. Not measured.
const TUNING: TileTuning = TileTuning { threads: 256, rows: 4, blocks: 3 };

/// Scans by key of one choice of types on a device.
#[derive(Clone)]
pub struct ScanKeyed {
    kernel: Kernel,
    key: Element,
    types: Joined,
    tuning: TileTuning,
}

/// What a scan by key is made for, before its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanKeyedSpec {
    /// Type of the keys.
    pub key: Element,
    /// What items are joined, and to what.
    pub scan: ScanSpec,
}

impl ScanKeyedSpec {
    fn types(&self) -> Joined {
        Joined { input: self.scan.input, of: self.scan.of }
    }

    /// What [`ScanKeyed::new`] compiles, for callers that compile it beside other programs.
    pub fn program(&self) -> Program {
        program(self.key, self.types(), self.scan.kind, TUNING)
    }

    /// Scratch memory for `n` items in bytes, as [`ScanKeyed::scratch_bytes`] of a scan made for it.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        scratch_bytes(self.key, self.types(), TUNING, n)
    }
}

impl ScanKeyed {
    /// Compiles scans of `input` in runs of keys of `key`.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for types that have no such sums, and for the least and largest of 16 bytes.
    pub fn new(device: &Device, key: Element, input: Element, of: Reduction, kind: ScanKind) -> Result<ScanKeyed> {
        ScanKeyed::with_tuning(device, key, (input, of), kind, TUNING)
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`ScanKeyed::new`].
    pub fn with_tuning(
        device: &Device,
        key: Element,
        (input, of): (Element, Reduction),
        kind: ScanKind,
        tuning: TileTuning,
    ) -> Result<ScanKeyed> {
        let types = Joined::in_states(NAME, input, of)?;
        let kernel = device.compile(&program(key, types, kind, tuning))?.kernel("wc_scan_keyed")?;
        Ok(ScanKeyed { kernel, key, types, tuning })
    }

    /// Scratch memory that a launch over `n` items needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        scratch_bytes(self.key, self.types, self.tuning, n)
    }

    /// Writes the joins of `input` in runs of equal `keys` to `out`, which may be the input where types have one size.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for other types or lengths, or too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        [keys, input]: [&DeviceSlice; 2],
        out: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let n = input.len();
        check_element(NAME, "the slice of keys", keys, self.key)?;
        check_element(NAME, "the input", input, self.types.input)?;
        check_element(NAME, "the output", out, self.types.output())?;
        check_length(NAME, "the slice of keys", keys, n)?;
        check_length(NAME, "the output", out, n)?;
        let tiles = self.tuning.tiles(vector(self.key, self.types), n);
        let shared_bytes = 16 + self.tuning.threads as usize / 32 * 12;
        let shape = self.tuning.shape(NAME, tiles, shared_bytes.next_multiple_of(8))?;
        lookback::reset(NAME, queue, scratch, tiles, WORDS)?;
        if n == 0 {
            return Ok(());
        }
        let aligned = are_aligned(&[keys, input, out], vector(self.key, self.types));
        let params = Params::new().slice(keys).slice(input).slice(out).buffer(scratch).u64(n).u64(aligned.into());
        queue.launch(&self.kernel, shape, &params)
    }
}

/// Items of a lane's row: those of 16 bytes of the wider of keys and items, four at most.
fn vector(key: Element, types: Joined) -> u32 {
    vector_items(key.bytes().max(types.input.bytes()).max(4))
}

/// Scratch memory of a scan of `n` items in bytes: states of look-back.
fn scratch_bytes(key: Element, types: Joined, tuning: TileTuning, n: u64) -> usize {
    lookback::scratch_bytes(tuning.tiles(vector(key, types), n), WORDS)
}

/// The program of types and one kind of scan.
pub(crate) fn program(key: Element, types: Joined, kind: ScanKind, tuning: TileTuning) -> Program {
    let exclusive = if kind == ScanKind::Exclusive { "#define WC_EXCLUSIVE\n" } else { "" };
    let text = include_str!("../../kernels/prims/scan_keyed.cuh");
    let shape = tuning.text(vector(key, types)) + &format!("#define WC_KEY {}\n", key.c_type());
    Program::new(NAME, [&types.text(), exclusive, &shape, KEYS, TILE, LOOKBACK, MONOID, text].concat())
}

/// The same on the host: keys and items of rows in their order.
pub fn scan_keyed<K: Key, T: Copy>(rows: &[(K, T)], kind: ScanKind, monoid: Monoid<T>) -> Vec<T> {
    let runs = rows.chunk_by(|a, b| a.0.ordered_bits() == b.0.ordered_bits());
    runs.flat_map(|run| super::scan(run.iter().map(|row| row.1), kind, monoid)).collect()
}
