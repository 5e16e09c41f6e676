//! Top-k: every algorithm on every distribution, against the reference.

use std::collections::BTreeSet;

use warpcube_gpu::prims::topk::{
    Algorithm, BitonicLevel, FIXED_BYTES_MAX, K_MAX, Order, TOPK_TUNING, Ties, TopK, TopKSpec, TopKTuning, check,
};
use warpcube_gpu::prims::{DeviceSlice, Element, Key};
use warpcube_gpu::{DeviceBuffer, GpuError, LaneOrder, Work};

use crate::emulated_support::{ORDERS, Rig, is_on_cuda, orders};

/// Numbers that look random.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Keys behind `before` elements of other use, found by a launcher.
fn find<K: Key>(rig: &mut Rig, top: &TopK, keys: &[K], before: usize) -> (Vec<K>, Vec<u64>) {
    let (keys, rows, _) = run(rig, top, keys, before);
    (keys, rows)
}

/// The same, with the scratch memory after it.
fn run<K: Key>(rig: &mut Rig, top: &TopK, keys: &[K], before: usize) -> (Vec<K>, Vec<u64>, DeviceBuffer) {
    let (n, spec) = (keys.len() as u64, *top.spec());
    let mut placed = vec![K::zeroed(); before];
    placed.extend_from_slice(keys);
    let input = rig.upload(&placed);
    let input = DeviceSlice::new(&input, before * size_of::<K>(), K::ELEMENT, n).unwrap();
    let results = top.results(n) as usize;
    let out_keys = rig.device.buffer(results * size_of::<K>(), "keys").unwrap();
    let out_rows = rig.device.buffer(results * spec.rows.bytes(), "rows").unwrap();
    let scratch = rig.device.buffer(top.scratch_bytes(n), "scratch").unwrap();
    let (key_slice, row_slice) = (DeviceSlice::all(&out_keys, K::ELEMENT), DeviceSlice::all(&out_rows, spec.rows));
    top.launch(&mut rig.stream, &input, &key_slice, &row_slice, &scratch).unwrap();
    let rows = match spec.rows {
        Element::U32 => rig.download::<u32>(&out_rows).into_iter().map(u64::from).collect(),
        _ => rig.download::<u64>(&out_rows),
    };
    (rig.download(&out_keys), rows, scratch)
}

fn holds<K: Key>(rig: &mut Rig, top: &TopK, keys: &[K], before: usize) -> Result<(), String> {
    let (out_keys, out_rows) = find(rig, top, keys, before);
    check(keys, top.spec().k, top.spec().order, top.spec().ties, &out_keys, &out_rows)
}

/// Distributions of floats: the paper's, and special values.
fn floats(n: usize) -> Vec<(&'static str, Vec<f32>)> {
    let uniform: Vec<f32> = (0..n as u64).map(|i| (mix(i) >> 40) as f32 / (1 << 24) as f32).collect();
    let mut ascending = uniform.clone();
    ascending.sort_by(f32::total_cmp);
    let descending = ascending.iter().rev().copied().collect();
    let normal = (0..n as u64).map(|i| (0..8).map(|j| (mix(i * 8 + j) >> 44) as f32).sum::<f32>() - 4e6).collect();
    // All ones but four, each of which differs in one byte.
    let mut killer = vec![1.0f32; n];
    for (byte, place) in [n / 2, n / 3, n / 5, n / 7].into_iter().enumerate() {
        if place < n {
            killer[place] = f32::from_bits(1.0f32.to_bits() ^ (1 << (8 * byte + 3)));
        }
    }
    let odd = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, f32::MIN_POSITIVE / 4.0];
    let odd = (0..n as u64).map(|i| odd[mix(i) as usize % odd.len()]).collect();
    let rare_nan = uniform.iter().enumerate().map(|(i, key)| if i % 97 == 13 { f32::NAN } else { *key }).collect();
    vec![
        ("few", (0..n as u64).map(|i| (mix(i) % 3) as f32 - 1.0).collect()),
        ("uniform", uniform),
        ("ascending", ascending),
        ("descending", descending),
        ("equal", vec![-2.5; n]),
        ("normal", normal),
        ("bucket_killer", killer),
        ("odd", odd),
        ("rare_nan", rare_nan),
        ("all_nan", vec![f32::NAN; n]),
        ("infinite", vec![f32::INFINITY; n]),
    ]
}

