//! The stream of a statement's rows, watched: it ends when the statement is cancelled or out of time, its errors are
//! ours, and the statement's report is complete when it ends.
//!
//! Invariant: when the stream is dropped, however far it came, the statement's work is told to stop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::catalog::CatalogShared;
use crate::diagnose::{self, Suspect};
use crate::error::SqlError;
use crate::exec::Afterwards;
use crate::progress::host_rows;
use crate::report::StatementReport;
use crate::session::staged::Staged;

/// When a statement must be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    allowed: Duration,
}

impl Deadline {
    pub(crate) fn after(allowed: Duration) -> Deadline {
        Deadline { at: Instant::now() + allowed, allowed }
    }

    /// Waits for the deadline, for ever where there is none; gives the error.
    pub(crate) async fn passed(deadline: Option<Deadline>) -> SqlError {
        match deadline {
            Some(Deadline { at, allowed }) => {
                tokio::time::sleep_until(at).await;
                SqlError::TimedOut { milliseconds: allowed.as_millis() }
            }
            None => std::future::pending().await,
        }
    }
}

/// A running statement.
pub(crate) struct Watched {
    pub(crate) inner: SendableRecordBatchStream,
    pub(crate) report: Arc<StatementReport>,
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) deadline: Option<Deadline>,
    /// What a statement that writes has to do when it is done.
    pub(crate) writes: Option<Writes>,
    /// What is to come to the device when it is over.
    pub(crate) afterwards: Option<Afterwards>,
}

/// What a statement writes to.
pub(crate) struct Writes {
    /// Told when the statement is done.
    pub(crate) catalog: Arc<CatalogShared>,
    /// Files that take their places when it has succeeded.
    pub(crate) staged: Option<Staged>,
}

impl Watched {
    /// The rows.
    pub(crate) fn into_stream(self) -> SendableRecordBatchStream {
        let schema: SchemaRef = self.inner.schema();
        let rows = futures::stream::unfold(Some(self), |watched| async {
            let mut watched = watched?;
            match watched.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(watched))),
                Ok(None) => None,
                Err(error) => Some((Err(DataFusionError::from(error)), None)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let item = tokio::select! {
            biased;
            () = self.report.cancel().cancelled() => return Err(SqlError::Cancelled),
            // Before the rows: those of a fast source are always there.
            error = Deadline::passed(self.deadline) => return Err(error),
            item = AssertUnwindSafe(self.inner.next()).catch_unwind() => item,
        };
        let error = match item {
            Ok(Some(Ok(batch))) => {
                // The one batch of such a statement counts what it has written: all of it is there.
                if let Some(staged) = self.writes.as_mut().and_then(|writes| writes.staged.take()) {
                    staged.commit()?;
                }
                self.report.add_rows(batch.num_rows() as u64);
                return Ok(Some(batch));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => SqlError::from(error),
            // An operator or a reader panicked: this statement is over, the session is not.
            Err(panic) => SqlError::of_panic(panic.as_ref()),
        };
        Err(diagnose::explain(Suspect::of_plan(&self.plan), error).await)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.report.add_host_rows(host_rows(&self.plan));
        self.report.finish();
        let was_cancelled = self.report.cancel().is_cancelled();
        // Whoever still works for this statement, on the device or in a blocking call, sees that nobody waits.
        self.report.cancel().cancel();
        if let Some(afterwards) = self.afterwards.take().filter(|_| !was_cancelled) {
            afterwards.begin();
        }
        if let Some(writes) = &self.writes {
            writes.catalog.changed();
        }
    }
}
