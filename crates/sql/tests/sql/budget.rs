//! The device's memory: many threads on little of it, none of it asked for by warm statements, and no more of it taken
//! than the columns need.

use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use warpcube_sql::{Connection, Database, DatabaseOptions, Place};

use crate::support::{device_name, pool, resident_bytes, rows, run, settle};

fn session(memory: &str) -> Connection {
    let options = DatabaseOptions::new()
        .with("warpcube.device", &device_name())
        .with("warpcube.placement", "cuda")
        .with("warpcube.target_partitions", "2")
        .with("warpcube.device_memory", memory);
    Database::open(options).unwrap().connect()
}

/// Runs a statement on the device alone.
async fn on_device(session: &Connection, sql: &str) -> Vec<String> {
    let (batches, summary) = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu) && !summary.fragments.is_empty());
    rows(&batches)
}

/// Eight columns of like values, so that one kernel serves the sums of any two of them.
async fn wide_table(session: &Connection) {
    let columns: Vec<String> = (0..8).map(|column| format!("(value + {column}) % 1000 AS c{column}")).collect();
    let columns = columns.join(", ");
    let create = format!("CREATE TABLE t AS SELECT value % 5 AS g, {columns} FROM generate_series(1, 20000)");
    session.collect(&create).await.unwrap();
}

