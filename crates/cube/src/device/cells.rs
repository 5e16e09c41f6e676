//! The filled places of the last sums, in order. `kernels/cells.cuh` is the device's side of this file.

use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Params, Program};

use super::contract::DeviceError;
use super::plan::Axis;
use super::scan::padded;
use super::workspace::Workspace;

/// Places of a block.
const TILE_PLACES: u64 = 2048;
/// Threads of a block, and its shared memory in bytes.
const THREADS: u32 = 256;
const SHARED_BYTES: u32 = 128;
/// Bytes of a rank and a sum.
pub(super) const CELL_BYTES: usize = 16;

/// The kernel of this step.
pub(super) fn compile_cells(device: &Device) -> Result<Kernel, DeviceError> {
    let program = Program::new("cube cells", include_str!("../../kernels/cells.cuh"));
    Ok(device.compile(&program)?.kernel("wc_cube_cells")?)
}

/// Bytes of the states of all tiles.
pub(super) fn state_bytes(places: u64) -> u64 {
    places.div_ceil(TILE_PLACES) * 8
}

/// The axes of the last sums, with the offsets of their tables in the workspace.
pub(super) struct CellAxes(Vec<(u64, u64, Option<usize>)>);

impl CellAxes {
    /// Puts the tables into a workspace.
    pub(super) fn new(axes: &[Axis], workspace: &mut Workspace) -> CellAxes {
        let mut put = |targets: &Vec<u32>| workspace.put(bytemuck::cast_slice(targets));
        CellAxes(axes.iter().map(|axis| (axis.size, axis.stride, axis.targets.as_ref().map(&mut put))).collect())
    }
}

/// Where the step reads and writes: offsets in the workspace.
pub(super) struct CellParts {
    pub(super) sums: usize,
    pub(super) filled: usize,
    /// The tile counter and the states; zero before a launch.
    pub(super) counter: usize,
    pub(super) states: usize,
    /// The number of filled places.
    pub(super) count: usize,
}

/// Launches the step: at most `capacity` cells to `cells` from an offset on.
pub(super) fn launch_cells(
    queue: &mut impl Queue,
    kernel: &Kernel,
    workspace: &DeviceBuffer,
    parts: &CellParts,
    axes: &CellAxes,
    places: u64,
    (cells, from, capacity): (&DeviceBuffer, usize, u64),
) -> Result<(), DeviceError> {
    let offsets = [parts.sums, parts.filled, parts.counter, parts.states, parts.count];
    let params = offsets.into_iter().fold(Params::new(), |params, part| params.buffer_at(workspace, part));
    let params = params.buffer_at(cells, from).u64(places).u64(capacity).u64(axes.0.len() as u64);
    let params = padded(params, axes.0.iter().map(|axis| axis.0));
    let params = padded(params, axes.0.iter().map(|axis| axis.1));
    let address = |table: &Option<usize>| table.map_or(0, |offset| workspace.address() + offset as u64);
    let params = padded(params, axes.0.iter().map(|axis| address(&axis.2)));
    let grid = places.div_ceil(TILE_PLACES).max(1) as u32;
    Ok(queue.launch(kernel, LaunchShape { grid, block: THREADS, shared_bytes: SHARED_BYTES }, &params)?)
}
