//! Memory and launches of the source-based algorithm.

use std::sync::Arc;

use warpcube_arrays::key::KeyLayout;
use warpcube_column::Relation;
use warpcube_gpu::prims::{DeviceSlice, Element, Queue};
use warpcube_gpu::{LaunchShape, PART_BYTES_MIN, Params, size_class};

use super::kernels::{Adding, SourceKernels};
use super::map::{AggregationMap, PARAMS_BYTES};
use crate::algorithm::{Expansion, MapPlace, Preaggregation, SourceVariant};
use crate::device::DeviceError;
use crate::device::cells::{CellAxes, CellOutput, state_bytes};
use crate::device::keys::ResidentKeys;
use crate::device::resident::{keep_values, put_addresses};
use crate::device::scan::padded;
use crate::device::statement::{StatementBuffers, Steps};
use crate::device::workspace::Workspace;

/// Threads of kernels over miniblocks, slots and cells.
const THREADS: u32 = 256;
/// Blocks of those kernels on a multiprocessor.
const BLOCKS: u32 = 8;
/// Cells of a parent, each a thread.
pub const PARENT_CELLS: u32 = 768;
/// Threads of a block of a child.
pub const CHILD_THREADS: u32 = 1024;
/// Parents that the host launches at once, and with them most pending children.
pub const BATCH_PARENTS: u64 = 2048;
/// Blocks of children on a multiprocessor.
const CHILD_BLOCKS: u32 = 2;

/// The inputs of a plan besides the map.
pub(super) struct SourceInputs<'a> {
    pub(super) variant: SourceVariant,
    pub(super) layout: &'a KeyLayout,
    /// Keys and cells of each segment.
    pub(super) keys: &'a [Arc<ResidentKeys>],
    pub(super) facts: &'a [u64],
    /// Bytes of device memory that are free.
    pub(super) available: u64,
}

/// The launches of the source-based algorithm.
pub(super) struct SourceSteps {
    workspace: Workspace,
    map: Arc<AggregationMap>,
    kernels: Arc<SourceKernels>,
    variant: SourceVariant,
    place: (MapPlace, usize),
    /// Cells of each segment, and the offsets of values and of validity.
    segments: Vec<(u64, [usize; 2])>,
    key_bytes: usize,
    /// Shift and mask of each dimension, in the order of the key.
    shape: Vec<(u64, u64)>,
    covered: usize,
    map_at: usize,
    /// The part that is zero before a launch: its offset and bytes.
    zeros: (usize, usize),
    sums: usize,
    filled: usize,
    masks: usize,
    counts: usize,
    places: usize,
    scratch: (usize, usize),
    cells: usize,
    ends: usize,
    blocks: usize,
    copy: usize,
    slots: usize,
    /// Hash tables, and the logarithm of their slots.
    functions: u64,
    log: u32,
    output: CellOutput,
}

impl SourceSteps {
    /// Plans the memory; `relations` have the values of the measure in each segment. The passes over segments use the
    /// same parts in turn.
    pub(super) fn new(
        map: Arc<AggregationMap>,
        kernels: Arc<SourceKernels>,
        place: (MapPlace, usize),
        inputs: &SourceInputs<'_>,
        relations: &[Relation],
    ) -> SourceSteps {
        let SourceInputs { variant, layout, keys, facts, .. } = *inputs;
        let mut workspace = Workspace::default();
        let addresses = relations.iter().map(|relation| put_addresses(relation, &mut workspace));
        let segments: Vec<(u64, [usize; 2])> = facts.iter().copied().zip(addresses).collect();
        let covered = workspace.put(bytemuck::cast_slice(&map.covered));
        let map_at = workspace.put(if place.0 == MapPlace::Constant { &[] } else { &map.bytes });
        let zeros_at = workspace.bytes();
        let (counter, states) = (workspace.take(4), workspace.take(state_bytes(map.targets)));
        let (sums, filled) = (workspace.take(map.targets * 8), workspace.take(map.targets));
        let zeros = (zeros_at, workspace.bytes() - zeros_at);
        let miniblocks = keys.iter().map(|keys| keys.miniblocks).max().unwrap_or(0);
        let facts = facts.iter().copied().max().unwrap_or(0);
        let (masks, counts) = (workspace.take(miniblocks * 16), workspace.take((miniblocks + 1) * 4));
        let places = workspace.take((miniblocks + 1) * 4);
        let scratch_bytes = kernels.scan.scratch_bytes(miniblocks + 1);
        let scratch = (workspace.take(scratch_bytes as u64), scratch_bytes);
        let cells = workspace.take(facts * 4);
        let parents = match kernels.add {
            Adding::Cells(_) => 0,
            Adding::Children(_) | Adding::Launching(_) => facts.div_ceil(PARENT_CELLS.into()).min(BATCH_PARENTS),
        };
        let ends = workspace.take(parents * u64::from(PARENT_CELLS) * 8);
        let blocks = workspace.take((BATCH_PARENTS + 1) * 8);
        let copy = workspace.take(PARAMS_BYTES as u64 + 8);
        let axes = (CellAxes::ranks(map.targets), map.targets);
        let output = CellOutput::new(kernels.cells.clone(), (sums, filled), axes, (counter, states), &mut workspace);
        let log = (2 * map.targets).next_power_of_two().trailing_zeros().max(1);
        let functions = functions(variant.hash_functions, 16 << log, workspace.bytes() as u64, inputs.available);
        let slots = workspace.take(functions * (16 << log));
        let shape = (0..layout.dimensions()).map(|at| (layout.shift(at).into(), layout.coordinate_max(at).into()));
        let shape = shape.collect();
        SourceSteps {
            workspace,
            map,
            kernels,
            variant,
            place,
            segments,
            key_bytes: if layout.is_narrow() { 8 } else { 16 },
            shape,
            covered,
            map_at,
            zeros,
            sums,
            filled,
            masks,
            counts,
            places,
            scratch,
            cells,
            ends,
            blocks,
            copy,
            slots,
            functions,
            log,
            output,
        }
    }

