//! Hash join: the sum of the values of both sides over all pairs of rows with equal keys, and the number of pairs
//! (`SELECT SUM(A.v + B.v), COUNT(*) FROM A, B WHERE A.k = B.k`). A is the build side, whose keys are unique; B probes.
//!
//! A table is of slots that are found by linear probing, pair after pair, or has a value for each key of the range
//! (direct address).
//! Either is probed in the order of rows, or both sides are partitioned first, so that a part of the table that fits
//! into the L2 cache is probed at a time. [`JoinSpec::choose`] takes the strategy that the roofline predicts to be the
//! fastest.

use warpcube_gpu::prims::radix_partition::{PARTITIONS, PartitionBy, RadixPartition};
use warpcube_gpu::prims::roofline::DeviceRates;
use warpcube_gpu::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use warpcube_gpu::prims::{
    DeviceSlice, Element, KEYS, Measured, Queue, Records, check_element, check_length, check_scratch,
};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, LaunchShape, PART_BYTES_MIN, Params, Program, Result};

use super::key_slots::{KEY_SLOTS, KeyRange, KeySlots, Pairs, TableTuning};
use super::roofline::Roofline;

const NAME: &str = "hash_join";
/// Items of 16 bytes.
const VECTOR: u32 = vector_items(4);
/// Sums of warps in shared memory, `JOIN_PARTS_BYTES` of the kernels.
const PARTS_BYTES: usize = 512;
/// Rows of a lane that probes pairs of slots, `LINEAR_ROWS` of the kernels.
const LINEAR_ROWS: u32 = 1;
/// Threads of a block that builds.
const BUILD_THREADS: u32 = 256;

/// The tuning.
pub const TUNING: Measured<TableTuning> = Measured {
    value: TableTuning { tile: TileTuning { threads: 256, rows: 2, blocks: 4 }, shared_threads: 1024 },
    device: "NVIDIA H200",
    date: "2026-11-23",
    figure: "2^28 probes of 4 MB of values: 1.86 ms, six other shapes 1.86 to 1.87 ms",
};

/// How the table is laid out and in which order it is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinStrategy {
    /// Slots by hash, in the order of rows. For keys from a wide range.
    LinearProbing,
    /// A value for each key of the range, in the order of rows. For keys from a narrow range; the fewer probes match,
    /// the more of them end at a bit.
    DirectAddress,
    /// Slots by hash, partition after partition. For tables much larger than the L2 cache.
    PartitionedLinearProbing,
    /// A value for each key of the range, partition after partition.
    PartitionedDirectAddress,
}

/// What is known of a join before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JoinSpec {
    /// A range that has all keys of the build side; it leaves out one key of 32 bits at least.
    pub range: KeyRange,
    /// Rows of the build side.
    pub build_rows: u64,
    /// Rows of the probe side, expected.
    pub probe_rows: u64,
    /// The share of probes that match, expected.
    pub match_share: f64,
}

/// A join of one table on a device.
#[derive(Clone)]
pub struct HashJoin {
    spec: JoinSpec,
    strategy: JoinStrategy,
    tuning: TableTuning,
    multiprocessors: u32,
    is_shared: bool,
    build: Kernel,
    probe: Kernel,
    partition: Option<RadixPartition>,
}

impl JoinStrategy {
    /// All of them; of two with one prediction the first is taken.
    pub const ALL: [JoinStrategy; 4] = [
        JoinStrategy::DirectAddress,
        JoinStrategy::LinearProbing,
        JoinStrategy::PartitionedDirectAddress,
        JoinStrategy::PartitionedLinearProbing,
    ];

    /// Whether the table has a value for each key of the range.
    fn is_direct(self) -> bool {
        matches!(self, JoinStrategy::DirectAddress | JoinStrategy::PartitionedDirectAddress)
    }

    /// Whether both sides are partitioned first.
    fn is_partitioned(self) -> bool {
        matches!(self, JoinStrategy::PartitionedLinearProbing | JoinStrategy::PartitionedDirectAddress)
    }
}

impl JoinSpec {
    /// Pairs of slots of a table of linear probing: a power of two, two at least, half of the slots empty.
    fn pairs_log(&self) -> u32 {
        self.build_rows.max(2).next_power_of_two().ilog2()
    }

    fn slots(&self, strategy: JoinStrategy) -> KeySlots {
        match strategy.is_direct() {
            true => KeySlots::direct(self.range),
            false => KeySlots::hashed(self.range, self.pairs_log()),
        }
    }

