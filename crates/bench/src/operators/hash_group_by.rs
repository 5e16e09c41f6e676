//! Hash aggregation: the sum of the values of each key, groups in any order.
//!
//! Few groups are summed in a table of each block's shared memory; more in one table in device memory, as long as the
//! L2 cache holds it. Rows of more groups are sorted, and ordered rows need no table ([`OrderedAggregation`]).
//! [`GroupSpec::choose`] takes the strategy that the roofline predicts to be the fastest.

use warpcube_gpu::prims::roofline::DeviceRates;
use warpcube_gpu::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use warpcube_gpu::prims::{
    DeviceSlice, Element, KEYS, Measured, Queue, RadixAlgorithm, RadixOrder, RadixSort, Records, check_element,
    check_length, check_scratch,
};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, LaunchShape, PART_BYTES_MIN, Params, Program, Result};

use super::key_slots::{KEY_SLOTS, KeyRange, KeySlots, Pairs, TableTuning};
use super::ordered::{OrderedAggregation, OrderedForm, OrderedOperands};
use super::roofline::Roofline;

const NAME: &str = "hash_group_by";
/// Items of 16 bytes.
const VECTOR: u32 = vector_items(4);
/// Bytes of a slot in device memory.
const SLOT_BYTES: usize = 16;
/// The most slots of a table.
const SLOTS_LOG_MAX: u32 = 32;
/// Sums of a key in a private table at most: one a lane.
const COLUMNS_MAX: usize = 32;
/// Threads of a block that writes groups, and its slots of a thread.
const OUT_THREADS: u32 = 512;
const OUT_SLOTS: u64 = 8;
/// What an aggregation of ordered input computes.
const ORDERED: OrderedForm = OrderedForm { key: Element::U32, count: None, sum: Some((Element::U32, Element::U64)) };

/// The tuning.
pub const TUNING: Measured<TableTuning> = Measured {
    value: TableTuning { tile: TileTuning { threads: 256, rows: 2, blocks: 4 }, shared_threads: 1024 },
    device: "NVIDIA H200",
    date: "2026-11-23",
    figure: "2^28 rows of 10 and of 10^6 groups: 2.11 and 6.74 ms, others to 3.89 and 9.16 ms",
};

/// Where groups are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupStrategy {
    /// Neighbours with one key are a group. For ordered input alone.
    Ordered,
    /// In a table of each block's shared memory, then in one of device memory. For thousands of groups.
    PrivateTables,
    /// In one table of device memory, rows of a warp with one key at once. For tables in the L2 cache.
    DeviceTable,
    /// Rows are sorted first. For more groups, and any distribution of keys.
    SortedRows,
}

/// What is known of an aggregation before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSpec {
    /// Rows, expected.
    pub rows: u64,
    /// Groups at most.
    pub groups: u64,
    /// Whether equal keys are neighbours.
    pub is_ordered: bool,
}

/// Outputs of a launch. Groups that do not fit into the shorter of keys and sums are counted and not written.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// The key of each group, [`Element::U32`].
    pub keys: &'a DeviceSlice,
    /// Its sum modulo 2^64, [`Element::U64`].
    pub sums: &'a DeviceSlice,
    /// Two of [`Element::U64`]: the number of groups, and a number above 0 if any row found no slot, since there are
    /// more groups than the table has slots; sums are wrong then.
    pub status: &'a DeviceSlice,
}

/// A table in shared memory: the logarithm of its slots, and sums of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PrivateTable {
    log: u32,
    columns: usize,
}

impl GroupSpec {
    /// Slots of the table: a power of two, a quarter of them empty at least, and one in any case.
    fn slots_log(&self) -> u32 {
        let slots = self.groups.max(1).saturating_mul(4).div_ceil(3).max(2);
        (64 - (slots - 1).leading_zeros()).min(SLOTS_LOG_MAX)
    }

    /// Bytes of the table in device memory.
    fn table_bytes(&self) -> usize {
        SLOT_BYTES << self.slots_log()
    }

    /// The private table of a block with so much shared memory, if one holds all groups.
    fn private_table(&self, shared_bytes: usize) -> Option<PrivateTable> {
        let log = self.slots_log();
        let bytes = |columns: usize| (4 + 8 * columns) << log.min(32);
        let mut columns = COLUMNS_MAX;
        while columns > 1 && bytes(columns) > shared_bytes {
            columns /= 2;
        }
        (bytes(columns) <= shared_bytes).then_some(PrivateTable { log, columns })
    }

