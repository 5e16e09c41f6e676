//! Reductions, the same on every run.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{Element, Key, Reduce, Reduction, largest, least, sum};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// The result for `values` from their second on, too.
fn reduced<T: bytemuck::Pod, R: bytemuck::Pod>(
    rig: &mut Rig,
    reduce: &Reduce,
    types: [Element; 2],
    values: &[T],
) -> [R; 2] {
    let whole = given(rig, types[0], values);
    let out = room(rig, types[1], 1);
    let scratch = scratch(rig, reduce.scratch_bytes(whole.len()));
    [whole.clone(), whole.part(1, whole.len() - 1).unwrap()].map(|slice| {
        reduce.launch(&mut rig.stream, &slice, &out, &scratch).unwrap();
        taken(rig, &out)[0]
    })
}

#[test]
fn sums_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let types = [Element::U32, Element::U64];
        let reduce = Reduce::with_tuning(&rig.device, types[0], Reduction::Sum(types[1]), SMALL).unwrap();
        for length in lengths(512).into_iter().filter(|length| *length > 0) {
            let values: Vec<u32> = noise(2).map(|x| x as u32).take(length).collect();
            let expected = [&values[..], &values[1..]].map(|items| sum(items.iter().map(|x| u64::from(*x))));
            assert_eq!(reduced::<u32, u64>(&mut rig, &reduce, types, &values), expected, "{length} in {order:?}");
        }
    }
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    let types = [Element::F64, Element::F64];
    let reduce = Reduce::new(&rig.device, types[0], Reduction::Sum(types[1])).unwrap();
    let values: Vec<f64> = noise(2).map(|x| (x % 4001) as f64 - 2000.0).take(20_000).collect();
    let expected = [&values[..], &values[1..]].map(|items| sum(items.iter().copied()));
    assert_eq!(reduced::<f64, f64>(&mut rig, &reduce, types, &values), expected);
}

#[test]
fn the_least_and_the_largest_follow_the_order_of_keys() {
    let mut values: Vec<f32> = noise(4).map(|x| f32::from_bits(x as u32)).filter(|x| !x.is_nan()).take(1500).collect();
    values[700] = f32::NEG_INFINITY;
    let mut with_nan = values.clone();
    with_nan[1499] = -f32::NAN;
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let types = [Element::F32; 2];
        let reduce = Reduce::with_tuning(&rig.device, types[0], Reduction::Least, SMALL).unwrap();
        for values in [&values, &with_nan] {
            let found = reduced::<f32, f32>(&mut rig, &reduce, types, values);
            assert_eq!(found, [least(values).unwrap(); 2], "{order:?}");
        }
        let reduce = Reduce::with_tuning(&rig.device, types[0], Reduction::Largest, SMALL).unwrap();
        for values in [&values, &with_nan] {
            let found = reduced::<f32, f32>(&mut rig, &reduce, types, values)[0];
            assert_eq!(found.ordered_bits(), largest(values).unwrap().ordered_bits(), "{order:?}");
        }
    }
}

#[test]
fn the_least_and_the_largest_of_16_bytes() {
    // Both words decide: values that differ in the low word alone, in the high word alone, and in sign.
    let signed: Vec<i128> = noise(5).map(|x| i128::from(x as i64 >> 50) << (x % 2 * 64) | 3).take(1500).collect();
    let unsigned: Vec<u128> = noise(6).map(|x| u128::from(x % 5 + 1) << 64 | u128::from(x >> 20)).take(1500).collect();
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        for (reduction, i, u) in [
            (Reduction::Least, [least(&signed), least(&signed[1..])], [least(&unsigned), least(&unsigned[1..])]),
            (
                Reduction::Largest,
                [largest(&signed), largest(&signed[1..])],
                [largest(&unsigned), largest(&unsigned[1..])],
            ),
        ] {
            let types = [Element::I128; 2];
            let reduce = Reduce::with_tuning(&rig.device, types[0], reduction, SMALL).unwrap();
            let found = reduced::<i128, i128>(&mut rig, &reduce, types, &signed);
            assert_eq!(found.map(Some), i, "{reduction:?} in {order:?}");
            let types = [Element::U128; 2];
            let reduce = Reduce::with_tuning(&rig.device, types[0], reduction, SMALL).unwrap();
            let found = reduced::<u128, u128>(&mut rig, &reduce, types, &unsigned);
            assert_eq!(found.map(Some), u, "{reduction:?} in {order:?}");
        }
    }
}

#[test]
fn nothing_has_a_sum_but_no_least() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let reduce = Reduce::with_tuning(&rig.device, Element::U32, Reduction::Sum(Element::U64), SMALL).unwrap();
    let (none, out) = (room(&rig, Element::U32, 0), given(&mut rig, Element::U64, &[17u64]));
    let scratch = scratch(&rig, reduce.scratch_bytes(0));
    reduce.launch(&mut rig.stream, &none, &out, &scratch).unwrap();
    assert_eq!(taken::<u64>(&mut rig, &out), [0]);
    let wrong = [room(&rig, Element::I32, 9), room(&rig, Element::U32, 1)];
    let nine = room(&rig, Element::U32, 9);
    assert_refused(reduce.launch(&mut rig.stream, &nine, &out, &scratch), &["64", "72"]);
    assert_refused(reduce.launch(&mut rig.stream, &wrong[0], &out, &scratch), &["i32", "u32"]);
    assert_refused(reduce.launch(&mut rig.stream, &none, &wrong[1], &scratch), &["output", "u32", "u64"]);
    let reduce = Reduce::with_tuning(&rig.device, Element::F32, Reduction::Least, SMALL).unwrap();
    let (none, out) = (room(&rig, Element::F32, 0), room(&rig, Element::F32, 1));
    assert_refused(reduce.launch(&mut rig.stream, &none, &out, &scratch), &["reduce", "0", "least"]);
    let wide = Reduce::new(&rig.device, Element::U128, Reduction::Sum(Element::U128)).map(|_| ());
    assert_refused(wide, &["reduce", "sums of u128"]);
}