    /// Bytes of a table of values, without bits.
    fn values_bytes(&self) -> usize {
        (self.range.keys() as usize * 4).next_multiple_of(PART_BYTES_MIN)
    }

    /// Bytes of the bits beside them.
    fn bits_bytes(&self) -> usize {
        (self.range.keys().div_ceil(32) as usize * 4).next_multiple_of(PART_BYTES_MIN)
    }

    /// Whether each key of the range has a row, if keys are unique.
    fn is_full(&self) -> bool {
        self.build_rows == self.range.keys()
    }

    /// Bytes of the table of a strategy.
    pub fn table_bytes(&self, strategy: JoinStrategy) -> usize {
        match strategy.is_direct() {
            true => self.values_bytes() + self.bits_bytes(),
            false => 16 << self.pairs_log(),
        }
    }

    /// Milliseconds that the probes need. A part of a partitioned table is as large as two partitions, of which one
    /// ends while the next begins; each of its sectors comes from device memory once.
    pub fn probe_ms(&self, rates: &DeviceRates, strategy: JoinStrategy) -> f64 {
        let (rows, streamed) = (self.probe_rows as f64, 8.0 * self.probe_rows as f64);
        let (parts, before_ms) = match strategy.is_partitioned() {
            true => {
                let table_ms = rates.first_reads_ms(self.table_bytes(strategy) as f64);
                (PARTITIONS as f64 / 2.0, rates.partition_ms(self.probe_rows) + table_ms)
            }
            false => (1.0, 0.0),
        };
        // A partitioned table is not copied to shared memory: blocks walk over all partitions.
        let part_bytes = |bytes: f64| match strategy.is_partitioned() {
            true => (bytes / parts).max(rates.shared_bytes.value as f64 + 1.0),
            false => bytes,
        };
        let probes_ms = match strategy.is_direct() {
            false => {
                let bytes = part_bytes(self.table_bytes(strategy) as f64);
                rates.linear_probe_ms(rows, self.match_share, bytes, streamed)
            }
            // A probe without a match lies beyond the range and looks at nothing.
            true if self.is_full() => {
                rates.probe_ms(rows * self.match_share, part_bytes(self.values_bytes() as f64), streamed)
            }
            true => {
                let bits_ms = rates.probe_ms(rows, part_bytes(self.bits_bytes() as f64), streamed);
                bits_ms + rates.probe_ms(rows * self.match_share, part_bytes(self.values_bytes() as f64), 0.0)
            }
        };
        before_ms + probes_ms
    }

    /// The strategy with the least predicted time, its milliseconds, and words for EXPLAIN. Tables of more than
    /// `bytes_max` are left out, unless all are larger.
    pub fn choose(&self, rates: &DeviceRates, bytes_max: usize) -> (JoinStrategy, f64, String) {
        let mut ranked = JoinStrategy::ALL.map(|strategy| (strategy, self.probe_ms(rates, strategy)));
        let is_large = |strategy: JoinStrategy| self.table_bytes(strategy) > bytes_max;
        ranked.sort_by(|a, b| is_large(a.0).cmp(&is_large(b.0)).then(a.1.total_cmp(&b.1)));
        let (strategy, ms) = ranked[0];
        let (next, next_ms) = ranked[1];
        let bytes = self.table_bytes(strategy);
        let reason = format!("{strategy:?}: a table of {bytes} bytes, {ms:.3} ms predicted; {next:?} {next_ms:.3} ms");
        (strategy, ms, reason)
    }

    fn check(&self) -> Result<()> {
        self.range.check(NAME)?;
        let KeyRange { least, most } = self.range;
        if self.range == KeyRange::ALL {
            let message = format!("{NAME}: keys from {least} to {most}, and the range has to leave out one of them");
            return Err(GpuError::Contract(message));
        }
        if self.build_rows > self.range.keys() {
            let message = format!(
                "{NAME}: {} rows with unique keys from {least} to {most}, which are {}",
                self.build_rows,
                self.range.keys()
            );
            return Err(GpuError::Contract(message));
        }
        Ok(())
    }
}