    /// Milliseconds that rows of random groups need; none if the strategy cannot take the spec.
    pub fn predict_ms(&self, rates: &DeviceRates, strategy: GroupStrategy) -> Option<f64> {
        let (rows, streamed, groups) = (self.rows as f64, 8.0 * self.rows as f64, self.groups as f64);
        let table = self.table_bytes() as f64;
        let out_ms = rates.stream_ms(0.0, 12.0 * self.groups.min(self.rows) as f64);
        Some(match strategy {
            GroupStrategy::Ordered => {
                self.is_ordered.then(|| rates.ordered_ms(self.rows, 8, self.groups.min(self.rows), 12))?
            }
            GroupStrategy::PrivateTables => {
                self.private_table(rates.shared_bytes.value)?;
                rates.private_add_ms(rows, groups, streamed) + out_ms
            }
            GroupStrategy::DeviceTable => rates.add_ms(rows, groups, table, streamed) + out_ms,
            GroupStrategy::SortedRows => {
                let passes = RadixOrder::of(Element::U32, false).passes().0;
                let ordered_ms = rates.ordered_ms(self.rows, 8, self.groups.min(self.rows), 12);
                rates.sorted_ms(RadixAlgorithm::Lsd, self.rows, 4, 8, passes) + ordered_ms
            }
        })
    }

    /// The strategy with the least predicted time, its milliseconds, and words for EXPLAIN.
    pub fn choose(&self, rates: &DeviceRates) -> (GroupStrategy, f64, String) {
        let all = GroupStrategy::ALL.into_iter();
        let mut ranked: Vec<(GroupStrategy, f64)> =
            all.filter_map(|strategy| Some((strategy, self.predict_ms(rates, strategy)?))).collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ((strategy, ms), (next, next_ms)) = (ranked[0], ranked[1]);
        let GroupSpec { rows, groups, .. } = self;
        let reason =
            format!("{strategy:?}: {rows} rows, {groups} groups, {ms:.3} ms predicted; {next:?} {next_ms:.3} ms");
        (strategy, ms, reason)
    }
}

impl GroupStrategy {
    /// All of them.
    pub const ALL: [GroupStrategy; 4] =
        [GroupStrategy::Ordered, GroupStrategy::PrivateTables, GroupStrategy::DeviceTable, GroupStrategy::SortedRows];
}

/// A hash aggregation on a device.
#[derive(Clone)]
pub struct HashGroupBy {
    spec: GroupSpec,
    tuning: TableTuning,
    multiprocessors: u32,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Ordered { sort: Option<RadixSort>, ordered: OrderedAggregation },
    Table { add: Kernel, out: Kernel, private: Option<PrivateTable> },
}

impl HashGroupBy {
    /// Compiles the kernels of a strategy.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for [`GroupStrategy::Ordered`] where input is not, and for more groups than a private
    /// table holds; those of [`Device::compile`].
    pub fn new(device: &Device, spec: GroupSpec, strategy: GroupStrategy) -> Result<HashGroupBy> {
        HashGroupBy::with_tuning(device, spec, strategy, TUNING.value)
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`HashGroupBy::new`].
    pub fn with_tuning(
        device: &Device,
        spec: GroupSpec,
        strategy: GroupStrategy,
        tuning: TableTuning,
    ) -> Result<HashGroupBy> {
        let multiprocessors = device.info().multiprocessors;
        if strategy == GroupStrategy::Ordered && !spec.is_ordered {
            return Err(GpuError::Contract(format!("{NAME}: {} rows are not ordered by their keys", spec.rows)));
        }
        if matches!(strategy, GroupStrategy::Ordered | GroupStrategy::SortedRows) {
            let sort = match strategy {
                GroupStrategy::SortedRows => Some(RadixSort::new(device, Element::U32, Some(Element::U32))?),
                _ => None,
            };
            let way = Way::Ordered { sort, ordered: OrderedAggregation::new(device, ORDERED)? };
            return Ok(HashGroupBy { spec, tuning, multiprocessors, way });
        }
        let module = device.compile(&program(tuning))?;
        let (add, private) = match strategy {
            GroupStrategy::PrivateTables => {
                let bytes = device.info().shared_memory_per_block;
                let table = spec.private_table(bytes).ok_or_else(|| {
                    let message = format!("{NAME}: {} groups do not fit into {bytes} bytes of a block", spec.groups);
                    GpuError::Contract(message)
                })?;
                ("hash_group_by_private", Some(table))
            }
            _ => ("hash_group_by_rows", None),
        };
        let (add, out) = (module.kernel(add)?, module.kernel("hash_group_by_out")?);
        Ok(HashGroupBy { spec, tuning, multiprocessors, way: Way::Table { add, out, private } })
    }

