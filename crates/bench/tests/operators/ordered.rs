//! Ordered aggregation, unique and run-length encode, against plain Rust.

use warpcube_bench::operators::ordered::{
    OrderedAggregation, OrderedForm, OrderedOperands, RunLengthEncode, Unique, ordered_aggregation,
};
use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{DeviceSlice, Element, Key, Sum};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Runs of so many rows at most; keys come again, so they are clustered and not sorted.
fn keys(n: usize, rows_max: u64) -> impl Iterator<Item = u64> {
    let runs = noise(rows_max).enumerate();
    runs.flat_map(move |(run, x)| (0..x % rows_max + 1).map(move |_| run as u64 % 5 * 1000 + 7)).take(n)
}

/// Counts and sums of runs against the host's, of all rows and of those from the third on.
fn check<K: Key, V: bytemuck::Pod, S: Sum>(
    rig: &mut Rig,
    aggregation: &OrderedAggregation,
    value: Element,
    keys: &[K],
    values: &[V],
    widen: fn(V) -> S,
) {
    check_from(0, rig, aggregation, value, keys, values, widen);
    check_from(keys.len().min(2), rig, aggregation, value, keys, values, widen);
}

fn check_from<K: Key, V: bytemuck::Pod, S: Sum>(
    from: usize,
    rig: &mut Rig,
    aggregation: &OrderedAggregation,
    value: Element,
    keys: &[K],
    values: &[V],
    widen: fn(V) -> S,
) {
    let slices = [given(rig, K::ELEMENT, keys), given(rig, value, values)];
    let slices = slices.map(|slice| slice.part(from as u64, slice.len() - from as u64).unwrap());
    let (keys, values) = (&keys[from..], &values[from..]);
    let expected = ordered_aggregation(keys, values.iter().map(|value| widen(*value)));
    let [keys_out, counts, sums] =
        [K::ELEMENT, Element::U64, S::ELEMENT].map(|element| room(rig, element, expected.len()));
    let (runs, scratch) = (room(rig, Element::U64, 1), scratch(rig, aggregation.scratch_bytes(keys.len() as u64)));
    let operands = OrderedOperands {
        keys: &slices[0],
        values: Some(&slices[1]),
        keys_out: &keys_out,
        counts: Some(&counts),
        sums: Some(&sums),
        runs: &runs,
    };
    aggregation.launch(&mut rig.stream, &operands, &scratch).unwrap();
    assert_eq!(taken::<u64>(rig, &runs), [expected.len() as u64], "{} keys", keys.len());
    let same = |(found, expected): (&K, &(K, u64, S))| found.ordered_bits() == expected.0.ordered_bits();
    assert!(taken::<K>(rig, &keys_out).iter().zip(&expected).all(same), "keys of {} rows", keys.len());
    assert!(taken::<u64>(rig, &counts).iter().zip(&expected).all(|(found, run)| *found == run.1));
    assert!(taken::<S>(rig, &sums).iter().zip(&expected).all(|(found, run)| *found == run.2), "{} rows", keys.len());
}

#[test]
fn counts_and_sums_of_runs_are_those_of_the_host() {
    let form = OrderedForm { key: Element::U32, count: Some(Element::U64), sum: Some((Element::U32, Element::U64)) };
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let aggregation = OrderedAggregation::with_tuning(&rig.device, form, SMALL).unwrap();
        for length in lengths(512) {
            // All distinct from the one before, short runs, runs of many tiles.
            for rows_max in [1, 9, 5000] {
                let keys: Vec<u32> = keys(length, rows_max).map(|key| key as u32).collect();
                let values: Vec<u32> = noise(5).map(|x| x as u32).take(length).collect();
                check(&mut rig, &aggregation, Element::U32, &keys, &values, u64::from);
            }
        }
        // One run over more tiles than a warp looks at when it looks back, between two others.
        let mut keys = vec![7u32; 512 * 40];
        keys[0] = 8;
        *keys.last_mut().unwrap() = 9;
        let values: Vec<u32> = noise(5).map(|x| x as u32).take(keys.len()).collect();
        check(&mut rig, &aggregation, Element::U32, &keys, &values, u64::from);
    }
}

#[test]
fn floats_are_equal_as_keys_are_and_sums_of_doubles_are_not_differences() {
    let form = OrderedForm { key: Element::F64, count: Some(Element::U64), sum: Some((Element::F64, Element::F64)) };
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let aggregation = OrderedAggregation::with_tuning(&rig.device, form, SMALL).unwrap();
        let names = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.5, f64::INFINITY];
        for length in [1, 255, 256, 257, 1500] {
            let keys: Vec<f64> = noise(3).map(|x| names[(x % 64 / 4 % 6) as usize]).take(length).collect();
            // Runs of large values beside runs of small ones, which differences of prefix sums would lose.
            let bits = keys.iter().map(|key| key.ordered_bits() % 7).zip(noise(1));
            let values: Vec<f64> =
                bits.map(|(kind, x)| if kind < 3 { 2f64.powi(900) } else { (x % 100) as f64 }).collect();
            check(&mut rig, &aggregation, Element::F64, &keys, &values, |x| x);
        }
    }
}

#[test]
fn keys_of_16_bytes_have_counts_and_sums() {
    let form = OrderedForm { key: Element::I128, count: Some(Element::U64), sum: Some((Element::U32, Element::U64)) };
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let aggregation = OrderedAggregation::with_tuning(&rig.device, form, SMALL).unwrap();
        for length in lengths(128) {
            for rows_max in [1, 9, 5000] {
                // Neighbours differ in the high word, in the low one or in both.
                let wide = |key: u64| i128::from(key / 1000) << (64 * (key / 1000 % 2)) | i128::MIN;
                let keys: Vec<i128> = keys(length, rows_max).map(wide).collect();
                let values: Vec<u32> = noise(5).map(|x| x as u32).take(length).collect();
                check(&mut rig, &aggregation, Element::U32, &keys, &values, u64::from);
            }
        }
    }
}

