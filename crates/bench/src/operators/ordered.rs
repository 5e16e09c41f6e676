//! Ordered aggregation: key, count and sum of each run of equal neighbouring keys, without a hash table; single pass
//! with decoupled look-back. Unique and run-length encode are uses of it.
//!
//! The kernels of the paper "Code fusion of prefix sum with ordered aggregation" stand beside it: `ordered/fused.rs`
//! launches them, `ordered/tuner.rs` measures all on given data, and `ordered/findings.rs` keeps what was found.

mod algorithm;
mod findings;
mod fused;
mod plan;
mod tuner;

pub use algorithm::{FusedTuning, Fusion, OrderedAlgorithm, Variant};
pub use findings::{Aggregate, DataShape, OrderedData, OrderedFinding, OrderedFindings};
pub use fused::FusedAggregation;
pub use plan::{OrderedLauncher, OrderedPlan};
pub use tuner::{OrderedTuner, TunedPlan};

use warpcube_gpu::prims::lookback::{self, LOOKBACK};
use warpcube_gpu::prims::sum::{Sum, SumType};
use warpcube_gpu::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use warpcube_gpu::prims::{DeviceSlice, Element, KEYS, Key, Queue, check_element, check_length};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, Params, Program, Result};

const NAME: &str = "ordered aggregation";
/// Items of a lane, a bit each in a word of marks.
const LANE_ITEMS_MAX: u32 = 32;

/// What an ordered aggregation computes of each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderedForm {
    /// Type of keys.
    pub key: Element,
    /// Type of counts, [`Element::U32`] or [`Element::U64`], if they are wanted.
    pub count: Option<Element>,
    /// Types of values and of their sums, if they are wanted.
    pub sum: Option<(Element, Element)>,
}

/// Operands of a launch. Outputs may be shorter than the input: runs that do not fit into the shortest are counted and
/// not written.
#[derive(Debug, Clone, Copy)]
pub struct OrderedOperands<'a> {
    /// Keys, equal ones as neighbours.
    pub keys: &'a DeviceSlice,
    /// Values, as many as keys.
    pub values: Option<&'a DeviceSlice>,
    /// The key of each run, in the order of rows.
    pub keys_out: &'a DeviceSlice,
    /// The rows of each run.
    pub counts: Option<&'a DeviceSlice>,
    /// The sum of values of each run.
    pub sums: Option<&'a DeviceSlice>,
    /// One [`Element::U64`]: how many runs there are.
    pub runs: &'a DeviceSlice,
}

/// Checked operands, with the numbers that kernels take.
struct Checked<'a> {
    n: u64,
    /// Runs that the shortest output has room for.
    capacity: u64,
    values: Option<&'a DeviceSlice>,
    counts: Option<&'a DeviceSlice>,
    sums: Option<&'a DeviceSlice>,
}

/// Ordered aggregations of one form on a device.
#[derive(Clone)]
pub struct OrderedAggregation {
    kernel: Kernel,
    form: OrderedForm,
    tuning: TileTuning,
    /// Distance in tiles of the one that a block brings to the L2 cache.
    ahead: u64,
}

impl OrderedForm {
    /// The tuning. With sums a tile has half the rows, and registers for values. Floors of 2^28 u32 on an H200 with 16
    /// keys and with all distinct: counts 0.24 and 0.77 ms, sums 0.47 and 1.28 ms. Measured (2026-11-23, a launch of
    /// 20 to 35 µs included, look-back by 128 tiles) for 16, 65,536, 16 million and all distinct keys:
    ///  - counts 0.342, 0.341, 0.421, 1.034 ms; 512 threads 0.376, 0.365, 0.424, 0.986; 256 threads 0.439, 0.420,
    ///    0.487, 1.020. Adding up heads of parts by lanes in place of a loop over parts was predicted to save a third
    ///    of the instructions; with plain addresses of outputs it took counts of 16 keys from 0.390 to 0.351 ms.
    ///  - sums 0.751, 0.772, 0.824, 1.567 ms; 1,024 threads 0.739, 0.747, 0.849, 1.624; without prefetch 0.750, 0.779,
    ///    0.912, 1.710; before that, with a segmented scan in parts without heads too, 0.914, 0.900, 0.977, 1.799.
    ///    Half the rows and three blocks spill: 1.04. Padded shared memory gains nothing. Persistent blocks that copy
    ///    the next tile to shared memory meanwhile (`cp.async`) take 2.15, and 0.83 for counts: their next tile is
    ///    drawn early and announced late, and look-back of all tiles behind waits for it.
    ///
    /// On an H100 (2026-11-25, floors of sums 0.68 and 1.84 ms) a block waits before it looks back (`lookback.cuh`),
    /// a warp joins states by reductions in place of shuffles, and keys of counts are brought to the L2 cache, too.
    /// In a kernel that takes aligned inputs alone these took sums from 0.812, 0.826, 0.923, 1.877 ms to 0.740,
    /// 0.762, 0.842, 1.844, and counts from 0.401, 0.408, 0.461, 1.158 to 0.378, 0.389, 0.420, 1.113. What is left is
    /// latency: sums of 16 keys issue 26 % of the instructions that the multiprocessors could, of 16 million keys 52
    /// %; from the L2 cache alone they take 0.42 and 0.67 ms (0.47 and 0.72 before; 0.29 and 0.59 where no block
    /// looks back).
    pub fn tuning(self) -> TileTuning {
        let rows = (LANE_ITEMS_MAX / self.vector()).min(8);
        match self.sum {
            None => TileTuning { threads: 1024, rows, blocks: 1 },
            Some(_) => TileTuning { threads: 512, rows: rows.div_ceil(2), blocks: 2 },
        }
    }

