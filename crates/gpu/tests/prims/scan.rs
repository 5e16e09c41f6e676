//! Scans of every type and kind, against plain Rust.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{Element, Key, Monoid, Reduction, Scan, ScanKind, Sum, scan};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Scans `values` and compares with the host.
fn check<I: bytemuck::Pod, S: Sum>(
    rig: &mut Rig,
    scans: &Scan,
    kind: ScanKind,
    input: Element,
    values: &[I],
    widen: fn(I) -> S,
) {
    let slice = given(rig, input, values);
    let out = room(rig, S::ELEMENT, values.len());
    let scratch = scratch(rig, scans.scratch_bytes(values.len() as u64));
    scans.launch(&mut rig.stream, &slice, &out, &scratch).unwrap();
    let expected = scan(values.iter().map(|value| widen(*value)), kind, Monoid::sum());
    assert!(taken::<S>(rig, &out) == expected, "{kind:?} of {} {input}", values.len());
}

#[test]
fn sums_of_small_tiles_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let kind = ScanKind::Exclusive;
        let scans = Scan::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U32), kind, SMALL).unwrap();
        // More tiles than a warp looks at when it looks back.
        for length in lengths(512).into_iter().chain([512 * 70 + 5]) {
            let values: Vec<u32> = noise(7).map(|x| x as u32).take(length).collect();
            check(&mut rig, &scans, kind, Element::U32, &values, |x| x);
        }
    }
}

#[test]
fn sums_wider_than_a_word_of_a_descriptor_are_exact() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let kind = ScanKind::Inclusive;
        let scans = Scan::with_tuning(&rig.device, Element::I32, Reduction::Sum(Element::I32), kind, SMALL).unwrap();
        let values: Vec<i32> = noise(3).map(|x| x as i32).take(2000).collect();
        check(&mut rig, &scans, kind, Element::I32, &values, |x| x);
        let scans = Scan::with_tuning(&rig.device, Element::I64, Reduction::Sum(Element::I64), kind, SMALL).unwrap();
        for length in lengths(256) {
            let values: Vec<i64> = noise(8).map(|x| x as i64).take(length).collect();
            check(&mut rig, &scans, kind, Element::I64, &values, |x| x);
        }
        // Integers as doubles: their sums are exact in any order.
        let scans = Scan::with_tuning(&rig.device, Element::F32, Reduction::Sum(Element::F64), kind, SMALL).unwrap();
        let values: Vec<f32> = noise(9).map(|x| (x % 1001) as f32 - 500.0).take(512 * 5 + 1).collect();
        check(&mut rig, &scans, kind, Element::F32, &values, f64::from);
    }
}

#[test]
fn the_default_shape_scans_from_any_element_on() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let scans = Scan::new(&rig.device, Element::U32, Reduction::Sum(Element::U64), ScanKind::Inclusive).unwrap();
        let values: Vec<u32> = noise(1).map(|x| x as u32).take(3 * 4096 + 1029).collect();
        let (whole, out) = (given(&mut rig, Element::U32, &values), room(&rig, Element::U64, values.len()));
        let scratch = scratch(&rig, scans.scratch_bytes(whole.len()));
        for (from, len) in [(0, whole.len()), (1, whole.len() - 1), (4, 4096), (3, 4097)] {
            let from = from as u64;
            let (input, out) = (whole.part(from, len).unwrap(), out.part(from, len).unwrap());
            scans.launch(&mut rig.stream, &input, &out, &scratch).unwrap();
            let items = values[from as usize..(from + len) as usize].iter().map(|x| u64::from(*x));
            assert!(
                taken::<u64>(&mut rig, &out) == scan(items, ScanKind::Inclusive, Monoid::sum()),
                "{len} from {from} on"
            );
        }
    }
}

