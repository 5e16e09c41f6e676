//! What is written where cubes are: outputs beside them, several changes at once, changes that are interrupted.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cubes::{DEFINITION, plan, query};
use crate::harness::{Place, Ran};

/// Names of what lies below a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn start(place: &Place, arguments: &[&str]) -> Child {
    let mut command = place.command();
    command.args(["--device", "cpu", "cube"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn outputs_into_the_folder_of_a_cube_are_refused() {
    let place = plan();
    let before = names(&place.path("plan.cube"));
    let asked = ["cube", "query", "plan.cube", "rows World"];
    for more in [["--output", "plan.cube/cube.json", "--format", "json"], ["-o", "plan.cube/x.csv", "--format", "csv"]]
    {
        let error = place.run(&[&asked[..], &more].concat()).error(1);
        assert!(error.contains("lies in the folder of the cube"), "{error}");
    }
    let error = place.run(&["-c", "SELECT 1 AS a", "-o", "plan.cube/lock"]).error(1);
    assert!(error.contains("lies in the folder of the cube"), "{error}");
    for sql in [
        "COPY (SELECT 1 AS a) TO 'plan.cube/cube.json'",
        "COPY (SELECT 1 AS a) TO 'plan.cube/' STORED AS CSV",
        "COPY (SELECT 1 AS a) TO 'plan.cube/deep/x.parquet'",
        "COPY (SELECT 1 AS a) TO 'link/x.csv'",
    ] {
        let _ = std::os::unix::fs::symlink(place.path("plan.cube"), place.path("link"));
        let error = place.error(sql);
        assert!(error.contains("lies in the folder of the cube"), "{sql}: {error}");
    }
    for arguments in [
        &["define", "plan.yaml", "plan.cube/inner"][..],
        &["define", "--check", "plan.yaml", "plan.cube/inner"],
        &["demo", "plan.cube"],
        &["bench", "plan.cube", "rows World", "--json", "plan.cube/cube.json"],
    ] {
        let error = place.run(&[&["cube"], arguments].concat()).error(1);
        assert!(error.contains("lies in the folder of the cube"), "{arguments:?}: {error}");
    }
    assert_eq!(names(&place.path("plan.cube")), before);
    query(&place, "rows World").ok();
    place.run(&["-c", "COPY (SELECT 1 AS a) TO 'beside.csv'"]).ok();
}

#[test]
fn a_check_says_whether_the_cube_may_be_made_in_its_folder() {
    let place = plan();
    for folder in ["plan.cube", "full", "plan.yaml"] {
        place.write("full/notes.txt", "mine");
        let refused = place.run(&["cube", "define", "plan.yaml", folder]).error(1);
        assert_eq!(place.run(&["cube", "define", "--check", "plan.yaml", folder]).error(1), refused);
    }
    for folder in [&[][..], &["new.cube"]] {
        let right = place.run(&[&["cube", "define", "--check", "plan.yaml"], folder].concat()).ok();
        assert!(right.starts_with("The definition is right: "), "{right}");
    }
    assert!(!place.path("new.cube").exists());
}

#[test]
fn a_refresh_says_that_the_file_of_the_definition_is_another_one_now() {
    let place = plan();
    let warning = |command: &str| {
        let ran = place.run(&["cube", command, "plan.cube"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.err
    };
    assert_eq!(warning("refresh"), "");
    place.write("plan.yaml", format!("{DEFINITION}# with months\n"));
    for command in ["refresh", "load"] {
        let told = warning(command);
        assert!(told.contains("is not the definition that the cube was made by"), "{told}");
        assert!(told.contains("'warpcube cube load plan.cube --definition "), "{told}");
    }
    place.run(&["cube", "load", "plan.cube", "--definition", "plan.yaml"]).ok();
    assert_eq!(warning("refresh"), "");
}

#[test]
fn changes_at_once_wait_for_each_other() {
    let place = plan();
    let add = |number: u32| start(&place, &["change", "plan.cube", &format!("add N{number} below EU")]);
    let children: Vec<Child> = (0..6).map(add).collect();
    for child in children {
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let listed = query(&place, "rows N0, N1, N2, N3, N4, N5 empty").ok();
    assert!((0..6).all(|number| listed.contains(&format!("N{number}"))), "{listed}");
}

#[test]
fn a_change_that_waits_says_for_whom_and_is_cancelled_while_it_does() {
    let place = plan();
    let mut lock = File::options().write(true).read(true).open(place.path("plan.cube/lock")).unwrap();
    lock.lock().unwrap();
    lock.write_all(format!("{{\"pid\": {}, \"since\": 1000}}", std::process::id()).as_bytes()).unwrap();
    let before = names(&place.path("plan.cube"));
    for arguments in [&["change", "plan.cube", "remove JP"][..], &["refresh", "plan.cube"]] {
        let child = start(&place, arguments);
        std::thread::sleep(Duration::from_millis(2500));
        interrupt(&child);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{ran:?}");
        let waits = format!("warning: waiting for process {} since 1970-", std::process::id());
        assert!(ran.err.starts_with(&waits) && ran.err.ends_with("error: SQL-007 cancelled\n"), "{ran:?}");
    }
    assert_eq!(names(&place.path("plan.cube")), before);
    // Who waits too long is told who holds the cube.
    let refused = place.run(&["cube", "change", "plan.cube", "remove JP"]);
    assert!(refused.code == 1 && refused.err.contains("is being changed by process"), "{refused:?}");
    drop(lock);
    place.run(&["cube", "change", "plan.cube", "remove JP"]).ok();
}

/// Interrupts come over the whole run, and before and behind the moment at which the change takes its place.
#[test]
fn a_change_that_is_interrupted_says_what_became_of_it() {
    const ROUNDS: u32 = 16;
    let place = plan();
    let began = Instant::now();
    place.run(&["cube", "change", "plan.cube", "add First below EU"]).ok();
    let whole = began.elapsed();
    let (mut cancelled, mut done) = (0, 0);
    for round in 0..ROUNDS {
        let child = start(&place, &["change", "plan.cube", &format!("add N{round} below EU")]);
        std::thread::sleep(whole.mul_f64(0.3 + 0.8 * f64::from(round) / f64::from(ROUNDS)));
        interrupt(&child);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let is_there = query(&place, &format!("rows N{round} empty")).code == 0;
        match ran.code {
            0 => assert!(is_there && ran.out.contains("1 change"), "{round}: {ran:?}"),
            // Before the program listens the signal ends it.
            130 | -1 => assert!(!is_there, "{round}: {ran:?}"),
            _ => panic!("{round}: {ran:?}"),
        }
        if is_there { done += 1 } else { cancelled += 1 }
    }
    println!("{cancelled} of {ROUNDS} changes were cancelled, {done} done");
}
