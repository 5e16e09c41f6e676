//! The target-based algorithm: every target looks up its base cells. `kernels/target.cuh` is the device's side of this
//! file. Quick for few targets above few cells.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warpcube_column::Relation;
use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, Kernel, LaunchShape, Params, Program};

use super::cells::{CellAxes, CellKernel, CellOutput, state_bytes};
use super::error::DeviceError;
use super::keys::RESIDENT_KEYS;
use super::plan::{PLACES_MAX, Summed, check_bound, whole_weight};
use super::resident::{ResidentFacts, keep_values, present, put_addresses};
use super::scan::padded;
use super::statement::{Prepared, Statement, StatementBuffers, Steps};
use super::sums::DeviceSums;
use super::workspace::Workspace;
use crate::aggregate::{Area, TargetMap, places};
use crate::facts::Facts;

/// Threads of a block, and blocks on a multiprocessor.
const THREADS: u32 = 256;
const BLOCKS: u32 = 8;
/// Shared memory of a warp in bytes.
const WARP_SHARED_BYTES: u32 = 256;
/// Items of work, each a target and a segment of facts, that each resident warp should have at least.
const ITEMS: u64 = 4;
/// Fewest miniblocks of a segment.
const SEGMENT_MINIBLOCKS: u64 = 32;

/// Sums by the target-based algorithm.
pub(super) struct TargetBased {
    facts: Arc<ResidentFacts>,
}

impl TargetBased {
    /// The algorithm over resident facts.
    pub(super) fn new(facts: Arc<ResidentFacts>) -> TargetBased {
        TargetBased { facts }
    }
}

impl DeviceSums for TargetBased {
    fn facts(&self) -> &Arc<ResidentFacts> {
        &self.facts
    }

    /// Refuses areas beyond 2^29 targets.
    fn ready(
        &self,
        area: &Area,
        measure: usize,
        summed: Summed,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Box<dyn Prepared>>, DeviceError> {
        let resident = &self.facts;
        if !resident.has_values(measure) {
            return Ok(None);
        }
        let (facts, keys) = (resident.facts(), resident.keys(cancelled)?);
        let lists = Arc::new(TargetLists::new(facts, area, (measure, summed), &present(&keys))?);
        let has_nulls = resident.source().is_nullable(measure);
        let kernel = compile(resident.device(), facts.layout().is_narrow(), has_nulls)?;
        let kernels = (kernel, CellKernel::compile(resident.device(), 1)?);
        let plan = |relations: &[Relation], _| TargetSteps::new(facts, lists.clone(), kernels.clone(), relations);
        Ok(Some(Box::new(Statement::new(resident, summed.column, cancelled, plan)?)))
    }
}

fn program(is_narrow: bool, has_nulls: bool) -> Program {
    let text = [
        format!("#define WC_KEY_WORDS {}\n", if is_narrow { 1 } else { 2 }),
        format!("#define WC_NULLS {}\n", u32::from(has_nulls)),
        RESIDENT_KEYS.to_string(),
        include_str!("../../kernels/target.cuh").to_string(),
    ];
    Program::new("cube target", text.concat())
}

fn compile(device: &Device, is_narrow: bool, has_nulls: bool) -> Result<Kernel, DeviceError> {
    Ok(device.compile(&program(is_narrow, has_nulls))?.kernel("wc_cube_target")?)
}

/// Base elements with facts of each target of each dimension, with their weights.
struct TargetLists {
    /// Where lists begin: for each dimension a number a target, and one more.
    offsets: Vec<u32>,
    offsets_at: Vec<u64>,
    bases: Vec<u32>,
    weights: Vec<i32>,
    /// Targets of each dimension.
    sizes: Vec<u64>,
}

impl TargetLists {
    fn new(
        facts: &Facts,
        area: &Area,
        (measure, summed): (usize, Summed),
        present: &[Vec<u64>],
    ) -> Result<TargetLists, DeviceError> {
        let sizes: Vec<u64> = area.shape().into_iter().map(u64::from).collect();
        let targets = places(&sizes);
        if targets > PLACES_MAX {
            let reason = format!("the area has {targets} targets, at most {PLACES_MAX}");
            return Err(DeviceError::Unsupported { reason });
        }
        let (offsets, offsets_at, bases, weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut lists = TargetLists { offsets, offsets_at, bases, weights, sizes };
        let mut magnitudes = Vec::new();
        for (map, present) in area.maps_of(measure).into_iter().zip(present) {
            magnitudes.push(lists.push(map, present)?);
        }
        check_bound(facts, summed.most, magnitudes.into_iter())?;
        Ok(lists)
    }

    /// Adds the lists of a dimension; gives the greatest magnitude of a weight, at least 1.
    fn push(&mut self, map: &TargetMap, present: &[u64]) -> Result<u64, DeviceError> {
        let is_present = |base: u32| present.get(base as usize / 64).is_some_and(|word| word >> (base % 64) & 1 == 1);
        self.offsets_at.push(self.offsets.len() as u64);
        self.offsets.push(self.bases.len() as u32);
        let mut magnitude = 1;
        for list in map.lists() {
            for (base, weight) in list.into_iter().filter(|entry| is_present(entry.0)) {
                self.bases.push(base);
                self.weights.push(whole_weight(weight)?);
                magnitude = magnitude.max(weight.abs() as u64);
            }
            self.offsets.push(self.bases.len() as u32);
        }
        Ok(magnitude)
    }
}

/// The launches of the target-based algorithm, one a segment.
struct TargetSteps {
    workspace: Workspace,
    lists: Arc<TargetLists>,
    kernel: Kernel,
    /// Cells of each segment, and the offsets of values and of validity.
    segments: Vec<(u64, [usize; 2])>,
    shape: Vec<(u64, u64)>,
    /// Offsets of list offsets, base elements, weights, sums, filled bytes.
    parts: [usize; 5],
    zeros: (usize, usize),
    output: CellOutput,
}

impl TargetSteps {
    fn new(
        facts: &Facts,
        lists: Arc<TargetLists>,
        (kernel, cells): (Kernel, CellKernel),
        relations: &[Relation],
    ) -> TargetSteps {
        let mut workspace = Workspace::default();
        let segments = facts.segments().iter().map(|segment| segment.len() as u64).zip(relations);
        let segments = segments.map(|(facts, relation)| (facts, put_addresses(relation, &mut workspace))).collect();
        let [offsets, bases] = [&lists.offsets, &lists.bases].map(|words| workspace.put(bytemuck::cast_slice(words)));
        let weights = workspace.put(bytemuck::cast_slice(&lists.weights));
        let (zeros_at, targets) = (workspace.bytes(), places(&lists.sizes));
        let (counter, states) = (workspace.take(4), workspace.take(state_bytes(targets)));
        let (sums, filled) = (workspace.take(targets * 8), workspace.take(targets));
        let zeros = (zeros_at, workspace.bytes() - zeros_at);
        let axes = (CellAxes::ranks(targets), targets);
        let output = CellOutput::new(cells, (sums, filled), axes, (counter, states), &mut workspace);
        let layout = facts.layout();
        let shape = (0..layout.dimensions()).map(|at| (layout.shift(at).into(), layout.coordinate_max(at).into()));
        let (shape, parts) = (shape.collect(), [offsets, bases, weights, sums, filled]);
        TargetSteps { workspace, lists, kernel, segments, shape, parts, zeros, output }
    }
}

impl Steps for TargetSteps {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn output(&self) -> &CellOutput {
        &self.output
    }

