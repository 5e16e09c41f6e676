//! Operators over shared tables: a reader, and the query with all that it reads.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{Stream, StreamExt};

use super::output::Output;
use crate::leaf_operator::leaf_operator;

/// Reads the rows of a shared table, in one partition.
#[derive(Debug)]
pub(super) struct SharedExec {
    output: Arc<Output>,
    /// Columns of the output; none for all.
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SharedExec {
    /// A reader of these columns, which are called as in `schema`.
    pub(super) fn new(output: Arc<Output>, projection: Option<Vec<usize>>, schema: SchemaRef) -> SharedExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        SharedExec { output, projection, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let name = self.output.name();
        match kind {
            // Lines of `key=value` of ASCII, which DataFusion cuts by bytes.
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", name.replace(|character: char| !character.is_ascii(), ""))
            }
            _ => {
                let schema = self.schema();
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                write!(f, "SharedExec: {name}, projection=[{}]", names.join(", "))
            }
        }
    }
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &str {
        "SharedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    leaf_operator!("a reader of a shared table");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("a shared table has one partition, not {partition}")));
        }
        let (schema, projection) = (self.schema(), self.projection.clone());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = self.output.clone().rows(context)?.map(move |batch| {
            let batch = match &projection {
                Some(projection) => batch?.project(projection)?,
                None => batch?,
            };
            metrics.record_output(batch.num_rows());
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// The rows of the output where it has run; what is expected of its plan before.
    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let all = self.output.statistics();
        Ok(Arc::new(match &self.projection {
            Some(projection) => all.project(Some(projection)),
            None => all,
        }))
    }
}

/// Gives the rows of a query, and drops the shared tables that it reads when all of them have been given.
#[derive(Debug)]
pub(super) struct WithExec {
    /// The query, then the plan of each output.
    children: Vec<Arc<dyn ExecutionPlan>>,
    outputs: Arc<[Arc<Output>]>,
    /// Partitions of the query that have not ended.
    open: Arc<AtomicUsize>,
}

impl WithExec {
    pub(super) fn new(query: Arc<dyn ExecutionPlan>, outputs: Vec<Arc<Output>>) -> WithExec {
        let open = Arc::new(AtomicUsize::new(query.properties().output_partitioning().partition_count()));
        let children = std::iter::once(query).chain(outputs.iter().map(|output| output.plan().clone())).collect();
        WithExec { children, outputs: outputs.into(), open }
    }

    fn query(&self) -> &Arc<dyn ExecutionPlan> {
        &self.children[0]
    }
}

impl DisplayAs for WithExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = self.outputs.iter().map(|output| output.name()).collect();
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "tables={}", names.len()),
            _ => write!(f, "WithExec: {}", names.join(", ")),
        }
    }
}

impl ExecutionPlan for WithExec {
    fn name(&self) -> &str {
        "WithExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.query().properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        (0..self.children.len()).map(|child| child == 0).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children.len()]
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        let of = |child: usize| if child == 0 { ChildStats::At(partition) } else { ChildStats::Skip };
        (0..self.children.len()).map(of).collect()
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(input_stats[0].clone())
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    /// The plans of outputs belong to their readers, and stay.
    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.into_iter().next() {
            Some(query) => Ok(Arc::new(WithExec::new(query, self.outputs.to_vec()))),
            None => Err(DataFusionError::Internal("a query over shared tables is gone".into())),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.query().execute(partition, context)?;
        let partitions = self.properties().output_partitioning().partition_count();
        let end = End { outputs: self.outputs.clone(), open: self.open.clone(), partitions };
        Ok(Box::pin(Rows { rows: Some(rows), schema: self.schema(), end: Some(end) }))
    }

    /// What the outputs have spilled.
    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = MetricsSet::new();
        let metrics = self.outputs.iter().map(|output| output.metrics());
        metrics.for_each(|metrics| metrics.iter().for_each(|metric| all.push(metric.clone())));
        Some(all)
    }
}

/// Drops the outputs at the end of the last partition.
struct End {
    outputs: Arc<[Arc<Output>]>,
    open: Arc<AtomicUsize>,
    partitions: usize,
}

impl Drop for End {
    fn drop(&mut self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.outputs.iter().for_each(|output| output.clear());
            self.open.store(self.partitions, Ordering::Release);
        }
    }
}

/// The rows of a partition.
struct Rows {
    /// None when all have been given.
    rows: Option<SendableRecordBatchStream>,
    schema: SchemaRef,
    end: Option<End>,
}

impl Stream for Rows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        let next = rows.poll_next_unpin(context);
        if let Poll::Ready(None) = next {
            // Readers end before what they read.
            self.rows = None;
            self.end = None;
        }
        next
    }
}

impl RecordBatchStream for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
