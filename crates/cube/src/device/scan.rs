//! The pass over facts: sums by classes. `scan_classes.cuh`, with `scan_sums.cuh` and `scan_miniblocks.cuh`, and
//! `total.cuh` of `kernels` are the device's side of this file.

use warpcube_arrays::key::{DIMENSIONS_MAX, KeyLayout};
use warpcube_column::Relation;
use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Params, Program};

use super::accumulation::FactValues;
use super::classes::NO_CLASS;
use super::error::DeviceError;
use super::keys::{RESIDENT_KEYS, ResidentKeys};
use super::plan::DevicePlan;
use super::resident::{keep_values, put_addresses};
use super::workspace::Workspace;
use crate::aggregate::{places, strides};

/// The word of a base element without a class.
const NONE: u32 = 1 << 31;
/// Threads of a block of the total, and blocks on a multiprocessor.
const TOTAL_THREADS: u32 = 256;
const TOTAL_BLOCKS: u32 = 4;
/// Facts of a block's step in the total.
const TOTAL_FACTS: u64 = 4096;

/// How the pass over facts is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanTuning {
    /// Threads of a block; one block runs on a multiprocessor.
    pub threads: u32,
    /// Miniblocks of 128 facts that a warp draws at once: a power of two up to 32.
    pub ticket_miniblocks: u32,
    /// True if a warp asks for the next miniblock before it adds up one.
    pub prefetches: bool,
}

impl Default for ScanTuning {
    fn default() -> ScanTuning {
        ScanTuning { threads: 768, ticket_miniblocks: 16, prefetches: true }
    }
}

/// The variant of a kernel of the scan, by which its text differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ScanForm {
    tuning: ScanTuning,
    values: FactValues,
    limbs: u32,
    key_words: u32,
    has_nulls: bool,
    has_weights: bool,
    has_shared_sums: bool,
    has_shared_tables: bool,
}

impl ScanForm {
    /// The form that a plan needs on a device.
    pub(super) fn of(
        plan: &DevicePlan,
        layout: &KeyLayout,
        has_nulls: bool,
        tuning: ScanTuning,
        info: &DeviceInfo,
    ) -> ScanForm {
        let bases: usize = plan.looked_up.iter().map(|at| plan.classes[*at].of_base.len()).sum();
        let room = info.shared_memory_per_block as u64;
        let sums = places(plan.products.shape()).saturating_mul(u64::from(plan.accumulation.limbs) * 8 + 1);
        let has_shared_sums = sums <= room;
        let left = if has_shared_sums { room - sums } else { room };
        ScanForm {
            tuning,
            values: plan.accumulation.values,
            limbs: plan.accumulation.limbs,
            key_words: if layout.is_narrow() { 1 } else { 2 },
            has_nulls,
            has_weights: plan.classes.iter().any(|classes| classes.weights_of_base.is_some()),
            has_shared_sums,
            has_shared_tables: bases as u64 * 4 <= left,
        }
    }

    /// The kernel of this form.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub(super) fn compile(self, device: &Device) -> Result<Kernel, DeviceError> {
        Ok(device.compile(&self.program())?.kernel("wc_cube_scan")?)
    }

    fn program(self) -> Program {
        let flag = |name: &str, is_set: bool| format!("#define {name} {}\n", u32::from(is_set));
        let text = [
            format!("#define WC_LIMBS {}\n#define WC_SCAN_THREADS {}\n", self.limbs, self.tuning.threads),
            format!("#define WC_TICKET_MINIBLOCKS {}u\n", self.tuning.ticket_miniblocks),
            flag("WC_PREFETCH", self.tuning.prefetches),
            format!("#define WC_KEY_WORDS {}\n#define WC_VALUES {}\n", self.key_words, self.values as u32),
            flag("WC_NULLS", self.has_nulls),
            flag("WC_WEIGHTS", self.has_weights),
            flag("WC_SHARED_SUMS", self.has_shared_sums),
            flag("WC_SHARED_TABLES", self.has_shared_tables),
            RESIDENT_KEYS.to_string(),
            include_str!("../../kernels/scan_sums.cuh").to_string(),
            include_str!("../../kernels/scan_miniblocks.cuh").to_string(),
            include_str!("../../kernels/scan_classes.cuh").to_string(),
        ];
        Program::new("cube scan", text.concat())
    }
}

/// The kernel of totals.
pub(super) fn compile_total(device: &Device) -> Result<Kernel, DeviceError> {
    let program = Program::new("cube total", include_str!("../../kernels/total.cuh"));
    Ok(device.compile(&program)?.kernel("wc_cube_total")?)
}

/// Places in the workspace of the inputs of the pass.
pub(super) struct ScanInputs {
    /// Addresses of values and of validity, of each segment.
    segments: Vec<[usize; 2]>,
    tables: usize,
    weights: usize,
    /// Words of the tables.
    words: u64,
    /// Shift, mask and first word of each dimension that is looked up.
    dimensions: Vec<(u32, u32, u64)>,
    /// Parameters of the values.
    parameters: Vec<u64>,
}

