//! Hash aggregations against the plain-Rust reference.

use warpcube_bench::operators::hash_group_by::{GroupSpec, GroupStrategy, Groups, HashGroupBy, hash_group_by};
use warpcube_bench::operators::key_slots::{Pairs, TableTuning};
use warpcube_gpu::prims::{Element, TileTuning};
use warpcube_gpu::{LaneOrder, Work};

use crate::common::{assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Tiles of 256 and of 128 rows.
const TUNING: TableTuning = TableTuning { tile: TileTuning { threads: 64, rows: 1, blocks: 1 }, shared_threads: 32 };

/// The groups by key, and the status: their number, and above 0 where rows are lost.
fn grouped(
    rig: &mut Rig,
    spec: GroupSpec,
    strategy: GroupStrategy,
    rows: &[(u32, u32)],
    capacity: usize,
) -> (Vec<(u32, u64)>, [u64; 2]) {
    let aggregation = HashGroupBy::with_tuning(&rig.device, spec, strategy, TUNING).unwrap();
    let [keys, values]: [Vec<u32>; 2] =
        [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
    let [keys, values] = [given(rig, Element::U32, &keys), given(rig, Element::U32, &values)];
    let (keys_out, sums) = (room(rig, Element::U32, capacity), room(rig, Element::U64, capacity));
    let status = room(rig, Element::U64, 2);
    let memory = scratch(rig, aggregation.scratch_bytes(rows.len() as u64));
    let groups = Groups { keys: &keys_out, sums: &sums, status: &status };
    aggregation.launch(&mut rig.stream, Pairs { keys: &keys, values: &values }, groups, &memory).unwrap();
    let status: [u64; 2] = taken::<u64>(rig, &status).try_into().unwrap();
    let written = (status[0] as usize).min(capacity);
    let mut found: Vec<(u32, u64)> =
        taken::<u32>(rig, &keys_out).into_iter().zip(taken::<u64>(rig, &sums)).take(written).collect();
    found.sort_unstable();
    (found, status)
}

#[test]
fn sums_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        for groups in [1u64, 10, 300, 5000] {
            let sizes = if groups == 10 { lengths(256) } else { vec![3000] };
            for n in sizes {
                // The largest key is the mark of empty slots in shared memory; values overflow sums of 32 bits.
                let key = |x: u64| u32::MAX - (x % groups) as u32 * 7;
                let mut rows: Vec<(u32, u32)> = noise(groups).map(|x| (key(x), !(x >> 40) as u32)).take(n).collect();
                for is_ordered in [false, true] {
                    if is_ordered {
                        rows.sort_unstable();
                    }
                    let expected = hash_group_by(&rows);
                    let spec = GroupSpec { rows: n as u64, groups, is_ordered };
                    for strategy in GroupStrategy::ALL {
                        if strategy == GroupStrategy::Ordered && !is_ordered {
                            continue;
                        }
                        let (found, status) = grouped(&mut rig, spec, strategy, &rows, expected.len());
                        assert!(found == expected, "{strategy:?}, {groups} groups, {n} rows, {order:?}");
                        assert_eq!(status, [expected.len() as u64, 0], "{strategy:?}, {groups} groups, {n} rows");
                    }
                }
            }
        }
    }
}

#[test]
fn groups_past_the_table_and_past_the_outputs_are_counted() {
    let mut rig = Rig::new(LaneOrder::Seeded(5));
    let rows: Vec<(u32, u32)> = (0..1000).map(|row| (row % 100, 1)).collect();
    for strategy in [GroupStrategy::PrivateTables, GroupStrategy::DeviceTable] {
        // 16 slots for 100 groups of ten rows each.
        let spec = GroupSpec { rows: 1000, groups: 12, is_ordered: false };
        let (found, status) = grouped(&mut rig, spec, strategy, &rows, 100);
        assert_eq!((found.len(), status[0]), (16, 16), "{strategy:?}");
        assert!(status[1] > 0 && found.iter().all(|(key, sum)| *key < 100 && *sum <= 10), "{strategy:?}: {status:?}");
        // Room for 60 groups.
        let (found, status) = grouped(&mut rig, GroupSpec { groups: 100, ..spec }, strategy, &rows, 60);
        assert_eq!((found.len(), status), (60, [100, 0]), "{strategy:?}");
        assert!(found.iter().all(|(_, sum)| *sum == 10));
    }
}

