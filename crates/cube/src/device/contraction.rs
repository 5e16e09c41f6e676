//! One contraction on the device: its memory and its launches.

use warpcube_column::Relation;
use warpcube_gpu::Kernel;
use warpcube_gpu::prims::Queue;

use super::accumulation::Accumulation;
use super::cells::{CellAxes, CellKernel, CellOutput, state_bytes};
use super::error::DeviceError;
use super::expand::{Expand, launch_limbs};
use super::plan::{DevicePlan, turns};
use super::scan::{Scan, ScanForm, ScanInputs};
use super::statement::{StatementBuffers, Steps};
use super::workspace::Workspace;
use crate::aggregate::places;
use crate::facts::Facts;

/// Bytes of the counter of tickets of a pass.
const COUNTER_BYTES: usize = 4;

/// The kernels of a contraction.
#[derive(Clone)]
pub(super) struct Kernels {
    pub(super) pass: PassKernel,
    /// Makes sums of two words; absent where sums have one.
    pub(super) limbs: Option<Kernel>,
    /// Makes targets of classes; absent where all classes are targets.
    pub(super) expand: Option<Kernel>,
    pub(super) cells: CellKernel,
}

/// The kernel of the pass over facts.
#[derive(Clone)]
pub(super) enum PassKernel {
    /// Sums by classes.
    Scan(ScanForm, Kernel),
    /// Facts of one class.
    Total(Kernel),
}

/// The launches of a contraction.
pub(super) struct ContractionSteps {
    kernels: Kernels,
    accumulation: Accumulation,
    workspace: Workspace,
    inputs: ScanInputs,
    expansions: Vec<Expand>,
    /// The part that is zero before a launch: its offset and bytes.
    zeros: (usize, usize),
    scan_counter: usize,
    /// The summands of the pass: limbs of sums.
    limbs: usize,
    /// Sums and filled bytes: those of classes, then those behind each expansion.
    sums: Vec<(usize, usize)>,
    output: CellOutput,
    /// Places of the sums of classes.
    places: u64,
    /// Cells of each segment.
    facts: Vec<u64>,
}

impl ContractionSteps {
    /// Plans the memory; `relations` have the values of the component in each segment.
    pub(super) fn new(kernels: Kernels, plan: &DevicePlan, facts: &Facts, relations: &[Relation]) -> ContractionSteps {
        let accumulation = plan.accumulation.clone();
        let mut workspace = Workspace::default();
        let inputs = ScanInputs::new(plan, facts.layout(), relations, &mut workspace);
        let (class_places, last_places) = (places(plan.products.shape()), places(&plan.products.last_shape()));
        let steps = plan.products.steps();
        let expansions: Vec<Expand> =
            steps.iter().map(|step| Expand::new(&plan.classes[step.dimension], *step, &mut workspace)).collect();
        let axes = CellAxes::new(&plan.axes(), &mut workspace);
        let zeros_at = workspace.bytes();
        let scan_counter = workspace.take(COUNTER_BYTES as u64 * relations.len() as u64);
        let counter = workspace.take(4);
        let states = workspace.take(state_bytes(last_places));
        let limbs = workspace.take(class_places * u64::from(accumulation.limbs) * 8);
        let filled = workspace.take(class_places);
        let zeros = (zeros_at, workspace.bytes() - zeros_at);
        let bytes = accumulation.monoid.words() * 8;
        let class_sums = if accumulation.has_pairs() { workspace.take(class_places * bytes) } else { limbs };
        let mut sums = vec![(class_sums, filled)];
        // A product reads the array that the one before it wrote, and writes over the one before that.
        let turns = turns(steps).map(|places| (workspace.take(places * bytes), workspace.take(places)));
        sums.extend(turns.into_iter().cycle().take(expansions.len()));
        let (last, axes) = (sums[sums.len() - 1], (axes, last_places));
        let output = CellOutput::new(kernels.cells.clone(), last, axes, (counter, states), &mut workspace);
        let facts = facts.segments().iter().map(|segment| segment.len() as u64).collect();
        ContractionSteps {
            kernels,
            accumulation,
            workspace,
            inputs,
            expansions,
            zeros,
            scan_counter,
            limbs,
            sums,
            output,
            places: class_places,
            facts,
        }
    }
}

impl Steps for ContractionSteps {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn output(&self) -> &CellOutput {
        &self.output
    }

    fn launch(&self, queue: &mut impl Queue, buffers: &StatementBuffers) -> Result<(), DeviceError> {
        let (buffer, info) = (&buffers.buffer, buffers.device.info());
        queue.fill(buffer, self.zeros.0, 0, self.zeros.1)?;
        for (segment, (keys, relation)) in buffers.keys.iter().zip(buffers.relations()).enumerate() {
            let scan = Scan {
                inputs: &self.inputs,
                segment,
                keys,
                relation,
                facts: self.facts[segment],
                places: self.places,
                workspace: buffer,
                sums: self.limbs,
                filled: self.sums[0].1,
                counter: self.scan_counter + COUNTER_BYTES * segment,
            };
            match &self.kernels.pass {
                PassKernel::Scan(form, kernel) => scan.launch(queue, info, kernel, *form)?,
                PassKernel::Total(kernel) => scan.launch_total(queue, info, kernel)?,
            }
        }
        if let Some(kernel) = &self.kernels.limbs {
            let places = (self.places, self.limbs, self.sums[0].0);
            launch_limbs(queue, info, kernel, buffer, &self.accumulation, places)?;
        }
        let Some(kernel) = &self.kernels.expand else { return Ok(()) };
        for (step, sums) in self.expansions.iter().zip(self.sums.windows(2)) {
            step.launch(queue, info, kernel, buffer, sums[0], sums[1])?;
        }
        Ok(())
    }
}
