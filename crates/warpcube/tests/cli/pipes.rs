//! Outputs that nobody reads any more, and outputs that take no more.

use std::fs::File;
use std::process::Stdio;

use crate::harness::{Place, Ran};

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A device that is always full.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

const SSB: [&str; 11] =
    ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1,q1.2", "--runs", "1", "--device", "cpu"];
const TPCH: [&str; 11] = ["tpch", "--sf", "0.01", "--dir", "t", "--queries", "q6", "--runs", "1", "--device", "cpu"];

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = Place::new();
    let table = ["--format", "table", "-c", "SELECT 1"];
    let commands: [&[&str]; 6] = [&["doctor"], &["doctor", "--json"], &SSB, &TPCH, &table, &["--help"]];
    for arguments in commands {
        let ran = Ran::of(place.command().args(arguments).stdout(closed()).output().unwrap());
        // The benchmarks tell of their data there.
        let told: Vec<&str> = ran.err.lines().filter(|line| !line.contains(" at scale 0.01: ")).collect();
        assert_eq!((ran.code, told), (0, Vec::new()), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_one_line() {
    let place = Place::new();
    let statement = ["--format", "csv", "-c", "SELECT 1"];
    let commands: [&[&str]; 4] = [&["doctor"], &["doctor", "--json"], &statement, &SSB];
    for arguments in commands {
        let ran = Ran::of(place.command().args(arguments).stdout(full()).output().unwrap());
        let last = ran.err.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: CLI-002 cannot write the standard output: No space left"), "{ran:?}");
        assert!(ran.code == 1 && !ran.err.contains("SQL-010"), "{ran:?}");
    }
}

#[test]
fn what_is_told_beside_may_go_unread() {
    let place = Place::new();
    let statement = ["--timing", "--log", "info", "--format", "csv", "-c", "SELECT 1 AS a"];
    let ran = Ran::of(place.command().args(statement).stderr(closed()).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "a\n1\n"));
    let ran = Ran::of(place.command().args(SSB).stderr(closed()).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("q1.")).count(), 2, "{}", ran.out);
}

#[test]
fn a_benchmark_whose_text_nobody_reads_still_writes_its_file() {
    let place = Place::new();
    let arguments = [&SSB[..], &["--verify", "--json", "r.json"]].concat();
    let ran = Ran::of(place.command().args(arguments).stdout(closed()).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: serde_json::Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
}
