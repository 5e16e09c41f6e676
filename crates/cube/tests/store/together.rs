//! Cubes of one folder that are replaced together: all of them or none, wherever the replacement stops.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use warpcube_cube::store::{self, CubeLock, RECORD_NAME, Step, StoreError, replace_together_in_steps};

use crate::cubes::{expected_names, names, numbered};
use crate::interruptions::{full_disk, killed};
use crate::lock::child_folder;

const CUBES: [&str; 3] = ["a", "b", "c"];
/// Processes that are ended at a random point.
const KILLS: u32 = 100;
/// Longest time until a process is ended, after its first replacement has begun.
const DELAY_MICROSECONDS: u64 = 60_000;

fn folders(parent: &Path) -> Vec<PathBuf> {
    CUBES.iter().map(|name| parent.join(name)).collect()
}

fn create(parent: &Path) {
    folders(parent).iter().for_each(|folder| store::create(folder, &numbered(1)).unwrap());
}

/// The number that all cubes of the folder have.
fn number(parent: &Path, context: &str) -> u64 {
    let generations: Vec<u64> = folders(parent).iter().map(|it| store::info(it).unwrap().generation).collect();
    assert!(generations.iter().all(|it| *it == generations[0]), "{context}: {generations:?}");
    for folder in folders(parent) {
        assert_eq!(store::open(&folder).unwrap(), numbered(generations[0]), "{context}: {folder:?}");
    }
    generations[0]
}

fn replace_all(
    parent: &Path,
    number: u64,
    before: &mut dyn FnMut(Step<'_>) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    let held: Vec<CubeLock> = folders(parent).iter().map(|folder| CubeLock::lock(folder).unwrap()).collect();
    let cube = numbered(number);
    let cubes: Vec<_> = held.iter().map(|held| (held, &cube)).collect();
    replace_together_in_steps(&cubes, before)
}

/// Asserts that nothing is left of a replacement.
fn assert_clean(parent: &Path, context: &str) {
    for folder in folders(parent) {
        assert_eq!(names(&folder), expected_names(&folder), "{context}");
    }
    assert!(!parent.join(RECORD_NAME).exists(), "{context}");
}

#[test]
fn an_error_at_any_step_leaves_all_cubes_old_or_all_new() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let temporary = tempdir().unwrap();
        let parent = temporary.path();
        create(parent);
        let mut steps = 0;
        let outcome = replace_all(parent, 2, &mut full_disk(step, &mut steps));
        let context = format!("step {step}");
        let found = number(parent, &context);
        match outcome {
            Ok(()) => assert_eq!(found, 2, "{context}"),
            Err(error) => assert!(error.to_string().ends_with("the disk is full"), "{error}"),
        }
        if found == 1 {
            old += 1
        } else {
            new += 1
        }
        // A cube that is replaced alone is the next of what its reader sees.
        if found == 2 {
            let held = CubeLock::lock(&parent.join("b")).unwrap();
            assert_eq!(held.replace(&numbered(7)).unwrap(), 3, "{context}");
            assert_eq!(store::open(&parent.join("b")).unwrap(), numbered(7), "{context}");
            assert_eq!(store::open(&parent.join("a")).unwrap(), numbered(2), "{context}");
            fs::remove_dir_all(parent.join("b")).unwrap();
            store::create(&parent.join("b"), &numbered(1)).unwrap();
            assert_eq!(store::open(&parent.join("b")).unwrap(), numbered(1), "{context}: another cube");
        }
        let held: Vec<CubeLock> = folders(parent).iter().map(|folder| CubeLock::lock(folder).unwrap()).collect();
        let cube = numbered(5);
        replace_together_in_steps(&held.iter().map(|held| (held, &cube)).collect::<Vec<_>>(), &mut |_| Ok(())).unwrap();
        for folder in folders(parent) {
            assert_eq!(store::open(&folder).unwrap(), cube, "{context}");
        }
        drop(held);
        assert_clean(parent, &context);
        if steps <= step {
            break;
        }
    }
    assert!(old > 15 && new > 10, "{old} old, {new} new");
}

#[test]
fn cubes_of_several_folders_are_not_replaced_together() {
    let temporary = tempdir().unwrap();
    let folders = [temporary.path().join("a"), temporary.path().join("deep").join("b")];
    folders.iter().for_each(|folder| store::create(folder, &numbered(1)).unwrap());
    let held: Vec<CubeLock> = folders.iter().map(|folder| CubeLock::lock(folder).unwrap()).collect();
    let cube = numbered(2);
    let error = replace_together_in_steps(&held.iter().map(|held| (held, &cube)).collect::<Vec<_>>(), &mut |_| Ok(()))
        .unwrap_err();
    assert!(error.to_string().ends_with("cubes of several folders are not replaced together"), "{error}");
    folders.iter().for_each(|folder| assert_eq!(store::open(folder).unwrap(), numbered(1)));
}

#[test]
#[ignore = "a process of another test"]
fn child_replaces_together() {
    let Some(parent) = child_folder() else { return };
    let first = number(&parent, "child") + 1;
    for number in first.. {
        println!("\nbegins {number}");
        replace_all(&parent, number, &mut |_| Ok(())).unwrap();
    }
}

#[test]
fn processes_killed_at_random_points_leave_all_cubes_old_or_all_new() {
    let temporary = tempdir().unwrap();
    let parent = temporary.path();
    create(parent);
    let (mut records, mut leftovers, mut before) = (0, 0, 1);
    for round in 0..KILLS {
        killed("together::child_replaces_together", parent, DELAY_MICROSECONDS);
        records += u32::from(parent.join(RECORD_NAME).exists());
        leftovers += u32::from(folders(parent).iter().any(|folder| names(folder) != expected_names(folder)));
        let context = format!("round {round}");
        let found = number(parent, &context);
        assert!(found >= before, "{context}: {found} after {before}");
        before = found;
        if round % 8 == 0 {
            before += 1;
            replace_all(parent, before, &mut |_| Ok(())).unwrap();
            assert_eq!(number(parent, &context), before);
            assert_clean(parent, &context);
        }
    }
    println!("{records} of {KILLS} processes left a record, {leftovers} left files");
    assert!(leftovers > 0, "{leftovers} with files left, {records} with a record");
}
