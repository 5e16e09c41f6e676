//! Bad and extreme input: lengths just below, at and above a vector and a tile, k of 0 and past the rows, columns of
//! NULL alone. What each primitive's own test has is not repeated here.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::histogram::{HistogramTuning, reference_codes};
use warpcube_gpu::prims::search::reference as searched;
use warpcube_gpu::prims::sort::reference as sorted_rows;
use warpcube_gpu::prims::topk::{Algorithm, BitonicLevel, TopK, TopKSpec, check};
use warpcube_gpu::prims::{
    DeviceSlice, Element, Histogram, HistogramBins, Key, Nulls, Search, SearchMethod, SearchSide, Sort, SortColumn,
    SortKey,
};

use crate::common::{given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::TUNING;

#[test]
fn histograms_of_lengths_around_a_step() {
    // A block's step has 1,024 keys of 32 bits.
    let tuning = HistogramTuning { threads: 64, blocks: 2, counter_bytes: 256, bound_bytes: 100 };
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let histogram = Histogram::with_tuning(&rig.device, Element::U32, tuning).unwrap();
        for n in lengths(1024) {
            let keys: Vec<u32> = noise(n as u64).map(|x| x as u32).take(n).collect();
            let (input, counts) = (given(&mut rig, Element::U32, &keys), room(&rig, Element::U64, 16));
            let bins = HistogramBins::Codes { shift: 28, first: 0 };
            histogram.launch(&mut rig.stream, &input, bins, &counts).unwrap();
            assert_eq!(taken::<u64>(&mut rig, &counts), reference_codes(&keys, 28, 0, 16), "{n} keys, {order:?}");
        }
    }
}

#[test]
fn searches_of_lengths_around_a_block() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let search = Search::new(&rig.device, Element::U32, Element::U64).unwrap();
        for n in lengths(256) {
            let sorted: Vec<u32> = (0..n as u32).map(|row| row / 3 * 2).collect();
            let keys: Vec<u32> = noise(5).map(|x| x as u32 % (n as u32 + 2)).take(n).collect();
            let [sequence, wanted] = [&sorted, &keys].map(|values| given(&mut rig, Element::U32, values));
            let places = room(&rig, Element::U64, n);
            for (method, side) in [(SearchMethod::Binary, SearchSide::Upper), (SearchMethod::Pary, SearchSide::Lower)] {
                search.launch(&mut rig.stream, &sequence, false, &wanted, side, &places, method).unwrap();
                let expected = searched(&sorted, false, &keys, side);
                assert!(taken::<u64>(&mut rig, &places) == expected, "{n} rows, {method:?}, {order:?}");
            }
        }
    }
}

#[test]
fn sorts_of_lengths_around_a_tile_and_of_null_alone() {
    let column = SortColumn { nulls: Nulls::Last, descending: true, ..SortColumn::of(Element::I32) };
    for order in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(order);
        let sort = Sort::with_tuning(&rig.device, &[column], Some(Element::U32), |_| TUNING).unwrap();
        for n in lengths(u64::from(TUNING.threads * TUNING.items)) {
            let keys: Vec<i32> = noise(7).map(|x| x as i32 >> 20).take(n).collect();
            for are_null in [false, true] {
                let is_valid = |row: usize| u8::from(!are_null && !row.is_multiple_of(5));
                let valid: Vec<u8> = (0..n).map(is_valid).collect();
                let bits = keys.iter().zip(&valid).map(|(key, valid)| (*valid != 0).then(|| key.ordered_bits()));
                let expected: Vec<u32> =
                    sorted_rows(&[column], &[bits.collect()]).into_iter().map(|row| row as u32).collect();
                let (values, valid) = (given(&mut rig, Element::I32, &keys), given(&mut rig, Element::U8, &valid));
                let rows = room(&rig, Element::U32, n);
                let memory = scratch(&rig, sort.scratch_bytes(n as u64));
                let key = SortKey { values: &values, valid: Some(&valid) };
                sort.launch(&mut rig.stream, &[key], Some(&rows), &memory).unwrap();
                assert!(taken::<u32>(&mut rig, &rows) == expected, "{n} rows, all NULL: {are_null}, {order:?}");
            }
        }
    }
}

#[test]
fn top_k_of_none_of_all_and_of_more_than_there_are() {
    let algorithms = [
        Algorithm::Threshold,
        Algorithm::SortAndChoose,
        Algorithm::RadixSelect,
        Algorithm::BucketSelect,
        Algorithm::HeapShared,
        Algorithm::HeapRegisters,
        Algorithm::Bitonic(BitonicLevel::Reassigned),
    ];
    let lanes = orders(&ORDERS[..3]).flat_map(|lanes| algorithms.map(|algorithm| (lanes, algorithm)));
    for (lanes, algorithm) in lanes {
        let mut rig = Rig::new(lanes);
        for (n, k) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 32), (40, 0), (31, 32), (32, 32), (33, 32)] {
            let keys: Vec<f32> = noise(n).map(|x| (x % 100) as f32).take(n as usize).collect();
            let top = TopK::new(&rig.device, &TopKSpec::new(Element::F32, k, algorithm)).unwrap();
            assert_eq!(top.results(n), k.min(n));
            let input = given(&mut rig, Element::F32, &keys);
            let results = top.results(n) as usize;
            let (out_keys, out_rows) = (room(&rig, Element::F32, results), room(&rig, Element::U64, results));
            let memory = scratch(&rig, top.scratch_bytes(n));
            top.launch(&mut rig.stream, &input, &out_keys, &out_rows, &memory).unwrap();
            let (found, rows) = (taken::<f32>(&mut rig, &out_keys), taken::<u64>(&mut rig, &out_rows));
            check(&keys, k, top.spec().order, top.spec().ties, &found, &rows)
                .unwrap_or_else(|reason| panic!("{algorithm}, {k} of {n}, {lanes:?}: {reason}"));
        }
    }
}

#[test]
fn slices_that_leave_their_buffer_are_refused() {
    let rig = Rig::new(LaneOrder::Forward);
    let buffer = rig.device.buffer(64, "operands").unwrap();
    let refused = |result: Result<DeviceSlice, warpcube_gpu::GpuError>, words: &[&str]| {
        crate::common::assert_refused(result.map(|_| ()), words);
    };
    refused(DeviceSlice::new(&buffer, 0, Element::U64, 9), &["9 elements of u64", "64 bytes"]);
    refused(DeviceSlice::new(&buffer, 4, Element::U64, 1), &["at 4"]);
    refused(DeviceSlice::new(&buffer, 0, Element::U128, u64::MAX), &["elements of u128"]);
    let slice = DeviceSlice::all(&buffer, Element::U32);
    refused(slice.part(9, 8), &["8 elements at 9", "16"]);
    refused(slice.part(u64::MAX, 2), &["2 elements"]);
}
