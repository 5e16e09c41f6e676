//! Contraction on the emulated device, against aggregation on the CPU, where sizes and forms are particular to it.
//! `tests/equal` shows that all algorithms give the same cells, and what the device refuses.

use std::sync::Arc;

use warpcube_column::Residency;
use warpcube_cube::aggregate::{Area, Progress, Request, TargetMap, aggregate};
use warpcube_cube::device::{DeviceContraction, FactsSource, ScanTuning};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType, Values};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];

/// Numbers that look drawn.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Facts of so many rows over dimensions of these sizes; one value in `nulls` is NULL, none if that is 0.
fn facts(sizes: &[u32], bits: &[u32], rows: usize, nulls: u64, random: &mut Random) -> Facts {
    let mut columns = Vec::new();
    for size in sizes {
        columns.push((0..rows).map(|_| random.below(u64::from(*size)) as u32).collect::<Vec<u32>>());
    }
    let values: Vec<i64> = (0..rows).map(|_| random.below(2_000_001) as i64 - 1_000_000).collect();
    let filled: Vec<bool> = (0..rows).map(|_| nulls == 0 || random.below(nulls) != 0).collect();
    let other: Vec<i64> = (0..rows).map(|row| row as i64).collect();
    let measures = ["amount", "other"].map(|name| FactMeasure::new(name, Rule::Sum, ValueType::Decimal { scale: 2 }));
    let mut loader = Loader::new(KeyLayout::new(bits).unwrap(), measures.to_vec());
    let coordinates: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let input = [
        InputColumn { values: InputValues::Decimals(&values), filled: Some(&filled) },
        InputColumn { values: InputValues::Decimals(&other), filled: None },
    ];
    loader.append(&coordinates, &input).unwrap();
    loader.finish(512).unwrap()
}

/// Targets with overlaps, weights of both signs, one that cancels, and one without base elements.
fn area(sizes: &[u32], random: &mut Random) -> Area {
    let map = |size: &u32| {
        let targets: Vec<Vec<(u32, f64)>> = (0..1 + random.below(6))
            .map(|kind| match kind {
                0 => (0..*size).map(|base| (base, 1.0)).collect(),
                1 => vec![(0, 1.0), (0, -1.0), (*size - 1, 2.0)],
                2 => Vec::new(),
                _ => (0..*size)
                    .map(|base| (base, random.below(15)))
                    .filter(|(_, drawn)| *drawn < 5)
                    .map(|(base, drawn)| (base, drawn as f64 - 2.0))
                    .collect(),
            })
            .collect();
        TargetMap::from_targets(*size, &targets).unwrap()
    };
    Area::new(sizes.iter().map(map).collect())
}

fn contraction(facts: &Arc<Facts>, order: LaneOrder) -> DeviceContraction {
    let device = Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, 1 << 28).unwrap();
    DeviceContraction::new(Arc::new(Residency::new(device)), FactsSource::new(facts.clone(), "test", "1"))
}

fn check(facts: &Arc<Facts>, on_device: &DeviceContraction, area: &Area, measure: usize) {
    let expected = aggregate(facts, area, &[measure], &Request::default(), &Progress::new()).unwrap();
    let found = on_device.sums(area, measure, &Arc::default()).unwrap();
    let Values::Decimals(sums) = &expected.columns()[0].values else { panic!("sums of decimals are decimals") };
    assert_eq!(found.ranks, expected.ranks(), "{:?}", area.shape());
    assert_eq!(&found.sums, sums, "{:?}", area.shape());
}

#[test]
fn sums_are_those_of_the_cpu() {
    let mut random = Random(7);
    for (sizes, bits) in [
        (&[9, 5, 40][..], &[4, 3, 6][..]),
        (&[3][..], &[2][..]),
        // Keys of two words.
        (&[7, 6, 11, 3][..], &[32, 30, 32, 5][..]),
    ] {
        for (rows, nulls) in [(1, 0), (700, 3), (20_000, 0)] {
            let facts = Arc::new(facts(sizes, bits, rows, nulls, &mut random));
            let areas: Vec<Area> = (0..3).map(|_| area(sizes, &mut random)).collect();
            for order in ORDERS {
                let on_device = contraction(&facts, order);
                areas.iter().for_each(|area| (0..2).for_each(|measure| check(&facts, &on_device, area, measure)));
            }
        }
    }
}

#[test]
fn totals_of_long_runs_and_single_base_elements() {
    let mut random = Random(11);
    let sizes = [4, 3, 3000];
    let facts = Arc::new(facts(&sizes, &[2, 2, 12], 30_000, 0, &mut random));
    let all = |size: u32| TargetMap::from_targets(size, &[(0..size).map(|base| (base, 1.0)).collect()]).unwrap();
    let on_device = contraction(&facts, LaneOrder::Forward);
    for area in [
        Area::new(sizes.map(all).to_vec()),
        Area::new(vec![TargetMap::identity(4), all(3), all(3000)]),
        Area::new(vec![all(4), all(3), TargetMap::identity(3000)]),
        Area::new(vec![TargetMap::identity(4), TargetMap::identity(3), TargetMap::identity(3000)]),
    ] {
        check(&facts, &on_device, &area, 0);
    }
}

