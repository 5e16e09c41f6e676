//! Ordered aggregation by prefix sums of heads, in five, three, two kernels or one, each in four variants.
//!
//! Kernels and source: `kernels/prims/ordered/positions.cuh` and `kernels/prims/ordered/aggregate.cuh`. Scratch memory:
//! a word of 4 bytes a row and one a chunk where there is more than one kernel; descriptors of look-back, 8 bytes a
//! tile of `local` chunks, always. Counts and sums are zeroed as far as there is room for runs, so outputs that are no
//! longer than they need to be save time.

use warpcube_gpu::prims::lookback::{self, LOOKBACK};
use warpcube_gpu::prims::tile::{TILE, are_aligned};
use warpcube_gpu::prims::{DeviceSlice, KEYS, Queue, check_scratch};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, LaunchShape, PART_BYTES_MIN, Params, Program, Result};

use super::{Checked, FusedTuning, Fusion, NAME, OrderedForm, OrderedOperands, Variant};

const POSITIONS: &str = include_str!("../../../kernels/ordered/positions.cuh");
const AGGREGATE: &str = include_str!("../../../kernels/ordered/aggregate.cuh");
/// Rows that positions of 32 bits tell apart.
pub(super) const ROWS_MAX: u64 = 1 << 32;
/// Rows of a chunk at most, as in the paper; partial sums of a chunk have 16 bits in shared memory.
const CHUNK_MAX: u32 = 1 << 12;
/// Rows of a chunk with a private array at most: 4 to 16 bytes of local memory each, for all resident threads.
const PRIVATE_ROWS_MAX: u32 = 1 << 8;
/// Sizes of private arrays: a program each, so that a tuner compiles few.
const PRIVATE_ROWS: [u32; 3] = [16, 64, PRIVATE_ROWS_MAX];
/// Threads of a block at most.
const LOCAL_MAX: u32 = 1024;
/// Rows that a thread loads at once, `WC_STEP` of the kernels.
const STEP: u32 = 4;
/// Size of `OrderedBlock`.
const BLOCK_BYTES: usize = 16 + LOCAL_MAX as usize / 32 * 4;

/// What a thread of a kernel has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapping {
    Row,
    Chunk,
}

/// Ordered aggregations of one form, fusion and variant on a device.
#[derive(Clone)]
pub struct FusedAggregation {
    form: OrderedForm,
    fusion: Fusion,
    tuning: FusedTuning,
    kernels: Vec<(Kernel, Mapping)>,
    shared_bytes: usize,
}

impl FusedTuning {
    /// The tuning where none was found: a warp's chunks fill whole lines of the L1 cache, and blocks are small enough
    /// for several tiles of the one-kernel form on a multiprocessor.
    pub const DEFAULT: FusedTuning = FusedTuning { chunk: 16, local: 256 };

    fn tiles(self, n: u64) -> u64 {
        self.chunks(n).div_ceil(u64::from(self.local))
    }

    fn chunks(self, n: u64) -> u64 {
        n.div_ceil(u64::from(self.chunk))
    }

    /// Shared memory of a block: `OrderedBlock`, and in the one-kernel form what lies behind it.
    fn shared_bytes(self, fusion: Fusion) -> usize {
        match fusion {
            Fusion::OneKernel => BLOCK_BYTES + self.local as usize * (4 + 2 * (self.chunk as usize + 2)),
            _ => BLOCK_BYTES,
        }
    }

    fn check(self, variant: Variant) -> Result<()> {
        let chunk_max = if variant == Variant::PrivateArray { PRIVATE_ROWS_MAX } else { CHUNK_MAX };
        for (what, found, largest) in
            [("rows of a chunk", self.chunk, chunk_max), ("threads of a block", self.local, LOCAL_MAX)]
        {
            if !found.is_power_of_two() || found > largest {
                let message = format!("{NAME} with {variant}: {found} {what}, and powers of two up to {largest} are");
                return Err(GpuError::Contract(message + " taken"));
            }
        }
        Ok(())
    }
}

impl Fusion {
    /// The kernels in their order.
    fn names(self) -> &'static [&'static str] {
        match self {
            Fusion::FiveKernels => {
                &["ordered_map", "ordered_partial", "ordered_offsets", "ordered_add", "ordered_aggregate"]
            }
            Fusion::ThreeKernels => &["ordered_partial_offsets", "ordered_add", "ordered_aggregate"],
            Fusion::TwoKernels => &["ordered_partial_offsets", "ordered_aggregate"],
            Fusion::OneKernel => &["ordered_one"],
        }
    }
}