/// Orders of lanes that most tests of top-k run in.
const THREE: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)];

const SELECTIONS: [Algorithm; 3] = [Algorithm::Threshold, Algorithm::RadixSelect, Algorithm::BucketSelect];

#[test]
fn all_lengths_around_warps_vectors_and_blocks() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        for (at, algorithm) in SELECTIONS.into_iter().enumerate() {
            let top = |k| TopK::new(&rig.device, &TopKSpec::new(Element::F32, k, algorithm)).unwrap();
            let (few, some) = (top(3), top(300));
            for (step, n) in [0usize, 1, 2, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 5000].into_iter().enumerate() {
                // Every length is misaligned in one of the algorithms.
                let keys: Vec<f32> = (0..n as u64).map(|i| (mix(i) % 1000) as f32).collect();
                for top in [&few, &some] {
                    holds(&mut rig, top, &keys, (at + step) % 4)
                        .unwrap_or_else(|reason| panic!("{algorithm}, {n} keys, {order:?}: {reason}"));
                }
            }
        }
    }
}

#[test]
fn every_distribution_of_floats() {
    // Long enough for a sample, and a rest behind the last chunk.
    let distributions = floats(33_001);
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        // The order of lanes matters most to the default.
        let algorithms = if order == LaneOrder::Seeded(1) || is_on_cuda() { &SELECTIONS[..] } else { &SELECTIONS[..1] };
        for algorithm in algorithms.iter().copied() {
            for (k, ties) in [(1, Ties::Any), (100, Ties::FirstRows), (2500, Ties::Any)] {
                let spec = TopKSpec { ties, ..TopKSpec::new(Element::F32, k, algorithm) };
                let top = TopK::new(&rig.device, &spec).unwrap();
                for (name, keys) in &distributions {
                    holds(&mut rig, &top, keys, 1)
                        .unwrap_or_else(|reason| panic!("{algorithm} of {name}, k = {k}, {order:?}: {reason}"));
                }
            }
        }
    }
}

#[test]
fn the_smallest_of_floats() {
    let distributions = floats(33_001);
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        // The order of lanes matters most to the default.
        let algorithms = if lanes == LaneOrder::Forward { &SELECTIONS[..] } else { &SELECTIONS[..1] };
        for (k, algorithm) in
            [7, 3000].into_iter().flat_map(|k| algorithms.iter().map(move |algorithm| (k, *algorithm)))
        {
            let spec = TopKSpec { ties: Ties::FirstRows, ..TopKSpec::new(Element::F32, k, algorithm) };
            let top = TopK::new(&rig.device, &TopKSpec { order: Order::Smallest, ..spec }).unwrap();
            for (name, keys) in &distributions {
                holds(&mut rig, &top, keys, 3)
                    .unwrap_or_else(|reason| panic!("{algorithm} of {name}, {k}, {lanes:?}: {reason}"));
            }
        }
    }
}

fn integers<K: Key>(element: Element, order: Order, rows: Element, of: impl Fn(u64) -> K) {
    let keys: Vec<K> = (0..40_000).map(|i| of(mix(i))).collect();
    let few: Vec<K> = (0..40_000).map(|i| of(mix(i) % 5)).collect();
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        for (k, algorithm) in [(50, SELECTIONS[0]), (2200, SELECTIONS[0]), (9, SELECTIONS[1]), (9, SELECTIONS[2])] {
            let spec = TopKSpec { rows, order, ties: Ties::FirstRows, ..TopKSpec::new(element, k, algorithm) };
            let top = TopK::new(&rig.device, &spec).unwrap();
            for keys in [&keys, &few] {
                holds(&mut rig, &top, keys, 1).unwrap_or_else(|reason| panic!("{algorithm} of {element}: {reason}"));
            }
        }
    }
}

#[test]
fn integers_of_32_bits() {
    integers(Element::I32, Order::Largest, Element::U32, |x| x as i32);
}

#[test]
fn integers_of_64_bits() {
    integers(Element::I64, Order::Smallest, Element::U32, |x| x as i64);
    integers(Element::U64, Order::Largest, Element::U32, |x| x);
}

#[test]
fn bytes() {
    integers(Element::U8, Order::Largest, Element::U32, |x| x as u8);
}

