//! The lock of a table whose rows a statement changes: from before the plan that runs is made until its rows are there.

use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::memory_table::{MemoryTable, WriteLock};

/// When a table was locked.
pub(super) enum Locked {
    /// When this plan was there: it may be of an older version.
    Now(WriteLock),
    /// Before this plan was made; none where it changes no rows.
    Before(Option<WriteLock>),
}

/// Locks the table whose rows a plan changes when it runs.
pub(super) async fn lock(plan: &LogicalPlan, held: Option<WriteLock>) -> Locked {
    let plan = match plan {
        LogicalPlan::Analyze(analyze) => analyze.input.as_ref(),
        plan => plan,
    };
    let LogicalPlan::Dml(dml) = plan else { return Locked::Before(None) };
    let Ok(provider) = source_as_provider(&dml.target) else { return Locked::Before(None) };
    match provider.downcast_ref::<MemoryTable>().filter(|table| table.takes_changes()) {
        None => Locked::Before(None),
        Some(table) if held.as_ref().is_some_and(|held| held.is_of(table)) => Locked::Before(held),
        Some(table) => Locked::Now(table.lock().await),
    }
}

/// A stream that holds a lock until it has ended or is dropped.
pub(super) fn holding(rows: SendableRecordBatchStream, lock: WriteLock) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let held = futures::stream::unfold((rows, Some(lock)), |(mut rows, lock)| async {
        let next = rows.next().await?;
        Some((next, (rows, lock)))
    });
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), held))
}
