//! Defaults on a device whose blocks have 99 KB of shared memory (sm_86, 89 and 120), the least of those supported.

use warpcube_gpu::prims::radix_partition::{PARTITIONS, radix_partition};
use warpcube_gpu::prims::topk::{Algorithm, TopK, TopKSpec, check};
use warpcube_gpu::prims::{
    DeviceSlice, Element, Merge, PartitionBy, RadixOrder, RadixPartition, Records, SegmentedSort, Sort, SortColumn,
    SortKey, segmented_sort,
};

use crate::common::{given, noise, room, scratch, small_device, spoilt, taken};

#[test]
fn segments_of_four_bytes_are_sorted() {
    let mut rig = small_device();
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
    let mut rig = small_device();
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
fn first_rows_are_found() {
    let mut rig = small_device();
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
    let mut rig = small_device();
    let keys: Vec<u32> = noise(7).map(|x| x as u32 % 3000).take(20_000).collect();
    let values = given(&mut rig, Element::U32, &keys);
    let sort = Sort::new(&rig.device, &[SortColumn::of(Element::U32)], Some(Element::U32)).unwrap();
    let (rows, memory) = (room(&rig, Element::U32, 20_000), scratch(&rig, sort.scratch_bytes(20_000)));
    let key = SortKey { values: &values, valid: None };
    sort.launch(&mut rig.stream, &[key], Some(&rows), &memory).unwrap();
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