impl ScanInputs {
    /// Puts addresses and tables into a workspace.
    pub(super) fn new(
        plan: &DevicePlan,
        layout: &KeyLayout,
        relations: &[Relation],
        workspace: &mut Workspace,
    ) -> ScanInputs {
        let strides = strides(plan.products.shape());
        let (mut tables, mut weights, mut dimensions): (Vec<u32>, Vec<i32>, _) = (Vec::new(), Vec::new(), Vec::new());
        for at in &plan.looked_up {
            let classes = &plan.classes[*at];
            dimensions.push((layout.shift(*at), layout.coordinate_max(*at), tables.len() as u64));
            let word = |class: &u32| if *class == NO_CLASS { NONE } else { *class * strides[*at] as u32 };
            tables.extend(classes.of_base.iter().map(word));
            match &classes.weights_of_base {
                Some(of_base) => weights.extend(of_base),
                None => weights.resize(tables.len(), 1),
            }
        }
        ScanInputs {
            segments: relations.iter().map(|relation| put_addresses(relation, workspace)).collect(),
            tables: workspace.put(bytemuck::cast_slice(&tables)),
            weights: workspace.put(bytemuck::cast_slice(&weights)),
            words: tables.len() as u64,
            dimensions,
            parameters: plan.accumulation.parameters.clone(),
        }
    }
}

/// The pass over a segment of facts as it is launched.
pub(super) struct Scan<'a> {
    pub(super) inputs: &'a ScanInputs,
    /// Number of the segment.
    pub(super) segment: usize,
    pub(super) keys: &'a ResidentKeys,
    pub(super) relation: &'a Relation,
    pub(super) facts: u64,
    pub(super) places: u64,
    /// The workspace, with the offsets of sums, filled bytes and the ticket counter, all zero.
    pub(super) workspace: &'a DeviceBuffer,
    pub(super) sums: usize,
    pub(super) filled: usize,
    pub(super) counter: usize,
}

impl Scan<'_> {
    /// Launches the pass with look-ups.
    pub(super) fn launch(
        &self,
        queue: &mut impl Queue,
        device: &DeviceInfo,
        kernel: &Kernel,
        form: ScanForm,
    ) -> Result<(), DeviceError> {
        let (inputs, workspace) = (self.inputs, self.workspace);
        let at = |params: Params, offset| params.buffer_at(workspace, offset);
        let [values, validity] = inputs.segments[self.segment];
        let params = at(at(Params::new(), values), validity);
        let params = params.buffer(&self.keys.firsts).buffer(&self.keys.starts).buffer(&self.keys.offsets);
        let params = at(at(params, inputs.tables), inputs.weights);
        let params = at(at(at(params, self.sums), self.filled), self.counter);
        let tickets = self.keys.miniblocks.div_ceil(form.tuning.ticket_miniblocks.into());
        let params = params.u64(self.facts).u64(self.keys.miniblocks).u64(tickets).u64(inputs.words);
        let params = params.u64(self.places).u64(inputs.dimensions.len() as u64);
        let params = padded(params, inputs.dimensions.iter().map(|dimension| dimension.0.into()));
        let params = padded(params, inputs.dimensions.iter().map(|dimension| dimension.1.into()));
        let params = padded(params, inputs.dimensions.iter().map(|dimension| dimension.2));
        let params = inputs.parameters.iter().fold(params, |params, word| params.u64(*word));
        let sums = if form.has_shared_sums { self.places * (u64::from(form.limbs) * 8 + 1) } else { 0 };
        let tables = if form.has_shared_tables { inputs.words * 4 } else { 0 };
        let blocks = tickets.div_ceil(u64::from(form.tuning.threads) / 32).clamp(1, device.multiprocessors.into());
        let shape =
            LaunchShape { grid: blocks as u32, block: form.tuning.threads, shared_bytes: (sums + tables) as u32 };
        Ok(queue.launch(kernel, shape, &keep_values(params, self.relation))?)
    }

    /// Launches the pass over facts of one class, whole numbers in one limb.
    pub(super) fn launch_total(
        &self,
        queue: &mut impl Queue,
        device: &DeviceInfo,
        kernel: &Kernel,
    ) -> Result<(), DeviceError> {
        let params = Params::new().buffer_at(self.workspace, self.inputs.segments[self.segment][0]);
        let params = params.buffer_at(self.workspace, self.sums).u64(self.facts);
        let most = u64::from(device.multiprocessors * TOTAL_BLOCKS);
        let grid = self.facts.div_ceil(TOTAL_FACTS).clamp(1, most) as u32;
        let shape = LaunchShape { grid, block: TOTAL_THREADS, shared_bytes: TOTAL_THREADS / 32 * 8 };
        queue.launch(kernel, shape, &keep_values(params, self.relation))?;
        match self.segment {
            0 => Ok(queue.fill(self.workspace, self.filled, 1, 1)?),
            _ => Ok(()),
        }
    }
}

/// An array of as many words as a key has dimensions at most.
pub(super) fn padded(params: Params, words: impl ExactSizeIterator<Item = u64>) -> Params {
    let zeros = DIMENSIONS_MAX - words.len();
    words.chain(std::iter::repeat_n(0, zeros)).fold(params, Params::u64)
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn kernels_compile_for_gpus() {
        let values = [(FactValues::Whole, 1), (FactValues::Whole, 2), (FactValues::Ones, 1), (FactValues::Doubles, 3)];
        for (number, (values, limbs)) in values.into_iter().chain([(FactValues::Order, 1)]).enumerate() {
            for has_shared_sums in [false, true] {
                let form = ScanForm {
                    tuning: ScanTuning { prefetches: has_shared_sums, ..ScanTuning::default() },
                    values,
                    limbs,
                    key_words: 1 + number as u32 % 2,
                    has_nulls: number % 2 == 0,
                    has_weights: values == FactValues::Whole && has_shared_sums,
                    has_shared_sums,
                    has_shared_tables: number % 2 == 1,
                };
                match nvrtc::compile(&form.program(), 90) {
                    Ok(cubin) => assert!(!cubin.is_empty()),
                    Err(GpuError::CompilerUnavailable { .. }) => {}
                    Err(error) => panic!("{form:?}: {error:?}"),
                }
            }
        }
    }
}
