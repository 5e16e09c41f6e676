//! Tables of DataFusion as sources of columns.
//!
//! Parquet files of this machine are read directly ([`super::row_groups`]). Of all other tables the scan that the table
//! itself plans is read partition by partition; nothing is filtered or reordered, and the same files with the same
//! settings give the same partitions, so that columns loaded at different times line up.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use tokio::runtime::Handle;
use warpcube_column::{ColumnError, ColumnScan, ColumnSource, LoadLimits, Result};

use crate::lower::TableInfo;
use crate::settings::Settings;

/// A table of a statement; used on threads that may block.
pub(crate) struct TableColumns {
    info: Arc<TableInfo>,
    state: Arc<SessionState>,
    runtime: Handle,
    partitions: usize,
}

impl TableColumns {
    /// A source for a table, read in up to `partitions` parts; `runtime` drives its scans.
    pub(crate) fn new(
        info: Arc<TableInfo>,
        state: Arc<SessionState>,
        runtime: Handle,
        partitions: usize,
    ) -> TableColumns {
        TableColumns { info, state, runtime, partitions }
    }
}

/// Threads that load columns, and parts that tables are read in: as many as a session has partitions.
pub(crate) fn load_threads(settings: &Settings) -> usize {
    match settings.target_partitions {
        0 => SessionConfig::new().target_partitions(),
        partitions => partitions,
    }
}

/// The bounds of loads by the settings.
pub(crate) fn load_limits(settings: &Settings) -> LoadLimits {
    LoadLimits {
        dictionary_values: settings.dictionary_limit,
        threads: load_threads(settings),
        host_bytes: crate::runtime::copies_budget(settings),
        ..LoadLimits::default()
    }
}

fn failed(error: datafusion::error::DataFusionError) -> ColumnError {
    ColumnError::Source(error.strip_backtrace())
}

impl ColumnSource for TableColumns {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn key(&self) -> String {
        self.info.key.clone()
    }

    fn version(&self) -> String {
        self.info.version.clone()
    }

    fn schema(&self) -> SchemaRef {
        self.info.provider.schema()
    }

    fn rows(&self) -> Option<u64> {
        self.info.rows
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        if let Some(table) = self.info.parquet.as_ref().and_then(|files| files.table()) {
            return Ok(table.scan(&self.info.name, columns));
        }
        let mut state = self.state.as_ref().clone();
        // Streams that take files from each other would hand out rows in another order in every scan.
        state.config_mut().options_mut().execution.enable_file_stream_work_stealing = false;
        state.config_mut().options_mut().execution.target_partitions = self.partitions;
        let session: &dyn Session = &state;
        let projection = columns.to_vec();
        let plan =
            self.runtime.block_on(self.info.provider.scan(session, Some(&projection), &[], None)).map_err(failed)?;
        let plan = plan.repartitioned(self.partitions, state.config().options()).map_err(failed)?.unwrap_or(plan);
        Ok(Box::new(TableScan { plan, context: state.task_ctx(), runtime: self.runtime.clone() }))
    }
}

struct TableScan {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    runtime: Handle,
}

impl ColumnScan for TableScan {
    fn partitions(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let guard = self.runtime.enter();
        let mut stream = self.plan.execute(partition, self.context.clone()).map_err(failed)?;
        drop(guard);
        while let Some(batch) = self.runtime.block_on(stream.next()) {
            sink(batch.map_err(failed)?)?;
        }
        Ok(())
    }
}
