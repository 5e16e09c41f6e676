//! Cubes in a session: opened as they are in their folder now, and equal to GROUP BY over random facts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use warpcube_arrays::Scheme;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::define::StorageChoice;
use warpcube_cube::store::CubeLock;
use warpcube_gpu::Device;
use warpcube_sql::{Connection, CubeAnswer, CubeDefinition, CubeLoad, CubeQueryOptions, SqlError, StatementReport};

use crate::support::{cpu, emulated};

/// Makes the cube of a definition in a folder.
async fn define(session: &Connection, text: &str, folder: &Path) {
    let definition = CubeDefinition { text: text.to_string(), file: None, folder: None, guesses_types: false };
    session
        .load_cube(definition, folder, CubeLoad::Create, Arc::new(Progress::new()), StatementReport::new())
        .await
        .unwrap();
}

/// The values of a query's cells by the names in their long form, and whether a device aggregated them.
async fn ask(session: &Connection, folder: &Path, query: &str) -> (BTreeMap<String, f64>, bool) {
    let cube = session.cube(&folder.display().to_string()).await.unwrap();
    let (options, progress) = (CubeQueryOptions::default(), Arc::new(Progress::new()));
    let answer = session.ask_cube(cube.clone(), query, options, progress).await.unwrap();
    let CubeAnswer::Table(table) = answer else { panic!("{query}: {answer:?}") };
    let batches: Vec<_> = table.long_form(cube.cube(), 1 << 10).collect::<Result<_, _>>().unwrap();
    let rows = crate::format::rows(&batches);
    (rows.into_iter().map(named_value).collect(), table.report().decision.place.device.is_some())
}

/// A row of names and a value, and of a text that is left out.
fn named_value(mut row: Vec<String>) -> (String, f64) {
    row.pop();
    let value = row.pop().unwrap();
    (row.join(" "), value.parse().unwrap_or_else(|_| panic!("{row:?}: {value}")))
}

/// A cube of two regions whose first one has a value.
fn plan(value: i32) -> String {
    format!(
        "cube: plan
facts: {{sql: \"VALUES ('FR', {value}), ('ES', 5)\", value: column2}}
dimensions:
  Region: {{levels: [column1], all: World}}
"
    )
}

#[tokio::test]
async fn a_refresh_takes_the_definition_that_the_cube_has_under_its_lock() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("plan.cube");
    let (early, other) = (cpu(), cpu());
    define(&early, &plan(100), &folder).await;
    // What the first session knows of the cube is older than the definition that another one loads.
    let known = early.cube(&folder.display().to_string()).await.unwrap();
    let definition = CubeDefinition { text: plan(700), file: None, folder: None, guesses_types: false };
    other
        .load_cube(definition, &folder, CubeLoad::Rebuild, Arc::new(Progress::new()), StatementReport::new())
        .await
        .unwrap();
    for load in [CubeLoad::Refresh, CubeLoad::Rebuild] {
        early.load_cube(None, &folder, load, Arc::new(Progress::new()), StatementReport::new()).await.unwrap();
        let cube = other.cube(&folder.display().to_string()).await.unwrap();
        assert_eq!(cube.definition().map(|definition| definition.text.clone()), Some(plan(700)));
        assert_ne!(cube.definition(), known.definition());
        let (cells, _) = ask(&other, &folder, "rows FR").await;
        assert_eq!(cells, [("FR column2".to_string(), 700.0)].into());
    }
    let error = early
        .load_cube(None, &place.path().join("new"), CubeLoad::Create, Arc::new(Progress::new()), StatementReport::new())
        .await;
    assert!(error.unwrap_err().to_string().contains("has no definition that names its source"));
}

#[tokio::test]
async fn a_command_that_was_cancelled_changes_nothing_and_one_that_is_done_is_not_cancelled() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("plan.cube");
    let session = cpu();
    define(&session, &plan(100), &folder).await;
    let state = || warpcube_sql::cube_info(&folder).unwrap().state();
    let before = state();
    let cancelled = || {
        let report = StatementReport::new();
        assert!(report.cancel().cancel());
        report
    };
    let (progress, new) = (|| Arc::new(Progress::new()), place.path().join("new.cube"));
    let definition = CubeDefinition { text: plan(7), file: None, folder: None, guesses_types: false };
    let errors = [
        session.load_cube(None, &folder, CubeLoad::Refresh, progress(), cancelled()).await.map(drop),
        session.load_cube(definition.clone(), &folder, CubeLoad::Rebuild, progress(), cancelled()).await.map(drop),
        session.load_cube(definition, &new, CubeLoad::Create, progress(), cancelled()).await.map(drop),
        session.change_cube(&folder, "add IT below World", false, cancelled()).await.map(drop),
        session.convert_cube(&folder, StorageChoice::Named(Scheme::Xcrs), cancelled()).await.map(drop),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        assert!(matches!(error, Err(SqlError::Cancelled)), "{number}: {error:?}");
    }
    assert!(state() == before && !new.exists());
    let done = StatementReport::new();
    session.change_cube(&folder, "add IT below World", false, done.clone()).await.unwrap();
    assert!(!done.cancel().cancel() && state() != before);
}

