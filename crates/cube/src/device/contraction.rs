//! One contraction on the device: its memory, its launches, its result.

use warpcube_column::Relation;
use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, Kernel, Stream};

use super::cells::{CellAxes, CellOutput, state_bytes};
use super::contract::{DeviceCells, DeviceError};
use super::expand::Expand;
use super::keys::ResidentKeys;
use super::plan::{Plan, places};
use super::scan::{Scan, ScanForm, ScanInputs};
use super::workspace::Workspace;
use crate::facts::KeyLayout;

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
    /// The part that is zero before a launch: its offset and bytes.
    zeros: (usize, usize),
    scan_counter: usize,
    /// Sums and filled bytes: those of classes, then those behind each step.
    sums: Vec<(usize, usize)>,
    output: CellOutput,
    places: u64,
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
        let output = CellOutput::new(sums[sums.len() - 1], (axes, last_places), (counter, states), &mut workspace);
        Parts { workspace, inputs, steps, zeros, scan_counter, sums, output, places: class_places }
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
        parts.output.launch(queue, &self.kernels.cells, buffer)
    }

    /// The filled targets, behind all launches of the stream.
    pub(super) fn read(&self, stream: &mut Stream) -> Result<DeviceCells, DeviceError> {
        self.parts.output.read(stream, self.device, &self.kernels.cells, self.buffer)
    }
}
