//! Radix sort by both algorithms against the plain-Rust reference.

use bytemuck::Pod;
use warpcube_gpu::prims::radix_sort::reference;
use warpcube_gpu::prims::{
    DeviceSlice, Element, Key, RadixAlgorithm, RadixOrder, RadixSort, RadixTuning, Records, SegmentedTuning,
};
use warpcube_gpu::{GpuError, LaneOrder};

use crate::common::spoilt;
use crate::emulated_support::{ORDERS, Rig, orders};
use crate::segmented_sort::SEGMENTS;

/// Tiles of 768 rows and launches of two tiles, so that small inputs have many.
pub const TUNING: RadixTuning =
    RadixTuning { threads: 256, items: 3, blocks: 1, count_threads: 64, count_columns: 4, portion_rows: 1600 };

/// Numbers from a counter (Steele and others, SplitMix, 2014).
pub fn random(at: u64) -> u64 {
    let mut bits = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

pub fn randoms(count: usize, seed: u64) -> impl Iterator<Item = u64> {
    (0..count as u64).map(move |at| random(at ^ seed << 40))
}

/// Where the result of a sort is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Apart,
    InPlace,
    Numbered,
}

/// A sort by an algorithm, cut small.
fn small(rig: &Rig, key: Element, payload: Option<Element>, algorithm: RadixAlgorithm) -> RadixSort {
    match algorithm {
        RadixAlgorithm::Lsd => RadixSort::with_tuning(&rig.device, key, payload, TUNING),
        RadixAlgorithm::Msd => {
            let pack_comparisons = if matches!(key.bytes(), 4 | 8) { SEGMENTS.pack_comparisons } else { 0 };
            let bins = SegmentedTuning { pack_comparisons, ..SEGMENTS };
            RadixSort::most_significant_first(&rig.device, key, payload, TUNING, bins)
        }
    }
    .unwrap()
}

/// Sorts keys with payload of `P`, or alone where that has no size, and compares with the reference.
fn check<K: Key, P: Pod + PartialEq + std::fmt::Debug>(
    rig: &mut Rig,
    keys: &[K],
    payload: Option<Element>,
    value: impl Fn(u64) -> P,
    order: &RadixOrder,
    form: Form,
    context: &str,
) {
    for algorithm in RadixAlgorithm::ALL {
        let sort = small(rig, K::ELEMENT, payload, algorithm);
        check_sort(rig, &sort, keys, payload, &value, order, form, &format!("{context}, {algorithm}"));
    }
}

#[expect(clippy::too_many_arguments, reason = "what a sort is of, and how")]
fn check_sort<K: Key, P: Pod + PartialEq + std::fmt::Debug>(
    rig: &mut Rig,
    sort: &RadixSort,
    keys: &[K],
    payload: Option<Element>,
    value: &impl Fn(u64) -> P,
    order: &RadixOrder,
    form: Form,
    context: &str,
) {
    let rows = keys.len() as u64;
    let canonical = |key: &K| key.ordered_bits();
    let permutation = reference(keys, order);
    let expected: Vec<_> = permutation.iter().map(|row| canonical(&keys[*row as usize])).collect();
    let values: Vec<P> = (0..rows).map(value).collect();
    let made = |rig: &mut Rig| (spoilt(rig, keys), spoilt(rig, &values));
    let buffers = [(rig.upload(keys), rig.upload(&values)), made(rig), made(rig)];
    let slices = buffers.each_ref().map(|(keys, values)| {
        let values = payload.map(|payload| DeviceSlice::new(values, 0, payload, rows).unwrap());
        (DeviceSlice::new(keys, 0, K::ELEMENT, rows).unwrap(), values)
    });
    let [input, output, other] = slices.each_ref().map(|(keys, values)| Records { keys, values: values.as_ref() });
    let scratch = rig.device.buffer(sort.scratch_bytes(rows), "scratch").unwrap();
    let result = match form {
        Form::InPlace => {
            sort.launch_in_place(&mut rig.stream, input, other, order, &scratch).unwrap();
            &buffers[0]
        }
        Form::Apart | Form::Numbered => {
            let input = if form == Form::Numbered { Records { values: None, ..input } } else { input };
            sort.launch(&mut rig.stream, input, output, other, order, &scratch).unwrap();
            assert!(rig.download::<K>(&buffers[0].0).iter().map(canonical).eq(keys.iter().map(canonical)), "{context}");
            &buffers[1]
        }
    };
    let found: Vec<_> = rig.download::<K>(&result.0).iter().map(canonical).collect();
    assert!(found == expected, "{context}, keys in {form:?}");
    if payload.is_some() {
        let expected: Vec<P> = permutation.iter().map(|row| value(*row)).collect();
        assert!(rig.download::<P>(&result.1) == expected, "{context}, payload in {form:?}");
    }
}

