//! Plans that travel: encoded in one session, run in another.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, tpch_query, write_ssb_parquet, write_tpch_parquet};
use warpcube_sql::{Connection, Place, Summary};

use crate::support::{cpu, emulated, rows, run};

const SSB_TABLES: [&str; 5] = ["lineorder", "customer", "supplier", "part", "date"];
const TPCH_SF: f64 = 0.01;
const TPCH_TABLES: [&str; 8] = ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"];

async fn register(session: &Connection, folder: &Path, tables: &[&str]) {
    for table in tables {
        let path = folder.join(format!("{table}.parquet"));
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&sql).await.unwrap();
    }
}

/// Runs a statement in `receiver` by the plan that `sender` makes of it.
async fn sent(sender: &Connection, receiver: &Connection, sql: &str) -> Result<(Vec<RecordBatch>, Summary), String> {
    let bytes = sender.encode_plan(sql).await.map_err(|error| error.to_string())?;
    received(receiver, &bytes).await
}

async fn received(receiver: &Connection, bytes: &[u8]) -> Result<(Vec<RecordBatch>, Summary), String> {
    let execution = receiver.run_encoded(bytes).await.map_err(|error| error.to_string())?;
    let report = execution.report.clone();
    let batches = execution.collect().await.map_err(|error| error.to_string())?;
    Ok((batches, report.summary()))
}

fn places(summary: &Summary) -> Vec<Place> {
    summary.fragments.iter().map(|fragment| fragment.place).collect()
}

