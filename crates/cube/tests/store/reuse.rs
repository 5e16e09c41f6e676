//! Files of former generations: what stays the same is not written again, and stays as long as a manifest names it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use tempfile::tempdir;
use warpcube_arrays::Scheme;
use warpcube_cube::change::change;
use warpcube_cube::facts::Facts;
use warpcube_cube::store::{self, CubeLock, StoredCube};

use crate::cubes::{expected_names, names, small};
use crate::interruptions::{full_disk, killed};
use crate::lock::child_folder;

/// Processes that are ended at a random point.
const KILLS: u32 = 100;
/// Longest time until a process is ended, after its first replacement has begun.
const DELAY_MICROSECONDS: u64 = 15_000;

/// Inode, length and time of each file but manifest and lock.
fn files(folder: &Path) -> BTreeMap<String, (u64, u64, SystemTime)> {
    let file = |name: String| {
        let of = fs::metadata(folder.join(&name)).unwrap();
        (name, (of.ino(), of.len(), of.modified().unwrap()))
    };
    names(folder).into_iter().filter(|name| name != "cube.json" && name != "lock").map(file).collect()
}

/// The stored cube after a change.
fn changed(held: &CubeLock, text: &str) -> StoredCube {
    change(&held.open().unwrap(), text).unwrap().0
}

/// Changes the stored cube; gives names of files that are new and of those that went. Others are the same files.
pub fn replaced(held: &CubeLock, cube: &StoredCube) -> [Vec<String>; 2] {
    let folder = held.folder();
    let before = files(folder);
    held.replace(cube).unwrap();
    assert_eq!(&held.open().unwrap(), cube);
    assert_eq!(names(folder), expected_names(folder));
    let after = files(folder);
    let stay = before.iter().filter(|(name, _)| after.contains_key(*name));
    stay.for_each(|(name, file)| assert_eq!(after[name], *file, "{name} is another file"));
    let of = |one: &BTreeMap<String, _>, other: &BTreeMap<String, _>| {
        one.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
    };
    [of(&after, &before), of(&before, &after)]
}

#[test]
fn changes_of_elements_write_the_model_alone() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &small()).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let texts = [
        "rename D0:e1 to first",
        "add D1:Both of D1:e0, D1:e1 weight -1",
        "link D1:e2 below D1:Both",
        "unlink D1:e2 from D1:Both",
        "place D0:e2 before D0:e0",
        "caption D0:e2 \"a caption\"",
        "alias D0:e2 other",
        "set D0:e2 size = 3",
        "set D1:Total number_format = \"#,##0\"",
        "default D0:e2",
    ];
    for (number, text) in texts.into_iter().enumerate() {
        let generation = number as u64 + 2;
        let [new, gone] = replaced(&held, &changed(&held, text));
        assert_eq!(new, [format!("model-{generation}.json")], "{text}");
        assert_eq!(gone, [format!("model-{}.json", generation - 1)], "{text}");
    }
}

