//! `cube refresh` that is killed: the cube is the old one or the new one.

use std::fs::DirEntry;
use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use warpcube_cube::facts::Values;
use warpcube_cube::store;

use crate::cubes::{FACTS, plan};
use crate::harness::Place;

/// Refreshes that are killed, unless `WARPCUBE_TEST_KILLS` says how many.
const KILLS: u32 = 200;

/// The sum of all cells in cents; it panics if the folder is no whole cube.
fn total(place: &Place) -> i64 {
    let stored = store::open(&place.path("plan.cube")).unwrap();
    match &stored.facts.merged().base().columns()[0].values {
        Values::Decimals(cents) => cents.iter().sum(),
        Values::Doubles(_) => panic!("amounts are decimals"),
    }
}

/// The source of a round: one row more than the first one had.
fn write_source(place: &Place, round: u32) {
    place.write("gl.csv", format!("{FACTS}2026-05-01,ES,Actual,{round}.00,g\n"));
}

/// The files of the cube with their times, those of a killed refresh too; without the lock, which is taken early.
fn files(place: &Place) -> Vec<(String, SystemTime)> {
    let entries = std::fs::read_dir(place.path("plan.cube")).unwrap().map(Result::unwrap);
    let file = |entry: DirEntry| {
        // A file may be gone since its name was read.
        let written = entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or(UNIX_EPOCH);
        (entry.file_name().to_string_lossy().into_owned(), written)
    };
    let mut files: Vec<_> = entries.map(file).filter(|(name, _)| name != store::LOCK_NAME).collect();
    files.sort();
    files
}

fn refresh(place: &Place) -> Child {
    let mut command = place.command();
    command.args(["cube", "refresh", "plan.cube"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until a refresh changes a file, or ends.
fn until_changed(place: &Place, before: &[(String, SystemTime)], child: &mut Child) {
    while files(place) == before && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// A random share of a time and a tenth.
fn part_of(time: Duration, round: u32) -> Duration {
    let random = RandomState::new().hash_one(round) % 1000;
    time.mul_f64(random as f64 / 1000.0 * 1.1)
}

/// One kill of three comes at a random point of the whole run, the others while the next state is written and takes its
/// place.
#[test]
fn a_refresh_killed_at_random_points_leaves_the_old_or_the_new_cube() {
    let kills = std::env::var("WARPCUBE_TEST_KILLS").map_or(KILLS, |text| text.parse().expect("a number"));
    let place = plan();
    let without = total(&place);
    write_source(&place, 1);
    let begin = Instant::now();
    let at_first = files(&place);
    let mut child = refresh(&place);
    until_changed(&place, &at_first, &mut child);
    let before = begin.elapsed();
    assert!(child.wait().unwrap().success());
    let whole = begin.elapsed();
    let mut old = total(&place);
    assert_eq!(old, without + 100);
    let (mut kept, mut replaced, mut torn) = (0, 0, 0);
    for round in 2..kills + 2 {
        write_source(&place, round);
        let at_first = files(&place);
        let mut child = refresh(&place);
        match round % 3 {
            0 => std::thread::sleep(part_of(whole, round)),
            _ => {
                until_changed(&place, &at_first, &mut child);
                std::thread::sleep(part_of(whole - before, round));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (found, new) = (total(&place), without + i64::from(round) * 100);
        assert!(found == old || found == new, "round {round}: {found}, neither {old} nor {new}");
        if found == new {
            replaced += 1
        } else {
            kept += 1;
            torn += u32::from(files(&place) != at_first);
        }
        old = found;
    }
    println!(
        "{kept} of {kills} refreshes left the old cube, {torn} of them within its replacement; {replaced} the new one"
    );
    assert!(torn > 0, "no refresh was killed while it wrote the next state");
    write_source(&place, kills + 2);
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(total(&place), without + i64::from(kills + 2) * 100);
    assert!(!files(&place).iter().any(|(name, _)| name == "cube.json.new"));
}
