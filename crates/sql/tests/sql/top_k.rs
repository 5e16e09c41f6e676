//! First rows by an order that no file can show: too many for one, and wrong only now and then.

use warpcube_sql::Place;

use crate::format::rows;
use crate::support::{cpu, emulated, physical_plan, run};

#[tokio::test]
async fn rows_in_order_are_not_sorted_again() {
    let session = emulated();
    let sql = "CREATE TABLE t AS SELECT i, CASE WHEN i % 5 = 0 THEN -(x - x) WHEN i % 5 = 1 THEN x - x ELSE x END AS f \
               FROM (SELECT value AS i, CAST(value AS DOUBLE) / 7 AS x FROM generate_series(1, 30000))";
    session.collect(sql).await.unwrap();
    for order in ["f DESC", "i + 1", "i % 3, f NULLS FIRST, i", "f, i DESC"] {
        for limit in [5, 20_000] {
            let sql = format!("SELECT i, f FROM t ORDER BY {order} LIMIT {limit}");
            let plan = session.collect(&format!("EXPLAIN ANALYZE VERBOSE {sql}")).await.unwrap();
            let plan = rows(&plan).concat().concat();
            assert!(plan.contains("DeviceExec") && !plan.contains("SortExec"), "{plan}");
            let (batches, _) = run(&session, &sql).await.unwrap();
            let found: Vec<f64> = rows(&batches).iter().map(|row| row[1].parse().unwrap()).collect();
            assert_eq!(found.len(), limit);
            match order {
                "f DESC" => assert!(found.is_sorted_by(|one, next| one >= next), "{sql}"),
                "f, i DESC" => assert!(found.is_sorted(), "{sql}"),
                _ => {}
            }
        }
    }
    // Operators above take zeros of both signs for different ones.
    let sql =
        "EXPLAIN VERBOSE SELECT count(DISTINCT i) OVER (ORDER BY f) AS r FROM (SELECT i, f FROM t ORDER BY f LIMIT 9)";
    let plan = rows(&session.collect(sql).await.unwrap()).concat().concat();
    assert!(plan.contains("DeviceExec") && plan.contains("SortExec"), "{plan}");
    // Another order than the device's is sorted by.
    let sql = "EXPLAIN VERBOSE SELECT * FROM (SELECT i, f FROM t ORDER BY f LIMIT 9) ORDER BY i";
    let plan = rows(&session.collect(sql).await.unwrap()).concat().concat();
    assert!(plan.contains("DeviceExec") && plan.contains("SortExec"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_many_batches_keep_their_order() {
    for session in [cpu(), emulated()] {
        let sql = "CREATE TABLE t AS SELECT value * 7919 % 30011 AS x FROM generate_series(1, 30000)";
        session.collect(sql).await.unwrap();
        for _ in 0..4 {
            // What is computed is no key, so that the order is lost where rows are repartitioned for it.
            let sql = "SELECT CAST(-x AS VARCHAR) AS s FROM t WHERE x > 10 ORDER BY -x LIMIT 25000";
            let (batches, _) = run(&session, sql).await.unwrap();
            let found: Vec<i64> = rows(&batches).iter().map(|row| row[0].parse().unwrap()).collect();
            assert_eq!(found.len(), 25_000);
            assert!(found.is_sorted(), "{:?}", found.iter().zip(&found[1..]).find(|(one, next)| one > next));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_ordered_before_what_the_cpu_computes_of_them() {
    let (device, cpu) = (emulated(), cpu());
    for session in [&device, &cpu] {
        let sql = "CREATE TABLE t AS SELECT value * 7919 % 30011 AS x, CAST(value % 97 AS DECIMAL(15,2)) AS d, \
                   CAST(value % 7 AS DOUBLE) AS f FROM generate_series(1, 60000)";
        session.collect(sql).await.unwrap();
    }
    // A logarithm, of more groups than a batch has rows.
    let logarithm = "ln(sum(d * d) + 1)";
    for (order, limit) in [("x DESC", ""), ("n, x", ""), ("x", " LIMIT 20000"), ("n DESC, x", " LIMIT 50 OFFSET 20")] {
        let sql = format!("SELECT count(*) AS n, {logarithm} AS l, x FROM t GROUP BY x ORDER BY {order}{limit}");
        let (expected, _) = run(&cpu, &sql).await.unwrap();
        let (found, summary) = run(&device, &sql).await.unwrap();
        assert_eq!(rows(&found), rows(&expected), "{sql}");
        assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu), "{sql}: {summary:?}");
        assert_eq!(summary.gpu_share(), Some(1.0), "{sql}: {summary:?}");
        let plan = physical_plan(&device, &sql).await;
        assert!(!plan.contains("SortExec") && !plan.contains("RepartitionExec"), "{plan}");
    }
    // Groups whose order the logarithm itself is are ordered on the CPU.
    let sql = format!("EXPLAIN VERBOSE SELECT {logarithm} AS l, x FROM t GROUP BY x ORDER BY l, x");
    let plan = rows(&device.collect(&sql).await.unwrap()).concat().concat();
    assert!(plan.contains("DeviceExec") && plan.contains("SortExec"), "{plan}");
}
