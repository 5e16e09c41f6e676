//! How far a running plan is, and what its scans have read, from the metrics of its operators.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::datasource::source::DataSourceExec;
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
    visit(plan, &mut |scan| rows += rows_read(scan));
    rows
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
