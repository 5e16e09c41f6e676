//! One holder at a time, named to the others; readers take no lock.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::tempdir;
use warpcube_cube::store::{self, CubeLock, StoreError};

use crate::cubes::{numbered, small};

/// Names the folder to a child process.
const FOLDER: &str = "WARPCUBE_TEST_CUBE";

/// The folder of a child process; `None` in other processes.
pub fn child_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs one test of this binary in a process of its own.
pub fn child(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "a process of another test"]
fn child_holds() {
    let Some(folder) = child_folder() else { return };
    let _held = CubeLock::lock(&folder).unwrap();
    println!("\nheld");
    // Ends when the other process closes the pipe.
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

#[test]
fn the_second_process_is_told_who_holds_the_cube() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    let cube = small();
    store::create(&folder, &cube).unwrap();
    let mut child = child("lock::child_holds", &folder);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"), "the child took no lock");
    let error = CubeLock::lock(&folder).unwrap_err();
    let StoreError::Locked { holder: Some(holder), .. } = &error else { panic!("{error}") };
    assert_eq!(holder.pid, child.id());
    let message = error.to_string();
    assert!(message.contains(&format!("is being changed by process {} since 2", child.id())), "{message}");
    assert!(message.ends_with(" UTC: try again when it has ended"), "{message}");
    assert_eq!(store::open(&folder).unwrap(), cube, "readers need no lock");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    drop(lines);
    child.wait().unwrap();
    CubeLock::lock(&folder).unwrap().replace(&cube).unwrap();
}

#[test]
fn a_lock_is_waited_for_as_long_as_is_wanted() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &small()).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let mut asked = 0;
    let error = CubeLock::wait(&folder, &mut |holder| {
        asked += 1;
        assert_eq!(holder.map(|holder| holder.pid), Some(std::process::id()));
        asked < 3
    });
    assert!(matches!(error, Err(StoreError::Locked { holder: Some(_), .. })), "{error:?}");
    assert_eq!(asked, 3);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| CubeLock::wait(&folder, &mut |_| true).map(|held| held.folder().to_path_buf()));
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(held);
        assert_eq!(waiting.join().unwrap().unwrap(), folder);
    });
}

#[test]
fn who_waits_for_a_creation_that_is_given_up_locks_what_is_there_then() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("lock"), "").unwrap();
    let given_up = std::fs::File::options().read(true).write(true).open(folder.join("lock")).unwrap();
    given_up.lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| store::create(&folder, &small()));
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::remove_file(folder.join("lock")).unwrap();
        drop(given_up);
        waiting.join().unwrap().unwrap();
    });
    // The lock of the new cube is the file that others find.
    let held = CubeLock::lock(&folder).unwrap();
    assert!(CubeLock::lock(&folder).is_err());
    drop(held);
}

#[test]
fn the_lock_ends_with_its_holder() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &small()).unwrap();
    let held = CubeLock::lock(&folder).unwrap();
    let error = CubeLock::lock(&folder).unwrap_err();
    assert!(error.to_string().contains(&format!("by process {} since", std::process::id())), "{error}");
    drop(held);
    drop(CubeLock::lock(&folder).unwrap());
    let mut child = child("lock::child_holds", &folder);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    child.kill().unwrap();
    child.wait().unwrap();
    CubeLock::lock(&folder).unwrap().replace(&small()).unwrap();
}

#[test]
fn readers_see_whole_generations_while_a_writer_replaces() {
    let temporary = tempdir().unwrap();
    let folder = temporary.path().join("cube");
    store::create(&folder, &numbered(1)).unwrap();
    let done = AtomicBool::new(false);
    let read = || {
        let (mut last, mut opened) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            let cube = store::open(&folder).unwrap();
            let number: u64 = cube.definition.as_ref().unwrap()[2..].trim().parse().unwrap();
            assert!(number >= last && cube == numbered(number), "generation {number} after {last}");
            (last, opened) = (number, opened + 1);
        }
        opened
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        let held = CubeLock::lock(&folder).unwrap();
        for number in 2..80 {
            assert_eq!(held.replace(&numbered(number)).unwrap(), number);
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}
