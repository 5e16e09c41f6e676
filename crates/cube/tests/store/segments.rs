//! Facts in several segments: their files, replacements that stop, damage.

use std::fs;

use tempfile::tempdir;
use warpcube_arrays::Scheme;
use warpcube_cube::change::change;
use warpcube_cube::facts::{Rule, SegmentTuning, ValueType};
use warpcube_cube::store::{self, CubeLock, Role, StoredCube};

use crate::cubes::{Row, expected_names, facts, model, names};
use crate::damage::{files, rewrite};
use crate::interruptions::{full_disk, killed};
use crate::lock::child_folder;
use crate::reuse::replaced;

/// Processes that are ended at a random point.
const KILLS: u32 = 100;
/// Longest time until a process is ended, after its first replacement has begun.
const DELAY_MICROSECONDS: u64 = 20_000;

/// A cube of a number: of 100 cells a few have other values in the next, one is gone and one is new.
fn version(number: u64) -> StoredCube {
    let measures = [(Rule::Sum, ValueType::Decimal { scale: 0 }), (Rule::Avg, ValueType::Double)];
    let model = model("versions", &[40, 7], &measures);
    let value = |cell: u64| match cell % 31 == number % 31 {
        true => (Some(-(number as i64)), Some(number as f64 / 4.0)),
        false => (Some(cell as i64), None),
    };
    let cells = (0..100).filter(|cell| *cell != number % 100).chain([100 + number % 100]);
    let rows: Vec<Row> = cells.map(|cell| (cell * 2 % 280, value(cell).0, value(cell).1)).collect();
    StoredCube::new(model.clone(), facts(&model, &rows, 16))
}

/// The next number's cube as a change of the stored one.
fn changed(held: &CubeLock, number: u64) -> StoredCube {
    let (old, new) = (held.open().unwrap(), version(number));
    let facts = new.facts.as_change_of(&old.facts, &SegmentTuning::default());
    StoredCube { facts, scheme: old.scheme, ..new }
}

#[test]
fn changes_write_a_segment_and_what_is_not_live() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &StoredCube { scheme: Scheme::Bxcrs, ..version(1) }).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let second = changed(&held, 2);
    let [new, gone] = replaced(&held, &second);
    assert_eq!(new, ["facts-2.warpcols", "removed-2-0.warpcols"]);
    assert!(gone.is_empty(), "{gone:?}");
    assert_eq!(*held.open().unwrap().facts.merged(), version(2).facts);
    let info = store::info(&folder).unwrap();
    assert_eq!((info.version, info.facts.cells, info.facts.segments.len()), (2, 100, 2));
    assert_eq!(info.files.iter().filter(|file| file.role == Role::Index).count(), 2, "the arrays of the base");
    // The model alone.
    let renamed = change(&held.open().unwrap(), "rename D0:e1 to first").unwrap().0;
    assert_eq!(replaced(&held, &renamed), [vec!["model-3.json".to_owned()], vec!["model-1.json".to_owned()]]);
    // The same facts again.
    assert_eq!(replaced(&held, &changed(&held, 2))[0], ["model-4.json"]);
    // Cells of a former segment go, too.
    let [new, gone] = replaced(&held, &changed(&held, 3));
    assert_eq!(new, ["facts-5.warpcols", "removed-5-0.warpcols", "removed-5-1.warpcols"]);
    assert_eq!(gone, ["removed-2-0.warpcols"]);
    assert_eq!(*held.open().unwrap().facts.merged(), version(3).facts);
    // Cells that a change of elements takes are not live any more.
    let without = change(&held.open().unwrap(), "remove D0:e3").unwrap().0;
    let [new, _] = replaced(&held, &without);
    assert!(new.contains(&"removed-6-0.warpcols".to_owned()) && new.contains(&"model-6.json".to_owned()), "{new:?}");
    assert!(!new.iter().any(|name| name.starts_with("facts")), "{new:?}");
    assert!(without.facts.len() < version(3).facts.len());
    // Another scheme, and another folder, have one segment.
    let open = held.open().unwrap();
    held.replace(&StoredCube { scheme: Scheme::Bess, ..open.clone() }).unwrap();
    let merged = held.open().unwrap();
    assert!(merged.facts.is_whole() && merged.facts == *open.facts.merged());
    assert_eq!(names(&folder), expected_names(&folder));
    let other = temporary.path().join("other");
    store::create(&other, &open).unwrap();
    assert_eq!(store::open(&other).unwrap().facts, merged.facts);
}

#[test]
fn segments_are_merged_when_they_are_too_many() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &version(1)).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let (mut most, mut merges) = (0, 0);
    for number in 2..40 {
        held.replace(&changed(&held, number)).unwrap();
        let facts = held.open().unwrap().facts;
        assert_eq!(*facts.merged(), version(number).facts, "{number}");
        assert_eq!(names(&folder), expected_names(&folder), "{number}");
        most = most.max(facts.segments().len());
        merges += u32::from(facts.is_whole());
    }
    assert!(most > 2 && most <= SegmentTuning::default().segments_max && merges > 3, "{most} segments, {merges}");
}