impl HashJoin {
    /// Compiles the kernels of a strategy.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for a range without keys, one that has all keys of 32 bits, and more rows than keys;
    /// those of [`Device::compile`].
    pub fn new(device: &Device, spec: JoinSpec, strategy: JoinStrategy) -> Result<HashJoin> {
        HashJoin::with_tuning(device, spec, strategy, TUNING.value)
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`HashJoin::new`].
    pub fn with_tuning(
        device: &Device,
        spec: JoinSpec,
        strategy: JoinStrategy,
        tuning: TableTuning,
    ) -> Result<HashJoin> {
        spec.check()?;
        let module = device.compile(&program(tuning))?;
        let shared_bytes = device.info().shared_memory_per_block;
        let queue = if strategy.is_direct() { 0 } else { queue_bytes(tuning.shared_threads) };
        let is_shared = !strategy.is_partitioned() && PARTS_BYTES + queue + spec.table_bytes(strategy) <= shared_bytes;
        let (build, probe) = match (strategy.is_direct(), is_shared) {
            (false, false) => ("hash_join_build_linear", "hash_join_linear"),
            (false, true) => ("hash_join_build_linear", "hash_join_linear_shared"),
            (true, false) => ("hash_join_build_direct", "hash_join_direct"),
            (true, true) => ("hash_join_build_direct", "hash_join_direct_shared"),
        };
        let partition = if strategy.is_partitioned() {
            Some(RadixPartition::new(device, Element::U32, Some(Element::U32))?)
        } else {
            None
        };
        Ok(HashJoin {
            spec,
            strategy,
            tuning,
            multiprocessors: device.info().multiprocessors,
            is_shared,
            build: module.kernel(build)?,
            probe: module.kernel(probe)?,
            partition,
        })
    }

    /// Bytes of the table.
    pub fn table_bytes(&self) -> usize {
        self.spec.table_bytes(self.strategy)
    }

    /// Bytes of scratch memory of a build or a probe with so many rows: a copy of partitioned rows, or none.
    pub fn scratch_bytes(&self, rows: u64) -> usize {
        match &self.partition {
            Some(partition) => 2 * column_bytes(rows) + starts_bytes() + partition.scratch_bytes(),
            None => 0,
        }
    }

    /// Makes the table. `status`, two of [`Element::U64`], gets the number of rows whose key another row has, and of
    /// those whose key lies outside of the range; neither are in the table, and of rows with one key one is.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, a table or scratch memory that is too small.
    pub fn build(
        &self,
        queue: &mut impl Queue,
        rows: Pairs<'_>,
        table: &DeviceBuffer,
        status: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        self.check(rows, "the build side's", table, status, scratch)?;
        check_length(NAME, "the build side's keys", rows.keys, self.spec.build_rows)?;
        queue.fill(status.buffer(), status.offset(), 0, 16)?;
        match self.strategy.is_direct() {
            true => queue.fill(table, self.spec.values_bytes(), 0, self.spec.bits_bytes())?,
            false => queue.fill(table, 0, 0xff, self.table_bytes())?,
        }
        if rows.len() == 0 {
            return Ok(());
        }
        let (keys, values) = self.partitioned(queue, rows, scratch)?;
        let params = Params::new().slice(&keys).slice(&values).u64(rows.len());
        let params = self.table(self.spec.slots(self.strategy).params(params), table).slice(status);
        let grid = rows.len().div_ceil(BUILD_THREADS.into()).min(u64::from(self.multiprocessors) * 8) as u32;
        queue.launch(&self.build, LaunchShape { grid, block: BUILD_THREADS, shared_bytes: 0 }, &params)
    }

    /// Writes the sum of both sides' values over all pairs, modulo 2^64, and the number of pairs to `out`, two of
    /// [`Element::U64`]. `table` and `status` are those of the build.
    ///
    /// # Errors
    /// As [`HashJoin::build`].
    pub fn probe(
        &self,
        queue: &mut impl Queue,
        rows: Pairs<'_>,
        [table, scratch]: [&DeviceBuffer; 2],
        status: &DeviceSlice,
        out: &DeviceSlice,
    ) -> Result<()> {
        self.check(rows, "the probe side's", table, status, scratch)?;
        check_element(NAME, "the output", out, Element::U64)?;
        check_length(NAME, "the output", out, 2)?;
        queue.fill(out.buffer(), out.offset(), 0, 16)?;
        let n = rows.len();
        if n == 0 {
            return Ok(());
        }
        let (keys, values) = self.partitioned(queue, rows, scratch)?;
        let aligned = are_aligned(&[&keys, &values], VECTOR);
        let params = Params::new().slice(&keys).slice(&values).u64(n).u64(aligned.into());
        let params = self.table(self.spec.slots(self.strategy).params(params), table).slice(status);
        let table_words = self.table_bytes().div_ceil(16) as u64;
        let params = params.u64(self.spec.build_rows).u64(table_words).slice(out);
        queue.launch(&self.probe, self.probe_shape(n), &params)
    }

