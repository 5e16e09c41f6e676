//! The filled places of the last sums, in order. `kernels/cells.cuh` is the device's side of this file.

use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, DevicePtr, Kernel, LaunchShape, Params, Program, Stream};

use super::error::DeviceError;
use super::plan::Axis;
use super::scan::padded;
use super::workspace::Workspace;

/// Places of a block.
const TILE_PLACES: u64 = 2048;
/// Threads of a block, and its shared memory in bytes.
const THREADS: u32 = 256;
const SHARED_BYTES: u32 = 128;
/// Words of 64 bits of a sum at most.
const SUM_WORDS_MAX: usize = 2;
/// Cells that are kept without knowing how many there are.
const CAPACITY_CELLS: u64 = 1 << 20;
/// Cells that are copied to the host together with their number: 512 KiB of sums of one word.
const FIRST_CELLS: u64 = 1 << 15;

/// The kernel of this step, for sums of so many words.
#[derive(Clone)]
pub(super) struct CellKernel {
    kernel: Kernel,
    words: usize,
}

impl CellKernel {
    /// Compiles the kernel for sums of one word or two.
    pub(super) fn compile(device: &Device, words: u64) -> Result<CellKernel, DeviceError> {
        let kernel = device.compile(&program(words))?.kernel("wc_cube_cells")?;
        Ok(CellKernel { kernel, words: words as usize })
    }

    /// Bytes of a rank and a sum.
    fn cell_bytes(&self) -> usize {
        8 * (1 + self.words)
    }
}

fn program(words: u64) -> Program {
    let define = format!("#define WC_SUM_WORDS {words}\n");
    Program::new("cube cells", define + include_str!("../../kernels/cells.cuh"))
}

/// Filled targets with their sums as words.
#[derive(Debug, Default)]
pub(super) struct FilledCells {
    /// Row-major numbers of the filled targets within the area, ascending.
    pub(super) ranks: Vec<u64>,
    /// Their sums; the second word is 0 where a sum has one.
    pub(super) sums: Vec<[u64; SUM_WORDS_MAX]>,
}

impl FilledCells {
    fn new(cells: &[u64], words: usize) -> FilledCells {
        let cells = cells.chunks_exact(1 + words);
        let sum = |cell: &[u64]| [cell[1], cell.get(2).copied().unwrap_or_default()];
        FilledCells { ranks: cells.clone().map(|cell| cell[0]).collect(), sums: cells.map(sum).collect() }
    }

    /// Each rank with what its sum is.
    pub(super) fn by_rank<T>(self, sum: impl Fn([u64; SUM_WORDS_MAX]) -> T) -> Vec<(u64, T)> {
        self.ranks.into_iter().zip(self.sums.into_iter().map(sum)).collect()
    }
}

/// Filled targets of an area with their sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCells {
    /// Row-major numbers of the filled targets within the area, ascending.
    pub ranks: Vec<u64>,
    /// Their sums, in units of the measure's last digit.
    pub sums: Vec<i64>,
}

impl From<FilledCells> for DeviceCells {
    fn from(cells: FilledCells) -> DeviceCells {
        DeviceCells { ranks: cells.ranks, sums: cells.sums.into_iter().map(|sum| sum[0] as i64).collect() }
    }
}

/// Bytes of the states of all tiles.
pub(super) fn state_bytes(places: u64) -> u64 {
    places.div_ceil(TILE_PLACES) * 8
}

/// The axes of the last sums, with the offsets of their tables in the workspace.
pub(super) struct CellAxes(Vec<(u64, u64, Option<usize>)>);

impl CellAxes {
    /// Places that are ranks.
    pub(super) fn ranks(places: u64) -> CellAxes {
        CellAxes(vec![(places, 1, None)])
    }

    /// Puts the tables into a workspace.
    pub(super) fn new(axes: &[Axis], workspace: &mut Workspace) -> CellAxes {
        let mut put = |targets: &Vec<u32>| workspace.put(bytemuck::cast_slice(targets));
        CellAxes(axes.iter().map(|axis| (axis.size, axis.stride, axis.targets.as_ref().map(&mut put))).collect())
    }
}