#[test]
fn doubles() {
    integers(Element::F64, Order::Largest, Element::U64, |x| x as i64 as f64);
}

#[test]
fn keys_of_128_bits_hold_several_order_by_keys() {
    integers(Element::U128, Order::Smallest, Element::U64, |x| u128::from(x % 7) << 64 | u128::from(x >> 3));
    // Both halves and the sign decide.
    integers(Element::I128, Order::Largest, Element::U64, |x| (i128::from(x % 7) - 3) << 64 | i128::from(x >> 3));
}

/// The row of sample `i`; as in kernels/prims/topk/filter.cuh.
fn sample_row(i: u64, samples: u64, n: u64) -> u64 {
    let x = i as u32;
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    let (first, next) = (i * n / samples, (i + 1) * n / samples);
    first + ((u64::from(x ^ x >> 16) * (next - first)) >> 32)
}

#[test]
fn samples_that_mislead_are_made_good() {
    let n = 40_000u64;
    let samples: BTreeSet<u64> = (0..2048).map(|i| sample_row(i, 2048, n)).collect();
    // The sample has none of the larger half: far too many keys pass. Or it has all of the largest, too few pass.
    let too_many: Vec<f32> = (0..n).map(|row| if samples.contains(&row) { 0.0 } else { row as f32 }).collect();
    let too_few: Vec<f32> = (0..n).map(|row| row as f32 + if samples.contains(&row) { 1e6 } else { 0.0 }).collect();
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(2)]) {
        let mut rig = Rig::new(order);
        for (k, keys) in [(20, &too_many), (2500, &too_many), (1000, &too_few), (2500, &too_few)] {
            let top = TopK::new(&rig.device, &TopKSpec::new(Element::F32, k, Algorithm::Threshold)).unwrap();
            holds(&mut rig, &top, keys, 0).unwrap_or_else(|reason| panic!("k = {k}, {order:?}: {reason}"));
        }
    }
}

#[test]
fn several_blocks_of_samples() {
    let keys: Vec<f32> = (0..150_000u64).map(|i| (mix(i) >> 40) as f32).collect();
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        let top = TopK::new(&rig.device, &TopKSpec::new(Element::F32, 40, Algorithm::Threshold)).unwrap();
        holds(&mut rig, &top, &keys, 0).unwrap_or_else(|reason| panic!("{lanes:?}: {reason}"));
    }
}

#[test]
fn buckets_that_shared_memory_does_not_hold() {
    // All 30,000 keys are candidates, which 64 buckets share: some have more than 400.
    let tuning = TopKTuning { bucket_max: 400, ..TOPK_TUNING };
    let keys: Vec<f32> = (0..30_000u64).map(|i| (mix(i) % 10_000) as f32).collect();
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        for k in [3_000, 30_000] {
            let spec = TopKSpec { ties: Ties::FirstRows, ..TopKSpec::new(Element::F32, k, Algorithm::Threshold) };
            let top = TopK::with_tuning(&rig.device, &spec, tuning).unwrap();
            holds(&mut rig, &top, &keys, 0).unwrap_or_else(|reason| panic!("{k}, {lanes:?}: {reason}"));
        }
    }
}

