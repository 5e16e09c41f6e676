//! Statements that write files: what fails or is given up leaves what was there before, and nothing else.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use warpcube_sql::{Session, SqlError};

use crate::support::{cpu, rows};

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
async fn before() -> (tempfile::TempDir, Session) {
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
    assert!(all.keys().all(|path| !path.to_string_lossy().contains(".partial")), "{:?}", all.keys());
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
        let is_there = || files(folder.path()).keys().any(|path| path.to_string_lossy().contains(".partial/"));
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
