//! Shapes at the limits of schemes: one place, 32 dimensions, coordinates of 32 bits, keys of 64, 65 and 128 bits.

use warpcube_arrays::{Cells, Limits, Scheme, SchemeError, Shape, Storage, SubArray};

use crate::model::{Array, Map};

/// Schemes that need no arrays as large as the shape.
const COMPACT: [Scheme; 4] = [Scheme::Coordinate, Scheme::OffsetValue, Scheme::Bess, Scheme::Ptcs];

/// Corner cells of a shape: first, last, and one that differs from the last in each dimension.
fn corners(sizes: &[u32]) -> Array {
    let last: Vec<u32> = sizes.iter().map(|size| size - 1).collect();
    let mut map = Map::from([(vec![0; sizes.len()], -1), (last.clone(), 1)]);
    for dimension in 0..sizes.len() {
        let mut tuple = last.clone();
        tuple[dimension] /= 2;
        map.insert(tuple, dimension as i64);
    }
    Array::new(sizes, map)
}

fn build(array: &Array, scheme: Scheme) -> Box<dyn Storage<i64>> {
    scheme.build(&array.cells(), &Limits::default()).unwrap()
}

fn check(array: &Array, stored: &dyn Storage<i64>) {
    assert_eq!(stored.cells(), array.cells(), "{}", stored.scheme());
    let asked: Vec<u32> = array.map.keys().flatten().copied().collect();
    let values: Vec<Option<i64>> = array.map.values().copied().map(Some).collect();
    assert_eq!(stored.get(&asked).unwrap(), values, "{}", stored.scheme());
    let beside: Vec<u32> = array.map.keys().next_back().map(|last| [&[0], &last[1..]].concat()).unwrap();
    let found = stored.get(&beside).unwrap();
    assert_eq!(found, [array.map.get(&beside).copied()], "{}", stored.scheme());
    for dimension in 0..array.shape.dimensions() {
        let middle = (array.shape.sizes()[dimension] - 1) / 2;
        let slice = SubArray::slice(&array.shape, &[(dimension, middle)]).unwrap();
        let expected: Vec<i64> = array.map.iter().filter(|(t, _)| t[dimension] == middle).map(|(_, v)| *v).collect();
        assert_eq!(stored.sub_array(&slice).unwrap().values(), expected, "{}", stored.scheme());
    }
}

#[test]
fn one_place() {
    for dimensions in [1, 2, 32] {
        let full = Array::new(&vec![1; dimensions], Map::from([(vec![0; dimensions], -7)]));
        full.schemes().iter().for_each(|stored| check(&full, stored.as_ref()));
        let empty = Array::new(&vec![1; dimensions], Map::new());
        for stored in empty.schemes() {
            assert_eq!(stored.get(&vec![0; dimensions]), Ok(vec![None]), "{}", stored.scheme());
            assert!(stored.prefix_sums().unwrap().iter().all(|group_by| group_by.is_empty()));
        }
    }
}

#[test]
fn no_tuples_are_looked_up() {
    let array = corners(&[3, 2]);
    array.schemes().iter().for_each(|stored| assert_eq!(stored.get(&[]), Ok(Vec::new())));
}

#[test]
fn keys_around_64_bits() {
    for sizes in [
        vec![u32::MAX, u32::MAX],
        vec![u32::MAX, u32::MAX, 1],
        vec![1, u32::MAX, u32::MAX],
        vec![2, u32::MAX, u32::MAX],
        vec![u32::MAX, u32::MAX, 2],
        vec![16; 16],
        vec![16; 17],
    ] {
        let array = corners(&sizes);
        COMPACT.iter().for_each(|scheme| check(&array, build(&array, *scheme).as_ref()));
    }
}

#[test]
fn keys_of_128_bits_and_partitions_of_64() {
    for sizes in [vec![16; 32], vec![u32::MAX; 4], vec![(1 << 31) + 1; 4]] {
        let array = corners(&sizes);
        COMPACT.iter().for_each(|scheme| check(&array, build(&array, *scheme).as_ref()));
    }
}

#[test]
fn wide_keys_within_blocks() {
    // 5 blocks, keys of 65 bits; and 34 bits.
    for (sizes, r) in [(vec![5, u32::MAX, u32::MAX, 2], 4), (vec![5, u32::MAX, 3], 3)] {
        let array = corners(&sizes);
        check(&array, build(&array, Scheme::Hybrid { r }).as_ref());
    }
    let array = corners(&[100, u32::MAX]);
    check(&array, build(&array, Scheme::Xcrs).as_ref());
    check(&array, build(&array, Scheme::Bxcrs).as_ref());
    let array = corners(&[u32::MAX, 100]);
    check(&array, build(&array, Scheme::Xccs).as_ref());
}