    /// Bytes of scratch memory for so many rows: the table, or sorted rows and as many others where they are sorted.
    pub fn scratch_bytes(&self, rows: u64) -> usize {
        match &self.way {
            Way::Table { .. } => self.spec.table_bytes(),
            Way::Ordered { sort, ordered } => {
                let sorted = sort.as_ref().map(|sort| shared_head(sort, ordered, rows) + 4 * column_bytes(rows));
                sorted.unwrap_or_else(|| ordered.scratch_bytes(rows))
            }
        }
    }

    /// Writes the groups of the rows.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, and too little scratch memory.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        rows: Pairs<'_>,
        groups: Groups<'_>,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let Groups { keys, sums, status } = groups;
        rows.check(NAME, "the input's")?;
        check_element(NAME, "the keys of groups", keys, Element::U32)?;
        check_element(NAME, "the sums of groups", sums, Element::U64)?;
        check_element(NAME, "the status", status, Element::U64)?;
        check_length(NAME, "the status", status, 2)?;
        check_scratch(NAME, scratch, self.scratch_bytes(rows.len()))?;
        queue.fill(status.buffer(), status.offset(), 0, 16)?;
        let (add, out, private) = match &self.way {
            Way::Ordered { sort: None, ordered } => return aggregate(queue, ordered, rows, groups, scratch),
            Way::Ordered { sort: Some(sort), ordered } => {
                return sort_and_aggregate(queue, sort, ordered, rows, groups, scratch);
            }
            Way::Table { add, out, private } => (add, out, *private),
        };
        let n = rows.len();
        if n == 0 {
            return Ok(());
        }
        queue.fill(scratch, 0, 0, self.spec.table_bytes())?;
        let aligned = are_aligned(&[rows.keys, rows.values], VECTOR);
        let params = Params::new().slice(rows.keys).slice(rows.values).u64(n).u64(aligned.into());
        let slots = KeySlots::hashed(KeyRange::ALL, self.spec.slots_log());
        let params = slots.params(params).buffer(scratch).slice(&status.part(1, 1)?);
        let PrivateTable { log, columns } = private.unwrap_or(PrivateTable { log: 0, columns: 0 });
        let params = params.u64(log.into()).u64(columns as u64);
        queue.launch(add, self.add_shape(n, private), &params)?;

        let slots = 1u64 << self.spec.slots_log();
        let capacity = keys.len().min(sums.len());
        let params = Params::new().buffer(scratch).u64(slots).slice(keys).slice(sums).u64(capacity).slice(status);
        let grid = slots.div_ceil(u64::from(OUT_THREADS) * OUT_SLOTS) as u32;
        queue.launch(out, LaunchShape { grid, block: OUT_THREADS, shared_bytes: 32 * 4 + 16 }, &params)
    }

    /// Blocks that fill the device.
    fn add_shape(&self, n: u64, private: Option<PrivateTable>) -> LaunchShape {
        let TileTuning { threads, rows, blocks } = self.tuning.tile;
        let (block, blocks, shared_bytes) = match private {
            Some(PrivateTable { log, columns }) => (self.tuning.shared_threads, 1, (4 + 8 * columns as u32) << log),
            None => (threads, blocks, 0),
        };
        let step = u64::from(block) * u64::from(rows) * u64::from(VECTOR);
        let grid = n.div_ceil(step).min(u64::from(self.multiprocessors * blocks)) as u32;
        LaunchShape { grid, block, shared_bytes }
    }
}

/// Bytes of a column of so many rows, as a part of the scratch memory.
fn column_bytes(rows: u64) -> usize {
    (rows as usize * 4).next_multiple_of(PART_BYTES_MIN)
}

/// Bytes of the scratch memory that the sort has first and the aggregation after it.
fn shared_head(sort: &RadixSort, ordered: &OrderedAggregation, rows: u64) -> usize {
    sort.scratch_bytes(rows).max(ordered.scratch_bytes(rows)).next_multiple_of(PART_BYTES_MIN)
}

/// The groups of ordered rows.
fn aggregate(
    queue: &mut impl Queue,
    ordered: &OrderedAggregation,
    rows: Pairs<'_>,
    groups: Groups<'_>,
    scratch: &DeviceBuffer,
) -> Result<()> {
    let (values, sums, runs) = (Some(rows.values), Some(groups.sums), &groups.status.part(0, 1)?);
    let operands = OrderedOperands { keys: rows.keys, values, keys_out: groups.keys, counts: None, sums, runs };
    ordered.launch(queue, &operands, scratch)
}