/// Scans keys in both kinds and both orders of keys, by their bits: NaN equals no other.
fn check_keys<K: Key>(rig: &mut Rig, keys: &[K]) {
    let (slice, out) = (given(rig, K::ELEMENT, keys), room(rig, K::ELEMENT, keys.len()));
    for (of, monoid) in [(Reduction::Least, Monoid::least()), (Reduction::Largest, Monoid::largest())] {
        for kind in [ScanKind::Inclusive, ScanKind::Exclusive] {
            let scans = Scan::with_tuning(&rig.device, K::ELEMENT, of, kind, SMALL).unwrap();
            let scratch = scratch(rig, scans.scratch_bytes(keys.len() as u64));
            scans.launch(&mut rig.stream, &slice, &out, &scratch).unwrap();
            let bits = |keys: Vec<K>| keys.into_iter().map(K::ordered_bits).collect::<Vec<_>>();
            let (found, expected) = (bits(taken(rig, &out)), bits(scan(keys.iter().copied(), kind, monoid)));
            assert!(found == expected, "{of:?} {kind:?} of {} {}", keys.len(), K::ELEMENT);
        }
    }
}

#[test]
fn the_least_and_largest_so_far_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        // Records that fall and rise through several tiles, and more tiles than a warp looks at when it looks back.
        for length in [1, 33, 511, 512 * 3 + 17, 512 * 40] {
            let around = |x: u64, at: usize| (x >> 40) as i64 - (1 << 23) + (at as i64 - length as i64 / 2) * 900;
            let keys: Vec<i64> = noise(4).zip(0..length).map(|(x, at)| around(x, at)).collect();
            check_keys(&mut rig, &keys);
            check_keys(&mut rig, &keys.iter().map(|key| -(*key as f32)).collect::<Vec<_>>());
        }
        let bytes: Vec<u8> = noise(6).map(|x| (x % 200) as u8 + 20).take(3000).collect();
        check_keys(&mut rig, &bytes);
        let extremes = [7.5, f64::INFINITY, -0.5, f64::NEG_INFINITY, 3.0, f64::NAN, 9.0, f64::MAX];
        check_keys(&mut rig, &extremes);
        check_keys(&mut rig, &[u64::MAX, 1 << 62, u64::MAX - 1, 3, 0, u64::MAX]);
    }
}

#[test]
fn items_are_counted() {
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    for kind in [ScanKind::Inclusive, ScanKind::Exclusive] {
        let scans = Scan::with_tuning(&rig.device, Element::F32, Reduction::Count, kind, SMALL).unwrap();
        check(&mut rig, &scans, kind, Element::F32, &[0.5f32; 512 * 2 + 7], |_| 1u64);
    }
}

#[test]
fn a_scan_may_write_over_its_input_again_and_again() {
    let mut rig = Rig::new(LaneOrder::Seeded(2));
    let scans =
        Scan::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Exclusive, SMALL).unwrap();
    let values: Vec<u32> = noise(5).map(|x| x as u32).take(512 * 3 + 9).collect();
    let slice = given(&mut rig, Element::U32, &values);
    let scratch = scratch(&rig, scans.scratch_bytes(slice.len()));
    let mut expected = values;
    for _ in 0..3 {
        scans.launch(&mut rig.stream, &slice, &slice, &scratch).unwrap();
        expected = scan(expected, ScanKind::Exclusive, Monoid::sum());
        assert_eq!(taken::<u32>(&mut rig, &slice), expected);
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let refused = Scan::new(&rig.device, Element::F32, Reduction::Sum(Element::U64), ScanKind::Inclusive).map(|_| ());
    assert_refused(refused, &["scan", "f32", "u64"]);
    let wide = Scan::new(&rig.device, Element::I128, Reduction::Least, ScanKind::Inclusive).map(|_| ());
    assert_refused(wide, &["scan", "Least of i128", "16 bytes"]);
    let scans =
        Scan::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Exclusive, SMALL).unwrap();
    let slices =
        [(Element::U32, 9), (Element::U32, 8), (Element::I32, 9)].map(|(element, len)| room(&rig, element, len));
    let enough = scratch(&rig, scans.scratch_bytes(9));
    let little = scratch(&rig, scans.scratch_bytes(9) - 1);
    assert_refused(scans.launch(&mut rig.stream, &slices[0], &slices[1], &enough), &["8", "9"]);
    assert_refused(scans.launch(&mut rig.stream, &slices[0], &slices[2], &enough), &["i32", "u32"]);
    assert_refused(scans.launch(&mut rig.stream, &slices[2], &slices[0], &enough), &["input", "i32"]);
    assert_refused(scans.launch(&mut rig.stream, &slices[0], &slices[0], &little), &["71", "72"]);
}
