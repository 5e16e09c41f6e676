//! Histograms against the plain-Rust reference.

use warpcube_gpu::prims::histogram::{HistogramTuning, reference_bounds, reference_codes};
use warpcube_gpu::prims::{DeviceSlice, Element, Histogram, HistogramBins, Key, OrderedBits};
use warpcube_gpu::{DeviceBuffer, GpuError, LaneOrder};

use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::randoms;

/// Shared memory for 64 counters and 100 bytes of bounds.
const TUNING: HistogramTuning = HistogramTuning { threads: 64, blocks: 2, counter_bytes: 256, bound_bytes: 100 };

/// Counts that the launch has to overwrite.
fn counts(rig: &mut Rig, bins: usize) -> (DeviceBuffer, DeviceSlice) {
    let buffer = rig.upload(&vec![99u64; bins]);
    let slice = DeviceSlice::new(&buffer, 0, Element::U64, bins as u64).unwrap();
    (buffer, slice)
}

#[test]
fn codes_in_shared_and_in_device_memory() {
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        let histogram = Histogram::with_tuning(&rig.device, Element::I32, TUNING).unwrap();
        for rows in [0, 1, 33, 1027, 5000] {
            // Most keys are equal; slices that begin off a vector of 16 bytes.
            let keys: Vec<i32> =
                randoms(rows + 3, 41).map(|bits| if bits % 4 > 0 { 0 } else { (bits as i16 >> 4) as i32 }).collect();
            let buffer = rig.upload(&keys);
            let slice = DeviceSlice::all(&buffer, Element::I32).part(3, rows as u64).unwrap();
            for (shift, first, bins) in
                [(0, (1 << 31) - 30, 60), (5, (1 << 26) - 64, 128), (0, 1 << 31, 700), (3, 0, 2)]
            {
                let (found, counts) = counts(&mut rig, bins);
                let codes = HistogramBins::Codes { shift, first };
                histogram.launch(&mut rig.stream, &slice, codes, &counts).unwrap();
                let expected = reference_codes(&keys[3..], shift, first, bins);
                assert_eq!(rig.download::<u64>(&found), expected, "{rows} rows, {bins} bins, {lanes:?}");
            }
        }
    }
}

#[test]
fn keys_below_the_first_bin_are_not_counted() {
    /// Counts of keys in so many bins from `first` on.
    fn counted<K: Key>(rig: &mut Rig, keys: &[K], shift: u32, first: OrderedBits, bins: usize) -> Vec<u64> {
        let histogram = Histogram::with_tuning(&rig.device, K::ELEMENT, TUNING).unwrap();
        let slice = DeviceSlice::all(&rig.upload(keys), K::ELEMENT);
        let (found, counts) = counts(rig, bins);
        histogram.launch(&mut rig.stream, &slice, HistogramBins::Codes { shift, first }, &counts).unwrap();
        let found = rig.download::<u64>(&found);
        assert_eq!(found, reference_codes(keys, shift, first, bins), "{keys:?}, {shift}, {first}");
        found
    }
    let mut rig = Rig::new(LaneOrder::Forward);
    let none = [0, 0];
    // A bin of a code above all others, and one past it; first codes that no key can have.
    assert_eq!(counted(&mut rig, &[0u64, u64::MAX], 0, u64::MAX.into(), 2), [1, 0]);
    assert_eq!(counted(&mut rig, &[0u128, u128::MAX], 0, u128::MAX, 2), [1, 0]);
    assert_eq!(counted(&mut rig, &[0u128, 1], 0, 1 << 64, 2), none);
    assert_eq!(counted(&mut rig, &[0u32, 1, 2], 0, 1 << 64, 2), none);
    assert_eq!(counted(&mut rig, &[0u32, 1, 2], 0, 1 << 32, 2), none);
    assert_eq!(counted(&mut rig, &[0u32, 1 << 31], 31, 1, 2), [1, 0]);
    assert_eq!(counted(&mut rig, &[0u8, 255], 0, 255, 2), [1, 0]);
}

#[test]
fn bounds_in_shared_and_in_device_memory() {
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        let histogram = Histogram::with_tuning(&rig.device, Element::F64, TUNING).unwrap();
        let mut keys: Vec<f64> = randoms(1500, 42).map(|bits| f64::from(bits as i16)).collect();
        keys.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]);
        let buffer = rig.upload(&keys);
        let slice = DeviceSlice::all(&buffer, Element::F64);
        for bounds in [
            vec![-5e4, -100.0, 0.0, 0.0, 1e9],
            vec![0.0, f64::INFINITY],
            (0..200).map(|bound| f64::from(bound * 250 - 30_000)).collect(),
        ] {
            let (found, counts) = counts(&mut rig, bounds.len() - 1);
            let limits = rig.upload(&bounds);
            let limits = DeviceSlice::all(&limits, Element::F64);
            histogram.launch(&mut rig.stream, &slice, HistogramBins::Bounds(&limits), &counts).unwrap();
            assert_eq!(rig.download::<u64>(&found), reference_bounds(&keys, &bounds), "{bounds:?}, {lanes:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let histogram = Histogram::with_tuning(&rig.device, Element::I32, TUNING).unwrap();
    let buffer = rig.device.buffer(4096, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (keys, floats) = (slice(Element::I32, 50), slice(Element::F32, 50));
    let (counts, narrow) = (slice(Element::U64, 10), slice(Element::U32, 10));
    let (bounds, codes) = (slice(Element::I32, 10), HistogramBins::Codes { shift: 2, first: 0 });
    let mut refused = |keys, bins, counts, words: &[&str]| {
        let result = histogram.launch(&mut rig.stream, keys, bins, counts);
        let Err(GpuError::Contract(message)) = result else { panic!("{words:?}: {result:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(&floats, codes, &counts, &["f32", "i32"]);
    refused(&keys, codes, &narrow, &["u32", "u64"]);
    refused(&keys, HistogramBins::Codes { shift: 32, first: 0 }, &counts, &["32 bits", "by 32"]);
    refused(&keys, HistogramBins::Bounds(&bounds), &counts, &["10", "11"]);
}
