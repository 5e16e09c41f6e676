//! Edges: no tuples, equal ones, distinct ones, sums that leave 64 bits, tuples of another schema.

use std::sync::Arc;

use warpcube_stream::cpu::CpuTree;
use warpcube_stream::device::{DeviceTree, DeviceTuples, Kernels};
use warpcube_stream::{Condition, Query, StreamError, SubCube, Tuples};

use crate::device::KERNELS;
use crate::invariants;
use crate::model::{Model, Tuple, batch, schema};

fn upload(kernels: &Arc<Kernels>, stream: &mut warpcube_gpu::Stream, tuples: &Tuples) -> DeviceTuples {
    DeviceTuples::upload(kernels, stream, tuples).unwrap()
}

/// Builds a tree on the CPU and on all devices, which agree; gives the error if it is one.
fn built(at: usize, tuples: &[Tuple]) -> Result<CpuTree, StreamError> {
    let of_cpu = CpuTree::build(KERNELS[0][at].schema(), &batch(KERNELS[0][at].schema(), tuples));
    for kernels in KERNELS.iter().map(|kernels| &kernels[at]) {
        let mut stream = kernels.device().stream().unwrap();
        let tuples = upload(kernels, &mut stream, &batch(kernels.schema(), tuples));
        let of_device = DeviceTree::build(&mut stream, &tuples);
        match (&of_cpu, of_device) {
            (Ok(tree), Ok(of_device)) => assert!(of_device.equals(&mut stream, tree).unwrap()),
            (Err(error), Err(of_device)) => assert_eq!(error.to_string(), of_device.to_string()),
            (of_cpu, of_device) => panic!("{of_cpu:?} is not {:?}", of_device.err()),
        }
    }
    of_cpu
}

#[test]
fn no_tuples_one_equal_ones_and_distinct_ones() {
    let none = built(2, &[]).unwrap();
    assert_eq!((none.tree().nodes(), none.tree().leaves()), (0, 0));
    let any = Query { conditions: vec![Condition::Any; 5] };
    assert!(none.answer(std::slice::from_ref(&any)).unwrap().get(0).is_none());
    let one = (vec![3, 1, 2, 6, 0], [7, -7]);
    assert_eq!(built(2, std::slice::from_ref(&one)).unwrap().tree().nodes(), 6);
    let equal = built(2, &vec![one.clone(); 700]).unwrap();
    assert_eq!((equal.tree().nodes(), equal.tree().leaves()), (6, 1));
    assert_eq!(equal.answer(&[any]).unwrap().get(0), Some(&[4900, 700, -7, 7, -4900][..]));
    let distinct: Vec<Tuple> = (0..900).map(|at| (vec![at % 3, at * 5, at % 4], [1, 1])).collect();
    let tree = built(1, &distinct).unwrap();
    assert_eq!(tree.tree().levels.iter().map(|level| level.keys.len()).collect::<Vec<_>>(), [1, 900, 900, 900]);
    invariants::check(tree.tree(), 3);
}

#[test]
fn keys_of_more_than_two_words() {
    // Five attributes of 32 bits: no number of the host has them side by side.
    let wide = schema(&[1 << 32; 5]);
    let device = KERNELS[1][0].device();
    let kernels = Kernels::new(device, &wide).unwrap();
    let mut stream = device.stream().unwrap();
    let key = |at: u32| at.wrapping_mul(2_654_435_761);
    let tuple = |at: u32| (vec![u32::MAX - at % 2, key(at % 3), key(at), key(at % 7), u32::MAX], [at.into(), 1]);
    let [first, second] = [0..300, 200..450].map(|rows| rows.map(tuple).collect::<Vec<Tuple>>());
    let mut on_cpu = CpuTree::build(&wide, &batch(&wide, &first)).unwrap();
    let uploaded = upload(&kernels, &mut stream, &batch(&wide, &first));
    let tree = DeviceTree::build(&mut stream, &uploaded).unwrap();
    assert!(tree.equals(&mut stream, &on_cpu).unwrap() && tree.leaves() == 300);
    on_cpu.insert(&batch(&wide, &second)).unwrap();
    let uploaded = upload(&kernels, &mut stream, &batch(&wide, &second));
    let tree = tree.insert(&mut stream, &uploaded).unwrap();
    assert!(tree.equals(&mut stream, &on_cpu).unwrap() && tree.leaves() == 450);
    invariants::check(on_cpu.tree(), 5);
    let all = CpuTree::build(&wide, &batch(&wide, &[first, second].concat())).unwrap();
    assert_eq!(all, on_cpu);
}

#[test]
fn a_removal_of_all_and_expiry_by_time() {
    for kernels in KERNELS.iter().map(|kernels| &kernels[1]) {
        let schema = kernels.schema();
        let tuples: Vec<Tuple> = (0..400).map(|at| (vec![at % 3, at, at % 4], [at.into(), 1])).collect();
        let mut stream = kernels.device().stream().unwrap();
        let uploaded = upload(kernels, &mut stream, &batch(schema, &tuples));
        let tree = DeviceTree::build(&mut stream, &uploaded).unwrap();
        let mut on_cpu = CpuTree::build(schema, &batch(schema, &tuples)).unwrap();
        let before = [Condition::Any, Condition::Between(0, 249), Condition::Any];
        let tree = tree.remove(&mut stream, &before).unwrap();
        on_cpu.remove(&before).unwrap();
        assert!(tree.equals(&mut stream, &on_cpu).unwrap() && tree.leaves() == 150);
        let all = vec![Condition::Any; 3];
        let tree = tree.remove(&mut stream, &all).unwrap();
        on_cpu.remove(&all).unwrap();
        assert!(tree.equals(&mut stream, &on_cpu).unwrap() && tree.nodes() == 0);
        let asked = SubCube { conditions: all, inquired: vec![2] };
        assert_eq!(tree.sub_cube(&mut stream, &asked).unwrap(), Model::default().sub_cube(&asked));
    }
}

