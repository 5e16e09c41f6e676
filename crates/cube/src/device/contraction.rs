//! One contraction on the device: its memory, its launches, its result.

use warpcube_column::Relation;
use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, Kernel, Stream};

use super::cells::{CELL_BYTES, CellAxes, CellParts, launch_cells, state_bytes};
use super::contract::{DeviceCells, DeviceError};
use super::expand::Expand;
use super::keys::ResidentKeys;
use super::plan::{Plan, places};
use super::scan::{Scan, ScanForm, ScanInputs};
use super::workspace::Workspace;
use crate::facts::KeyLayout;

/// Cells that are kept without knowing how many there are.
const CAPACITY_CELLS: u64 = 1 << 20;
/// Cells that are copied to the host together with their number: 512 KiB.
const FIRST_CELLS: u64 = 1 << 15;

/// The kernels of a contraction.
#[derive(Clone)]
pub(super) struct Kernels {
    /// The pass over facts, by its form; absent where facts are of one class.
    pub(super) scan: Option<(ScanForm, Kernel)>,
    pub(super) total: Kernel,
    pub(super) expand: Kernel,
    pub(super) cells: Kernel,
}

/// Offsets of the workspace, before it is allocated.
pub(super) struct Parts {
    workspace: Workspace,
    inputs: ScanInputs,
    steps: Vec<Expand>,
    axes: CellAxes,
    /// The part that is zero before a launch: its offset and bytes.
    zeros: (usize, usize),
    scan_counter: usize,
    /// Sums and filled bytes: those of classes, then those behind each step.
    sums: Vec<(usize, usize)>,
    cells: CellParts,
    /// Where cells begin, and how many there is room for.
    first_cell: usize,
    capacity: u64,
    places: u64,
    last_places: u64,
}

impl Parts {
    /// Plans the memory of a contraction.
    pub(super) fn new(plan: &Plan, layout: &KeyLayout, relation: &Relation) -> Parts {
        let mut workspace = Workspace::default();
        let inputs = ScanInputs::new(plan, layout, relation, &mut workspace);
        let mut shape = plan.class_shape();
        let class_places = places(&shape);
        let mut steps = Vec::new();
        for dimension in &plan.multiplied {
            steps.push(Expand::new(&plan.classes[*dimension], &shape, *dimension, &mut workspace));
            shape[*dimension] = plan.classes[*dimension].targets().into();
        }
        let axes = CellAxes::new(&plan.axes(), &mut workspace);
        let last_places = places(&shape);
        let zeros_at = workspace.bytes();
        let scan_counter = workspace.take(4);
        let counter = workspace.take(4);
        let states = workspace.take(state_bytes(last_places));
        let pair = |workspace: &mut Workspace, places: u64| (workspace.take(places * 8), workspace.take(places));
        let mut sums = vec![pair(&mut workspace, class_places)];
        let zeros = (zeros_at, workspace.bytes() - zeros_at);
        sums.extend(steps.iter().map(|step: &Expand| pair(&mut workspace, step.places())));
        let capacity = last_places.min(CAPACITY_CELLS);
        let count = workspace.take(CELL_BYTES as u64 * (capacity + 1));
        let last = sums[sums.len() - 1];
        let cells = CellParts { sums: last.0, filled: last.1, counter, states, count };
        let first_cell = count + CELL_BYTES;
        Parts {
            workspace,
            inputs,
            steps,
            axes,
            zeros,
            scan_counter,
            sums,
            cells,
            first_cell,
            capacity,
            places: class_places,
            last_places,
        }
    }

    /// Bytes of the workspace.
    pub(super) fn bytes(&self) -> usize {
        self.workspace.bytes()
    }
}

/// A contraction whose inputs are on the device.
pub(super) struct Contraction<'a> {
    pub(super) device: &'a Device,
    pub(super) parts: &'a Parts,
    pub(super) buffer: &'a DeviceBuffer,
    pub(super) keys: &'a ResidentKeys,
    pub(super) relation: &'a Relation,
    pub(super) kernels: &'a Kernels,
    pub(super) facts: u64,
}

impl Contraction<'_> {
    /// Copies what the host knows to the workspace.
    pub(super) fn upload(&self, stream: &mut Stream) -> Result<(), DeviceError> {
        Ok(stream.upload(self.buffer, 0, self.parts.workspace.uploaded())?)
    }

    /// Launches all kernels.
    pub(super) fn launch(&self, queue: &mut impl Queue) -> Result<(), DeviceError> {
        let Contraction { parts, buffer, .. } = *self;
        let info = self.device.info();
        queue.fill(buffer, parts.zeros.0, 0, parts.zeros.1)?;
        let scan = Scan {
            inputs: &parts.inputs,
            keys: self.keys,
            relation: self.relation,
            facts: self.facts,
            places: parts.places,
            workspace: buffer,
            sums: parts.sums[0].0,
            filled: parts.sums[0].1,
            counter: parts.scan_counter,
        };
        match &self.kernels.scan {
            Some((form, kernel)) => scan.launch(queue, info, kernel, *form)?,
            None => scan.launch_total(queue, info, &self.kernels.total)?,
        }
        for (number, step) in parts.steps.iter().enumerate() {
            let (input, output) = (parts.sums[number], parts.sums[number + 1]);
            step.launch(queue, info, &self.kernels.expand, buffer, input, output)?;
        }
        self.launch_cells(queue, (buffer, parts.first_cell, parts.capacity))
    }

    fn launch_cells(&self, queue: &mut impl Queue, to: (&DeviceBuffer, usize, u64)) -> Result<(), DeviceError> {
        let Parts { cells, axes, last_places, .. } = self.parts;
        launch_cells(queue, &self.kernels.cells, self.buffer, cells, axes, *last_places, to)
    }

    /// The filled targets, behind all launches of the stream. Waits once for up to 32,768 cells.
    pub(super) fn read(&self, stream: &mut Stream) -> Result<DeviceCells, DeviceError> {
        let parts = self.parts;
        let first = parts.capacity.min(FIRST_CELLS) as usize;
        let mut head = vec![[0_u64; 2]; first + 1];
        stream.download(self.buffer, parts.cells.count, bytemuck::cast_slice_mut(&mut head))?;
        let filled = head[0][0];
        let mut cells = head;
        cells.remove(0);
        cells.truncate(filled as usize);
        if filled > parts.capacity {
            // The first cells are complete, but the others have no room: they are written again.
            let all = self.device.buffer(filled as usize * CELL_BYTES, "cells of a cube")?;
            let states = parts.cells.states + state_bytes(parts.last_places) as usize - parts.cells.counter;
            stream.fill(self.buffer, parts.cells.counter, 0, states)?;
            self.launch_cells(stream, (&all, 0, filled))?;
            cells.resize(filled as usize, [0; 2]);
            stream.download(&all, 0, bytemuck::cast_slice_mut(&mut cells))?;
        } else if filled > first as u64 {
            cells.resize(filled as usize, [0; 2]);
            let from = parts.first_cell + first * CELL_BYTES;
            stream.download(self.buffer, from, bytemuck::cast_slice_mut(&mut cells[first..]))?;
        }
        let (ranks, sums) = cells.into_iter().map(|[rank, sum]| (rank, sum as i64)).unzip();
        Ok(DeviceCells { ranks, sums })
    }
}
