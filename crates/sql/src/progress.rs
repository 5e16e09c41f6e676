//! How far a running plan is, and what its scans have read, from the metrics of its operators.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// How far a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Rows read and bytes loaded so far.
    pub done: u64,
    /// How many there are in all, as far as that is known; zero where it is not.
    pub total: u64,
    /// Whether columns are being loaded onto the device.
    pub loading: bool,
}

impl Progress {
    /// Adds up the scans of a plan.
    pub(crate) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Progress {
        let mut progress = Progress::default();
        visit(plan, &mut |scan| {
            progress.done += rows_read(scan);
            if let Ok(statistics) = StatisticsContext::new().compute(scan.as_ref(), &StatisticsArgs::new())
                && let Precision::Exact(rows) | Precision::Inexact(rows) = statistics.num_rows
            {
                progress.total += rows as u64;
            }
        });
        progress
    }
}

/// Rows that the scans of a plan have given.
pub(crate) fn host_rows(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut rows = 0;
    visit(plan, &mut |scan| rows += memory_rows(scan).unwrap_or_else(|| rows_read(scan)));
    rows
}

/// Rows of a scan of a memory table, which does not count what it gives: all of the table, or as many as it may give.
fn memory_rows(scan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let source = scan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<MemorySourceConfig>()?;
    let rows: usize = source.partitions().iter().flatten().map(RecordBatch::num_rows).sum();
    Some(rows.min(source.fetch().unwrap_or(usize::MAX)) as u64)
}

fn rows_read(scan: &Arc<dyn ExecutionPlan>) -> u64 {
    scan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64
}

/// Calls `at` for every scan of files or memory tables.
fn visit(plan: &Arc<dyn ExecutionPlan>, at: &mut impl FnMut(&Arc<dyn ExecutionPlan>)) {
    if plan.is::<DataSourceExec>() {
        at(plan);
    }
    for child in plan.children() {
        visit(child, at);
    }
}
