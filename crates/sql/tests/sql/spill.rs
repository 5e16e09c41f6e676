//! A limit on the CPU's memory: what can spill does and is right, what cannot fails by name, the session goes on.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::MemTable;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::support::{one, run};

/// How long a test waits for files to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the operators of a plan have spilled.
fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
    own + plan.children().into_iter().map(spills).sum::<usize>()
}

fn session(limit: &str) -> Connection {
    let options = DatabaseOptions::new()
        .with("warpcube.device", "cpu")
        .with("warpcube.memory_limit", limit)
        .with("warpcube.target_partitions", "1");
    Database::open(options).unwrap().connect()
}

/// Runs a statement of one row; how often it spilled.
async fn spilled(session: &Connection, sql: &str, expected: &str) -> usize {
    let execution = session.execute(sql).await.unwrap();
    let plan = execution.plan.clone().expect("a query has a plan");
    let batches = execution.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    assert_eq!(crate::format::rows(&batches)[0].join(" "), expected, "{sql}");
    spills(&plan)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorts_and_aggregations_past_the_limit_spill_and_are_right() {
    let (small, large) = (session("12MiB"), session("auto"));
    let sort = "SELECT sum(r * v) FROM (SELECT value AS v, row_number() OVER (ORDER BY value * 7919 % 1000003) AS r \
                FROM generate_series(1, 600000))";
    let groups = "SELECT count(*), sum(n) FROM (SELECT value * 31 % 400009 AS k, 'k' || (value % 399989) AS s, \
                  count(*) AS n FROM generate_series(1, 400000) GROUP BY 1, 2)";
    let expected = [one(&large, sort).await.0, "400000 400000".to_string()];
    for (sql, expected) in [sort, groups].into_iter().zip(&expected) {
        assert_eq!(spilled(&large, sql, expected).await, 0, "{sql}");
        assert!(spilled(&small, sql, expected).await > 0, "{sql} did not spill");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spilled_data_goes_where_it_is_told_and_is_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let session = session("12MiB");
    session.set("warpcube.spill_folder", &folder.path().display().to_string()).unwrap();
    // Files of this process that are open below the folder, by the names that the system has for them.
    let open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
        paths.filter(|path| path.starts_with(folder.path())).count()
    };
    let sort = "SELECT value FROM generate_series(1, 600000) ORDER BY value * 7919 % 1000003";
    let mut execution = session.execute(sort).await.unwrap();
    let plan = execution.plan.clone().expect("a query has a plan");
    execution.stream.next().await.unwrap().unwrap();
    assert!(spills(&plan) > 0);
    assert!(open() > 0, "nothing was spilled to the folder");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a process that is killed would leave files");
    drop((execution, plan));
    let clock = std::time::Instant::now();
    while open() > 0 {
        assert!(clock.elapsed() < PATIENCE, "spilled files outlive their statement");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A folder that cannot be written is told of at once.
    let blocked = folder.path().join("no-folder");
    std::fs::write(&blocked, "a file").unwrap();
    let failed = session.set("warpcube.spill_folder", &blocked.display().to_string()).unwrap_err().to_string();
    let expected = format!("CFG-002 warpcube.spill_folder = '{}': expected a folder to write in", blocked.display());
    assert!(failed.starts_with(&expected), "{failed}");
    assert_eq!(one(&session, "SELECT 1").await.0, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_tables_past_the_limit_spill_and_give_their_memory_back() {
    let (small, large) = (session("12MiB"), session("auto"));
    // Sorts make no room: the rows of the shared table are what takes memory.
    let twice = "WITH r AS (SELECT value AS v, 'row ' || value AS s, random() AS x FROM generate_series(1, 600000)) \
                 SELECT sum(v), count(DISTINCT left(s, 5)), (SELECT count(*) FROM r WHERE x < 2) FROM r";
    for (session, does_spill) in [(&large, false), (&small, true)] {
        let execution = session.execute(twice).await.unwrap();
        let plan = execution.plan.clone().expect("a query has a plan");
        let batches = execution.collect().await.unwrap();
        assert_eq!(crate::format::rows(&batches)[0].join(" "), "180000300000 9 600000");
        assert_eq!(spills(&plan) > 0, does_spill);
        assert_eq!(session.context().runtime_env().memory_pool.reserved(), 0, "the plan is still there: {plan:?}");
    }
    // Half-way: one reader in a file, the other behind it.
    let joined = "WITH r AS (SELECT value AS v, 'row ' || value AS s, random() AS x FROM generate_series(1, 900000)) \
                  SELECT count(*), sum(a.v) FROM (SELECT v, x FROM r WHERE v % 100 = 0) a JOIN r b \
                  ON a.v = b.v AND a.x = b.x";
    assert!(spilled(&small, joined, "9000 4050450000").await > 0);
    // A statement that is dropped half-way frees its shared table.
    let rows = "WITH r AS (SELECT value AS v, random() AS x FROM generate_series(1, 600000)) \
                SELECT * FROM r UNION ALL SELECT * FROM r";
    let mut execution = small.execute(rows).await.unwrap();
    let plan = execution.plan.clone().expect("a query has a plan");
    execution.stream.next().await.unwrap().unwrap();
    assert!(small.context().runtime_env().memory_pool.reserved() > 0);
    drop((execution, plan));
    let clock = std::time::Instant::now();
    while small.context().runtime_env().memory_pool.reserved() > 0 {
        assert!(clock.elapsed() < PATIENCE, "a shared table outlives its statement");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_spill_fails_by_name() {
    let session = session("1MiB");
    let join = "SELECT count(*) FROM generate_series(1, 300000) a JOIN generate_series(1, 300000) b USING (value)";
    let error = run(&session, join).await.map(|_| ()).unwrap_err();
    assert!(error.starts_with("SQL-009 out of memory on the CPU: "), "{error}");
    let advice = "; with two or more of warpcube.target_partitions, SET datafusion.optimizer.prefer_hash_join = false \
                  plans joins that spill; raise warpcube.memory_limit or look at warpcube.spill_folder";
    assert!(error.ends_with(advice), "{error}");
    session.set("warpcube.memory_limit", "auto").unwrap();
    assert_eq!(one(&session, join).await.0, "300000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_spilled_has_a_limit_that_a_change_of_the_folder_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let session = session("12MiB");
    session.set("datafusion.runtime.max_temp_directory_size", "1M").unwrap();
    session.set("warpcube.spill_folder", &folder.path().display().to_string()).unwrap();
    let sort = "SELECT sum(r * v) FROM (SELECT value AS v, row_number() OVER (ORDER BY value * 7919 % 1000003) AS r \
                FROM generate_series(1, 600000))";
    let error = run(&session, sort).await.map(|_| ()).unwrap_err();
    assert!(error.contains("max_temp_directory_size"), "{error}");
    session.set("datafusion.runtime.max_temp_directory_size", "1G").unwrap();
    run(&session, sort).await.map(|_| ()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_spill_by_the_setting_that_their_error_names() {
    let session = session("24MiB");
    session.set("warpcube.target_partitions", "2").unwrap();
    session.set("datafusion.execution.sort_spill_reservation_bytes", "1048576").unwrap();
    let join = "SELECT count(*), sum(a.v + b.w) FROM \
                (SELECT value AS k, value * 3 AS v FROM generate_series(1, 1000000)) a JOIN \
                (SELECT 1000001 - value AS k, value AS w FROM generate_series(1, 1000000)) b USING (k)";
    let error = run(&session, join).await.map(|_| ()).unwrap_err();
    assert!(error.contains("SET datafusion.optimizer.prefer_hash_join = false plans joins that spill"), "{error}");
    session.collect("SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    assert!(spilled(&session, join, "1000000 2000002000000").await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_inserted_are_held_to_the_limit() {
    let session = session("36MiB");
    session.collect("CREATE TABLE t(v BIGINT)").await.unwrap();
    let insert = "INSERT INTO t SELECT value FROM generate_series(1, 1000000)";
    for _ in 0..4 {
        session.collect(insert).await.unwrap();
    }
    let error = run(&session, insert).await.map(|_| ()).unwrap_err();
    let expected = "SQL-009 out of memory on the CPU: table 't' and the tables in memory do not fit";
    assert!(error.starts_with(expected), "{error}");
    // Other statements have room, and the rows are charged as long as they are there.
    session.collect("CREATE TABLE u AS SELECT 1 AS a").await.unwrap();
    session.collect("CREATE TABLE copied AS SELECT * FROM t").await.unwrap();
    session.collect("DELETE FROM t WHERE v > 500000").await.unwrap_err();
    session.collect("DROP TABLE copied").await.unwrap();
    session.collect("TRUNCATE TABLE t").await.unwrap();
    session.collect(insert).await.unwrap();
    // A smaller limit counts what is there, too.
    session.set("warpcube.memory_limit", "10MiB").unwrap();
    let error = run(&session, insert).await.map(|_| ()).unwrap_err();
    assert!(error.starts_with(expected), "{error}");
    session.collect("DROP TABLE t").await.unwrap();
    session.collect("CREATE TABLE t(k BIGINT PRIMARY KEY)").await.unwrap();
    // Keys take memory as well.
    let error = run(&session, insert).await.map(|_| ()).unwrap_err();
    assert!(error.starts_with(expected), "{error}");
    session.collect("INSERT INTO t SELECT value FROM generate_series(1, 1000)").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_of_one_buffer_are_charged_once() {
    let session = session("24MiB");
    session.collect("CREATE TABLE t(v BIGINT)").await.unwrap();
    session.collect("INSERT INTO t SELECT unnest(range(0, 1000000))").await.unwrap();
    assert_eq!(one(&session, "SELECT count(*) FROM t").await.0, "1000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_in_memory_are_held_to_the_limit() {
    let session = session("16MiB");
    let create = |name: &str, rows: u32| {
        format!("CREATE OR REPLACE TABLE {name} AS SELECT value AS v FROM generate_series(1, {rows})")
    };
    session.collect(&create("small", 1_000_000)).await.unwrap();
    for (name, rows) in [("large", 5_000_000), ("second", 1_500_000), ("small", 5_000_000)] {
        let error = run(&session, &create(name, rows)).await.map(|_| ()).unwrap_err();
        let expected = format!("SQL-009 out of memory on the CPU: table '{name}' and the tables in memory do not fit");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with("raise warpcube.memory_limit or look at warpcube.spill_folder"), "{error}");
    }
    assert_eq!(one(&session, "SELECT count(*) FROM small").await.0, "1000000");
    session.collect("DROP TABLE small").await.unwrap();
    session.collect(&create("second", 1_500_000)).await.unwrap();
    // What is in slices of one batch is charged once.
    session.collect("DROP TABLE second").await.unwrap();
    let groups =
        "CREATE TABLE g AS SELECT value % 100000 AS k, count(*) AS n FROM generate_series(1, 200000) GROUP BY 1";
    session.collect(groups).await.unwrap();
    session.set("warpcube.memory_limit", "auto").unwrap();
    session.collect(&create("large", 5_000_000)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_returning_gives_are_held_to_the_limit() {
    let session = session("6MiB");
    let create = "CREATE TABLE t AS SELECT value AS k, repeat('x', 500) AS s FROM generate_series(1, 4000)";
    session.collect(create).await.unwrap();
    for change in [
        "DELETE FROM t RETURNING repeat(s, 4) AS r",
        "UPDATE t SET k = -k RETURNING repeat(s, 4) AS r",
        "INSERT INTO t SELECT value, 'y' FROM generate_series(1, 4000) RETURNING repeat(s, 2000) AS r",
    ] {
        let error = run(&session, change).await.map(|_| ()).unwrap_err();
        let expected = "SQL-009 out of memory on the CPU: table 't' and the tables in memory do not fit";
        assert!(error.starts_with(expected), "{change}: {error}");
        assert_eq!(one(&session, "SELECT count(*), min(k) FROM t").await.0, "4000 1", "{change}");
    }
    // What fits is given, and is not charged any more once it has been read.
    for _ in 0..5 {
        let given = session.collect("UPDATE t SET k = k + 1 RETURNING s").await.unwrap();
        assert_eq!(given.iter().map(RecordBatch::num_rows).sum::<usize>(), 4000);
    }
    session.collect("DELETE FROM t RETURNING k").await.unwrap();
    session.collect("DROP TABLE t").await.unwrap();
    session.collect(create).await.unwrap();
}

#[tokio::test]
async fn tables_that_a_program_registers_are_held_to_the_limit() {
    let session = session("1MiB");
    let table = |rows: i64| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
        Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap())
    };
    let error = session.context().register_table("t", table(1_000_000)).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("table 't' and the tables in memory do not fit"), "{error}");
    session.context().register_table("t", table(1000)).unwrap();
    assert_eq!(one(&session, "SELECT sum(v) FROM t").await.0, "499500");
}