    /// Blocks that fill the device.
    fn probe_shape(&self, n: u64) -> LaunchShape {
        let TileTuning { threads, rows, blocks } = self.tuning.tile;
        let (block, blocks, bytes) = match self.is_shared {
            true => (self.tuning.shared_threads, 1, self.table_bytes().next_multiple_of(16)),
            false => (threads, blocks, 0),
        };
        let rows = if self.strategy.is_direct() { rows } else { LINEAR_ROWS };
        let step = u64::from(block) * u64::from(rows) * u64::from(VECTOR);
        let grid = n.div_ceil(step).min(u64::from(self.multiprocessors * blocks)) as u32;
        let queue = if self.strategy.is_direct() || !self.is_shared { 0 } else { queue_bytes(block) };
        LaunchShape { grid, block, shared_bytes: (PARTS_BYTES + queue + bytes) as u32 }
    }

    /// Table and bits as members of a parameter struct.
    fn table(&self, params: Params, table: &DeviceBuffer) -> Params {
        match self.strategy.is_direct() {
            true => params.buffer(table).buffer_at(table, self.spec.values_bytes()),
            false => params.buffer(table).null(),
        }
    }

    /// The rows, partitioned if the strategy is.
    fn partitioned(
        &self,
        queue: &mut impl Queue,
        rows: Pairs<'_>,
        scratch: &DeviceBuffer,
    ) -> Result<(DeviceSlice, DeviceSlice)> {
        let Some(partition) = &self.partition else { return Ok((rows.keys.clone(), rows.values.clone())) };
        let n = rows.len();
        let keys = DeviceSlice::new(scratch, 0, Element::U32, n)?;
        let values = DeviceSlice::new(scratch, column_bytes(n), Element::U32, n)?;
        let starts = DeviceSlice::new(scratch, 2 * column_bytes(n), Element::U64, PARTITIONS as u64 + 1)?;
        let KeyRange { least, most } = self.spec.range;
        let (least, most) = (least.into(), most.into());
        // Partitions have slots that follow each other.
        let by = match self.strategy.is_direct() {
            true => PartitionBy::Range { least, most },
            false => PartitionBy::Hash { least, most },
        };
        let records = [(rows.keys, rows.values), (&keys, &values)];
        let records = records.map(|(keys, values)| Records { keys, values: Some(values) });
        let counters = 2 * column_bytes(n) + starts_bytes();
        partition.launch_at(queue, records, by, &starts, (scratch, counters))?;
        Ok((keys, values))
    }

    fn check(
        &self,
        rows: Pairs<'_>,
        role: &str,
        table: &DeviceBuffer,
        status: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        rows.check(NAME, role)?;
        check_element(NAME, "the status", status, Element::U64)?;
        check_length(NAME, "the status", status, 2)?;
        check_scratch(NAME, scratch, self.scratch_bytes(rows.len()))?;
        let bytes = self.table_bytes();
        if table.bytes() < bytes {
            let message = format!("{NAME}: the table has {} bytes, and {bytes} are needed", table.bytes());
            return Err(GpuError::Contract(message));
        }
        Ok(())
    }
}

/// Bytes of a column of so many rows, as a part of the scratch memory.
fn column_bytes(rows: u64) -> usize {
    (rows as usize * 4).next_multiple_of(PART_BYTES_MIN)
}

/// Bytes of the starts of partitions.
fn starts_bytes() -> usize {
    ((PARTITIONS + 1) * 8).next_multiple_of(PART_BYTES_MIN)
}

/// Bytes of the queues of a block's warps, of `QUEUE_ROWS` rows of three words each.
fn queue_bytes(threads: u32) -> usize {
    (threads / 32 * (32 + 32 * LINEAR_ROWS * VECTOR) * 12) as usize
}

/// The program of all kernels.
fn program(tuning: TableTuning) -> Program {
    let definitions = tuning.tile.text(VECTOR) + &format!("#define WC_SHARED_THREADS {}\n", tuning.shared_threads);
    let text = include_str!("../../kernels/hash_join.cuh");
    Program::new(NAME, [&definitions, KEYS, TILE, KEY_SLOTS, text].concat())
}

