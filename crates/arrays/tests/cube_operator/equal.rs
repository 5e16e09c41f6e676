//! Every algorithm equals the brute force.

use proptest::prelude::*;
use warpcube_arrays::cube_operator::Rows;
use warpcube_arrays::key::Key;

use crate::model::{ALGORITHMS, Table, by, table};

fn check<K: Key>(table: &Table, dimensions: &[usize]) {
    let keys: Vec<K> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, Some(&table.counts)).unwrap();
    let (extent, expected) = (rows.extent(), table.brute_force(dimensions));
    for algorithm in ALGORITHMS {
        let found = by(&rows, &extent, dimensions, algorithm);
        assert_eq!(found, expected, "{algorithm}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_algorithm_gives_the_groups_of_the_brute_force((table, dimensions) in table()) {
        check::<u64>(&table, &dimensions);
        check::<u128>(&table, &dimensions);
    }
}
