//! The iceberg form equals the filtered brute force, and prunes.

use proptest::prelude::*;
use warpcube_arrays::SchemeError;
use warpcube_arrays::cube_operator::{Iceberg, Rows, iceberg};
use warpcube_arrays::key::KeyLayout;

use crate::model::{Groups, RULES, Table, collect, table};

/// The iceberg on one core.
pub fn found(table: &Table, dimensions: &[usize], minimum: u64) -> (Groups<i64>, Iceberg) {
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, Some(&table.counts)).unwrap();
    let mut groups = Groups::new();
    let iceberg = iceberg(&rows, dimensions, &RULES, minimum, |cuboid| {
        collect(&mut groups, &cuboid);
        Ok::<(), SchemeError>(())
    });
    (groups, iceberg.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn groups_of_enough_rows_and_no_others((table, dimensions) in table(), minimum in 0..12u64) {
        let (groups, iceberg) = found(&table, &dimensions, minimum);
        let mut expected = table.brute_force(&dimensions);
        expected.retain(|_, group| group.0 >= minimum);
        prop_assert_eq!(groups.len() as u64, iceberg.groups);
        prop_assert_eq!(groups, expected);
    }
}

#[test]
fn rows_of_small_groups_are_not_refined() {
    // Coordinates of the first dimension are unique, so that no refinement of it has two rows.
    let tuples: Vec<Vec<u32>> = (0..64).map(|row| vec![row, row % 2, row % 4, row % 8]).collect();
    let table =
        Table { layout: KeyLayout::new(&[6, 1, 2, 3]).unwrap(), tuples, values: vec![1; 64], counts: vec![1; 64] };
    let (all, whole) = found(&table, &[0, 1, 2, 3], 1);
    assert_eq!((whole.sorted, whole.cuboids), (64 * 15, 16));
    let (some, pruned) = found(&table, &[0, 1, 2, 3], 2);
    assert_eq!((pruned.sorted, pruned.cuboids), (64 * 8, 8), "dimension 0 is sorted once and leads no further");
    assert_eq!(some.len(), all.values().filter(|group| group.0 >= 2).count());
    let (none, nothing) = found(&table, &[0, 1, 2, 3], 65);
    assert_eq!((none.len(), nothing), (0, Iceberg::default()));
}