/// A dimension D (A, B below T) that the cubes Sales and Plan share.
const DATABASE: &str = "[DATABASE]
1;2;1;
[DIMENSIONS]
3;\"D\";1;1;1;1;
[DIMENSION 3]
3;\"D\";1;2;1;3;
[ELEMENTS DIMENSION 3]
0;\"A\";0;1;0;0;2;1;2;;;
1;\"B\";1;1;0;0;2;1;2;;;
2;\"T\";2;4;1;1;1;0;;0,1;1,1;
[CUBES]
2;\"Sales\";3;2;1;1;
8;\"Plan\";3;2;1;1;
";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn removals_from_cubes_of_one_database_take_their_locks_in_one_order() {
    let place = tempfile::tempdir().unwrap();
    let (palo, cubes) = (place.path().join("palo"), place.path().join("cubes"));
    std::fs::create_dir(&palo).unwrap();
    std::fs::write(palo.join("database.csv"), DATABASE).unwrap();
    for number in [2, 8] {
        let cells = format!("[CUBE]\n{number};3;\n[NUMERIC]\n0;3;\n1;5;\n");
        std::fs::write(palo.join(format!("database_CUBE_{number}.csv")), cells).unwrap();
    }
    warpcube_palo::catalog::import(&palo, &cubes).unwrap();
    let (plan, sales) = (cubes.join("Plan"), cubes.join("Sales"));
    // While a removal from the second waits for the first, the second is free for who has the first.
    let held = CubeLock::lock(&plan).unwrap();
    let report = StatementReport::new();
    let (session, folder, told) = (cpu(), sales.clone(), report.clone());
    let removal = tokio::spawn(async move { session.change_cube(&folder, "remove B", false, told).await });
    while report.summary().warnings.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drop(CubeLock::lock(&sales).expect("the removal holds a lock while it waits for another"));
    drop(held);
    removal.await.unwrap().unwrap();
    for round in 0..4 {
        let cubes = place.path().join(format!("again{round}"));
        warpcube_palo::catalog::import(&palo, &cubes).unwrap();
        let change = |name: &str| {
            let (session, folder) = (cpu(), cubes.join(name));
            tokio::spawn(async move { session.change_cube(&folder, "remove B", false, StatementReport::new()).await })
        };
        let [one, other] = [change("Plan"), change("Sales")];
        let done = [one.await.unwrap(), other.await.unwrap()].map(|done| done.map(drop).map_err(|e| e.to_string()));
        // The element is gone for the second of them.
        assert!(done.iter().any(Result::is_ok), "{done:?}");
        let gone = done.iter().filter_map(|done| done.as_ref().err());
        gone.for_each(|error| assert!(error.contains("no dimension has an element"), "{error}"));
    }
}

#[tokio::test]
async fn a_cube_is_on_the_device_that_the_database_has_now() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("plan.cube");
    let session = emulated();
    define(&session, &plan(100), &folder).await;
    let mut before: Option<Device> = None;
    for memory in ["64MiB", "32MiB", "16MiB"] {
        session.set("warpcube.device_memory", memory).unwrap();
        let device = session.database().device().get().unwrap();
        let (cells, on_device) = ask(&session, &folder, "rows World").await;
        assert_eq!((cells.len(), on_device), (1, true));
        assert!(device.pool().usage().live > 0, "{memory}: the facts are elsewhere");
        let left = before.replace(device).map(|before| before.pool().usage().live);
        assert_eq!(left.unwrap_or(0), 0, "{memory}: something is left where the cube was before");
    }
}

