//! One contraction on the device: its memory and its launches.

use warpcube_column::Relation;
use warpcube_gpu::Kernel;
use warpcube_gpu::prims::Queue;

use super::cells::{CellAxes, CellOutput, state_bytes};
use super::contract::DeviceError;
use super::expand::Expand;
use super::plan::{Plan, places};
use super::scan::{Scan, ScanForm, ScanInputs};
use super::statement::{Held, Steps};
use super::workspace::Workspace;
use crate::facts::Facts;

/// The kernels of a contraction.
#[derive(Clone)]
pub(super) struct Kernels {
    /// The pass over facts, by its form; absent where facts are of one class.
    pub(super) scan: Option<(ScanForm, Kernel)>,
    pub(super) total: Kernel,
    pub(super) expand: Kernel,
    pub(super) cells: Kernel,
}

/// The launches of a contraction.
pub(super) struct ContractionSteps {
    kernels: Kernels,
    workspace: Workspace,
    inputs: ScanInputs,
    expansions: Vec<Expand>,
    /// The part that is zero before a launch: its offset and bytes.
    zeros: (usize, usize),
    scan_counter: usize,
    /// Sums and filled bytes: those of classes, then those behind each expansion.
    sums: Vec<(usize, usize)>,
    output: CellOutput,
    /// Places of the sums of classes.
    places: u64,
    facts: u64,
}

impl ContractionSteps {
    /// Plans the memory; `relation` has the values of the measure.
    pub(super) fn new(kernels: Kernels, plan: &Plan, facts: &Facts, relation: &Relation) -> ContractionSteps {
        let mut workspace = Workspace::default();
        let inputs = ScanInputs::new(plan, facts.layout(), relation, &mut workspace);
        let mut shape = plan.class_shape();
        let class_places = places(&shape);
        let mut expansions = Vec::new();
        for dimension in &plan.multiplied {
            expansions.push(Expand::new(&plan.classes[*dimension], &shape, *dimension, &mut workspace));
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
        sums.extend(expansions.iter().map(|step: &Expand| pair(&mut workspace, step.places())));
        let (last, axes) = (sums[sums.len() - 1], (axes, last_places));
        let output = CellOutput::new(kernels.cells.clone(), last, axes, (counter, states), &mut workspace);
        let (places, facts) = (class_places, facts.len() as u64);
        ContractionSteps { kernels, workspace, inputs, expansions, zeros, scan_counter, sums, output, places, facts }
    }
}

impl Steps for ContractionSteps {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn output(&self) -> &CellOutput {
        &self.output
    }

    fn launch(&self, queue: &mut impl Queue, held: &Held) -> Result<(), DeviceError> {
        let (buffer, info) = (&held.buffer, held.device.info());
        queue.fill(buffer, self.zeros.0, 0, self.zeros.1)?;
        let scan = Scan {
            inputs: &self.inputs,
            keys: &held.keys,
            relation: held.relation(),
            facts: self.facts,
            places: self.places,
            workspace: buffer,
            sums: self.sums[0].0,
            filled: self.sums[0].1,
            counter: self.scan_counter,
        };
        match &self.kernels.scan {
            Some((form, kernel)) => scan.launch(queue, info, kernel, *form)?,
            None => scan.launch_total(queue, info, &self.kernels.total)?,
        }
        for (number, step) in self.expansions.iter().enumerate() {
            let (input, output) = (self.sums[number], self.sums[number + 1]);
            step.launch(queue, info, &self.kernels.expand, buffer, input, output)?;
        }
        Ok(())
    }
}
