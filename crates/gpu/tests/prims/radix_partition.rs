//! Radix partitions against the plain-Rust reference.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::radix_partition::{PARTITIONS, radix_partition};
use warpcube_gpu::prims::{DeviceSlice, Element, KeyRange, Pairs, PartitionBy, RadixPartition, TileTuning};

use crate::common::{assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Tiles of 1,024 rows.
const SMALL: TileTuning = TileTuning { threads: 256, rows: 1, blocks: 1 };

/// Compares a partition with the reference; `input` and the outputs start at an odd element.
fn check(rig: &mut Rig, partition: &RadixPartition, pairs: &[(u32, u32)], by: PartitionBy) {
    let n = pairs.len();
    let column = |of: fn(&(u32, u32)) -> u32| [7].into_iter().chain(pairs.iter().map(of)).collect::<Vec<u32>>();
    let [keys, values] = [column(|pair| pair.0), column(|pair| pair.1)].map(|column| given(rig, Element::U32, &column));
    let part = |slice: &DeviceSlice| slice.part(1, n as u64).unwrap();
    let (keys, values) = (part(&keys), part(&values));
    let outputs = [room(rig, Element::U32, n), room(rig, Element::U32, n)];
    let starts = room(rig, Element::U64, PARTITIONS + 1);
    let memory = scratch(rig, partition.scratch_bytes());
    let input = Pairs { keys: &keys, values: &values };
    let output = Pairs { keys: &outputs[0], values: &outputs[1] };
    partition.launch(&mut rig.stream, input, output, by, &starts, &memory).unwrap();
    let [keys, values] = [&outputs[0], &outputs[1]].map(|slice| taken::<u32>(rig, slice));
    let starts = taken::<u64>(rig, &starts);
    let found: Vec<(u32, u32)> = keys.into_iter().zip(values).collect();
    assert_eq!(starts[PARTITIONS], n as u64);
    for (at, mut expected) in radix_partition(pairs, by).unwrap().into_iter().enumerate() {
        let mut rows = found[starts[at] as usize..starts[at + 1] as usize].to_vec();
        rows.sort_unstable();
        expected.sort_unstable();
        assert_eq!(rows, expected, "partition {at} of {n} rows by {by:?}");
    }
}

#[test]
fn rows_come_to_the_partitions_of_their_keys() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let partition = RadixPartition::with_tuning(&rig.device, SMALL).unwrap();
        for n in lengths(1024) {
            let pairs: Vec<(u32, u32)> = noise(n as u64).map(|x| (x as u32, (x >> 32) as u32)).take(n).collect();
            check(&mut rig, &partition, &pairs, PartitionBy::Hash);
        }
        // One key; keys of a range, some of them outside; a range of one key, and of all.
        let same: Vec<(u32, u32)> = (0..2500).map(|row| (77, row)).collect();
        check(&mut rig, &partition, &same, PartitionBy::Hash);
        let near: Vec<(u32, u32)> = noise(3).map(|x| (1000 + (x % 5000) as u32, x as u32)).take(3000).collect();
        for (least, most) in [(1000, 5999), (2000, 2999), (1234, 1234), (0, u32::MAX), (5990, u32::MAX)] {
            check(&mut rig, &partition, &near, PartitionBy::Range(KeyRange { least, most }));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let shape = TileTuning { threads: 128, rows: 2, blocks: 1 };
    assert_refused(RadixPartition::with_tuning(&rig.device, shape).map(|_| ()), &["128", "256 partitions"]);
    let shape = TileTuning { threads: 1024, rows: 8, blocks: 1 };
    let words = ["265248 bytes of shared memory", "232448"];
    assert_refused(RadixPartition::with_tuning(&rig.device, shape).map(|_| ()), &words);
    let partition = RadixPartition::with_tuning(&rig.device, SMALL).unwrap();
    let [nine, ten, floats, starts, short] =
        [(Element::U32, 9), (Element::U32, 10), (Element::F32, 9), (Element::U64, 257), (Element::U64, 256)]
            .map(|(element, len)| room(&rig, element, len));
    let [memory, little] = [2048, 1024].map(|bytes| scratch(&rig, bytes));
    let pairs = |keys, values| Pairs { keys, values };
    let (good, by) = (pairs(&nine, &nine), PartitionBy::Hash);
    let mut refused = |input, output, by, starts, memory, words: &[&str]| {
        assert_refused(partition.launch(&mut rig.stream, input, output, by, starts, memory), words);
    };
    refused(pairs(&nine, &ten), good, by, &starts, &memory, &["input's values", "10", "9"]);
    refused(pairs(&floats, &nine), good, by, &starts, &memory, &["input's keys", "f32", "u32"]);
    refused(good, pairs(&ten, &ten), by, &starts, &memory, &["output's keys", "10", "9"]);
    refused(good, good, by, &short, &memory, &["starts", "256", "257"]);
    refused(good, good, by, &starts, &little, &["scratch", "1024", "2048"]);
    let none = PartitionBy::Range(KeyRange { least: 5, most: 4 });
    refused(good, good, none, &starts, &memory, &["from 5 to 4"]);
}
