//! First rows by an order that no file can show: too many for one, and wrong only now and then.

use crate::format::rows;
use crate::support::{cpu, emulated, run};

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
