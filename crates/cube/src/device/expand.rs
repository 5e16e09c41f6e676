//! One dimension of a contraction: classes become targets. `kernels/expand.cuh` is the device's side of this file.

use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Params, Program};

use super::classes::Classes;
use super::contract::DeviceError;
use super::workspace::Workspace;

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks of a grid on a multiprocessor.
const BLOCKS: u64 = 32;

/// The kernel of a step.
pub(super) fn compile_expand(device: &Device) -> Result<Kernel, DeviceError> {
    let program = Program::new("cube targets", include_str!("../../kernels/expand.cuh"));
    Ok(device.compile(&program)?.kernel("wc_cube_expand")?)
}

/// Sums of shape outer × classes × inner become sums of shape outer × targets × inner.
pub(super) struct Expand {
    outer: u64,
    classes: u64,
    targets: u64,
    inner: u64,
    /// Offsets in the workspace.
    offsets: usize,
    entries: usize,
    weights: usize,
}

impl Expand {
    /// Puts the matrix of a dimension into a workspace; `shape` is that of the input.
    pub(super) fn new(classes: &Classes, shape: &[u64], dimension: usize, workspace: &mut Workspace) -> Expand {
        Expand {
            outer: shape[..dimension].iter().product(),
            classes: classes.count.into(),
            targets: classes.targets().into(),
            inner: shape[dimension + 1..].iter().product(),
            offsets: workspace.put(bytemuck::cast_slice(&classes.offsets)),
            entries: workspace.put(bytemuck::cast_slice(&classes.classes)),
            weights: workspace.put(bytemuck::cast_slice(&classes.weights)),
        }
    }

    /// Places of the result.
    pub(super) fn places(&self) -> u64 {
        self.outer * self.targets * self.inner
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
        let params = params.u64(self.classes).u64(self.targets).u64(self.inner).u64(self.places());
        let blocks = self.places().div_ceil(THREADS.into()).min(u64::from(device.multiprocessors) * BLOCKS);
        let shape = LaunchShape { grid: blocks.max(1) as u32, block: THREADS, shared_bytes: 0 };
        Ok(queue.launch(kernel, shape, &params)?)
    }
}
