//! Radix partitions against the plain-Rust reference.

use bytemuck::Pod;
use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::radix_partition::{PARTITIONS, radix_partition};
use warpcube_gpu::prims::{Element, Key, PartitionBy, RadixPartition, Records, TileTuning};

use crate::common::{assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Tiles of 1,024 rows of 32 bits.
const SMALL: TileTuning = TileTuning { threads: 256, rows: 1, blocks: 1 };

/// Partitions keys with payload, of an element of as many bytes, and compares with the reference; `input` starts at an
/// odd element. Payload tells rows apart, as far as it has room.
fn check<K: Key, P: Pod + Ord + std::fmt::Debug>(
    rig: &mut Rig,
    keys: &[K],
    payload: (Element, fn(u64) -> P),
    by: PartitionBy,
) {
    let (n, (element, of)) = (keys.len(), payload);
    let partition = RadixPartition::with_tuning(&rig.device, K::ELEMENT, Some(element), SMALL).unwrap();
    let first = keys.first().copied().unwrap_or(K::LEAST);
    let padded: Vec<K> = [first].into_iter().chain(keys.iter().copied()).collect();
    let values: Vec<P> = (0..=n as u64).map(of).collect();
    let (keys_in, values_in) = (given(rig, K::ELEMENT, &padded), given(rig, element, &values));
    let part = |slice: &warpcube_gpu::prims::DeviceSlice| slice.part(1, n as u64).unwrap();
    let (keys_in, values_in) = (part(&keys_in), part(&values_in));
    let (keys_out, values_out) = (room(rig, K::ELEMENT, n), room(rig, element, n));
    let starts = room(rig, Element::U64, PARTITIONS + 1);
    let memory = scratch(rig, partition.scratch_bytes());
    let records =
        [Records { keys: &keys_in, values: Some(&values_in) }, Records { keys: &keys_out, values: Some(&values_out) }];
    partition.launch(&mut rig.stream, records, by, &starts, &memory).unwrap();
    let (found_keys, found_values) = (taken::<K>(rig, &keys_out), taken::<P>(rig, &values_out));
    let starts = taken::<u64>(rig, &starts);
    assert_eq!(starts[PARTITIONS], n as u64);
    for (at, expected) in radix_partition(keys, by).unwrap().into_iter().enumerate() {
        let rows = starts[at] as usize..starts[at + 1] as usize;
        let mut found: Vec<_> = rows.map(|row| (found_keys[row].ordered_bits(), found_values[row])).collect();
        let mut expected: Vec<_> =
            expected.into_iter().map(|row| (keys[row as usize].ordered_bits(), values[row as usize + 1])).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "partition {at} of {n} {} by {by:?}", K::ELEMENT);
    }
}

#[test]
fn rows_come_to_the_partitions_of_their_keys() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let rows: (Element, fn(u64) -> u32) = (Element::U32, |row| row as u32);
        for n in lengths(1024) {
            let keys: Vec<u32> = noise(n as u64).map(|x| x as u32).take(n).collect();
            check(&mut rig, &keys, rows, PartitionBy::hash(Element::U32));
        }
        // One key; keys of a range, some of them outside; a range of one key, and of all.
        check(&mut rig, &[77u32; 2500], rows, PartitionBy::hash(Element::U32));
        let near: Vec<u32> = noise(3).map(|x| 1000 + (x % 5000) as u32).take(3000).collect();
        for (least, most) in [(1000u32, 5999u32), (2000, 2999), (1234, 1234), (0, u32::MAX), (5990, u32::MAX)] {
            let (least, most) = (least.into(), most.into());
            check(&mut rig, &near, rows, PartitionBy::Range { least, most });
            check(&mut rig, &near, rows, PartitionBy::Hash { least, most });
        }
    }
}

