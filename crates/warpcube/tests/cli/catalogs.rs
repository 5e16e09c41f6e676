//! Catalogs that are kept in folders: what is there again, who may change them, and what a kill leaves.

use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use warpcube_cube::store::checked;

use crate::harness::{Place, Ran};

/// Programs that are killed, unless `WARPCUBE_TEST_KILLS` says how many.
const KILLS: u32 = 200;
/// Definitions that a program would make if it were not killed.
const DEFINITIONS: u32 = 2000;
/// The file of a catalog.
const FILE: &str = "c/_catalog.warpcube";

fn run(place: &Place, folder: &[&str], sql: &str) -> Ran {
    let arguments: Vec<&str> = folder.iter().copied().chain(["--format", "csv", "-c", sql]).collect();
    place.run(&arguments)
}

#[test]
fn definitions_and_settings_are_kept_and_rows_in_memory_are_not() {
    let place = Place::new();
    place.write("a.csv", "x;y\n1;a\n2;b\n");
    place.write("gone.csv", "x\n1\n");
    run(
        &place,
        &["c/"],
        "CREATE EXTERNAL TABLE t (x INT, y VARCHAR NOT NULL) STORED AS CSV LOCATION 'a.csv'
         OPTIONS (format.delimiter ';');
         CREATE EXTERNAL TABLE gone STORED AS CSV LOCATION 'gone.csv';
         CREATE VIEW v AS SELECT sum(x) AS s FROM t;
         CREATE SCHEMA other; CREATE VIEW other.w AS SELECT y FROM read_csv('a.csv') WHERE x = 2;
         CREATE MACRO half() AS 1 / 2.0; CREATE MACRO xs() AS TABLE SELECT x FROM t;
         CREATE MACRO plus(a, b := 2) AS a + b; CREATE MACRO above(n) AS TABLE SELECT x FROM t WHERE x > n;
         CREATE MACRO no() AS 1; DROP MACRO no;
         CREATE VIEW dropped AS SELECT 1; DROP VIEW dropped;
         SET GLOBAL datafusion.execution.time_zone = 'Europe/Berlin'; SET GLOBAL warpcube.max_rows = 7;
         RESET GLOBAL warpcube.max_rows;",
    )
    .ok();
    let made = run(&place, &["c"], "CREATE TABLE m AS SELECT 1 AS a; SELECT a FROM m");
    assert_eq!((made.code, made.out.as_str()), (0, "a\n1\n"), "{made:?}");
    assert!(made.err.contains("table 'm' is in memory, and the catalog in c does not keep it"), "{made:?}");
    std::fs::remove_file(place.path("gone.csv")).unwrap();
    assert_eq!(run(&place, &["c"], "SELECT s FROM v; SELECT y FROM other.w").ok(), "s\n3\ny\nb\n");
    assert_eq!(run(&place, &["c"], "SELECT sum(x * half()) = 1.5 AS h FROM xs()").ok(), "h\ntrue\n");
    assert_eq!(run(&place, &["c"], "SELECT plus(x, b := 3) AS p, plus(x) AS q FROM above(1)").ok(), "p,q\n5,4\n");
    let tables = "SELECT table_schema || '.' || table_name AS t, table_type AS k FROM information_schema.tables \
                  WHERE table_schema <> 'information_schema' AND table_name NOT LIKE '%()' ORDER BY t";
    let expected = "t,k\nother.w,VIEW\npublic.gone,BASE TABLE\npublic.t,BASE TABLE\npublic.v,VIEW\n";
    assert_eq!(run(&place, &["c"], tables).ok(), expected);
    let shown = run(&place, &["c"], "SHOW TABLES").ok();
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains("other,w,VIEW")), "{shown}");
    assert!(!shown.contains("information_schema"), "{shown}");
    let zone = run(&place, &["c"], "SELECT CAST(TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'UTC' AS VARCHAR) AS z");
    assert_eq!(zone.ok(), "z\n2024-07-01 14:00:00+02\n");
    let flag = ["c", "--set", "datafusion.execution.time_zone=UTC"];
    let zone = run(&place, &flag, "SHOW datafusion.execution.time_zone").ok();
    assert!(zone.contains("UTC"), "a flag counts more: {zone}");
    assert!(run(&place, &["c"], "SELECT * FROM gone").error(1).contains("FILE-001 "));
    // The definition of a table whose files are gone can be replaced and dropped.
    let replaced =
        "CREATE OR REPLACE EXTERNAL TABLE gone STORED AS CSV LOCATION 'a.csv'; SELECT count(*) AS n FROM gone";
    assert_eq!(run(&place, &["c"], replaced).ok(), "n\n2\n");
    assert_eq!(run(&place, &["c"], "SELECT x FROM gone WHERE y = 'b'; DROP TABLE gone; DROP VIEW v").ok(), "x\n2\n");
    assert_eq!(run(&place, &["c"], tables).ok(), "t,k\nother.w,VIEW\npublic.t,BASE TABLE\n");
    let error = run(&place, &[], "SET GLOBAL warpcube.max_rows = 7").error(1);
    assert!(error.contains("start the program with a folder"), "{error}");
}

