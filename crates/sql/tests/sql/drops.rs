//! Statements that are dropped half-way: the device's memory comes back, and the next answer is right.
//!
//! How far a statement came is drawn from a seed: polls of the call that starts it, batches of its rows, or a time,
//! with its tables on the device or not. What comes of it depends on the machine; what must hold afterwards does not.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use warpcube_sql::{Connection, Execution, StatementReport};

use crate::fuzz::random::Random;
use crate::support::{cpu, lenient, one, rows, settle};

/// Statements that are dropped.
const DROPS: usize = 100;

const TABLES: [&str; 2] = [
    "COPY (SELECT value AS id, value % 500 AS k, value * 7919 % 1000 AS x, 'name ' || (value % 37) AS s \
     FROM generate_series(1, 40000)) TO '$folder/facts/' STORED AS PARQUET",
    "COPY (SELECT value AS k, 'group ' || (value % 10) AS g FROM generate_series(0, 499)) TO '$folder/groups.parquet'",
];

/// Loads, dense and hashed groups, a join, fragments beside each other and above each other, and rows from the CPU.
const QUERIES: [&str; 7] = [
    "SELECT sum(x), count(*) FROM facts",
    "SELECT s, sum(x) FROM facts GROUP BY s",
    "SELECT g, sum(x), min(id) FROM facts JOIN groups ON facts.k = groups.k GROUP BY g",
    "SELECT id * 1000000007 % 900000011 AS far, count(*) FROM facts WHERE id < 300 GROUP BY 1",
    "SELECT g, count(*) FROM groups GROUP BY g UNION ALL SELECT s, count(*) FROM facts GROUP BY s",
    "SELECT median(x) FROM facts",
    "SELECT id, s FROM facts WHERE x < 900",
];

/// Polls a future so many times, with time for others in between, and drops it; what it gave if it was done before.
async fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..times {
        let polled = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(value) = polled {
            return Some(value);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Starts a statement and leaves it at some point.
async fn run_and_drop(session: &Connection, sql: &str, random: &mut Random) {
    let some_time = Duration::from_micros(random.below(20_000) as u64);
    match random.below(6) {
        0 => drop(poll_times(session.execute(sql), 1 + random.below(6)).await),
        1 => drop(session.execute(sql).await.unwrap()),
        2 => {
            let Execution { mut stream, .. } = session.execute(sql).await.unwrap();
            drop(tokio::time::timeout(some_time, stream.next()).await);
        }
        3 => {
            let Execution { mut stream, .. } = session.execute(sql).await.unwrap();
            for _ in 0..random.below(4) {
                let Some(batch) = stream.next().await else { return };
                batch.unwrap();
            }
        }
        4 => drop(tokio::time::timeout(some_time, session.execute("LOAD TABLE facts")).await),
        _ => {
            let report = StatementReport::new();
            let execution = session.execute_with(sql, report.clone()).await.unwrap();
            let ((), ended) = tokio::join!(
                async {
                    tokio::time::sleep(some_time).await;
                    report.cancel().cancel();
                },
                execution.collect()
            );
            assert!(ended.as_ref().is_ok() || ended.as_ref().is_err_and(|error| error.is_cancelled()), "{ended:?}");
        }
    }
}

async fn with_tables(session: &Connection, folder: &str) {
    for (name, path) in [("facts", "facts/"), ("groups", "groups.parquet")] {
        let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{folder}/{path}'");
        session.collect(&sql).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_dropped_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display().to_string();
    let (device, cpu) = (lenient(), cpu());
    for sql in TABLES {
        cpu.collect(&sql.replace("$folder", &folder)).await.unwrap();
    }
    with_tables(&device, &folder).await;
    with_tables(&cpu, &folder).await;
    let mut expected = Vec::new();
    for sql in QUERIES {
        expected.push(rows(&cpu.collect(sql).await.unwrap()));
    }
    let mut random = Random::new(2);
    for number in 0..DROPS {
        // Two of three statements find nothing on the device.
        if random.chance(66) {
            device.collect("EVICT TABLE facts").await.unwrap();
            device.collect("EVICT TABLE groups").await.unwrap();
        }
        let dropped = random.below(QUERIES.len());
        run_and_drop(&device, QUERIES[dropped], &mut random).await;
        settle(&device).await;
        // Mostly the same statement once more; its bindings and columns are those that the dropped one left.
        let next = if random.chance(70) { dropped } else { random.below(QUERIES.len()) };
        let found = rows(&device.collect(QUERIES[next]).await.unwrap());
        assert_eq!(found, expected[next], "after drop {number} of {}: {}", QUERIES[dropped], QUERIES[next]);
        settle(&device).await;
    }
    device.collect("EVICT TABLE facts").await.unwrap();
    device.collect("EVICT TABLE groups").await.unwrap();
    settle(&device).await;
    let usage = crate::support::pool(&device);
    assert_eq!((usage.live, usage.reserved), (0, 0), "{usage:?}");
    assert!(usage.driver_allocations > 0, "nothing ran on the device: {usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_out_of_time_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display().to_string();
    let device = lenient();
    for sql in TABLES {
        device.collect(&sql.replace("$folder", &folder)).await.unwrap();
    }
    with_tables(&device, &folder).await;
    for _ in 0..3 {
        // Loading takes longer than this on any machine.
        device.set("warpcube.timeout", "1ms").unwrap();
        let error = match device.execute(QUERIES[1]).await {
            Ok(execution) => execution.collect().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.to_string(), "SQL-008 timed out after 1 ms; raise warpcube.timeout or set it to 'off'");
        device.set("warpcube.timeout", "off").unwrap();
        settle(&device).await;
        device.collect("EVICT TABLE facts").await.unwrap();
    }
    assert_eq!(one(&device, QUERIES[0]).await.0, "19980000 40000");
}