/// A map in which base element `b` is in target `b % targets`, at a weight that `weight` gives.
fn spread(bases: u32, targets: u32, weight: impl Fn(u32) -> f64) -> TargetMap {
    let mut lists = vec![Vec::new(); targets as usize];
    (0..bases).for_each(|base| lists[(base % targets) as usize].push((base, weight(base))));
    TargetMap::from_targets(bases, &lists).unwrap()
}

#[test]
fn sums_and_tables_beyond_shared_memory() {
    let mut random = Random(17);
    // 40,000 places take more than 227 KiB of shared memory; so do the classes of 70,000 base elements.
    let many = Arc::new(facts(&[200, 200], &[8, 8], 5_000, 3, &mut random));
    let wide = Arc::new(facts(&[70_000, 3], &[17, 2], 5_000, 0, &mut random));
    for order in ORDERS {
        let on_device = contraction(&many, order);
        check(&many, &on_device, &Area::new(vec![TargetMap::identity(200), TargetMap::identity(200)]), 0);
        let on_device = contraction(&wide, order);
        check(&wide, &on_device, &Area::new(vec![spread(70_000, 7, |_| 1.0), TargetMap::identity(3)]), 0);
    }
}

#[test]
fn weights_of_single_targets_multiply_facts() {
    let mut random = Random(19);
    for (bits, rows) in [(&[5, 4, 6][..], 9_000), (&[31, 32, 31][..], 700)] {
        let facts = Arc::new(facts(&[20, 10, 40], bits, rows, 5, &mut random));
        for order in ORDERS {
            let on_device = contraction(&facts, order);
            let weighted = spread(20, 3, |base| f64::from(base) - 7.0);
            let area = Area::new(vec![weighted, spread(10, 1, |base| f64::from(base % 3)), TargetMap::identity(40)]);
            check(&facts, &on_device, &area, 0);
            check(&facts, &on_device, &area, 1);
        }
    }
}

#[test]
fn measures_may_have_maps_of_their_own() {
    let mut random = Random(23);
    let facts = Arc::new(facts(&[12, 30], &[4, 5], 300, 0, &mut random));
    let months = spread(12, 4, |_| 1.0);
    let last =
        months.lists().into_iter().map(|list| list.into_iter().max_by_key(|entry| entry.0).into_iter().collect());
    let last = TargetMap::from_targets(12, &last.collect::<Vec<_>>()).unwrap();
    let area = Area::new(vec![months, spread(30, 1, |_| 1.0)]).with_measure_map(1, 0, last).unwrap();
    let on_device = contraction(&facts, LaneOrder::Forward);
    check(&facts, &on_device, &area, 0);
    check(&facts, &on_device, &area, 1);
}

#[test]
fn more_cells_than_one_workspace_holds() {
    let mut random = Random(29);
    let sizes = [1300, 1100];
    let facts = Arc::new(facts(&sizes, &[11, 11], 2_000_000, 0, &mut random));
    let area = Area::new(sizes.map(TargetMap::identity).to_vec());
    assert!(facts.len() > 1 << 20, "{} cells", facts.len());
    check(&facts, &contraction(&facts, LaneOrder::Forward), &area, 0);
}

#[test]
fn recorded_runs_give_the_same_cells() {
    let mut random = Random(31);
    let sizes = [9, 5, 40];
    let facts = Arc::new(facts(&sizes, &[4, 3, 6], 4_000, 0, &mut random));
    let mut on_device = contraction(&facts, LaneOrder::Forward);
    let area = area(&sizes, &mut random);
    let expected = on_device.sums(&area, 0, &Arc::default()).unwrap();
    for (threads, ticket_miniblocks, prefetches) in [(768, 16, true), (1024, 32, false), (64, 1, true)] {
        on_device.set_tuning(ScanTuning { threads, ticket_miniblocks, prefetches });
        let mut recorded = on_device.record(&area, 0, &Arc::default()).unwrap().unwrap();
        for _ in 0..2 {
            assert!(recorded.run().unwrap() >= 0.0);
            assert_eq!(recorded.cells().unwrap(), expected);
        }
    }
    let nothing = Area::new(sizes.map(|size| TargetMap::from_targets(size, &[vec![]]).unwrap()).to_vec());
    assert!(on_device.record(&nothing, 0, &Arc::default()).unwrap().is_none());
}

#[test]
fn keys_of_facts_take_the_bits_of_their_miniblocks() {
    let mut random = Random(37);
    let facts = Arc::new(facts(&[64, 64], &[6, 6], 20_000, 0, &mut random));
    let bytes = contraction(&facts, LaneOrder::Forward).bytes(0, &Arc::default()).unwrap();
    // Nearly all of 4,096 cells are filled: 128 of them lie within 256 keys, so that a key takes a byte at most.
    let cells = facts.len() as u64;
    assert!(bytes.keys < cells * 9 / 8 + 64, "{bytes:?} of {cells} cells");
    assert_eq!(bytes.values, 8 * cells.next_multiple_of(1024));
}
