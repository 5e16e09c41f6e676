//! Radix partition: rows of keys and values moved to 256 partitions by the high bits of their keys' slots, in any order
//! in a partition. Rows of one partition meet a small part of a table, which stays in the L2 cache.

use super::key_slots::{KEY_SLOTS, KeySlots};
use super::radix_sort::records::EACH_KEY;
use super::tile::{TILE, TileTuning, are_aligned, vector_items};
use super::tuning::Measured;
use super::{DeviceSlice, Element, KEYS, KeyRange, Pairs, Queue, check_element, check_length, check_scratch};
use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::program::Program;

const NAME: &str = "radix_partition";
/// Bits of a place that name the partition.
const BITS: u32 = 8;
/// Partitions.
pub const PARTITIONS: usize = 1 << BITS;
/// Items of 16 bytes.
const VECTOR: u32 = vector_items(4);
/// Threads of a block that counts, and counters of a partition in it.
const COUNT_THREADS: u32 = 1024;
const COUNT_COLUMNS: u32 = 32;

/// The tuning: a block's run for a partition has 64 rows on average.
pub const TUNING: Measured<TileTuning> = Measured {
    value: TileTuning { threads: 1024, rows: 4, blocks: 1 },
    device: "NVIDIA H200",
    date: "2026-11-23",
    figure: "2^28 rows in 1.95 ms, eleven other shapes 2.08 to 3.68 ms",
};

/// What rows are partitioned by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionBy {
    /// The hash of the key.
    Hash,
    /// The key's place in a range; keys outside of it go to the last partition.
    Range(KeyRange),
}

/// Radix partitions on a device.
#[derive(Clone)]
pub struct RadixPartition {
    tuning: TileTuning,
    multiprocessors: u32,
    count: Kernel,
    starts: Kernel,
    move_rows: Kernel,
}

impl RadixPartition {
    /// Compiles the kernels for a device, with tiles that fit into the shared memory of its blocks.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub fn new(device: &Device) -> Result<RadixPartition> {
        let tuning = TUNING.value.fitting(device.info().shared_memory_per_block, tile_bytes);
        RadixPartition::with_tuning(device, tuning)
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for blocks of fewer threads than partitions, and tiles of more than 65,536 rows or more
    /// shared memory than a block has.
    pub fn with_tuning(device: &Device, tuning: TileTuning) -> Result<RadixPartition> {
        let (bytes, bytes_max) = (tile_bytes(tuning), device.info().shared_memory_per_block);
        if bytes > bytes_max {
            let message = format!("{NAME}: tiles of {tuning:?} need {bytes} bytes of shared memory, of {bytes_max}");
            return Err(GpuError::Contract(message));
        }
        let module = device.compile(&program(tuning)?)?;
        let kernel = |name| module.kernel(name);
        Ok(RadixPartition {
            tuning,
            multiprocessors: device.info().multiprocessors,
            count: kernel("radix_partition_count")?,
            starts: kernel("radix_partition_starts")?,
            move_rows: kernel("radix_partition_move")?,
        })
    }

    /// Bytes of scratch memory.
    pub fn scratch_bytes(&self) -> usize {
        PARTITIONS * size_of::<u64>()
    }

