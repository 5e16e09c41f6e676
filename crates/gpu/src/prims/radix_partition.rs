//! Radix partition: keys of any type, alone, with payload or with the numbers of their rows, moved to 256 partitions by
//! the hash of the key or by its place in a range, in any order in a partition. Rows of one partition meet a small part
//! of a table, which stays in the L2 cache.

use super::radix_sort::records::{EACH_KEY, Records, check_records, payload_type};
use super::tile::{TILE, TileTuning, are_aligned, vector_items};
use super::tuning::Measured;
use super::{DeviceSlice, Element, KEYS, Key, OrderedBits, Queue, check_element, check_length, check_scratch};
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
/// Threads of a block that counts, and counters of a partition in it.
const COUNT_THREADS: u32 = 1024;
const COUNT_COLUMNS: u32 = 32;
/// Factors of hashing: 2^32 and 2^64 over the golden ratio, made odd (Knuth 3, 6.4), and one for the high word.
const FACTOR: u32 = 0x9e37_79b1;
const WIDE_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const HIGH_FACTOR: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// The tuning: a block's run for a partition has 64 rows of keys and payload of 32 bits on average, of wider ones
/// fewer.
pub const TUNING: Measured<TileTuning> = Measured {
    value: TileTuning { threads: 1024, rows: 4, blocks: 1 },
    device: "NVIDIA H200",
    date: "2026-11-23",
    figure: "2^28 rows of 32 and 32 bits in 1.95 ms, eleven other shapes 2.08 to 3.68 ms; other types not measured",
};

/// What rows are partitioned by. Bounds are ordered bits of keys ([`Key::ordered_bits`]); both are included, and keys
/// outside of them go to the last partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionBy {
    /// The hash of the key's distance from `least`.
    Hash {
        /// Bits of the smallest key.
        least: OrderedBits,
        /// Bits of the largest key.
        most: OrderedBits,
    },
    /// The key's place in a range: partitions ascend as keys do.
    Range {
        /// Bits of the smallest key.
        least: OrderedBits,
        /// Bits of the largest key.
        most: OrderedBits,
    },
}

/// Radix partitions of keys of one type, alone or with payload of one type, on a device.
#[derive(Clone)]
pub struct RadixPartition {
    key: Element,
    payload: Option<Element>,
    tuning: TileTuning,
    multiprocessors: u32,
    count: Kernel,
    starts: Kernel,
    move_rows: Kernel,
    /// What moves keys with the numbers of their rows.
    number_rows: Option<Kernel>,
}

