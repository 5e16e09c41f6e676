//! Gather and scatter by row numbers, against plain Rust.

use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{Element, Gather, Scatter, gather, scatter};

use crate::common::{assert_refused, given, lengths, noise, room, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

#[test]
fn values_are_gathered_and_scattered_by_row() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let gathers = Gather::new(&rig.device, Element::U32, Element::U32).unwrap();
        let scatters = Scatter::new(&rig.device, Element::U32, Element::U32).unwrap();
        for length in lengths(2048) {
            // A multiplication by an odd number permutes the rows of a power of two; those below `length` stay.
            let all =
                (0..length.next_power_of_two() as u64).map(|row| row * 0x9e37_79b1 % length.next_power_of_two() as u64);
            let rows: Vec<u64> = all.filter(|row| *row < length as u64).collect();
            let narrow: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
            let values: Vec<u32> = noise(4).map(|x| x as u32).take(length).collect();
            let [input, index] = [&values, &narrow].map(|values| given(&mut rig, Element::U32, values));
            let out = room(&rig, Element::U32, length);
            gathers.launch(&mut rig.stream, &input, &index, &out).unwrap();
            assert!(taken::<u32>(&mut rig, &out) == gather(&values, &rows), "{length} rows in {order:?}");
            let mut expected = vec![0; length];
            scatter(&values, &rows, &mut expected);
            scatters.launch(&mut rig.stream, &input, &index, &out).unwrap();
            assert!(taken::<u32>(&mut rig, &out) == expected, "{length} rows scattered in {order:?}");
        }
    }
}

#[test]
fn wide_values_and_row_numbers_start_at_any_element() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let gathers = Gather::new(&rig.device, Element::I128, Element::U64).unwrap();
        let scatters = Scatter::new(&rig.device, Element::I128, Element::U64).unwrap();
        let values: Vec<i128> = noise(4).map(|x| i128::from(x) << 50).take(100).collect();
        let rows: Vec<u64> = noise(9).map(|x| x % 100).take(1500).collect();
        let (input, index) = (given(&mut rig, Element::I128, &values), given(&mut rig, Element::U64, &rows));
        for from in [0, 1] {
            let index = index.part(from, 1500 - from).unwrap();
            let out = room(&rig, Element::I128, index.len() as usize);
            gathers.launch(&mut rig.stream, &input, &index, &out).unwrap();
            let found = taken::<i128>(&mut rig, &out);
            assert!(found == gather(&values, &rows[from as usize..]), "from {from} on in {order:?}");
            // Back to where they came from: the values of one row number are equal.
            let back = given(&mut rig, Element::I128, &[5i128; 100]);
            scatters.launch(&mut rig.stream, &out, &index, &back).unwrap();
            let mut expected = vec![5i128; 100];
            scatter(&found, &rows[from as usize..], &mut expected);
            assert_eq!(taken::<i128>(&mut rig, &back), expected);
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    assert_refused(Gather::new(&rig.device, Element::U32, Element::I64).map(|_| ()), &["gather", "i64"]);
    let gathers = Gather::new(&rig.device, Element::U32, Element::U32).unwrap();
    let scatters = Scatter::new(&rig.device, Element::U32, Element::U32).unwrap();
    let [nine, ten, none] = [9, 10, 0].map(|n| room(&rig, Element::U32, n));
    let other = room(&rig, Element::F32, 9);
    assert_refused(gathers.launch(&mut rig.stream, &ten, &nine, &ten), &["10", "9"]);
    assert_refused(gathers.launch(&mut rig.stream, &none, &nine, &nine), &["9", "0"]);
    assert_refused(gathers.launch(&mut rig.stream, &nine, &other, &nine), &["row numbers", "f32"]);
    assert_refused(scatters.launch(&mut rig.stream, &ten, &nine, &nine), &["10", "9"]);
    assert_refused(scatters.launch(&mut rig.stream, &nine, &nine, &other), &["output", "f32"]);
    assert_refused(scatters.launch(&mut rig.stream, &nine, &nine, &none), &["9", "0"]);
}
