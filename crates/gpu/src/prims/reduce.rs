//! Reduce: the sum, the number, the least or the largest of all items, in one launch.

use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::lookback::{self, LOOKBACK};
use crate::prims::monoid::{Joined, MONOID, Reduction};
use crate::prims::sum::Sum;
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::tuning::{Measured, on_h200};
use crate::prims::{DeviceSlice, Element, KEYS, Key, Queue, check_element, check_length};
use crate::program::Program;

const NAME: &str = "reduce";
/// The tuning. Other shapes were not measured: this one is at the floor.
const TUNING: Measured<TileTuning> = on_h200!(
    TileTuning { threads: 256, rows: 8, blocks: 4 },
    "2026-11-25",
    "2^31 words added up in 1.849 ms, floor 1.888"
);

/// Reductions of one type on a device.
#[derive(Clone)]
pub struct Reduce {
    kernel: Kernel,
    types: Joined,
    blocks_max: u32,
    vector: u32,
    tuning: TileTuning,
}

impl Reduce {
    /// The tuning.
    pub fn tuning() -> TileTuning {
        TUNING.value
    }

    /// Compiles a reduction of `input`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no sums.
    pub fn new(device: &Device, input: Element, reduction: Reduction) -> Result<Reduce> {
        Reduce::with_tuning(device, input, reduction, Reduce::tuning())
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`Reduce::new`].
    pub fn with_tuning(device: &Device, input: Element, reduction: Reduction, tuning: TileTuning) -> Result<Reduce> {
        let types = Joined::new(NAME, input, reduction)?;
        let kernel = device.compile(&program(types, tuning))?.kernel("wc_reduce")?;
        let blocks_max = device.info().multiprocessors * tuning.blocks;
        Ok(Reduce { kernel, types, blocks_max, vector: vector_items(input.bytes()), tuning })
    }

    /// Blocks of a launch.
    fn blocks(&self, n: u64) -> u64 {
        self.tuning.tiles(self.vector, n).min(self.blocks_max.into())
    }

    /// Words of 8 bytes of a partial result, `WORDS` of the kernel.
    fn words(&self) -> usize {
        self.types.part_bytes().div_ceil(size_of::<u64>())
    }

    /// Scratch memory that a launch over `n` items needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        lookback::scratch_bytes(self.blocks(n), self.words())
    }

    /// Writes the result to `out`, one element.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, too little scratch memory, and the least or largest of
    /// nothing.
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
        check_length(NAME, "the output", out, 1)?;
        if n == 0 && matches!(self.types.of, Reduction::Least | Reduction::Largest) {
            return Err(GpuError::Contract(format!("{NAME}: 0 elements have no least and no largest")));
        }
        let blocks = self.blocks(n);
        let shared_bytes = (1 + self.tuning.threads as usize / 32 * self.words()) * size_of::<u64>();
        let shape = self.tuning.shape(NAME, blocks, shared_bytes)?;
        lookback::reset(NAME, queue, scratch, blocks, self.words())?;
        if n == 0 {
            return queue.fill(out.buffer(), out.offset(), 0, out.element().bytes());
        }
        let aligned = are_aligned(&[input], self.vector);
        let params = Params::new().slice(input).slice(out).buffer(scratch).u64(n).u64(aligned.into());
        queue.launch(&self.kernel, shape, &params)
    }
}

/// The program of one reduction.
pub(crate) fn program(types: Joined, tuning: TileTuning) -> Program {
    let text = include_str!("../../kernels/prims/reduce.cuh");
    let shape = tuning.text(vector_items(types.input.bytes()));
    Program::new(NAME, [&types.text(), &shape, KEYS, TILE, LOOKBACK, MONOID, text].concat())
}

/// The sum on the host.
pub fn sum<S: Sum>(input: impl IntoIterator<Item = S>) -> S {
    input.into_iter().fold(S::ZERO, S::plus)
}

/// The least on the host.
pub fn least<K: Key>(input: &[K]) -> Option<K> {
    input.iter().copied().min_by_key(|key| key.ordered_bits())
}

/// The largest on the host.
pub fn largest<K: Key>(input: &[K]) -> Option<K> {
    input.iter().copied().max_by_key(|key| key.ordered_bits())
}