    /// Moves the rows of `input` to `output`, partition after partition, and writes the first row of each partition,
    /// and the number of rows, to `starts`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, a range without a key, and too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: Pairs<'_>,
        output: Pairs<'_>,
        by: PartitionBy,
        starts: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        self.launch_by(queue, [input, output], by.slots()?, starts, (scratch, 0))
    }

    /// The same by the slots of a table; counters lie in the scratch memory from an offset on.
    pub(crate) fn launch_by(
        &self,
        queue: &mut impl Queue,
        [input, output]: [Pairs<'_>; 2],
        slots: KeySlots,
        starts: &DeviceSlice,
        (scratch, at): (&DeviceBuffer, usize),
    ) -> Result<()> {
        input.check(NAME, "the input's")?;
        output.check(NAME, "the output's")?;
        let n = input.len();
        check_length(NAME, "the output's keys", output.keys, n)?;
        check_element(NAME, "the starts", starts, Element::U64)?;
        check_length(NAME, "the starts", starts, PARTITIONS as u64 + 1)?;
        check_scratch(NAME, scratch, at + self.scratch_bytes())?;
        if n == 0 {
            return queue.fill(starts.buffer(), starts.offset(), 0, (PARTITIONS + 1) * size_of::<u64>());
        }
        let shape = self.tuning.shape(NAME, self.tuning.tiles(VECTOR, n), tile_bytes(self.tuning))?;
        queue.fill(scratch, at, 0, self.scratch_bytes())?;
        let aligned = are_aligned(&[input.keys, input.values], VECTOR);
        let params = Params::new().slice(input.keys).slice(input.values).slice(output.keys).slice(output.values);
        let params = slots.params(params.u64(n).u64(aligned.into())).buffer_at(scratch, at).slice(starts);
        let step = u64::from(COUNT_THREADS) * 4 * u64::from(VECTOR);
        let grid = n.div_ceil(step).min(self.multiprocessors.into()) as u32;
        let shared_bytes = PARTITIONS as u32 * COUNT_COLUMNS * 4;
        queue.launch(&self.count, LaunchShape { grid, block: COUNT_THREADS, shared_bytes }, &params)?;
        queue.launch(&self.starts, LaunchShape { grid: 1, block: 32, shared_bytes: 0 }, &params)?;
        queue.launch(&self.move_rows, shape, &params)
    }
}

impl PartitionBy {
    fn slots(self) -> Result<KeySlots> {
        match self {
            PartitionBy::Hash => Ok(KeySlots::hashed(KeyRange::ALL, BITS)),
            PartitionBy::Range(range) => {
                range.check(NAME)?;
                Ok(KeySlots::direct(range).partitions(BITS))
            }
        }
    }
}

/// Shared memory of a block that moves a tile: its rows, an offset and a counter a partition, a sum for 32 of them.
fn tile_bytes(tuning: TileTuning) -> usize {
    tuning.items(VECTOR) as usize * 8 + PARTITIONS * 12 + PARTITIONS / 32 * 4
}

/// Partitions of the slots of a table.
pub(crate) fn partitions(slots: KeySlots) -> KeySlots {
    slots.partitions(BITS)
}

/// The program of a shape of tiles.
fn program(tuning: TileTuning) -> Result<Program> {
    if (tuning.threads as usize) < PARTITIONS || tuning.items(VECTOR) > 1 << 16 {
        return Err(GpuError::Contract(format!("{NAME}: no tiles of {tuning:?} for {PARTITIONS} partitions")));
    }
    let definitions = format!(
        "{}#define WC_PARTITION_BITS {BITS}\n#define WC_COUNT_THREADS {COUNT_THREADS}\n\
         #define WC_COUNT_COLUMNS {COUNT_COLUMNS}\n",
        tuning.text(VECTOR)
    );
    let text = include_str!("../../kernels/prims/radix_partition.cuh");
    Ok(Program::new(NAME, [&definitions, KEYS, EACH_KEY, TILE, KEY_SLOTS, text].concat()))
}

/// The rows of each partition on the host, in their order.
///
/// # Errors
/// [`GpuError::Contract`] for a range without a key.
pub fn radix_partition(pairs: &[(u32, u32)], by: PartitionBy) -> Result<Vec<Vec<(u32, u32)>>> {
    let slots = by.slots()?;
    let mut partitions = vec![Vec::new(); PARTITIONS];
    for pair in pairs {
        let home = slots.home(pair.0).map_or(PARTITIONS - 1, |home| home as usize);
        partitions[home.min(PARTITIONS - 1)].push(*pair);
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        compile_for_gpus(&program(TUNING.value).unwrap());
    }
}
