//! Cancelling: by dropping the stream, by the report's switch, by the timeout, while kernels run and while columns
//! load. Whatever way, memory goes back to where it was and the next answer is right.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use warpcube_gpu::PoolUsage;
use warpcube_sql::{Connection, SqlError, StatementReport};

use crate::support::{emulated, on_real_device, rows};

const SQL: &str = "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k";
/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

async fn session() -> Connection {
    let session = emulated();
    // Enough rows that its runs are not taken for short: those are not given up in the middle.
    let table = "CREATE TABLE t AS SELECT value % 3 AS k, value AS v FROM generate_series(1, 200000)";
    session.collect(table).await.unwrap();
    session
}

fn usage(session: &Connection) -> PoolUsage {
    session.database().device().get().unwrap().pool().usage()
}

/// Waits until memory in use is what it was.
async fn settled(session: &Connection, before: &PoolUsage) {
    let clock = Instant::now();
    loop {
        let now = usage(session);
        if (now.reserved, now.live) == (before.reserved, before.live) {
            return;
        }
        assert!(clock.elapsed() < PATIENCE, "memory is not back where it was: {now:?} instead of {before:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Starts the statement, whose first launch stands still, and polls it until it does.
async fn held(session: &Connection, report: &Arc<StatementReport>) -> tokio::task::JoinHandle<Result<(), SqlError>> {
    let faults = session.database().device().get().unwrap().emulator_faults().unwrap();
    faults.hold_launch();
    let execution = session.execute_with(SQL, report.clone()).await.unwrap();
    let running = tokio::spawn(async move { execution.collect().await.map(|_| ()) });
    let waiting = tokio::task::spawn_blocking(move || faults.wait_until_held(PATIENCE));
    assert!(waiting.await.unwrap(), "the statement reached the device");
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_kernel_stops_whichever_way_the_statement_is_cancelled() {
    if on_real_device() {
        return;
    }
    let session = session().await;
    let expected = rows(&session.collect(SQL).await.unwrap());
    let before = usage(&session);
    for way in ["drop", "switch", "unpolled", "timeout"] {
        let report = StatementReport::new();
        if way == "unpolled" {
            // Nobody polls the stream any more, and it is not dropped either.
            let faults = session.database().device().get().unwrap().emulator_faults().unwrap();
            faults.hold_launch();
            let mut stream = session.execute_with(SQL, report.clone()).await.unwrap().stream;
            // A poll of a statement that is known to be short runs it, and is ready when the switch has stopped it.
            let polled = tokio::spawn(async move {
                let first = futures::poll!(stream.next());
                (first.map(|batch| batch.map(|rows| rows.map(|_| ()))), stream)
            });
            assert!(tokio::task::spawn_blocking(move || faults.wait_until_held(PATIENCE)).await.unwrap());
            report.cancel().cancel();
            settled(&session, &before).await;
            let (first, stream) = polled.await.unwrap();
            assert!(matches!(first, Poll::Pending | Poll::Ready(Some(Err(_)))), "{first:?}");
            drop(stream);
            continue;
        }
        if way == "timeout" {
            session.set("warpcube.timeout", "5s").unwrap();
        }
        let running = held(&session, &report).await;
        match way {
            "drop" => {
                running.abort();
                assert!(running.await.unwrap_err().is_cancelled());
            }
            "switch" => {
                report.cancel().cancel();
                assert!(matches!(running.await.unwrap(), Err(SqlError::Cancelled)));
            }
            _ => {
                assert!(matches!(running.await.unwrap(), Err(SqlError::TimedOut { .. })));
                session.set("warpcube.timeout", "off").unwrap();
            }
        }
        settled(&session, &before).await;
        assert_eq!(rows(&session.collect(SQL).await.unwrap()), expected, "{way}");
        settled(&session, &before).await;
    }
}

/// A table that goes on for ever.
struct Endless(SchemaRef);

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endless")
    }
}

impl PartitionStream for Endless {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = RecordBatch::try_new(self.0.clone(), vec![Arc::new(Int64Array::from(vec![1, 2, 3]))]).unwrap();
        let batches = futures::stream::repeat(batch).then(|batch| async {
            tokio::task::yield_now().await;
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.0.clone(), batches))
    }
}

/// A table that goes on for ever, with a column `v`.
pub fn endless() -> Arc<StreamingTable> {
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
    Arc::new(StreamingTable::try_new(schema.clone(), vec![Arc::new(Endless(schema))]).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_stops() {
    let session = session().await;
    session.collect(SQL).await.unwrap();
    session.context().register_table("endless", endless()).unwrap();
    let before = usage(&session);
    for statement in ["SELECT sum(v) AS s FROM endless", "LOAD TABLE endless"] {
        for by_switch in [true, false] {
            let report = StatementReport::new();
            let running = tokio::spawn({
                let (session, report) = (session.clone(), report.clone());
                async move { session.execute_with(statement, report).await?.collect().await.map(|_| ()) }
            });
            let clock = Instant::now();
            while report.progress().0 == 0 {
                assert!(clock.elapsed() < PATIENCE && !running.is_finished(), "{statement}: the load begins");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            match by_switch {
                true => {
                    report.cancel().cancel();
                    assert!(matches!(running.await.unwrap(), Err(SqlError::Cancelled)));
                }
                false => running.abort(),
            }
            settled(&session, &before).await;
        }
    }
    assert_eq!(rows(&session.collect("SELECT count(*) AS n FROM t").await.unwrap())[0], "| 200000 |");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeout_ends_a_statement_whose_rows_keep_coming() {
    let session = session().await;
    session.set("warpcube.timeout", "200ms").unwrap();
    let execution = session.execute("SELECT value FROM generate_series(1, 100000000000)").await.unwrap();
    let mut rows = execution.stream;
    let clock = Instant::now();
    let error = loop {
        match rows.next().await {
            Some(Ok(_)) => assert!(clock.elapsed() < PATIENCE, "it goes on"),
            Some(Err(error)) => break error.to_string(),
            None => panic!("the series ended"),
        }
    };
    assert!(error.contains("timed out after 200 ms"), "{error}");
}
