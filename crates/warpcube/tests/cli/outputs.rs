//! Where `-o` and COPY write: through links, into pipes and devices, with the modes of the files that were there.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Place, Ran};

/// Both ways to write `SELECT 1 AS a` to a file.
fn ways(name: &str) -> [Vec<String>; 2] {
    let output = ["-c", "SELECT 1 AS a", "--format", "csv", "-o", name];
    let copy = format!("COPY (SELECT 1 AS a) TO '{name}' STORED AS CSV OPTIONS ('format.has_header' 'true')");
    [output.map(String::from).to_vec(), vec!["-c".to_string(), copy]]
}

fn run(place: &Place, arguments: &[String]) -> String {
    let ran = Ran::of(place.command().args(arguments).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    ran.out
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn links_are_followed_and_stay_links() {
    for way in 0..2 {
        let place = Place::new();
        place.write("far/real.csv", "old\n");
        for (name, target) in [("link.csv", "far/real.csv"), ("twice.csv", "link.csv"), ("new.csv", "far/made.csv")] {
            symlink(target, place.path(name)).unwrap();
        }
        for (name, target) in [("twice.csv", "far/real.csv"), ("new.csv", "far/made.csv")] {
            run(&place, &ways(name)[way]);
            assert!(fs::symlink_metadata(place.path(name)).unwrap().is_symlink(), "{name}");
            assert_eq!(String::from_utf8(place.read(target)).unwrap(), "a\n1\n", "{name}");
        }
        assert!(fs::symlink_metadata(place.path("link.csv")).unwrap().is_symlink());
    }
    // A link to a folder leads there.
    let place = Place::new();
    fs::create_dir_all(place.path("far")).unwrap();
    symlink("far", place.path("folder")).unwrap();
    place.csv("COPY (SELECT 1 AS a, 2 AS q) TO 'folder/' STORED AS PARQUET PARTITIONED BY (q)");
    assert!(fs::symlink_metadata(place.path("folder")).unwrap().is_symlink());
    assert!(place.path("far/q=2").is_dir());
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_has_the_usual() {
    for way in 0..2 {
        let place = Place::new();
        let path = place.write("kept.csv", "old\n");
        for bits in [0o600, 0o664, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
            run(&place, &ways("kept.csv")[way]);
            assert_eq!((mode(&path), place.read("kept.csv")), (bits, b"a\n1\n".to_vec()));
        }
        run(&place, &ways("new.csv")[way]);
        let usual = place.write("usual", "");
        assert_eq!(mode(&place.path("new.csv")), mode(&usual));
    }
}

#[test]
fn the_standard_output_is_written_by_its_names() {
    let place = Place::new();
    symlink("/dev/stdout", place.path("out.csv")).unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out.csv"] {
        let [output, copy] = ways(name);
        assert_eq!(run(&place, &output), "a\n1\n", "{name}");
        // COPY tells how many rows went.
        assert!(run(&place, &copy).starts_with("a\n1\n"), "{name}");
    }
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    // A file that the shell has opened is written where it stands.
    let path = place.write("shared.txt", "before\n");
    let file = File::options().append(true).open(&path).unwrap();
    let mut command = place.command();
    assert!(command.args(&ways("/dev/stdout")[0]).stdout(file).status().unwrap().success());
    assert_eq!(place.read("shared.txt"), b"before\na\n1\n");
    let program = env!("CARGO_BIN_EXE_warpcube");
    let sql = "SELECT 1 AS a";
    let line = format!("(echo before; '{program}' --format csv -c '{sql}' -o /dev/stdout; echo after) > inherited.txt");
    assert!(Command::new("sh").args(["-c", &line]).current_dir(place.path("")).status().unwrap().success());
    assert_eq!(place.read("inherited.txt"), b"before\na\n1\nafter\n");
    let line = format!("'{program}' --format csv -c '{sql}' -o /dev/fd/7 7> seventh.txt");
    assert!(Command::new("sh").args(["-c", &line]).current_dir(place.path("")).status().unwrap().success());
    assert_eq!(place.read("seventh.txt"), b"a\n1\n");
}

#[test]
fn pipes_and_devices_stay_what_they_are() {
    for way in 0..2 {
        let place = Place::new();
        let pipe = place.path("pipe.csv");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        run(&place, &ways("pipe.csv")[way]);
        assert_eq!(reader.join().unwrap(), "a\n1\n");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        run(&place, &ways("/dev/null")[way]);
        assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
        symlink("/dev/full", place.path("full.csv")).unwrap();
        let ran = Ran::of(place.command().args(&ways("full.csv")[way]).output().unwrap());
        assert!(ran.code == 1 && ran.err.contains("No space left on device"), "{ran:?}");
    }
}

#[test]
fn a_copy_into_a_pipe_that_nobody_reads_can_be_cancelled() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe.csv")).status().unwrap().success());
    let sql = "SET warpcube.timeout = '300ms'; COPY (SELECT 1 AS a) TO 'pipe.csv'";
    assert!(place.error(sql).starts_with("SQL-008 timed out"));
    let output = place.run(&["--set", "timeout=300ms", "-c", "SELECT 1 AS a", "-o", "pipe.csv"]).error(1);
    assert!(output.starts_with("SQL-008 timed out"), "{output}");
}

#[test]
fn what_a_terminal_would_obey_stays_in_files_and_pipes() {
    let place = Place::new();
    let sql = "SELECT chr(27) || ']0;x' || chr(7) AS a";
    assert_eq!(place.csv(sql), "a\n\u{1b}]0;x\u{7}\n");
    place.run(&["-c", sql, "-o", "x.csv"]).ok();
    assert_eq!(place.read("x.csv"), b"a\n\x1b]0;x\x07\n");
    // A table is for people wherever it goes, and so is an error.
    let table = place.run(&["--format", "table", "-c", sql]).ok();
    assert!(table.contains("\\x1b]0;x\\x07") && !table.contains('\u{1b}'), "{table}");
    let mut command = place.command();
    command.args(["-c", "SELECT * FROM \"\u{1b}]0;x\u{7}\""]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    std::io::stdout().flush().unwrap();
    let error = Ran::of(child.wait_with_output().unwrap()).error(1);
    assert_eq!(error, "SQL-002 unknown table '\\x1b]0;x\\x07'");
}

#[test]
fn overwriting_a_folder_removes_files_of_its_format_alone() {
    let place = Place::new();
    let copy = |v: u32, how: &str| {
        format!(
            "COPY (SELECT {v} AS v, {v} % 2 AS k) TO 'out/' STORED AS PARQUET PARTITIONED BY (k) OPTIONS ({how} true)"
        )
    };
    place.csv(&copy(1, "append"));
    place.csv(&copy(2, "append"));
    place.write("out/_SUCCESS", "");
    place.write("out/notes/readme.txt", "of the user");
    let other = place.write("out/k=1/readme.txt", "of the user");
    for error in [place.error(&copy(3, "overwrite")), place.error(&copy(4, "overwrite"))] {
        assert!(error.starts_with("FILE-009 ") && error.contains("/out/k=1/readme.txt' is no parquet file"), "{error}");
    }
    fs::remove_file(other).unwrap();
    // A link to a folder is no part of it that could be emptied.
    let far = place.write("far/rows.parquet", "not ours");
    symlink("../far", place.path("out/k=7")).unwrap();
    let error = place.error(&copy(3, "overwrite"));
    assert!(error.contains("out/k=7'"), "{error}");
    fs::remove_file(place.path("out/k=7")).unwrap();
    assert_eq!(place.csv("SELECT sum(v) AS s FROM 'out/'"), "s\n3\n");
    place.csv(&copy(3, "overwrite"));
    assert_eq!(place.csv("SELECT v, k FROM 'out/'"), "v,k\n3,1\n");
    for kept in [far, place.path("out/_SUCCESS"), place.path("out/notes/readme.txt")] {
        assert!(kept.exists(), "{}", kept.display());
    }
    // Those of another format are not replaced either.
    let error = place.error("COPY (SELECT 1 AS v) TO 'out/' STORED AS CSV OPTIONS (overwrite true)");
    assert!(error.starts_with("FILE-009 ") && error.contains(".parquet' is no csv file"), "{error}");
}

#[test]
fn a_copy_that_fails_leaves_no_folders() {
    let place = Place::new();
    place.write("here/kept.txt", "");
    for target in ["new/deep/x.csv", "new/deep/", "here/new/x.parquet"] {
        let sql = format!("COPY (SELECT 10 / (x - 2) AS a FROM (VALUES (1), (2)) t(x)) TO '{target}' STORED AS CSV");
        let error = place.error(&sql);
        assert!(error.starts_with("SQL-006 "), "{error}");
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!place.path("new").exists() && !place.path("here/new").exists(), "{target}");
    }
    assert!(place.path("here/kept.txt").exists());
    place.csv("COPY (SELECT 1 AS a WHERE false) TO 'new/empty/x.csv'");
    assert!(place.path("new/empty").exists());
}
