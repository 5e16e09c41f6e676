//! Segmented sort against the plain-Rust reference.

use bytemuck::Pod;
use warpcube_gpu::prims::segmented_sort::reference;
use warpcube_gpu::prims::{DeviceSlice, Element, Key, RadixOrder, Records, SegmentedSort, SegmentedTuning};
use warpcube_gpu::{GpuError, LaneOrder};

use crate::common::{spoil, spoilt};
use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::{TUNING, random, randoms};

/// Packs of 1,024 rows at most, of segments of up to 256 rows or alone; larger segments have tiles of 768 rows.
/// Rows of packs are compared where there are 64 or fewer of a segment in the mean.
pub const SEGMENTS: SegmentedTuning = SegmentedTuning {
    radix: TUNING,
    pack_threads: 256,
    pack_items: 4,
    pack_blocks: 1,
    pack_comparisons: 64,
    count_blocks: 2,
};

/// Offsets of segments of these sizes.
fn offsets(sizes: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut end = 0;
    let ends = sizes.into_iter().map(|size| {
        end += size as u64;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Sorts with payload of row numbers, or alone; in place or, where `numbered`, with the numbers made by the sort.
fn check<K: Key + Pod>(
    rig: &mut Rig,
    keys: &[K],
    offsets: &[u64],
    pairs: bool,
    in_place: bool,
    order: &RadixOrder,
    context: &str,
) {
    let payload = pairs.then_some(Element::U32);
    let sort = SegmentedSort::with_tuning(&rig.device, K::ELEMENT, payload, Element::U64, SEGMENTS).unwrap();
    let rows = keys.len() as u64;
    let numbers: Vec<u32> = (0..rows as u32).collect();
    let made = |rig: &mut Rig| (spoilt(rig, keys), spoilt(rig, &numbers));
    let buffers = [(rig.upload(keys), rig.upload(&numbers)), made(rig), made(rig)];
    let slices = buffers.each_ref().map(|(keys, values)| {
        let values = pairs.then(|| DeviceSlice::new(values, 0, Element::U32, rows).unwrap());
        (DeviceSlice::new(keys, 0, K::ELEMENT, rows).unwrap(), values)
    });
    let [input, output, other] = slices.each_ref().map(|(keys, values)| Records { keys, values: values.as_ref() });
    let bounds = rig.upload(offsets);
    let bounds = DeviceSlice::all(&bounds, Element::U64);
    let segments = offsets.len() as u64 - 1;
    let scratch = rig.device.buffer(sort.scratch_bytes(rows, segments), "scratch").unwrap();
    let found = if in_place {
        sort.launch_in_place(&mut rig.stream, input, other, &bounds, order, &scratch).unwrap();
        &buffers[0]
    } else {
        let input = Records { values: None, ..input };
        sort.launch(&mut rig.stream, input, output, other, &bounds, order, &scratch).unwrap();
        &buffers[1]
    };
    // Rows in no segment have what their place had before.
    let (mut sorted, mut rows) = if in_place { (keys.to_vec(), numbers) } else { (spoil(keys), spoil(&numbers)) };
    let expected = reference(keys, offsets, order);
    for at in offsets[0] as usize..offsets[offsets.len() - 1] as usize {
        (sorted[at], rows[at]) = (keys[expected[at] as usize], expected[at] as u32);
    }
    let bits = |keys: &[K]| keys.iter().map(|key| key.ordered_bits()).collect::<Vec<_>>();
    assert!(bits(&rig.download::<K>(&found.0)) == bits(&sorted), "{context}: keys");
    assert!(!pairs || rig.download::<u32>(&found.1) == rows, "{context}: payload");
}

/// Sizes of all classes and their edges, with empty segments between.
const MIXED: [usize; 16] = [0, 1, 255, 256, 0, 257, 2, 1023, 1024, 0, 0, 1025, 33, 1536, 31, 0];

#[test]
fn segments_of_all_classes() {
    let bounds = offsets(MIXED);
    let rows = *bounds.last().unwrap() as usize;
    let keys: Vec<f32> = randoms(rows, 11).map(|bits| (bits as i16) as f32 / 256.0).collect();
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        let context = format!("{lanes:?}");
        check(&mut rig, &keys, &bounds, true, false, &RadixOrder::of(Element::F32, false), &context);
        check(&mut rig, &keys, &bounds, true, true, &RadixOrder { bits: 9..32, descending: true }, &context);
    }
}

#[test]
fn many_tiny_segments_and_one_huge_among_empty_ones() {
    let order = RadixOrder::of(Element::U64, false);
    let key = |row: usize| random(row as u64) >> (row % 3 * 20);
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        for (name, bounds) in [
            ("tiny", offsets((0..1200).map(|segment| random(segment) as usize % 5))),
            ("rows", offsets(vec![1; 700])),
            ("huge", offsets((0..300).map(|segment| if segment == 150 { 5000 } else { 0 }))),
            ("empty", offsets(vec![0; 10])),
            ("large", offsets([1100, 1101, 0, 800, 2000])),
        ] {
            let keys: Vec<u64> = (0..*bounds.last().unwrap() as usize).map(key).collect();
            check(&mut rig, &keys, &bounds, false, lanes == ORDERS[1], &order, &format!("{name}, {lanes:?}"));
        }
    }
}

#[test]
fn equal_keys_keep_their_order_and_rows_outside_stay() {
    for lanes in orders(&ORDERS[2..]) {
        let mut rig = Rig::new(lanes);
        // The first 100 rows and the last 50 are in no segment.
        let bounds: Vec<u64> = offsets([40, 300, 1500, 3]).iter().map(|offset| offset + 100).collect();
        let rows = *bounds.last().unwrap() as usize + 50;
        for (name, key) in [("equal", (|_| 7.0) as fn(u64) -> f32), ("few", |row| (random(row) & 3) as f32)] {
            let keys: Vec<f32> = (0..rows as u64).map(key).collect();
            let order = RadixOrder::of(Element::F32, true);
            check(&mut rig, &keys, &bounds, true, true, &order, &format!("{name}, {lanes:?}"));
            let order = RadixOrder { bits: 31..31, descending: true };
            check(&mut rig, &keys, &bounds, true, false, &order, &format!("{name} by no bits, {lanes:?}"));
        }
    }
}

#[test]
fn payload_of_one_byte_moves_with_its_row() {
    let bounds = offsets(MIXED);
    let rows = *bounds.last().unwrap() as usize;
    let keys: Vec<u32> = randoms(rows, 12).map(|bits| bits as u32 >> 12).collect();
    let values: Vec<u8> = randoms(rows, 13).map(|bits| bits as u8).collect();
    let order = RadixOrder::of(Element::U32, false);
    let expected = reference(&keys, &bounds, &order);
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        let payload = Some(Element::U8);
        let sort = SegmentedSort::with_tuning(&rig.device, Element::U32, payload, Element::U64, SEGMENTS).unwrap();
        let places = [(rig.upload(&keys), rig.upload(&values)), (spoilt(&mut rig, &keys), spoilt(&mut rig, &values))];
        let slices = places.each_ref().map(|(keys, values)| {
            let values = DeviceSlice::new(values, 0, Element::U8, rows as u64).unwrap();
            (DeviceSlice::new(keys, 0, Element::U32, rows as u64).unwrap(), values)
        });
        let [records, other] = slices.each_ref().map(|(keys, values)| Records { keys, values: Some(values) });
        let bounds = DeviceSlice::all(&rig.upload(&bounds), Element::U64);
        let scratch = rig.device.buffer(sort.scratch_bytes(rows as u64, bounds.len() - 1), "scratch").unwrap();
        sort.launch_in_place(&mut rig.stream, records, other, &bounds, &order, &scratch).unwrap();
        let sorted: Vec<u8> = expected.iter().map(|row| values[*row as usize]).collect();
        assert!(rig.download::<u8>(&places[0].1)[..rows] == sorted, "{lanes:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let key = Element::F32;
    let sort = SegmentedSort::with_tuning(&rig.device, key, Some(Element::U32), Element::U64, SEGMENTS).unwrap();
    let buffer = rig.device.buffer(4096, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (keys, values, short) = (slice(key, 100), slice(Element::U32, 100), slice(Element::U32, 99));
    let (offsets, narrow) = (slice(Element::U64, 11), slice(Element::U32, 11));
    let good = Records { keys: &keys, values: Some(&values) };
    let bytes = sort.scratch_bytes(100, 10);
    let scratch = rig.device.buffer(bytes, "scratch").unwrap();
    let small = rig.device.buffer(bytes - 1, "scratch").unwrap();
    let all = RadixOrder::of(key, false);
    let mut refused = |other: Records<'_>, offsets: &DeviceSlice, order: &RadixOrder, scratch, words: &[&str]| {
        let result = sort.launch(&mut rig.stream, good, good, other, offsets, order, scratch);
        let Err(GpuError::Contract(message)) = result else { panic!("{words:?}: {result:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(Records { keys: &keys, values: Some(&short) }, &offsets, &all, &scratch, &["99", "100", "other"]);
    refused(good, &narrow, &all, &scratch, &["offsets", "u32", "u64"]);
    refused(good, &slice(Element::U64, 0), &all, &scratch, &["0 offsets", "one more than segments"]);
    refused(good, &offsets, &RadixOrder { bits: 8..40, descending: false }, &scratch, &["8..40"]);
    refused(good, &offsets, &all, &small, &["scratch", &(bytes - 1).to_string()]);
    let signed = SegmentedSort::new(&rig.device, key, None, Element::I64);
    assert!(matches!(signed, Err(GpuError::Contract(message)) if message.contains("i64")));
}