#[test]
fn facts_are_written_when_they_are_others() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &small()).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    // Another scheme, whose arrays stay at the next change.
    let converted = StoredCube { scheme: Scheme::Bxcrs, ..held.open().unwrap() };
    let [new, gone] = replaced(&held, &converted);
    assert_eq!(new, ["facts-2.warpcols", "index-2-0.warpcols", "index-2-1.warpcols"]);
    assert_eq!(gone, ["facts-1.warpcols"]);
    assert_eq!(replaced(&held, &changed(&held, "rename D0:e1 to first"))[0], ["model-3.json"]);
    // Arrays of a scheme have the coordinates of a new base element.
    assert_eq!(replaced(&held, &changed(&held, "add D1:group of D1:e0"))[0], ["model-4.json"]);
    let [new, _] = replaced(&held, &changed(&held, "add D1:new below D1:Total"));
    assert_eq!(new, ["facts-5.warpcols", "index-5-0.warpcols", "index-5-1.warpcols", "model-5.json"]);
    // Equal facts that were not read from these files.
    let facts = |cube: &StoredCube| {
        let (layout, keys) = (cube.facts.layout().clone(), cube.facts.base().keys().clone());
        Facts::from_parts(layout, keys, cube.facts.base().columns().to_vec(), None, 2).unwrap()
    };
    let open = held.open().unwrap();
    let anew = StoredCube { facts: facts(&open), ..open };
    let [new, _] = replaced(&held, &anew);
    assert_eq!(new, ["facts-6.warpcols", "index-6-0.warpcols", "index-6-1.warpcols"]);
    // A key with more bits.
    let more: Vec<String> = (0..300).map(|number| format!("add D1:n{number} below D1:Total")).collect();
    let [new, _] = replaced(&held, &changed(&held, &more.join("; ")));
    assert_eq!(new, ["facts-7.warpcols", "index-7-0.warpcols", "index-7-1.warpcols", "model-7.json"]);
    // The state of another cube.
    let other = temporary.path().join("other");
    store::create(&other, &held.open().unwrap()).unwrap();
    assert!(names(&other).contains(&"facts-1.warpcols".to_owned()));
    let held = CubeLock::lock(&other).unwrap();
    let [new, _] = replaced(&held, &store::open(&folder).unwrap());
    assert_eq!(new, ["facts-2.warpcols", "index-2-0.warpcols", "index-2-1.warpcols"]);
}

#[test]
fn an_error_at_any_step_leaves_the_files_that_its_manifest_names() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let temporary = tempdir().unwrap();
        let folder = temporary.path().join("cube");
        store::create(&folder, &small()).unwrap();
        let held = CubeLock::lock(&folder).unwrap();
        held.replace(&changed(&held, "rename D0:e1 to first")).unwrap();
        let (before, next) = (held.open().unwrap(), changed(&held, "rename D0:e1 to second"));
        let mut steps = 0;
        let outcome = held.replace_in_steps(&next, &mut full_disk(step, &mut steps));
        let found = held.open().unwrap();
        assert!(found == next || (outcome.is_err() && found == before), "step {step}");
        if found == next {
            new += 1
        } else {
            old += 1
        }
        let third = changed(&held, "rename D0:e2 to third");
        held.replace(&third).unwrap();
        assert_eq!((held.open().unwrap(), names(&folder)), (third, expected_names(&folder)), "step {step}");
        assert!(names(&folder).contains(&"facts-1.warpcols".to_owned()), "step {step}");
        if outcome.is_ok() && steps <= step {
            break;
        }
    }
    assert!(old > 2 && new > 2, "{old} old, {new} new");
}

#[test]
#[ignore = "a process of another test"]
fn child_renames() {
    let Some(folder) = child_folder() else { return };
    let held = CubeLock::lock(&folder).unwrap();
    let generation = store::info(&folder).unwrap().generation;
    for number in generation + 1.. {
        let next = changed(&held, &format!("rename D0:g{} to g{number}", number - 1));
        println!("\nbegins {number}");
        held.replace(&next).unwrap();
    }
}

#[test]
fn a_rename_killed_at_random_points_leaves_the_old_or_the_new_name_above_the_same_facts() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &small()).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    held.replace(&changed(&held, "rename D0:e1 to g2")).unwrap();
    drop(held);
    let (first, facts) = (files(&folder)["facts-1.warpcols"], small().facts);
    let mut leftovers = 0;
    for round in 0..KILLS {
        killed("reuse::child_renames", &folder, DELAY_MICROSECONDS);
        let (cube, generation) = (store::open(&folder).unwrap(), store::info(&folder).unwrap().generation);
        assert_eq!(cube.facts, facts, "round {round}");
        assert!(cube.model.dimensions()[0].find(&format!("g{generation}")).is_ok(), "round {round}: {generation}");
        assert_eq!(files(&folder)["facts-1.warpcols"], first, "round {round}: the facts were written");
        leftovers += u32::from(names(&folder) != expected_names(&folder));
    }
    println!("{leftovers} of {KILLS} processes left files");
    assert!(leftovers > 0, "no process was ended within a replacement");
}
