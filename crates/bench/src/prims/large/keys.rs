//! Primitives that look at keys.

use warpcube_gpu::prims::topk::{Algorithm, TopK, TopKSpec};
use warpcube_gpu::prims::{
    DeviceSlice, Element, Histogram, HistogramBins, Merge, Nulls, PartitionBy, RadixAlgorithm, RadixOrder,
    RadixPartition, RadixSort, RadixTuning, Records, Search, SearchMethod, SearchSide, SegmentedSort, Sort, SortColumn,
    SortKey,
};

use super::{Given, Large};
use crate::operators::hash_group_by::{GroupSpec, GroupStrategy, Groups, HashGroupBy};
use crate::operators::hash_join::{HashJoin, JoinSpec, JoinStrategy};
use crate::operators::key_slots::{KeyRange, Pairs};
use crate::operators::ordered::{RunLengthEncode, Unique};
use crate::stats::Sample;
use crate::suite::Failure;

/// Rows of a segment of the segmented sort, and of a run.
const SEGMENT: u64 = 1000;
const RUN: u64 = 16;
/// Keys that are searched for, and the length of a top-k.
const SEARCHED: u64 = 1 << 20;
const K: u64 = 32;
/// Keys of the join, and groups.
const FEW: u64 = 1000;

pub(super) fn histogram(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, counts, memory) = (large.keys()?, large.room(Element::U64, 256)?, large.scratch(0)?);
    let histogram = Histogram::new(&large.bench.device, Element::U32)?;
    let bins = HistogramBins::Codes { shift: 24, first: 0 };
    let ms = large.time(&[&keys], &[&counts], &memory, |work| histogram.launch(work, &keys, bins, &counts))?;
    large.check("large_counted", large.n, Given { wide: Some(&counts), ..Given::default() }, large.n)?;
    Ok(ms)
}

pub(super) fn radix_sort(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let keys = large.keys()?;
    let [sorted, other] = [large.room(Element::U32, large.n)?, large.room(Element::U32, large.n)?];
    let (expected, order) = (large.hash(&keys, large.n)?, RadixOrder::of(Element::U32, false));
    let [input, output, third] = [&keys, &sorted, &other].map(|keys| Records { keys, values: None });
    let mut ms = Sample::default();
    for algorithm in [RadixAlgorithm::Msd, RadixAlgorithm::Lsd] {
        let device = large.bench.device.clone();
        let tuning = RadixTuning::of(device.info().shared_memory_per_block, Element::U32, None);
        let sort = RadixSort::with_algorithm(&device, Element::U32, None, algorithm, tuning)?;
        let memory = large.scratch(sort.scratch_bytes(large.n))?;
        let written = [&sorted, &other];
        ms =
            large.time(&[&keys], &written, &memory, |work| sort.launch(work, input, output, third, &order, &memory))?;
        large.check("large_sorted", large.n, Given { input: Some(&sorted), ..Given::default() }, expected)?;
    }
    Ok(ms)
}

pub(super) fn sort(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    // Every 16th row has a key, the others have NULL.
    let (keys, valid) = (large.keys()?, large.made("large_flags", Element::U8, large.n, 0)?);
    let rows = large.room(Element::U64, large.n)?;
    let column = SortColumn { nulls: Nulls::Last, ..SortColumn::of(Element::U32) };
    let sort = Sort::new(&large.bench.device, &[column], Some(Element::U64))?;
    let memory = large.scratch(sort.scratch_bytes(large.n))?;
    let key = SortKey { values: &keys, valid: Some(&valid) };
    let ms = large.time(&[&keys, &valid], &[&rows], &memory, |work| sort.launch(work, &[key], Some(&rows), &memory))?;
    large.check(
        "large_sorted_rows",
        large.n,
        Given { input: Some(&keys), wide: Some(&rows), ..Given::default() },
        0,
    )?;
    Ok(ms)
}

pub(super) fn segmented_sort(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let keys = large.keys()?;
    segmented_sort_of(large, &keys)
}

/// Measures a sort of segments, and verifies that each has the keys that [`Large::keys`] has there.
pub(super) fn segmented_sort_of(large: &mut Large<'_, '_>, keys: &DeviceSlice) -> Result<Sample, Failure> {
    let (starts, segments) = large.offsets(SEGMENT)?;
    let [sorted, other] = [large.room(Element::U32, large.n)?, large.room(Element::U32, large.n)?];
    let sort = SegmentedSort::new(&large.bench.device, Element::U32, None, Element::U64)?;
    let memory = large.scratch(sort.scratch_bytes(large.n, segments))?;
    let order = RadixOrder::of(Element::U32, false);
    let [input, output, third] = [keys, &sorted, &other].map(|keys| Records { keys, values: None });
    let ms = large.time(&[keys, &starts], &[&sorted, &other], &memory, |work| {
        sort.launch(work, input, output, third, &starts, &order, &memory)
    })?;
    let (all, given) = (large.keys()?, Given { other: SEGMENT, ..Given::default() });
    let [_, expected] = large.kernel("large_hash", large.n, Given { input: Some(&all), ..given })?;
    large.check("large_sorted", large.n, Given { input: Some(&sorted), ..given }, expected)?;
    Ok(ms)
}

