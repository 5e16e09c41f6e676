//! The operator of `cube()`: a cross-tab that is aggregated when its rows are read.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result as DataFusionResult, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use warpcube_cube::aggregate::{Decision, Progress};
use warpcube_cube::answer::TableAnswer;
use warpcube_cube::query::{BoundSet, BoundTable};

use super::table::renamed;
use super::{CubeAnswer, CubeQueryOptions, Cubes, OpenCube};
use crate::error::{Result, SqlError};
use crate::leaf_operator::leaf_operator;
use crate::report::StatementReport;
use crate::settings::Settings;

/// Batches that are made before the operator above has taken the first of them.
const BATCHES_AHEAD: usize = 2;

/// A query of a cube, with what is needed to answer it.
#[derive(Debug)]
pub(super) struct CubeQuery {
    pub(super) cubes: Arc<Cubes>,
    pub(super) open: Arc<OpenCube>,
    pub(super) text: String,
    pub(super) bound: BoundTable,
    /// The columns of the answer.
    pub(super) schema: SchemaRef,
    /// Warnings of names that stand for one of several elements.
    pub(super) warnings: Vec<String>,
}

/// The cells of a query, in one partition.
#[derive(Debug)]
pub(super) struct CubeExec {
    query: Arc<CubeQuery>,
    settings: Settings,
    projection: Option<Vec<usize>>,
    properties: Arc<PlanProperties>,
    /// How the cells were aggregated, once they are; before, how they would be, once asked for.
    notes: Arc<AlgorithmNotes>,
    metrics: ExecutionPlanMetricsSet,
}

#[derive(Debug, Default)]
struct AlgorithmNotes {
    /// The algorithm that ran, with its place and time.
    done: OnceLock<String>,
    /// The algorithm that the cost model chooses; asked for where nothing has run.
    outlook: OnceLock<String>,
}

/// Cancels an aggregation when it is dropped.
pub(crate) struct CancelOnDrop(pub(crate) Arc<Progress>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl CubeExec {
    /// An operator that gives these columns of the answer.
    pub(super) fn new(
        query: Arc<CubeQuery>,
        settings: Settings,
        projection: Option<&Vec<usize>>,
    ) -> DataFusionResult<CubeExec> {
        let schema = match projection {
            Some(columns) => Arc::new(query.schema.project(columns)?),
            None => query.schema.clone(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(CubeExec {
            query,
            settings,
            projection: projection.cloned(),
            properties: Arc::new(properties),
            notes: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// How the cells were aggregated, or would be.
    fn how(&self) -> &str {
        self.notes.done.get().unwrap_or_else(|| {
            self.notes.outlook.get_or_init(|| {
                let CubeQuery { cubes, open, bound, .. } = &*self.query;
                let outlook = cubes.outlook(open, bound, &self.settings);
                outlook.map_or_else(|error| error.to_string(), |outlook| outlook.to_string())
            })
        })
    }
}

/// Answers a query; blocks until it is done or `progress` is cancelled.
fn answer(
    query: &CubeQuery,
    settings: &Settings,
    notes: &AlgorithmNotes,
    progress: &Progress,
) -> Result<Box<TableAnswer>> {
    let CubeQuery { cubes, open, text, .. } = query;
    let begin = Instant::now();
    let CubeAnswer::Table(table) = cubes.ask(open, text, CubeQueryOptions::default(), settings, progress)? else {
        return Err(SqlError::Internal("a query became another".into()));
    };
    let report = table.report();
    let (filled, decision, ms) = (report.filled_targets, &report.decision, begin.elapsed().as_secs_f64() * 1e3);
    let Decision { place, algorithm, reason, targets, .. } = decision;
    let reasons: Vec<&str> =
        std::iter::once(reason).chain(&place.reason).chain(&place.refused).map(String::as_str).collect();
    let (place, reasons) = (place.name(), reasons.join("; "));
    let _ = notes
        .done
        .set(format!("{algorithm} on {place}, {filled} of {targets} targets filled in {ms:.3} ms ({reasons})"));
    Ok(table)
}

impl DisplayAs for CubeExec {
    fn fmt_as(&self, kind: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if kind == DisplayFormatType::TreeRender { "\n" } else { ", " };
        let CubeQuery { open, text, .. } = &*self.query;
        let name = open.folder.file_name().unwrap_or_default().to_string_lossy();
        if kind != DisplayFormatType::TreeRender {
            out.write_str("CubeExec: ")?;
        }
        write!(out, "cube={name}{separator}query={text}{separator}algorithm={}", self.how())
    }
}

impl ExecutionPlan for CubeExec {
    fn name(&self) -> &str {
        "CubeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    leaf_operator!("the query of a cube");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("the query of a cube has one partition, not {partition}")));
        }
        let (query, settings, notes) = (self.query.clone(), self.settings.clone(), self.notes.clone());
        if let Some(report) = StatementReport::of(&context) {
            report.warn(&query.warnings);
        }
        let projection = self.projection.clone();
        let (rows, time) = (
            MetricBuilder::new(&self.metrics).output_rows(partition),
            MetricBuilder::new(&self.metrics).elapsed_compute(partition),
        );
        // Operators above take batches of the connection's size.
        let most = context.session_config().batch_size();
        let progress = Arc::new(Progress::new());
        let cancels = CancelOnDrop(progress.clone());
        let mut batches = RecordBatchReceiverStream::builder(self.schema(), BATCHES_AHEAD);
        let sender = batches.tx();
        let work = move || -> DataFusionResult<()> {
            let timer = time.timer();
            let table = answer(&query, &settings, &notes, &progress)?;
            timer.done();
            for batch in table.long_form(&query.open.cube, most) {
                let batch = renamed(&batch.map_err(super::of_cube)?, &query.schema)?;
                rows.add(batch.num_rows());
                let batch = match &projection {
                    Some(columns) => batch.project(columns)?,
                    None => batch,
                };
                // A channel without a receiver: the reader is gone.
                if sender.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        batches.spawn_blocking(move || {
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(SqlError::of_panic(panic.as_ref()).into()))
        });
        let cells = batches.build().inspect(move |_| {
            // The stream holds what cancels the work.
            let _ = &cancels;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), cells)))
    }

    /// The rows of a cross-tab are at most its cells; all of them under `empty`.
    fn partition_statistics(&self, _partition: Option<usize>) -> DataFusionResult<Arc<Statistics>> {
        let BoundTable { pages, rows, columns, extreme, shows_empty, .. } = &self.query.bound;
        let places =
            |sets: &[BoundSet]| sets.iter().fold(1, |places: usize, set| places.saturating_mul(set.targets.len()));
        let most = extreme.as_ref().map_or(usize::MAX, |extreme| usize::try_from(extreme.count).unwrap_or(usize::MAX));
        let lines = [places(pages), places(rows).min(most), places(columns)];
        let cells = lines.into_iter().fold(1, usize::saturating_mul);
        let num_rows = if *shows_empty { Precision::Exact(cells) } else { Precision::Inexact(cells) };
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