/// Names and types.
fn columns(batches: &[RecordBatch]) -> Vec<(String, DataType)> {
    let schema = batches[0].schema();
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// Writes what a query gives as a Parquet file.
async fn write(query: &str, path: &Path) {
    cpu().collect(&format!("COPY ({query}) TO '{}' STORED AS PARQUET", path.display())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_lowered_for_the_session_that_receives_it() {
    let folder = tempfile::tempdir().unwrap();
    write_ssb_parquet(folder.path(), 0.01, &WriteOptions::default(), &NoProgress).unwrap();
    let (sender, planner) = (emulated(), cpu());
    register(&sender, folder.path(), &SSB_TABLES).await;
    register(&planner, folder.path(), &SSB_TABLES).await;
    // Neither has a table in its catalog.
    let (device, host) = (emulated(), cpu());
    for (name, sql) in SSB_QUERIES.iter().step_by(3) {
        let expected = rows(&planner.collect(sql).await.unwrap());
        for sender in [&sender, &planner] {
            let (found, summary) = sent(sender, &device, sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(rows(&found), expected, "{name} on the device");
            assert_eq!(places(&summary), [Place::Gpu], "{name} on the device");
            let (found, summary) = sent(sender, &host, sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(rows(&found), expected, "{name} on the CPU");
            assert_eq!(places(&summary), [], "{name} on the CPU");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_tpch_travels() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch_parquet(folder.path(), TPCH_SF, &WriteOptions::default(), &NoProgress).unwrap();
    let (sender, receiver) = (cpu(), cpu());
    register(&sender, folder.path(), &TPCH_TABLES).await;
    for number in 1..=22 {
        let sql = &tpch_query(number, TPCH_SF).unwrap();
        let expected = rows(&sender.collect(sql).await.unwrap());
        let (found, _) = sent(&sender, &receiver, sql).await.unwrap_or_else(|error| panic!("q{number}: {error}"));
        assert_eq!(rows(&found), expected, "q{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_limits_and_subqueries_travel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write("SELECT value % 7 AS k, value AS v, chr(97 + value % 3) AS s FROM generate_series(1, 1000)", &path).await;
    let text = folder.path().join("lines.tbl");
    std::fs::write(&text, "1|one|\n2|two|\n3|three|\n").unwrap();
    let device = emulated();
    let (sender, reference) = (emulated(), cpu());
    for session in [&sender, &reference] {
        session
            .collect(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display()))
            .await
            .unwrap();
        session.collect("CREATE VIEW w AS SELECT k, v * 2 AS twice FROM t WHERE v > 10").await.unwrap();
        let lines = format!(
            "CREATE EXTERNAL TABLE lines (number BIGINT, word VARCHAR) STORED AS TBL LOCATION '{}'",
            text.display()
        );
        session.collect(&lines).await.unwrap();
    }
    let by_path = format!("SELECT max(v) FROM '{}'", path.display());
    for sql in [
        by_path.as_str(),
        "SELECT k, sum(v + 1), count(DISTINCT s) AS \"how Many\" FROM t GROUP BY k ORDER BY k LIMIT 3",
        "SELECT v FROM t ORDER BY v DESC LIMIT 4 OFFSET 2",
        "SELECT count(*) FROM (SELECT * FROM t LIMIT 10)",
        "SELECT sum(v) FROM t WHERE v > (SELECT avg(v) FROM t)",
        "SELECT k, sum(twice) FROM w GROUP BY k HAVING sum(twice) > 100000",
        "SELECT count(*) FROM t WHERE k NOT IN (SELECT v FROM t WHERE v < 4)",
        "SELECT sum(number), max(word) FROM lines WHERE number <> 2",
        "SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t WHERE v < 20",
        "WITH c AS (SELECT k, sum(v) AS n FROM t GROUP BY k) SELECT sum(a.n * b.k) FROM c a JOIN c b ON a.k = b.k + 1",
        "WITH c AS (SELECT s, max(v) AS n FROM t GROUP BY s), d AS (SELECT n % 5 AS m FROM c GROUP BY 1) \
         SELECT (SELECT sum(n) FROM c), (SELECT max(m) FROM d WHERE m < (SELECT max(m) FROM d))",
        "WITH c AS (SELECT v, random() AS x FROM t LIMIT 50) \
         SELECT count(*) FROM c a JOIN c b ON a.v = b.v AND a.x = b.x",
        "SELECT count(*) FROM t WHERE DATE '2020-01-01' + INTERVAL '1' DAY > DATE '2020-01-01' AND s LIKE 'a%'",
    ] {
        let (expected, _) = run(&reference, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (found, _) = sent(&sender, &device, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(columns(&found), columns(&expected), "{sql}");
        assert_eq!(rows(&found), rows(&expected), "{sql}");
    }
}

/// What has another value each time is no constant, whose overflow is looked for before a plan travels.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volatile_functions_travel() {
    let (sender, receiver) = (cpu(), cpu());
    let sql = "SELECT CAST(random() * 10 AS BIGINT) + 1 > 0 AS positive";
    let bytes = sender.encode_plan(sql).await.unwrap();
    assert!(rows(&received(&receiver, &bytes).await.unwrap().0).contains(&"| true     |".to_string()));
    // It is checked where it runs.
    let overflow = sender.collect("SELECT CAST(random() AS BIGINT) + 9223372036854775807 + 1").await.unwrap_err();
    assert!(overflow.to_string().contains("overflow"), "{overflow}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_tables_are_those_of_the_receiver() {
    let (sender, receiver) = (emulated(), emulated());
    sender.collect("CREATE TABLE m (a BIGINT, b VARCHAR) AS VALUES (1, 'x'), (2, 'y')").await.unwrap();
    let bytes = sender.encode_plan("SELECT sum(a) AS s FROM m").await.unwrap();
    let none = received(&receiver, &bytes).await.unwrap_err();
    assert!(none.starts_with("SQL-014 ") && none.contains("table 'm'") && none.contains("a Int64"), "{none}");
    assert!(none.contains("found none"), "{none}");
    receiver.collect("CREATE TABLE m (a INT, b VARCHAR) AS VALUES (5, 'x')").await.unwrap();
    let other = received(&receiver, &bytes).await.unwrap_err();
    assert!(other.starts_with("SQL-014 ") && other.contains("found (a Int32, b "), "{other}");
    receiver.collect("DROP TABLE m").await.unwrap();
    receiver.collect("CREATE TABLE m (a BIGINT, b VARCHAR) AS VALUES (5, 'x'), (6, 'z')").await.unwrap();
    let (found, summary) = received(&receiver, &bytes).await.unwrap();
    assert_eq!((rows(&found)[0].as_str(), places(&summary)), ("| 11 |", vec![Place::Gpu]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_what_they_were_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, many) = (folder.path().join("one.parquet"), folder.path().join("many"));
    std::fs::create_dir(&many).unwrap();
    let rows_of = "SELECT value AS a, value AS b FROM generate_series(1, 10)";
    write(rows_of, &one).await;
    write(rows_of, &many.join("part.parquet")).await;
    let (sender, receiver) = (cpu(), cpu());
    let file = sender.encode_plan(&format!("SELECT sum(b) AS s FROM '{}'", one.display())).await.unwrap();
    let parts = sender.encode_plan(&format!("SELECT sum(b) AS s FROM '{}/'", many.display())).await.unwrap();
    for bytes in [&file, &parts] {
        assert_eq!(rows(&received(&receiver, bytes).await.unwrap().0)[0], "| 55 |");
    }
    // More rows of the same columns are the file there is now.
    std::fs::remove_file(&one).unwrap();
    write("SELECT value AS a, value AS b FROM generate_series(1, 20)", &one).await;
    assert_eq!(rows(&received(&receiver, &file).await.unwrap().0)[0], "| 210 |");
    std::fs::remove_file(&one).unwrap();
    write("SELECT value AS a FROM generate_series(1, 10)", &one).await;
    let changed = received(&receiver, &file).await.unwrap_err();
    assert!(changed.starts_with("SQL-014 ") && changed.contains("column 'b'"), "{changed}");
    std::fs::remove_file(&one).unwrap();
    let gone = received(&receiver, &file).await.unwrap_err();
    assert!(gone.starts_with("FILE-001 ") && gone.contains("one.parquet"), "{gone}");
    std::fs::remove_file(many.join("part.parquet")).unwrap();
    let empty = received(&receiver, &parts).await.unwrap_err();
    assert!(empty.starts_with("FILE-005 ") && empty.contains("many"), "{empty}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_files_are_read_alike_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = (cpu(), cpu());
    for (format, text) in [("CSV", "d\n1.005\n2.004\n"), ("JSON", "{\"d\":1.005}\n{\"d\":2.004}\n")] {
        let path = folder.path().join(format!("t.{}", format.to_lowercase()));
        std::fs::write(&path, text).unwrap();
        let location = path.display();
        let create =
            format!("CREATE EXTERNAL TABLE {format}_t (d DECIMAL(10, 2)) STORED AS {format} LOCATION '{location}'");
        sender.collect(&create).await.unwrap();
        let (found, _) = sent(&sender, &receiver, &format!("SELECT sum(d) AS s FROM {format}_t")).await.unwrap();
        assert_eq!(rows(&found)[0], "| 3.01 |", "{format}");
    }
}

/// Tables with a key that is NULL, or that a cast rounds, travel with their files, and without a table in the catalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_folders_are_read_alike_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = (cpu(), cpu());
    for format in ["CSV", "JSON", "PARQUET"] {
        let place = format!("{}/{}/", folder.path().display(), format.to_lowercase());
        let rows_of = "SELECT 1.005 AS v, '2024-01-01 12:00:00.7' AS k, 1 AS n UNION ALL SELECT 2.004, NULL, NULL";
        let copy = format!("COPY ({rows_of}) TO '{place}' STORED AS {format} PARTITIONED BY (k, n)");
        sender.collect(&copy).await.unwrap();
        let scale = if format == "PARQUET" { 3 } else { 2 };
        let create = format!(
            "CREATE EXTERNAL TABLE t_{format} (v DECIMAL(10, {scale}), k TIMESTAMP(0), n INT) STORED AS {format} \
             PARTITIONED BY (k, n) LOCATION '{place}'"
        );
        sender.collect(&create).await.unwrap();
        let sql = format!("SELECT v, k, n FROM t_{format} WHERE k IS NULL OR n = 1 ORDER BY v");
        let expected = rows(&sender.collect(&sql).await.unwrap());
        assert!(expected[0].contains("2024-01-01T12:00:01"), "{expected:?}");
        let (found, _) = sent(&sender, &receiver, &sql).await.unwrap_or_else(|error| panic!("{format}: {error}"));
        assert_eq!(rows(&found), expected, "{format}");
        std::fs::remove_dir_all(&place).unwrap();
        let gone = sent(&sender, &receiver, &sql).await.unwrap_err();
        assert!(gone.starts_with("FILE-"), "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_plan_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write("SELECT value AS v FROM generate_series(1, 10)", &path).await;
    let session = cpu();
    let bytes = session.encode_plan(&format!("SELECT sum(v) AS s FROM '{}'", path.display())).await.unwrap();
    let refused = async |bytes: &[u8]| {
        let error = received(&session, bytes).await.expect_err("bytes that are no plan");
        assert!(error.starts_with("SQL-014 "), "{error}");
        error
    };
    for end in (0..bytes.len()).step_by(7) {
        refused(&bytes[..end]).await;
    }
    assert!(refused(&bytes[..bytes.len() - 1]).await.contains("send all of them"));
    assert!(refused(b"SELECT 1").await.contains("Connection::encode_plan"));
    assert!(refused(&[0xff; 300]).await.contains("Connection::encode_plan"));
    assert!(refused(b"warpcube plan 0.0.0 0\n").await.contains("found one of 0.0.0"));
    let head = format!("warpcube plan {} 200\n", env!("CARGO_PKG_VERSION")).into_bytes();
    for nonsense in [[0u8; 200], [0xff; 200], [b'a'; 200]] {
        refused(&[head.clone(), nonsense.to_vec()].concat()).await;
    }
    // The session goes on.
    assert_eq!(rows(&received(&session, &bytes).await.unwrap().0)[0], "| 55 |");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_queries_travel() {
    let session = cpu();
    session.collect("CREATE TABLE m AS VALUES (1), (2)").await.unwrap();
    for sql in [
        "INSERT INTO m VALUES (3)",
        "CREATE TABLE other AS SELECT * FROM m",
        "COPY m TO 'never.parquet'",
        "EXPLAIN SELECT * FROM m",
        "EXPLAIN ANALYZE SELECT * FROM m",
        "SET warpcube.timeout = '1s'",
        "SHOW DEVICE TABLES",
        "SELECT * FROM m WHERE false",
    ] {
        let error = session.encode_plan(sql).await.expect_err(sql);
        assert_eq!(error.code(), "SQL-013", "{sql}: {error}");
    }
    let syntax = session.encode_plan("SELEC 1").await.unwrap_err();
    assert_eq!(syntax.code(), "SQL-001", "{syntax}");
}
