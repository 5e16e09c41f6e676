//! Random arrays and the map that schemes are held against.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpcube_arrays::{Cells, Limits, Scheme, Shape, Storage, SubArray, Value};

/// The array as a map from tuples to values.
pub type Map<V> = BTreeMap<Vec<u32>, V>;

/// A shape with the cells of an array of it.
#[derive(Debug, Clone)]
pub struct Array {
    pub shape: Shape,
    pub map: Map<i64>,
}

impl Array {
    pub fn new(sizes: &[u32], map: Map<i64>) -> Self {
        Self { shape: Shape::new(sizes).unwrap(), map }
    }

    pub fn cells(&self) -> Cells<i64> {
        cells_of(&self.shape, &self.map)
    }

    /// Every scheme that the array can be built in, unlimited pointers allowed up to 64 MiB.
    pub fn schemes(&self) -> Vec<Box<dyn Storage<i64>>> {
        let limits = Limits { pointer_bytes: 64 << 20 };
        let all = Scheme::all(self.shape.dimensions()).into_iter();
        all.map(|scheme| scheme.build(&self.cells(), &limits).unwrap()).collect()
    }
}

/// Cells of a map.
pub fn cells_of<V: Value>(shape: &Shape, map: &Map<V>) -> Cells<V> {
    let coordinates = map.keys().flatten().copied().collect();
    Cells::new(shape.clone(), coordinates, map.values().copied().collect()).unwrap()
}

/// Sizes of 1 to 8 dimensions with at most some 20,000 places, dimensions of one element among them.
fn sizes() -> impl Strategy<Value = Vec<u32>> {
    let most = [0u32, 300, 60, 20, 9, 6, 5, 4, 3];
    (1usize..=8).prop_flat_map(move |dimensions| prop::collection::vec(1..=most[dimensions], dimensions))
}

/// Tuples of a shape, its corners more often than others.
pub fn tuple(sizes: &[u32]) -> impl Strategy<Value = Vec<u32>> + use<> {
    let coordinate = |size: u32| prop_oneof![1 => Just(0), 1 => Just(size - 1), 4 => 0..size];
    sizes.iter().map(|size| coordinate(*size)).collect::<Vec<_>>()
}

/// Arrays of 1 to 8 dimensions: empty, full, of one cell, and of any number of cells; negative values and zeros.
pub fn array() -> impl Strategy<Value = Array> {
    sizes().prop_flat_map(|sizes| {
        let some = prop::collection::btree_map(tuple(&sizes), -50i64..50, 0..120);
        prop_oneof![
            1 => Just(Map::new()),
            1 => (tuple(&sizes), any::<i64>()).prop_map(|(tuple, value)| Map::from([(tuple, value)])),
            1 => any_values(full(&sizes)),
            7 => some,
        ]
        .prop_map(move |map| Array::new(&sizes, map))
    })
}

fn any_values(tuples: Vec<Vec<u32>>) -> impl Strategy<Value = Map<i64>> {
    prop::collection::vec(-1000i64..1000, tuples.len())
        .prop_map(move |values| tuples.iter().cloned().zip(values).collect())
}

/// All tuples of a shape, in order; those of the first 2,000 places of a larger one.
pub fn full(sizes: &[u32]) -> Vec<Vec<u32>> {
    let places: u64 = sizes.iter().map(|size| u64::from(*size)).product();
    let tuple = |place: u64| {
        let mut rest = place;
        let digit = |size: &u32| {
            let digit = rest % u64::from(*size);
            rest /= u64::from(*size);
            digit as u32
        };
        let mut tuple: Vec<u32> = sizes.iter().rev().map(digit).collect();
        tuple.reverse();
        tuple
    };
    (0..places.min(2000)).map(tuple).collect()
}

/// A random sub-array of a shape.
pub fn sub_array(shape: &Shape) -> impl Strategy<Value = SubArray> + use<> {
    let shape = shape.clone();
    (tuple(shape.sizes()), tuple(shape.sizes())).prop_map(move |(one, other)| {
        let low: Vec<u32> = one.iter().zip(&other).map(|(one, other)| *one.min(other)).collect();
        let high: Vec<u32> = one.iter().zip(&other).map(|(one, other)| *one.max(other)).collect();
        SubArray::new(&shape, low, high).unwrap()
    })
}

/// Sums of the map by some dimensions, in their order.
pub fn sums(map: &Map<i64>, dimensions: &[usize]) -> Map<i64> {
    let mut sums = Map::new();
    for (tuple, value) in map {
        let group = dimensions.iter().map(|dimension| tuple[*dimension]).collect();
        *sums.entry(group).or_insert(0i64) += value;
    }
    sums
}
