//! The same statement after what it reads, or what it means, has changed: right each time, on the device and on the
//! CPU.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as Location;
use datafusion::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use datafusion::prelude::ParquetReadOptions;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use warpcube_sql::{Connection, Place};

use crate::support::{cpu, emulated, one, run, settle};

/// A session of each kind, with where its fragments have to run.
fn sessions() -> [(Connection, Vec<Place>); 2] {
    [(cpu(), vec![]), (emulated(), vec![Place::Gpu])]
}

/// Writes what a query gives as a file, in one step: a file of that name is replaced by another.
async fn write(query: &str, path: &Path) {
    let fresh = path.with_extension("fresh.parquet");
    let copy = format!("COPY ({query}) TO '{}' STORED AS PARQUET", fresh.display());
    cpu().collect(&copy).await.unwrap();
    std::fs::rename(&fresh, path).unwrap();
}

/// Asks twice: the second time with the plan and the columns of the first.
async fn asks((session, places): &(Connection, Vec<Place>), sql: &str, expected: &str) {
    for _ in 0..2 {
        assert_eq!(one(session, sql).await, (expected.to_string(), places.clone()), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_behind_every_name_it_has() {
    for session in sessions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let ask = async |expected: &str| {
            let file = path.display().to_string();
            for from in ["t".to_string(), "v".to_string(), format!("'{file}'")] {
                asks(&session, &format!("SELECT count(*), max(a), min(b) FROM {from}"), expected).await;
            }
            asks(&session, "EXECUTE p", expected).await;
        };
        write("SELECT value AS a, value * 2 AS b FROM generate_series(1, 3000)", &path).await;
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
        session.0.collect(&create).await.unwrap();
        session.0.collect("CREATE VIEW v AS SELECT b, a FROM t").await.unwrap();
        session.0.collect("PREPARE p AS SELECT count(*), max(a), min(b) FROM t").await.unwrap();
        ask("3000 3000 2").await;
        // As many rows of the same types.
        write("SELECT value + 5 AS a, value * 3 AS b FROM generate_series(1, 3000)", &path).await;
        ask("3000 3005 3").await;
        // Fewer rows.
        write("SELECT value AS a, value AS b FROM generate_series(7, 90)", &path).await;
        ask("84 90 7").await;
        // Other types, and the columns in another order.
        write("SELECT value + 0.5 AS b, 'text ' || value AS a, 1 AS c FROM generate_series(1, 9)", &path).await;
        ask("9 text 9 1.5").await;
        // Text where there was a number, a date where there was text.
        write("SELECT 'x' AS b, DATE '2024-02-29' AS a FROM generate_series(1, 3)", &path).await;
        ask("3 2024-02-29 x").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_behind_its_path() {
    for session in sessions() {
        let folder = tempfile::tempdir().unwrap();
        let (csv, parquet) = (folder.path().join("x.csv"), folder.path().join("x.parquet"));
        let pattern = format!("{}/*.csv", folder.path().display());
        let sources = [csv.display().to_string(), pattern, parquet.display().to_string()];
        let mut statements = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let definitions = [
                format!("CREATE VIEW v{number} AS SELECT * FROM '{source}'"),
                format!("CREATE VIEW w{number} AS SELECT b, a FROM v{number} WHERE a > 0"),
                format!("PREPARE p{number} AS SELECT sum(a) FROM '{source}'"),
                format!("PREPARE q{number} AS SELECT sum(a) FROM '{source}' WHERE b > $1"),
                format!("PREPARE r{number} AS SELECT sum(a) FROM w{number} WHERE b > $1"),
            ];
            // Text, shape and template of each.
            let asked = [
                format!("SELECT sum(a) FROM v{number}"),
                format!("SELECT sum(a) FROM w{number} WHERE b > 0"),
                format!("WITH x AS (SELECT DISTINCT a FROM w{number}) SELECT sum(p.a) FROM x p JOIN x q ON p.a = q.a"),
                format!("SELECT sum(a) FROM w{number} WHERE a IN (SELECT a FROM v{number})"),
                format!("SELECT sum(a) FROM '{source}'"),
                format!("EXECUTE p{number}"),
                format!("EXECUTE q{number}(0)"),
                format!("EXECUTE r{number}(0)"),
            ];
            statements.push((definitions, asked));
        }
        for (header, rows, sum) in
            [("a,b", "1,10\n2,20", "3"), ("b,a", "1,10\n2,20", "30"), ("b,a", "7,40\n8,50", "90")]
        {
            let fresh = folder.path().join("fresh");
            std::fs::write(&fresh, format!("{header}\n{rows}\n")).unwrap();
            std::fs::rename(&fresh, &csv).unwrap();
            write(&format!("SELECT * FROM '{}'", csv.display()), &parquet).await;
            for (definitions, asked) in &statements {
                for definition in definitions.iter().filter(|_| sum == "3") {
                    session.0.collect(definition).await.unwrap();
                }
                for sql in asked {
                    for _ in 0..2 {
                        assert_eq!(one(&session.0, sql).await.0, sum, "{sql}");
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_of_a_table_that_a_program_registered() {
    for session in sessions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write("SELECT value AS a FROM generate_series(1, 3)", &path).await;
        let file = path.display().to_string();
        session.0.context().register_parquet("t", &file, ParquetReadOptions::default()).await.unwrap();
        asks(&session, "SELECT sum(a) FROM t", "6").await;
        write("SELECT value AS a FROM generate_series(11, 13)", &path).await;
        asks(&session, "SELECT sum(a) FROM t", "36").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_join_a_folder_and_leave_it() {
    for session in sessions() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(format!("t/{name}.parquet"));
        std::fs::create_dir(folder.path().join("t")).unwrap();
        let rows = |from: usize, to: usize| format!("SELECT value AS a, value AS b FROM generate_series({from}, {to})");
        write(&rows(1, 10), &path("one")).await;
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/t'", folder.path().display());
        session.0.collect(&create).await.unwrap();
        session.0.collect("CREATE VIEW v AS SELECT b, a FROM t WHERE a > 0").await.unwrap();
        let ask = async |expected: &str| {
            let file = format!("'{}/t/*.parquet'", folder.path().display());
            for from in ["t", "v", file.as_str()] {
                asks(&session, &format!("SELECT count(*), max(a), min(b) FROM {from}"), expected).await;
            }
        };
        ask("10 10 1").await;
        write(&rows(11, 15), &path("two")).await;
        ask("15 15 1").await;
        std::fs::remove_file(path("one")).unwrap();
        ask("5 15 11").await;
        // One comes as another goes.
        std::fs::rename(path("two"), path("three")).unwrap();
        write(&rows(100, 100), &path("one")).await;
        ask("6 100 11").await;
        std::fs::remove_file(path("one")).unwrap();
        std::fs::remove_file(path("three")).unwrap();
        asks(&session, "SELECT count(*), max(a), min(b) FROM t", "0 NULL NULL").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_dropped_and_made_again_with_other_types() {
    for session in sessions() {
        session.0.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
        session.0.collect("CREATE VIEW v AS SELECT column2 AS b, column1 AS a FROM t").await.unwrap();
        session.0.collect("PREPARE p AS SELECT count(*), max(column1), min(column2) FROM t").await.unwrap();
        let ask = async |expected: &str| {
            asks(&session, "SELECT count(*), max(column1), min(column2) FROM t", expected).await;
            asks(&session, "SELECT count(*), max(a), min(b) FROM v", expected).await;
            asks(&session, "EXECUTE p", expected).await;
        };
        ask("2 2 10").await;
        let tables = [
            ("VALUES ('one', 1.5), ('two', 2.5), ('three', NULL)", "3 two 1.5"),
            ("VALUES (DATE '2020-01-01', true), (DATE '2021-01-01', false)", "2 2021-01-01 false"),
            ("VALUES (arrow_cast(7, 'UInt8'), arrow_cast('1.25', 'Decimal128(9, 2)'))", "1 7 1.25"),
            ("VALUES (arrow_cast('a', 'Dictionary(Int32, Utf8)'), arrow_cast(-0.5, 'Float32'))", "1 a -0.5"),
            ("VALUES (1, 10), (2, 20)", "2 2 10"),
        ];
        for (values, expected) in tables {
            session.0.collect("DROP TABLE t").await.unwrap();
            session.0.collect(&format!("CREATE TABLE t AS {values}")).await.unwrap();
            ask(expected).await;
        }
        session.0.collect("CREATE OR REPLACE TABLE t AS VALUES ('x', 'y')").await.unwrap();
        ask("1 x y").await;
        // A view of the same name.
        session.0.collect("DROP TABLE t").await.unwrap();
        session.0.collect("CREATE TABLE u AS VALUES (5, 6)").await.unwrap();
        session.0.collect("CREATE VIEW t AS SELECT column2 AS column1, column1 AS column2 FROM u").await.unwrap();
        ask("1 6 5").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_join_a_table_in_memory_change_and_leave() {
    for session in sessions() {
        session.0.collect("CREATE TABLE t (a INT, s VARCHAR)").await.unwrap();
        session.0.collect("CREATE VIEW v AS SELECT s, a FROM t").await.unwrap();
        session.0.collect("CREATE VIEW w AS SELECT a * 2 AS twice, s FROM v").await.unwrap();
        let ask = async |expected: &str, twice: &str| {
            asks(&session, "SELECT count(*), sum(a), max(s) FROM t", expected).await;
            asks(&session, "SELECT count(*), sum(a), max(s) FROM v", expected).await;
            asks(&session, "SELECT sum(twice) FROM w", twice).await;
        };
        ask("0 NULL NULL", "NULL").await;
        session.0.collect("INSERT INTO t VALUES (1, 'a'), (2, 'b')").await.unwrap();
        ask("2 3 b", "6").await;
        session.0.collect("INSERT INTO t SELECT a + 10, 'z' FROM t").await.unwrap();
        ask("4 26 z", "52").await;
        session.0.collect("UPDATE t SET a = a + 1 WHERE s = 'z'").await.unwrap();
        ask("4 28 z", "56").await;
        session.0.collect("DELETE FROM t WHERE s = 'z'").await.unwrap();
        ask("2 3 b", "6").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_zone_is_that_of_the_statement() {
    for session in sessions() {
        let create = "CREATE TABLE t AS SELECT arrow_cast(column1, 'Timestamp(Nanosecond, Some(\"UTC\"))') AS at, \
                      column2 AS n FROM (VALUES ('2024-01-01T00:30:00Z', 1), ('2024-01-01T12:00:00Z', 10), \
                      ('2023-12-31T20:00:00Z', 100))";
        session.0.collect(create).await.unwrap();
        session
            .0
            .collect("CREATE VIEW v AS SELECT n FROM t WHERE at >= TIMESTAMPTZ '2024-01-01 00:00:00'")
            .await
            .unwrap();
        session
            .0
            .collect("PREPARE p AS SELECT sum(n) FROM t WHERE at >= TIMESTAMPTZ '2024-01-01 00:00:00'")
            .await
            .unwrap();
        let zones = [("+00:00", "11"), ("+05:00", "111"), ("-02:00", "10"), ("+00:00", "11")];
        for (zone, expected) in zones {
            session.0.collect(&format!("SET TIME ZONE = '{zone}'")).await.unwrap();
            asks(&session, "SELECT sum(n) FROM t WHERE at >= TIMESTAMPTZ '2024-01-01 00:00:00'", expected).await;
            asks(&session, "SELECT sum(n) FROM v", expected).await;
            asks(&session, "EXECUTE p", expected).await;
        }
    }
}

/// Two threads ask so many times each; every answer is one of these, or the error of files that change all the time.
async fn two_threads(session: &Connection, sql: &'static str, times: usize, known: &[String]) {
    let ask = || {
        let (session, known) = (session.clone(), known.to_vec());
        tokio::spawn(async move {
            for _ in 0..times {
                match run(&session, sql).await {
                    Ok((batches, _)) => {
                        let found = crate::format::rows(&batches)[0].join(" ");
                        assert!(known.contains(&found), "{found} is none of {known:?}");
                    }
                    Err(error) => assert!(known.len() > 1 && error.starts_with("COL-003 "), "{error}"),
                }
            }
        })
    };
    for thread in [ask(), ask()] {
        thread.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_threads_ask_for_what_changes() {
    const QUERY: &str = "SELECT count(*), max(a), min(b) FROM t";
    let version =
        |first: usize| format!("SELECT value + {first} AS a, value + {first} AS b FROM generate_series(1, 2000)");
    let answer = |first: usize| format!("2000 {} {}", 2000 + first, 1 + first);
    for (session, _) in sessions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write(&version(0), &path).await;
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&create).await.unwrap();
        for first in 0..3 {
            write(&version(first), &path).await;
            two_threads(&session, QUERY, 4, &[answer(first)]).await;
        }
        if session.database().device().gpu().is_none() {
            continue;
        }
        // Replaced while they ask: the device has the columns of one version or the other, never some of both.
        let known: Vec<String> = (2..8).map(answer).collect();
        let asking = two_threads(&session, QUERY, 20, &known);
        let replacing = async {
            for first in 3..8 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                write(&version(first), &path).await;
            }
        };
        tokio::join!(asking, replacing);
        assert_eq!(one(&session, QUERY).await.0, answer(7));
    }
}

/// The files of a folder; those in `swaps` take the place of `t.parquet`, one at each of the next reads of it.
#[derive(Debug)]
struct Swapping {
    files: LocalFileSystem,
    folder: PathBuf,
    swaps: Mutex<Vec<PathBuf>>,
}

impl fmt::Display for Swapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.files)
    }
}

#[async_trait]
impl ObjectStore for Swapping {
    async fn put_opts(&self, to: &Location, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.files.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Location,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Location, options: GetOptions) -> StoreResult<GetResult> {
        if !options.head
            && let Some(next) = self.swaps.lock().pop()
        {
            std::fs::rename(next, self.folder.join("t.parquet")).unwrap();
        }
        self.files.get_opts(from, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Location>>,
    ) -> BoxStream<'static, StoreResult<Location>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> StoreResult<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> StoreResult<()> {
        self.files.copy_opts(from, to, options).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_while_it_is_loaded_is_loaded_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    // Of all versions column a and column b are alike, and as long.
    let version =
        |first: usize| format!("SELECT value + {first} AS a, value + {first} AS b FROM generate_series(1, 2000)");
    for swaps in 1..=3usize {
        let session = emulated();
        let files = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let store = Arc::new(Swapping { files, folder: folder.path().into(), swaps: Mutex::default() });
        let url = "swapping://files/".parse().unwrap();
        session.context().runtime_env().register_object_store(&url, store.clone());
        write(&version(0), &path).await;
        let create = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'swapping://files/t.parquet'";
        session.collect(create).await.unwrap();
        // One column is on the device, the other is not.
        assert_eq!(one(&session, "SELECT max(a) FROM t").await, ("2000".into(), vec![Place::Gpu]));
        let mut next = Vec::new();
        for swap in (1..=swaps).rev() {
            let fresh = folder.path().join(format!("next{swap}"));
            write(&version(swap), &fresh).await;
            next.push(fresh);
        }
        *store.swaps.lock() = next;
        let sql = "SELECT count(*), max(a), min(b), sum(a - b) FROM t";
        let left = || store.swaps.lock().len();
        match run(&session, sql).await {
            Ok((batches, _)) => {
                let found = crate::format::rows(&batches)[0].join(" ");
                let latest = swaps - left();
                assert_eq!(found, format!("2000 {} {} 0", 2000 + latest, 1 + latest), "after {latest} of {swaps}");
                assert!(latest > 0, "the file was not read");
            }
            Err(error) => {
                // Changed once, it is loaded again; changed while that is done too, it is an error.
                assert!(swaps > 1, "{error}");
                assert!(error.starts_with("COL-003 table 't' changed while it was loaded: "), "{error}");
            }
        }
        store.swaps.lock().clear();
        settle(&session).await;
        // The next statement sees the file there is.
        let last = (0..=swaps).rev().find(|swap| !folder.path().join(format!("next{swap}")).exists()).unwrap();
        assert_eq!(one(&session, sql).await.0, format!("2000 {} {} 0", 2000 + last, 1 + last));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_made_of_a_query_takes_null_in_all_columns() {
    let session = cpu();
    for sql in [
        "CREATE TABLE t (a INT NOT NULL, b INT)",
        "INSERT INTO t VALUES (1, 2)",
        "CREATE TABLE u AS SELECT a, b, 3 AS c, count(*) AS n FROM t GROUP BY 1, 2",
        "INSERT INTO u VALUES (NULL, NULL, NULL, NULL)",
        "CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS x",
        "CREATE OR REPLACE TABLE w AS SELECT * FROM u",
        "CREATE OR REPLACE TABLE w AS SELECT *, a + 1 AS d FROM w",
    ] {
        session.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    assert_eq!(one(&session, "SELECT count(*), count(a), count(c), sum(d) FROM w").await.0, "2 1 1 2");
    for (sql, expected) in [
        ("INSERT INTO t VALUES (NULL, 1)", "which is NOT NULL"),
        ("CREATE TABLE u AS SELECT 1 AS x", "SQL-004 Table 'u' already exists"),
        (
            "CREATE TABLE x AS SELECT t.a, u.a FROM t JOIN u USING (b)",
            "SQL-004 two columns of the table would be named",
        ),
        ("CREATE TABLE x AS SELECT 1 / (a - a) FROM t", "SQL-006 "),
        ("CREATE TABLE x AS SELECT * FROM nowhere", "SQL-002 "),
    ] {
        let error = session.collect(sql).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}\n{error}");
    }
    assert!(session.collect("SELECT * FROM x").await.is_err());
}
