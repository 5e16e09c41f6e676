//! The context of kernels over plain segments: their stream, their launches, their operands.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Params, Program, Stream};

use super::programs::{Parts, program};
use crate::device::segment::{Room, Segment};
use crate::error::Result;
use crate::format::Sample;
use crate::units::{Storage, VECTOR_ROWS};

/// Threads of a block; a warp works on a vector, or on a group of a vector.
pub(super) const BLOCK: u32 = 256;
/// Warps of a block.
pub(crate) const BLOCK_WARPS: u32 = BLOCK / 32;
/// Most blocks a multiprocessor.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 8;
/// Most segments of a launch: `WC_SEGMENTS`.
pub(super) const LAUNCH_SEGMENTS: usize = 16;
/// Smallest scratch memory in bytes that returns to the device after a column.
pub(super) const SCRATCH_LARGE: usize = 8 << 10;

/// A plain segment on the device.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(super) values: DeviceBuffer,
    pub(super) validity: Option<DeviceBuffer>,
    pub(super) rows: usize,
    pub(super) storage: Storage,
}

impl Source {
    /// The values of a plain segment.
    pub(crate) fn of(segment: &Segment, storage: Storage) -> Source {
        let (values, validity) = (segment.values().clone(), segment.validity().cloned());
        Source { values, validity, rows: segment.rows() as usize, storage }
    }

    /// The same rows with other values.
    pub(super) fn with(&self, values: DeviceBuffer, storage: Storage) -> Source {
        Source { values, validity: self.validity.clone(), rows: self.rows, storage }
    }

    /// Whether the segment has validity words.
    pub(crate) fn has_nulls(&self) -> bool {
        self.validity.is_some()
    }

    /// Whole vectors, the last one padded.
    pub(crate) fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// Adds a vector to a sample.
    pub(crate) fn download_into(&self, stream: &mut Stream, vector: usize, sample: &mut Sample) -> Result<()> {
        let mut values = vec![0; VECTOR_ROWS * self.storage.width()];
        let at = vector * values.len();
        stream.download(&self.values, at, &mut values)?;
        let mut words = [0u32; VECTOR_ROWS / 32];
        if let Some(validity) = &self.validity {
            let at = vector * size_of_val(&words);
            stream.download(validity, at, bytemuck::cast_slice_mut(&mut words))?;
        }
        let rows = (self.rows - vector * VECTOR_ROWS).min(VECTOR_ROWS);
        sample.push(&values, self.validity.as_ref().map(|_| words.as_slice()), rows);
        Ok(())
    }

    /// Parameters of a kernel, beginning with a `WcSource`.
    pub(super) fn params(&self) -> Params {
        self.add_to(Params::new())
    }

    /// Adds a `WcSource`.
    pub(crate) fn add_to(&self, params: Params) -> Params {
        let params = params.buffer(&self.values);
        let params = match &self.validity {
            Some(words) => params.buffer(words),
            None => params.null(),
        };
        params.u64(self.rows as u64).u64(self.storage.width() as u64).u64(flip(self.storage))
    }
}

/// The bit that maps values to keys of the kernels in the same order: the sign bit of signed values.
pub(crate) fn flip(storage: Storage) -> u64 {
    if storage.is_signed() { 1 << 63 } else { 0 }
}

/// The stream of kernels and the memory of their operands.
pub(crate) struct KernelContext<'a> {
    pub(crate) device: &'a Device,
    pub(crate) room: &'a dyn Room,
    pub(crate) stream: Stream,
    kernels: RefCell<HashMap<&'static str, Kernel>>,
    /// Sizes of large scratch memory that was in use.
    pub(super) large: RefCell<BTreeSet<usize>>,
}

impl Drop for KernelContext<'_> {
    fn drop(&mut self) {
        // Memory in the pool of the device counts as in use.
        self.large.borrow().iter().for_each(|bytes| self.device.free_cached(*bytes));
    }
}

impl<'a> KernelContext<'a> {
    pub(crate) fn new(device: &'a Device, room: &'a dyn Room) -> Result<KernelContext<'a>> {
        let (stream, kernels, large) = (device.stream()?, RefCell::default(), RefCell::default());
        Ok(KernelContext { device, room, stream, kernels, large })
    }

    /// Compiles programs concurrently.
    pub(crate) fn prepare(&self, programs: &[Parts]) -> Result<()> {
        let programs: Vec<Program> = programs.iter().map(|parts| program(self.device, *parts)).collect();
        self.device.compile_all(&programs)?;
        Ok(())
    }

    /// A kernel of a program.
    pub(crate) fn kernel(&self, parts: Parts, name: &'static str) -> Result<Kernel> {
        if let Some(kernel) = self.kernels.borrow().get(name) {
            return Ok(kernel.clone());
        }
        let kernel = self.device.compile(&program(self.device, parts))?.kernel(name)?;
        self.kernels.borrow_mut().insert(name, kernel.clone());
        Ok(kernel)
    }

    /// Launches a kernel over the work of `warps` warps, with at most `blocks` blocks a multiprocessor.
    pub(crate) fn launch(
        &mut self,
        kernel: &Kernel,
        warps: usize,
        blocks: u32,
        shared_bytes: u32,
        params: &Params,
    ) -> Result<()> {
        let most = self.device.info().multiprocessors * blocks;
        let grid = (warps as u32).div_ceil(BLOCK_WARPS).clamp(1, most);
        Ok(self.stream.launch(kernel, LaunchShape { grid, block: BLOCK, shared_bytes }, params)?)
    }

    /// Launches a kernel of a program over segments: number of warps and parameters of each.
    pub(super) fn launch_all(
        &mut self,
        (parts, name): (Parts, &'static str),
        segments: impl IntoIterator<Item = (usize, Params)>,
        shared_bytes: u32,
    ) -> Result<()> {
        let kernel = self.kernel(parts, name)?;
        let mut segments = segments.into_iter().peekable();
        while segments.peek().is_some() {
            let (mut params, mut warps, mut count, mut bytes) = (Params::new(), 0, 0, 0);
            for (of_segment, own) in segments.by_ref().take(LAUNCH_SEGMENTS) {
                (warps, count, bytes) = (of_segment.max(warps), count + 1, own.size());
                params = params.append(own);
            }
            for _ in 0..(LAUNCH_SEGMENTS - count) * bytes / size_of::<u64>() {
                params = params.u64(0);
            }
            // Each segment has as many blocks: the number of a block gives its segment.
            let most = (self.device.info().multiprocessors * BLOCKS_PER_MULTIPROCESSOR / count as u32).max(1);
            let blocks = (warps as u32).div_ceil(BLOCK_WARPS).clamp(1, most);
            let shape = LaunchShape { grid: blocks * count as u32, block: BLOCK, shared_bytes };
            self.stream.launch(&kernel, shape, &params.u64(count as u64))?;
        }
        Ok(())
    }
}
