//! Statements that are run again: plans and bindings are kept only as long as they are true.

use warpcube_sql::{Connection, Database, DatabaseOptions, Place};

use crate::support::{cpu, emulated, rows, run};

/// A session on the emulated device that may leave work to the CPU.
fn lenient() -> Connection {
    Database::open(DatabaseOptions::new().with("warpcube.device", "emulated")).unwrap().connect()
}

async fn one(session: &Connection, sql: &str) -> (Vec<String>, Place) {
    let (batches, summary) = run(session, sql).await.unwrap();
    (rows(&batches), summary.fragments.last().expect("a fragment").place)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_statement_sees_inserts_and_other_types() {
    let session = emulated();
    session.collect("CREATE TABLE t AS VALUES (1), (2)").await.unwrap();
    let sql = "SELECT sum(column1) AS s FROM t";
    for _ in 0..3 {
        assert_eq!(one(&session, sql).await.0[0], "| 3 |");
    }
    session.collect("INSERT INTO t VALUES (10)").await.unwrap();
    assert_eq!(one(&session, sql).await.0[0], "| 13 |");
    session.collect("DROP TABLE t").await.unwrap();
    session.collect("CREATE TABLE t AS VALUES (1.5), (2.25)").await.unwrap();
    assert_eq!(one(&session, sql).await.0[0], "| 3.75 |");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fragment_that_does_not_fit_is_planned_for_the_cpu_from_then_on() {
    let session = lenient();
    session.set("warpcube.dictionary_limit", "2").unwrap();
    session.collect("CREATE TABLE t AS VALUES ('a'), ('b'), ('c')").await.unwrap();
    let sql = "SELECT max(column1) AS s FROM t";
    let (first, place) = one(&session, sql).await;
    assert_eq!((first[0].as_str(), place), ("| c |", Place::Cpu));
    let execution = session.execute(sql).await.unwrap();
    let plan = format!("{:?}", execution.plan);
    assert!(!plan.contains("DeviceExec"), "{plan}");
    assert_eq!(rows(&execution.collect().await.unwrap())[0], "| c |");
    session.collect("DROP TABLE t").await.unwrap();
    session.collect("CREATE TABLE t AS VALUES ('a'), ('b')").await.unwrap();
    assert_eq!(one(&session, sql).await, (vec!["| b |".into(), "| s |".into()], Place::Gpu));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_raise_an_error_are_left_to_the_cpu_from_then_on() {
    let session = lenient();
    session.collect("CREATE TABLE t AS VALUES (1), (0), (5)").await.unwrap();
    let sql = "SELECT sum(10 / column1) AS s FROM t";
    for is_first in [true, false] {
        let execution = session.execute(sql).await.unwrap();
        let plan = format!("{:?}", execution.plan);
        assert_eq!(plan.contains("DeviceExec"), is_first, "{plan}");
        let error = execution.collect().await.unwrap_err().to_string();
        assert!(error.contains("SQL-006"), "{error}");
    }
    session.collect("DELETE FROM t WHERE column1 = 0").await.unwrap();
    assert_eq!(one(&session, sql).await, (vec!["| 12 |".into(), "| s  |".into()], Place::Gpu));
}

/// A session with a table, that writes the source of each fragment to a folder.
async fn dumping() -> (Connection, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let session = emulated();
    session.set("warpcube.dump_source", &folder.path().display().to_string()).unwrap();
    let table = "CREATE TABLE t AS SELECT value % 10 AS k, value AS v, \
                 to_timestamp(value * 3600) AS at FROM generate_series(1, 1000)";
    session.collect(table).await.unwrap();
    (session, folder)
}

/// First line of the answer, and whether the statement was planned.
async fn first(session: &Connection, sql: &str) -> (String, bool) {
    let (batches, summary) = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu), "{sql}: {:?}", summary.fragments);
    (rows(&batches).swap_remove(0), summary.planned)
}

fn sources(folder: &tempfile::TempDir) -> usize {
    folder.path().read_dir().unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_literals_take_the_same_kernels() {
    let (session, folder) = dumping().await;
    let sql = |k: i64, v: i64| format!("SELECT count(*) AS n FROM t WHERE k = {k} AND v > {v}");
    assert_eq!(first(&session, &sql(3, 500)).await, ("| 50 |".into(), true));
    assert_eq!(first(&session, &sql(3, 500)).await, ("| 50 |".into(), false));
    assert_eq!(sources(&folder), 1);
    for (k, v, rows) in [(4, 500, 50), (3, 600, 40), (9, 400, 60)] {
        assert_eq!(first(&session, &sql(k, v)).await, (format!("| {rows} |"), false), "optimised once for all");
    }
    assert_eq!(sources(&folder), 1, "constants are arguments: no other source, and nothing to compile");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_skip_planning_and_compiling() {
    let (session, folder) = dumping().await;
    session.collect("PREPARE q(BIGINT) AS SELECT count(*) AS n FROM t WHERE v < $1").await.unwrap();
    assert_eq!(first(&session, "EXECUTE q(101)").await, ("| 100 |".into(), true));
    assert_eq!(first(&session, "EXECUTE q(101)").await, ("| 100 |".into(), false));
    for limit in [201, 301, 1] {
        let rows = format!("| {} |", limit - 1);
        assert_eq!(first(&session, &format!("EXECUTE q({limit})")).await, (rows, false), "optimised once for all");
    }
    assert_eq!(sources(&folder), 1);
    // An INSERT is seen, and then the plan is kept anew.
    session.collect("INSERT INTO t VALUES (0, 7, NULL)").await.unwrap();
    assert_eq!(first(&session, "EXECUTE q(101)").await, ("| 101 |".into(), true));
    assert_eq!(first(&session, "EXECUTE q(101)").await, ("| 101 |".into(), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_change_the_plan_are_planned() {
    let (session, _folder) = dumping().await;
    let count = |batches: &[arrow::array::RecordBatch]| batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
    session.collect("PREPARE less(BIGINT) AS SELECT k, count(*) AS n FROM t WHERE v < $1 GROUP BY k").await.unwrap();
    assert_eq!(count(&session.collect("EXECUTE less(6)").await.unwrap()), 5);
    assert_eq!(count(&session.collect("EXECUTE less(NULL)").await.unwrap()), 0);
    assert_eq!(count(&session.collect("EXECUTE less(6)").await.unwrap()), 5);
    let most = "PREPARE most(BIGINT) AS SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k LIMIT $1";
    session.collect(most).await.unwrap();
    for limit in [2, 5, 0, 2] {
        assert_eq!(count(&session.collect(&format!("EXECUTE most({limit})")).await.unwrap()), limit);
    }
    for (list, groups) in [("1", 1), ("1, 2", 2), ("1, 2, NULL", 2), ("1, 2, 3, 4, 5", 5), ("1", 1)] {
        let sql = format!("SELECT k, count(*) AS n FROM t WHERE k IN ({list}) GROUP BY k");
        assert_eq!(count(&session.collect(&sql).await.unwrap()), groups, "{list}");
    }
}

/// Prepared queries with the values to execute them with, and the same queries with the values in place.
const PREPARED: [(&str, &str, &[&[&str]]); 8] = [
    ("BIGINT", "SELECT k, count(*) AS n FROM t WHERE v >= $1 AND v < $1 + 50 GROUP BY k", &[&["7"], &["900"], &["-5"]]),
    ("INT", "SELECT count(*) AS n FROM t WHERE k = $1", &[&["3"], &["11"], &["-1"]]),
    ("BIGINT, BIGINT", "SELECT sum(v) AS s FROM t WHERE k IN ($1, $2, 4)", &[&["1", "2"], &["4", "4"], &["77", "0"]]),
    ("TEXT", "SELECT count(*) AS n FROM t WHERE name LIKE $1", &[&["'a%'"], &["'%7'"], &["''"]]),
    ("DATE", "SELECT count(*) AS n FROM t WHERE day >= $1", &[&["DATE '1970-01-20'"], &["'1970-02-01'"]]),
    ("DECIMAL(10, 2)", "SELECT count(*) AS n FROM t WHERE price < $1", &[&["12.5"], &["100"], &["0.01"]]),
    ("BIGINT", "SELECT sum(CASE WHEN v > $1 THEN k ELSE $1 END) AS s FROM t", &[&["500"], &["0"]]),
    ("BIGINT", "SELECT count(*) AS n FROM t WHERE v > (SELECT max(v) - $1 FROM t)", &[&["10"], &["0"], &["5000"]]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_plan_gives_what_the_statement_would() {
    let lenient = lenient();
    let cpu = crate::support::cpu();
    let table = "CREATE TABLE t AS SELECT value % 10 AS k, value AS v, chr(97 + value % 3) || value AS name, \
                 DATE '1970-01-01' + value % 60 AS day, CAST(value * 0.07 AS DECIMAL(10, 2)) AS price \
                 FROM generate_series(1, 1000)";
    lenient.collect(table).await.unwrap();
    cpu.collect(table).await.unwrap();
    for session in [&lenient, &cpu] {
        for (number, (types, query, all)) in PREPARED.iter().enumerate() {
            session.collect(&format!("PREPARE p{number}({types}) AS {query}")).await.unwrap();
            for (repeat, values) in all.iter().enumerate() {
                let mut sql = query.to_string();
                for (position, value) in values.iter().enumerate() {
                    sql = sql.replace(&format!("${}", position + 1), value);
                }
                let expected = rows(&cpu.collect(&sql).await.unwrap());
                let execute = format!("EXECUTE p{number}({})", values.join(", "));
                let (batches, summary) = run(session, &execute).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
                assert_eq!(rows(&batches), expected, "{execute}: {sql}");
                // The first may find the template of a statement with literals in its place.
                assert!(repeat == 0 || !summary.planned, "{execute}: optimised once for all values");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_depends_on_the_moment_is_never_kept() {
    let (session, _folder) = dumping().await;
    for sql in ["SELECT count(*) AS n FROM t WHERE at < now()", "SELECT count(*) AS n FROM t WHERE random() < 2.0"] {
        for _ in 0..3 {
            let (batches, summary) = run(&session, sql).await.unwrap();
            assert_eq!((rows(&batches)[0].as_str(), summary.planned), ("| 1000 |", true), "{sql}");
        }
    }
    session.collect("PREPARE past AS SELECT count(*) AS n FROM t WHERE at < now()").await.unwrap();
    session.collect("PREPARE before(TIMESTAMP) AS SELECT count(*) AS n FROM t WHERE at < $1").await.unwrap();
    for _ in 0..2 {
        assert!(run(&session, "EXECUTE past").await.unwrap().1.planned);
        assert!(run(&session, "EXECUTE before(now())").await.unwrap().1.planned);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_zone_is_that_of_the_moment() {
    let (session, _folder) = dumping().await;
    let sql = "SELECT count(*) AS n FROM t WHERE v * 3600000000 < \
               CAST(CAST('1970-01-02 00:00:00' AS TIMESTAMP WITH TIME ZONE) AS BIGINT)";
    session.collect(&format!("PREPARE early AS {sql}")).await.unwrap();
    let cpu = crate::support::cpu();
    cpu.collect("CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 1000)").await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for zone in ["+00:00", "+05:00", "-03:00", "+00:00"] {
        for session in [&session, &cpu] {
            session.collect(&format!("SET datafusion.execution.time_zone = '{zone}'")).await.unwrap();
        }
        let expected = rows(&cpu.collect(sql).await.unwrap());
        assert_eq!(rows(&session.collect(sql).await.unwrap()), expected, "{zone}");
        assert_eq!(rows(&session.collect("EXECUTE early").await.unwrap()), expected, "prepared, {zone}");
        seen.insert(expected);
    }
    assert_eq!(seen.len(), 3, "the zone matters: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_of_any_name_sees_what_changes() {
    let session = emulated();
    let value = async |sql: &str| crate::support::one(&session, sql).await.0;
    for (prepared, executed) in [("P", "p"), ("\"P q\"", "\"P q\""), ("plain", "PLAIN")] {
        session.collect("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
        session.collect(&format!("PREPARE {prepared} AS SELECT max(a) FROM t")).await.unwrap();
        assert_eq!(value(&format!("EXECUTE {executed}")).await, "1");
        session.collect("DROP TABLE t").await.unwrap();
        session.collect("CREATE TABLE t AS SELECT 'two' AS a").await.unwrap();
        assert_eq!(value(&format!("EXECUTE {executed}")).await, "two", "{prepared}");
        session.collect("DROP TABLE t").await.unwrap();
    }
    session.collect("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    session.collect("PREPARE gone(INT) AS SELECT max(a) FROM t WHERE a >= $1").await.unwrap();
    assert_eq!(value("EXECUTE gone(1)").await, "1");
    session.collect("DEALLOCATE gone").await.unwrap();
    let error = session.collect("EXECUTE gone(1)").await.unwrap_err().to_string();
    assert!(error.contains("Prepared statement 'gone' does not exist"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_execute_a_statement_that_is_prepared_anew() {
    let session = cpu();
    session.collect("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    session.collect("PREPARE p AS SELECT max(a) FROM t").await.unwrap();
    let execute = || {
        let session = session.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                session.collect("EXECUTE p").await.unwrap();
            }
        })
    };
    let threads = [execute(), execute(), execute()];
    while threads.iter().any(|thread| !thread.is_finished()) {
        session.collect("CREATE OR REPLACE VIEW v AS SELECT 1 AS b").await.unwrap();
    }
    for thread in threads {
        thread.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_may_decide_a_type() {
    let session = emulated();
    let prices = "SELECT arrow_cast(column1, 'Decimal128(10, 2)') AS price FROM (VALUES ('1.50'), ('1.55'))";
    session.collect(&format!("CREATE TABLE prices AS {prices}")).await.unwrap();
    session.collect("PREPARE p(INT) AS SELECT count(*) FROM prices WHERE round(price, $1) = price").await.unwrap();
    for (digits, expected) in [("1", "1"), ("2", "2"), ("0", "0")] {
        let found = session.collect(&format!("EXECUTE p({digits})")).await.unwrap();
        assert_eq!(crate::format::rows(&found)[0], [expected], "{digits} digits");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn operators_of_a_plan_that_is_kept_are_copied_for_each_run() {
    let session = emulated();
    session.collect("CREATE TABLE t AS SELECT value % 7 AS k, value AS v FROM generate_series(1, 1000)").await.unwrap();
    let sql = "SELECT k + 1 AS one_more, sum(v) AS s FROM t WHERE v > 3 GROUP BY k HAVING sum(v) > 71500 \
               ORDER BY s DESC, one_more LIMIT 3";
    let expected = rows(&run(&session, sql).await.unwrap().0);
    assert!(expected.len() >= 3, "{expected:?}");
    let ask = || {
        let (session, expected) = (session.clone(), expected.clone());
        tokio::spawn(async move {
            for repeat in 0..40 {
                // A run with columns that left the device meanwhile brings them back.
                if repeat % 10 == 9 {
                    session.collect("EVICT TABLE t").await.unwrap();
                }
                assert_eq!(rows(&run(&session, sql).await.unwrap().0), expected);
            }
        })
    };
    let running = [ask(), ask(), ask(), ask()];
    for thread in running {
        thread.await.unwrap();
    }
    session.collect("INSERT INTO t VALUES (0, 1000000)").await.unwrap();
    let changed = rows(&run(&session, sql).await.unwrap().0);
    assert!(changed[0].contains("1071") && changed != expected, "{changed:?}");
}
