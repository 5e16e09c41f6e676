//! An operator that gives its input's rows: what stands between two others while a rule runs, or before a sink.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// What an operator lets through.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Properties over an input.
    pub(crate) properties: fn(&dyn ExecutionPlan) -> Arc<PlanProperties>,
    /// The rows of a partition, under the operator's schema.
    pub(crate) rows: fn(SendableRecordBatchStream, SchemaRef) -> SendableRecordBatchStream,
    /// Whether operators above may rely on the order of the input's rows.
    pub(crate) keeps_order: bool,
}

/// The properties of rows of a schema, in no order that is known, in the partitions of an input.
pub(crate) fn unordered(input: &dyn ExecutionPlan, schema: SchemaRef) -> Arc<PlanProperties> {
    let of = input.properties();
    let partitioning = of.output_partitioning().clone();
    Arc::new(PlanProperties::new(EquivalenceProperties::new(schema), partitioning, of.emission_type, of.boundedness))
}

#[derive(Debug)]
pub(crate) struct PassThrough {
    kind: &'static Kind,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

/// The operator of a kind over an input.
pub(crate) fn pass_through(kind: &'static Kind, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let properties = (kind.properties)(input.as_ref());
    Arc::new(PassThrough { kind, input, properties })
}

impl PassThrough {
    /// The input of an operator, if that is of a kind.
    pub(crate) fn input_of<'a>(plan: &'a dyn ExecutionPlan, kind: &'static Kind) -> Option<&'a Arc<dyn ExecutionPlan>> {
        plan.downcast_ref::<PassThrough>().filter(|found| std::ptr::eq(found.kind, kind)).map(|found| &found.input)
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children
            .try_into()
            .map_err(|_| DataFusionError::Internal(format!("a {} over other than one input", self.kind.name)))?;
        Ok(pass_through(self.kind, input))
    }
}

impl DisplayAs for PassThrough {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)
    }
}

impl ExecutionPlan for PassThrough {
    fn name(&self) -> &str {
        self.kind.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.kind.keeps_order]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok((self.kind.rows)(self.input.execute(partition, context)?, self.schema()))
    }
}
