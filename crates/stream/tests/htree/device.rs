//! Trees on the emulated device have the arrays of those on the CPU, and the same answers.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};
use warpcube_stream::cpu::CpuTree;
use warpcube_stream::device::{DeviceTree, DeviceTuples, Kernels, QueryBatch};
use warpcube_stream::{Condition, Query, SubCube};

use crate::cpu::{changed, questions};
use crate::model::{CARDINALITIES, Change, batch, drawn, queries, schema, tuples};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];

/// The kernels of each schema on a device of each order.
pub static KERNELS: LazyLock<Vec<Vec<Arc<Kernels>>>> = LazyLock::new(|| {
    let of_order = |order| {
        let options = EmulatorOptions { order, ..EmulatorOptions::default() };
        let device = Device::emulated(options, 1 << 28).unwrap();
        CARDINALITIES.map(|of| Kernels::new(&device, &schema(of)).unwrap()).to_vec()
    };
    ORDERS.map(of_order).to_vec()
});

/// Plays changes and questions on one device.
fn check(kernels: &Arc<Kernels>, changes: &[Change], queries: &[Query], asked: &SubCube) {
    let schema = kernels.schema();
    let mut stream = kernels.device().stream().unwrap();
    let mut tree = DeviceTree::empty(kernels).unwrap();
    for (at, change) in changes.iter().enumerate() {
        let before = tree;
        tree = match change {
            Change::Insert(tuples) => {
                let batch = DeviceTuples::upload(kernels, &mut stream, &batch(schema, tuples)).unwrap();
                before.insert(&mut stream, &batch).unwrap()
            }
            Change::Remove(conditions) => before.remove(&mut stream, conditions).unwrap(),
        };
        // The version before is as it was.
        assert!(before.equals(&mut stream, &changed(schema, &changes[..at]).0).unwrap());
    }
    let (on_cpu, _) = changed(schema, changes);
    assert_eq!(tree.download(&mut stream).unwrap(), *on_cpu.tree());
    assert_eq!(tree.answer(&mut stream, queries).unwrap(), on_cpu.answer(queries).unwrap());
    assert_eq!(tree.sub_cube(&mut stream, asked).unwrap(), on_cpu.sub_cube(asked).unwrap(), "{asked:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_tree_equals_the_cpu((at, changes, queries, mut asked) in questions()) {
        // Few sub-cubes, as each compiles a program.
        asked.inquired.truncate(1 + at);
        asked.inquired.sort_unstable();
        KERNELS.iter().for_each(|kernels| check(&kernels[at], &changes, &queries, &asked));
    }
}

#[test]
fn trees_of_many_tiles() {
    for kernels in KERNELS.iter() {
        for (kernels, of) in kernels.iter().zip(CARDINALITIES) {
            let schema = kernels.schema();
            let mut stream = kernels.device().stream().unwrap();
            let [first, second] = [1, 2].map(|seed| batch(schema, &drawn(of, 1500, seed)));
            let mut on_cpu = CpuTree::build(schema, &first).unwrap();
            let mut upload = |tuples| DeviceTuples::upload(kernels, &mut stream, tuples).unwrap();
            let (first, added) = (upload(&first), upload(&second));
            let built = DeviceTree::build(&mut stream, &first).unwrap();
            assert!(built.equals(&mut stream, &on_cpu).unwrap());
            let tree = built.insert(&mut stream, &added).unwrap();
            on_cpu.insert(&second).unwrap();
            assert!(tree.equals(&mut stream, &on_cpu).unwrap());
            assert!(tree.bytes() > 0 && tree.nodes() == on_cpu.tree().nodes() as u64);
            // Lists of very different lengths, some with all nodes, in one batch, which runs twice as it is recorded.
            let last = of.len() - 1;
            let asked = |condition: Condition| {
                let mut conditions = vec![Condition::Any; of.len()];
                conditions[last] = condition;
                Query { conditions }
            };
            let mut queries: Vec<Query> = (0..60).map(|value| asked(Condition::Is(value))).collect();
            queries
                .extend([asked(Condition::Between(0, u32::MAX)), asked(Condition::In((0..40).step_by(3).collect()))]);
            let expected = on_cpu.answer(&queries).unwrap();
            assert!(expected.len() == 62 && expected.get(60).is_some() && expected.get(59).is_none());
            let batch = QueryBatch::new(&tree, &queries).unwrap();
            let mut recorded = batch.record(&mut stream).unwrap();
            for _ in 0..2 {
                recorded.run(&mut stream).unwrap();
                assert_eq!(recorded.answers().unwrap(), expected);
            }
        }
    }
}

#[test]
fn strategies_draw_what_they_are_for() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let drawn = tuples(CARDINALITIES[1], 60).new_tree(&mut runner).unwrap().current();
    let asked = queries(CARDINALITIES[1]).new_tree(&mut runner).unwrap().current();
    assert!(!drawn.is_empty() && !asked.is_empty());
}