#[test]
fn an_error_at_any_step_leaves_the_old_or_the_new_segments() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let temporary = tempdir().unwrap();
        let folder = temporary.path().join("cube");
        store::create(&folder, &version(1)).unwrap();
        let held = CubeLock::lock(&folder).unwrap();
        held.replace(&changed(&held, 2)).unwrap();
        let mut steps = 0;
        let outcome = held.replace_in_steps(&changed(&held, 3), &mut full_disk(step, &mut steps));
        let number = if *held.open().unwrap().facts.merged() == version(2).facts { 2 } else { 3 };
        assert_eq!(*held.open().unwrap().facts.merged(), version(number).facts, "step {step}");
        assert!(outcome.is_err() || number == 3, "step {step}");
        if number == 3 {
            new += 1
        } else {
            old += 1
        }
        held.replace(&changed(&held, 4)).unwrap();
        assert_eq!(*held.open().unwrap().facts.merged(), version(4).facts, "step {step}");
        assert_eq!(names(&folder), expected_names(&folder), "step {step}");
        if outcome.is_ok() && steps <= step {
            break;
        }
    }
    assert!(old > 4 && new > 2, "{old} old, {new} new");
}

#[test]
#[ignore = "a process of another test"]
fn child_changes() {
    let Some(folder) = child_folder() else { return };
    let held = CubeLock::lock(&folder).unwrap();
    let first = store::info(&folder).unwrap().generation + 1;
    for number in first.. {
        let next = changed(&held, number);
        println!("\nbegins {number}");
        held.replace(&next).unwrap();
    }
}

#[test]
fn a_change_killed_at_random_points_leaves_the_old_or_the_new_facts() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &version(1)).unwrap();
    let (mut leftovers, mut several) = (0, 0);
    for round in 0..KILLS {
        killed("segments::child_changes", &folder, DELAY_MICROSECONDS);
        let (cube, generation) = (store::open(&folder).unwrap(), store::info(&folder).unwrap().generation);
        assert_eq!(*cube.facts.merged(), version(generation).facts, "round {round}: {generation}");
        several += u32::from(cube.facts.segments().len() > 1);
        leftovers += u32::from(names(&folder) != expected_names(&folder));
    }
    println!("{leftovers} of {KILLS} processes left files, {several} several segments");
    assert!(leftovers > 0 && several > 0, "{leftovers} with files left, {several} with several segments");
}

#[test]
fn a_flipped_bit_of_a_segment_is_found_or_means_nothing() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &version(1)).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    held.replace(&changed(&held, 2)).unwrap();
    let cube = held.open().unwrap();
    for name in ["facts-1.warpcols", "facts-2.warpcols", "removed-2-0.warpcols"] {
        let path = folder.join(name);
        let whole = fs::read(&path).unwrap();
        let mut found = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            match store::open(&folder) {
                Ok(opened) => assert_eq!(opened, cube, "{name}: byte {at}"),
                Err(error) => {
                    assert!(error.to_string().contains(name), "{name}: byte {at}: {error}");
                    found += 1;
                }
            }
        }
        assert!(found * 2 > whole.len(), "{name}: {found} of {} bytes", whole.len());
        fs::write(&path, &whole).unwrap();
    }
    let whole = fs::read(folder.join("cube.json")).unwrap();
    type Lie<'a> = (&'a dyn Fn(&mut serde_json::Value), &'a str);
    let lies: [Lie<'_>; 6] = [
        (&|json| json["facts"]["segments"][0]["cells"] = 7.into(), "its pages hold"),
        (&|json| json["facts"]["segments"][0]["removed"] = 1.into(), "its pages hold"),
        (
            &|json| json["facts"]["segments"][1]["removed"] = 1.into(),
            "it names no file of the removed cells of segment 1",
        ),
        (&|json| json["facts"]["segments"] = serde_json::json!([]), "it names 2 files of 1 segments"),
        (&|json| json["facts"]["cells"] = 7.into(), "its segments have 100 cells, not 7"),
        (&|json| files(json).swap(1, 2), "its pages hold"),
    ];
    for (lie, message) in lies {
        rewrite(&folder, |json| lie(json));
        let error = store::open(&folder).unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
        fs::write(folder.join("cube.json"), &whole).unwrap();
    }
    // Without the removed cells, some keys stand in both segments.
    rewrite(&folder, |json| {
        json["facts"]["segments"][0]["removed"] = 0.into();
        files(json).retain(|file| file["role"] != "removed");
    });
    let error = store::open(&folder).unwrap_err().to_string();
    assert!(error.contains("stands in two segments"), "{error}");
    fs::write(folder.join("cube.json"), &whole).unwrap();
    assert_eq!(store::open(&folder).unwrap(), cube);
}

#[test]
fn folders_of_the_version_before_open_and_their_facts_stay() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &version(1)).unwrap();
    rewrite(&folder, |json| json["version"] = 1.into());
    let held = CubeLock::lock(&folder).unwrap();
    assert_eq!(held.open().unwrap(), version(1));
    assert_eq!(replaced(&held, &changed(&held, 2))[0], ["facts-2.warpcols", "removed-2-0.warpcols"]);
    // Those of versions that drew no identity have another name with one.
    let folder = temporary.path().join("old");
    store::create(&folder, &version(1)).unwrap();
    let identity = store::info(&folder).unwrap().identity;
    rewrite(&folder, |json| json["version"] = 1.into());
    assert!(!identity.is_empty());
    let held = CubeLock::lock(&folder).unwrap();
    let renamed = change(&held.open().unwrap(), "rename D0:e1 to first").unwrap().0;
    assert_eq!(replaced(&held, &renamed)[0], ["model-2.json"]);
}
