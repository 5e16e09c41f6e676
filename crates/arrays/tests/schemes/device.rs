//! Every operation on the emulated device equals that of the scheme on the CPU, in three orders of lanes.

use std::sync::LazyLock;

use proptest::prelude::*;
use warpcube_arrays::device::{DeviceArray, DeviceSchemeError, DeviceValue, Lookup};
use warpcube_arrays::generate::Specification;
use warpcube_arrays::{Cells, GroupBy, Limits, Scheme, SchemeError, Shape, Storage, SubArray, Value};
use warpcube_gpu::prims::search::SearchMethod;
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

use crate::model::{Array, Map, array, cells_of, sub_array, tuple};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let options = |order| EmulatorOptions { order, ..EmulatorOptions::default() };
    ORDERS.map(|order| Device::emulated(options(order), 1 << 28).unwrap()).to_vec()
});

/// The schemes that are on the device.
fn schemes(dimensions: usize) -> Vec<Scheme> {
    let mut schemes = vec![Scheme::Bess, Scheme::Xcrs, Scheme::Bxcrs];
    schemes.extend((1..=dimensions).map(|r| Scheme::Hybrid { r }));
    schemes
}

/// Sums that agree: integers to the bit, doubles within 10^-12 of the sum of magnitudes, which are of one sign here.
trait Agrees: Value {
    fn agrees(self, other: Self) -> bool;
}

impl Agrees for i64 {
    fn agrees(self, other: i64) -> bool {
        self == other
    }
}

impl Agrees for f64 {
    fn agrees(self, other: f64) -> bool {
        (self - other).abs() <= 1e-12 * self.abs()
    }
}

fn check_sums<V: Agrees>(found: &[GroupBy<V>], expected: &[GroupBy<V>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.dimensions(), expected.dimensions());
        assert_eq!(found.coordinates(), expected.coordinates());
        assert_eq!(found.len(), expected.len());
        for (one, other) in found.sums().iter().zip(expected.sums()) {
            assert!(one.agrees(*other), "{one:?} is not {other:?}");
        }
    }
}

/// Compares all operations of one scheme on all devices.
fn check<V: DeviceValue + Agrees>(stored: &dyn Storage<V>, asked: &[u32], areas: &[SubArray]) {
    let (found, sums) = (stored.get(asked).unwrap(), stored.prefix_sums().unwrap());
    for device in DEVICES.iter() {
        let on_device = DeviceArray::new(device, stored).unwrap();
        let mut stream = device.stream().unwrap();
        assert_eq!((on_device.scheme(), on_device.len()), (stored.scheme(), stored.len()));
        assert_eq!(on_device.bytes(), stored.sizes().total());
        assert_eq!(on_device.get(&mut stream, asked).unwrap(), found, "{}", stored.scheme());
        for area in areas {
            let inside = on_device.sub_array(&mut stream, area).unwrap();
            assert_eq!(inside, stored.sub_array(area).unwrap(), "{} {area:?}", stored.scheme());
        }
        check_sums(&on_device.prefix_sums(&mut stream).unwrap(), &sums);
    }
}

fn check_all<V: DeviceValue + Agrees>(cells: &Cells<V>, asked: &[u32], areas: &[SubArray]) {
    for scheme in schemes(cells.shape().dimensions()) {
        check(scheme.build(cells, &Limits::default()).unwrap().as_ref(), asked, areas);
    }
}

