//! Every operation of every scheme equals the map.

use proptest::prelude::*;
use warpcube_arrays::{Access, Cells, Limits, Scheme, Storage, SubArray, choose, convert};

use crate::model::{Array, Map, array, cells_of, sub_array, sums, tuple};

/// An array, tuples to look up and a sub-array.
fn question() -> impl Strategy<Value = (Array, Vec<Vec<u32>>, SubArray)> {
    array().prop_flat_map(|array| {
        let tuples = prop::collection::vec(tuple(array.shape.sizes()), 0..60);
        let area = sub_array(&array.shape);
        (Just(array), tuples, area)
    })
}

/// Cells of the map inside of a sub-array.
fn inside(array: &Array, area: &SubArray) -> Cells<i64> {
    let within = |tuple: &[u32]| {
        let bounds = area.low().iter().zip(area.high());
        tuple.iter().zip(bounds).all(|(at, (low, high))| low <= at && at <= high)
    };
    let map: Map<i64> = array.map.iter().filter(|(tuple, _)| within(tuple)).map(|(t, v)| (t.clone(), *v)).collect();
    cells_of(&array.shape, &map)
}

/// The dimensions in the order in which a scheme scans them.
fn scan_order(scheme: Scheme, dimensions: usize) -> Vec<usize> {
    match scheme {
        Scheme::Xccs => (0..dimensions).rev().collect(),
        _ => (0..dimensions).collect(),
    }
}

fn check_iteration(array: &Array, stored: &dyn Storage<i64>) {
    let order = scan_order(stored.scheme(), array.shape.dimensions());
    let mut expected: Vec<(Vec<u32>, i64)> = array.map.iter().map(|(tuple, value)| (tuple.clone(), *value)).collect();
    expected.sort_by_key(|(tuple, _)| order.iter().map(|dimension| tuple[*dimension]).collect::<Vec<_>>());
    let mut found = Vec::new();
    stored.for_each(&mut |tuple, value| found.push((tuple.to_vec(), value)));
    assert_eq!(found, expected, "{}", stored.scheme());
    assert_eq!(stored.cells(), array.cells(), "{}", stored.scheme());
}

fn check_sums(array: &Array, stored: &dyn Storage<i64>) {
    let order = scan_order(stored.scheme(), array.shape.dimensions());
    let found = stored.prefix_sums().unwrap();
    assert_eq!(found.len(), order.len() - 1);
    for (length, group_by) in (1..).zip(&found) {
        assert_eq!(group_by.dimensions(), &order[..length]);
        let groups: Vec<(Vec<u32>, i64)> = group_by.iter().map(|(group, sum)| (group.to_vec(), sum)).collect();
        let expected: Vec<_> = sums(&array.map, group_by.dimensions()).into_iter().collect();
        assert_eq!(groups, expected, "{}", stored.scheme());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_scheme_equals_a_map((array, tuples, area) in question()) {
        let mut asked = tuples.concat();
        // Each filled cell is asked for as well, in reverse order.
        array.map.keys().rev().for_each(|tuple| asked.extend(tuple));
        let values = asked.chunks(array.shape.dimensions()).map(|tuple| array.map.get(tuple).copied());
        let values: Vec<Option<i64>> = values.collect();
        let expected = inside(&array, &area);
        for stored in array.schemes() {
            prop_assert_eq!((stored.len(), stored.is_empty()), (array.map.len(), array.map.is_empty()));
            prop_assert_eq!(stored.shape(), &array.shape);
            prop_assert_eq!(&stored.get(&asked).unwrap(), &values, "{}", stored.scheme());
            prop_assert_eq!(&stored.sub_array(&area).unwrap(), &expected, "{} {:?}", stored.scheme(), &area);
            check_iteration(&array, stored.as_ref());
            check_sums(&array, stored.as_ref());
        }
    }

    #[test]
    fn slices_and_measured_sub_arrays_equal_a_map((array, fixed) in array().prop_flat_map(|array| {
        let dimensions = array.shape.dimensions();
        let fixed = prop::sample::subsequence((0..dimensions).collect::<Vec<_>>(), 0..=dimensions);
        (Just(array.clone()), (fixed, tuple(array.shape.sizes())))
    })) {
        let fixed: Vec<(usize, u32)> = fixed.0.iter().map(|dimension| (*dimension, fixed.1[*dimension])).collect();
        let mut areas = vec![SubArray::slice(&array.shape, &fixed).unwrap(), SubArray::whole(&array.shape)];
        areas.extend(SubArray::measured(&array.shape));
        for stored in array.schemes() {
            for area in &areas {
                let found = stored.sub_array(area).unwrap();
                prop_assert_eq!(&found, &inside(&array, area), "{} {:?}", stored.scheme(), area);
            }
        }
    }

    #[test]
    fn conversions_keep_all_cells(array in array(), choice in any::<prop::sample::Index>()) {
        let limits = Limits::default();
        let schemes = array.schemes();
        let from = choice.get(&schemes);
        for scheme in Scheme::all(array.shape.dimensions()) {
            let converted = convert(from.as_ref(), scheme, &limits).unwrap();
            prop_assert_eq!(converted.scheme(), scheme);
            prop_assert_eq!(converted.cells(), array.cells(), "{} to {}", from.scheme(), scheme);
        }
    }

    #[test]
    fn sums_of_doubles_are_the_same_to_the_bit(array in array()) {
        let cells = array.cells().map(|value| value as f64 * 0.1);
        let sums = |scheme: Scheme| scheme.build(&cells, &Limits::default()).unwrap().prefix_sums().unwrap();
        let expected = sums(Scheme::Coordinate);
        let all = Scheme::all(array.shape.dimensions());
        for scheme in all.into_iter().filter(|scheme| *scheme != Scheme::Xccs) {
            let found = sums(scheme);
            for (found, expected) in found.iter().zip(&expected) {
                let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(found.sums()), bits(expected.sums()), "{}", scheme);
            }
        }
    }

    #[test]
    fn a_chosen_scheme_takes_the_bytes_it_was_chosen_for(array in array()) {
        for access in [Access::Random, Access::SubArray, Access::Aggregation, Access::Update] {
            let choice = choose(&array.cells(), access, &Limits::default()).unwrap();
            let stored = choice.scheme.build(&array.cells(), &Limits::default()).unwrap();
            let total = u128::from(stored.sizes().total());
            prop_assert_eq!(total, choice.bytes, "{}: {:?}", choice.scheme, choice.reasons);
        }
    }
}