#[test]
fn sort_and_choose() {
    let distributions = floats(9_001);
    let spec = |element, k, order| TopKSpec { order, ..TopKSpec::new(element, k, Algorithm::SortAndChoose) };
    for lanes in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(lanes);
        // Of equal keys the smaller rows are taken, whether they are asked for or not.
        let spec = TopKSpec { ties: Ties::FirstRows, ..spec(Element::F32, 700, Order::Largest) };
        let top = TopK::new(&rig.device, &spec).unwrap();
        for (name, keys) in &distributions {
            holds(&mut rig, &top, keys, 1).unwrap_or_else(|reason| panic!("{name}, {lanes:?}: {reason}"));
        }
        for n in [0, 1, 31, 32, 33, 699, 700, 701, 2048] {
            holds(&mut rig, &top, &distributions[1].1[..n], 3).unwrap_or_else(|reason| panic!("{n} keys: {reason}"));
        }
    }
    let mut rig = Rig::new(LaneOrder::Seeded(2));
    let wide: Vec<i64> = (0..9_001).map(|i| mix(i) as i64 >> 50).collect();
    let spec = TopKSpec { rows: Element::U32, ties: Ties::FirstRows, ..spec(Element::I64, 9_001, Order::Smallest) };
    let top = TopK::new(&rig.device, &spec).unwrap();
    holds(&mut rig, &top, &wide, 0).unwrap();
    // Two copies of keys and rows, and the sort's own memory.
    let bytes = top.scratch_bytes(1 << 28) as u64;
    assert!((24 << 28..25 << 28).contains(&bytes), "{bytes}");
    let input = rig.upload(&wide);
    let [keys, rows] = [Element::I64, Element::U32]
        .map(|element| DeviceSlice::all(&rig.device.buffer(9_001 * element.bytes(), "result").unwrap(), element));
    let bytes = top.scratch_bytes(9_001);
    let little = rig.device.buffer(bytes - 1, "scratch").unwrap();
    let Err(GpuError::Contract(message)) =
        top.launch(&mut rig.stream, &DeviceSlice::all(&input, Element::I64), &keys, &rows, &little)
    else {
        panic!("too little memory is not refused");
    };
    assert!(message.contains(&bytes.to_string()) && message.contains(&(bytes - 1).to_string()), "{message}");
}

#[test]
fn sorted_keys_do_not_mislead_the_sample() {
    let spec = TopKSpec::new(Element::U32, 2000, Algorithm::Threshold);
    // Four blocks of samples, and each has to have some of the best.
    let ascending: Vec<u32> = (0..150_000).collect();
    let descending: Vec<u32> = (0..150_000).rev().collect();
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        let top = TopK::new(&rig.device, &spec).unwrap();
        for keys in [&ascending, &descending] {
            let (out_keys, out_rows, scratch) = run(&mut rig, &top, keys, 0);
            check(keys, spec.k, spec.order, spec.ties, &out_keys, &out_rows).unwrap();
            // Word 2 of the state says whether the selection ran again over all keys.
            assert_eq!(rig.download::<u64>(&scratch.part(0, 24).unwrap())[2], 0, "{lanes:?}");
        }
    }
}

#[test]
fn places_without_a_key_are_not_put_in_order() {
    let k = 5000;
    for (order, smallest) in [(Order::Largest, 0u64), (Order::Smallest, u64::MAX)] {
        let spec = TopKSpec { order, skips_smallest: true, ..TopKSpec::new(Element::U64, k, Algorithm::Threshold) };
        for lanes in orders(&THREE) {
            let mut rig = Rig::new(lanes);
            let top = TopK::new(&rig.device, &spec).unwrap();
            for found in [0, 1, 46, 2047, 4999, 5000, 6000] {
                // Keys lie anywhere among the places.
                let mut keys = vec![smallest; 6000];
                (0..found as u64).for_each(|i| keys[(i * 37 % 6000) as usize] = 1 + i * 7919 % 6007);
                let (out_keys, out_rows, _) = run(&mut rig, &top, &keys, 0);
                let mut expected: Vec<(u64, u64)> =
                    keys.iter().zip(0..).map(|(key, row)| (*key, row)).filter(|(key, _)| *key != smallest).collect();
                expected.sort_by_key(|(key, row)| (if order == Order::Largest { !*key } else { *key }, *row));
                expected.truncate(k as usize);
                let rows: Vec<(u64, u64)> = out_keys.iter().copied().zip(out_rows.iter().copied()).collect();
                assert_eq!(rows[..expected.len()], expected, "{found} keys, {order:?}, {lanes:?}");
            }
        }
    }
}

#[test]
fn a_launcher_for_a_known_number_of_keys_finds_the_same() {
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        // Around the lengths that decide which kernels there are.
        let few = [(1, 1), (33, 7), (2049, 4000), (4096, 4096), (4096, 5)];
        let many = [(4097, 1000), (4097, 4000), (32_767, 9), (32_768, 9), (40_000, 3000), (40_000, 30_000)];
        for (n, k) in few.into_iter().chain(many) {
            let keys: Vec<u64> = (0..n).map(|i| mix(i) % 1000).collect();
            let spec = TopKSpec { keys: Some(n), ..TopKSpec::new(Element::U64, k, Algorithm::Threshold) };
            let top = TopK::new(&rig.device, &spec).unwrap();
            holds(&mut rig, &top, &keys, 1).unwrap_or_else(|reason| panic!("{k} of {n}, {lanes:?}: {reason}"));
        }
    }
}

