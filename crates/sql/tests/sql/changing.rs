//! Statements that change tables in memory, beside others and given up half-way: all or nothing, and what a statement
//! reports is what it has done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use warpcube_sql::{Connection, SqlError, StatementReport};

use crate::support::{cpu, one, run};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long work that was let go may go on.
const LINGER: Duration = Duration::from_millis(500);

/// A table of so many rows with a key, all of whose values are 0.
async fn table(rows: u32) -> Connection {
    let session = cpu();
    session.collect("CREATE TABLE t(k BIGINT PRIMARY KEY, v BIGINT)").await.unwrap();
    session.collect(&format!("INSERT INTO t SELECT value, 0 FROM generate_series(1, {rows})")).await.unwrap();
    session
}

async fn values(session: &Connection) -> String {
    one(session, "SELECT count(*), min(v), max(v) FROM t").await.0
}

/// A switch says whether it came in time, and then nothing has changed, now and later, even where the statement's task
/// goes on for a while; otherwise the statement gives its result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_cancelled_or_done() {
    let session = table(30_000).await;
    let mut value = 0;
    let (mut cancelled, mut done) = (0, 0);
    for microseconds in (0..40).map(|step| step * step * 400) {
        for statement in ["UPDATE t SET v = $", "UPDATE t SET k = k + 1, v = $ RETURNING v"] {
            let sql = statement.replace('$', &(value + 1).to_string());
            let report = StatementReport::new();
            let task = tokio::spawn({
                let (session, report) = (session.clone(), report.clone());
                async move { session.execute_with(&sql, report).await?.collect().await.map(|_| ()) }
            });
            tokio::time::sleep(Duration::from_micros(microseconds)).await;
            if report.cancel().cancel() {
                task.abort();
                cancelled += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            } else {
                task.await.unwrap().unwrap();
                (value, done) = (value + 1, done + 1);
            }
            assert_eq!(
                values(&session).await,
                format!("30000 {value} {value}"),
                "after {microseconds} µs: {statement}"
            );
        }
        if done > 5 && cancelled > 5 {
            break;
        }
    }
    tokio::time::sleep(LINGER).await;
    assert_eq!(values(&session).await, format!("30000 {value} {value}"));
    assert!(cancelled > 0, "every statement was done before it was cancelled");
    // Keys are those of the rows.
    session.collect("UPDATE t SET k = -k").await.unwrap();
    assert_eq!(one(&session, "SELECT max(k) < 0 FROM t").await.0, "true");
}

/// A time-out of the session: what is out of time has changed nothing, whatever its task still does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_out_of_time_changes_nothing() {
    let session = table(100_000).await;
    let (mut value, mut late) = (0, 0);
    for milliseconds in [1, 2, 5, 10, 20, 40, 60, 80, 120, 160, 250, 400] {
        for statement in [
            "UPDATE t SET v = $",
            "UPDATE t SET v = $ RETURNING v",
            "CREATE OR REPLACE TABLE t AS SELECT k, $ AS v FROM t",
        ] {
            session.set("warpcube.timeout", &format!("{milliseconds}ms")).unwrap();
            let result = session.collect(&statement.replace('$', &(value + 1).to_string())).await;
            session.set("warpcube.timeout", "off").unwrap();
            match result {
                Ok(_) => value += 1,
                Err(SqlError::TimedOut { .. }) => late += 1,
                Err(error) => panic!("{statement}\n{error}"),
            }
            assert_eq!(values(&session).await, format!("100000 {value} {value}"), "{milliseconds} ms: {statement}");
        }
    }
    tokio::time::sleep(LINGER).await;
    assert_eq!(values(&session).await, format!("100000 {value} {value}"));
    assert!(late > 0, "no statement was out of time");
}