/// Sum and number of pairs on the host; of rows of the build side with one key the first counts.
pub fn hash_join(build: &[(u32, u32)], probe: &[(u32, u32)]) -> (u64, u64) {
    let mut table = std::collections::HashMap::new();
    for (key, value) in build {
        table.entry(key).or_insert(value);
    }
    let pairs = probe.iter().filter_map(|(key, value)| Some(u64::from(**table.get(key)?) + u64::from(*value)));
    pairs.fold((0, 0), |(sum, pairs), both| (sum.wrapping_add(both), pairs + 1))
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::prims::roofline::H200;

    use super::*;
    use crate::operators::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        compile_for_gpus(&program(TUNING.value));
    }

    #[test]
    fn range_size_and_selectivity_choose() {
        let spec = |most, build_rows, match_share| JoinSpec {
            range: KeyRange { least: 0, most },
            build_rows,
            probe_rows: 1 << 28,
            match_share,
        };
        let chosen = |spec: JoinSpec| spec.choose(&H200, 8 << 30).0;
        // A dense range is addressed, a wide one hashed.
        assert_eq!(chosen(spec((1 << 20) - 1, 1 << 20, 1.0)), JoinStrategy::DirectAddress);
        assert_eq!(chosen(spec(u32::MAX - 1, 1 << 18, 1.0)), JoinStrategy::LinearProbing);
        // Few matches end at bits, which stay in the cache where values do not.
        let sparse = spec(200_000_000, 1 << 23, 0.01);
        assert_eq!(chosen(sparse), JoinStrategy::DirectAddress);
        assert_ne!(chosen(JoinSpec { match_share: 1.0, ..sparse }), JoinStrategy::DirectAddress);
        // Of a full range as well: probes beyond it look at nothing.
        let full = |match_share| chosen(spec((1 << 26) - 1, 1 << 26, match_share));
        assert_eq!(full(0.1), JoinStrategy::DirectAddress);
        assert_ne!(full(1.0), JoinStrategy::DirectAddress);
        // A limit of memory leaves tables out.
        let (strategy, _, reason) = sparse.choose(&H200, 200 << 20);
        assert!(!strategy.is_direct(), "{reason}");
    }

    /// Milliseconds of 2^28 probes on one H200 (`warpcube-bench primitives`, 2026-11-25), of tables of 2^log slots'
    /// bytes and of values for as many dense keys: all match, or a tenth.
    #[test]
    fn probes_are_predicted_within_a_fifth() {
        use JoinStrategy::{DirectAddress, PartitionedDirectAddress, PartitionedLinearProbing};
        let measured = [
            (14, DirectAddress, [0.479, 0.479]),
            (20, DirectAddress, [1.001, 0.506]),
            (21, DirectAddress, [1.702, 0.536]),
            (26, DirectAddress, [1.893, 0.547]),
            (28, DirectAddress, [3.946, 0.813]),
            (30, DirectAddress, [6.335, 0.995]),
            (24, PartitionedLinearProbing, [3.671, 4.282]),
            (25, PartitionedLinearProbing, [3.845, 4.404]),
            (27, PartitionedLinearProbing, [4.037, 4.560]),
            (29, PartitionedLinearProbing, [4.391, 5.179]),
            (30, PartitionedLinearProbing, [5.502, 6.387]),
            (24, PartitionedDirectAddress, [2.464, 2.722]),
            (27, PartitionedDirectAddress, [3.315, 2.782]),
            (30, PartitionedDirectAddress, [3.867, 2.850]),
        ];
        for (log, strategy, both) in measured {
            for (match_share, ms) in [1.0, 0.1].into_iter().zip(both) {
                let build_rows = 1u64 << (log - 4);
                let range = match strategy.is_direct() {
                    true => KeyRange { least: 0, most: build_rows as u32 - 1 },
                    false => KeyRange { least: 1, most: u32::MAX },
                };
                let spec = JoinSpec { range, build_rows, probe_rows: 1 << 28, match_share };
                let predicted = spec.probe_ms(&H200, strategy);
                let ratio = ms / predicted;
                assert!((1.0 / 1.2..1.2).contains(&ratio), "{strategy:?}, 2^{log}, {match_share}: {ms}, {predicted}");
            }
        }
    }
}