/// The last step of an algorithm whose sums are dense: where it reads and writes in the workspace.
pub(super) struct CellOutput {
    kernel: CellKernel,
    pub(super) sums: usize,
    pub(super) filled: usize,
    pub(super) axes: CellAxes,
    /// Places of the sums.
    pub(super) places: u64,
    /// The tile counter and the states; zero before a launch.
    pub(super) counter: usize,
    pub(super) states: usize,
    /// The number of filled places, and the cells behind it.
    count: usize,
    /// Cells there is room for.
    capacity: u64,
}

impl CellOutput {
    /// Takes room for cells; `counter` and `states` are offsets of zeros, `sums` has sums of the words of the kernel.
    pub(super) fn new(
        kernel: CellKernel,
        (sums, filled): (usize, usize),
        (axes, places): (CellAxes, u64),
        (counter, states): (usize, usize),
        workspace: &mut Workspace,
    ) -> CellOutput {
        let capacity = places.min(CAPACITY_CELLS);
        let count = workspace.take(kernel.cell_bytes() as u64 * (capacity + 1));
        CellOutput { kernel, sums, filled, axes, places, counter, states, count, capacity }
    }

    /// Launches the step.
    pub(super) fn launch(&self, queue: &mut impl Queue, workspace: &DeviceBuffer) -> Result<(), DeviceError> {
        self.launch_to(queue, workspace, (workspace, self.count + self.kernel.cell_bytes(), self.capacity))
    }

    /// Launches the step: at most `capacity` cells to `cells` from an offset on.
    fn launch_to(
        &self,
        queue: &mut impl Queue,
        workspace: &DeviceBuffer,
        (cells, from, capacity): (&DeviceBuffer, usize, u64),
    ) -> Result<(), DeviceError> {
        let (axes, places) = (&self.axes.0, self.places);
        let offsets = [self.sums, self.filled, self.counter, self.states, self.count];
        let params = offsets.into_iter().fold(Params::new(), |params, part| params.buffer_at(workspace, part));
        let params = params.buffer_at(cells, from).u64(places).u64(capacity).u64(axes.len() as u64);
        let params = padded(params, axes.iter().map(|axis| axis.0));
        let params = padded(params, axes.iter().map(|axis| axis.1));
        let address =
            |table: &Option<usize>| table.map_or(DevicePtr::NULL, |offset| workspace.pointer().offset(offset)).word();
        let params = padded(params, axes.iter().map(|axis| address(&axis.2)));
        let grid = places.div_ceil(TILE_PLACES).max(1) as u32;
        let shape = LaunchShape { grid, block: THREADS, shared_bytes: SHARED_BYTES };
        Ok(queue.launch(&self.kernel.kernel, shape, &params)?)
    }

    /// The filled targets, behind all launches of the stream. Waits once for up to 32,768 cells.
    pub(super) fn read(
        &self,
        stream: &mut Stream,
        device: &Device,
        workspace: &DeviceBuffer,
    ) -> Result<FilledCells, DeviceError> {
        let (first, cell) = (self.capacity.min(FIRST_CELLS) as usize, self.kernel.cell_bytes());
        let words = cell / 8;
        let mut head = vec![0_u64; (first + 1) * words];
        stream.download(workspace, self.count, bytemuck::cast_slice_mut(&mut head))?;
        let filled = head[0];
        let mut cells = head.split_off(words);
        cells.resize(filled as usize * words, 0);
        if filled > self.capacity {
            // The first cells are complete, but the others have no room: they are written again.
            let all = device.buffer(filled as usize * cell, "cells of a cube")?;
            let states = self.states + state_bytes(self.places) as usize - self.counter;
            stream.fill(workspace, self.counter, 0, states)?;
            self.launch_to(stream, workspace, (&all, 0, filled))?;
            stream.download(&all, 0, bytemuck::cast_slice_mut(&mut cells))?;
        } else if filled > first as u64 {
            let from = self.count + (first + 1) * cell;
            stream.download(workspace, from, bytemuck::cast_slice_mut(&mut cells[first * words..]))?;
        }
        Ok(FilledCells::new(&cells, words - 1))
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn the_kernel_compiles_for_gpus() {
        for words in [1, 2] {
            match nvrtc::compile(&program(words), 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