fn question() -> impl Strategy<Value = (Array, Vec<Vec<u32>>, SubArray)> {
    array().prop_flat_map(|array| {
        let tuples = prop::collection::vec(tuple(array.shape.sizes()), 0..60);
        let area = sub_array(&array.shape);
        (Just(array), tuples, area)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_scheme_equals_the_cpu((array, tuples, area) in question()) {
        // The sum of i64::MIN alone would not fit; it has a test of its own.
        let cells = array.cells().map(|value| value.max(-i64::MAX));
        let areas = [area, SubArray::whole(&array.shape)];
        let mut asked: Vec<u32> = tuples.into_iter().flatten().collect();
        asked.extend(cells.coordinates());
        check_all(&cells, &asked, &areas);
    }
}

#[test]
fn generated_arrays_of_the_measured_dimensions() {
    for dimensions in [2, 3, 4, 8] {
        let specification = Specification::new(dimensions, 3000, 0.95, 1).unwrap();
        let cells = specification.hundredths().unwrap();
        let asked = specification.with_seed(2).coordinates().unwrap();
        let areas = SubArray::measured(cells.shape());
        for scheme in [Scheme::Bess, Scheme::Xcrs, Scheme::Bxcrs, Scheme::measured_hybrid(dimensions)] {
            check(scheme.build(&cells, &Limits::default()).unwrap().as_ref(), &asked, &areas);
        }
    }
    let doubles = Specification::new(3, 2000, 0.9, 3).unwrap().doubles().unwrap();
    let asked = doubles.coordinates().to_vec();
    check_all(&doubles, &asked, &SubArray::measured(doubles.shape()));
}

#[test]
fn keys_of_every_width_up_to_128_bits() {
    // 64 bits, then 96 and 128 in two words, and dimensions of one element at both ends.
    for sizes in [&[u32::MAX, u32::MAX][..], &[2, 1, u32::MAX, u32::MAX, 1 << 31][..], &[3, u32::MAX, u32::MAX, 1][..]]
        .into_iter()
        .chain([&[1, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1][..]])
    {
        let last: Vec<u32> = sizes.iter().map(|size| size - 1).collect();
        let middle: Vec<u32> = sizes.iter().map(|size| size / 2).collect();
        let mut map = Map::from([(vec![0; sizes.len()], 1), (middle.clone(), -2), (last.clone(), 3)]);
        for at in 0..sizes.len() {
            let mut tuple = middle.clone();
            tuple[at] = last[at];
            map.insert(tuple, at as i64);
        }
        let shape = Shape::new(sizes).unwrap();
        let cells = cells_of(&shape, &map);
        let mut asked = cells.coordinates().to_vec();
        asked.extend(last.iter().map(|at| at.saturating_sub(1)));
        let areas = [SubArray::whole(&shape), SubArray::new(&shape, middle, last).unwrap()];
        check(Scheme::Bess.build(&cells, &Limits::default()).unwrap().as_ref(), &asked, &areas);
        // Blocks of the leading dimensions where there are few.
        for r in 1..=sizes.len() {
            let hybrid = Scheme::Hybrid { r }.build(&cells, &Limits { pointer_bytes: 1 << 10 });
            hybrid.iter().for_each(|hybrid| check(hybrid.as_ref(), &asked, &areas));
        }
    }
}

#[test]
fn an_empty_array_one_cell_and_an_empty_result() {
    let shape = Shape::new([5, 4, 3]).unwrap();
    let areas = [SubArray::whole(&shape), SubArray::slice(&shape, &[(0, 4)]).unwrap()];
    let asked = [0, 0, 0, 2, 3, 1];
    for map in [Map::new(), Map::from([(vec![2, 3, 1], -7)])] {
        check_all(&cells_of(&shape, &map), &asked, &areas);
        check_all(&cells_of(&shape, &map), &[], &areas);
    }
}

#[test]
fn few_groups_of_many_cells_and_one_of_all() {
    // Groups of more cells than a block has threads, beside groups of one.
    let mut map: Map<i64> = (0..3000).map(|at| (vec![1, 0, at], i64::from(at))).collect();
    map.extend((0..40).map(|at| (vec![2, at, 5], 1)));
    let array = Array::new(&[4, 50, 3000], map);
    check_all(&array.cells(), &[1, 0, 7], &[SubArray::new(&array.shape, [0, 0, 5], [3, 20, 2000]).unwrap()]);
    let long = Array::new(&[2, 9000], (0..9000).map(|at| (vec![1, at], i64::from(at))).collect());
    check_all(&long.cells(), &[1, 8999, 0, 0], &[SubArray::slice(&long.shape, &[(0, 1)]).unwrap()]);
}

#[test]
fn both_methods_of_search_find_the_same() {
    let specification = Specification::new(3, 500, 0.5, 5).unwrap();
    let cells = specification.hundredths().unwrap();
    let asked = specification.with_seed(6).coordinates().unwrap();
    let stored = Scheme::Bess.build(&cells, &Limits::default()).unwrap();
    let expected = stored.get(&asked).unwrap();
    for device in DEVICES.iter() {
        let on_device = DeviceArray::new(device, stored.as_ref()).unwrap();
        let mut stream = device.stream().unwrap();
        let lookup = Lookup::new(&on_device, 500).unwrap();
        lookup.upload(&mut stream, &asked).unwrap();
        for method in [SearchMethod::Binary, SearchMethod::Pary] {
            lookup.launch_by(&mut stream, method).unwrap();
            assert_eq!(lookup.read(&mut stream, &asked).unwrap(), expected, "{method:?}");
        }
    }
}

#[test]
fn what_a_device_does_not_do_is_refused() {
    let device = &DEVICES[0];
    let mut stream = device.stream().unwrap();
    let shape = Shape::new([3, 4]).unwrap();
    let cells = cells_of(&shape, &Map::from([(vec![0, 1], i64::MAX), (vec![0, 2], 1), (vec![2, 0], -1)]));
    for scheme in [Scheme::Coordinate, Scheme::OffsetValue, Scheme::Xccs, Scheme::Ptcs] {
        let stored = scheme.build(&cells, &Limits::default()).unwrap();
        let refused = DeviceArray::new(device, stored.as_ref()).err();
        assert!(matches!(refused, Some(DeviceSchemeError::Scheme { scheme: named }) if named == scheme));
    }
    for scheme in schemes(2) {
        let stored = scheme.build(&cells, &Limits::default()).unwrap();
        let on_device = DeviceArray::new(device, stored.as_ref()).unwrap();
        let error = on_device.prefix_sums(&mut stream).unwrap_err().to_string();
        let magnitude = i64::MAX as u128 + 2;
        assert!(error.starts_with("sums may pass 64 bits") && error.contains(&magnitude.to_string()), "{error}");
        // The first tuple outside is named, as on the CPU.
        let asked = [0, 1, 2, 4, 3, 0];
        let outside = on_device.get(&mut stream, &asked).unwrap_err();
        assert!(
            matches!(&outside, DeviceSchemeError::Array(error) if *error == stored.get(&asked).unwrap_err()),
            "{outside}"
        );
        assert!(on_device.get(&mut stream, &[0, 1, 2]).is_err(), "a tuple is cut short");
        let area = SubArray::whole(&Shape::new([3, 5]).unwrap());
        let bounds = on_device.sub_array(&mut stream, &area).unwrap_err();
        let expected = SchemeError::Bounds { dimension: 1, low: 0, high: 4, size: 4 };
        assert!(matches!(&bounds, DeviceSchemeError::Array(error) if *error == expected), "{bounds}");
    }
}
