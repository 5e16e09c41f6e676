//! Statements that write files: what fails or is given up leaves what was there before, and nothing else.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use warpcube_sql::{Connection, SqlError};

use crate::support::{cpu, emulated, one, rehearse, rows};

/// Ten thousand rows, the 9,000th of which cannot be computed.
const FAILING: &str = "SELECT value AS v, 10 / (value - 9000) AS q FROM generate_series(1, 10000) AS g(value)";
/// More rows than a test waits for.
const ENDLESS: &str = "SELECT value AS v, value / 7 AS q FROM generate_series(1, 100000000000) AS g(value)";
/// How long a test waits for files to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// All files below a folder, hidden ones too, with hashes of their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let mut hash = DefaultHasher::new();
                fs::read(&path).unwrap_or_default().hash(&mut hash);
                found.insert(path, hash.finish());
            }
        }
    }
    found
}

/// A folder with a file of each format, and a table of two rows over the folder `t`.
async fn before() -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let session = cpu();
    for name in ["keep.parquet", "keep.csv", "t/first.parquet"] {
        let path = folder.path().join(name);
        session.collect(&format!("COPY (VALUES (1, 2), (3, 4)) TO '{}'", path.display())).await.unwrap();
    }
    let location = folder.path().join("t/");
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", location.display());
    session.collect(&table).await.unwrap();
    (folder, session)
}