#[test]
fn keys_of_four_bytes_at_every_length() {
    let order = RadixOrder::of(Element::U32, false);
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        for rows in [0, 1, 31, 32, 33, 767, 768, 769] {
            let keys: Vec<u32> = randoms(rows, 1).map(|bits| bits as u32).collect();
            check(&mut rig, &keys, None, |_| 0u32, &order, Form::Apart, &format!("{rows} rows, {lanes:?}"));
        }
    }
    for lanes in orders(&ORDERS[1..4]) {
        let mut rig = Rig::new(lanes);
        for (rows, form) in [(1023, Form::Apart), (1024, Form::InPlace), (1537, Form::Apart), (6000, Form::InPlace)] {
            let keys: Vec<u32> = randoms(rows, 2).map(|bits| bits as u32).collect();
            check(&mut rig, &keys, None, |_| 0u32, &order, form, &format!("{rows} rows, {lanes:?}"));
        }
    }
}

#[test]
fn adversarial_keys() {
    const ROWS: usize = 2500;
    let order = RadixOrder::of(Element::U32, false);
    type Shape = (&'static str, fn(u64) -> u32);
    let shapes: [Shape; 8] = [
        ("equal", |_| 0xdead_beef),
        ("sorted", |row| row as u32),
        ("out of order at one place", |row| if row == 1400 { 1398 } else { row as u32 }),
        ("out of order at the end", |row| if row == ROWS as u64 - 1 { 0 } else { row as u32 }),
        ("reversed", |row| u32::MAX - row as u32),
        ("of one digit", |row| (random(row) as u32 & 0xff) << 16 | 0x1200_0034),
        ("of two digits", |row| (random(row) as u32 & 0x00ff_ff00) | 7),
        ("at the ends", |row| if random(row) & 1 == 0 { 0 } else { u32::MAX }),
    ];
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        for (name, key) in shapes {
            let keys: Vec<u32> = (0..ROWS as u64).map(key).collect();
            for form in [Form::Apart, Form::InPlace] {
                check(&mut rig, &keys, None, |_| 0u32, &order, form, &format!("{name}, {lanes:?}"));
            }
        }
    }
}

#[test]
fn floats_with_payload_keep_the_order_of_equal_keys() {
    let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, f32::MIN_POSITIVE, -1.5];
    let key =
        |bits: u64| if bits & 3 == 0 { special[(bits >> 8) as usize % 8] } else { (bits >> 40) as i8 as f32 * 0.5 };
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        for (rows, descending, form) in
            [(1, false, Form::Apart), (900, true, Form::InPlace), (2000, false, Form::Numbered)]
        {
            let keys: Vec<f32> = randoms(rows, 3).map(key).collect();
            let order = RadixOrder::of(Element::F32, descending);
            let context = format!("{rows} rows, {lanes:?}");
            check(&mut rig, &keys, Some(Element::U32), |row| row as u32, &order, form, &context);
        }
    }
}

#[test]
fn a_range_of_bits_leaves_the_others_alone() {
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        let keys: Vec<i64> = randoms(1700, 4).map(|bits| bits as i64).collect();
        for (bits, descending, form) in [
            (0..64, true, Form::Apart),
            (3..3, false, Form::Apart),
            (3..3, false, Form::InPlace),
            (5..14, false, Form::Apart),
            (60..64, true, Form::InPlace),
            (31..32, false, Form::Numbered),
        ] {
            let context = format!("bits {bits:?}, {lanes:?}");
            let order = RadixOrder { bits, descending };
            check(&mut rig, &keys, Some(Element::I64), |row| row as i64, &order, form, &context);
        }
    }
}

#[test]
fn keys_in_order_by_the_bits_that_count_stay() {
    let mut rig = Rig::new(LaneOrder::Seeded(4));
    for (bits, descending) in [(5..20, false), (5..20, true), (7..20, false), (4..20, false), (4..20, true)] {
        let ordered = |row: u64| if descending { 3000 - row } else { row };
        let keys: Vec<u64> =
            (0..1700).map(|row| random(row) << 20 | ordered(row / 2) << 5 | random(row) & 31).collect();
        let order = RadixOrder { bits: bits.clone(), descending };
        for form in [Form::Apart, Form::InPlace, Form::Numbered] {
            let context = format!("bits {bits:?}, descending {descending}");
            check(&mut rig, &keys, Some(Element::U32), |row| row as u32, &order, form, &context);
        }
    }
}