#[test]
fn keys_and_payload_are_of_any_type() {
    fn each<K: Key>(rig: &mut Rig, of: fn(u64) -> K) {
        let keys: Vec<K> = noise(5).map(of).take(2600).collect();
        let least = keys[7].ordered_bits().min(keys[8].ordered_bits());
        let most = keys[7].ordered_bits().max(keys[8].ordered_bits());
        let ways = [PartitionBy::hash(K::ELEMENT), PartitionBy::place(K::ELEMENT), PartitionBy::Range { least, most }];
        for by in ways {
            check::<K, u8>(rig, &keys, (Element::U8, |row| row as u8), by);
            check::<K, u64>(rig, &keys, (Element::U64, |row| row << 33 | row), by);
            check::<K, u128>(rig, &keys, (Element::U128, |row| u128::from(row) << 77 | 5), by);
        }
    }
    for order in orders(&[LaneOrder::Forward, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        each::<u8>(&mut rig, |x| x as u8);
        each::<i32>(&mut rig, |x| x as i32);
        each::<f32>(&mut rig, |x| (x % 4001) as f32 - 2000.0);
        each::<u64>(&mut rig, |x| x);
        each::<f64>(&mut rig, |x| if x % 11 == 0 { f64::NAN } else { (x as f64 - 9e18) * 1e-3 });
        each::<i128>(&mut rig, |x| (i128::from(x) - (1 << 63)) << 50);
    }
}

#[test]
fn keys_are_partitioned_alone_and_with_the_numbers_of_their_rows() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let keys: Vec<i64> = noise(6).map(|x| x as i64).take(3000).collect();
        let (input, out) = (given(&mut rig, Element::I64, &keys), room(&rig, Element::I64, keys.len()));
        let starts = room(&rig, Element::U64, PARTITIONS + 1);
        let by = PartitionBy::place(Element::I64);
        let alone = RadixPartition::with_tuning(&rig.device, Element::I64, None, SMALL).unwrap();
        let memory = scratch(&rig, alone.scratch_bytes());
        let records = [&input, &out].map(|keys| Records { keys, values: None });
        alone.launch(&mut rig.stream, records, by, &starts, &memory).unwrap();
        let expected = radix_partition(&keys, by).unwrap();
        let sorted = |mut keys: Vec<i64>| {
            keys.sort_unstable();
            keys
        };
        let found = taken::<i64>(&mut rig, &out);
        let begins = taken::<u64>(&mut rig, &starts);
        for (at, rows) in expected.iter().enumerate() {
            let of_rows = sorted(rows.iter().map(|row| keys[*row as usize]).collect());
            assert_eq!(sorted(found[begins[at] as usize..begins[at + 1] as usize].to_vec()), of_rows, "{at}");
        }
        let numbered = RadixPartition::with_tuning(&rig.device, Element::I64, Some(Element::U32), SMALL).unwrap();
        let numbers = room(&rig, Element::U32, keys.len());
        let output = Records { keys: &out, values: Some(&numbers) };
        numbered.launch(&mut rig.stream, [records[0], output], by, &starts, &memory).unwrap();
        let (found, numbers) = (taken::<i64>(&mut rig, &out), taken::<u32>(&mut rig, &numbers));
        assert!(found.iter().zip(&numbers).all(|(key, row)| keys[*row as usize] == *key));
        for (at, rows) in expected.into_iter().enumerate() {
            let mut of_partition = numbers[begins[at] as usize..begins[at + 1] as usize].to_vec();
            of_partition.sort_unstable();
            assert!(of_partition.into_iter().map(u64::from).eq(rows), "{at}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let device = rig.device.clone();
    let made = |shape| RadixPartition::with_tuning(&device, Element::U32, Some(Element::U32), shape);
    let shape = TileTuning { threads: 128, rows: 2, blocks: 1 };
    assert_refused(made(shape).map(|_| ()), &["128", "256 partitions"]);
    let shape = TileTuning { threads: 1024, rows: 8, blocks: 1 };
    assert_refused(made(shape).map(|_| ()), &["265248 bytes of shared memory", "232448"]);
    let partition = made(SMALL).unwrap();
    let [nine, ten, floats, starts, short] =
        [(Element::U32, 9), (Element::U32, 10), (Element::F32, 9), (Element::U64, 257), (Element::U64, 256)]
            .map(|(element, len)| room(&rig, element, len));
    let [memory, little] = [2048, 1024].map(|bytes| scratch(&rig, bytes));
    let records = |keys, values| Records { keys, values: Some(values) };
    let (good, by) = (records(&nine, &nine), PartitionBy::hash(Element::U32));
    let mut refused = |input, output, by, starts, memory, words: &[&str]| {
        assert_refused(partition.launch(&mut rig.stream, [input, output], by, starts, memory), words);
    };
    refused(records(&nine, &ten), good, by, &starts, &memory, &["input's payload", "10", "9"]);
    refused(records(&floats, &nine), good, by, &starts, &memory, &["input's keys", "f32", "u32"]);
    refused(good, records(&ten, &ten), by, &starts, &memory, &["output's keys", "10", "9"]);
    refused(good, Records { keys: &nine, values: None }, by, &starts, &memory, &["output's has no payload of u32"]);
    refused(good, good, by, &short, &memory, &["starts", "256", "257"]);
    refused(good, good, by, &starts, &little, &["scratch", "1024", "2048"]);
    refused(good, good, PartitionBy::Range { least: 5, most: 4 }, &starts, &memory, &["bits 5 to 4"]);
    let wide = PartitionBy::Hash { least: 0, most: 1 << 32 };
    refused(good, good, wide, &starts, &memory, &["keys of u32", "4294967296"]);
}
