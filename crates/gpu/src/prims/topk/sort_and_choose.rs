//! Sort and choose: all keys are sorted with the numbers of their rows, and the first k are taken (paper 003, 4.2.2).
//!
//! The sort is [`RadixSort`], least significant digit first and stable, so of equal keys the smaller row comes first
//! whatever [`super::Ties`] asks for. Scratch memory: two copies of all keys with their rows, since a pass of the sort
//! moves them from one place to another, and what the sort needs beside; the input is not written.

use std::sync::Arc;

use crate::backend::LaunchShape;
use crate::buffer::{DeviceBuffer, PART_BYTES_MIN};
use crate::device::{Device, Kernel, Module};
use crate::error::Result;
use crate::launch::Params;
use crate::prims::{DeviceSlice, Queue, RadixOrder, RadixSort, RadixTuning, Records, radix_sort};
use crate::program::Program;

use super::{Order, TopKSpec};

/// Threads of a block that copies the result, and results of a block.
const THREADS: u32 = 256;
/// Blocks that copy the result at most: four a multiprocessor of a large device.
const BLOCKS_MAX: u64 = 512;

/// Both as input or output of the sort.
fn records([keys, rows]: &[DeviceSlice; 2]) -> Records<'_> {
    Records { keys, values: Some(rows) }
}

/// A launcher of sort and choose.
pub(super) struct SortAndChoose {
    spec: TopKSpec,
    sort: RadixSort,
    choose: Kernel,
}

/// Where the parts of the scratch memory begin, in bytes: keys and rows of either place, and the sort's own memory.
struct ScratchLayout {
    keys: [usize; 2],
    rows: [usize; 2],
    sort: usize,
    bytes: usize,
}

/// Scratch memory for `n` keys on a device whose blocks have so much shared memory, in bytes.
pub(super) fn scratch_bytes(spec: &TopKSpec, shared_bytes: usize, n: u64) -> usize {
    places(spec, tuning(spec, shared_bytes).scratch_bytes(spec.element, n), n).bytes
}

/// The program of the sort.
pub(super) fn sort_program(spec: &TopKSpec, shared_bytes: usize) -> Program {
    radix_sort::program(spec.element, Some(spec.rows), &tuning(spec, shared_bytes))
}

fn tuning(spec: &TopKSpec, shared_bytes: usize) -> RadixTuning {
    RadixTuning::of(shared_bytes, spec.element, Some(spec.rows))
}

fn places(spec: &TopKSpec, sort_bytes: usize, n: u64) -> ScratchLayout {
    let bytes = |element_bytes: usize| (n as usize * element_bytes).next_multiple_of(PART_BYTES_MIN);
    let (keys, rows) = (bytes(spec.element.bytes()), bytes(spec.rows.bytes()));
    let sort = 2 * (keys + rows);
    ScratchLayout { keys: [0, keys], rows: [2 * keys, 2 * keys + rows], sort, bytes: sort + sort_bytes }
}

impl SortAndChoose {
    pub(super) fn new(device: &Device, module: &Arc<Module>, spec: &TopKSpec) -> Result<SortAndChoose> {
        let sort = RadixSort::new(device, spec.element, Some(spec.rows))?;
        Ok(SortAndChoose { spec: *spec, sort, choose: module.kernel("topk_choose")? })
    }

    /// Over operands that were checked.
    pub(super) fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        out_keys: &DeviceSlice,
        out_rows: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (n, spec) = (keys.len(), &self.spec);
        let places = places(spec, self.sort.scratch_bytes(n), n);
        let place = |at: usize| -> Result<[DeviceSlice; 2]> {
            Ok([
                DeviceSlice::new(scratch, places.keys[at], spec.element, n)?,
                DeviceSlice::new(scratch, places.rows[at], spec.rows, n)?,
            ])
        };
        let [sorted, other] = [place(0)?, place(1)?];
        let order = RadixOrder::of(spec.element, spec.order == Order::Largest);
        let memory = scratch.part(places.sort, places.bytes - places.sort)?;
        let input = Records { keys, values: None };
        self.sort.launch(queue, input, records(&sorted), records(&other), &order, &memory)?;
        let k = out_keys.len();
        let grid = k.div_ceil(THREADS.into()).min(BLOCKS_MAX) as u32;
        let shape = LaunchShape { grid, block: THREADS, shared_bytes: 0 };
        let params = Params::new().slice(&sorted[0]).slice(&sorted[1]).u64(k).slice(out_keys).slice(out_rows);
        queue.launch(&self.choose, shape, &params)
    }
}
