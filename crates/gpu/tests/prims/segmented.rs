//! Reductions and scans by segments of any sizes, against plain Rust.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{
    Element, Key, Monoid, Reduction, ScanKind, SegmentedReduce, SegmentedScan, segmented_reduce, segmented_scan,
};

use crate::common::{SMALL, assert_refused, given, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Items of a small tile.
const TILE: u64 = 64 * 16;

/// Offsets of segments of many kinds, with their names.
fn shapes() -> Vec<(&'static str, Vec<u64>)> {
    let from_sizes = |sizes: &[u64]| {
        let mut offsets = vec![0];
        offsets.extend(sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        offsets
    };
    let random: Vec<u64> = noise(1).map(|x| if x % 3 == 0 { 0 } else { x >> 8 & x >> 20 & 511 }).take(60).collect();
    let mut skewed = vec![1u64; 700];
    skewed[350] = 5 * TILE;
    vec![
        ("no segment", vec![0]),
        ("an empty segment", vec![0, 0]),
        ("empty segments alone", vec![0; 3000]),
        ("one row", vec![0, 1]),
        ("one segment of a tile with its end", vec![0, TILE - 1]),
        ("one segment of a tile", vec![0, TILE]),
        ("one segment over more tiles than a warp looks at", vec![0, 40 * TILE + 3]),
        ("segments of one row", from_sizes(&[1; 3000])),
        ("segments of 31 rows", from_sizes(&[31; 150])),
        ("tiny segments around a huge one", from_sizes(&skewed)),
        (
            "empty segments before and behind a huge one",
            from_sizes(&[&[0; 2000][..], &[3 * TILE], &[0; 1500]].concat()),
        ),
        ("random sizes", from_sizes(&random)),
    ]
}

#[test]
fn sums_of_segments_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let sums =
            SegmentedReduce::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U64), SMALL).unwrap();
        for (name, offsets) in shapes() {
            let n = *offsets.last().unwrap() as usize;
            let values: Vec<u32> = noise(2).map(|x| x as u32).take(n).collect();
            let [input, index] = [given(&mut rig, Element::U32, &values), given(&mut rig, Element::U64, &offsets)];
            let segments = offsets.len() - 1;
            let out = room(&rig, Element::U64, segments);
            let scratch = scratch(&rig, sums.scratch_bytes(n as u64, segments as u64));
            sums.launch(&mut rig.stream, &input, &index, &out, &scratch).unwrap();
            let wide: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
            assert!(
                taken::<u64>(&mut rig, &out) == segmented_reduce(&wide, &offsets, Monoid::sum()),
                "{name} in {order:?}"
            );
        }
    }
}

#[test]
fn scans_of_segments_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let kinds = [ScanKind::Inclusive, ScanKind::Exclusive];
        let scans = kinds.map(|kind| {
            SegmentedScan::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U32), kind, SMALL).unwrap()
        });
        for (name, offsets) in shapes() {
            let n = *offsets.last().unwrap() as usize;
            // From the second element on: loads of 16 bytes are not aligned.
            let values: Vec<u32> = noise(2).map(|x| x as u32).take(n + 1).collect();
            let input = given(&mut rig, Element::U32, &values).part(1, n as u64).unwrap();
            let index = given(&mut rig, Element::U64, &offsets);
            let out = room(&rig, Element::U32, n);
            for (scan, kind) in scans.iter().zip(kinds) {
                let scratch = scratch(&rig, scan.scratch_bytes(n as u64, offsets.len() as u64 - 1));
                scan.launch(&mut rig.stream, &input, &index, &out, &scratch).unwrap();
                let expected = segmented_scan(&values[1..], &offsets, kind, Monoid::sum());
                assert!(taken::<u32>(&mut rig, &out) == expected, "{kind:?} of {name} in {order:?}");
            }
        }
    }
}

#[test]
fn the_default_shape_sums_doubles() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let sums = SegmentedReduce::new(&rig.device, Element::F64, Reduction::Sum(Element::F64)).unwrap();
        for (name, offsets) in shapes().into_iter().skip(8) {
            let n = *offsets.last().unwrap() as usize;
            let values: Vec<f64> = noise(2).map(|x| (x % 2001) as f64 - 1000.0).take(n).collect();
            let [input, index] = [given(&mut rig, Element::F64, &values), given(&mut rig, Element::U64, &offsets)];
            let out = room(&rig, Element::F64, offsets.len() - 1);
            let scratch = scratch(&rig, sums.scratch_bytes(n as u64, out.len()));
            sums.launch(&mut rig.stream, &input, &index, &out, &scratch).unwrap();
            assert!(
                taken::<f64>(&mut rig, &out) == segmented_reduce(&values, &offsets, Monoid::sum()),
                "{name} in {order:?}"
            );
        }
    }
}