impl RadixPartition {
    /// Compiles the kernels for a device, with tiles that fit into the shared memory of its blocks.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub fn new(device: &Device, key: Element, payload: Option<Element>) -> Result<RadixPartition> {
        let shared_bytes = device.info().shared_memory_per_block;
        let tuning = TUNING.value.fitting(shared_bytes, |tuning| tile_bytes(key, payload, tuning));
        RadixPartition::with_tuning(device, key, payload, tuning)
    }

    /// The same with tiles of another shape.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for blocks of fewer threads than partitions, and tiles of more than 65,536 rows or more
    /// shared memory than a block has.
    pub fn with_tuning(
        device: &Device,
        key: Element,
        payload: Option<Element>,
        tuning: TileTuning,
    ) -> Result<RadixPartition> {
        let (bytes, bytes_max) = (tile_bytes(key, payload, tuning), device.info().shared_memory_per_block);
        if bytes > bytes_max {
            let message = format!("{NAME}: tiles of {tuning:?} need {bytes} bytes of shared memory, of {bytes_max}");
            return Err(GpuError::Contract(message));
        }
        let module = device.compile(&program(key, payload, tuning)?)?;
        let kernel = |name| module.kernel(name);
        Ok(RadixPartition {
            key,
            payload,
            tuning,
            multiprocessors: device.info().multiprocessors,
            count: kernel("radix_partition_count")?,
            starts: kernel("radix_partition_starts")?,
            move_rows: kernel("radix_partition_move")?,
            number_rows: payload.map(|_| kernel("radix_partition_number")).transpose()?,
        })
    }

    /// Bytes of scratch memory.
    pub fn scratch_bytes(&self) -> usize {
        PARTITIONS * size_of::<u64>()
    }

    /// Moves the records of `input` to `output`, partition after partition, and writes the first row of each partition,
    /// and the number of rows, to `starts`, of [`Element::U64`]. An input without payload stands for the numbers of its
    /// rows, if the partition moves payload.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, numbers of rows that payload cannot hold, a range without a
    /// key or of bits that keys do not have, and too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        [input, output]: [Records<'_>; 2],
        by: PartitionBy,
        starts: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        self.launch_at(queue, [input, output], by, starts, (scratch, 0))
    }

    /// The same with counters in the scratch memory from an offset in bytes on.
    ///
    /// # Errors
    /// As [`RadixPartition::launch`].
    pub fn launch_at(
        &self,
        queue: &mut impl Queue,
        [input, output]: [Records<'_>; 2],
        by: PartitionBy,
        starts: &DeviceSlice,
        (scratch, at): (&DeviceBuffer, usize),
    ) -> Result<()> {
        let (key, payload, n) = (self.key, self.payload, input.keys.len());
        check_records(NAME, "the input's", input, key, payload, n, true)?;
        check_records(NAME, "the output's", output, key, payload, n, false)?;
        check_element(NAME, "the starts", starts, Element::U64)?;
        check_length(NAME, "the starts", starts, PARTITIONS as u64 + 1)?;
        check_scratch(NAME, scratch, at + self.scratch_bytes())?;
        let places = by.places(key)?;
        if n == 0 {
            return queue.fill(starts.buffer(), starts.offset(), 0, (PARTITIONS + 1) * size_of::<u64>());
        }
        let vector = vector(key, payload);
        let shape = self.tuning.shape(NAME, self.tuning.tiles(vector, n), tile_bytes(key, payload, self.tuning))?;
        queue.fill(scratch, at, 0, self.scratch_bytes())?;
        let read: Vec<&DeviceSlice> = [Some(input.keys), input.values].into_iter().flatten().collect();
        let optional = |params: Params, slice: Option<&DeviceSlice>| match slice {
            Some(slice) => params.slice(slice),
            None => params.null(),
        };
        let params = optional(Params::new().slice(input.keys), input.values).slice(output.keys);
        let params = optional(params, output.values).u64(n).u64(are_aligned(&read, vector).into());
        let params = places.params(params).buffer_at(scratch, at).slice(starts);
        let step = u64::from(COUNT_THREADS) * 4 * (16 / key.bytes() as u64);
        let grid = n.div_ceil(step).min(self.multiprocessors.into()) as u32;
        let shared_bytes = PARTITIONS as u32 * COUNT_COLUMNS * 4;
        queue.launch(&self.count, LaunchShape { grid, block: COUNT_THREADS, shared_bytes }, &params)?;
        queue.launch(&self.starts, LaunchShape { grid: 1, block: 32, shared_bytes: 0 }, &params)?;
        let move_rows = self.number_rows.as_ref().filter(|_| input.values.is_none()).unwrap_or(&self.move_rows);
        queue.launch(move_rows, shape, &params)
    }
}

/// Where keys belong, `PartitionOf` of the kernels.
#[derive(Debug, Clone, Copy)]
struct PartitionOf {
    least: OrderedBits,
    width: OrderedBits,
    hashed: bool,
    shift: u32,
}

impl PartitionBy {
    /// The hash of any key of a type.
    pub fn hash(key: Element) -> PartitionBy {
        PartitionBy::Hash { least: 0, most: bits_most(key) }
    }

    /// The place of a key among all of its type.
    pub fn place(key: Element) -> PartitionBy {
        PartitionBy::Range { least: 0, most: bits_most(key) }
    }

    fn places(self, key: Element) -> Result<PartitionOf> {
        let (PartitionBy::Hash { least, most } | PartitionBy::Range { least, most }) = self;
        if least > most || most > bits_most(key) {
            let message = format!("{NAME}: keys of {key} from the bits {least} to {most}, which are none or too wide");
            return Err(GpuError::Contract(message));
        }
        let width = most - least;
        let shift = (OrderedBits::BITS - width.leading_zeros()).saturating_sub(BITS);
        Ok(PartitionOf { least, width, hashed: matches!(self, PartitionBy::Hash { .. }), shift })
    }
}