impl FusedAggregation {
    /// Compiles the kernels for a form.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no sums, counts other than u32 and u64, a form without counts and
    /// sums, and a tuning that kernels or the device's shared memory cannot take.
    pub fn new(
        device: &Device,
        form: OrderedForm,
        fusion: Fusion,
        variant: Variant,
        tuning: FusedTuning,
    ) -> Result<FusedAggregation> {
        tuning.check(variant)?;
        let (shared_bytes, shared_max) = (tuning.shared_bytes(fusion), device.info().shared_memory_per_block);
        if shared_bytes > shared_max {
            let FusedTuning { chunk, local } = tuning;
            return Err(GpuError::Contract(format!(
                "{NAME} in {fusion}: {local} chunks of {chunk} rows need {shared_bytes} bytes of shared memory, and a \
                 block has {shared_max}"
            )));
        }
        let module = device.compile(&program(form, fusion, variant, tuning)?)?;
        let kernel = |name: &&str| {
            let by_row = *name == "ordered_map" || *name == "ordered_aggregate" && variant == Variant::DirectAtomics;
            Ok((module.kernel(name)?, if by_row { Mapping::Row } else { Mapping::Chunk }))
        };
        let kernels = fusion.names().iter().map(kernel).collect::<Result<_>>()?;
        Ok(FusedAggregation { form, fusion, tuning, kernels, shared_bytes })
    }

    /// Scratch memory that a launch over `n` keys needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        self.scratch(n)[2]
    }

    /// Where positions and offsets begin behind the descriptors, and where they end.
    fn scratch(&self, n: u64) -> [usize; 3] {
        let positions = lookback::scratch_bytes(self.tuning.tiles(n), 1).next_multiple_of(PART_BYTES_MIN);
        if self.fusion == Fusion::OneKernel {
            return [positions; 3];
        }
        let offsets = positions + (n as usize * 4).next_multiple_of(PART_BYTES_MIN);
        [positions, offsets, offsets + self.tuning.chunks(n) as usize * 4]
    }

    /// Writes the runs of the keys.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for operands that the form has not or lacks, other types or lengths, more than 2^32 rows,
    /// or too little scratch memory.
    pub fn launch(&self, queue: &mut impl Queue, operands: &OrderedOperands<'_>, scratch: &DeviceBuffer) -> Result<()> {
        let OrderedOperands { keys, keys_out, runs, .. } = *operands;
        let Checked { n, capacity, values, counts, sums } = self.form.check(operands)?;
        if n > ROWS_MAX {
            return Err(GpuError::Contract(format!("{NAME} in {}: {n} rows, and {ROWS_MAX} at most", self.fusion)));
        }
        let shapes = self.shapes(n)?;
        check_scratch(NAME, scratch, self.scratch_bytes(n))?;
        if n == 0 {
            return queue.fill(runs.buffer(), runs.offset(), 0, size_of::<u64>());
        }
        for output in [counts, sums].into_iter().flatten() {
            queue.fill(output.buffer(), output.offset(), 0, capacity as usize * output.element().bytes())?;
        }
        lookback::reset(NAME, queue, scratch, self.tuning.tiles(n), 1)?;
        let read: Vec<&DeviceSlice> = [Some(keys), values].into_iter().flatten().collect();
        let params = Params::new().slice(keys).slice(keys_out).slice(runs).u64(capacity).u64(n);
        let params = params.u64(self.tuning.chunk.ilog2().into()).u64(self.tuning.local.into());
        let params = params.u64(are_aligned(&read, STEP).into());
        let [positions, offsets, _] = self.scratch(n);
        let params = match self.fusion {
            Fusion::OneKernel => params.null().null(),
            _ => params.buffer_at(scratch, positions).buffer_at(scratch, offsets),
        };
        let more = [counts, values, sums].into_iter().flatten();
        let params = more.fold(params.buffer(scratch), Params::slice);
        for ((kernel, _), shape) in self.kernels.iter().zip(shapes) {
            queue.launch(kernel, shape, &params)?;
        }
        Ok(())
    }

    /// The launches of the kernels over `n` rows.
    fn shapes(&self, n: u64) -> Result<Vec<LaunchShape>> {
        self.kernels.iter().map(|(_, mapping)| self.shape(*mapping, n)).collect()
    }

    /// The launch of a kernel over `n` rows.
    fn shape(&self, mapping: Mapping, n: u64) -> Result<LaunchShape> {
        let (blocks, shared_bytes) = match mapping {
            Mapping::Row => (n.div_ceil(self.tuning.local.into()), 0),
            Mapping::Chunk => (self.tuning.tiles(n), self.shared_bytes as u32),
        };
        let grid = u32::try_from(blocks).ok().filter(|grid| *grid <= i32::MAX as u32);
        let grid = grid.ok_or_else(|| {
            GpuError::Contract(format!("{NAME}: {blocks} blocks, and a grid has {} at most", i32::MAX))
        })?;
        Ok(LaunchShape { grid, block: self.tuning.local.max(32), shared_bytes })
    }
}