#[test]
fn the_default_shape_sums_integers_that_wrap() {
    let form = OrderedForm { key: Element::U32, count: Some(Element::U64), sum: Some((Element::I64, Element::I64)) };
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let aggregation = OrderedAggregation::new(&rig.device, form).unwrap();
        for rows_max in [1, 40, 100_000] {
            let keys: Vec<u32> = keys(3 * 2048 + 77, rows_max).map(|key| key as u32).collect();
            let values: Vec<i64> = noise(5).map(|x| x as i64).take(keys.len()).collect();
            check(&mut rig, &aggregation, Element::I64, &keys, &values, |x| x);
        }
    }
}

#[test]
fn unique_and_run_length_encode_start_at_any_element() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let unique = Unique::new(&rig.device, Element::I128).unwrap();
        let encode = RunLengthEncode::new(&rig.device, Element::U32, Element::U32).unwrap();
        for (from, len, rows_max) in [(0, 2 * 8192 + 3, 7), (1, 8192, 100), (3, 8193, 1), (5, 0, 2)] {
            let numbers: Vec<u64> = keys(from + len, rows_max).collect();
            let part = |slice: &DeviceSlice| slice.part(from as u64, len as u64).unwrap();
            let runs = room(&rig, Element::U64, 1);

            let wide: Vec<i128> = numbers.iter().take(from + len / 4).map(|key| i128::from(*key) << 70).collect();
            let input = given(&mut rig, Element::I128, &wide).part(from as u64, (len / 4) as u64).unwrap();
            let expected = ordered_aggregation(&wide[from..], vec![0u64; len]);
            let out = room(&rig, Element::I128, expected.len());
            let memory = scratch(&rig, unique.scratch_bytes(input.len()));
            unique.launch(&mut rig.stream, &input, &out, &runs, &memory).unwrap();
            assert_eq!(taken::<u64>(&mut rig, &runs), [expected.len() as u64]);
            assert!(taken::<i128>(&mut rig, &out).iter().zip(&expected).all(|(key, run)| *key == run.0));

            let narrow: Vec<u32> = numbers.iter().map(|key| *key as u32).collect();
            let input = part(&given(&mut rig, Element::U32, &narrow));
            let expected = ordered_aggregation(&narrow[from..], vec![0u64; len]);
            // Half of the runs fit.
            let half = expected.len() / 2;
            let outputs = [room(&rig, Element::U32, half), room(&rig, Element::U32, expected.len())];
            let memory = scratch(&rig, encode.scratch_bytes(input.len()));
            encode.launch(&mut rig.stream, &input, [&outputs[0], &outputs[1]], &runs, &memory).unwrap();
            assert_eq!(taken::<u64>(&mut rig, &runs), [expected.len() as u64]);
            assert!(taken::<u32>(&mut rig, &outputs[0]).iter().zip(&expected).all(|(key, run)| *key == run.0));
            let counts = taken::<u32>(&mut rig, &outputs[1]);
            assert!(counts[..half].iter().zip(&expected).all(|(count, run)| u64::from(*count) == run.1));
        }
    }
}

/// Operands whose slices of one type are the same, to be refused before a launch.
pub fn operands<'a>(u32s: &'a DeviceSlice, u64s: &'a DeviceSlice) -> OrderedOperands<'a> {
    let (values, counts, sums) = (Some(u32s), Some(u64s), Some(u64s));
    OrderedOperands { keys: u32s, values, keys_out: u32s, counts, sums, runs: u64s }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let form = OrderedForm { key: Element::U32, count: Some(Element::U64), sum: Some((Element::U32, Element::U64)) };
    let new = |form| OrderedAggregation::with_tuning(&rig.device, form, SMALL).map(|_| ());
    assert_refused(new(OrderedForm { count: Some(Element::F32), ..form }), &["counts", "f32"]);
    assert_refused(new(OrderedForm { sum: Some((Element::F64, Element::U32)), ..form }), &["f64", "u32"]);
    let aggregation = OrderedAggregation::with_tuning(&rig.device, form, SMALL).unwrap();
    let [u32s, less, u64s] =
        [(Element::U32, 600), (Element::U32, 599), (Element::U64, 1)].map(|(e, n)| room(&rig, e, n));
    let [enough, little] = [0, 1].map(|less| scratch(&rig, aggregation.scratch_bytes(600) - less));
    let fits = operands(&u32s, &u64s);
    let mut launch = |operands, scratch| aggregation.launch(&mut rig.stream, &operands, scratch);
    assert_refused(launch(OrderedOperands { values: Some(&less), ..fits }, &enough), &["599", "600"]);
    assert_refused(launch(OrderedOperands { values: None, ..fits }, &enough), &["values", "missing"]);
    assert_refused(launch(OrderedOperands { counts: Some(&u32s), ..fits }, &enough), &["counts", "u32", "u64"]);
    assert_refused(launch(OrderedOperands { keys: &u64s, ..fits }, &enough), &["keys", "u64", "u32"]);
    assert_refused(launch(OrderedOperands { runs: &u32s, ..fits }, &enough), &["runs", "u32"]);
    assert_refused(launch(fits, &little), &["112", "111"]);
    let unique = OrderedForm { count: None, sum: None, ..form };
    let unique = OrderedAggregation::with_tuning(&rig.device, unique, SMALL).unwrap();
    assert_refused(unique.launch(&mut rig.stream, &fits, &enough), &["not compiled", "values"]);
}