impl PartitionOf {
    /// The partition of a key by its ordered bits, of so many bytes.
    fn of(self, bits: OrderedBits, bytes: usize) -> usize {
        let Some(relative) = bits.checked_sub(self.least).filter(|relative| *relative <= self.width) else {
            return PARTITIONS - 1;
        };
        match (self.hashed, bytes) {
            (false, _) => ((relative >> self.shift) as usize).min(PARTITIONS - 1),
            (true, ..=4) => ((relative as u32).wrapping_mul(FACTOR) >> (32 - BITS)) as usize,
            (true, _) => {
                let folded = relative as u64 ^ ((relative >> 64) as u64).wrapping_mul(HIGH_FACTOR);
                (folded.wrapping_mul(WIDE_FACTOR) >> (64 - BITS)) as usize
            }
        }
    }

    fn params(self, params: Params) -> Params {
        let words = |params: Params, bits: OrderedBits| params.u64(bits as u64).u64((bits >> 64) as u64);
        words(words(params, self.least), self.width).u64(self.hashed.into()).u64(self.shift.into())
    }
}

/// The ordered bits of the largest key of a type.
fn bits_most(key: Element) -> OrderedBits {
    OrderedBits::MAX >> (OrderedBits::BITS - 8 * key.bytes() as u32)
}

/// Items of a lane's row: those of 16 bytes of the wider of keys and payload, four at most.
fn vector(key: Element, payload: Option<Element>) -> u32 {
    vector_items(key.bytes().max(payload.map_or(0, Element::bytes)).max(4))
}

/// Shared memory of a block that moves a tile: its rows, an offset and a counter a partition, a sum for 32 of them.
fn tile_bytes(key: Element, payload: Option<Element>, tuning: TileTuning) -> usize {
    let row_bytes = key.bytes() + payload.map_or(0, Element::bytes);
    tuning.items(vector(key, payload)) as usize * row_bytes + PARTITIONS * 12 + PARTITIONS / 32 * 4
}

/// The program of types and a shape of tiles.
fn program(key: Element, payload: Option<Element>, tuning: TileTuning) -> Result<Program> {
    let vector = vector(key, payload);
    if (tuning.threads as usize) < PARTITIONS || tuning.items(vector) > 1 << 16 {
        return Err(GpuError::Contract(format!("{NAME}: no tiles of {tuning:?} for {PARTITIONS} partitions")));
    }
    let payload = match payload.map(|payload| payload_type(payload.bytes())) {
        Some(payload) => format!("#define WC_PAYLOAD {payload}\n#define WC_PAYLOAD_TYPE {payload}\n"),
        None => "#define WC_PAYLOAD_TYPE uint32_t\n".into(),
    };
    let definitions = format!(
        "{}#define WC_KEY {}\n#define WC_PARTITION_BITS {BITS}\n#define WC_COUNT_THREADS {COUNT_THREADS}\n\
         #define WC_COUNT_COLUMNS {COUNT_COLUMNS}\n",
        tuning.text(vector),
        key.c_type()
    );
    let text = include_str!("../../kernels/prims/radix_partition.cuh");
    Ok(Program::new(NAME, [&definitions, KEYS, &payload, EACH_KEY, TILE, text].concat()))
}

/// The rows of each partition on the host, in their order.
///
/// # Errors
/// [`GpuError::Contract`] for a range without a key.
pub fn radix_partition<K: Key>(keys: &[K], by: PartitionBy) -> Result<Vec<Vec<u64>>> {
    let places = by.places(K::ELEMENT)?;
    let mut partitions = vec![Vec::new(); PARTITIONS];
    for (row, key) in keys.iter().enumerate() {
        partitions[places.of(key.ordered_bits(), size_of::<K>())].push(row as u64);
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        let types = [
            (Element::U32, Some(Element::U32)),
            (Element::U8, None),
            (Element::F64, Some(Element::U32)),
            (Element::I128, Some(Element::U64)),
        ];
        types.into_iter().for_each(|(key, payload)| {
            compile_for_gpus(&program(key, payload, TUNING.value).unwrap());
        });
    }
}
