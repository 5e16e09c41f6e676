//! Device memory of a batch during its encoding.

use warpcube_gpu::{DeviceBuffer, LaunchShape, PART_BYTES_MIN, Params, Reservation, size_class};

use super::context::{BLOCK, KernelContext, SCRATCH_LARGE, Source};
use super::programs::SUMS;
use crate::error::Result;
use crate::units::{Storage, VECTOR_ROWS};

/// A buffer with its reservation.
#[derive(Debug)]
pub(crate) struct Scratch {
    buffer: DeviceBuffer,
    _reservation: Reservation,
}

impl Scratch {
    /// Memory of undefined content.
    pub(crate) fn new(context: &KernelContext<'_>, bytes: usize) -> Result<Scratch> {
        let reservation = context.room.reserve(size_class(bytes) as u64)?;
        if bytes >= SCRATCH_LARGE {
            context.large.borrow_mut().insert(bytes);
        }
        Ok(Scratch { buffer: context.device.buffer(bytes, "scratch memory of an encoder")?, _reservation: reservation })
    }

    /// The buffer.
    pub(crate) fn buffer(&self) -> &DeviceBuffer {
        &self.buffer
    }
}

/// A region for each segment.
#[derive(Debug)]
pub(super) struct Regions {
    scratch: Scratch,
    offsets: Vec<usize>,
}

impl Regions {
    /// Regions of `vector_bytes` bytes for each vector of a segment.
    pub(super) fn new(context: &KernelContext<'_>, sources: &[Source], vector_bytes: usize) -> Result<Regions> {
        let mut end = 0;
        let place = |source: &Source| {
            let offset = end;
            end += (source.vectors() * vector_bytes).next_multiple_of(PART_BYTES_MIN);
            offset
        };
        let offsets: Vec<usize> = sources.iter().map(place).collect();
        Ok(Regions { scratch: Scratch::new(context, end)?, offsets })
    }

    /// Adds a pointer to a segment's region.
    pub(super) fn add_to(&self, params: Params, position: usize) -> Params {
        params.buffer_at(self.scratch.buffer(), self.offsets[position])
    }

    /// A segment's region as a buffer.
    pub(super) fn part(&self, position: usize, bytes: usize) -> Result<DeviceBuffer> {
        Ok(self.scratch.buffer().part(self.offsets[position], bytes)?)
    }
}

/// The values of a batch in another type, in scratch memory.
pub(super) struct Derived {
    pub(super) sources: Vec<Source>,
    _memory: Regions,
}

impl Derived {
    /// Sources of undefined values of a storage, with the rows and the validity of others.
    pub(super) fn new(context: &KernelContext<'_>, sources: &[Source], storage: Storage) -> Result<Derived> {
        let vector_bytes = VECTOR_ROWS * storage.width();
        let memory = Regions::new(context, sources, vector_bytes)?;
        let place = |(position, source): (usize, &Source)| {
            Ok(source.with(memory.part(position, source.vectors() * vector_bytes)?, storage))
        };
        let sources = sources.iter().enumerate().map(place).collect::<Result<_>>()?;
        Ok(Derived { sources, _memory: memory })
    }
}

/// Counts of 32 bits for the vectors of segments, then their prefix sums.
#[derive(Debug)]
pub(super) struct Counts {
    scratch: Scratch,
    /// The first entry of each segment, and the end; the last entry of a segment is for the total.
    firsts: Vec<u32>,
    totals: Vec<u32>,
}

impl Counts {
    pub(super) fn new(context: &KernelContext<'_>, sources: &[Source], per_vector: usize) -> Result<Counts> {
        let mut firsts = vec![0];
        firsts.extend(sources.iter().scan(0, |end, source| {
            *end += (source.vectors() * per_vector + 1) as u32;
            Some(*end)
        }));
        let entries = firsts[sources.len()] as usize + firsts.len() + sources.len();
        let scratch = Scratch::new(context, entries * size_of::<u32>())?;
        Ok(Counts { scratch, firsts, totals: vec![0; sources.len()] })
    }

    /// Adds a pointer to a segment's counts.
    pub(super) fn add_to(&self, params: Params, position: usize) -> Params {
        params.buffer_at(self.scratch.buffer(), self.firsts[position] as usize * size_of::<u32>())
    }

    /// Replaces counts by their prefix sums, and waits for the totals.
    pub(super) fn sum(&mut self, context: &mut KernelContext<'_>) -> Result<()> {
        let kernel = context.kernel(SUMS, "scan_counts")?;
        let buffer = self.scratch.buffer();
        let firsts_at = self.firsts[self.totals.len()] as usize * size_of::<u32>();
        let totals_at = firsts_at + size_of_val(self.firsts.as_slice());
        context.stream.upload(buffer, firsts_at, bytemuck::cast_slice(&self.firsts))?;
        let params = Params::new().buffer(buffer).buffer_at(buffer, firsts_at).buffer_at(buffer, totals_at);
        let shape = LaunchShape { grid: self.totals.len() as u32, block: BLOCK, shared_bytes: BLOCK / 8 };
        context.stream.launch(&kernel, shape, &params)?;
        Ok(context.stream.download(buffer, totals_at, bytemuck::cast_slice_mut(&mut self.totals))?)
    }

    /// The sum of the counts of a segment.
    pub(super) fn total(&self, position: usize) -> usize {
        self.totals[position] as usize
    }
}
