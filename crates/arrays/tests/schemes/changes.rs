//! Insertions, removals and replacements.

use proptest::prelude::*;
use warpcube_arrays::{Limits, Scheme, SchemeError, Shape};

use crate::model::{Array, Map, array, tuple};

/// A change of one cell.
#[derive(Debug, Clone)]
enum Change {
    Insert(Vec<u32>, i64),
    Remove(Vec<u32>),
    Replace(Vec<u32>, i64),
}

fn changes() -> impl Strategy<Value = (Array, Vec<Change>)> {
    array().prop_flat_map(|array| {
        let tuple = || tuple(array.shape.sizes());
        let change = prop_oneof![
            (tuple(), any::<i64>()).prop_map(|(tuple, value)| Change::Insert(tuple, value)),
            tuple().prop_map(Change::Remove),
            (tuple(), any::<i64>()).prop_map(|(tuple, value)| Change::Replace(tuple, value)),
        ];
        (Just(array.clone()), prop::collection::vec(change, 0..150))
    })
}

fn replace(map: &mut Map<i64>, tuple: &[u32], value: i64) -> Option<i64> {
    map.get_mut(tuple).map(|old| std::mem::replace(old, value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn ptcs_changes_as_a_map_does((mut array, changes) in changes()) {
        let mut stored = Scheme::Ptcs.build(&array.cells(), &Limits::default()).unwrap();
        for change in changes {
            match change {
                Change::Insert(tuple, value) => {
                    prop_assert_eq!(stored.insert(&tuple, value).unwrap(), array.map.insert(tuple, value));
                }
                Change::Remove(tuple) => prop_assert_eq!(stored.remove(&tuple).unwrap(), array.map.remove(&tuple)),
                Change::Replace(tuple, value) => {
                    let old = replace(&mut array.map, &tuple, value);
                    prop_assert_eq!(stored.replace(&tuple, value).unwrap(), old);
                }
            }
            prop_assert_eq!(stored.len(), array.map.len());
        }
        prop_assert_eq!(stored.cells(), array.cells());
        let asked: Vec<u32> = array.map.keys().flatten().copied().collect();
        let values: Vec<Option<i64>> = array.map.values().copied().map(Some).collect();
        prop_assert_eq!(stored.get(&asked).unwrap(), values);
    }

    #[test]
    fn every_scheme_replaces_values((array, changes) in changes()) {
        for mut stored in array.schemes() {
            let mut map = array.map.clone();
            for change in &changes {
                if let Change::Replace(tuple, value) = change {
                    let old = replace(&mut map, tuple, *value);
                    prop_assert_eq!(stored.replace(tuple, *value).unwrap(), old, "{}", stored.scheme());
                }
            }
            let changed = Array { shape: array.shape.clone(), map };
            prop_assert_eq!(stored.cells(), changed.cells(), "{}", stored.scheme());
        }
    }
}

#[test]
fn array_schemes_refuse_to_insert_and_remove() {
    let array = Array::new(&[3, 4], Map::from([(vec![1, 2], 5)]));
    for mut stored in array.schemes().into_iter().filter(|stored| stored.scheme() != Scheme::Ptcs) {
        let scheme = stored.scheme();
        let refused = |operation| SchemeError::Fixed { scheme, operation };
        assert_eq!(stored.insert(&[1, 3], 7), Err(refused("insert")));
        assert_eq!(stored.remove(&[1, 2]), Err(refused("remove")));
        assert_eq!(stored.cells(), array.cells());
    }
}

#[test]
fn tuples_out_of_place_change_nothing() {
    let array = Array::new(&[3, 4], Map::from([(vec![1, 2], 5)]));
    for mut stored in array.schemes() {
        assert!(stored.replace(&[1, 4], 7).is_err() && stored.replace(&[1], 7).is_err());
    }
    let mut trie = Scheme::Ptcs.build(&array.cells(), &Limits::default()).unwrap();
    assert!(trie.insert(&[3, 0], 7).is_err() && trie.remove(&[0, 0, 0]).is_err());
    assert_eq!(trie.cells(), array.cells());
}

#[test]
fn keys_of_two_words_are_inserted_and_removed() {
    let shape = Shape::new([16; 32]).unwrap();
    let cells = warpcube_arrays::Cells::<f64>::empty(shape);
    let mut trie = Scheme::Ptcs.build(&cells, &Limits::default()).unwrap();
    for dimension in 0..32 {
        let mut tuple = [15; 32];
        tuple[dimension] = 3;
        assert_eq!(trie.insert(&tuple, dimension as f64), Ok(None));
    }
    let mut tuple = [15; 32];
    tuple[7] = 3;
    assert_eq!((trie.remove(&tuple), trie.get(&tuple), trie.len()), (Ok(Some(7.0)), Ok(vec![None]), 31));
    let slowest = trie.cells();
    assert_eq!((slowest.tuple(0)[0], slowest.tuple(30)[31]), (3, 3));
}
