//! Defaults on a device whose blocks have 99 KB of shared memory (sm_86, 89 and 120), the least of those supported.

use warpcube_gpu::prims::radix_partition::{PARTITIONS, radix_partition};
use warpcube_gpu::prims::topk::{Algorithm, TopK, TopKSpec, check};
use warpcube_gpu::prims::{
    DeviceRates, DeviceSlice, Element, GroupSpec, GroupStrategy, HashGroupBy, HashJoin, JoinSpec, JoinStrategy,
    KeyRange, Merge, OrderedAggregation, OrderedForm, OrderedOperands, Pairs, PartitionBy, RadixOrder, RadixPartition,
    Records, SegmentedSort, Sort, SortColumn, SortKey, hash_group_by, hash_join, segmented_sort,
};
use warpcube_gpu::{Device, EmulatorOptions};

use crate::common::{given, noise, room, scratch, spoilt, taken};
use crate::emulated_support::{BUDGET, Rig};

fn small() -> Rig {
    let options = EmulatorOptions { shared_memory_per_block: 99 << 10, ..EmulatorOptions::default() };
    let device = Device::emulated(options, BUDGET).unwrap();
    let stream = device.stream().unwrap();
    Rig { device, stream }
}

#[test]
fn segments_of_four_bytes_are_sorted() {
    let mut rig = small();
    // Packs of small segments, one that fills a block, and one of several tiles.
    let sizes = (0..40).map(|size| size * 5).chain([3000, 9000]);
    let ends = sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
    let rows = offsets[offsets.len() - 1];
    let keys: Vec<u32> = noise(3).map(|x| x as u32).take(rows as usize).collect();
    let sort = SegmentedSort::new(&rig.device, Element::U32, None, Element::U64).unwrap();
    let places = [rig.upload(&keys), spoilt(&mut rig, &keys)].map(|buffer| DeviceSlice::all(&buffer, Element::U32));
    let [records, other] = places.each_ref().map(|keys| Records { keys, values: None });
    let bounds = given(&mut rig, Element::U64, &offsets);
    let memory = scratch(&rig, sort.scratch_bytes(rows, bounds.len() - 1));
    let order = RadixOrder::of(Element::U32, false);
    sort.launch_in_place(&mut rig.stream, records, other, &bounds, &order, &memory).unwrap();
    let expected = segmented_sort::reference(&keys, &offsets, &order);
    assert!(taken::<u32>(&mut rig, &places[0]).into_iter().eq(expected.iter().map(|row| keys[*row as usize])));
}

#[test]
fn rows_are_partitioned() {
    let mut rig = small();
    let keys: Vec<u32> = noise(4).map(|x| x as u32).take(20_000).collect();
    let (input, out) = (given(&mut rig, Element::U32, &keys), room(&rig, Element::U32, 20_000));
    let (numbers, starts) = (room(&rig, Element::U32, 20_000), room(&rig, Element::U64, PARTITIONS + 1));
    let partition = RadixPartition::new(&rig.device, Element::U32, Some(Element::U32)).unwrap();
    let memory = scratch(&rig, partition.scratch_bytes());
    let records = [Records { keys: &input, values: None }, Records { keys: &out, values: Some(&numbers) }];
    let by = PartitionBy::hash(Element::U32);
    partition.launch(&mut rig.stream, records, by, &starts, &memory).unwrap();
    let starts = taken::<u64>(&mut rig, &starts);
    let (found, numbers) = (taken::<u32>(&mut rig, &out), taken::<u32>(&mut rig, &numbers));
    assert!(found.iter().zip(&numbers).all(|(key, row)| keys[*row as usize] == *key));
    for (at, expected) in radix_partition(&keys, by).unwrap().into_iter().enumerate() {
        let mut rows = numbers[starts[at] as usize..starts[at + 1] as usize].to_vec();
        rows.sort_unstable();
        assert!(rows.into_iter().map(u64::from).eq(expected), "partition {at}");
    }
}

#[test]
fn partitioned_sides_are_joined() {
    let mut rig = small();
    let build: Vec<(u32, u32)> = (0..3000).map(|row| (row * 2, row + 7)).collect();
    let probe: Vec<(u32, u32)> = noise(5).map(|x| ((x % 6000) as u32, (x >> 40) as u32)).take(9000).collect();
    let range = KeyRange { least: 0, most: 5999 };
    let spec = JoinSpec { range, build_rows: 3000, probe_rows: 9000, match_share: 0.5 };
    for strategy in [JoinStrategy::PartitionedLinearProbing, JoinStrategy::PartitionedDirectAddress] {
        let join = HashJoin::new(&rig.device, spec, strategy).unwrap();
        let sides = [&build, &probe].map(|side| {
            let columns: [Vec<u32>; 2] =
                [side.iter().map(|row| row.0).collect(), side.iter().map(|row| row.1).collect()];
            columns.map(|column| given(&mut rig, Element::U32, &column))
        });
        let [build_rows, probe_rows] = sides.each_ref().map(|[keys, values]| Pairs { keys, values });
        let (table, memory) = (scratch(&rig, join.table_bytes()), scratch(&rig, join.scratch_bytes(9000)));
        let (status, out) = (room(&rig, Element::U64, 2), room(&rig, Element::U64, 2));
        join.build(&mut rig.stream, build_rows, &table, &status, &memory).unwrap();
        join.probe(&mut rig.stream, probe_rows, [&table, &memory], &status, &out).unwrap();
        let (sum, pairs) = hash_join::hash_join(&build, &probe);
        assert_eq!(taken::<u64>(&mut rig, &out), [sum, pairs], "{strategy:?}");
    }
}

