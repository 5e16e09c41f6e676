//! Many connections to one database, from many threads: what they share, what is each one's own, and that none loses
//! rows, sees half of a change or takes a plan that another's settings have made.

use std::future::Future;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use warpcube_gpu::{Device, EmulatorFaults, EmulatorOptions};
use warpcube_sql::{Connection, Database, DatabaseOptions, Place, SqlError, StatementReport};

use crate::cancel::endless;
use crate::support::{cpu, emulated, lenient, rows, run};

fn is_shared_between_threads<T: Send + Sync + Clone + 'static>() {}

/// Runs work on threads of their own, each with a connection, all from the same moment on.
fn at_once<F: Future<Output = ()>>(database: &Database, threads: usize, work: impl Fn(usize, Connection) -> F + Sync) {
    is_shared_between_threads::<Database>();
    is_shared_between_threads::<Connection>();
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                barrier.wait();
                runtime.block_on(work(number, database.connect()));
            });
        }
    });
}

async fn collect(connection: &Connection, sql: &str) {
    connection.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
}

/// The first row of an answer.
async fn first(connection: &Connection, sql: &str) -> String {
    let (batches, _) = run(connection, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    crate::format::rows(&batches).first().map(|row| row.join(" ")).unwrap_or_default()
}

/// The first row of an answer, and whether the statement was planned for it.
async fn planned(connection: &Connection, sql: &str) -> (String, bool) {
    let (batches, summary) = run(connection, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    (crate::format::rows(&batches)[0].join(" "), summary.planned)
}

async fn error(connection: &Connection, sql: &str) -> String {
    run(connection, sql).await.map(|(batches, _)| rows(&batches)).unwrap_err()
}

/// The sources of databases: on the CPU, and on a device with every statement there that can be.
fn databases() -> [Database; 2] {
    [cpu().database().clone(), emulated().database().clone()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_connection_changes_others_see() {
    for database in databases() {
        let (a, b) = (database.connect(), database.connect());
        collect(&a, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 20000)").await;
        assert_eq!(first(&b, "SELECT count(*) FROM t").await, "20000");
        collect(&b, "CREATE VIEW w AS SELECT v FROM t WHERE v < 0").await;
        // A statement goes on with the version that it was planned over.
        let running = a.execute("SELECT v FROM t").await.unwrap();
        for sql in ["INSERT INTO t VALUES (-1)", "UPDATE t SET v = v - 1 WHERE v = -1", "DELETE FROM t WHERE v > 3"] {
            collect(&b, sql).await;
        }
        assert_eq!(first(&a, "SELECT count(*), min(v) FROM t").await, "4 -2");
        assert_eq!(first(&a, "SELECT v FROM w").await, "-2");
        let batches = running.collect().await.unwrap();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 20000);
        collect(&b, "DROP VIEW w; ".trim_end_matches("; ")).await;
        collect(&b, "DROP TABLE t").await;
        assert!(error(&a, "SELECT v FROM t").await.starts_with("SQL-00"), "the table is gone");
        collect(&a, "CREATE TABLE t AS VALUES ('x')").await;
        assert_eq!(first(&b, "SELECT column1 FROM t").await, "x");
        assert_eq!(database.tables(), [("t".to_string(), vec!["column1".to_string()])]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalogs_and_schemas_are_the_databases() {
    let database = cpu().database().clone();
    let (a, b) = (database.connect(), database.connect());
    for sql in ["CREATE DATABASE d", "CREATE SCHEMA d.s", "CREATE TABLE d.s.t AS VALUES (1), (2)"] {
        collect(&a, sql).await;
    }
    collect(&b, "UPDATE d.s.t SET column1 = column1 * 10").await;
    assert_eq!(first(&a, "SELECT sum(column1) FROM d.s.t").await, "30");
    assert!(error(&b, "CREATE DATABASE d").await.contains("already exists"));
    assert!(error(&b, "DROP SCHEMA d.s").await.contains("schema 's' holds t"));
    collect(&b, "DROP SCHEMA d.s CASCADE").await;
    assert!(error(&a, "SELECT * FROM d.s.t").await.starts_with("SQL-00"));
}

#[test]
fn writers_lose_no_rows() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 12;
    for database in databases() {
        let create = "CREATE TABLE t AS SELECT 0 AS n, 'counter' AS what";
        let keyed = "CREATE TABLE k (id INT PRIMARY KEY, writer INT)";
        at_once(&database, 1, |_, connection| async move {
            collect(&connection, create).await;
            collect(&connection, keyed).await;
        });
        at_once(&database, THREADS, |thread, connection| async move {
            collect(&connection, "PREPARE add AS INSERT INTO k VALUES ($1, $2)").await;
            for round in 0..ROUNDS {
                collect(&connection, "UPDATE t SET n = n + 1 WHERE what = 'counter'").await;
                collect(&connection, &format!("INSERT INTO t VALUES ({thread}, 'row')")).await;
                collect(&connection, &format!("EXECUTE add({}, {thread})", round * THREADS + thread)).await;
                if round % 4 == 3 {
                    collect(&connection, &format!("DELETE FROM t WHERE what = 'row' AND n = {thread}")).await;
                }
                // All threads want the key: one has it.
                let wanted = format!("INSERT INTO k VALUES ({}, {thread})", -1 - round as i64);
                if let Err(error) = run(&connection, &wanted).await {
                    assert!(error.contains("PRIMARY KEY"), "{error}");
                }
                first(&connection, "SELECT what, sum(n) FROM t GROUP BY what").await;
            }
        });
        at_once(&database, 1, |_, connection| async move {
            let all = THREADS * ROUNDS;
            let counter = first(&connection, "SELECT n FROM t WHERE what = 'counter'").await;
            assert_eq!(counter, all.to_string(), "every UPDATE counts");
            let left = first(&connection, "SELECT count(*) FROM t WHERE what = 'row'").await;
            assert_eq!(left, "0", "each thread has deleted its rows last");
            let keys = first(&connection, "SELECT count(*), count(DISTINCT id), sum(id) FROM k WHERE id >= 0").await;
            assert_eq!(keys, format!("{all} {all} {}", all * (all - 1) / 2));
            assert_eq!(first(&connection, "SELECT count(*) FROM k WHERE id < 0").await, ROUNDS.to_string());
        });
    }
}

#[test]
fn definitions_at_the_same_time_stand_once() {
    let database = cpu().database().clone();
    for round in 0..8 {
        at_once(&database, 6, |thread, connection| async move {
            collect(&connection, &format!("CREATE SCHEMA IF NOT EXISTS s{round}")).await;
            let table = format!("CREATE TABLE s{round}.t{thread} AS VALUES ({thread})");
            collect(&connection, &table).await;
            collect(&connection, &format!("CREATE TABLE IF NOT EXISTS one{round} (v INT)")).await;
            collect(&connection, &format!("INSERT INTO one{round} VALUES ({thread})")).await;
            collect(&connection, &format!("CREATE OR REPLACE TABLE r{round} AS VALUES ({thread})")).await;
            collect(&connection, &format!("CREATE OR REPLACE VIEW v{round} AS SELECT {thread} AS thread")).await;
            let made = run(&connection, &format!("CREATE TABLE once{round} AS VALUES ({thread})")).await;
            if let Err(error) = made {
                assert!(error.contains("already exists"), "{error}");
            }
        });
        at_once(&database, 1, |_, connection| async move {
            for thread in 0..6 {
                let found = first(&connection, &format!("SELECT * FROM s{round}.t{thread}")).await;
                assert_eq!(found, thread.to_string(), "a schema that is made twice keeps its tables");
            }
            assert_eq!(first(&connection, &format!("SELECT count(*), sum(v) FROM one{round}")).await, "6 15");
            for table in ["r", "v", "once"] {
                assert_eq!(first(&connection, &format!("SELECT count(*) FROM {table}{round}")).await, "1");
            }
        });
    }
}

#[test]
fn many_connections_read_on_many_threads() {
    let statements = [
        "SELECT k, sum(v), count(*) FROM t WHERE v > 10 GROUP BY k ORDER BY k",
        "SELECT k, sum(v), count(*) FROM t WHERE v > 5000 GROUP BY k ORDER BY k",
        "SELECT label, max(v) FROM t JOIN d ON t.k = d.k GROUP BY label ORDER BY label",
        "SELECT v FROM t ORDER BY v DESC LIMIT 3",
        "SELECT count(*) FROM t WHERE k IN (SELECT k FROM d WHERE label = 'd3')",
    ];
    for database in databases() {
        let connection = database.connect();
        let expected: Vec<_> = {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let table = "CREATE TABLE t AS SELECT value % 7 AS k, value AS v FROM generate_series(1, 9000)";
                collect(&connection, table).await;
                let table = "CREATE TABLE d AS SELECT value AS k, 'd' || value AS label FROM generate_series(0, 6)";
                collect(&connection, table).await;
                let mut expected = Vec::new();
                for sql in statements {
                    expected.push(rows(&connection.collect(sql).await.unwrap()));
                }
                expected
            })
        };
        at_once(&database, 6, |thread, own| {
            // Connections of their own, and one that two threads share.
            let connection = if thread < 4 { own } else { connection.clone() };
            let expected = &expected;
            async move {
                for round in 0..6 {
                    for number in 0..statements.len() {
                        let number = (number + thread) % statements.len();
                        let (found, _) = run(&connection, statements[number]).await.unwrap();
                        assert_eq!(rows(&found), expected[number], "{}", statements[number]);
                    }
                    if thread == round {
                        let other = format!("CREATE TABLE other{thread} AS VALUES ({thread})");
                        collect(&connection, &other).await;
                    }
                }
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_a_connections_or_the_databases() {
    let options = DatabaseOptions::new().with("warpcube.device", "cpu").with("warpcube.max_rows", "7");
    let database = Database::open(options).unwrap();
    let (a, b) = (database.connect(), database.connect());
    let shown = async |connection: &Connection, name: &str| first(connection, &format!("SHOW {name}")).await;
    collect(&a, "SET warpcube.max_rows = 5").await;
    collect(&a, "SET datafusion.execution.batch_size = 100").await;
    for (connection, rows, size) in [(&a, 5, "100"), (&b, 7, "8192"), (&database.connect(), 7, "8192")] {
        assert_eq!(connection.settings().max_rows, rows);
        assert_eq!(
            shown(connection, "datafusion.execution.batch_size").await,
            format!("datafusion.execution.batch_size {size}")
        );
    }
    collect(&a, "RESET warpcube.max_rows").await;
    assert_eq!(a.settings().max_rows, 7);
    assert_eq!(shown(&a, "warpcube.max_rows").await, "warpcube.max_rows 7 flag program");
    // Those of the database are one for all, whichever connection sets them.
    collect(&a, "SET warpcube.memory_limit = '4MiB'").await;
    collect(&b, "SET datafusion.runtime.max_temp_directory_size = '3G'").await;
    for connection in [&a, &b, &database.connect()] {
        assert_eq!(shown(connection, "warpcube.memory_limit").await, "warpcube.memory_limit 4MiB SET");
        assert_eq!(
            shown(connection, "datafusion.runtime.max_temp_directory_size").await,
            "datafusion.runtime.max_temp_directory_size 3G"
        );
        let large = "CREATE TABLE large AS SELECT value AS v FROM generate_series(1, 1000000)";
        assert!(error(connection, large).await.starts_with("SQL-009 "), "the limit holds");
    }
    collect(&b, "RESET warpcube.memory_limit").await;
    assert_eq!(shown(&a, "warpcube.memory_limit").await, "warpcube.memory_limit auto default");
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().display().to_string();
    b.set("warpcube.allowed_paths", &inside).unwrap();
    b.set("warpcube.read_only", "on").unwrap();
    let copy = format!("COPY (SELECT 1 AS a) TO '{inside}/a.csv'");
    assert!(error(&b, &copy).await.starts_with("FILE-008 "));
    collect(&a, &copy).await;
    assert!(error(&a, "COPY (SELECT 1 AS a) TO '/tmp/never.csv'").await.starts_with("FILE-007 "), "of all connections");
    assert!(a.set("warpcube.allowed_paths", "all").unwrap_err().to_string().starts_with("CFG-004 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_budget_of_memory_for_all_connections() {
    let options = DatabaseOptions::new().with("warpcube.device", "cpu").with("warpcube.memory_limit", "12MiB");
    let database = Database::open(options).unwrap();
    let (a, b) = (database.connect(), database.connect());
    let table = |name: &str| format!("CREATE TABLE {name} AS SELECT value AS v FROM generate_series(1, 1000000)");
    collect(&a, &table("t")).await;
    assert!(error(&b, &table("u")).await.starts_with("SQL-009 "), "tables of the other connection count");
    collect(&b, "DROP TABLE t").await;
    collect(&b, &table("u")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_are_a_connections_own() {
    for database in databases() {
        let (a, b) = (database.connect(), database.connect());
        collect(&a, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 100)").await;
        collect(&a, "PREPARE p(BIGINT) AS SELECT count(*) FROM t WHERE v < $1").await;
        assert!(error(&b, "EXECUTE p(11)").await.contains("'p' does not exist"));
        collect(&b, "PREPARE p(BIGINT) AS SELECT sum(v) FROM t WHERE v < $1").await;
        for round in 0..3 {
            assert_eq!(planned(&a, "EXECUTE p(11)").await, ("10".into(), round == 0));
            assert_eq!(planned(&b, "EXECUTE p(11)").await, ("55".into(), round == 0));
        }
        collect(&a, "DEALLOCATE p").await;
        assert!(error(&a, "EXECUTE p(11)").await.contains("'p' does not exist"));
        collect(&a, "PREPARE p(BIGINT) AS SELECT max(v) FROM t WHERE v < $1").await;
        assert_eq!(first(&a, "EXECUTE p(11)").await, "10");
        assert_eq!(first(&b, "EXECUTE p(11)").await, "55");
        // What another connection changes is seen.
        collect(&b, "UPDATE t SET v = -v").await;
        assert_eq!(first(&a, "EXECUTE p(-5)").await, "-6");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_plans_are_shared_by_connections_with_the_same_settings() {
    for database in databases() {
        let (a, b, c) = (database.connect(), database.connect(), database.connect());
        collect(&a, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 100)").await;
        let sql = "SELECT count(*) FROM t WHERE v < 11";
        assert_eq!(planned(&a, sql).await, ("10".into(), true));
        assert_eq!(planned(&b, sql).await, ("10".into(), false));
        c.set("datafusion.execution.time_zone", "Europe/Berlin").unwrap();
        assert_eq!(planned(&c, sql).await, ("10".into(), true), "other settings, another plan");
        for connection in [&a, &b, &c] {
            assert_eq!(planned(connection, sql).await, ("10".into(), false), "they do not drive each other out");
        }
        c.set("datafusion.execution.time_zone", "UTC").unwrap();
        assert_eq!(planned(&c, sql).await, ("10".into(), false), "settings count by what they are");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_plans_are_of_the_settings_they_were_made_with() {
    for database in databases() {
        let make = database.connect();
        collect(
            &make,
            "CREATE TABLE t AS SELECT to_timestamp(value * 3600) AS at, value AS v FROM generate_series(0, 47)",
        )
        .await;
        collect(&make, "CREATE SCHEMA s").await;
        collect(&make, "CREATE TABLE s.t AS SELECT to_timestamp(0) AS at, value AS v FROM generate_series(1, 3)").await;
        collect(&make, "CREATE VIEW w AS SELECT sum(v) AS n FROM t").await;
        let statements = [
            ("SELECT count(*) FROM t WHERE at < TIMESTAMP '1970-01-02 00:00:00'", ["24", "23", "3", "24", "24"]),
            (
                "SELECT arrow_typeof(1.5) FROM t LIMIT 1",
                ["Decimal128(2, 1)", "Decimal128(2, 1)", "Decimal128(2, 1)", "Float64", "Decimal128(2, 1)"],
            ),
            ("SELECT sum(v) FROM t", ["1128", "1128", "6", "1128", "1128"]),
            ("SELECT sum(v) FROM t WHERE v < 4", ["6", "6", "6", "6", "6"]),
            ("SELECT n FROM warpcube.public.w", ["1128", "1128", "1128", "1128", "1128"]),
            ("SELECT sum(v * 200000000000000000) FROM t WHERE v > 45", ["", "", "", "", "153255926290448384"]),
        ];
        let settings = [
            ("warpcube.load_factor", "0.8"),
            ("datafusion.execution.time_zone", "Europe/Berlin"),
            ("datafusion.catalog.default_schema", "s"),
            ("datafusion.sql_parser.parse_float_as_decimal", "false"),
            ("warpcube.overflow", "wrap"),
        ];
        let connections = settings.map(|(name, value)| {
            let connection = database.connect();
            connection.set(name, value).unwrap();
            connection
        });
        for round in 0..3 {
            for (sql, expected) in &statements {
                for (number, connection) in connections.iter().enumerate() {
                    let found = run(connection, sql).await;
                    let found = found.map(|(batches, _)| crate::format::rows(&batches).concat().join(" "));
                    // No rows of schema `s` are beyond 45.
                    let found = found.unwrap_or_default().replace("NULL", "");
                    assert_eq!(found, expected[number], "round {round}: {sql} with {:?}", settings[number]);
                }
            }
        }
    }
}

/// A function of one BIGINT that gives this number whatever it is given.
fn gives(name: &str, value: i64) -> ScalarUDF {
    let value = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value))));
    create_udf(name, vec![DataType::Int64], DataType::Int64, Volatility::Immutable, Arc::new(value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_rules_and_options_that_a_program_changes_count_from_the_next_statement_on() {
    for database in databases() {
        let (a, b) = (database.connect(), database.connect());
        collect(&a, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 100)").await;
        let context = a.context().clone();
        b.context().register_udf(gives("f", 7));
        // Folded to a constant, called, and by the template of another statement.
        let ask = async |connection: &Connection, expected: i64| {
            for (sql, times) in [
                ("SELECT max(v) + f(1) - 100 FROM t", 1),
                ("SELECT max(f(v)) FROM t", 1),
                ("SELECT max(f(v)) + 0 FROM t WHERE v < 11", 1),
                ("EXECUTE p(1)", 1),
                ("SELECT sum(f(v)) FROM t", 100),
            ] {
                assert_eq!(planned(connection, sql).await.0, (expected * times).to_string(), "{sql}");
                assert_eq!(planned(connection, sql).await, ((expected * times).to_string(), false), "{sql}");
            }
        };
        collect(&b, "PREPARE p AS SELECT max(v) + f($1) - 100 FROM t").await;
        for value in 1..4 {
            context.register_udf(gives("f", value));
            if value == 1 {
                collect(&a, "PREPARE p AS SELECT max(v) + f($1) - 100 FROM t").await;
            }
            ask(&a, value).await;
            ask(&b, 7).await;
        }
        let sql = "SELECT arrow_typeof(1.5) FROM t LIMIT 1";
        assert_eq!(first(&a, sql).await, "Decimal128(2, 1)");
        context.state_ref().write().config_mut().options_mut().sql_parser.parse_float_as_decimal = false;
        assert_eq!(first(&a, sql).await, "Float64");
        ask(&a, 3).await;
        collect(&a, "DROP FUNCTION f").await;
        assert!(error(&a, "SELECT sum(f(v)) FROM t").await.contains("f"));
        ask(&b, 7).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn placement_is_a_connections_own() {
    let database = lenient().database().clone();
    let (device, host) = (database.connect(), database.connect());
    device.set("warpcube.placement", "cuda").unwrap();
    host.set("warpcube.placement", "files").unwrap();
    collect(&device, "CREATE TABLE t AS SELECT value % 3 AS k, value AS v FROM generate_series(1, 1000)").await;
    for _ in 0..3 {
        for constant in [10, 500] {
            let sql = format!("SELECT sum(v) FROM t WHERE v < {constant}");
            let (on_device, summary) = run(&device, &sql).await.unwrap();
            assert!(
                summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu) && !summary.fragments.is_empty()
            );
            let (on_host, summary) = run(&host, &sql).await.unwrap();
            assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Cpu));
            assert_eq!(rows(&on_device), rows(&on_host));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_read_as_the_tables_statement_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "1,2\n3,4\n").unwrap();
    let database = cpu().database().clone();
    let (a, b) = (database.connect(), database.connect());
    a.set("datafusion.catalog.has_header", "false").unwrap();
    collect(&a, &format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}'", path.display())).await;
    collect(&a, "CREATE VIEW w AS SELECT count(*) AS n FROM t").await;
    assert_eq!(first(&b, "SELECT n FROM w").await, "2");
    // The other connection sees the change first.
    std::fs::write(&path, "a,b\n1,2\n3,4\n5,6\n").unwrap();
    assert_eq!(first(&b, "SELECT count(*) FROM t").await, "4");
    assert_eq!(first(&b, "SELECT n FROM w").await, "4");
    std::fs::write(&path, "7,b,1\n8,6,2\n").unwrap();
    assert_eq!(first(&b, "SELECT count(*), min(column_3) FROM t").await, "2 1");
    assert_eq!(first(&a, "SELECT n FROM w").await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_a_statement_leaves_those_of_others_alone() {
    for database in databases() {
        let (a, b) = (database.connect(), database.connect());
        collect(&a, "CREATE TABLE t AS SELECT value % 3 AS k, value AS v FROM generate_series(1, 20000)").await;
        let sql = "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k";
        let expected = rows(&b.collect(sql).await.unwrap());
        for _ in 0..3 {
            // Both run one plan.
            let report = StatementReport::new();
            let cancelled = a.execute_with(sql, report.clone()).await.unwrap();
            let other = b.execute(sql).await.unwrap();
            report.cancel().cancel();
            assert!(matches!(cancelled.collect().await, Err(SqlError::Cancelled)));
            assert_eq!(rows(&other.collect().await.unwrap()), expected);
        }
        // Both read one table, which has no end.
        a.context().register_table("endless", endless()).unwrap();
        let reports = [StatementReport::new(), StatementReport::new()];
        let started = [&a, &b].into_iter().zip(&reports).map(|(connection, report)| {
            let (connection, report) = (connection.clone(), report.clone());
            tokio::spawn(async move {
                let execution = connection.execute_with("SELECT sum(v) FROM endless", report).await?;
                execution.collect().await.map(|_| ())
            })
        });
        let [first, second]: [_; 2] = started.collect::<Vec<_>>().try_into().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        reports[0].cancel().cancel();
        assert!(matches!(first.await.unwrap(), Err(SqlError::Cancelled)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!second.is_finished() && !reports[1].cancel().is_cancelled());
        assert_eq!(rows(&a.collect(sql).await.unwrap()), expected);
        reports[1].cancel().cancel();
        assert!(matches!(second.await.unwrap(), Err(SqlError::Cancelled)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_device_is_told_to_every_connection() {
    let options = DatabaseOptions::new().with("warpcube.device", "emulated");
    let database = Database::open(options).unwrap();
    let faults = Arc::new(EmulatorFaults::default());
    let emulator = EmulatorOptions { faults: faults.clone(), ..EmulatorOptions::default() };
    database.device().take_up(Device::emulated(emulator, 256 << 20).unwrap());
    let connections = [(); 3].map(|()| database.connect());
    connections.iter().for_each(|connection| connection.set("warpcube.placement", "cuda").unwrap());
    collect(&connections[0], "CREATE TABLE t AS SELECT value % 3 AS k, value AS v FROM generate_series(1, 1000)").await;
    let sql = "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k";
    for connection in &connections {
        assert_eq!(first(connection, sql).await, "0 166833");
    }
    faults.fail_launch(1);
    assert!(error(&connections[0], sql).await.starts_with("GPU-006 the device was lost in kernel '"));
    for connection in &connections {
        let told = error(connection, sql).await;
        assert!(told.starts_with("GPU-006 the device was lost in an earlier statement"), "{told}");
        connection.set("warpcube.placement", "auto").unwrap();
        let (batches, summary) = run(connection, sql).await.unwrap();
        assert_eq!(crate::format::rows(&batches)[0].join(" "), "0 166833");
        let reason = summary.fragments[0].reason.clone().unwrap_or_default();
        assert!(reason.contains("the device was lost in an earlier statement (GPU-006)"), "{reason}");
    }
    // A device that is opened anew is there for all.
    connections[1].set("warpcube.device", "cpu").unwrap();
    connections[1].set("warpcube.device", "emulated").unwrap();
    for connection in &connections {
        connection.set("warpcube.placement", "cuda").unwrap();
        assert_eq!(first(connection, sql).await, "0 166833");
    }
}

#[tokio::test]
async fn a_temporary_table_is_of_its_connection_alone() {
    for database in databases() {
        let [one, other] = [database.connect(), database.connect()];
        collect(&one, "CREATE TABLE t AS SELECT 1 AS a").await;
        let sql = "SELECT sum(a) FROM t";
        // A plan of the table of all is kept.
        assert_eq!(first(&one, sql).await, "1");
        assert_eq!(first(&other, sql).await, "1");
        collect(&other, "CREATE TEMP TABLE t AS SELECT 7 AS a").await;
        assert_eq!(first(&other, sql).await, "7");
        assert_eq!(first(&one, sql).await, "1");
        assert_eq!(first(&other, sql).await, "7");
        collect(&other, "INSERT INTO t VALUES (8)").await;
        assert_eq!(first(&one, sql).await, "1");
        assert_eq!(first(&other, sql).await, "15");
        collect(&other, "CREATE TEMP TABLE own AS SELECT 1 AS a").await;
        assert!(error(&one, "SELECT * FROM own").await.contains("SQL-002"));
        collect(&other, "DROP TABLE t").await;
        assert_eq!(first(&other, sql).await, "1");
    }
}
