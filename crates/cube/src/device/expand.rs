//! Products of sums: limbs of the pass over facts become sums of two words, classes of one dimension after the other
//! become targets. `limbs.cuh`, `expand.cuh` and `monoids.cuh` of `kernels` are the device's side of this file.

use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Params, Program};

use super::accumulation::{Accumulation, DeviceMonoid};
use super::classes::Classes;
use super::error::DeviceError;
use super::workspace::Workspace;
use crate::aggregate::Product;

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks of a grid on a multiprocessor.
const BLOCKS: u64 = 32;

/// Kernel text of monoids.
const MONOIDS: &str = include_str!("../../kernels/monoids.cuh");

/// The kernel of a step.
pub(super) fn compile_expand(device: &Device, monoid: DeviceMonoid) -> Result<Kernel, DeviceError> {
    Ok(device.compile(&expand_program(monoid))?.kernel("wc_cube_expand")?)
}

fn expand_program(monoid: DeviceMonoid) -> Program {
    let define = format!("#define WC_MONOID {}\n", monoid.text());
    Program::new("cube targets", define + MONOIDS + include_str!("../../kernels/expand.cuh"))
}

/// The kernel that makes sums of two words.
pub(super) fn compile_limbs(device: &Device) -> Result<Kernel, DeviceError> {
    Ok(device.compile(&limbs_program())?.kernel("wc_cube_limbs")?)
}

fn limbs_program() -> Program {
    Program::new("cube limbs", MONOIDS.to_string() + include_str!("../../kernels/limbs.cuh"))
}

/// Launches the kernel of [`compile_limbs`]; `limbs` and `sums` are offsets in the workspace.
pub(super) fn launch_limbs(
    queue: &mut impl Queue,
    device: &DeviceInfo,
    kernel: &Kernel,
    workspace: &DeviceBuffer,
    accumulation: &Accumulation,
    (places, limbs, sums): (u64, usize, usize),
) -> Result<(), DeviceError> {
    let is_precise = accumulation.monoid == DeviceMonoid::Precise;
    let params = Params::new().buffer_at(workspace, limbs).buffer_at(workspace, sums).u64(places);
    let params = params.u64(accumulation.limbs.into()).u64(is_precise.into()).u64(accumulation.unit.to_bits());
    Ok(queue.launch(kernel, moving(device, places), &params)?)
}

/// A thread a place, in a grid that moves.
fn moving(device: &DeviceInfo, places: u64) -> LaunchShape {
    let blocks = places.div_ceil(THREADS.into()).min(u64::from(device.multiprocessors) * BLOCKS);
    LaunchShape { grid: blocks.max(1) as u32, block: THREADS, shared_bytes: 0 }
}

/// Sums of shape outer × classes × inner become sums of shape outer × targets × inner.
pub(super) struct Expand {
    step: Product,
    /// Offsets in the workspace.
    offsets: usize,
    entries: usize,
    weights: usize,
}

impl Expand {
    /// Puts the matrix of a dimension into a workspace.
    pub(super) fn new(classes: &Classes, step: Product, workspace: &mut Workspace) -> Expand {
        Expand {
            step,
            offsets: workspace.put(bytemuck::cast_slice(&classes.offsets)),
            entries: workspace.put(bytemuck::cast_slice(&classes.classes)),
            weights: workspace.put(bytemuck::cast_slice(&classes.weights)),
        }
    }

    /// Launches the product; `input` and `output` are offsets of sums and filled bytes in the workspace.
    pub(super) fn launch(
        &self,
        queue: &mut impl Queue,
        device: &DeviceInfo,
        kernel: &Kernel,
        workspace: &DeviceBuffer,
        input: (usize, usize),
        output: (usize, usize),
    ) -> Result<(), DeviceError> {
        let parts = [input.0, input.1, self.offsets, self.entries, self.weights, output.0, output.1];
        let params = parts.into_iter().fold(Params::new(), |params, part| params.buffer_at(workspace, part));
        let (step, places) = (self.step, self.step.places());
        let params = params.u64(step.classes).u64(step.targets).u64(step.inner).u64(places);
        Ok(queue.launch(kernel, moving(device, places), &params)?)
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn kernels_compile_for_gpus() {
        let monoids = [DeviceMonoid::Narrow, DeviceMonoid::Wide, DeviceMonoid::Precise, DeviceMonoid::Greatest];
        for program in monoids.into_iter().map(expand_program).chain([limbs_program()]) {
            match nvrtc::compile(&program, 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => {}
                Err(error) => panic!("{}: {error:?}", program.name()),
            }
        }
    }
}