#[test]
fn first_rows_are_found() {
    let mut rig = small();
    let keys: Vec<f32> = noise(6).map(|x| (x % 5000) as f32).take(40_000).collect();
    // Sorted in one block, and by buckets.
    for (k, algorithm) in [(100, Algorithm::Threshold), (5000, Algorithm::Threshold), (5000, Algorithm::RadixSelect)] {
        let spec = TopKSpec::new(Element::F32, k, algorithm);
        let top = TopK::new(&rig.device, &spec).unwrap();
        let input = given(&mut rig, Element::F32, &keys);
        let (out_keys, out_rows) = (room(&rig, Element::F32, k as usize), room(&rig, Element::U64, k as usize));
        let memory = scratch(&rig, top.scratch_bytes(40_000));
        top.launch(&mut rig.stream, &input, &out_keys, &out_rows, &memory).unwrap();
        let (found, rows) = (taken::<f32>(&mut rig, &out_keys), taken::<u64>(&mut rig, &out_rows));
        check(&keys, k, spec.order, spec.ties, &found, &rows).unwrap_or_else(|reason| panic!("{algorithm}: {reason}"));
    }
}

#[test]
fn rows_are_sorted_and_columns_merged() {
    let mut rig = small();
    let keys: Vec<u32> = noise(7).map(|x| x as u32 % 3000).take(20_000).collect();
    let values = given(&mut rig, Element::U32, &keys);
    let sort = Sort::new(&rig.device, &[SortColumn::of(Element::U32)], Element::U32).unwrap();
    let (rows, memory) = (room(&rig, Element::U32, 20_000), scratch(&rig, sort.scratch_bytes(20_000)));
    let key = SortKey { values: &values, valid: None };
    sort.launch(&mut rig.stream, &[key], &rows, &memory).unwrap();
    let mut expected: Vec<u32> = (0..20_000).collect();
    expected.sort_by_key(|row| keys[*row as usize]);
    assert_eq!(taken::<u32>(&mut rig, &rows), expected);

    let mut halves = [keys[..9000].to_vec(), keys[9000..].to_vec()];
    halves.iter_mut().for_each(|half| half.sort_unstable());
    let sides = halves.each_ref().map(|half| given(&mut rig, Element::U32, half));
    let merge = Merge::new(&rig.device, Element::U32, None).unwrap();
    let (out, memory) = (room(&rig, Element::U32, 20_000), scratch(&rig, merge.scratch_bytes(20_000)));
    let [a, b, output] = [&sides[0], &sides[1], &out].map(|keys| Records { keys, values: None });
    merge.launch(&mut rig.stream, [a, b], output, false, &memory).unwrap();
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(taken::<u32>(&mut rig, &out), sorted);
}

#[test]
fn ordered_rows_are_aggregated() {
    let mut rig = small();
    let rows: Vec<(u32, u32)> = (0..20_000u32).zip(noise(8)).map(|(row, x)| (row / 7, x as u32)).collect();
    let columns: [Vec<u32>; 2] = [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
    let [keys, values] = columns.map(|column| given(&mut rig, Element::U32, &column));
    let form = OrderedForm { key: Element::U32, count: None, sum: Some((Element::U32, Element::U64)) };
    let aggregation = OrderedAggregation::new(&rig.device, form).unwrap();
    let groups = hash_group_by::hash_group_by(&rows);
    let (keys_out, sums) = (room(&rig, Element::U32, groups.len()), room(&rig, Element::U64, groups.len()));
    let (runs, memory) = (room(&rig, Element::U64, 1), scratch(&rig, aggregation.scratch_bytes(20_000)));
    let operands = OrderedOperands {
        keys: &keys,
        values: Some(&values),
        keys_out: &keys_out,
        counts: None,
        sums: Some(&sums),
        runs: &runs,
    };
    aggregation.launch(&mut rig.stream, &operands, &memory).unwrap();
    assert_eq!(taken::<u64>(&mut rig, &runs), [groups.len() as u64]);
    let (keys, sums) = (taken::<u32>(&mut rig, &keys_out), taken::<u64>(&mut rig, &sums));
    assert!(keys.into_iter().zip(sums).eq(groups));
}

#[test]
fn groups_are_aggregated_by_every_strategy_that_has_a_prediction() {
    let rig = small();
    let rates = DeviceRates::of(rig.device.info());
    for (groups, fits) in [(5_000, true), (10_000, false)] {
        let spec = GroupSpec { rows: 1 << 20, groups, is_ordered: false };
        let predicted = |strategy: &GroupStrategy| spec.predict_ms(&rates, *strategy).is_some();
        let taken: Vec<GroupStrategy> = GroupStrategy::ALL.into_iter().filter(predicted).collect();
        assert_eq!(taken.contains(&GroupStrategy::PrivateTables), fits, "{groups} groups");
        assert!(taken.contains(&spec.choose(&rates).0), "{groups} groups");
        for strategy in taken {
            HashGroupBy::new(&rig.device, spec, strategy).unwrap_or_else(|error| panic!("{groups} groups: {error}"));
        }
    }
}