#[test]
fn few_keys_of_every_width_are_sorted_by_one_kernel() {
    fn sorted<K: Key>(of: impl Fn(u64) -> K) {
        for (order, rows) in [(Order::Largest, Element::U32), (Order::Smallest, Element::U64)] {
            let n = 4095;
            let keys = Some(n);
            let spec = TopKSpec { order, rows, keys, ..TopKSpec::new(K::ELEMENT, n, Algorithm::Threshold) };
            let mut rig = Rig::new(LaneOrder::Forward);
            let top = TopK::new(&rig.device, &spec).unwrap();
            assert_eq!((spec.programs(rig.device.info()).len(), top.scratch_bytes(n)), (1, 0));
            let keys: Vec<K> = (0..n).map(|i| of(mix(i))).collect();
            holds(&mut rig, &top, &keys, 1).unwrap_or_else(|reason| panic!("{}, {order:?}: {reason}", K::ELEMENT));
        }
    }
    sorted::<u8>(|x| x as u8);
    sorted::<i32>(|x| x as i32);
    sorted::<f64>(|x| if x.is_multiple_of(50) { f64::NAN } else { (x % 100) as f64 - 50.0 });
    sorted::<u128>(|x| u128::from(x % 3) << 64 | u128::from(x));
}

#[test]
fn places_without_a_key_are_not_put_in_order_among_few() {
    for lanes in orders(&THREE) {
        let mut rig = Rig::new(lanes);
        let (skips_smallest, keys) = (true, Some(700));
        let spec = TopKSpec { skips_smallest, keys, ..TopKSpec::new(Element::U64, 700, Algorithm::Threshold) };
        let top = TopK::new(&rig.device, &spec).unwrap();
        for found in [0u64, 1, 31, 699, 700] {
            let mut keys = vec![0u64; 700];
            (0..found).for_each(|i| keys[(i * 37 % 700) as usize] = 1 + i * 7919 % 97);
            let (out_keys, out_rows, _) = run(&mut rig, &top, &keys, 0);
            let mut expected: Vec<(u64, u64)> = keys.into_iter().zip(0..).filter(|(key, _)| *key != 0).collect();
            expected.sort_by_key(|(key, row)| (!*key, *row));
            let rows: Vec<(u64, u64)> = out_keys.into_iter().zip(out_rows).collect();
            assert_eq!(rows[..expected.len()], expected, "{found} keys, {lanes:?}");
        }
    }
}

#[test]
fn a_launcher_for_a_known_number_of_keys_takes_no_other() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let spec = TopKSpec { keys: Some(100), ..TopKSpec::new(Element::U64, 4, Algorithm::Threshold) };
    let top = TopK::new(&rig.device, &spec).unwrap();
    let (keys, rows) = (rig.upload(&[0_u64; 101]), rig.upload(&[0_u64; 4]));
    let (keys, rows) = (DeviceSlice::all(&keys, Element::U64), DeviceSlice::all(&rows, Element::U64));
    let (out, scratch) = (rig.upload(&[0_u64; 4]), rig.upload(&vec![0_u8; top.scratch_bytes(101)]));
    let refused = top.launch(&mut rig.stream, &keys, &DeviceSlice::all(&out, Element::U64), &rows, &scratch);
    assert!(matches!(refused, Err(GpuError::Contract(message)) if message.contains("101 keys")));
}

#[test]
fn heaps() {
    let distributions = floats(9_001);
    for algorithm in [Algorithm::HeapShared, Algorithm::HeapRegisters] {
        for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
            let mut rig = Rig::new(order);
            let spec = TopKSpec { ties: Ties::FirstRows, ..TopKSpec::new(Element::F32, 5, algorithm) };
            let top = TopK::new(&rig.device, &spec).unwrap();
            for (name, keys) in &distributions {
                holds(&mut rig, &top, keys, 1)
                    .unwrap_or_else(|reason| panic!("{algorithm} of {name}, {order:?}: {reason}"));
            }
            for n in [0, 1, 4, 5, 6, 384, 385, 2000] {
                holds(&mut rig, &top, &distributions[1].1[..n], 0)
                    .unwrap_or_else(|reason| panic!("{algorithm} of {n}, {order:?}: {reason}"));
            }
        }
    }
}

