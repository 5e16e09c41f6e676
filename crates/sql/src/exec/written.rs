//! The rows of a `COPY` as its file has them.
//!
//! Two defects of DataFusion 55.2. Without a row it writes no file into a folder, so that nothing tells the columns;
//! here the sink is given a batch without rows. And columns of one name, which are written by position, have to have
//! names that differ in a plan; here they have their own again in a file of CSV. Formats that find columns by name
//! refuse them.
//!
//! It goes when the demultiplexer opens a file for no rows.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::mend::pass_through::{Kind, pass_through, unordered};
use crate::syntax::shown_name;
use crate::walk::Walk;

/// The physical plan of a statement, with the rows of a COPY as they are written.
pub(super) fn as_written(plan: Arc<dyn ExecutionPlan>, logical: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let copy = match logical {
        LogicalPlan::Copy(copy) => copy,
        LogicalPlan::Analyze(analyze) => match analyze.input.as_ref() {
            LogicalPlan::Copy(copy) => copy,
            _ => return Ok(plan),
        },
        _ => return Ok(plan),
    };
    // Without a row there is no partition that a file could be in.
    if !copy.partition_by.is_empty() {
        return Ok(plan);
    }
    let plan = plan.transform_down(|plan| {
        let Some(sink) = plan.downcast_ref::<DataSinkExec>() else { return Ok(Transformed::no(plan)) };
        let written = pass_through(&WRITTEN, sink.input().clone());
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::new(plan.clone().replace_children(vec![written], options)?, true, TreeNodeRecursion::Stop))
    })?;
    Ok(plan.data)
}

/// Gives the rows of its input under the names that are shown, and one batch at least.
static WRITTEN: Kind = Kind {
    name: "WrittenExec",
    properties: |input| {
        let planned = input.schema();
        let shown = |field: &Arc<Field>| field.as_ref().clone().with_name(shown_name(field.name()));
        let fields: Vec<Field> = planned.fields().iter().map(shown).collect();
        unordered(input, Arc::new(Schema::new_with_metadata(fields, planned.metadata().clone())))
    },
    rows: |rows, schema| {
        let batches = futures::stream::unfold((rows, false, schema.clone()), |(mut rows, given, schema)| async move {
            let batch = match rows.next().await {
                Some(batch) => batch.and_then(|batch| named(&batch, &schema)),
                None if given => return None,
                None => Ok(RecordBatch::new_empty(schema.clone())),
            };
            Some((batch, (rows, true, schema)))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    },
    keeps_order: true,
};

fn named(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let named = RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options);
    named.map_err(DataFusionError::from)
}
