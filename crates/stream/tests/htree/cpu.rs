//! Trees on the CPU against brute force: any sequence of batches and removals, then questions of all kinds.

use std::sync::Arc;

use proptest::prelude::*;
use warpcube_stream::cpu::CpuTree;
use warpcube_stream::{Query, Schema, SubCube};

use crate::invariants;
use crate::model::{CARDINALITIES, Change, Model, batch, changes, drawn, queries, schema, sub_cubes};

/// A cube on the CPU and its tuples, after some changes.
pub fn changed(schema: &Arc<Schema>, changes: &[Change]) -> (CpuTree, Model) {
    let (mut tree, mut model) = (CpuTree::build(schema, &batch(schema, &[])).unwrap(), Model::default());
    for change in changes {
        match change {
            Change::Insert(tuples) => {
                tree.insert(&batch(schema, tuples)).unwrap();
                model.insert(tuples);
            }
            Change::Remove(conditions) => {
                tree.remove(conditions).unwrap();
                model.remove(conditions);
            }
        }
        invariants::check(tree.tree(), schema.dimensions().len());
    }
    (tree, model)
}

fn check(cardinalities: &[u64], changes: &[Change], queries: &[Query], asked: &SubCube) {
    let schema = schema(cardinalities);
    let (tree, model) = changed(&schema, changes);
    // A tree does not tell how it came to be.
    assert_eq!(tree, CpuTree::build(&schema, &batch(&schema, &model.tuples)).unwrap());
    model.check_answers(queries, &tree.answer(queries).unwrap());
    assert_eq!(tree.sub_cube(asked).unwrap(), model.sub_cube(asked), "{asked:?}");
}

type Questions = (usize, Vec<Change>, Vec<Query>, SubCube);

pub fn questions() -> impl Strategy<Value = Questions> {
    (0..CARDINALITIES.len()).prop_flat_map(|at| {
        let of = CARDINALITIES[at];
        (Just(at), changes(of), queries(of), sub_cubes(of))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_tree_equals_brute_force((at, changes, queries, asked) in questions()) {
        check(CARDINALITIES[at], &changes, &queries, &asked);
    }
}

#[test]
fn many_tuples_and_keys_that_are_sorted_and_not_counted() {
    let schema = schema(CARDINALITIES[1]);
    let mut tuples = drawn(&[3, 50, 4], 3000, 1);
    // More values than a counted header table has.
    tuples.iter_mut().enumerate().for_each(|(at, tuple)| tuple.0[1] = (at as u32 % 700) * 6_000_000);
    let tree = CpuTree::build(&schema, &batch(&schema, &tuples)).unwrap();
    invariants::check(tree.tree(), 3);
    let model = Model { tuples };
    let asked = SubCube { conditions: vec![warpcube_stream::Condition::Any; 3], inquired: vec![2, 0] };
    assert_eq!(tree.sub_cube(&asked).unwrap(), model.sub_cube(&asked));
}
