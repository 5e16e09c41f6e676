//! `cube refresh` that is killed: the cube is the old one or the new one.

use std::hash::{BuildHasher, RandomState};
use std::process::Stdio;
use std::time::{Duration, Instant};

use warpcube_cube::facts::Values;
use warpcube_cube::store;

use crate::cubes::{FACTS, plan};
use crate::harness::Place;

/// Refreshes that are killed, unless `WARPCUBE_TEST_KILLS` says how many.
const KILLS: u32 = 24;

/// The sum of all cells in cents; it panics if the folder is no whole cube.
fn total(place: &Place) -> i64 {
    let stored = store::open(&place.path("plan.cube")).unwrap();
    match &stored.facts.columns()[0].values {
        Values::Decimals(cents) => cents.iter().sum(),
        Values::Doubles(_) => panic!("amounts are decimals"),
    }
}

/// The source of a round: one row more than the first one had.
fn write_source(place: &Place, round: u32) {
    place.write("gl.csv", format!("{FACTS}2026-05-01,ES,Actual,{round}.00,g\n"));
}

#[test]
fn a_refresh_killed_at_random_points_leaves_the_old_or_the_new_cube() {
    let kills = std::env::var("WARPCUBE_TEST_KILLS").map_or(KILLS, |text| text.parse().expect("a number"));
    let place = plan();
    let without = total(&place);
    write_source(&place, 1);
    let begin = Instant::now();
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(done.code, 0, "{done:?}");
    let whole = begin.elapsed();
    let mut old = total(&place);
    assert_eq!(old, without + 100);
    let (mut kept, mut replaced) = (0, 0);
    for round in 2..kills + 2 {
        write_source(&place, round);
        let mut command = place.command();
        command.args(["cube", "refresh", "plan.cube"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let random = RandomState::new().hash_one(round) % 1000;
        std::thread::sleep(whole.mul_f64(random as f64 / 1000.0 * 1.2).max(Duration::from_micros(1)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (found, new) = (total(&place), without + i64::from(round) * 100);
        assert!(found == old || found == new, "round {round}: {found}, neither {old} nor {new}");
        if found == new {
            replaced += 1
        } else {
            kept += 1
        }
        old = found;
    }
    println!("{kept} of {kills} refreshes left the old cube, {replaced} the new one");
    assert!(kept > 0, "no refresh was killed before its end");
    write_source(&place, kills + 2);
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(total(&place), without + i64::from(kills + 2) * 100);
}
