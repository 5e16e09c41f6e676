//! TPC-DS, ClickBench, H2O and windows at a small size, the first three beside the numbers of rows and the sums of
//! columns of DuckDB's answers, which `duckdb/*.jsonl` have: lines of `bench/rivals/duckdb_rival.py` over the same
//! data, with times of 1 ms. Where queries or data change, the lines are made anew by that program, or by a run with
//! `--rival duckdb`.

use serde_json::Value;

use crate::harness::{Place, Ran};

/// Runs a suite on the CPU beside the recorded lines; its results.
fn beside_duckdb(suite: &str, size: [&str; 2], lines: &str) -> Value {
    let place = Place::new();
    place.write("lines", lines);
    let python = place.write("python", "#!/bin/sh\ncat >request\ncat lines\n");
    std::process::Command::new("chmod").arg("+x").arg(&python).status().unwrap();
    let arguments = ["bench", suite, "--dir", "d", "--runs", "1", "--device", "cpu", "--json", "r.json"];
    let rival = ["--rival", "duckdb", "--python", "./python"];
    let ran = place.run(&[&arguments[..], &size, &rival].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("  placement\n") && ran.out.contains("  on the CPU\n"), "{}", ran.out);
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!((&found["suite"], &found["rivals"]["duckdb"]["sums"]), (&suite.into(), &true.into()));
    found
}

/// The queries that gave rows.
fn answered(report: &Value) -> usize {
    report["results"].as_array().unwrap().iter().filter(|result| result["rows"].as_u64() > Some(0)).count()
}

#[test]
fn tpcds_gives_the_answers_of_duckdb() {
    let found = beside_duckdb("tpcds", ["--sf", "0.01"], include_str!("duckdb/tpcds.jsonl"));
    assert_eq!((&found["params"]["sf"], found["results"].as_array().unwrap().len()), (&0.01.into(), 99));
    assert_eq!(answered(&found), 83);
}

#[test]
fn clickbench_gives_the_answers_of_duckdb() {
    let found = beside_duckdb("clickbench", ["--rows", "20000"], include_str!("duckdb/clickbench.jsonl"));
    assert_eq!((&found["params"]["rows"], found["results"].as_array().unwrap().len()), (&20_000.into(), 43));
    // Of so few rows, some conditions leave none, and no group has more than 100,000.
    assert_eq!(answered(&found), 34);
}

#[test]
fn h2o_gives_the_answers_of_duckdb() {
    let found = beside_duckdb("h2o", ["--rows", "20000"], include_str!("duckdb/h2o.jsonl"));
    assert_eq!((&found["params"]["rows"], found["results"].as_array().unwrap().len()), (&20_000.into(), 15));
    assert_eq!(answered(&found), 15);
}

#[test]
fn h2o_runs_on_the_device_and_is_verified() {
    let place = Place::new();
    let arguments = ["bench", "h2o", "--rows", "2000", "--dir", "d", "--queries", "g1,g4,j5", "--runs", "1"];
    let rest = ["--device", "emulated", "--verify", "--json", "r.json"];
    let ran = Ran::of(place.emulated().args(arguments).args(rest).output().unwrap());
    assert!(ran.code == 0 && ran.out.lines().filter(|line| line.ends_with("  yes")).count() == 3, "{ran:?}");
    assert!(ran.out.contains("100 % on the GPU\n"), "{}", ran.out);
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert!(found["results"].as_array().unwrap().iter().all(|result| result["gpu_share"] == 1.0), "{found}");
}

#[test]
fn windows_run_on_the_device_and_are_verified() {
    let place = Place::new();
    let queries = "row_number-1k-32,sum-1m-64,lag-1k-sorted,first3-1k";
    let arguments = ["bench", "windows", "--rows", "20000", "--dir", "d", "--queries", queries, "--runs", "1"];
    let rest = ["--device", "emulated", "--verify", "--json", "r.json"];
    let ran = Ran::of(place.emulated().args(arguments).args(rest).output().unwrap());
    assert!(ran.code == 0 && ran.out.lines().filter(|line| line.ends_with("  yes")).count() == 4, "{ran:?}");
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    let results = found["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["gpu_share"] == 1.0 && result["bytes"].is_u64()), "{found}");
}

#[test]
fn sizes_and_queries_of_other_suites_are_refused() {
    let place = Place::new();
    let run = |arguments: &[&str]| place.run(&[&["bench"], arguments].concat());
    let refused = |arguments: &[&str]| run(&[arguments, &["--dir", "d", "--device", "cpu"]].concat()).error(2);
    let rows = refused(&["clickbench", "--rows", "0"]);
    assert_eq!(rows, "CLI-001 --rows: 0 rows are out of range: at least 1 and at most 1000000000");
    assert!(refused(&["tpcds", "--sf", "0"]).starts_with("CLI-001 --sf: scale factor 0 is out of range"));
    assert!(
        refused(&["h2o", "--sf", "1"]).contains("'--sf'") && refused(&["tpcds", "--rows", "9"]).contains("'--rows'")
    );
    assert!(refused(&["h2o", "--queries", "q1"]).starts_with("CLI-001 --queries q1: h2o has g1, "));
    let listed = |suite: &str| run(&[suite, "--list"]).ok().lines().count();
    assert_eq!(["tpcds", "clickbench", "h2o", "windows"].map(listed), [99, 43, 15, 20]);
    let help = run(&["--help"]).ok();
    assert!(["tpcds", "clickbench", "h2o", "windows"].iter().all(|suite| help.contains(suite)), "{help}");
    // One folder holds the data of one size.
    let h2o = ["h2o", "--queries", "j1", "--runs", "1", "--dir", "d", "--device", "cpu", "--rows"];
    assert_eq!(run(&[&h2o[..], &["1000"]].concat()).code, 0);
    let other = run(&[&h2o[..], &["2000"]].concat());
    assert!(other.code != 0 && other.err.contains("holds h2o of 1000 rows"), "{other:?}");
}