/// The same of rows in any order.
fn sort_and_aggregate(
    queue: &mut impl Queue,
    sort: &RadixSort,
    ordered: &OrderedAggregation,
    rows: Pairs<'_>,
    groups: Groups<'_>,
    scratch: &DeviceBuffer,
) -> Result<()> {
    let (n, column) = (rows.len(), column_bytes(rows.len()));
    let head = shared_head(sort, ordered, n);
    let part = |at: usize| DeviceSlice::new(scratch, head + at * column, Element::U32, n);
    let [keys, values, other_keys, other_values] = [part(0)?, part(1)?, part(2)?, part(3)?];
    let input = Records { keys: rows.keys, values: Some(rows.values) };
    let output = Records { keys: &keys, values: Some(&values) };
    let other = Records { keys: &other_keys, values: Some(&other_values) };
    sort.launch(queue, input, output, other, &RadixOrder::of(Element::U32, false), scratch)?;
    aggregate(queue, ordered, Pairs { keys: &keys, values: &values }, groups, scratch)
}

/// The program of all kernels.
fn program(tuning: TableTuning) -> Program {
    let definitions = format!(
        "{}#define WC_SHARED_THREADS {}\n#define WC_OUT_THREADS {OUT_THREADS}\n",
        tuning.tile.text(VECTOR),
        tuning.shared_threads
    );
    let text = include_str!("../../kernels/hash_group_by.cuh");
    Program::new(NAME, [&definitions, KEYS, TILE, KEY_SLOTS, text].concat())
}

/// The groups on the host, by key.
pub fn hash_group_by(rows: &[(u32, u32)]) -> Vec<(u32, u64)> {
    let mut groups = std::collections::BTreeMap::<u32, u64>::new();
    for (key, value) in rows {
        let sum = groups.entry(*key).or_default();
        *sum = sum.wrapping_add((*value).into());
    }
    groups.into_iter().collect()
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
    fn groups_choose() {
        let chosen = |groups, is_ordered| GroupSpec { rows: 1 << 28, groups, is_ordered }.choose(&H200).0;
        assert_eq!(chosen(10, false), GroupStrategy::PrivateTables);
        assert_eq!(chosen(10_000, false), GroupStrategy::PrivateTables);
        assert_eq!(chosen(1_000_000, false), GroupStrategy::DeviceTable);
        assert_eq!(chosen(100_000_000, false), GroupStrategy::SortedRows);
        assert_eq!(chosen(100_000_000, true), GroupStrategy::Ordered);
    }

    /// Milliseconds of 2^28 rows on one H200 (`warpcube-bench primitives`, 2026-11-26), by groups that were asked for.
    #[test]
    fn groups_are_predicted_within_three_tenths() {
        use GroupStrategy::{DeviceTable, Ordered, PrivateTables, SortedRows};
        type Times<'a> = &'a [(GroupStrategy, f64)];
        let measured: [(u64, bool, Times); 5] = [
            (10, false, &[(PrivateTables, 2.110), (DeviceTable, 107.959), (SortedRows, 7.745)]),
            (10_000, false, &[(PrivateTables, 3.789), (DeviceTable, 10.973), (SortedRows, 8.079)]),
            (1_000_000, false, &[(DeviceTable, 6.734), (SortedRows, 8.411)]),
            (100_000_000, false, &[(DeviceTable, 27.380), (SortedRows, 8.968)]),
            (100_000_000, true, &[(Ordered, 0.958)]),
        ];
        for (groups, is_ordered, strategies) in measured {
            let spec = GroupSpec { rows: 1 << 28, groups, is_ordered };
            for (strategy, ms) in strategies {
                let predicted = spec.predict_ms(&H200, *strategy).unwrap();
                assert!((1.0 / 1.3..1.3).contains(&(ms / predicted)), "{groups}, {strategy:?}: {ms} and {predicted}");
            }
            // The choice is the strategy that was the fastest.
            let fastest = strategies.iter().min_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
            assert_eq!(spec.choose(&H200).0, fastest.0, "{groups}");
        }
    }

    #[test]
    fn tables_have_an_empty_slot() {
        for (groups, log) in [(0, 1), (1, 1), (3, 2), (4, 3), (12, 4), (13, 5), (1 << 31, 32), (u64::MAX, 32)] {
            assert_eq!(GroupSpec { rows: 1, groups, is_ordered: false }.slots_log(), log, "{groups}");
        }
    }
}
