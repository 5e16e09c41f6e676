//! Replacements that stop: by an error at every step, and by the end of the process at random points.

use std::fs;
use std::io::Error;
use std::path::Path;

use tempfile::tempdir;
use warpcube_cube::store::{self, CubeLock, Step, StoreError};

use crate::cubes::{expected_names, names, numbered};
use crate::interruptions::{full_disk, killed};
use crate::lock::child_folder;

/// Steps of a replacement by `numbered(3)`, which has all optional files but the origin, and the model of others.
const STEPS: usize = 18;
/// Processes that are ended at a random point.
const KILLS: u32 = 200;
/// Longest time until a process is ended, after its first replacement has begun.
const DELAY_MICROSECONDS: u64 = 25_000;

/// Replaces the cube and fails at a step; a write that fails leaves half a file.
fn fail_at(held: &CubeLock, step: usize) -> (usize, Result<u64, StoreError>) {
    let mut steps = 0;
    let outcome = held.replace_in_steps(&numbered(3), &mut full_disk(step, &mut steps));
    (steps, outcome)
}

#[test]
fn an_error_at_any_step_leaves_the_old_or_the_new_cube() {
    let (mut old, mut new) = (0, 0);
    for step in 0..STEPS {
        let temporary = tempdir().unwrap();
        let folder = temporary.path().join("cube");
        store::create(&folder, &numbered(1)).unwrap();
        let held = CubeLock::lock(&folder).unwrap();
        // Files of a replacement that did not finish lie in the folder from the start.
        fs::write(folder.join("facts-9.warpcols"), "left").unwrap();
        fs::write(folder.join(".1-0.facts-9.warpcols"), "left").unwrap();
        let (steps, outcome) = fail_at(&held, step);
        let opened = store::open(&folder).unwrap();
        match outcome {
            Ok(generation) => {
                assert_eq!((generation, &opened), (2, &numbered(3)), "step {step}");
                new += 1;
            }
            Err(error) => {
                assert!(error.to_string().ends_with("the disk is full"), "{error}");
                assert_eq!(steps, step + 1);
                let is_new = opened == numbered(3);
                assert!(is_new || opened == numbered(1), "step {step} left another cube");
                assert_eq!(store::info(&folder).unwrap().generation, if is_new { 2 } else { 1 });
                if is_new { new += 1 } else { old += 1 }
            }
        }
        held.replace(&numbered(4)).unwrap();
        assert_eq!(store::open(&folder).unwrap(), numbered(4), "after step {step}");
        assert_eq!(names(&folder), expected_names(&folder), "after step {step}");
    }
    // Two files left from before, six files (two of the index; the model stays) and the manifest, a synchronised folder
    // and the rename precede the change.
    assert_eq!((old, new), (11, STEPS - 11));
}

#[test]
fn a_creation_that_failed_can_be_repeated() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    fs::create_dir(&folder).unwrap();
    for name in ["model-1.json", "facts-1.warpcols", "cube.json.new", "lock"] {
        fs::write(folder.join(name), "half a fi").unwrap();
    }
    assert!(matches!(store::open(&folder), Err(StoreError::NoCube { .. })));
    store::create(&folder, &numbered(5)).unwrap();
    assert_eq!(store::open(&folder).unwrap(), numbered(5));
    assert_eq!(names(&folder), expected_names(&folder));
}

#[test]
#[ignore = "a process of another test"]
fn child_replaces() {
    let Some(folder) = child_folder() else { return };
    let held = CubeLock::lock(&folder).unwrap();
    let first = store::info(&folder).unwrap().generation + 1;
    for number in first.. {
        println!("\nbegins {number}");
        held.replace(&numbered(number)).unwrap();
        println!("ended {number}");
    }
}

/// Ends a process that replaces the cube in a loop; returns the generation that it finished last and the one that it
/// began last.
fn kill(folder: &Path) -> (u64, u64) {
    let before = store::info(folder).unwrap().generation;
    let (mut begun, mut ended) = (before + 1, before);
    for line in killed("crash::child_replaces", folder, DELAY_MICROSECONDS) {
        let whole = |verb| line.strip_prefix(verb).and_then(|number| number.parse::<u64>().ok());
        begun = begun.max(whole("begins ").unwrap_or(0));
        ended = ended.max(whole("ended ").unwrap_or(0));
    }
    (ended, begun)
}