#[test]
fn every_level_of_bitonic_top_k() {
    let distributions = floats(20_001);
    let spec = |level| {
        let spec = TopKSpec::new(Element::F32, 6, Algorithm::Bitonic(level));
        TopKSpec { ties: Ties::FirstRows, rows: Element::U32, ..spec }
    };
    let device = Rig::new(LaneOrder::Forward).device;
    device.rehearse(None, || BitonicLevel::ALL.into_iter().for_each(|level| drop(TopK::new(&device, &spec(level)))));
    for level in BitonicLevel::ALL {
        let (algorithm, spec) = (Algorithm::Bitonic(level), spec(level));
        for order in orders(&[LaneOrder::Forward, LaneOrder::Seeded(1)]) {
            let mut rig = Rig::new(order);
            let top = TopK::new(&rig.device, &spec).unwrap();
            for (name, keys) in distributions.iter().filter(|(name, _)| ["few", "odd", "uniform"].contains(name)) {
                holds(&mut rig, &top, keys, 1)
                    .unwrap_or_else(|reason| panic!("{algorithm} of {name}, {order:?}: {reason}"));
            }
            for n in [0, 1, 5, 6, 7, 2047, 2048, 2049, 4097] {
                holds(&mut rig, &top, &distributions[1].1[..n], 0)
                    .unwrap_or_else(|reason| panic!("{algorithm} of {n}, {order:?}: {reason}"));
            }
        }
    }
}

#[test]
fn bitonic_top_k_of_long_runs() {
    for (element, k, level) in [
        (Element::I64, 100, BitonicLevel::Reassigned),
        (Element::I64, 1, BitonicLevel::Reassigned),
        (Element::I64, 500, BitonicLevel::Permuted),
    ] {
        let spec = TopKSpec {
            order: Order::Smallest,
            ties: Ties::FirstRows,
            ..TopKSpec::new(element, k, Algorithm::Bitonic(level))
        };
        let keys: Vec<i64> = (0..70_000).map(|i| mix(i) as i64 >> 50).collect();
        for lanes in orders(&THREE) {
            let mut rig = Rig::new(lanes);
            let top = TopK::new(&rig.device, &spec).unwrap();
            holds(&mut rig, &top, &keys, 0).unwrap_or_else(|reason| panic!("k = {k}, {lanes:?}: {reason}"));
        }
    }
}