/// A statement that waits for another's changes can be cancelled, and the next one gets the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_waits_for_a_table_can_be_given_up() {
    let session = table(1_000).await;
    // Locked from its start on: it was not polled.
    let first = session.execute("UPDATE t SET v = v + 1").await.unwrap();
    session.set("warpcube.timeout", "100ms").unwrap();
    for sql in [
        "UPDATE t SET v = v + 10",
        "DELETE FROM t",
        "INSERT INTO t VALUES (-1, 0)",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS v",
    ] {
        let error = session.collect(sql).await.unwrap_err();
        assert!(matches!(error, SqlError::TimedOut { .. }), "{sql}: {error}");
    }
    session.set("warpcube.timeout", "off").unwrap();
    let report = StatementReport::new();
    let waiting = tokio::spawn({
        let (session, report) = (session.clone(), report.clone());
        async move { session.execute_with("DELETE FROM t", report).await?.collect().await.map(|_| ()) }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(report.cancel().cancel());
    assert!(matches!(waiting.await.unwrap(), Err(SqlError::Cancelled)));
    let second = tokio::spawn({
        let session = session.clone();
        async move { session.collect("UPDATE t SET v = v + 100").await.map(|_| ()) }
    });
    first.collect().await.unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(values(&session).await, "1000 101 101");
    // One that is dropped lets go of the table, and has changed nothing.
    drop(session.execute("UPDATE t SET v = 0").await.unwrap());
    session.collect("UPDATE t SET v = v + 1").await.unwrap();
    assert_eq!(values(&session).await, "1000 102 102");
}

/// No change of one of two writers is lost, and each reads whole versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_writers_and_a_reader() {
    const ROUNDS: usize = 30;
    let session = table(500).await;
    let writer = |name: i64| {
        let session = session.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS as i64 {
                session.collect("UPDATE t SET v = v + 1").await.unwrap();
                let key = 1_000_000 * name + round;
                session.collect(&format!("INSERT INTO t SELECT {key}, min(v) FROM t")).await.unwrap();
                session.collect(&format!("DELETE FROM t WHERE k = {key}")).await.unwrap();
            }
        })
    };
    let reader = tokio::spawn({
        let session = session.clone();
        async move {
            for _ in 0..ROUNDS {
                let found =
                    one(&session, "SELECT count(DISTINCT v), count(*) BETWEEN 500 AND 502 FROM t WHERE k <= 500")
                        .await
                        .0;
                assert_eq!(found, "1 true");
            }
        }
    });
    let writers = [writer(1), writer(2)];
    for writer in writers {
        writer.await.unwrap();
    }
    reader.await.unwrap();
    assert_eq!(values(&session).await, format!("500 {0} {0}", 2 * ROUNDS));
}

/// A table that is replaced by what a query reads of it loses no row that an INSERT has counted. There is a table of
/// the name at any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_that_is_replaced_while_rows_come() {
    let session = cpu();
    session.collect("CREATE TABLE t(k BIGINT, v BIGINT)").await.unwrap();
    let writers: Vec<_> = (0..2)
        .map(|writer: i64| {
            let session = session.clone();
            tokio::spawn(async move {
                let mut inserted = 0;
                for round in 0..100 {
                    match run(&session, &format!("INSERT INTO t VALUES ({writer}, {round})")).await {
                        Ok(_) => inserted += 1,
                        Err(error) => assert!(error.contains("it has been dropped or replaced"), "{error}"),
                    }
                }
                inserted
            })
        })
        .collect();
    let reader = tokio::spawn({
        let session = session.clone();
        async move {
            let (mut before, clock) = (0, Instant::now());
            for round in 0..200 {
                // A text that is new is planned anew.
                let found = one(&session, &format!("SELECT count(*) FROM t WHERE v <> -{round} - 1")).await.0;
                let found: u64 = found.parse().unwrap();
                assert!(found >= before && clock.elapsed() < PATIENCE, "{found} after {before}");
                before = found;
            }
        }
    });
    for _ in 0..60 {
        session.collect("CREATE OR REPLACE TABLE t AS SELECT * FROM t").await.unwrap();
    }
    let mut inserted = 0;
    for writer in writers {
        inserted += writer.await.unwrap();
    }
    reader.await.unwrap();
    assert_eq!(one(&session, "SELECT count(*) FROM t").await.0, inserted.to_string());
}