#[test]
fn recorded_work_sums_again() {
    let mut rig = Rig::new(LaneOrder::Seeded(6));
    let rows: Vec<(u32, u32)> = noise(4).map(|x| ((x % 50) as u32, x as u32)).take(2000).collect();
    let [keys, values]: [Vec<u32>; 2] =
        [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
    let [keys, values] = [given(&mut rig, Element::U32, &keys), given(&mut rig, Element::U32, &values)];
    let (keys_out, sums) = (room(&rig, Element::U32, 50), room(&rig, Element::U64, 50));
    let status = room(&rig, Element::U64, 2);
    for strategy in [GroupStrategy::PrivateTables, GroupStrategy::DeviceTable, GroupStrategy::SortedRows] {
        let spec = GroupSpec { rows: 2000, groups: 50, is_ordered: false };
        let aggregation = HashGroupBy::with_tuning(&rig.device, spec, strategy, TUNING).unwrap();
        let memory = scratch(&rig, aggregation.scratch_bytes(2000));
        let groups = Groups { keys: &keys_out, sums: &sums, status: &status };
        let mut work = Work::new(&rig.device);
        aggregation.launch(&mut work, Pairs { keys: &keys, values: &values }, groups, &memory).unwrap();
        let mut recording = rig.stream.prepare(work).unwrap();
        for run in 0..2 {
            let buffers = [&keys, &values, &keys_out, &sums, &status].map(|slice| slice.buffer());
            let buffers: Vec<_> = buffers.into_iter().chain([&memory]).collect();
            for output in [&keys_out, &sums, &status] {
                rig.stream.fill(output.buffer(), 0, 0xff, output.buffer().bytes()).unwrap();
            }
            rig.stream.run(&mut recording, &buffers).unwrap();
            assert_eq!(taken::<u64>(&mut rig, &status), [50, 0], "{strategy:?}, run {run}");
            let mut found: Vec<(u32, u64)> =
                taken::<u32>(&mut rig, &keys_out).into_iter().zip(taken::<u64>(&mut rig, &sums)).collect();
            found.sort_unstable();
            assert!(found == hash_group_by(&rows), "{strategy:?}, run {run}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let spec = GroupSpec { rows: 9, groups: 1 << 20, is_ordered: false };
    let new = |strategy| HashGroupBy::with_tuning(&rig.device, spec, strategy, TUNING).map(|_| ());
    assert_refused(new(GroupStrategy::Ordered), &["9 rows", "not ordered"]);
    assert_refused(new(GroupStrategy::PrivateTables), &["1048576 groups", "bytes of a block"]);
    let few = GroupSpec { groups: 12, ..spec };
    let aggregation = HashGroupBy::with_tuning(&rig.device, few, GroupStrategy::SortedRows, TUNING).unwrap();
    let [nine, ten, floats, sums, status, one] = [
        (Element::U32, 9),
        (Element::U32, 10),
        (Element::F32, 9),
        (Element::U64, 9),
        (Element::U64, 2),
        (Element::U64, 1),
    ]
    .map(|(element, len)| room(&rig, element, len));
    let bytes = aggregation.scratch_bytes(9);
    let [memory, little] = [bytes, bytes - 256].map(|bytes| scratch(&rig, bytes));
    let good = Groups { keys: &nine, sums: &sums, status: &status };
    let mut refused = |keys, values, groups, memory, words: &[&str]| {
        assert_refused(aggregation.launch(&mut rig.stream, Pairs { keys, values }, groups, memory), words);
    };
    refused(&nine, &ten, good, &memory, &["input's values", "10", "9"]);
    refused(&floats, &nine, good, &memory, &["input's keys", "f32"]);
    refused(&nine, &nine, Groups { keys: &sums, ..good }, &memory, &["keys of groups", "u64", "u32"]);
    refused(&nine, &nine, Groups { sums: &nine, ..good }, &memory, &["sums of groups", "u32", "u64"]);
    refused(&nine, &nine, Groups { status: &one, ..good }, &memory, &["status", "1", "2"]);
    refused(&nine, &nine, good, &little, &["scratch", &bytes.to_string(), &(bytes - 256).to_string()]);
}