#[test]
fn recorded_work_finds_the_same_again() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let keys: Vec<f32> = (0..40_000u64).map(|i| (mix(i) >> 40) as f32).collect();
    let top = TopK::new(&rig.device, &TopKSpec::new(Element::F32, 10, Algorithm::Threshold)).unwrap();
    let input = rig.upload(&keys);
    let (out_keys, out_rows) = (rig.device.buffer(40, "keys").unwrap(), rig.device.buffer(80, "rows").unwrap());
    let scratch = rig.device.buffer(top.scratch_bytes(40_000), "scratch").unwrap();
    let slice = |buffer, element| DeviceSlice::all(buffer, element);
    let mut work = Work::new(&rig.device);
    let (key_slice, row_slice) = (slice(&out_keys, Element::F32), slice(&out_rows, Element::U64));
    top.launch(&mut work, &slice(&input, Element::F32), &key_slice, &row_slice, &scratch).unwrap();
    let mut recording = rig.stream.prepare(work).unwrap();
    for _ in 0..2 {
        rig.stream.fill(&out_keys, 0, 0xff, 40).unwrap();
        rig.stream.fill(&out_rows, 0, 0xff, 80).unwrap();
        rig.stream.run(&mut recording, &[&input, &out_keys, &out_rows, &scratch]).unwrap();
        let found: Vec<f32> = rig.download(&out_keys);
        check(&keys, 10, Order::Largest, Ties::Any, &found, &rig.download::<u64>(&out_rows)).unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused_before_a_launch() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let refused = |spec: TopKSpec| match TopK::new(&rig.device, &spec) {
        Err(GpuError::Contract(message)) => message,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{spec:?} is not refused"),
    };
    let threshold = |k| TopKSpec::new(Element::F32, k, Algorithm::Threshold);
    assert!(refused(threshold(K_MAX + 1)).contains("1048577"));
    assert!(refused(TopKSpec { rows: Element::I32, ..threshold(5) }).contains("i32"));
    assert!(refused(TopKSpec::new(Element::F64, 1000, Algorithm::HeapShared)).contains("ends at"));
    assert!(refused(TopKSpec::new(Element::F32, 300, Algorithm::HeapRegisters)).contains("64"));
    let bitonic = Algorithm::Bitonic(BitonicLevel::Reassigned);
    assert!(refused(TopKSpec::new(Element::F64, 1024, bitonic)).contains("512"));

    let top = TopK::new(&rig.device, &threshold(5)).unwrap();
    let buffer = rig.upload(&[0u64; 100]);
    let scratch = rig.device.buffer(top.scratch_bytes(100), "scratch").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let mut launch = |keys: &DeviceSlice, out_keys: &DeviceSlice, rows: &DeviceSlice, scratch| {
        let outcome = top.launch(&mut rig.stream, keys, out_keys, rows, scratch);
        match outcome {
            Err(GpuError::Contract(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    let (keys, out_keys, out_rows) = (slice(Element::F32, 100), slice(Element::F32, 5), slice(Element::U64, 5));
    assert!(launch(&slice(Element::I32, 100), &out_keys, &out_rows, &scratch).contains("i32"));
    assert!(launch(&keys, &slice(Element::F32, 6), &out_rows, &scratch).contains("6 elements"));
    assert!(launch(&keys, &out_keys, &slice(Element::U64, 4), &scratch).contains("4 elements"));
    assert!(launch(&keys, &out_keys, &slice(Element::U32, 5), &scratch).contains("u32"));
    assert!(launch(&keys, &out_keys, &out_rows, &scratch.part(0, 256).unwrap()).contains("256 bytes"));
}

#[test]
fn scratch_memory_is_an_eighth_of_the_input() {
    let rig = Rig::new(LaneOrder::Forward);
    for (element, rows) in
        Element::ALL.into_iter().flat_map(|element| [(element, Element::U32), (element, Element::U64)])
    {
        for (k, n) in [1, 256, K_MAX].into_iter().flat_map(|k| [(k, 1u64 << 26), (k, 1 << 29)]) {
            for algorithm in SELECTIONS {
                let spec = TopKSpec { rows, ..TopKSpec::new(element, k, algorithm) };
                let bytes = spec.scratch_bytes(rig.device.info(), n) as u64;
                // Some 2.5 k candidates with their rows, and as many in the buckets of the final sort.
                let (pair, an_eighth) = ((element.bytes() + rows.bytes()) as u64, n * element.bytes() as u64 / 8);
                assert!(bytes <= an_eighth + 8 * k * pair + FIXED_BYTES_MAX, "{spec:?}, {n}: {bytes}");
            }
        }
    }
    // Nothing is wanted: nothing is taken.
    let none = TopK::new(&rig.device, &TopKSpec::new(Element::F32, 0, Algorithm::Threshold)).unwrap();
    assert_eq!(none.scratch_bytes(1 << 20), 0);
    assert_eq!(none.results(100), 0);
}

#[test]
fn what_a_launcher_takes_is_known_before_it_is_made() {
    let rig = Rig::new(LaneOrder::Forward);
    let bitonic = Algorithm::Bitonic(BitonicLevel::Reassigned);
    for algorithm in [Algorithm::Threshold, bitonic, Algorithm::SortAndChoose] {
        let spec = TopKSpec { rows: Element::U32, ..TopKSpec::new(Element::U64, 20, algorithm) };
        let top = TopK::new(&rig.device, &spec).unwrap();
        assert!(spec.programs(rig.device.info()).iter().all(|program| rig.device.is_compiled(program)));
        for n in [0, 1, 5_000, 1 << 20] {
            assert_eq!(spec.scratch_bytes(rig.device.info(), n), top.scratch_bytes(n), "{algorithm} {n}");
        }
        spec.check(rig.device.info()).unwrap();
    }
    let long = TopKSpec::new(Element::U64, 65, Algorithm::HeapRegisters);
    assert!(matches!(long.check(rig.device.info()), Err(GpuError::Contract(reason)) if reason.contains("ends at 64")));
}