/// Changes of a few rows of a table with keys cost about these rows, also behind a statement that has failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_cost_what_changes() {
    let session = cpu();
    session.collect("CREATE TABLE t(k BIGINT PRIMARY KEY, u BIGINT UNIQUE, v BIGINT)").await.unwrap();
    let clock = Instant::now();
    let fill = "INSERT INTO t SELECT value, CASE WHEN value % 2 = 0 THEN value END, 0 FROM generate_series(1, 300000)";
    session.collect(fill).await.unwrap();
    let whole = clock.elapsed();
    let clock = Instant::now();
    for round in 0..20 {
        let (new, known) = (1_000_000 + round, 1 + round);
        // The first row is new, and taken back with the second.
        let error =
            run(&session, &format!("INSERT INTO t VALUES ({new}, NULL, 0), ({known}, NULL, 0)")).await.unwrap_err();
        assert!(error.contains("its key is there already (PRIMARY KEY (k))"), "{error}");
        session.collect(&format!("INSERT INTO t VALUES ({new}, -{new}, 0)")).await.unwrap();
        let error = run(&session, &format!("UPDATE t SET u = -{new} WHERE k = {known}")).await.unwrap_err();
        assert!(error.contains("its key is there already (UNIQUE (u))"), "{error}");
        session.collect(&format!("UPDATE t SET v = v + 1 WHERE k = {known}")).await.unwrap();
        session.collect(&format!("UPDATE t SET k = -k WHERE k IN ({new}, {known})")).await.unwrap();
        session.collect(&format!("DELETE FROM t WHERE k = -{new}")).await.unwrap();
        session.collect(&format!("INSERT INTO t VALUES ({known}, -{new}, 0)")).await.unwrap();
    }
    let changes = clock.elapsed();
    assert_eq!(one(&session, "SELECT count(*), count(u), min(k), sum(v) FROM t").await.0, "300020 150020 -20 20");
    // Each of seven statements reads all rows; keys of all rows were made by most of them once.
    assert!(changes < whole * 30, "{changes:?} for 140 changes of a row, {whole:?} for all rows");
}

/// A COPY that waits for its folder changes nothing once it is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_waits_for_its_folder_can_be_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (session, place) = (cpu(), folder.path().join("out"));
    std::fs::create_dir(&place).unwrap();
    let sql = format!("COPY (SELECT 1 AS a) TO '{}/' STORED AS PARQUET", place.display());
    let files = || {
        std::fs::read_dir(&place)
            .unwrap()
            .filter(|entry| !entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    for way in ["switch", "timeout", "drop"] {
        let lock = std::fs::File::open(&place).unwrap();
        lock.lock().unwrap();
        if way == "timeout" {
            session.set("warpcube.timeout", "3s").unwrap();
        }
        let report = StatementReport::new();
        let mut running = session.execute_with(&sql, report.clone()).await.unwrap().stream;
        let first = tokio::time::timeout(Duration::from_millis(200), running.next()).await;
        assert!(first.is_err(), "{way}: {first:?}");
        match way {
            "switch" => assert!(report.cancel().cancel()),
            "timeout" => assert!(running.next().await.unwrap().unwrap_err().to_string().contains("timed out")),
            _ => {}
        }
        drop(running);
        drop(lock);
        session.set("warpcube.timeout", "off").unwrap();
        tokio::time::sleep(LINGER).await;
        assert_eq!(files(), 0, "{way}");
    }
    session.collect(&sql).await.unwrap();
    assert_eq!(files(), 1);
}

/// A definition is cancelled or done, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_and_definitions_commit() {
    let session = cpu();
    for sql in [
        "SET warpcube.overflow = 'wrap'",
        "RESET warpcube.overflow",
        "CREATE VIEW w AS SELECT 1 AS a",
        "CREATE SCHEMA s",
        "PREPARE p AS SELECT 1",
    ] {
        let report: Arc<StatementReport> = StatementReport::new();
        session.execute_with(sql, report.clone()).await.unwrap();
        assert!(!report.cancel().cancel(), "{sql}");
    }
    let report = StatementReport::new();
    session.execute_with("SELECT 1", report.clone()).await.unwrap();
    assert!(report.cancel().cancel());
}
