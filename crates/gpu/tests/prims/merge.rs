//! Merge against the plain-Rust reference.

use warpcube_gpu::prims::merge::reference;
use warpcube_gpu::prims::{DeviceSlice, Element, Key, Merge, MergeTuning, Records};
use warpcube_gpu::{GpuError, LaneOrder};

use crate::common::spoilt;
use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::randoms;

/// Tiles of 192 rows.
const TUNING: MergeTuning = MergeTuning { threads: 64, items: 3, blocks: 1 };

fn check<K: Key>(rig: &mut Rig, inputs: [&[K]; 2], pairs: bool, descending: bool, context: &str) {
    let payload = pairs.then_some(Element::U64);
    let merge = Merge::with_tuning(&rig.device, K::ELEMENT, payload, TUNING).unwrap();
    let lengths = inputs.map(|keys| keys.len() as u64);
    let rows = lengths[0] + lengths[1];
    let numbers: Vec<u64> = (0..rows).collect();
    let (front, back) = numbers.split_at(inputs[0].len());
    let all = inputs.concat();
    let buffers = [
        (rig.upload(inputs[0]), rig.upload(front)),
        (rig.upload(inputs[1]), rig.upload(back)),
        (spoilt(rig, &all), spoilt(rig, &numbers)),
    ];
    let slices = [0, 1, 2].map(|at| {
        let (keys, values): &(_, _) = &buffers[at];
        let len = [lengths[0], lengths[1], rows][at];
        let values = pairs.then(|| DeviceSlice::new(values, 0, Element::U64, len).unwrap());
        (DeviceSlice::new(keys, 0, K::ELEMENT, len).unwrap(), values)
    });
    let [first, second, merged] = slices.each_ref().map(|(keys, values)| Records { keys, values: values.as_ref() });
    let scratch = rig.device.buffer(merge.scratch_bytes(rows), "scratch").unwrap();
    merge.launch(&mut rig.stream, [first, second], merged, descending, &scratch).unwrap();
    let expected = reference(inputs[0], inputs[1], descending);
    let found: Vec<_> = rig.download::<K>(&buffers[2].0).iter().map(|key| key.ordered_bits()).collect();
    assert!(found.iter().copied().eq(expected.iter().map(|row| all[*row as usize].ordered_bits())), "{context}: keys");
    if pairs {
        assert_eq!(rig.download::<u64>(&buffers[2].1), expected, "{context}: payload");
    }
}

#[test]
fn sequences_of_all_lengths() {
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (31, 1), (96, 96), (95, 96), (0, 400), (193, 0), (500, 700), (3, 1021)] {
            let sorted = |count, seed| {
                let mut keys: Vec<f32> = randoms(count, seed).map(|bits| (bits as i16 >> 7) as f32).collect();
                keys.sort_by(f32::total_cmp);
                keys
            };
            let (first, second) = (sorted(a, 21), sorted(b, 22));
            check(&mut rig, [&first, &second], true, false, &format!("{a} and {b}, {lanes:?}"));
        }
    }
}

#[test]
fn adversarial_sequences() {
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        let equal = vec![5i128; 450];
        let low: Vec<i128> = (-900..-300).rev().collect();
        let high: Vec<i128> = (0..450).rev().map(|key| key << 70).collect();
        for (name, inputs) in [("equal", [&equal, &equal]), ("apart", [&low, &high]), ("apart back", [&high, &low])] {
            for pairs in [false, true] {
                check(&mut rig, inputs.map(Vec::as_slice), pairs, true, &format!("{name}, pairs {pairs}, {lanes:?}"));
            }
        }
    }
}

#[test]
fn payload_of_one_byte_moves_with_its_row() {
    let mut rig = Rig::new(LaneOrder::Seeded(3));
    let merge = Merge::with_tuning(&rig.device, Element::U32, Some(Element::U8), TUNING).unwrap();
    let keys: [Vec<u32>; 2] = [(0..300).map(|row| row / 3).collect(), (0..500).map(|row| row / 7).collect()];
    let values: Vec<u8> = randoms(800, 23).map(|bits| bits as u8).collect();
    let all = keys.concat();
    let places = [
        (rig.upload(&keys[0]), rig.upload(&values[..300])),
        (rig.upload(&keys[1]), rig.upload(&values[300..])),
        (spoilt(&mut rig, &all), spoilt(&mut rig, &values)),
    ];
    let slices = places
        .each_ref()
        .map(|(keys, values)| (DeviceSlice::all(keys, Element::U32), DeviceSlice::all(values, Element::U8)));
    let [first, second, merged] = slices.each_ref().map(|(keys, values)| Records { keys, values: Some(values) });
    let scratch = rig.device.buffer(merge.scratch_bytes(800), "scratch").unwrap();
    merge.launch(&mut rig.stream, [first, second], merged, false, &scratch).unwrap();
    let expected = reference(&keys[0], &keys[1], false);
    assert!(rig.download::<u8>(&places[2].1).into_iter().eq(expected.iter().map(|row| values[*row as usize])));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let merge = Merge::with_tuning(&rig.device, Element::F32, Some(Element::U64), TUNING).unwrap();
    let buffer = rig.device.buffer(8192, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (keys, values) = (slice(Element::F32, 100), slice(Element::U64, 100));
    let (all, all_values, ints) = (slice(Element::F32, 200), slice(Element::U64, 200), slice(Element::I32, 100));
    let good = Records { keys: &keys, values: Some(&values) };
    let output = Records { keys: &all, values: Some(&all_values) };
    let scratch = rig.device.buffer(merge.scratch_bytes(200), "scratch").unwrap();
    let small = rig.device.buffer(merge.scratch_bytes(200) - 1, "scratch").unwrap();
    let mut refused = |second: Records<'_>, output: Records<'_>, scratch, words: &[&str]| {
        let result = merge.launch(&mut rig.stream, [good, second], output, false, scratch);
        let Err(GpuError::Contract(message)) = result else { panic!("{words:?}: {result:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(good, good, &scratch, &["100", "200", "output"]);
    refused(Records { keys: &ints, values: Some(&values) }, output, &scratch, &["i32", "second"]);
    refused(Records { keys: &keys, values: None }, output, &scratch, &["no payload"]);
    refused(good, output, &small, &["scratch"]);
}