#[test]
fn keys_and_payload_of_sixteen_bytes_and_of_one() {
    let wide = |row: u64| u128::from(random(row)) << 64 | u128::from(row % 3) << 90 | u128::from(random(!row));
    for lanes in orders(&ORDERS[2..]) {
        let mut rig = Rig::new(lanes);
        let keys: Vec<i128> = (0..800).map(|row| wide(row) as i128).collect();
        let order = RadixOrder::of(Element::I128, false);
        check(&mut rig, &keys, Some(Element::U128), |row| wide(row + 9), &order, Form::Apart, "wide keys");
        let order = RadixOrder { bits: 60..100, descending: true };
        check(&mut rig, &keys, Some(Element::U128), wide, &order, Form::InPlace, "part of wide keys");
        let keys: Vec<u8> = randoms(1600, 5).map(|bits| bits as u8 & 0x3f).collect();
        let order = RadixOrder::of(Element::U8, true);
        check(&mut rig, &keys, None, |_| 0u32, &order, Form::Apart, "bytes");
        check(&mut rig, &keys, Some(Element::U8), |row| random(row) as u8, &order, Form::InPlace, "bytes of bytes");
        // 256 rows have numbers of a byte.
        check(&mut rig, &keys[..256], Some(Element::U8), |row| row as u8, &order, Form::Numbered, "numbers of a byte");
        let wide: Vec<i128> = (0..800).map(|row| wide(row) as i128).collect();
        let order = RadixOrder { bits: 60..100, descending: false };
        check(&mut rig, &wide, Some(Element::U8), |row| random(row) as u8, &order, Form::Apart, "bytes of wide keys");
    }
}

#[test]
fn recorded_sorts_run_again() {
    let mut rig = Rig::new(LaneOrder::Forward);
    for algorithm in RadixAlgorithm::ALL {
        let sort = small(&rig, Element::U32, None, algorithm);
        recorded_sort(&mut rig, &sort);
    }
}

fn recorded_sort(rig: &mut Rig, sort: &RadixSort) {
    let keys: Vec<u32> = randoms(2000, 6).map(|bits| bits as u32).collect();
    let buffers = [rig.upload(&keys), spoilt(rig, &keys), spoilt(rig, &keys)];
    let slices = buffers.each_ref().map(|buffer| DeviceSlice::all(buffer, Element::U32));
    let [input, output, other] = slices.each_ref().map(|keys| Records { keys, values: None });
    let scratch = rig.device.buffer(sort.scratch_bytes(2000), "scratch").unwrap();
    let mut work = warpcube_gpu::Work::new(&rig.device);
    sort.launch(&mut work, input, output, other, &RadixOrder::of(Element::U32, false), &scratch).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    let mut expected = keys.clone();
    expected.sort_unstable();
    for _ in 0..2 {
        rig.stream.fill(&buffers[1], 0, 0, 8000).unwrap();
        rig.stream.run(&mut recording, &[&buffers[0], &buffers[1], &buffers[2], &scratch]).unwrap();
        assert_eq!(rig.download::<u32>(&buffers[1]), expected);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    RadixAlgorithm::ALL.into_iter().for_each(refusals);
}

fn refusals(algorithm: RadixAlgorithm) {
    let mut rig = Rig::new(LaneOrder::Forward);
    let sort = small(&rig, Element::F32, Some(Element::U32), algorithm);
    let buffer = rig.device.buffer(4096, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (keys, values, short) = (slice(Element::F32, 100), slice(Element::U32, 100), slice(Element::U32, 99));
    let (ints, few) = (slice(Element::U32, 100), slice(Element::F32, 9));
    let good = Records { keys: &keys, values: Some(&values) };
    let scratch = rig.device.buffer(sort.scratch_bytes(100), "scratch").unwrap();
    let too_little = rig.device.buffer(sort.scratch_bytes(100) - 1, "scratch").unwrap();
    let all = RadixOrder::of(Element::F32, false);
    let mut refused = |output: Records<'_>, other: Records<'_>, order: &RadixOrder, scratch, words: &[&str]| {
        let result = sort.launch(&mut rig.stream, good, output, other, order, scratch);
        let Err(GpuError::Contract(message)) = result else { panic!("{words:?}: {result:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(Records { keys: &keys, values: Some(&short) }, good, &all, &scratch, &["99", "100", "output payload"]);
    refused(Records { keys: &few, values: Some(&values) }, good, &all, &scratch, &["9", "100", "output keys"]);
    refused(good, Records { keys: &ints, values: Some(&values) }, &all, &scratch, &["u32", "f32", "other"]);
    refused(good, Records { keys: &keys, values: None }, &all, &scratch, &["no payload of u32"]);
    refused(good, good, &RadixOrder { bits: 0..33, descending: false }, &scratch, &["0..33", "32"]);
    refused(good, good, &all, &too_little, &["scratch", &(sort.scratch_bytes(100) - 1).to_string()]);
    // 257 rows have no numbers of a byte.
    let sort = small(&rig, Element::F32, Some(Element::U8), algorithm);
    let (keys, values) = (slice(Element::F32, 257), slice(Element::U8, 257));
    let good = Records { keys: &keys, values: Some(&values) };
    let scratch = rig.device.buffer(sort.scratch_bytes(257), "scratch").unwrap();
    let result = sort.launch(&mut rig.stream, Records { values: None, ..good }, good, good, &all, &scratch);
    let Err(GpuError::Contract(message)) = result else { panic!("{result:?}") };
    assert!(message.contains("257") && message.contains("u8"), "{message}");
}