    /// Shape of a launch whose grid moves over `items`, `each` a block.
    fn moving(buffers: &StatementBuffers, items: u64, each: u64, block: u32, shared_bytes: usize) -> LaunchShape {
        let blocks = if block == CHILD_THREADS { CHILD_BLOCKS } else { BLOCKS };
        let most = u64::from(buffers.device.info().multiprocessors * blocks);
        LaunchShape { grid: items.div_ceil(each).clamp(1, most) as u32, block, shared_bytes: shared_bytes as u32 }
    }

    /// Numbers of the relevant facts of a segment, in order.
    fn prefilter(&self, queue: &mut impl Queue, buffers: &StatementBuffers, segment: usize) -> Result<(), DeviceError> {
        let (facts, [_, validity]) = self.segments[segment];
        let (buffer, miniblocks) = (&buffers.buffer, buffers.keys[segment].miniblocks);
        let params = keys(Params::new(), &buffers.keys[segment]).buffer_at(buffer, validity);
        let params = params.buffer_at(buffer, self.covered).buffer_at(buffer, self.masks);
        let params = params.buffer_at(buffer, self.counts).u64(facts).u64(miniblocks);
        let params = shape(params, self.shape.iter().copied());
        let params = padded(params, self.map.covered_at.iter().copied());
        let params = keep_values(params, &buffers.relations()[segment]);
        let warps = u64::from(THREADS / 32);
        let grid = |items: u64| Self::moving(buffers, items, warps, THREADS, 0);
        queue.launch(&self.kernels.filter, grid(miniblocks + 1), &params)?;
        let slice = |at: usize| DeviceSlice::new(buffer, at, Element::U32, miniblocks + 1);
        let scratch = buffer.part(self.scratch.0, self.scratch.1)?;
        self.kernels.scan.launch(queue, &slice(self.counts)?, &slice(self.places)?, &scratch)?;
        let params = [self.masks, self.places, self.cells].into_iter();
        let params = params.fold(Params::new(), |params, at| params.buffer_at(buffer, at)).u64(miniblocks);
        Ok(queue.launch(&self.kernels.compact, grid(miniblocks), &params)?)
    }

