//! Programs that end before their work does: by SIGTERM, by SIGHUP, by being killed. Nothing of theirs stays.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Place, Ran};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// More rows than a test waits for.
const ENDLESS: &str = "SELECT value AS v, value % 7 AS q FROM generate_series(1, 100000000000)";

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let clock = Instant::now();
    while !is_there() {
        assert!(clock.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The program with these arguments, once it has begun to write in the folder `d`.
fn writing(place: &Place, arguments: &[&str]) -> Child {
    std::fs::create_dir_all(place.path("d")).unwrap();
    let mut command = place.command();
    command.args(["--device", "cpu"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for("nothing is written", || names(&place.path("d")).iter().any(|name| name.ends_with(".warpcube-staging")));
    child
}

#[test]
fn a_signal_that_ends_the_program_leaves_no_outputs() {
    let place = Place::new();
    let copy = format!("COPY ({ENDLESS}) TO 'd/x.parquet'");
    let parts = format!("COPY ({ENDLESS}) TO 'd/parts/' STORED AS PARQUET PARTITIONED BY (q)");
    let runs: [&[&str]; 3] = [&["-o", "d/x.csv", "-c", ENDLESS], &["-c", &copy], &["-c", &parts]];
    for (arguments, (signal, code)) in runs.iter().zip([("TERM", 143), ("HUP", 129), ("TERM", 143)]) {
        let child = writing(&place, arguments);
        send(signal, &child);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (code, "error: SQL-007 cancelled\n"), "{arguments:?}");
        assert_eq!(names(&place.path("d")), [] as [&str; 0], "{arguments:?}");
    }
}

#[test]
fn a_signal_ends_a_script_that_goes_on_after_errors_and_one_that_waits_for_input() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["--device", "cpu", "--continue-on-error", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"COPY (SELECT 1 AS a) TO 'begun.csv';\n").unwrap();
    wait_for("the first statement is not run", || place.path("begun.csv").exists());
    send("TERM", &child);
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop(input);

    let script = format!("COPY ({ENDLESS}) TO 'd/x.csv';\nCOPY (SELECT 1 AS a) TO 'd/after.csv';\n");
    place.write("s.sql", script);
    let child = writing(&place, &["--continue-on-error", "-f", "s.sql"]);
    send("TERM", &child);
    assert_eq!(Ran::of(child.wait_with_output().unwrap()).code, 143);
    assert_eq!(names(&place.path("d")), [] as [&str; 0]);
}

#[test]
fn a_signal_that_is_ignored_stays_so() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_warpcube");
    std::fs::create_dir_all(place.path("d")).unwrap();
    // Long enough to be told while it runs, and no longer.
    let sql = "COPY (SELECT value AS v, value % 7 AS q FROM generate_series(1, 3000000)) TO 'd/x.csv'";
    let line = format!("trap '' HUP; exec '{program}' --device cpu -c \"{sql}\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(place.path("")).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for("nothing is written", || !names(&place.path("d")).is_empty());
    send("HUP", &child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&place.path("d")), ["x.csv"]);
}

#[test]
fn what_a_killed_program_left_is_taken_away_by_the_next_in_that_folder() {
    let place = Place::new();
    let copy = format!("COPY ({ENDLESS}) TO 'd/x.parquet'");
    for arguments in [["-o", "d/x.csv", "-c", ENDLESS].as_slice(), &["-c", &copy]] {
        let mut child = writing(&place, arguments);
        send("KILL", &child);
        child.wait().unwrap();
        assert_eq!(names(&place.path("d")).len(), 1, "{arguments:?}");
        // A program that runs keeps what it has.
        let running = writing(&place, &["-o", "d/other.csv", "-c", ENDLESS]);
        wait_for("the leavings stay", || {
            let left = names(&place.path("d"));
            left.len() == 1 && left[0].starts_with(".other.csv.")
        });
        place.run(&["-c", "SELECT 1 AS a", "-o", "d/y.csv"]).ok();
        let mut left = names(&place.path("d"));
        left.sort();
        assert!(left.len() == 2 && left[0].starts_with(".other.csv.") && left[1] == "y.csv", "{left:?}");
        send("TERM", &running);
        assert_eq!(Ran::of(running.wait_with_output().unwrap()).code, 143);
        std::fs::remove_file(place.path("d/y.csv")).unwrap();
    }
}

#[test]
fn a_killed_program_leaves_nothing_that_it_spilled() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("spill")).unwrap();
    let sort = "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY value * 7919 % 1000003) AS r \
                FROM generate_series(1, 100000000))";
    let settings = ["--set", "memory_limit=24MiB", "--set", "spill_folder=spill", "--device", "cpu"];
    let mut command = place.command();
    let mut child = command.args(settings).args(["-c", sort]).stdout(Stdio::null()).spawn().unwrap();
    let open = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
        let paths = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        paths.filter(|path| path.parent().is_some_and(|folder| folder.ends_with("spill"))).count()
    };
    wait_for("nothing is spilled", || open() > 0);
    assert_eq!(names(&place.path("spill")), [] as [&str; 0]);
    send("KILL", &child);
    child.wait().unwrap();
    assert_eq!(names(&place.path("spill")), [] as [&str; 0]);
}
