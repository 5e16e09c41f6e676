//! No rows, no dimensions, keys of all widths, sums at the end of their type, sinks that stop, rows that make no sense.

use warpcube_arrays::SchemeError;
use warpcube_arrays::cube_operator::{Algorithm, Costs, Plan, Rows, Rule, cube};
use warpcube_arrays::key::KeyLayout;

use crate::model::{ALGORITHMS, Groups, RULES, Table, by};

fn table(bits: &[u32], tuples: &[&[u32]], values: &[i64]) -> Table {
    let tuples = tuples.iter().map(|tuple| tuple.to_vec()).collect();
    Table { layout: KeyLayout::new(bits).unwrap(), tuples, values: values.to_vec(), counts: vec![1; values.len()] }
}

#[test]
fn no_rows_give_no_cuboid() {
    let table = table(&[3, 2], &[], &[]);
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, None).unwrap();
    for algorithm in ALGORITHMS {
        assert_eq!(by(&rows, &rows.extent(), &[0, 1], algorithm), Groups::new());
    }
}

#[test]
fn no_dimensions_give_the_grand_total() {
    let table = table(&[3], &[&[7], &[1]], &[5, 6]);
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, None).unwrap();
    for algorithm in ALGORITHMS {
        let expected = Groups::from([((vec![], vec![]), (2, 11, 5, 6))]);
        assert_eq!(by(&rows, &rows.extent(), &[], algorithm), expected);
    }
}

#[test]
fn keys_fill_64_and_128_bits() {
    let tuples: [&[u32]; 4] = [&[u32::MAX, 0, 9, 1], &[0, 1, u32::MAX, 0], &[u32::MAX, 0, 9, 0], &[4, 1, 9, 0]];
    let wide = table(&[32, 32, 32, 32], &tuples, &[1, 2, 4, 8]);
    let keys: Vec<u128> = wide.keys();
    let rows = Rows::new(&wide.layout, &keys, &wide.values, None).unwrap();
    for algorithm in ALGORITHMS {
        assert_eq!(by(&rows, &rows.extent(), &[2, 0, 1, 3], algorithm), wide.brute_force(&[0, 1, 2, 3]));
    }
    let tuples: [&[u32]; 3] = [&[0, u32::MAX, 0, u32::MAX], &[0, 0, 0, 3], &[0, u32::MAX, 0, 3]];
    let full = table(&[0, 32, 0, 32], &tuples, &[1, 2, 4]);
    let keys: Vec<u64> = full.keys();
    let rows = Rows::new(&full.layout, &keys, &full.values, None).unwrap();
    for algorithm in ALGORITHMS {
        assert_eq!(by(&rows, &rows.extent(), &[0, 1, 2, 3], algorithm), full.brute_force(&[0, 1, 2, 3]));
    }
}

#[test]
fn doubles_are_added_up_exactly_where_they_can_be() {
    let table = table(&[4, 3, 2], &[&[1, 2, 3], &[1, 5, 0], &[9, 2, 3], &[1, 2, 3]], &[-3, 8, 5, 6]);
    let (keys, doubles): (Vec<u64>, Vec<f64>) = (table.keys(), table.values.iter().map(|v| *v as f64 / 4.0).collect());
    let rows = Rows::new(&table.layout, &keys, &doubles, None).unwrap();
    let quarters = |(count, sum, least, most): (u64, f64, f64, f64)| {
        (count, (sum * 4.0) as i64, (least * 4.0) as i64, (most * 4.0) as i64)
    };
    for algorithm in ALGORITHMS {
        let found = by(&rows, &rows.extent(), &[0, 1, 2], algorithm);
        let found: Groups<i64> = found.into_iter().map(|(key, group)| (key, quarters(group))).collect();
        assert_eq!(found, table.brute_force(&[0, 1, 2]));
    }
}