#[tokio::test]
async fn a_cube_that_was_created_again_is_read_again() {
    for (session, is_device) in [(cpu(), false), (emulated(), true)] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("plan.cube");
        for value in [100.0, 700.0] {
            define(&session, &plan(value as i32), &folder).await;
            let (cells, on_device) = ask(&session, &folder, "rows World, FR").await;
            let expected = [("World column2", value + 5.0), ("FR column2", value)];
            assert_eq!(cells, expected.map(|(name, value)| (name.to_string(), value)).into());
            assert_eq!(on_device, is_device);
            let sum = format!("SELECT CAST(sum(column2) AS INT) FROM '{}'", folder.display());
            let of_cells = format!("SELECT CAST(max(value) AS INT) FROM cube('{}', 'rows World')", folder.display());
            if value == 100.0 {
                for (name, sql) in [("s", &sum), ("c", &of_cells)] {
                    session.collect(&format!("PREPARE {name} AS {sql}")).await.unwrap();
                    session.collect(&format!("CREATE VIEW v{name} AS {sql}")).await.unwrap();
                }
            }
            for sql in [sum.as_str(), &of_cells, "EXECUTE s", "EXECUTE c", "SELECT * FROM vs", "SELECT * FROM vc"] {
                let sums = crate::format::rows(&session.collect(sql).await.unwrap());
                assert_eq!(sums, [[(value + 5.0).to_string()]], "{sql}");
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}

/// Sums of doubles whose magnitudes are 2^200 apart lose digits on the device.
#[tokio::test]
async fn explain_tells_what_a_device_refuses_as_the_statement_does() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("doubles.cube");
    let text = "cube: doubles
facts: {sql: \"VALUES ('a', CAST('1e-30' AS DOUBLE)), ('b', CAST('-1e30' AS DOUBLE))\", value: column2}
value: {type: double}
dimensions:
  K: {levels: [column1], all: All}
";
    let session = emulated();
    define(&session, text, &folder).await;
    let sql = format!("SELECT value FROM cube('{}', 'rows All')", folder.display());
    let error = session.collect(&sql).await.unwrap_err().to_string();
    assert!(error.contains("CUBE-005 not on the device: measure column2 has doubles"), "{error}");
    let plan = session.collect(&format!("EXPLAIN VERBOSE {sql}")).await.unwrap();
    let plan = crate::format::rows(&plan).concat().join("\n");
    let expected = "algorithm=CUBE-005 not on the device: measure column2 has doubles";
    assert!(plan.contains(expected), "{plan}");
}

/// Filters over one column of names reach the cells that are read; others stay above.
#[tokio::test]
async fn a_scan_reads_the_cells_that_a_statement_wants() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("c.cube");
    let rows: Vec<String> = (0..900).map(|row| format!("('g{}', {row}, {})", row % 3, row % 7)).collect();
    let rows = rows.join(", ");
    let text = format!(
        "cube: c
facts: {{sql: \"VALUES {rows}\", value: column3}}
value: {{type: decimal(0)}}
dimensions:
  K: {{levels: [column1, column2]}}
"
    );
    let session = cpu();
    define(&session, &text, &folder).await;
    let collect = async |sql: String| crate::format::rows(&session.collect(&sql).await.unwrap());
    for (condition, read) in [
        ("k = '17'", 1),
        ("k IN ('17', '18') AND column1 = 'g0'", 1),
        ("(column1 LIKE '%1' OR column1 = 'g2') AND k < '1000'", 3),
        ("column1 = 'none'", 0),
        ("column1 IS NULL", 0),
        ("upper(column1) = 'G2' AND column3 > 100", 300),
        ("column3 = 3", 900),
        ("k = column1 || '7'", 900),
    ] {
        let plan = collect(format!(
            "EXPLAIN ANALYZE VERBOSE SELECT sum(column3) FROM '{}' WHERE {condition}",
            folder.display()
        ));
        let plan = plan.await.concat().join("\n");
        // The filter above the scan tells how many rows it got: (kept/got).
        let filter = plan.lines().find(|line| line.contains("FilterExec")).unwrap_or_else(|| panic!("{plan}"));
        let got = filter.split("selectivity=").nth(1).and_then(|rest| rest.split(')').next()?.rsplit('/').next());
        assert_eq!(got, Some(read.to_string().as_str()), "{condition}:\n{plan}");
        let cells = collect(format!("SELECT count(*), sum(column3) FROM '{}' WHERE {condition}", folder.display()));
        let facts = format!("(SELECT column1, CAST(column2 AS VARCHAR) AS k, column3 FROM (VALUES {rows}))");
        let expected = collect(format!("SELECT count(*), sum(column3) FROM {facts} WHERE {condition}"));
        assert_eq!(cells.await, expected.await, "{condition}");
    }
}

/// A row of facts: group, member of it, month, a value and a double that may be NULL.
type Fact = (u8, u8, u8, Option<i32>, Option<f64>);

fn facts_table(facts: &[Fact]) -> String {
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_string());
    let row = |(group, member, month, value, double): &Fact| {
        let value = or_null(value.map(|value| format!("{}.{:02}", value / 100, value.abs() % 100)));
        let double = or_null(double.map(|double| format!("{double:?}")));
        format!(
            "('g{group}', 'g{group}-{member}', 'm{month}', CAST({value} AS DECIMAL(12, 2)), CAST({double} AS DOUBLE))"
        )
    };
    let rows: Vec<String> = facts.iter().map(row).collect();
    format!("(VALUES {}) AS facts (g, k, m, v, d)", rows.join(", "))
}

const MEASURES: [(&str, &str, &str); 8] = [
    ("Sum", "{column: v}", "sum(v)"),
    ("Rows", "{rule: count}", "count(*)"),
    // COUNT of a column without a value is empty in a cube.
    ("Count", "{column: v, rule: count}", "nullif(count(v), 0)"),
    ("Mean", "{column: v, rule: avg}", "avg(CAST(v AS DOUBLE))"),
    ("Least", "{column: v, rule: min}", "min(v)"),
    ("Most", "{column: v, rule: max}", "max(v)"),
    ("Double", "{column: d, type: double}", "sum(d)"),
    ("DoubleMean", "{column: d, rule: avg, type: double}", "avg(d)"),
];

fn definition(table: &str) -> String {
    let measure = |(name, measure, _): &(&str, &str, &str)| format!("  {name}: {measure}\n");
    let measures: String = MEASURES.iter().map(measure).collect();
    format!(
        "cube: random
facts: {{sql: \"SELECT * FROM {table}\"}}
value: {{type: decimal(2)}}
measures:
{measures}dimensions:
  Product: {{levels: [g, k], all: Everything}}
  Month: {{levels: [m], all: Year}}
"
    )
}

/// Sets of targets, and the columns that GROUP BY has in place of them, named as the cube names cells.
const AREAS: [(&str, &[&str]); 4] = [
    ("rows level(Product, 0) * level(Month, 0)", &["k", "m"]),
    ("rows level(Product, 1) * level(Month, 0)", &["g", "m"]),
    ("rows level(Product, 1) where Year", &["g", "'Year'"]),
    ("rows Everything where Year", &["'Everything'", "'Year'"]),
];

async fn equals_group_by(sessions: &[Connection; 2], facts: &[Fact]) -> Result<(), TestCaseError> {
    let table = facts_table(facts);
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("random.cube");
    define(&sessions[0], &definition(&table), &folder).await;
    for (area, keys) in AREAS {
        for (measure, _, aggregate) in MEASURES {
            let group = keys.iter().filter(|key| !key.starts_with('\'')).copied().collect::<Vec<_>>();
            let group = if group.is_empty() { String::new() } else { format!("GROUP BY {}", group.join(", ")) };
            let sql = format!(
                "SELECT * FROM (SELECT {}, '{measure}' AS measure, CAST({aggregate} AS DOUBLE) AS value, '' AS text \
                 FROM {table} {group}) WHERE value IS NOT NULL",
                keys.join(", ")
            );
            let sql = sql.replacen("'Everything'", "'Everything' AS k", 1).replacen("'Year'", "'Year' AS m", 1);
            let rows = crate::format::rows(&sessions[0].collect(&sql).await.unwrap());
            let expected: BTreeMap<String, f64> = rows.into_iter().map(named_value).collect();
            let query = match area.contains("where") {
                true => format!("{area}, {measure}"),
                false => format!("{area} where {measure}"),
            };
            for (session, is_device) in sessions.iter().zip([false, true]) {
                let (found, on_device) = ask(session, &folder, &query).await;
                prop_assert_eq!(on_device, is_device, "{}", query);
                prop_assert!(found.keys().eq(expected.keys()), "{query}: {found:?} and {expected:?}");
                for (name, value) in &found {
                    let near = (value - expected[name]).abs() <= 1e-9 * expected[name].abs().max(1.0);
                    let is_right =
                        if measure.contains("Mean") || measure == "Double" { near } else { *value == expected[name] };
                    prop_assert!(is_right, "{query} at {name}: {value} and {}", expected[name]);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_cube_equals_group_by_over_random_facts() {
    let value = prop::option::weighted(0.8, -1_000_000..1_000_000_i32);
    let double = prop::option::weighted(0.8, -1e3..1e3_f64);
    let facts = prop::collection::vec((0..3_u8, 0..4_u8, 0..3_u8, value, double), 1..40);
    let config = Config { cases: 12, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sessions = [cpu(), emulated()];
    TestRunner::new(config).run(&facts, |facts| runtime.block_on(equals_group_by(&sessions, &facts))).unwrap();
}