/// The least and the largest of segments, and those so far, of keys that `of` draws.
fn check_keys<K: Key>(rig: &mut Rig, of: fn(u64) -> K) {
    let (device, element) = (rig.device.clone(), K::ELEMENT);
    let bits = |keys: Vec<K>| keys.into_iter().map(K::ordered_bits).collect::<Vec<_>>();
    for (reduction, monoid) in [(Reduction::Least, Monoid::least()), (Reduction::Largest, Monoid::largest())] {
        let reduce = SegmentedReduce::with_tuning(&device, element, reduction, SMALL).unwrap();
        let kind = ScanKind::Exclusive;
        let scan = SegmentedScan::with_tuning(&device, element, reduction, kind, SMALL).unwrap();
        for (name, offsets) in shapes() {
            let n = *offsets.last().unwrap() as usize;
            let keys: Vec<K> = noise(8).map(of).take(n).collect();
            let (input, index) = (given(rig, element, &keys), given(rig, Element::U64, &offsets));
            let segments = offsets.len() - 1;
            let memory = scratch(rig, reduce.scratch_bytes(n as u64, segments as u64));
            let (joined, scanned) = (room(rig, element, segments), room(rig, element, n));
            reduce.launch(&mut rig.stream, &input, &index, &joined, &memory).unwrap();
            scan.launch(&mut rig.stream, &input, &index, &scanned, &memory).unwrap();
            let expected = bits(segmented_reduce(&keys, &offsets, monoid));
            assert!(bits(taken(rig, &joined)) == expected, "{reduction:?} of {element} in {name}");
            let expected = bits(segmented_scan(&keys, &offsets, kind, monoid));
            assert!(bits(taken(rig, &scanned)) == expected, "{reduction:?} so far of {element} in {name}");
        }
    }
}

#[test]
fn the_least_and_largest_of_segments_are_those_of_the_host() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        check_keys::<i32>(&mut rig, |x| x as i32);
        check_keys::<f64>(&mut rig, |x| if x % 97 == 0 { f64::NAN } else { (x % 2001) as f64 - 1000.0 });
        check_keys::<u8>(&mut rig, |x| x as u8);
    }
}

#[test]
fn rows_of_segments_are_counted() {
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    let counts = SegmentedReduce::with_tuning(&rig.device, Element::I128, Reduction::Count, SMALL).unwrap();
    for (name, offsets) in shapes() {
        let n = *offsets.last().unwrap();
        let (input, index) = (room(&rig, Element::I128, n as usize), given(&mut rig, Element::U64, &offsets));
        let out = room(&rig, Element::U64, offsets.len() - 1);
        let scratch = scratch(&rig, counts.scratch_bytes(n, out.len()));
        counts.launch(&mut rig.stream, &input, &index, &out, &scratch).unwrap();
        let expected: Vec<u64> = offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
        assert!(taken::<u64>(&mut rig, &out) == expected, "{name}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let sums = SegmentedReduce::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U64), SMALL).unwrap();
    let kind = ScanKind::Inclusive;
    let refused = SegmentedScan::new(&rig.device, Element::U64, Reduction::Sum(Element::U32), kind).map(|_| ());
    assert_refused(refused, &["segmented scan", "u64", "u32"]);
    let wide = SegmentedReduce::new(&rig.device, Element::U128, Reduction::Largest).map(|_| ());
    assert_refused(wide, &["segmented reduce", "Largest of u128", "16 bytes"]);
    let scans =
        SegmentedScan::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U32), kind, SMALL).unwrap();
    let [items, none, offsets, out] =
        [(Element::U32, 900), (Element::U64, 0), (Element::U64, 4), (Element::U64, 3)].map(|(e, n)| room(&rig, e, n));
    let [enough, little] = [0, 1].map(|less| scratch(&rig, sums.scratch_bytes(900, 3) - less));
    assert_refused(sums.launch(&mut rig.stream, &items, &offsets, &offsets, &enough), &["output", "4", "3"]);
    assert_refused(sums.launch(&mut rig.stream, &items, &none, &out, &enough), &["0 offsets"]);
    assert_refused(sums.launch(&mut rig.stream, &items, &offsets, &out, &little), &["96", "95"]);
    assert_refused(sums.launch(&mut rig.stream, &offsets, &offsets, &out, &enough), &["input", "u64", "u32"]);
    assert_refused(scans.launch(&mut rig.stream, &items, &offsets, &out, &enough), &["output", "3", "900"]);
    assert_refused(scans.launch(&mut rig.stream, &items, &items, &items, &enough), &["offsets", "u32", "u64"]);
}