#[test]
fn one_process_changes_a_catalog_and_others_read_it() {
    let place = Place::new();
    run(&place, &["c/"], "CREATE VIEW v AS SELECT 1 AS n").ok();
    let attach = "ATTACH 'c'; ATTACH 'c' AS again";
    let held = run(&place, &[], attach).error(1);
    assert!(held.starts_with("FILE-006 c: process ") && held.contains("holds this catalog"), "{held}");
    let read = run(&place, &[], "ATTACH 'c'; ATTACH 'c' AS r (READ_ONLY); SELECT n FROM r.v");
    assert_eq!(read.ok(), "n\n1\n");
    let refused = run(&place, &["c", "--read-only"], "SELECT n FROM v; CREATE VIEW w AS SELECT 2 AS n");
    assert_eq!((refused.code, refused.out.as_str()), (1, "n\n1\n"));
    assert!(refused.err.contains("FILE-008 change of the catalog c"), "{refused:?}");
    let sql = "SHOW warpcube.overflow; SET GLOBAL warpcube.overflow = 'wrap'; DROP VIEW IF EXISTS v; SELECT n FROM v; \
               SHOW warpcube.overflow";
    let refused = run(&place, &["c", "--read-only", "--continue-on-error"], sql);
    assert_eq!(refused.err.matches("FILE-008 change of the catalog c").count(), 2, "{refused:?}");
    assert!(refused.out.contains("n\n1\n") && !refused.out.contains("wrap"), "{refused:?}");
    assert!(run(&place, &["nothing"], "SELECT 1").error(2).contains("no folder of that name"));
}

#[test]
fn attached_catalogs_have_names_of_their_own() {
    let place = Place::new();
    place.write("a.csv", "x\n1\n2\n");
    run(
        &place,
        &["c/"],
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'a.csv'; CREATE VIEW v AS SELECT max(x) AS n FROM t",
    )
    .ok();
    // Names of a view are those of its own catalog.
    let both =
        "CREATE TABLE t AS SELECT 7 AS x; ATTACH 'c' AS k; SELECT n FROM k.v; SELECT count(*) AS n FROM k.public.t";
    assert!(run(&place, &[], both).ok().ends_with("n\n2\nn\n2\n"));
    let made =
        "ATTACH 'c' AS k; CREATE VIEW k.w AS SELECT n + 1 AS m FROM k.v; DETACH k; ATTACH 'c' AS k; SELECT m FROM k.w";
    assert_eq!(run(&place, &[], made).ok(), "m\n3\n");
    let gone = run(&place, &[], "ATTACH 'c' AS k; DETACH k; SELECT n FROM k.v");
    assert!(gone.error(1).contains("k"));
    let used = run(&place, &[], "ATTACH 'c' AS k; USE k; DETACH k").error(1);
    assert!(used.contains("catalog 'k' is in use; USE another one first, as USE warpcube"), "{used}");
    assert!(run(&place, &[], "DETACH other").error(1).contains("no catalog 'other' was attached"));
    assert!(run(&place, &[], "ATTACH 'new' AS public").error(1).contains("'public' is there already"));
    assert!(!place.path("new").exists(), "a refused ATTACH makes no folder");
    let temporary = run(&place, &["c"], "CREATE TEMP TABLE own (a INT); CREATE VIEW of_own AS SELECT a FROM own");
    assert_eq!(temporary.error(1), "SQL-005 not supported: a view over 'own', a temporary table");
}

/// The number that the view of a catalog gives; it panics if the file is not whole.
fn number(path: &Path) -> Option<u32> {
    let found: Option<Value> = checked::read(path, 1..=1).unwrap();
    let text = found?["schemas"]["public"]["v"]["text"].as_str()?.to_string();
    let digits = text.rsplit("SELECT ").next()?.split_whitespace().next()?.parse();
    Some(digits.unwrap_or_else(|_| panic!("{text}")))
}

/// Programs define a view again and again, and tell each time when it is there. After a kill the catalog has the view
/// that was told of last, or the next one.
#[test]
fn a_program_killed_at_random_points_leaves_the_old_or_the_new_catalog() {
    let kills = std::env::var("WARPCUBE_TEST_KILLS").map_or(KILLS, |text| text.parse().expect("a number"));
    let place = Place::new();
    run(&place, &["c/"], "CREATE VIEW v AS SELECT 0 AS n").ok();
    let (mut last, mut between) = (0, 0);
    for round in 0..kills {
        let first = last + 1;
        let definition = |n: u32| format!("CREATE OR REPLACE VIEW v AS SELECT {n} AS n; SELECT {n} AS n;\n");
        place.write("script.sql", (first..first + DEFINITIONS).map(definition).collect::<String>());
        let mut command = place.command();
        command.args(["c", "--format", "csv", "-f", "script.sql"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut begin = [0; 1];
        // Most kills come while definitions are made.
        if round % 4 > 0 {
            out.read_exact(&mut begin).unwrap();
        }
        let micros = RandomState::new().hash_one(round) % 60_000;
        std::thread::sleep(Duration::from_micros(micros));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut told = String::new();
        out.read_to_string(&mut told).unwrap();
        let told = told.lines().filter_map(|line| line.parse::<u32>().ok()).next_back();
        let found = number(&place.path(FILE)).unwrap();
        let told = told.unwrap_or(last);
        assert!(found == told || found == told + 1, "round {round}: {found} is kept, and {told} was told");
        between += u32::from(found > last);
        last = found;
    }
    assert!(between > kills / 2, "{between} of {kills} kills came while definitions were made");
    let kept = run(&place, &["c"], "SELECT n FROM v").ok();
    assert_eq!(kept, format!("n\n{last}\n"));
}
