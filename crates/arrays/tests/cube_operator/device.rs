//! The CUBE on the emulated device equals the brute force, in three orders of lanes.

use std::sync::LazyLock;

use proptest::prelude::*;
use warpcube_arrays::SchemeError;
use warpcube_arrays::cube_operator::{Algorithm, Costs, Iceberg, Plan, Rows, Rule};
use warpcube_arrays::device::{CubeKernels, DeviceCuboid, DeviceKey, DeviceRows, DeviceSchemeError, DeviceValue};
use warpcube_arrays::key::KeyLayout;
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

use crate::model::{Groups, RULES, Table, collect, table};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Auto, Algorithm::Paths, Algorithm::SmallestParent];

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let options = |order| EmulatorOptions { order, ..EmulatorOptions::default() };
    ORDERS.map(|order| Device::emulated(options(order), 1 << 28).unwrap()).to_vec()
});

fn plan<K: DeviceKey, V: DeviceValue>(rows: &Rows<'_, K, V>, dimensions: &[usize], algorithm: Algorithm) -> Plan {
    Plan::new(&rows.extent(), dimensions, &RULES, algorithm, &Costs::H200).unwrap()
}

fn by<K: DeviceKey, V: DeviceValue>(device: &Device, rows: &Rows<'_, K, V>, plan: &Plan) -> Groups<V> {
    let kernels = CubeKernels::new(device).unwrap();
    let mut stream = device.stream().unwrap();
    let on_device = DeviceRows::new(&kernels, &mut stream, rows).unwrap();
    let mut groups = Groups::new();
    let sink = |stream: &mut _, cuboid: &DeviceCuboid<K, V>| {
        cuboid.read(stream, |cuboid| {
            collect(&mut groups, &cuboid);
            Ok::<(), DeviceSchemeError>(())
        })
    };
    on_device.cube(&mut stream, plan, sink).unwrap();
    groups
}

fn check<K: DeviceKey>(table: &Table, dimensions: &[usize], algorithm: Algorithm, counts: bool) {
    let keys: Vec<K> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, counts.then_some(&table.counts[..])).unwrap();
    let (plan, expected) = (plan(&rows, dimensions, algorithm), table.brute_force(dimensions));
    for device in DEVICES.iter() {
        assert_eq!(by(device, &rows, &plan), expected, "{algorithm}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_algorithm_equals_the_brute_force((table, dimensions) in table(), which in 0..3usize) {
        check::<u64>(&table, &dimensions, ALGORITHMS[which], true);
        check::<u128>(&table, &dimensions, ALGORITHMS[(which + 1) % 3], true);
    }
}

/// The iceberg on a device.
fn iceberg<K: DeviceKey>(device: &Device, table: &Table, dimensions: &[usize], minimum: u64) -> (Groups<i64>, Iceberg) {
    let keys: Vec<K> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, Some(&table.counts)).unwrap();
    let kernels = CubeKernels::new(device).unwrap();
    let mut stream = device.stream().unwrap();
    let on_device = DeviceRows::new(&kernels, &mut stream, &rows).unwrap();
    let mut groups = Groups::new();
    let sink = |stream: &mut _, cuboid: &DeviceCuboid<K, i64>| {
        cuboid.read(stream, |cuboid| {
            collect(&mut groups, &cuboid);
            Ok::<(), DeviceSchemeError>(())
        })
    };
    let found = on_device.iceberg(&mut stream, &rows.extent(), dimensions, &RULES, minimum, sink).unwrap();
    (groups, found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_iceberg_equals_that_of_the_cpu((table, dimensions) in table(), minimum in 0..6u64) {
        let expected = crate::iceberg::found(&table, &dimensions, minimum);
        for (device, is_wide) in DEVICES.iter().zip([false, true, false]) {
            let on_device = match is_wide {
                true => iceberg::<u128>(device, &table, &dimensions, minimum),
                false => iceberg::<u64>(device, &table, &dimensions, minimum),
            };
            prop_assert_eq!(&on_device, &expected);
        }
    }
}

#[test]
fn rows_without_counts_and_keys_of_128_bits() {
    let tuples: [[u32; 4]; 5] =
        [[u32::MAX, 0, 9, 1], [0, 1, u32::MAX, 0], [u32::MAX, 0, 9, 0], [4, 1, 9, 0], [4, 1, 9, 0]];
    let tuples: Vec<Vec<u32>> = tuples.map(Vec::from).to_vec();
    let layout = KeyLayout::new(&[32; 4]).unwrap();
    let table = Table { layout, tuples, values: vec![1, -2, 4, 8, i64::MIN >> 2], counts: vec![1; 5] };
    for algorithm in ALGORITHMS {
        check::<u128>(&table, &[2, 0, 3, 1], algorithm, false);
    }
}

#[test]
fn doubles_are_added_up_exactly_where_they_can_be() {
    let tuples = (0..40).map(|row| vec![row % 3, row % 5, row % 7]).collect();
    let values: Vec<i64> = (0..40).map(|row| row * row - 300).collect();
    let table = Table { layout: KeyLayout::new(&[2, 3, 3]).unwrap(), tuples, values, counts: vec![1; 40] };
    let (keys, doubles): (Vec<u64>, Vec<f64>) = (table.keys(), table.values.iter().map(|it| *it as f64).collect());
    let rows = Rows::new(&table.layout, &keys, &doubles, None).unwrap();
    let found = by(&DEVICES[0], &rows, &plan(&rows, &[1, 0, 2], Algorithm::Auto));
    let whole = |(count, sum, least, most): (u64, f64, f64, f64)| (count, sum as i64, least as i64, most as i64);
    let found: Groups<i64> = found.into_iter().map(|(key, group)| (key, whole(group))).collect();
    assert_eq!(found, table.brute_force(&[0, 1, 2]));
}

#[test]
fn what_the_device_does_not_compute_is_refused() {
    let layout = KeyLayout::new(&[2, 2]).unwrap();
    let (keys, values) = ([1u64, 6], [i64::MAX, 1]);
    let rows = Rows::new(&layout, &keys, &values, None).unwrap();
    let device = &DEVICES[0];
    let kernels = CubeKernels::new(device).unwrap();
    let mut stream = device.stream().unwrap();
    let on_device = DeviceRows::new(&kernels, &mut stream, &rows).unwrap();
    let mut run = |plan: &Plan| on_device.cube(&mut stream, plan, |_, _| Ok::<(), DeviceSchemeError>(()));
    let of = |rules: &[Rule], algorithm, costs| Plan::new(&rows.extent(), &[0, 1], rules, algorithm, costs).unwrap();
    let error = run(&of(&[Rule::Avg], Algorithm::Auto, &Costs::H200)).unwrap_err();
    assert!(matches!(error, DeviceSchemeError::Sums { magnitude } if magnitude == 1 << 63), "{error}");
    assert!(run(&of(&[Rule::Max, Rule::Count], Algorithm::Auto, &Costs::H200)).is_ok(), "no sum was asked for");
    let error = run(&of(&[Rule::Max], Algorithm::Hash, &Costs::CPU)).unwrap_err();
    assert!(error.to_string().contains("sorts; its plan has Hash"), "{error}");
    let other = KeyLayout::new(&[2, 3]).unwrap();
    let elsewhere = Rows::new(&other, &keys, &values, None).unwrap();
    let error = run(&plan(&elsewhere, &[0, 1], Algorithm::Paths)).unwrap_err();
    assert!(matches!(error, DeviceSchemeError::Array(SchemeError::OtherLayout)), "{error}");
}