    fn launch(&self, queue: &mut impl Queue, buffers: &StatementBuffers) -> Result<(), DeviceError> {
        queue.fill(&buffers.buffer, self.zeros.0, 0, self.zeros.1)?;
        (0..self.segments.len()).try_for_each(|segment| self.launch_segment(queue, buffers, segment))
    }
}

impl TargetSteps {
    fn launch_segment(
        &self,
        queue: &mut impl Queue,
        buffers: &StatementBuffers,
        number: usize,
    ) -> Result<(), DeviceError> {
        let (buffer, keys, (facts, values)) = (&buffers.buffer, &buffers.keys[number], self.segments[number]);
        let targets = places(&self.lists.sizes);
        let blocks = u64::from(buffers.device.info().multiprocessors * BLOCKS);
        let warps = blocks * u64::from(THREADS / 32);
        let wanted = (warps * ITEMS).div_ceil(targets.max(1));
        let segment = keys.miniblocks.div_ceil(wanted).max(SEGMENT_MINIBLOCKS);
        let segments = keys.miniblocks.div_ceil(segment);
        let params = keys.buffers().into_iter().fold(Params::new(), Params::buffer);
        let parts = values.into_iter().chain(self.parts);
        let params = parts.fold(params, |params, part| params.buffer_at(buffer, part));
        let params = params.u64(facts).u64(keys.miniblocks).u64(targets).u64(segments).u64(segment);
        let params = params.u64(self.shape.len() as u64);
        let params = padded(params, self.shape.iter().map(|dimension| dimension.0));
        let params = padded(params, self.shape.iter().map(|dimension| dimension.1));
        let params = padded(params, self.lists.offsets_at.iter().copied());
        let params = padded(params, self.lists.sizes.iter().copied());
        let params = keep_values(params, &buffers.relations()[number]);
        let grid = (targets * segments).div_ceil(u64::from(THREADS / 32)).clamp(1, blocks) as u32;
        let shape = LaunchShape { grid, block: THREADS, shared_bytes: THREADS / 32 * WARP_SHARED_BYTES };
        Ok(queue.launch(&self.kernel, shape, &params)?)
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn the_kernel_compiles_for_gpus() {
        for (is_narrow, has_nulls) in [(true, false), (false, true)] {
            match nvrtc::compile(&program(is_narrow, has_nulls), 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