fn sums(first: usize) -> String {
    format!("SELECT g, sum(c{first}) AS a, sum(c{}) AS b FROM t GROUP BY g", (first + 1) % 8)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn eight_threads_finish_on_the_budget_of_one_query_and_a_fifth() {
    let roomy = session("256MiB");
    wide_table(&roomy).await;
    let mut expected = Vec::new();
    for first in 0..8 {
        expected.push(on_device(&roomy, &sums(first)).await);
        for table in ["EVICT TABLE t"] {
            roomy.collect(table).await.unwrap();
        }
    }
    let one = pool(&roomy).reserved_peak;
    let tight = session(&(one + one / 5).to_string());
    wide_table(&tight).await;
    let (tight, expected) = (Arc::new(tight), Arc::new(expected));
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (tight, expected) = (tight.clone(), expected.clone());
            tokio::spawn(async move {
                for round in 0..4 {
                    let first = (thread * 3 + round * 5) % 8;
                    assert_eq!(on_device(&tight, &sums(first)).await, expected[first], "thread {thread} round {round}");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.await.unwrap();
    }
    settle(&tight).await;
    let usage = pool(&tight);
    assert!(usage.reserved_peak <= usage.budget && usage.held_peak <= usage.budget, "{usage:?}");
    // The columns of all statements together would not have had room.
    assert!(9 * 20_000 * 8 > usage.budget, "{usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_statement_asks_the_driver_for_nothing() {
    let session = session("256MiB");
    wide_table(&session).await;
    session
        .collect("CREATE TABLE d AS SELECT value AS k, 'd' || (value % 3) AS s FROM generate_series(0, 4)")
        .await
        .unwrap();
    let queries = [
        sums(0),
        "SELECT s, sum(c3) FROM t JOIN d ON g = k GROUP BY s".to_string(),
        "SELECT c1 * 1000003 % 900007 AS far, count(*) FROM t WHERE c1 < 100 GROUP BY 1".to_string(),
        "SELECT min(c4), max(c5), count(*) FROM t WHERE c6 > 500".to_string(),
    ];
    let mut first = Vec::new();
    for sql in &queries {
        first.push(on_device(&session, sql).await);
    }
    let device = session.database().device().get().unwrap();
    let (before, compiled) = (pool(&session), device.compiles());
    for _ in 0..3 {
        for (sql, first) in queries.iter().zip(&first) {
            assert_eq!(on_device(&session, sql).await, *first, "{sql}");
        }
    }
    let after = pool(&session);
    assert_eq!(after.driver_allocations, before.driver_allocations);
    assert_eq!((after.held_peak, device.compiles()), (before.held_peak, compiled));
}

/// Memory of tables and results, as the operators of a plan have noted it.
fn arena_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let noted = plan.metrics().and_then(|metrics| metrics.sum_by_name("arena_bytes"));
    let own = noted.map_or(0, |value| value.as_usize() as u64);
    own + plan.children().into_iter().map(arena_bytes).sum::<u64>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn device_memory_is_that_of_the_columns_and_a_tenth_at_most() {
    let folder = tempfile::tempdir().unwrap();
    // Row counts that are no power of two, in files and row groups of different sizes.
    for (file, rows) in [("a", 130_000), ("b", 70_001), ("c", 11_003)] {
        let copy = format!(
            "COPY (SELECT arrow_cast(value % 100, 'Int8') AS i8, arrow_cast(value % 30000, 'Int16') AS i16, \
             arrow_cast(value, 'Int32') AS i32, value AS i64, arrow_cast(value, 'Float64') AS f64, value % 2 = 0 AS b, \
             's' || (value % 100) AS s, CASE WHEN value % 3 > 0 THEN arrow_cast(value, 'Int32') END AS n \
             FROM generate_series(1, {rows})) TO '{}/t/{file}.parquet'",
            folder.path().display()
        );
        session("auto").collect(&copy).await.unwrap();
    }
    let plain = session("256MiB");
    plain.set("warpcube.encoding", "plain").unwrap();
    let packed = session("256MiB");
    let session = plain;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/t/'", folder.path().display());
    session.collect(&create).await.unwrap();
    session.collect("LOAD TABLE t").await.unwrap();
    // A value is 1, 2, 4 or 8 bytes, a string's code 4; a column with NULLs has a bit a row besides.
    let rows = 130_000 + 70_001 + 11_003u64;
    let encoded = rows * (1 + 2 + 4 + 8 + 8 + 1 + 4 + 4) + rows / 8;
    let usage = pool(&session);
    assert_eq!(usage.live, resident_bytes(&session).await);
    assert!(usage.live >= encoded && (usage.live + usage.cached) * 10 <= encoded * 11, "{encoded} {usage:?}");
    // With the tables and the result of a statement.
    let execution = session.execute("SELECT s, sum(i64), count(n) FROM t GROUP BY s").await.unwrap();
    let plan = execution.plan.clone().unwrap();
    execution.collect().await.unwrap();
    let (usage, arena) = (pool(&session), arena_bytes(&plan));
    assert!(arena > 0 && usage.held_peak * 10 <= (encoded + arena) * 11, "{encoded} + {arena}: {usage:?}");
    // Encoded columns take six tenths at most, and nothing is kept of their plain forms; what is kept of the memory to
    // encode in is small whatever the columns are.
    packed.collect(&create).await.unwrap();
    packed.collect("LOAD TABLE t").await.unwrap();
    // A thread of its own gives memory back to the driver.
    for _ in 0..500 {
        if pool(&packed).cached <= 256 << 10 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let usage = pool(&packed);
    assert_eq!(usage.live, resident_bytes(&packed).await);
    assert!(usage.live * 10 < encoded * 6 && usage.cached <= 256 << 10, "{encoded} {usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_that_nothing_names_or_that_have_no_form_are_not_sent() {
    let session = session("256MiB");
    let create = "CREATE TABLE odd AS SELECT arrow_cast('ab', 'Binary') AS bytes, make_array(value) AS list, \
                  INTERVAL '1' DAY AS i, value AS n, value * 2 AS m FROM generate_series(1, 100)";
    session.collect(create).await.unwrap();
    let on_device = async || -> Vec<String> {
        let shown = session.collect("SHOW DEVICE TABLES").await.unwrap();
        crate::format::rows(&shown).into_iter().map(|row| format!("{} {} {}", row[0], row[1], row[2])).collect()
    };
    assert_eq!(self::on_device(&session, "SELECT sum(n) AS s FROM odd").await[0], "| 5050 |");
    assert_eq!(on_device().await, ["odd 100 n"]);
    // All of a table is all that the device has a form for.
    session.collect("LOAD TABLE odd").await.unwrap();
    assert_eq!(on_device().await, ["odd 100 n", "odd 100 m"]);
    let error = session.collect("LOAD TABLE odd (list)").await.unwrap_err().to_string();
    assert!(error.starts_with("COL-001 column 'list' stays on the CPU: "), "{error}");
    session.collect("EVICT TABLE odd").await.unwrap();
    assert_eq!(on_device().await, [""; 0]);
    assert_eq!((pool(&session).live, pool(&session).reserved), (0, 0));
}