#[test]
fn wider_keys_are_refused_with_their_bits() {
    let array = corners(&[u32::MAX; 5]);
    check(&array, build(&array, Scheme::Coordinate).as_ref());
    let refused = |scheme: Scheme| scheme.build(&array.cells(), &Limits::default()).unwrap_err();
    for scheme in [Scheme::Bess, Scheme::Ptcs] {
        assert_eq!(refused(scheme), SchemeError::KeyWidth { scheme, bits: 160 });
    }
    assert_eq!(refused(Scheme::OffsetValue), SchemeError::OffsetWidth { scheme: Scheme::OffsetValue });
    for scheme in [Scheme::Xcrs, Scheme::Xccs, Scheme::Hybrid { r: 1 }] {
        assert_eq!(refused(scheme), SchemeError::PointersOverflow { scheme });
    }
    assert!(matches!(refused(Scheme::Bxcrs), SchemeError::Pointers { .. }), "{:?}", refused(Scheme::Bxcrs));
}

#[test]
fn pointers_above_the_limit_are_refused_with_their_size() {
    let cells = Cells::new(Shape::new([1000, 1000, 10]).unwrap(), vec![1, 1, 1], vec![1i64]).unwrap();
    let error =
        |scheme: Scheme, pointer_bytes| scheme.build(&cells, &Limits { pointer_bytes }).unwrap_err().to_string();
    assert_eq!(
        error(Scheme::Xcrs, 8_000_007),
        "pointer arrays of scheme xcrs take 8000008 bytes for 1000000 blocks, more than the limit of 8000007: \
         use bess, or hybrid with a larger r"
    );
    assert!(error(Scheme::Xccs, 80_007).contains("80008 bytes for 10000 blocks"));
    // 32,259 words of a group with its rank.
    assert!(error(Scheme::Bxcrs, 387_107).contains("387108 bytes"));
    assert!(error(Scheme::Hybrid { r: 1 }, 1 << 20).contains("80000008 bytes for 10000000 blocks"));
    for (scheme, pointer_bytes) in
        [(Scheme::Xcrs, 8_000_008), (Scheme::Bxcrs, 387_108), (Scheme::Hybrid { r: 3 }, 8_008)]
    {
        assert_eq!(scheme.build(&cells, &Limits { pointer_bytes }).unwrap().cells(), cells);
    }
    assert_eq!(
        Scheme::Hybrid { r: 4 }.build(&cells, &Limits::default()).unwrap_err().to_string(),
        "hybrid:4 needs r between 1 and the 3 dimensions of the array"
    );
}

#[test]
fn questions_outside_of_the_array_are_refused() {
    let array = corners(&[3, 4]);
    let larger = SubArray::whole(&Shape::new([3, 5]).unwrap());
    let deeper = SubArray::whole(&Shape::new([3, 4, 1]).unwrap());
    for stored in array.schemes() {
        let outside = SchemeError::Outside { cell: 1, dimension: 0, coordinate: 3, size: 3 };
        assert_eq!(stored.get(&[0, 0, 3, 0]), Err(outside), "{}", stored.scheme());
        let cut = SchemeError::Lengths { coordinates: 3, dimensions: 2, values: 2 };
        assert_eq!(stored.get(&[0, 0, 1]), Err(cut), "{}", stored.scheme());
        assert!(stored.sub_array(&larger).is_err() && stored.sub_array(&deeper).is_err(), "{}", stored.scheme());
    }
}

#[test]
fn sums_that_overflow_name_their_group() {
    let array = Array::new(&[2, 3, 2], Map::from([(vec![1, 2, 0], i64::MAX), (vec![1, 2, 1], 1)]));
    for stored in array.schemes() {
        let error = stored.prefix_sums();
        match stored.scheme() {
            // Columns keep the two cells apart until the last dimension is left out, which no group-by does.
            Scheme::Xccs => assert!(error.is_ok()),
            _ => {
                let expected = SchemeError::SumOverflow { dimensions: vec![0, 1], group: vec![1, 2] };
                assert_eq!(error, Err(expected), "{}", stored.scheme());
            }
        }
    }
    let columns = Array::new(&[2, 3, 2], Map::from([(vec![0, 2, 1], i64::MIN), (vec![1, 2, 1], -1)]));
    let stored = build(&columns, Scheme::Xccs);
    let expected = SchemeError::SumOverflow { dimensions: vec![2, 1], group: vec![1, 2] };
    assert_eq!(stored.prefix_sums(), Err(expected));
}
