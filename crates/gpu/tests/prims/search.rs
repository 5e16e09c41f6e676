//! Search in sorted sequences against the plain-Rust reference.

use warpcube_gpu::prims::search::reference;
use warpcube_gpu::prims::{DeviceSlice, Element, Search, SearchMethod, SearchSide};
use warpcube_gpu::{GpuError, LaneOrder};

use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::randoms;

#[test]
fn both_methods_find_both_places() {
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        let search = Search::new(&rig.device, Element::F64, Element::U32).unwrap();
        for (rows, count, descending) in
            [(0, 5, false), (1, 33, true), (33, 1, false), (1000, 300, false), (70, 0, true)]
        {
            let mut sorted: Vec<f64> = randoms(rows, 31).map(|bits| f64::from(bits as i8)).collect();
            sorted.sort_by(f64::total_cmp);
            if descending {
                sorted.reverse();
            }
            let ends = [f64::NEG_INFINITY, f64::NAN, -0.0, 127.0, -128.0];
            let keys: Vec<f64> =
                ends.into_iter().chain(randoms(count, 32).map(|bits| f64::from(bits as i8) + 0.5)).collect();
            let keys = &keys[..count];
            let (buffer, wanted) = (rig.upload(&sorted), rig.upload(keys));
            let sequence = DeviceSlice::new(&buffer, 0, Element::F64, rows as u64).unwrap();
            let wanted = DeviceSlice::new(&wanted, 0, Element::F64, count as u64).unwrap();
            for side in [SearchSide::Lower, SearchSide::Upper] {
                for method in [SearchMethod::Binary, SearchMethod::Pary] {
                    let found = rig.upload(&vec![77u32; count]);
                    let places = DeviceSlice::new(&found, 0, Element::U32, count as u64).unwrap();
                    search.launch(&mut rig.stream, &sequence, descending, &wanted, side, &places, method).unwrap();
                    let found: Vec<u64> = rig.download::<u32>(&found)[..count].iter().map(|at| (*at).into()).collect();
                    let expected = reference(&sorted, descending, keys, side);
                    assert_eq!(found, expected, "{rows} rows, {count} keys, {side:?}, {method:?}, {lanes:?}");
                }
            }
        }
    }
}

#[test]
fn keys_of_128_bits_are_found_by_all_of_their_bits() {
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        let search = Search::new(&rig.device, Element::U128, Element::U64).unwrap();
        // Halves of keys are equal often, and in other order than the keys.
        let wide = |bits: u64| u128::from(bits % 7) << 64 | u128::from(bits >> 60);
        let mut sorted: Vec<u128> = randoms(900, 33).map(wide).collect();
        sorted.sort_unstable();
        let keys: Vec<u128> = randoms(200, 34).map(wide).chain([0, u128::MAX]).collect();
        let (buffer, wanted) = (rig.upload(&sorted), rig.upload(&keys));
        let sequence = DeviceSlice::new(&buffer, 0, Element::U128, sorted.len() as u64).unwrap();
        let wanted = DeviceSlice::new(&wanted, 0, Element::U128, keys.len() as u64).unwrap();
        for side in [SearchSide::Lower, SearchSide::Upper] {
            for method in [SearchMethod::Binary, SearchMethod::Pary] {
                let found = rig.upload(&vec![77u64; keys.len()]);
                let places = DeviceSlice::new(&found, 0, Element::U64, keys.len() as u64).unwrap();
                search.launch(&mut rig.stream, &sequence, false, &wanted, side, &places, method).unwrap();
                let found = rig.download::<u64>(&found)[..keys.len()].to_vec();
                assert_eq!(found, reference(&sorted, false, &keys, side), "{side:?}, {method:?}, {lanes:?}");
            }
        }
    }
}

#[test]
fn few_keys_are_searched_by_warps() {
    let rig = Rig::new(LaneOrder::Forward);
    let search = Search::new(&rig.device, Element::F64, Element::U32).unwrap();
    let warps = u64::from(rig.device.info().multiprocessors) * 64;
    assert_eq!(search.method(warps), SearchMethod::Pary);
    assert_eq!(search.method(warps + 1), SearchMethod::Binary);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let search = Search::new(&rig.device, Element::F64, Element::U32).unwrap();
    let buffer = rig.device.buffer(4096, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (floats, ints, places) = (slice(Element::F64, 50), slice(Element::I64, 50), slice(Element::U32, 50));
    let short = slice(Element::U32, 49);
    let mut refused = |sorted, keys, places, words: &[&str]| {
        let (side, method) = (SearchSide::Lower, SearchMethod::Binary);
        let result = search.launch(&mut rig.stream, sorted, false, keys, side, places, method);
        let Err(GpuError::Contract(message)) = result else { panic!("{words:?}: {result:?}") };
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(&ints, &floats, &places, &["i64", "sorted"]);
    refused(&floats, &ints, &places, &["i64", "keys"]);
    refused(&floats, &floats, &floats, &["f64", "u32"]);
    refused(&floats, &floats, &short, &["49", "50"]);
    let signed = Search::new(&rig.device, Element::F64, Element::I32).map(drop);
    assert!(matches!(signed, Err(GpuError::Contract(message)) if message.contains("i32")));
}