    /// The parameters of kernels that add, for the parents of a segment from `first` on.
    fn params(&self, buffers: &StatementBuffers, segment: usize, first: u64, parents: u64) -> Params {
        let (buffer, map, (_, [values, _])) = (&buffers.buffer, &self.map, self.segments[segment]);
        let count = self.places + 4 * buffers.keys[segment].miniblocks as usize;
        let params =
            keys(Params::new(), &buffers.keys[segment]).buffer_at(buffer, values).buffer_at(buffer, self.cells);
        let params = params.buffer_at(buffer, count).buffer_at(buffer, self.slots);
        let params = params.u64(self.functions).u64(self.log.into()).u64(map.singles as u64).u64(map.targets_at);
        let params = params.u64(map.weights_at).u64(map.words as u64);
        let params = params.buffer_at(buffer, self.ends).buffer_at(buffer, self.blocks).u64(first).u64(parents);
        let params = params.buffer_at(buffer, self.copy).u64(self.child_shared_bytes().into());
        let params = shape(params, map.order.iter().map(|dimension| self.shape[*dimension]));
        let params = padded(padded(params, map.rows_at.iter().copied()), map.strides.iter().copied());
        let params = match self.place {
            (MapPlace::Constant, longs) => {
                let words = map.bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned);
                words.chain(std::iter::repeat(0)).take(longs).fold(params, Params::u64)
            }
            _ => params.buffer_at(buffer, self.map_at),
        };
        keep_values(params, &buffers.relations()[segment])
    }

    /// Shared memory of a kernel that adds, besides its own.
    fn shared_bytes(&self, threads: u32) -> usize {
        let map = if self.place.0 == MapPlace::Shared { self.map.bytes.len() } else { 0 };
        let is_shared = self.variant.preaggregation == Preaggregation::FirstShared;
        map + if is_shared { 33 * 8 * threads as usize / 32 } else { 0 }
    }

    /// Adds all relevant cells of a segment to their targets in hash tables.
    fn add(&self, queue: &mut impl Queue, buffers: &StatementBuffers, segment: usize) -> Result<(), DeviceError> {
        let (facts, _) = self.segments[segment];
        match &self.kernels.add {
            Adding::Cells(kernel) => {
                let tile = match self.variant.expansion {
                    Expansion::Balanced => (24 + self.key_bytes) * THREADS as usize + 8 * (THREADS as usize / 32),
                    _ => 0,
                };
                let shared = tile.next_multiple_of(16) + self.shared_bytes(THREADS);
                let shape = Self::moving(buffers, facts, THREADS.into(), THREADS, shared);
                Ok(queue.launch(kernel, shape, &self.params(buffers, segment, 0, 0))?)
            }
            Adding::Children(_) | Adding::Launching(_) => {
                let parents = facts.div_ceil(PARENT_CELLS.into());
                (0..parents.div_ceil(BATCH_PARENTS)).try_for_each(|batch| {
                    let first = batch * BATCH_PARENTS;
                    let parents = (parents - first).min(BATCH_PARENTS);
                    self.add_batch(queue, buffers, parents, &self.params(buffers, segment, first, parents))
                })
            }
        }
    }

    /// Shared memory of a child.
    fn child_shared_bytes(&self) -> u32 {
        (PARENT_CELLS as usize * 8 + self.shared_bytes(CHILD_THREADS)) as u32
    }

    /// Launches a batch of parents and their children.
    fn add_batch(
        &self,
        queue: &mut impl Queue,
        buffers: &StatementBuffers,
        parents: u64,
        params: &Params,
    ) -> Result<(), DeviceError> {
        let map = if self.place.0 == MapPlace::Shared { self.map.bytes.len() } else { 0 };
        let shared_bytes = (PARENT_CELLS as usize / 32 * 8 + map) as u32;
        let of_parents = LaunchShape { grid: parents as u32, block: PARENT_CELLS, shared_bytes };
        match &self.kernels.add {
            Adding::Cells(_) => {}
            Adding::Launching([copy, parent]) => {
                queue.launch(copy, LaunchShape { grid: 1, block: THREADS, shared_bytes: 0 }, params)?;
                queue.launch(parent, of_parents, params)?;
            }
            Adding::Children([parent, children, child]) => {
                queue.launch(parent, of_parents, params)?;
                if self.variant.expansion.has_grids() {
                    let shared_bytes = CHILD_THREADS / 32 * 8;
                    queue.launch(children, LaunchShape { grid: 1, block: CHILD_THREADS, shared_bytes }, params)?;
                }
                let shared = self.child_shared_bytes() as usize;
                queue.launch(child, Self::moving(buffers, u64::MAX, 1, CHILD_THREADS, shared), params)?;
            }
        }
        Ok(())
    }
}

impl Steps for SourceSteps {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn output(&self) -> &CellOutput {
        &self.output
    }

    fn launch(&self, queue: &mut impl Queue, buffers: &StatementBuffers) -> Result<(), DeviceError> {
        let (buffer, slots) = (&buffers.buffer, self.functions << self.log);
        queue.fill(buffer, self.zeros.0, 0, self.zeros.1)?;
        queue.fill(buffer, self.slots, 0, slots as usize * 16)?;
        for segment in 0..self.segments.len() {
            self.prefilter(queue, buffers, segment)?;
            self.add(queue, buffers, segment)?;
        }
        let params = [self.slots, self.sums, self.filled].into_iter();
        let params = params.fold(Params::new(), |params, at| params.buffer_at(buffer, at)).u64(slots);
        Ok(queue.launch(&self.kernels.merge, Self::moving(buffers, slots, THREADS.into(), THREADS, 0), &params)?)
    }

    fn used(&self) -> String {
        let mut used = vec![format!("{} hash functions", self.functions), format!("map in {}", self.place.0.name())];
        match &self.kernels.add {
            Adding::Cells(_) => {}
            Adding::Children(_) => used.push(format!("children launched by the host in batches of {BATCH_PARENTS}")),
            Adding::Launching(_) => used.push(format!("children launched by {BATCH_PARENTS} parents at a time")),
        }
        used.join(", ")
    }
}

/// Most hash functions up to `asked` whose tables of `table` bytes have room beside `others`; at least 1.
fn functions(asked: u32, table: u64, others: u64, available: u64) -> u64 {
    let bytes = |functions: u64| size_class((others + functions * table) as usize + PART_BYTES_MIN) as u64;
    let (mut least, mut most) = (1, u64::from(asked));
    while least < most {
        let middle = (least + most).div_ceil(2);
        if bytes(middle) <= available {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    least
}

/// The members `CubeKeys`.
fn keys(params: Params, keys: &ResidentKeys) -> Params {
    params.buffer(&keys.firsts).buffer(&keys.starts).buffer(&keys.offsets)
}

/// The members `CubeShape`.
fn shape(params: Params, dimensions: impl ExactSizeIterator<Item = (u64, u64)> + Clone) -> Params {
    let params = params.u64(dimensions.len() as u64);
    let params = padded(params, dimensions.clone().map(|dimension| dimension.0));
    padded(params, dimensions.map(|dimension| dimension.1))
}