#[test]
fn a_process_killed_at_random_points_leaves_the_old_or_the_new_cube() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &numbered(1)).unwrap();
    let (mut interrupted, mut leftovers) = (0, 0);
    for round in 0..KILLS {
        let (ended, begun) = kill(&folder);
        let generation = store::info(&folder).unwrap().generation;
        assert!(ended <= generation && generation <= begun, "round {round}: {generation} of {ended} to {begun}");
        assert_eq!(store::open(&folder).unwrap(), numbered(generation), "round {round}");
        interrupted += u32::from(ended < begun);
        leftovers += u32::from(names(&folder) != expected_names(&folder));
        if round % 8 == 0 {
            let held = CubeLock::lock(&folder).unwrap();
            assert_eq!(held.replace(&numbered(generation + 1)).unwrap(), generation + 1);
            assert_eq!(names(&folder), expected_names(&folder), "round {round}");
        }
    }
    println!("{interrupted} of {KILLS} processes ended within a replacement, {leftovers} left files");
    assert!(
        interrupted > KILLS / 2 && leftovers > 0,
        "{interrupted} within a replacement, {leftovers} with files left"
    );
}

#[test]
fn a_creation_that_fails_leaves_the_folder_as_it_was() {
    for is_there in [false, true] {
        for step in 0..STEPS {
            let temporary = tempdir().unwrap();
            let folder = temporary.path().join("cube");
            if is_there {
                fs::create_dir(&folder).unwrap();
            }
            let (mut steps, mut is_named) = (0, false);
            let created = store::create_in_steps(&folder, &numbered(3), &mut |next| {
                steps += 1;
                if steps > step {
                    return Err(Error::other("cancelled"));
                }
                is_named |= matches!(next, Step::Rename(_));
                Ok(())
            });
            assert_eq!(created.is_err() && !is_named, !folder.join("cube.json").exists(), "step {step}");
            if !is_named {
                assert!(created.unwrap_err().to_string().ends_with("cancelled"));
                assert_eq!(folder.exists(), is_there, "step {step}");
                assert!(!is_there || fs::read_dir(&folder).unwrap().next().is_none(), "step {step}");
                store::create(&folder, &numbered(3)).unwrap();
            }
            assert_eq!(store::open(&folder).unwrap(), numbered(3));
        }
    }
}

#[test]
fn a_cube_is_made_beside_nothing_and_in_no_other_cube() {
    let temporary = tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    // Files with names of a cube's are a user's without a lock beside them.
    fs::create_dir(at("mine")).unwrap();
    fs::write(at("mine/definition-1.yaml"), "cube: mine").unwrap();
    let error = store::create(&at("mine"), &numbered(1)).unwrap_err();
    assert!(matches!(error, StoreError::NotEmpty { .. }), "{error}");
    assert_eq!(fs::read(at("mine/definition-1.yaml")).unwrap(), b"cube: mine");

    store::create(&at("cube"), &numbered(1)).unwrap();
    std::os::unix::fs::symlink(at("cube"), at("link")).unwrap();
    for name in ["cube", "cube/x.csv", "cube/a/b", "link/x.csv"] {
        let error = store::check_outside(&at(name)).unwrap_err();
        assert!(matches!(error, StoreError::Within { .. }), "{name}: {error}");
    }
    let error = store::create(&at("cube/inner"), &numbered(1)).unwrap_err();
    assert!(matches!(error, StoreError::Within { .. }), "{error}");
    assert!(matches!(store::create(&at("cube"), &numbered(1)), Err(StoreError::Exists { .. })));
    // A damaged manifest is one beside the lock; others may have a file of its name.
    fs::write(at("cube/cube.json"), "{}").unwrap();
    assert!(store::check_outside(&at("cube/x.csv")).is_err());
    fs::write(at("cube.json"), "{}").unwrap();
    store::check_outside(&at("x.csv")).unwrap();
}

#[test]
fn files_and_names_too_long_are_refused_in_words() {
    let temporary = tempdir().unwrap();
    let file = temporary.path().join("plain");
    fs::write(&file, "").unwrap();
    for error in [store::open(&file).unwrap_err(), CubeLock::lock(&file).unwrap_err()] {
        let expected = format!("'{}' is no cube: it has no cube.json, for it is a file", file.display());
        assert_eq!(error.to_string(), expected);
    }
    let error = store::create(&file, &numbered(1)).unwrap_err().to_string();
    assert!(error.ends_with("a part of this path is a file: name a folder"), "{error}");
    let error = store::create(&temporary.path().join("x".repeat(300)), &numbered(1)).unwrap_err().to_string();
    assert!(error.ends_with("the name is too long for the file system: name a shorter one"), "{error}");
}
