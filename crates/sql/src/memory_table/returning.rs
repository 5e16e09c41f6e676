//! What RETURNING gives: a SELECT over the rows that a statement has changed.
//!
//! The rows are those that come into the table, with DELETE those that leave it, and with MERGE first these and then
//! those. The sink has the SELECT computed before it puts its version in place, so that an error of the list changes
//! nothing. A statement finds its own [`Returning`] in the configuration of its tasks.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, collect};
use parking_lot::Mutex;

/// The SELECT of a statement, and what it has given.
#[derive(Debug)]
pub(crate) struct Returning {
    plan: Arc<dyn ExecutionPlan>,
    changed: Mutex<Vec<RecordBatch>>,
    result: Mutex<Vec<RecordBatch>>,
}

impl Returning {
    /// Of a plan over a table in [`Role::Returned`](super::Role::Returned).
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>) -> Returning {
        Returning { plan, changed: Mutex::default(), result: Mutex::default() }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Computes the SELECT over these rows.
    pub(super) async fn compute(&self, rows: Vec<RecordBatch>, context: &Arc<TaskContext>) -> DataFusionResult<()> {
        *self.changed.lock() = rows;
        let result = collect(self.plan.clone(), context.clone()).await?;
        *self.result.lock() = result;
        Ok(())
    }

    /// What the SELECT gave, once.
    pub(crate) fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut *self.result.lock())
    }
}

/// The rows that the running statement has changed.
#[derive(Debug)]
struct ChangedRows(SchemaRef);

impl PartitionStream for ChangedRows {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let returning = context.session_config().get_extension::<Returning>();
        let rows = returning.map(|returning| returning.changed.lock().clone()).unwrap_or_default();
        let rows = futures::stream::iter(rows.into_iter().map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(self.0.clone(), rows))
    }
}

/// A scan of the rows that the statement which runs it has changed.
pub(super) fn scan(schema: SchemaRef, projection: Option<&Vec<usize>>) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
    let rows: Arc<dyn PartitionStream> = Arc::new(ChangedRows(schema.clone()));
    Ok(Arc::new(StreamingTableExec::try_new(schema, vec![rows], projection, None, false, None)?))
}
