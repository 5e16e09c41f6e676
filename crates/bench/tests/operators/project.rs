//! Projections, against plain Rust.

use warpcube_bench::operators::project::{Project, Projection, project};
use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::Element;

use crate::common::{assert_refused, given, lengths, noise, room, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

#[test]
fn combinations_and_their_sigmoids_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let linear = Project::new(&rig.device, Element::F32, Projection::Linear).unwrap();
        let sigmoid = Project::new(&rig.device, Element::F32, Projection::Sigmoid).unwrap();
        for length in lengths(2048) {
            let column =
                |seed| noise(seed).map(|x| (x % 20_000) as f32 / 1000.0 - 10.0).take(length).collect::<Vec<_>>();
            let (x, y) = (column(1), column(2));
            let [x_given, y_given] = [&x, &y].map(|values| given(&mut rig, Element::F32, values));
            let out = room(&rig, Element::F32, length);
            let rows = || x.iter().zip(&y);
            linear.launch(&mut rig.stream, [&x_given, &y_given], [2.5, -0.3], &out).unwrap();
            let expected: Vec<f32> = rows().map(|(x, y)| project(Projection::Linear, *x, *y, 2.5, -0.3)).collect();
            assert!(taken::<f32>(&mut rig, &out) == expected, "{length} rows in {order:?}");
            // Over its own input.
            sigmoid.launch(&mut rig.stream, [&x_given, &y_given], [2.5, -0.3], &x_given).unwrap();
            let expected = rows().map(|(x, y)| project(Projection::Sigmoid, *x, *y, 2.5, -0.3));
            let found = taken::<f32>(&mut rig, &x_given);
            let near = |(found, expected): (&f32, f32)| (found - expected).abs() <= 1e-6 * expected;
            assert!(found.iter().zip(expected).all(near), "{length} sigmoids in {order:?}");
        }
    }
}

#[test]
fn columns_start_at_any_element() {
    let mut rig = Rig::new(LaneOrder::Seeded(1));
    let linear = Project::new(&rig.device, Element::F64, Projection::Linear).unwrap();
    let values: Vec<f64> = noise(1).map(|x| (x % 1000) as f64).take(3000).collect();
    let whole = given(&mut rig, Element::F64, &values);
    let out = room(&rig, Element::F64, 2001);
    linear
        .launch(&mut rig.stream, [&whole.part(1, 2001).unwrap(), &whole.part(900, 2001).unwrap()], [3.0, 1.0], &out)
        .unwrap();
    let expected: Vec<f64> = (0..2001).map(|row| 3.0 * values[1 + row] + values[900 + row]).collect();
    assert_eq!(taken::<f64>(&mut rig, &out), expected);
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    assert_refused(Project::new(&rig.device, Element::U32, Projection::Linear).map(|_| ()), &["project", "u32"]);
    let linear = Project::new(&rig.device, Element::F32, Projection::Linear).unwrap();
    let [nine, ten, other] = [(Element::F32, 9), (Element::F32, 10), (Element::I32, 9)].map(|(e, n)| room(&rig, e, n));
    assert_refused(linear.launch(&mut rig.stream, [&nine, &ten], [1.0; 2], &nine), &["second", "10", "9"]);
    assert_refused(linear.launch(&mut rig.stream, [&nine, &nine], [1.0; 2], &ten), &["output", "10", "9"]);
    assert_refused(linear.launch(&mut rig.stream, [&other, &nine], [1.0; 2], &nine), &["first", "i32"]);
}