/// The statements that write `query`, to places that hold something and to one that does not.
fn statements(folder: &Path, query: &str) -> Vec<String> {
    let copy = |name: &str| format!("COPY ({query}) TO '{}'", folder.join(name).display());
    let parts = format!("COPY ({query}) TO '{}/' STORED AS PARQUET PARTITIONED BY (q)", folder.join("p").display());
    let insert = format!("INSERT INTO t SELECT v, q FROM ({query})");
    vec![copy("keep.parquet"), copy("keep.csv"), copy("new.parquet"), copy("new.json"), parts, insert]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_fails_leaves_files_as_they_were() {
    let (folder, session) = before().await;
    let was = files(folder.path());
    assert_eq!(was.len(), 3);
    for sql in statements(folder.path(), FAILING) {
        let error = session.collect(&sql).await.unwrap_err();
        assert!(error.to_string().contains("ivi"), "{sql}\n{error}");
        assert_eq!(files(folder.path()), was, "{sql}");
    }
    let count = session.collect("SELECT count(*) FROM t").await.unwrap();
    assert!(rows(&count).iter().any(|row| row.contains('2')), "{count:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_dropped_or_out_of_time_leaves_files_as_they_were() {
    let (folder, session) = before().await;
    let was = files(folder.path());
    let gone = async |sql: &str| {
        let clock = std::time::Instant::now();
        while files(folder.path()) != was {
            assert!(clock.elapsed() < PATIENCE, "{sql}\nleft {:?}", files(folder.path()).keys());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Tasks that were told to stop have stopped.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(files(folder.path()), was, "{sql}");
    };
    for sql in statements(folder.path(), ENDLESS) {
        let mut running = session.execute(&sql).await.unwrap();
        let first = tokio::time::timeout(Duration::from_millis(200), running.stream.next()).await;
        assert!(first.is_err(), "{sql}\nended: {first:?}");
        drop(running);
        gone(&sql).await;
    }
    session.set("warpcube.timeout", "200ms").unwrap();
    for sql in statements(folder.path(), ENDLESS) {
        let error = session.collect(&sql).await.unwrap_err();
        assert!(matches!(error, SqlError::TimedOut { .. }), "{sql}\n{error}");
        gone(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_succeeds_is_in_its_place() {
    let (folder, session) = before().await;
    let query = "SELECT value AS v, value % 3 AS q FROM generate_series(1, 10000) AS g(value)";
    for sql in statements(folder.path(), query) {
        session.collect(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    let all = files(folder.path());
    assert!(all.keys().all(|path| !path.to_string_lossy().contains("staging")), "{:?}", all.keys());
    for (name, expected) in
        [("keep.parquet", 10_000), ("keep.csv", 10_000), ("new.parquet", 10_000), ("new.json", 10_000)]
    {
        let sql = format!("SELECT count(*) AS n FROM '{}'", folder.path().join(name).display());
        let found = session.collect(&sql).await.unwrap();
        assert!(rows(&found).iter().any(|row| row.contains(&expected.to_string())), "{name}: {found:?}");
    }
    let inserted = session.collect("SELECT count(*) AS n FROM t WHERE column2 < 3").await.unwrap();
    assert!(rows(&inserted).iter().any(|row| row.contains("10001")), "{inserted:?}");
    assert_eq!(all.keys().filter(|path| path.to_string_lossy().contains("/q=")).count(), 3, "{:?}", all.keys());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_written_is_not_read() {
    let (folder, session) = before().await;
    let mut running = session.execute(&format!("INSERT INTO t SELECT v, q FROM ({ENDLESS})")).await.unwrap();
    let hidden = async {
        let is_there =
            || files(folder.path()).keys().any(|path| path.to_string_lossy().contains(".warpcube-staging/content/"));
        while !is_there() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        rows = running.stream.next() => panic!("ended: {rows:?}"),
        () = hidden => {}
    }
    for place in ["t", "t/", "t/*.parquet", "**/*.parquet"] {
        let sql = format!("SELECT max(column1) AS most FROM '{}'", folder.path().join(place).display());
        let found = session.collect(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        assert!(rows(&found).iter().any(|row| row.contains("| 3 ")), "{place}: {found:?}");
    }
}

#[tokio::test]
async fn explaining_writes_nothing_and_analysing_does() {
    let (folder, session) = before().await;
    let was = files(folder.path());
    let path = folder.path().join("new.parquet");
    let copy = format!("COPY (SELECT 1 AS v) TO '{}'", path.display());
    session.collect(&format!("EXPLAIN {copy}")).await.unwrap();
    assert_eq!(files(folder.path()), was);
    session.collect(&format!("EXPLAIN ANALYZE {copy}")).await.unwrap();
    assert!(path.is_file());
}

/// The rows of a query, sorted, cells with a blank between.
async fn cells(session: &Connection, sql: &str) -> Vec<String> {
    let batches = session.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let mut rows: Vec<String> = crate::format::rows(&batches).iter().map(|row| row.join(" ")).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_null_have_a_folder_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let writer = cpu();
    for (kind, zero, other, literal) in [
        ("BIGINT", "0", "3", "3"),
        ("DATE", "1970-01-01", "2024-02-29", "DATE '2024-02-29'"),
        ("BOOLEAN", "false", "true", "true"),
        ("VARCHAR", "", "x", "'x'"),
        ("DECIMAL(6, 2)", "0.00", "1.50", "CAST(1.5 AS DECIMAL(6, 2))"),
        ("TIMESTAMP", "1970-01-01T00:00:00", "2024-02-29T12:30:00", "TIMESTAMP '2024-02-29 12:30:00'"),
    ] {
        let place = folder.path().join(kind);
        let place = place.display();
        let rows = format!(
            "SELECT v, CAST(t AS {kind}) AS k, v % 2 AS j \
             FROM (VALUES (1, '{zero}'), (2, NULL), (3, '{other}'), (4, NULL)) AS t(v, t)"
        );
        writer.collect(&format!("COPY ({rows}) TO '{place}/' STORED AS PARQUET PARTITIONED BY (k, j)")).await.unwrap();
        // Kernels of the emulated device take a while to compile.
        let on_device = ["BIGINT", "VARCHAR"].contains(&kind).then(emulated);
        for session in std::iter::once(cpu()).chain(on_device) {
            let declared = format!(
                "CREATE EXTERNAL TABLE t (v BIGINT, k {kind}, j INT) STORED AS PARQUET PARTITIONED BY (k, j) \
                 LOCATION '{place}/'"
            );
            session.collect(&declared).await.unwrap();
            let conditions = [
                ("k IS NULL".to_string(), "2 6"),
                ("k IS NOT NULL".to_string(), "2 4"),
                (format!("k = {literal}"), "1 3"),
                (format!("k <> {literal}"), "1 1"),
                (format!("k = CAST('{zero}' AS {kind})"), "1 1"),
                (format!("k IS DISTINCT FROM {literal}"), "3 7"),
                (format!("k IS NULL OR k = {literal}"), "3 9"),
                ("k IS NULL AND j = 0 AND v > 3".to_string(), "1 4"),
                ("true".to_string(), "4 10"),
            ];
            let statement = |condition: &str| format!("SELECT count(*), sum(v) FROM t WHERE {condition}");
            rehearse(&session, conditions.iter().map(|(condition, _)| statement(condition))).await;
            for (condition, expected) in conditions {
                let sql = statement(&condition);
                assert_eq!(one(&session, &sql).await.0, expected, "{kind}: {sql}");
            }
            let found = cells(&session, "SELECT count(k), count(*), count(DISTINCT k) FROM t").await;
            assert_eq!(found, ["2 4 2"], "{kind}");
            // More rows of NULL, beside others.
            session.collect(&format!("INSERT INTO t VALUES (10, NULL, 0), (20, {literal}, NULL)")).await.unwrap();
            assert_eq!(one(&session, "SELECT sum(v) FROM t WHERE k IS NULL").await.0, "16", "{kind}");
            assert_eq!(one(&session, "SELECT sum(v), count(k) FROM t WHERE j IS NULL").await.0, "20 1", "{kind}");
            session.collect("DROP TABLE t").await.unwrap();
            let again =
                format!("COPY ({rows}) TO '{place}/' STORED AS PARQUET PARTITIONED BY (k, j) OPTIONS (overwrite true)");
            writer.collect(&again).await.unwrap();
        }
        assert_eq!(one(&cpu(), &format!("SELECT count(*), sum(v) FROM '{place}/' WHERE k IS NULL")).await.0, "2 6");
        assert!(folder.path().join(kind).join("k=__HIVE_DEFAULT_PARTITION__/j=0").is_dir());
    }
    // Numbers are told from folders, NULL or not, and the first NULL may come later.
    let place = folder.path().join("later");
    let copy = |k: &str, option: &str| {
        let place = place.display();
        format!(
            "COPY (SELECT 1 AS v, CAST({k} AS INT) AS k) TO '{place}/' STORED AS PARQUET PARTITIONED BY (k) {option}"
        )
    };
    let session = cpu();
    writer.collect(&copy("7", "")).await.unwrap();
    session
        .collect(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/'", place.display()))
        .await
        .unwrap();
    assert_eq!(cells(&session, "SELECT k + 1 FROM t").await, ["8"]);
    writer.collect(&copy("NULL", "OPTIONS (append true)")).await.unwrap();
    assert_eq!(cells(&session, "SELECT k + 1 FROM t").await, ["8", "NULL"]);
    assert_eq!(cells(&session, "SELECT v FROM t WHERE k IS NULL").await, ["1"]);
    // Where the column stays in its files it keeps its type, and NULL has no place.
    writer.set("datafusion.execution.keep_partition_by_columns", "true").unwrap();
    let error = writer.collect(&copy("NULL", "OPTIONS (append true)")).await.unwrap_err().to_string();
    assert!(error.starts_with("SQL-006 column 'k' is NULL, which no folder can stand for"), "{error}");
    writer.collect(&copy("8", "OPTIONS (append true)")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_any_characters_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let place = place.display();
    let keys = ["a/b", "a=b", "50%", "%2F", "two words", "..", "ünï", "a+b&c?#", "\"q\"", "c:\\d", "[x]*", "{}|^~`"];
    let rows: Vec<String> = keys.iter().enumerate().map(|(v, key)| format!("({v}, '{key}')")).collect();
    let session = cpu();
    let copy = format!(
        "COPY (SELECT * FROM (VALUES {}) AS t(v, k)) TO '{place}/' STORED AS PARQUET PARTITIONED BY (k)",
        rows.join(", ")
    );
    session.collect(&copy).await.unwrap();
    let mut expected: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    expected.sort();
    for with_null in [false, true] {
        assert_eq!(cells(&session, &format!("SELECT k FROM '{place}/' WHERE k IS NOT NULL")).await, expected);
        for (v, key) in keys.iter().enumerate() {
            let sql = format!("SELECT v FROM '{place}/' WHERE k = '{key}'");
            assert_eq!(cells(&session, &sql).await, [v.to_string()], "{key} {with_null}");
        }
        let null = "COPY (SELECT 99 AS v, CAST(NULL AS VARCHAR) AS k)";
        let null = format!("{null} TO '{place}/' STORED AS PARQUET PARTITIONED BY (k) OPTIONS (append true)");
        session.collect(&null).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_has_files_is_added_to_or_replaced_by_word_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("p");
    let session = cpu();
    let copy = |v: u32, keys: &str, options: &str| {
        let place = place.display();
        format!("COPY (SELECT {v} AS v, {v} % 3 AS k) TO '{place}/' STORED AS PARQUET {keys} {options}")
    };
    let sum = async || one(&session, &format!("SELECT sum(v), count(*) FROM '{}/'", place.display())).await.0;
    for keys in ["PARTITIONED BY (k)", ""] {
        session.collect(&copy(1, keys, "OPTIONS (overwrite true)")).await.unwrap();
        let was = files(folder.path());
        let error = session.collect(&copy(2, keys, "")).await.unwrap_err().to_string();
        let expected =
            "it has files; COPY … OPTIONS (append true) adds to them, OPTIONS (overwrite true) replaces them";
        assert_eq!(error, format!("FILE-009 {}/: {expected}", place.display()));
        for (options, reason) in [("append true, overwrite true", "either"), ("append maybe", "append true")] {
            let error = session.collect(&copy(2, keys, &format!("OPTIONS ({options})"))).await.unwrap_err().to_string();
            assert!(error.starts_with("SQL-004 COPY ") && error.contains(reason), "{error}");
        }
        assert_eq!(files(folder.path()), was);
        session.collect(&copy(2, keys, "OPTIONS (append true)")).await.unwrap();
        assert_eq!(sum().await, "3 2");
        session.collect(&format!("EXPLAIN {}", copy(3, keys, "OPTIONS (overwrite true)"))).await.unwrap();
        assert_eq!(sum().await, "3 2");
        // What fails replaces nothing.
        let failing = copy(3, keys, "OPTIONS (overwrite true)").replace("3 AS v", "1 / (3 - length('abc')) AS v");
        assert!(session.collect(&failing).await.is_err(), "{failing}");
        assert_eq!(sum().await, "3 2");
        session.collect(&copy(4, keys, "OPTIONS ('overwrite' 'true')")).await.unwrap();
        assert_eq!(sum().await, "4 1");
        assert_eq!(files(folder.path()).len(), 1);
        let folders = fs::read_dir(&place).unwrap().count();
        assert_eq!(folders, 1, "folders that were emptied are left");
    }
}
