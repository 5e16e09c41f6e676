//! [`DeviceExec`] as an operator of DataFusion's: its text in plans, and its rows.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{TryStreamExt, stream};
use warpcube_engine::{Sink, TopK};

use super::device_exec::{DeviceExec, Mode};
use super::work::Work;
use crate::leaf_operator::leaf_operator;
use crate::report::StatementReport;

impl DisplayAs for DeviceExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let fragment = &self.lowered.fragment;
        match kind {
            // Lines of `key=value`. DataFusion cuts them to the width of a box by bytes and panics where that parts a
            // character, so there must be none of several bytes.
            DisplayFormatType::TreeRender => {
                let tables: Vec<&str> = fragment.tables.iter().map(|table| table.name.as_str()).collect();
                let tables = tables.join(", ").replace(|character: char| !character.is_ascii(), "?");
                writeln!(f, "tables={tables}")?;
                writeln!(f, "pipelines={}", fragment.pipelines.len())
            }
            _ => {
                let mode = if self.mode == Mode::Whole { "" } else { "mode=Partial, " };
                write!(f, "DeviceExec: {mode}{}, pipelines=[", self.lowered.what)?;
                for (index, pipeline) in fragment.pipelines.iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    let sink = match &pipeline.sink {
                        Sink::Build { keys, payload } => {
                            format!("build({} keys, {} payload)", keys.len(), payload.len())
                        }
                        Sink::Aggregate { groups, aggregates } => {
                            format!("aggregate({} groups, {} aggregates)", groups.len(), aggregates.len())
                        }
                        Sink::Rows { columns, .. } => format!("rows({} columns)", columns.len()),
                        Sink::TopK(TopK { keys, k: Some(k), .. }) => format!("top-k({} keys, {k} rows)", keys.len()),
                        Sink::TopK(top) if top.windows.is_empty() => format!("sort({} keys)", top.keys.len()),
                        Sink::TopK(top) => format!("windows({} keys, {} columns)", top.keys.len(), top.windows.len()),
                    };
                    let table = pipeline.source.table().and_then(|table| fragment.tables.get(table));
                    let (columns, steps) = (table.map_or(0, |table| table.columns.len()), pipeline.steps.len());
                    let source = fragment.source_name(pipeline.source);
                    write!(f, "{separator}{source}({columns} columns) → {steps} steps → {sink}")?;
                }
                write!(f, "]")
            }
        }
    }
}

impl ExecutionPlan for DeviceExec {
    fn name(&self) -> &str {
        "DeviceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    leaf_operator!("a device operator");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("a device operator has one partition, not {partition}")));
        }
        let engine = self.engine.clone();
        let engine = engine.ok_or_else(|| DataFusionError::Internal("an operator that is kept to be copied".into()))?;
        let work = Work { exec: self.clone(), engine, schema: self.schema(), report: StatementReport::of(&context) };
        let rows = stream::once(work.run()).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// What is expected of the rows, or was found of them; nothing of states, whose columns are others.
    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(match self.mode {
            Mode::Whole => self.lowered.cardinality.statistics(&self.schema()),
            Mode::Partial => Arc::new(Statistics::new_unknown(&self.schema())),
        })
    }
}