pub(super) fn merge(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    // Even and odd numbers.
    let [even, odd] = [large.n.div_ceil(2), large.n / 2];
    let first = large.made("large_steps", Element::U32, even, 0)?;
    let second = large.made("large_steps", Element::U32, odd, 1)?;
    let out = large.room(Element::U32, large.n)?;
    let merge = Merge::new(&large.bench.device, Element::U32, None)?;
    let memory = large.scratch(merge.scratch_bytes(large.n))?;
    let [a, b, output] = [&first, &second, &out].map(|keys| Records { keys, values: None });
    let read = [&first, &second];
    let ms = large.time(&read, &[&out], &memory, |work| merge.launch(work, [a, b], output, false, &memory))?;
    large.check("large_merged", large.n, Given { input: Some(&out), ..Given::default() }, 0)?;
    Ok(ms)
}

pub(super) fn search(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let sorted = large.made("large_runs", Element::U32, large.n, 1)?;
    let keys = large.made("large_backwards", Element::U32, large.n, 0)?.part(0, SEARCHED.min(large.n))?;
    let (places, memory) = (large.room(Element::U64, keys.len())?, large.scratch(0)?);
    let search = Search::new(&large.bench.device, Element::U32, Element::U64)?;
    let mut ms = Sample::default();
    for method in [SearchMethod::Binary, SearchMethod::Pary] {
        ms = large.time(&[&sorted, &keys], &[&places], &memory, |work| {
            search.launch(work, &sorted, false, &keys, SearchSide::Lower, &places, method)
        })?;
        let given = Given { input: Some(&keys), wide: Some(&places), ..Given::default() };
        large.check("large_searched", keys.len(), given, 0)?;
    }
    Ok(ms)
}

pub(super) fn ordered(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (n, keys) = (large.n, large.made("large_runs", Element::U32, large.n, RUN)?);
    let expected = n.div_ceil(RUN);
    let (out, counts) = (large.room(Element::U32, expected)?, large.room(Element::U64, expected)?);
    let runs = large.room(Element::U64, 1)?;
    let encode = RunLengthEncode::new(&large.bench.device, Element::U32, Element::U64)?;
    let memory = large.scratch(encode.scratch_bytes(n))?;
    let written = [&out, &counts, &runs];
    let ms =
        large.time(&[&keys], &written, &memory, |work| encode.launch(work, &keys, [&out, &counts], &runs, &memory))?;
    large.expect("the runs", &runs, 0, expected)?;
    let last = n - (expected - 1) * RUN;
    let given = Given { words: Some(&out), wide: Some(&counts), other: last, ..Given::default() };
    large.check("large_encoded", expected, given, 0)?;
    Ok(ms)
}

pub(super) fn unique(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (n, keys) = (large.n, large.made("large_runs", Element::U32, large.n, RUN)?);
    let (out, runs) = (large.room(Element::U32, n.div_ceil(RUN))?, large.room(Element::U64, 1)?);
    let unique = Unique::new(&large.bench.device, Element::U32)?;
    let memory = large.scratch(unique.scratch_bytes(n))?;
    let ms = large.time(&[&keys], &[&out, &runs], &memory, |work| unique.launch(work, &keys, &out, &runs, &memory))?;
    large.expect("the runs", &runs, 0, n.div_ceil(RUN))?;
    // Keys of runs are their numbers.
    large.check("large_merged", n.div_ceil(RUN), Given { input: Some(&out), ..Given::default() }, 0)?;
    Ok(ms)
}

pub(super) fn radix_partition(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (n, keys) = (large.n, large.keys()?);
    let values = large.made("large_backwards", Element::U32, n, 0)?;
    let [keys_out, values_out] = [large.room(Element::U32, n)?, large.room(Element::U32, n)?];
    let starts = large.room(Element::U64, 257)?;
    let partition = RadixPartition::new(&large.bench.device, Element::U32, Some(Element::U32))?;
    let memory = large.scratch(partition.scratch_bytes())?;
    let records = [(&keys, &values), (&keys_out, &values_out)];
    let (records, by) =
        (records.map(|(keys, values)| Records { keys, values: Some(values) }), PartitionBy::place(Element::U32));
    let written = [&keys_out, &values_out, &starts];
    let ms = large
        .time(&[&keys, &values], &written, &memory, |work| partition.launch(work, records, by, &starts, &memory))?;
    let given = Given { input: Some(&keys), second: Some(&values), ..Given::default() };
    let [_, expected] = large.kernel("large_hash", n, given)?;
    let given = Given { input: Some(&keys_out), second: Some(&values_out), wide: Some(&starts), ..Given::default() };
    large.check("large_partitions", n, given, expected)?;
    Ok(ms)
}