#[test]
fn a_sum_past_its_type_names_the_group() {
    let table = table(&[2, 2], &[&[1, 0], &[1, 1], &[2, 0]], &[i64::MAX, 1, -1]);
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, None).unwrap();
    let run = |rules: &[Rule]| {
        let plan = Plan::new(&rows.extent(), &[0, 1], rules, Algorithm::Auto, &Costs::CPU).unwrap();
        cube(&rows, &plan, |_| Ok::<(), SchemeError>(()))
    };
    let error = run(&[Rule::Sum]).unwrap_err();
    assert_eq!(error.to_string(), "the sum of group [1] of dimensions [0] exceeds 64 bits");
    assert_eq!(run(&[Rule::Max, Rule::Count]), Ok(()), "no sum was asked for");
}

#[test]
fn columns_that_no_rule_needs_are_empty() {
    let table = table(&[2], &[&[1], &[3]], &[4, 5]);
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, None).unwrap();
    let lengths = |rules: &[Rule]| {
        let plan = Plan::new(&rows.extent(), &[0], rules, Algorithm::Paths, &Costs::CPU).unwrap();
        let mut lengths = Vec::new();
        cube(&rows, &plan, |it| {
            lengths.push([it.counts.len(), it.sums.len(), it.least.len(), it.largest.len()]);
            Ok::<(), SchemeError>(())
        })
        .unwrap();
        lengths[0]
    };
    assert_eq!(
        (lengths(&[Rule::Sum]), lengths(&[Rule::Avg]), lengths(&[Rule::Max])),
        ([0, 2, 0, 0], [2, 2, 0, 0], [0, 0, 0, 2])
    );
}

#[test]
fn a_sink_that_fails_ends_the_work() {
    #[derive(Debug, PartialEq)]
    enum Stop {
        Enough,
        Array(SchemeError),
    }
    impl From<SchemeError> for Stop {
        fn from(error: SchemeError) -> Stop {
            Stop::Array(error)
        }
    }
    let table = table(&[2, 2], &[&[1, 0], &[1, 1]], &[3, 1]);
    let keys: Vec<u64> = table.keys();
    let rows = Rows::new(&table.layout, &keys, &table.values, None).unwrap();
    let plan = Plan::new(&rows.extent(), &[0, 1], &RULES, Algorithm::Paths, &Costs::CPU).unwrap();
    let mut given = 0;
    let result = cube(&rows, &plan, |_| {
        given += 1;
        if given == 2 { Err(Stop::Enough) } else { Ok(()) }
    });
    assert_eq!((result, given), (Err(Stop::Enough), 2));
    let other = KeyLayout::new(&[2, 3]).unwrap();
    let rows = Rows::new(&other, &keys, &table.values, None).unwrap();
    assert_eq!(cube(&rows, &plan, |_| Err(Stop::Enough)), Err(Stop::Array(SchemeError::OtherLayout)));
}

#[test]
fn dimensions_that_make_no_sense_are_refused() {
    let table = table(&[1; 20], &[], &[]);
    let rows = Rows::<u64, i64>::new(&table.layout, &[], &[], None).unwrap();
    let plan = |dimensions: &[usize], costs: &Costs, algorithm| {
        Plan::new(&rows.extent(), dimensions, &RULES, algorithm, costs).map(drop).map_err(|error| error.to_string())
    };
    let auto = |dimensions: &[usize]| plan(dimensions, &Costs::CPU, Algorithm::Auto).unwrap_err();
    assert_eq!(auto(&[0, 20]), "there is no dimension 20: the array has 20, counted from 0");
    assert_eq!(auto(&[3, 1, 3]), "dimension 3 is named twice");
    let many: Vec<usize> = (0..17).collect();
    assert_eq!(auto(&many), "a CUBE has up to 16 dimensions (65,536 cuboids), not 17: name fewer");
    let bare = Costs { dense: None, hash: None, ..Costs::CPU };
    for algorithm in [Algorithm::Dense, Algorithm::Hash] {
        assert!(plan(&[0], &bare, algorithm).unwrap_err().contains(&format!("by algorithm {algorithm}")));
    }
    assert!(plan(&[0], &bare, Algorithm::Auto).is_ok());
    let lengths = Rows::<u64, i64>::new(&table.layout, &[1, 2], &[1], None).unwrap_err();
    assert_eq!(lengths, SchemeError::CubeRows { keys: 2, values: 1 });
    assert!(Rows::<u64, i64>::new(&table.layout, &[1], &[1], Some(&[])).is_err());
}
