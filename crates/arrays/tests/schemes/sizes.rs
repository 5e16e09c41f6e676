//! Bytes of schemes: those of the arrays, those predicted and those of the thesis's formulas.

use proptest::prelude::*;
use warpcube_arrays::formulas::{Statistics, Words, predicted, thesis};
use warpcube_arrays::{Cells, Limits, Scheme, Shape, Storage};

use crate::model::{Array, Map, array};

/// Bytes that the formula of a scheme leaves out: pointers to the end, rank table, directory of partitions.
fn beside_the_formula(stored: &dyn Storage<i64>) -> u64 {
    let bytes = |name| stored.arrays().iter().find(|array| array.name == name).map_or(0, |array| array.data.bytes());
    match stored.scheme() {
        Scheme::Xcrs | Scheme::Xccs | Scheme::Hybrid { .. } => 8,
        Scheme::Bxcrs => 8 + bytes("count1"),
        Scheme::OffsetValue => bytes("partition") + bytes("pptr"),
        Scheme::Coordinate | Scheme::Bess | Scheme::Ptcs => 0,
    }
}

fn check(array: &Array, stored: &dyn Storage<i64>) {
    let statistics = Statistics::of(&array.cells());
    let (scheme, sizes) = (stored.scheme(), stored.sizes());
    let total = u128::from(sizes.total());
    assert_eq!(Some(total), predicted(scheme, &statistics), "{scheme}");
    let formula = thesis(scheme, &statistics, Words::OURS).unwrap();
    assert_eq!(total, formula + u128::from(beside_the_formula(stored)), "{scheme}");
    assert_eq!(sizes.value_bytes, 8 * array.map.len() as u64, "{scheme}");
    if scheme != Scheme::Ptcs {
        let arrays: u64 = stored.arrays().iter().map(|array| array.data.bytes()).sum();
        assert_eq!(sizes.total(), arrays, "{scheme}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bytes_are_those_predicted_and_of_the_formulas(array in array()) {
        array.schemes().iter().for_each(|stored| check(&array, stored.as_ref()));
    }
}

#[test]
fn wide_keys_and_partitions_are_predicted() {
    let tuple = |value: u32| vec![value; 17];
    let array = Array::new(&[16; 17], Map::from([(tuple(0), 1), (tuple(7), 2), (tuple(15), 3)]));
    for scheme in [Scheme::Coordinate, Scheme::OffsetValue, Scheme::Bess, Scheme::Ptcs, Scheme::Hybrid { r: 17 }] {
        check(&array, scheme.build(&array.cells(), &Limits::default()).unwrap().as_ref());
    }
}

#[test]
fn the_storage_ratio_is_that_of_the_dense_array() {
    let shape = Shape::new([10, 10]).unwrap();
    let cells = Cells::new(shape.clone(), vec![1, 1, 2, 2], vec![1i64, 2]).unwrap();
    let stored = Scheme::Bess.build(&cells, &Limits::default()).unwrap();
    assert_eq!(stored.sizes().ratio::<i64>(&shape), Ok(2.0 * 16.0 / (100.0 * 8.0)));
}
