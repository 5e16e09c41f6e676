//! Defaults on a device whose blocks have 99 KB of shared memory (sm_86, 89 and 120), the least of those supported.

use warpcube_bench::operators::hash_group_by::{GroupSpec, GroupStrategy, HashGroupBy, hash_group_by};
use warpcube_bench::operators::hash_join::{HashJoin, JoinSpec, JoinStrategy, hash_join};
use warpcube_bench::operators::key_slots::{KeyRange, Pairs};
use warpcube_bench::operators::ordered::{OrderedAggregation, OrderedForm, OrderedOperands};
use warpcube_gpu::prims::{DeviceRates, Element};

use crate::common::{given, noise, room, scratch, small_device, taken};

#[test]
fn partitioned_sides_are_joined() {
    let mut rig = small_device();
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
        let (sum, pairs) = hash_join(&build, &probe);
        assert_eq!(taken::<u64>(&mut rig, &out), [sum, pairs], "{strategy:?}");
    }
}

#[test]
fn ordered_rows_are_aggregated() {
    let mut rig = small_device();
    let rows: Vec<(u32, u32)> = (0..20_000u32).zip(noise(8)).map(|(row, x)| (row / 7, x as u32)).collect();
    let columns: [Vec<u32>; 2] = [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
    let [keys, values] = columns.map(|column| given(&mut rig, Element::U32, &column));
    let form = OrderedForm { key: Element::U32, count: None, sum: Some((Element::U32, Element::U64)) };
    let aggregation = OrderedAggregation::new(&rig.device, form).unwrap();
    let groups = hash_group_by(&rows);
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
    let rig = small_device();
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