    /// Items of a lane in a row: 16 bytes of keys or values, whichever are wider.
    fn vector(self) -> u32 {
        let value_bytes = self.sum.map_or(1, |(value, _)| value.bytes());
        vector_items(self.key.bytes().max(value_bytes))
    }

    /// Words of a state of look-back.
    fn words(self) -> usize {
        1 + usize::from(self.count.is_some()) + usize::from(self.sum.is_some())
    }

    /// Size of `OrderedShared` and the arrays behind it.
    fn shared_bytes(self, tuning: TileTuning) -> usize {
        let head = (40 + tuning.threads as usize / 32 * 16).next_multiple_of(16);
        let row_bytes = if self.count.is_some() { size_of::<u16>() } else { 0 };
        let sum_bytes = self.sum.map_or(0, |(_, sum)| sum.bytes());
        head + tuning.items(self.vector()) as usize * (self.key.bytes() + row_bytes + sum_bytes)
    }

    /// Operands that the form has, of its types and of fitting lengths.
    fn check<'a>(self, operands: &OrderedOperands<'a>) -> Result<Checked<'a>> {
        let OrderedOperands { keys, values, keys_out, counts, sums, runs } = *operands;
        let n = keys.len();
        check_element(NAME, "the keys", keys, self.key)?;
        check_element(NAME, "the keys of runs", keys_out, self.key)?;
        check_element(NAME, "the number of runs", runs, Element::U64)?;
        check_length(NAME, "the number of runs", runs, 1)?;
        let values = wanted("values", values, self.sum.map(|(value, _)| value))?;
        let counts = wanted("counts", counts, self.count)?;
        let sums = wanted("sums", sums, self.sum.map(|(_, sum)| sum))?;
        if let Some(values) = values {
            check_length(NAME, "the slice of values", values, n)?;
        }
        if self.count == Some(Element::U32) && n > u64::from(u32::MAX) {
            return Err(GpuError::Contract(format!("{NAME}: {n} rows do not fit into a count of u32")));
        }
        let outputs = [Some(keys_out), counts, sums].into_iter().flatten();
        let capacity = outputs.map(DeviceSlice::len).min().unwrap_or(0);
        Ok(Checked { n, capacity, values, counts, sums })
    }

    /// The types that kernels are compiled for.
    fn types(self) -> Result<String> {
        let mut text = format!("#define WC_KEY {}\n", self.key.c_type());
        match self.count {
            None => {}
            Some(count @ (Element::U32 | Element::U64)) => text += &format!("#define WC_COUNT {}\n", count.c_type()),
            Some(other) => return Err(GpuError::Contract(format!("{NAME}: no counts of {other}"))),
        }
        if let Some((value, sum)) = self.sum {
            text += &SumType::new(NAME, value, sum)?.text();
        }
        Ok(text)
    }

    pub(crate) fn program(self, tuning: TileTuning) -> Result<Program> {
        let vector = self.vector();
        if vector * tuning.rows > LANE_ITEMS_MAX || tuning.items(vector) > 1 << 16 {
            return Err(GpuError::Contract(format!("{NAME}: no tiles of {tuning:?} with {vector} items a row")));
        }
        let text = tuning.text(vector) + &self.types()?;
        let kernel = include_str!("../../kernels/ordered.cuh");
        Ok(Program::new("ordered", [&text, KEYS, TILE, LOOKBACK, kernel].concat()))
    }
}

impl OrderedAggregation {
    /// Compiles a form.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no sums, and counts other than u32 and u64.
    pub fn new(device: &Device, form: OrderedForm) -> Result<OrderedAggregation> {
        let available = device.info().shared_memory_per_block;
        let tuning = form.tuning().fitting(available, |tuning| form.shared_bytes(tuning));
        OrderedAggregation::with_tuning(device, form, tuning)
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// As [`OrderedAggregation::new`], and for lanes of more than 32 items or tiles of more than 65,536.
    pub fn with_tuning(device: &Device, form: OrderedForm, tuning: TileTuning) -> Result<OrderedAggregation> {
        let kernel = device.compile(&form.program(tuning)?)?.kernel("wc_ordered")?;
        // A quarter of the tiles that are worked on at once.
        let ahead = u64::from(device.info().multiprocessors * tuning.blocks) / 4;
        Ok(OrderedAggregation { kernel, form, tuning, ahead })
    }

    /// Scratch memory that a launch over `n` keys needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        lookback::scratch_bytes(self.tuning.tiles(self.form.vector(), n), self.form.words())
    }