/// The program of a fusion and a variant. Chunks and blocks are told at launch, but for the size of private arrays.
pub(crate) fn program(form: OrderedForm, fusion: Fusion, variant: Variant, tuning: FusedTuning) -> Result<Program> {
    if form.count.is_none() && form.sum.is_none() {
        return Err(GpuError::Contract(format!("{NAME} in {fusion}: neither counts nor sums are asked for")));
    }
    let mut text = form.types()?;
    text += &format!("#define WC_FUSION {}\n#define WC_VARIANT {}\n", fusion.kernels(), variant as u32 + 1);
    if variant == Variant::PrivateArray {
        let rows = PRIVATE_ROWS.into_iter().find(|rows| *rows >= tuning.chunk).unwrap_or(PRIVATE_ROWS_MAX);
        text += &format!("#define WC_PRIVATE_ROWS {rows}\n");
    }
    Ok(Program::new("ordered_fused", [&text, KEYS, TILE, LOOKBACK, POSITIONS, AGGREGATE].concat()))
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;
    use warpcube_gpu::prims::Element;

    use super::*;
    use crate::operators::gpu_programs::{compile_for_gpus, compile_for_hopper};

    #[test]
    fn blocks_of_a_row_a_thread_bound_forms_that_have_them() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let form = OrderedForm { key: Element::U32, count: Some(Element::U64), sum: None };
        let tuning = FusedTuning { chunk: 4096, local: 1 };
        let new = |variant| FusedAggregation::new(&device, form, Fusion::TwoKernels, variant, tuning).unwrap();
        // A block of one row has 2^31 of them, and a grid has one less.
        let grids = |shapes: Vec<LaunchShape>| shapes.iter().map(|shape| shape.grid).collect::<Vec<_>>();
        let private = new(Variant::PrivateVariable);
        assert_eq!(grids(private.shapes(1 << 31).unwrap()), [1 << 19; 2]);
        let atomics = new(Variant::DirectAtomics);
        assert_eq!(grids(atomics.shapes((1 << 31) - 1).unwrap()), [1 << 19, (1 << 31) - 1]);
        let Err(GpuError::Contract(message)) = atomics.shapes(1 << 31) else { panic!("not refused") };
        assert!(message.contains("2147483648 blocks"), "{message}");
    }

    #[test]
    fn kernels_compile_for_gpus() {
        let (counts, sums) = (Some(Element::U32), Some((Element::U32, Element::U64)));
        let both =
            OrderedForm { key: Element::F64, count: Some(Element::U64), sum: Some((Element::F32, Element::F64)) };
        let forms = [
            OrderedForm { key: Element::U32, count: counts, sum: None },
            OrderedForm { key: Element::U32, count: None, sum: sums },
            both,
            OrderedForm { key: Element::I128, count: counts, sum: None },
        ];
        let kinds = Fusion::ALL.into_iter().flat_map(|fusion| Variant::ALL.map(|variant| (fusion, variant)));
        for (at, (fusion, variant)) in kinds.enumerate() {
            // Each kind for one form, each form with every variant, and one form for all architectures.
            let form = (at + at / 4) % forms.len();
            let program = program(forms[form], fusion, variant, FusedTuning::DEFAULT).unwrap();
            let compile = if form == 0 { compile_for_gpus } else { compile_for_hopper };
            compile(&program);
        }
    }
}