#[test]
fn sums_that_leave_64_bits_are_errors_and_others_are_exact() {
    let at = |key: u32, value: i64| (vec![key % 4, 0, 0, key, 0], [0, value]);
    // The sum of the root fits, and that of one node does not.
    let error = built(2, &[at(0, i64::MAX), at(0, 1), at(1, -5)]).unwrap_err().to_string();
    assert_eq!(error, "measure 4: a sum leaves the range of 64 bits");
    assert!(built(2, &[at(0, i64::MIN), at(1, -1)]).is_err());
    // Parts of a sum leave 64 bits, and the sum does not.
    let rows = [at(0, i64::MAX), at(0, i64::MAX), at(0, i64::MIN), at(1, i64::MAX - 10), at(1, -i64::MAX)];
    assert!(built(2, &rows[..4]).is_err());
    let fits = [at(0, i64::MAX), at(0, i64::MAX), at(0, i64::MIN), at(1, -9)];
    let tree = built(2, &fits).unwrap();
    let all = Query { conditions: vec![Condition::Any; 5] };
    assert_eq!(tree.answer(&[all]).unwrap().get(0).unwrap()[4], i64::MAX - 10);
    // A query of nodes that fit may have a sum that does not.
    let apart = [at(0, i64::MAX), at(1, 1), at(2, -5)];
    let built = built(2, &apart).unwrap();
    let mut conditions = vec![Condition::Any; 5];
    conditions[3] = Condition::In(vec![0, 1]);
    let asked = [Query { conditions: conditions.clone() }];
    let expected = built.answer(&asked).unwrap_err().to_string();
    let inquired = SubCube { conditions, inquired: vec![1] };
    assert_eq!(built.sub_cube(&inquired).unwrap_err().to_string(), expected);
    for kernels in KERNELS.iter().map(|kernels| &kernels[2]) {
        let mut stream = kernels.device().stream().unwrap();
        let tuples = upload(kernels, &mut stream, &batch(kernels.schema(), &apart));
        let tree = DeviceTree::build(&mut stream, &tuples).unwrap();
        assert_eq!(tree.answer(&mut stream, &asked).unwrap_err().to_string(), expected);
        assert_eq!(tree.sub_cube(&mut stream, &inquired).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_failed_batch_leaves_the_tree() {
    let schema = schema(&[5]);
    let mut tree = CpuTree::build(&schema, &batch(&schema, &[(vec![1], [i64::MAX, 0])])).unwrap();
    let before = tree.clone();
    assert!(tree.insert(&batch(&schema, &[(vec![1], [1, 0])])).is_err());
    assert_eq!(tree, before);
}

#[test]
fn attributes_and_questions_out_of_range_are_refused() {
    let kernels = &KERNELS[0][2];
    let mut stream = kernels.device().stream().unwrap();
    let tuples = DeviceTuples::new(kernels, 300).unwrap();
    for dimension in 0..5 {
        let mut column = vec![0u32; 300];
        column[200] = if dimension == 3 { 7 } else { 1 };
        let attributes = tuples.attributes(dimension).unwrap();
        stream.upload(attributes.buffer(), attributes.offset(), &bytes_of(&column)).unwrap();
    }
    for value in tuples.values() {
        stream.fill(value.buffer(), value.offset(), 0, 300 * 8).unwrap();
    }
    let error = DeviceTree::build(&mut stream, &tuples).err().unwrap().to_string();
    assert_eq!(error, "row 200: dimension 'd3' has value 7; its cardinality is 7");
    let tree = DeviceTree::empty(kernels).unwrap();
    let short = Query { conditions: vec![Condition::Any; 4] };
    let error = tree.answer(&mut stream, &[short]).unwrap_err().to_string();
    assert_eq!(error, "query 0 has 4 conditions; the cube has 5 dimensions");
    let conditions = vec![Condition::Any; 5];
    let mut asked = SubCube { conditions, inquired: vec![5] };
    assert!(tree.sub_cube(&mut stream, &asked).unwrap_err().to_string().starts_with("no dimension is called '5'"));
    asked.inquired = vec![1, 1];
    assert_eq!(tree.sub_cube(&mut stream, &asked).unwrap_err().to_string(), "dimension 'd1' is named twice");
    let other = upload(&KERNELS[1][2], &mut KERNELS[1][2].device().stream().unwrap(), &batch(kernels.schema(), &[]));
    let error = tree.insert(&mut stream, &other).err().unwrap().to_string();
    assert_eq!(error, "the batch belongs to another schema or device");
}

fn bytes_of(column: &[u32]) -> Vec<u8> {
    column.iter().flat_map(|value| value.to_ne_bytes()).collect()
}