    /// Writes the runs of the keys.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for operands that the form has not or lacks, other types or lengths, more rows than
    /// counts hold, or too little scratch memory.
    pub fn launch(&self, queue: &mut impl Queue, operands: &OrderedOperands<'_>, scratch: &DeviceBuffer) -> Result<()> {
        let (form, OrderedOperands { keys, keys_out, runs, .. }) = (self.form, *operands);
        let Checked { n, capacity, values, counts, sums } = form.check(operands)?;
        let tiles = self.tuning.tiles(form.vector(), n);
        let shape = self.tuning.shape(NAME, tiles, form.shared_bytes(self.tuning))?;
        lookback::reset(NAME, queue, scratch, tiles, form.words())?;
        if n == 0 {
            return queue.fill(runs.buffer(), runs.offset(), 0, size_of::<u64>());
        }
        let read: Vec<&DeviceSlice> = [Some(keys), values].into_iter().flatten().collect();
        let aligned = are_aligned(&read, form.vector());
        let params = Params::new().slice(keys).slice(keys_out).slice(runs).u64(capacity).buffer(scratch);
        let params = params.u64(n).u64(aligned.into()).u64(self.ahead);
        let more = [counts, values, sums].into_iter().flatten();
        let params = more.fold(params, Params::slice);
        queue.launch(&self.kernel, shape, &params)
    }
}

/// An operand of the type that a form asks for, if it does.
fn wanted<'a>(what: &str, slice: Option<&'a DeviceSlice>, element: Option<Element>) -> Result<Option<&'a DeviceSlice>> {
    match (slice, element) {
        (Some(slice), Some(element)) => {
            check_element(NAME, &format!("the slice of {what}"), slice, element)?;
            Ok(Some(slice))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(GpuError::Contract(format!("{NAME}: it was not compiled for {what}"))),
        (None, Some(_)) => Err(GpuError::Contract(format!("{NAME}: the slice of {what} is missing"))),
    }
}

/// Unique: the keys of runs of equal neighbours.
#[derive(Clone)]
pub struct Unique(OrderedAggregation);

impl Unique {
    /// Compiles it for one type of keys.
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn new(device: &Device, key: Element) -> Result<Unique> {
        Ok(Unique(OrderedAggregation::new(device, OrderedForm { key, count: None, sum: None })?))
    }

    /// Scratch memory that a launch over `n` keys needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.0.scratch_bytes(n)
    }

    /// Writes the key of each run to `out` and their number to `runs`.
    ///
    /// # Errors
    /// As [`OrderedAggregation::launch`].
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        out: &DeviceSlice,
        runs: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (values, counts, sums) = (None, None, None);
        self.0.launch(queue, &OrderedOperands { keys, values, keys_out: out, counts, sums, runs }, scratch)
    }
}

/// Run-length encode: the keys of runs of equal neighbours, and their rows.
#[derive(Clone)]
pub struct RunLengthEncode(OrderedAggregation);

impl RunLengthEncode {
    /// Compiles it for one type of keys and one of counts.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for counts other than u32 and u64.
    pub fn new(device: &Device, key: Element, count: Element) -> Result<RunLengthEncode> {
        let form = OrderedForm { key, count: Some(count), sum: None };
        Ok(RunLengthEncode(OrderedAggregation::new(device, form)?))
    }

    /// Scratch memory that a launch over `n` keys needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.0.scratch_bytes(n)
    }

    /// Writes the key of each run to `out`, its rows to `counts`, and the number of runs to `runs`.
    ///
    /// # Errors
    /// As [`OrderedAggregation::launch`].
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        [out, counts]: [&DeviceSlice; 2],
        runs: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (values, counts, sums) = (None, Some(counts), None);
        self.0.launch(queue, &OrderedOperands { keys, values, keys_out: out, counts, sums, runs }, scratch)
    }
}

/// Key, count and sum of each run, on the host.
pub fn ordered_aggregation<K: Key, S: Sum>(keys: &[K], values: impl IntoIterator<Item = S>) -> Vec<(K, u64, S)> {
    let mut runs: Vec<(K, u64, S)> = Vec::new();
    for (key, value) in keys.iter().zip(values) {
        match runs.last_mut() {
            Some((last, count, sum)) if last.ordered_bits() == key.ordered_bits() => {
                *count += 1;
                *sum = sum.plus(value);
            }
            _ => runs.push((*key, 1, value)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        let (counts, sums) = (Some(Element::U32), Some((Element::U32, Element::U64)));
        let forms = [
            OrderedForm { key: Element::U32, count: counts, sum: None },
            OrderedForm { key: Element::U32, count: None, sum: sums },
            OrderedForm { key: Element::U64, count: Some(Element::U64), sum: Some((Element::F64, Element::F64)) },
            OrderedForm { key: Element::I128, count: None, sum: None },
            OrderedForm { key: Element::U8, count: counts, sum: None },
            OrderedForm { key: Element::F32, count: counts, sum: Some((Element::I64, Element::I64)) },
        ];
        forms.iter().for_each(|form| compile_for_gpus(&form.program(form.tuning()).unwrap()));
    }
}
