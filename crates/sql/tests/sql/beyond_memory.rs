//! Statements whose matches, groups or intermediate results are larger than the budget of device memory: under `auto`
//! the CPU gives their answer and the report says why, under `cuda` they are refused with what they need. The session
//! goes on with the device either way.

use warpcube_sql::{Connection, Database, DatabaseOptions, Place};

use crate::support::{cpu, pool, resident_bytes, rows, run, settle};

const BUDGET: &str = "1MiB";

async fn session(memory: &str, create: &[&str]) -> Connection {
    let options = DatabaseOptions::new().with("warpcube.device", "emulated").with("warpcube.device_memory", memory);
    let session = Database::open(options.with("warpcube.placement", "cuda")).unwrap().connect();
    for create in create {
        session.collect(create).await.unwrap();
    }
    session
}

/// Runs a statement whose needs are beyond [`BUDGET`]; with enough memory it is wholly on the device.
async fn is_beyond_memory(create: &[&str], sql: &str) {
    let on_cpu = cpu();
    for create in create {
        on_cpu.collect(create).await.unwrap();
    }
    let expected = rows(&run(&on_cpu, sql).await.unwrap().0);
    let roomy = session("512MiB", create).await;
    let (found, summary) = run(&roomy, sql).await.unwrap();
    assert_eq!(rows(&found), expected, "{sql}");
    assert!(summary.fragments.iter().all(|one| one.place == Place::Gpu) && !summary.fragments.is_empty(), "{sql}");
    assert!(pool(&roomy).reserved_peak > 1 << 20, "{sql}\n{:?}", pool(&roomy));

    let tight = session(BUDGET, create).await;
    let error = run(&tight, sql).await.unwrap_err().to_string();
    assert!(
        error.contains("bytes are wanted for hash tables and results")
            && error.contains("raise warpcube.device_memory"),
        "{sql}\n{error}"
    );
    settle(&tight).await;
    assert_eq!(pool(&tight).live, resident_bytes(&tight).await, "{sql}");
    tight.set("warpcube.placement", "auto").unwrap();
    for _ in 0..2 {
        let (found, summary) = run(&tight, sql).await.unwrap();
        assert_eq!(rows(&found), expected, "{sql}");
        let refused = summary.fragments.iter().find(|one| one.place == Place::Cpu);
        let reason = refused.and_then(|one| one.reason.clone()).unwrap_or_default();
        assert!(reason.contains("for hash tables and results"), "{sql}\n{:?}", summary.fragments);
        settle(&tight).await;
    }
    // What needs little is on the device as before.
    tight.set("warpcube.placement", "cuda").unwrap();
    let (_, summary) = run(&tight, "SELECT sum(v) FROM t").await.unwrap();
    assert!(summary.fragments.iter().all(|one| one.place == Place::Gpu) && !summary.fragments.is_empty());
    assert!(pool(&tight).reserved_peak <= pool(&tight).budget);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matches_of_a_join() {
    // One key in all rows: 490,000 matches.
    let t = "CREATE TABLE t AS SELECT 7 + value * 0 AS k, value AS v FROM generate_series(1, 700)";
    let u = "CREATE TABLE u AS SELECT 7 + value * 0 AS k, value * 31 % 701 AS w FROM generate_series(1, 700)";
    let sql = "SELECT v, w FROM t JOIN u ON t.k = u.k ORDER BY v + w, v LIMIT 5";
    is_beyond_memory(&[t, u], sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_a_statement() {
    let t = "CREATE TABLE t AS SELECT value * 1000003 % 900000007 AS k, value % 5 AS v FROM generate_series(1, 30000)";
    is_beyond_memory(&[t], "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM t GROUP BY k").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_another_aggregation_reads() {
    let t = "CREATE TABLE t AS SELECT value * 1000003 % 900000007 AS k, value % 5 AS v FROM generate_series(1, 30000)";
    let sql = "SELECT s, count(*) AS n FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) AS inner_groups GROUP BY s";
    is_beyond_memory(&[t], sql).await;
}

/// An outer join to many rows is aggregated by key before: more than 2³¹ matches of one key are counted and added up
/// without a row for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_matches_of_one_key_than_31_bits_count() {
    let t = "CREATE TABLE t AS SELECT 7 + value * 0 AS k, value AS v FROM generate_series(1, 50000)";
    let u = "CREATE TABLE u AS SELECT 7 + value * 0 AS k, value AS w FROM generate_series(1, 50000)";
    let tight = session(BUDGET, &[t, u]).await;
    let sql = "SELECT t.k, count(w) AS n, sum(w) AS s FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k";
    let (found, summary) = run(&tight, sql).await.unwrap();
    assert_eq!(rows(&found)[0], "| 7 | 2500000000 | 62501250000000 |");
    assert!(summary.fragments.iter().all(|one| one.place == Place::Gpu) && !summary.fragments.is_empty());
}
