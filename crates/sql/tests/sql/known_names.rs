//! DuckDB's scalar functions by name: which are here, which differ and which are missing.
//!
//! `tests/data/duckdb_functions.txt` has a line for each name that `duckdb_functions()` of DuckDB 2.0.1 lists, but for
//! collations, geometry, variants and what its own plans call: `works`, `differs` with how, or `missing`.
//! docs/sql.md has their numbers and what is missing.

use crate::support::{cpu, run};

const PAGE: &str = include_str!("../../../../docs/sql.md");
const NAMES: &str = include_str!("../data/duckdb_functions.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_duckdb_are_here_or_said_to_be_missing() {
    let session = cpu();
    let (mut works, mut differs, mut missing) = (0, 0, Vec::new());
    for line in NAMES.lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        let state = rest.split(' ').next().unwrap();
        let error = run(&session, &format!("SELECT {name}(1, 2, 3, 4, 5, 6, 7)")).await.err().unwrap_or_default();
        let is_known = !error.contains("unknown function");
        assert_eq!(is_known, state != "missing", "{line}: {error}");
        match state {
            "works" => works += 1,
            "differs" => differs += 1,
            "missing" => missing.push(name),
            other => panic!("'{other}' is no state"),
        }
    }
    let numbers = format!("{works} are here, {differs} of them otherwise", works = works + differs);
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&numbers), "docs/sql.md does not say '{numbers}'");
    for name in missing {
        assert!(page.contains(&format!("`{name}`")), "docs/sql.md does not say that {name} is missing");
    }
}
