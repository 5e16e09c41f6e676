//! Ordered aggregation in five, three, two kernels or one, in each variant, against plain Rust; and the tuner.

use warpcube_bench::operators::ordered::{
    Aggregate, FusedAggregation, FusedTuning, Fusion, OrderedAlgorithm, OrderedData, OrderedFinding, OrderedFindings,
    OrderedForm, OrderedOperands, OrderedPlan, OrderedTuner, Variant, ordered_aggregation,
};
use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{DeviceSlice, Element, Key, Sum};

use crate::common::{assert_refused, given, noise, room, scratch, taken};
use crate::emulated_support::{Rig, orders};
use crate::ordered::operands;

const LANES: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)];
const BOTH: OrderedForm =
    OrderedForm { key: Element::U32, count: Some(Element::U64), sum: Some((Element::U32, Element::U64)) };
/// Tiles of 256 rows.
const SMALL: FusedTuning = FusedTuning { chunk: 8, local: 32 };

fn kinds() -> impl Iterator<Item = (Fusion, Variant)> {
    Fusion::ALL.into_iter().flat_map(|fusion| Variant::ALL.map(|variant| (fusion, variant)))
}

/// Keys of so many rows, by the shape of their runs.
fn shapes(n: usize) -> [(&'static str, Vec<u32>); 4] {
    let of = |key: &dyn Fn(usize) -> u32| (0..n).map(key).collect();
    let runs = noise(3).enumerate().flat_map(|(run, x)| (0..x % 9 + 1).map(move |_| run as u32 % 5 * 1000));
    [
        ("equal", vec![7; n]),
        ("distinct", of(&|row| row as u32 * 3)),
        // Half of the rows in one run, each of the others in one of its own or two.
        ("skewed", of(&|row| if row < n / 4 || row > n * 3 / 4 { row as u32 / 2 } else { u32::MAX })),
        ("runs", runs.take(n).collect()),
    ]
}

/// Counts and sums of runs against the host's, where outputs have room for `capacity` runs.
fn check<K: Key, S: Sum>(
    rig: &mut Rig,
    aggregation: &FusedAggregation,
    [keys, values]: [&DeviceSlice; 2],
    expected: &[(K, u64, S)],
    capacity: usize,
    what: &str,
) {
    let [keys_out, counts, sums] = [K::ELEMENT, Element::U64, S::ELEMENT].map(|element| room(rig, element, capacity));
    let (runs, scratch) = (room(rig, Element::U64, 1), scratch(rig, aggregation.scratch_bytes(keys.len())));
    let operands = OrderedOperands {
        keys,
        values: Some(values),
        keys_out: &keys_out,
        counts: Some(&counts),
        sums: Some(&sums),
        runs: &runs,
    };
    // Twice: nothing is left of the first time.
    for _ in 0..2 {
        aggregation.launch(&mut rig.stream, &operands, &scratch).unwrap();
    }
    assert_eq!(taken::<u64>(rig, &runs), [expected.len() as u64], "{what}");
    let found = taken::<K>(rig, &keys_out).into_iter().zip(taken::<u64>(rig, &counts)).zip(taken::<S>(rig, &sums));
    for (at, (((key, count), sum), run)) in found.zip(expected).enumerate() {
        let same = key.ordered_bits() == run.0.ordered_bits() && (count, sum) == (run.1, run.2);
        assert!(same, "{what}: run {at} is ({key:?}, {count}, {sum:?}) instead of {run:?}");
    }
}

fn check_u32(rig: &mut Rig, aggregation: &FusedAggregation, keys: &[u32], what: &str) {
    let values: Vec<u32> = noise(5).map(|x| x as u32).take(keys.len()).collect();
    let expected = ordered_aggregation(keys, values.iter().map(|value| u64::from(*value)));
    let [keys, values] = [given(rig, Element::U32, keys), given(rig, Element::U32, &values)];
    check(rig, aggregation, [&keys, &values], &expected, expected.len(), what);
}

#[test]
fn every_fusion_and_variant_gives_the_runs_of_the_host() {
    let device = Rig::new(LaneOrder::Forward).device;
    device.rehearse(None, || kinds().for_each(|(f, v)| drop(FusedAggregation::new(&device, BOTH, f, v, SMALL))));
    for order in orders(&LANES) {
        let mut rig = Rig::new(order);
        for (fusion, variant) in kinds() {
            let aggregation = FusedAggregation::new(&rig.device, BOTH, fusion, variant, SMALL).unwrap();
            for length in [0, 1, 7, 8, 9, 255, 256, 257, 3 * 256 + 17] {
                for (shape, keys) in shapes(length) {
                    let what = format!("{fusion} with {variant}, {length} {shape} rows, {order:?}");
                    check_u32(&mut rig, &aggregation, &keys, &what);
                }
            }
        }
    }
}

#[test]
fn chunks_and_blocks_of_any_size() {
    // A block smaller than a warp, chunks smaller than a vector, more tiles than look-back sees at once.
    let tunings = [(4, 8), (1, 32), (2, 64), (64, 16), (4096, 8), (16, 1024)];
    let device = Rig::new(LaneOrder::Forward).device;
    let each = |(chunk, local)| {
        for variant in [Variant::DirectAtomics, Variant::PrivateVariable] {
            let new = |f| drop(FusedAggregation::new(&device, BOTH, f, variant, FusedTuning { chunk, local }));
            Fusion::ALL.into_iter().for_each(new);
        }
    };
    device.rehearse(None, || tunings.into_iter().for_each(each));
    let lanes: Vec<LaneOrder> = orders(&LANES).collect();
    for (at, order) in lanes.iter().enumerate() {
        let mut rig = Rig::new(*order);
        for (chunk, local) in tunings.into_iter().skip(at).step_by(lanes.len()) {
            for fusion in Fusion::ALL {
                for variant in [Variant::DirectAtomics, Variant::PrivateVariable] {
                    let tuning = FusedTuning { chunk, local };
                    let aggregation = FusedAggregation::new(&rig.device, BOTH, fusion, variant, tuning).unwrap();
                    for (shape, keys) in shapes(5003) {
                        let what = format!("{fusion} with {variant} and {tuning:?}, {shape} rows, {order:?}");
                        check_u32(&mut rig, &aggregation, &keys, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn other_types_at_any_element_with_little_room() {
    let form = OrderedForm { key: Element::F64, count: Some(Element::U64), sum: Some((Element::F32, Element::F64)) };
    let names = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.5, f64::INFINITY];
    let keys: Vec<f64> = noise(3).map(|x| names[(x % 64 / 4 % 6) as usize]).take(1500).collect();
    // Whole numbers: no order of additions loses anything.
    let values: Vec<f32> = noise(1).map(|x| (x % 1000) as f32).take(1500).collect();
    for order in orders(&LANES) {
        let mut rig = Rig::new(order);
        for (at, (fusion, variant)) in kinds().enumerate().filter(|(at, _)| at % 4 == at / 4) {
            let aggregation = FusedAggregation::new(&rig.device, form, fusion, variant, SMALL).unwrap();
            let expected = ordered_aggregation(&keys[at..], values[at..].iter().map(|value| f64::from(*value)));
            let part = |slice: DeviceSlice| slice.part(at as u64, 1500 - at as u64).unwrap();
            let slices = [given(&mut rig, Element::F64, &keys), given(&mut rig, Element::F32, &values)].map(part);
            for capacity in [expected.len(), expected.len() / 2, 0] {
                let what = format!("{fusion} with {variant} and room for {capacity}, {order:?}");
                check(&mut rig, &aggregation, [&slices[0], &slices[1]], &expected, capacity, &what);
            }
        }
    }
}

#[test]
fn keys_of_128_bits_are_counted_alone() {
    let form = OrderedForm { key: Element::I128, count: Some(Element::U32), sum: None };
    let keys: Vec<i128> = shapes(700)[3].1.iter().map(|key| i128::from(*key) << 70).collect();
    let expected = ordered_aggregation(&keys, vec![0u64; keys.len()]);
    for (fusion, variant) in kinds().filter(|(_, variant)| *variant == Variant::PrivateArray) {
        let mut rig = Rig::new(LaneOrder::Seeded(2));
        let aggregation = FusedAggregation::new(&rig.device, form, fusion, variant, SMALL).unwrap();
        let keys = given(&mut rig, Element::I128, &keys);
        let [keys_out, counts, runs] = [(Element::I128, expected.len()), (Element::U32, 700), (Element::U64, 1)]
            .map(|(element, len)| room(&rig, element, len));
        let (counts_out, memory) = (Some(&counts), scratch(&rig, aggregation.scratch_bytes(700)));
        let operands = OrderedOperands {
            keys: &keys,
            values: None,
            keys_out: &keys_out,
            counts: counts_out,
            sums: None,
            runs: &runs,
        };
        aggregation.launch(&mut rig.stream, &operands, &memory).unwrap();
        assert!(taken::<i128>(&mut rig, &keys_out).iter().zip(&expected).all(|(key, run)| *key == run.0));
        let counts = taken::<u32>(&mut rig, &counts);
        assert!(counts.iter().zip(&expected).all(|(count, run)| u64::from(*count) == run.1), "{fusion}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let new = |form, fusion, variant, chunk, local| {
        FusedAggregation::new(&rig.device, form, fusion, variant, FusedTuning { chunk, local }).map(|_| ())
    };
    let (two, one) = (Fusion::TwoKernels, Fusion::OneKernel);
    assert_refused(new(BOTH, two, Variant::PrivateVariable, 24, 32), &["24 rows of a chunk", "4096"]);
    assert_refused(new(BOTH, two, Variant::PrivateVariable, 8192, 32), &["8192 rows of a chunk"]);
    assert_refused(new(BOTH, two, Variant::PrivateArray, 512, 32), &["512 rows of a chunk", "256"]);
    assert_refused(new(BOTH, two, Variant::DirectAtomics, 4, 2048), &["2048 threads", "1024"]);
    assert_refused(new(BOTH, two, Variant::DirectAtomics, 4, 0), &["0 threads"]);
    assert_refused(
        new(BOTH, one, Variant::DirectAtomics, 256, 1024),
        &["bytes of shared memory", "1024 chunks of 256"],
    );
    let nothing = OrderedForm { count: None, sum: None, ..BOTH };
    assert_refused(new(nothing, one, Variant::DirectAtomics, 4, 32), &["neither counts nor sums"]);
    let wrong = OrderedForm { sum: Some((Element::F64, Element::U32)), ..BOTH };
    assert_refused(new(wrong, two, Variant::DirectAtomics, 4, 32), &["f64", "u32"]);

    let aggregation = FusedAggregation::new(&rig.device, BOTH, two, Variant::PrivateVariable, SMALL).unwrap();
    // A word a row and a chunk, and three descriptors behind the ticket.
    assert_eq!(aggregation.scratch_bytes(600), 256 + 2560 + 300);
    let [u32s, less, u64s] =
        [(Element::U32, 600), (Element::U32, 599), (Element::U64, 1)].map(|(e, n)| room(&rig, e, n));
    let [enough, little] = [0, 1].map(|less| scratch(&rig, aggregation.scratch_bytes(600) - less));
    let fits = operands(&u32s, &u64s);
    let mut launch = |operands, scratch| aggregation.launch(&mut rig.stream, &operands, scratch);
    assert_refused(launch(OrderedOperands { values: Some(&less), ..fits }, &enough), &["599", "600"]);
    assert_refused(launch(OrderedOperands { sums: None, ..fits }, &enough), &["sums", "missing"]);
    assert_refused(launch(OrderedOperands { keys: &u64s, ..fits }, &enough), &["keys", "u64", "u32"]);
    assert_refused(launch(fits, &little), &["3116", "3115"]);
}

#[test]
fn a_tuner_finds_a_plan_that_is_kept() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let (device, keys) = (rig.device.clone(), shapes(3000)[3].1.clone());
    let expected = ordered_aggregation(&keys, vec![1u64; keys.len()]);
    let keys = given(&mut rig, Element::U32, &keys);
    let [keys_out, counts, runs] =
        [(Element::U32, 3000), (Element::U32, 3000), (Element::U64, 1)].map(|(element, len)| room(&rig, element, len));
    let form = OrderedForm { key: Element::U32, count: Some(Element::U32), sum: None };
    let operands = OrderedOperands {
        keys: &keys,
        values: None,
        keys_out: &keys_out,
        counts: Some(&counts),
        sums: None,
        runs: &runs,
    };
    let mut tuner =
        OrderedTuner { device: &device, stream: &mut rig.stream, form, operands, runs: 3, is_stopped: &|| false };
    let single = tuner.tune(OrderedAlgorithm::SinglePass).unwrap();
    assert!(single.ms > 0.0 && single.plan == OrderedPlan::new(OrderedAlgorithm::SinglePass));
    let tuned = tuner.tune(OrderedAlgorithm::Fused(Fusion::TwoKernels, Variant::PrivateVariable)).unwrap();
    let found = taken::<u32>(&mut rig, &counts);
    assert!(found.iter().zip(&expected).all(|(count, run)| u64::from(*count) == run.1));

    let longest = expected.iter().map(|run| run.1).max().unwrap();
    let data = OrderedData { rows: 3000, runs: expected.len() as u64, longest };
    let aggregate = Aggregate::of(form);
    let name = device.info().name.clone();
    let mut findings = OrderedFindings::default();
    let date = String::from("2026-01-31");
    findings.add(OrderedFinding { device: name.clone(), date, aggregate, data, plan: tuned.plan, ms: tuned.ms });
    let findings = OrderedFindings::from_json(&findings.to_json()).unwrap();
    let plan = findings.plan(&name, form, &data);
    assert_eq!(plan, tuned.plan);

    // The plan runs.
    let launcher = plan.launcher(&device, form).unwrap();
    let memory = scratch(&rig, launcher.scratch_bytes(3000));
    rig.stream.fill(counts.buffer(), 0, 0xff, 12_000).unwrap();
    launcher.launch(&mut rig.stream, &operands, &memory).unwrap();
    assert_eq!(taken::<u64>(&mut rig, &runs), [expected.len() as u64]);
    let found = taken::<u32>(&mut rig, &counts);
    assert!(found.iter().zip(&expected).all(|(count, run)| u64::from(*count) == run.1));
}