pub(super) fn hash_join(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let n = large.n;
    // The key of a build row is its number, its value that of the row as far from the end; a probe row has the key of
    // its number modulo the build rows.
    let build_keys = large.made("large_modulo", Element::U32, FEW, FEW)?;
    let build_values = large.made("large_backwards", Element::U32, FEW, 0)?;
    let [keys, values] = [large.made("large_modulo", Element::U32, n, FEW)?, large.keys()?];
    let [status, out] = [large.room(Element::U64, 2)?, large.room(Element::U64, 2)?];
    let range = KeyRange { least: 0, most: FEW as u32 - 1 };
    let spec = JoinSpec { range, build_rows: FEW, probe_rows: n, match_share: 1.0 };
    let expected = (n * (FEW - 1) - large.sum(&keys)?).wrapping_add(large.sum(&values)?);
    let mut ms = Sample::default();
    for strategy in JoinStrategy::ALL {
        let join = HashJoin::new(&large.bench.device, spec, strategy)?;
        let (table, memory) = (large.scratch(join.table_bytes())?, large.scratch(join.scratch_bytes(n))?);
        let rows = Pairs { keys: &build_keys, values: &build_values };
        join.build(&mut large.bench.stream, rows, &table, &status, &memory)?;
        let rows = Pairs { keys: &keys, values: &values };
        let read = [keys.buffer(), values.buffer(), &table, status.buffer()];
        let written = [out.buffer(), &memory];
        ms = large.bench.time(&read, &written, |work| join.probe(work, rows, [&table, &memory], &status, &out))?;
        large.expect("the sum", &out, 0, expected)?;
        large.expect("the pairs", &out, 1, n)?;
    }
    Ok(ms)
}

pub(super) fn hash_group_by(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let [keys, values] = grouped(large)?;
    hash_group_by_of(large, [&keys, &values])
}

/// Keys of so few groups, and values that differ from them.
pub(super) fn grouped(large: &mut Large<'_, '_>) -> Result<[DeviceSlice; 2], Failure> {
    let n = large.n;
    Ok([large.made("large_modulo", Element::U32, n, FEW)?, large.made("large_backwards", Element::U32, n, 0)?])
}

/// Measures sums by key, and verifies them against the columns of [`grouped`].
pub(super) fn hash_group_by_of(
    large: &mut Large<'_, '_>,
    [keys, values]: [&DeviceSlice; 2],
) -> Result<Sample, Failure> {
    let n = large.n;
    let [out, sums] = [large.room(Element::U32, FEW)?, large.room(Element::U64, FEW)?];
    let status = large.room(Element::U64, 2)?;
    let spec = GroupSpec { rows: n, groups: FEW, is_ordered: false };
    let mut ms = Sample::default();
    for strategy in [GroupStrategy::DeviceTable, GroupStrategy::SortedRows, GroupStrategy::PrivateTables] {
        let aggregation = HashGroupBy::new(&large.bench.device, spec, strategy)?;
        let memory = large.scratch(aggregation.scratch_bytes(n))?;
        let groups = Groups { keys: &out, sums: &sums, status: &status };
        let (rows, written) = (Pairs { keys, values }, [&out, &sums, &status]);
        ms = large.time(&[keys, values], &written, &memory, |work| aggregation.launch(work, rows, groups, &memory))?;
        large.expect("the groups", &status, 0, FEW)?;
        large.expect("the lost rows", &status, 1, 0)?;
        let given = Given { words: Some(&out), wide: Some(&sums), ..Given::default() };
        large.check("large_grouped", FEW, given, FEW * (FEW - 1) / 2)?;
    }
    Ok(ms)
}

pub(super) fn top_k(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let keys = large.keys()?;
    let [out, rows] = [large.room(Element::U32, K)?, large.room(Element::U64, K)?];
    let mut ms = Sample::default();
    for algorithm in Algorithm::ALL.into_iter().rev() {
        let top = TopK::new(&large.bench.device, &TopKSpec::new(Element::U32, K, algorithm))?;
        let memory = large.scratch(top.scratch_bytes(large.n))?;
        ms = large.time(&[&keys], &[&out, &rows], &memory, |work| top.launch(work, &keys, &out, &rows, &memory))?;
        let given = Given { input: Some(&keys), words: Some(&out), wide: Some(&rows), ..Given::default() };
        large.check("large_top", K, given, 0)?;
        // Keys are distinct: all but the k wanted ones are below the last of these.
        let last = large.word32(&out, K - 1)?;
        let given = Given { input: Some(&keys), other: last, ..Given::default() };
        large.check("large_below", large.n, given, large.n - K)?;
    }
    Ok(ms)
}
