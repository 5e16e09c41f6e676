//! Scans within runs of equal keys, against plain Rust.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{Element, Key, Monoid, Reduction, ScanKeyed, ScanKind, scan_keyed};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

const KINDS: [ScanKind; 2] = [ScanKind::Inclusive, ScanKind::Exclusive];

/// Rows in runs whose lengths `length` draws, with items that `item` draws.
fn rows<K: Key, T>(n: usize, key: fn(u64) -> K, length: fn(u64) -> u64, item: fn(u64) -> T) -> Vec<(K, T)> {
    let runs = noise(1).enumerate().flat_map(|(run, x)| (0..length(x)).map(move |_| key(run as u64)));
    runs.take(n).zip(noise(2).map(item)).collect()
}

/// Scans the rows from the second element of their buffers on, and from the first.
fn check<K: Key, T: Key>(rig: &mut Rig, rows: &[(K, T)], of: Reduction, monoid: Monoid<T>) {
    for kind in KINDS {
        let scans = ScanKeyed::with_tuning(&rig.device, K::ELEMENT, (T::ELEMENT, of), kind, SMALL).unwrap();
        for from in [0, 1.min(rows.len())] {
            let (keys, items): (Vec<K>, Vec<T>) = rows.iter().copied().unzip();
            let len = (rows.len() - from) as u64;
            let keys = given(rig, K::ELEMENT, &keys).part(from as u64, len).unwrap();
            let items = given(rig, T::ELEMENT, &items).part(from as u64, len).unwrap();
            let out = room(rig, T::ELEMENT, len as usize);
            let memory = scratch(rig, scans.scratch_bytes(len));
            scans.launch(&mut rig.stream, [&keys, &items], &out, &memory).unwrap();
            let bits = |items: Vec<T>| items.into_iter().map(T::ordered_bits).collect::<Vec<_>>();
            let expected = bits(scan_keyed(&rows[from..], kind, monoid));
            let words = format!("{of:?} {kind:?} of {len} {} by {}", T::ELEMENT, K::ELEMENT);
            assert!(bits(taken(rig, &out)) == expected, "{words}");
        }
    }
}

#[test]
fn sums_within_runs_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let of = Reduction::Sum(Element::U32);
        for n in lengths(512) {
            check(&mut rig, &rows(n, |run| run as u32, |x| 1 + x % 9, |x| x as u32), of, Monoid::sum());
        }
        // One run, runs of one row, and runs of several tiles beside short ones.
        check(&mut rig, &rows(512 * 40, |_| 7u32, |_| 1, |x| x as u32), of, Monoid::sum());
        check(&mut rig, &rows(3000, |run| run as u32, |_| 1, |x| x as u32), of, Monoid::sum());
        let long = |x: u64| if x.is_multiple_of(5) { 1700 } else { x % 4 };
        check(&mut rig, &rows(20_000, |run| run as u32, long, |x| x as u32), of, Monoid::sum());
    }
}

#[test]
fn keys_are_of_any_type_and_items_join_to_least_and_largest() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let length = |x: u64| if x.is_multiple_of(3) { 600 } else { 1 + x % 40 };
        let wide = rows(5000, |run| i128::from(run) << 70, length, |x| x as i64);
        check(&mut rig, &wide, Reduction::Least, Monoid::least());
        // All NaN are one key, and so are both zeros.
        let float = |run: u64| [f64::NAN, -0.0, 0.0, 1.5, -f64::NAN][run as usize % 5];
        let floats = rows(4000, float, |x| 1 + x % 50, |x| (x % 1001) as f32 - 500.0);
        check(&mut rig, &floats, Reduction::Largest, Monoid::largest());
        check(&mut rig, &rows(3000, |run| run as u8, length, |x| x as u8), Reduction::Least, Monoid::least());
    }
}

#[test]
fn rows_of_runs_are_numbered() {
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    let rows = rows(4000, |run| run, |x| 1 + x % 700, |_| 1u64);
    let (keys, ones): (Vec<u64>, Vec<u64>) = rows.iter().copied().unzip();
    for kind in KINDS {
        let scans = ScanKeyed::new(&rig.device, Element::U64, Element::U64, Reduction::Count, kind).unwrap();
        let [keys, items] = [given(&mut rig, Element::U64, &keys), given(&mut rig, Element::U64, &ones)];
        let memory = scratch(&rig, scans.scratch_bytes(4000));
        // The output may be the input.
        scans.launch(&mut rig.stream, [&keys, &items], &items, &memory).unwrap();
        assert!(taken::<u64>(&mut rig, &items) == scan_keyed(&rows, kind, Monoid::sum()), "{kind:?}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let kind = ScanKind::Inclusive;
    let wide = ScanKeyed::new(&rig.device, Element::U32, Element::I128, Reduction::Least, kind).map(|_| ());
    assert_refused(wide, &["scan_keyed", "Least of i128", "16 bytes"]);
    let of = (Element::U32, Reduction::Sum(Element::U32));
    let scans = ScanKeyed::with_tuning(&rig.device, Element::F32, of, kind, SMALL).unwrap();
    let [keys, short, items] =
        [(Element::F32, 9), (Element::F32, 8), (Element::U32, 9)].map(|(element, len)| room(&rig, element, len));
    let [enough, little] = [0, 1].map(|less| scratch(&rig, scans.scratch_bytes(9) - less));
    let mut refused = |keys, items, out, memory, words: &[&str]| {
        assert_refused(scans.launch(&mut rig.stream, [keys, items], out, memory), words);
    };
    refused(&short, &items, &items, &enough, &["keys", "8", "9"]);
    refused(&items, &items, &items, &enough, &["keys", "u32", "f32"]);
    refused(&keys, &keys, &items, &enough, &["input", "f32", "u32"]);
    refused(&keys, &items, &items, &little, &["79", "80"]);
}
