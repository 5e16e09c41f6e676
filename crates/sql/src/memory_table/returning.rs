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
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::TryStreamExt;
use parking_lot::Mutex;

use super::{Charge, Charged};
use crate::error::Result;

/// The SELECT of a statement, and what it has given.
#[derive(Debug)]
pub(crate) struct Returning {
    plan: Arc<dyn ExecutionPlan>,
    changed: Mutex<Vec<RecordBatch>>,
    result: Mutex<Charged>,
}

impl Returning {
    /// Of a plan over a table in [`Role::Returned`](super::Role::Returned).
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>) -> Returning {
        Returning { plan, changed: Mutex::default(), result: Mutex::default() }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Computes the SELECT over these rows; `charge` charges a batch that it gives.
    ///
    /// # Errors
    /// Those of the SELECT, and [`SqlError::Memory`](crate::SqlError::Memory) if what it gives does not fit.
    pub(super) async fn compute(
        &self,
        rows: Charged,
        charge: impl Fn(&RecordBatch) -> Result<Arc<Charge>>,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<()> {
        let Charged { charges, batches } = rows;
        *self.changed.lock() = batches;
        let mut result = Charged::default();
        let mut selected = execute_stream(self.plan.clone(), context.clone())?;
        while let Some(batch) = selected.try_next().await? {
            let charge = charge(&batch)?;
            result.push(batch, charge);
        }
        drop(charges);
        self.changed.lock().clear();
        *self.result.lock() = result;
        Ok(())
    }

    /// What the SELECT gave, once. A batch is charged until it is taken from there.
    pub(crate) fn take(&self) -> impl Iterator<Item = RecordBatch> + use<> {
        let Charged { charges, batches } = std::mem::take(&mut *self.result.lock());
        charges.into_iter().zip(batches).map(|(_, batch)| batch)
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
