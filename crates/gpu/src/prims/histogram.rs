//! Histogram: how many keys fall into each bin, by the high bits of keys or by ascending bounds.
//!
//! Few bins are counted in shared memory, several counters a bin; many in device memory
//! (`kernels/prims/histogram.cuh`).

use super::radix_sort::records::EACH_KEY;
use super::{DeviceSlice, Element, KEYS, Key, OrderedBits, Queue, check_element, check_length};
use crate::backend::LaunchShape;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/histogram.cuh");
/// Counters of a bin in a block at most.
const COLUMNS_MAX: u64 = 32;

/// How a histogram is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramTuning {
    /// Threads of a block.
    pub threads: u32,
    /// Blocks a multiprocessor.
    pub blocks: u32,
    /// Bytes of counters in shared memory of a block, at most; more bins are counted in device memory.
    pub counter_bytes: u64,
    /// Bytes of bounds in shared memory of a block, at most.
    pub bound_bytes: u64,
}

/// The tuning: two blocks of full size fit into the 227 KB of an H200, on which 2³¹ and more u32 take 1.99 ms, 95 % of
/// its read bandwidth (2026-11-26, `large/histogram`).
pub const TUNING: HistogramTuning =
    HistogramTuning { threads: 1024, blocks: 2, counter_bytes: 64 << 10, bound_bytes: 32 << 10 };

/// Bins of a histogram; keys in none are not counted.
#[derive(Debug, Clone, Copy)]
pub enum HistogramBins<'a> {
    /// Bin b has the keys whose ordered bits, shifted right, are `first + b`.
    Codes {
        /// Bits to shift by, fewer than keys have.
        shift: u32,
        /// The code of the first bin.
        first: OrderedBits,
    },
    /// Bin b has the keys from bound b to below bound b + 1; bounds ascend, one more than there are bins.
    Bounds(&'a DeviceSlice),
}

/// A histogram of keys of one type.
#[derive(Clone)]
pub struct Histogram {
    key: Element,
    tuning: HistogramTuning,
    multiprocessors: u32,
    codes: Kernel,
    bounds: Kernel,
}

impl Histogram {
    /// Compiles the histogram for a device.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub fn new(device: &Device, key: Element) -> Result<Histogram> {
        Histogram::with_tuning(device, key, TUNING)
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`Histogram::new`].
    pub fn with_tuning(device: &Device, key: Element, tuning: HistogramTuning) -> Result<Histogram> {
        let module = device.compile(&program(key, &tuning))?;
        let multiprocessors = device.info().multiprocessors;
        let (codes, bounds) = (module.kernel("histogram_codes")?, module.kernel("histogram_bounds")?);
        Ok(Histogram { key, tuning, multiprocessors, codes, bounds })
    }

    /// Writes the number of keys in each bin to `counts`, of `U64`, as many as there are bins. There is no scratch
    /// memory.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types and lengths, and a shift by all bits of keys; those of a launch.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        bins: HistogramBins<'_>,
        counts: &DeviceSlice,
    ) -> Result<()> {
        check_element("histogram", "the keys", keys, self.key)?;
        check_element("histogram", "the counts", counts, Element::U64)?;
        let count = counts.len();
        let bits = self.key.bytes() as u32 * 8;
        match bins {
            HistogramBins::Codes { shift, .. } if shift >= bits => {
                let message = format!("histogram: keys of {}, which have {bits} bits, shifted by {shift}", self.key);
                return Err(GpuError::Contract(message));
            }
            HistogramBins::Codes { .. } => {}
            HistogramBins::Bounds(bounds) => {
                check_element("histogram", "the bounds", bounds, self.key)?;
                check_length("histogram", "the bounds", bounds, count + 1)?;
            }
        }
        if count == 0 {
            return Ok(());
        }
        queue.fill(counts.buffer(), counts.offset(), 0, count as usize * 8)?;
        // Codes above all that keys can have: kernels take `first` in the bits of a code.
        let is_above = |shift, first: OrderedBits| bits < OrderedBits::BITS && first >> (bits - shift) != 0;
        match bins {
            _ if keys.is_empty() => return Ok(()),
            HistogramBins::Codes { shift, first } if is_above(shift, first) => return Ok(()),
            _ => {}
        }
        let HistogramTuning { threads: block, blocks, counter_bytes, bound_bytes } = self.tuning;
        let columns = match counter_bytes / 4 / count {
            0 => 0,
            room => 1 << room.ilog2().min(COLUMNS_MAX.ilog2()),
        };
        let counter_bytes = (count * columns * 4).next_multiple_of(16);
        let params = Params::new().slice(keys).u64(keys.len()).slice(counts).u64(count).u64(columns);
        let (kernel, params, bytes) = match bins {
            HistogramBins::Codes { shift, first } => {
                let params = params.u64(shift.into()).u64(first as u64).u64((first >> 64) as u64);
                (&self.codes, params.null().u64(0), 0)
            }
            HistogramBins::Bounds(bounds) => {
                let bytes = (count + 1) * self.key.bytes() as u64;
                let fits = bytes <= bound_bytes;
                let params = params.u64(0).u64(0).u64(0).slice(bounds).u64(fits.into());
                (&self.bounds, params, if fits { bytes } else { 0 })
            }
        };
        let shared_bytes = (counter_bytes + bytes) as u32;
        let step = u64::from(block) * 4 * (16 / self.key.bytes() as u64);
        let grid = keys.len().div_ceil(step).min(u64::from(self.multiprocessors * blocks)) as u32;
        queue.launch(kernel, LaunchShape { grid, block, shared_bytes }, &params)
    }
}

/// The program of a histogram.
fn program(key: Element, tuning: &HistogramTuning) -> Program {
    let definitions = format!(
        "#define WC_HISTOGRAM_KEY {}\n#define WC_HISTOGRAM_THREADS {}\n#define WC_HISTOGRAM_BLOCKS {}\n",
        key.c_type(),
        tuning.threads,
        tuning.blocks,
    );
    Program::new(format!("histogram_{key}"), format!("{KEYS}{EACH_KEY}{definitions}{KERNELS}"))
}

/// The count of each bin by codes.
pub fn reference_codes<K: Key>(keys: &[K], shift: u32, first: OrderedBits, bins: usize) -> Vec<u64> {
    let mut counts = vec![0; bins];
    for key in keys {
        let bin = (key.ordered_bits() >> shift).checked_sub(first);
        if let Some(count) = bin.and_then(|bin| usize::try_from(bin).ok()).and_then(|bin| counts.get_mut(bin)) {
            *count += 1;
        }
    }
    counts
}

/// The count of each bin by bounds.
pub fn reference_bounds<K: Key>(keys: &[K], bounds: &[K]) -> Vec<u64> {
    let mut counts = vec![0; bounds.len() - 1];
    for key in keys {
        let above = bounds.partition_point(|bound| bound.ordered_bits() <= key.ordered_bits());
        if let Some(count) = above.checked_sub(1).and_then(|bin| counts.get_mut(bin)) {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        [Element::U8, Element::F64, Element::I128].iter().for_each(|key| compile_for_gpus(&program(*key, &TUNING)));
    }
}
