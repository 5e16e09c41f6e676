//! Tables of DataFusion as sources of columns.
//!
//! Parquet files of this machine are read directly ([`crate::row_groups`]). Of all other tables the scan that the table
//! itself plans is read partition by partition; nothing is filtered or reordered, and the same files with the same
//! settings give the same partitions, so that columns loaded at different times line up.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use warpcube_column::{
    ColumnError, ColumnFile, ColumnScan, ColumnSource, EncodingChoice, LoadLimits, Result, TableRequest, cores,
};

use crate::catalog::with_stored_values;
use crate::error::{SqlError, panic_text};
use crate::exec::column_files::column_file;
use crate::lower::{DerivedColumn, Lowered, TableInfo, version_now};
use crate::row_groups::ParquetTable;
use crate::settings::Settings;
use crate::values::Encoding;

/// A table of a statement; used on threads that may block.
pub(crate) struct TableColumns {
    info: Arc<TableInfo>,
    /// The version of the lowered plan, until a load finds another.
    version: Mutex<String>,
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
        let version = Mutex::new(info.version.clone());
        TableColumns { info, version, state, runtime, partitions }
    }

    /// The table's Parquet files, where they are read directly; none once a load has found another version, whose files
    /// are others.
    fn direct(&self) -> Option<&Arc<ParquetTable>> {
        let described = *self.version.lock() == self.info.version;
        self.info.parquet.as_ref().filter(|_| described).and_then(|files| files.table())
    }
}

/// What a fragment reads of its tables, each in up to `partitions` parts.
pub(super) fn requests(
    lowered: &Lowered,
    state: &Arc<SessionState>,
    runtime: &Handle,
    partitions: usize,
) -> Vec<TableRequest> {
    let request = |(table, info): (usize, &Arc<TableInfo>)| {
        let source = TableColumns::new(info.clone(), state.clone(), runtime.clone(), partitions);
        lowered.fragment.request(table, Arc::new(source))
    };
    lowered.tables.iter().enumerate().map(request).collect()
}

/// Threads that load columns, and parts that tables are read in: as many as a connection has partitions.
pub(crate) fn load_threads(settings: &Settings) -> usize {
    match settings.target_partitions {
        0 => cores(),
        partitions => partitions,
    }
}

/// The bounds of loads by the settings.
pub(crate) fn load_limits(settings: &Settings) -> LoadLimits {
    LoadLimits {
        dictionary_values: settings.dictionary_limit,
        encoding: match settings.encoding {
            Encoding::Auto => EncodingChoice::Auto,
            Encoding::Plain => EncodingChoice::Plain,
            Encoding::Packed => EncodingChoice::Packed,
            Encoding::Nsf => EncodingChoice::Nsf,
            Encoding::Nsv => EncodingChoice::Nsv,
            Encoding::Rle => EncodingChoice::Rle,
            Encoding::GpuFor => EncodingChoice::GpuFor,
            Encoding::GpuDfor => EncodingChoice::GpuDfor,
            Encoding::Delta => EncodingChoice::Delta,
            Encoding::Dictionary => EncodingChoice::Dictionary,
            Encoding::Alp => EncodingChoice::Alp,
        },
        threads: load_threads(settings),
        host_bytes: crate::runtime::copies_budget(settings),
        ..LoadLimits::default()
    }
}

fn failed(error: datafusion::error::DataFusionError) -> ColumnError {
    ColumnError::Source(Arc::new(error))
}

/// Waits for a piece of a table's reader. Readers panic over some damaged files, and over files that are replaced while
/// they are read; that is an error like others.
fn guarded<T>(runtime: &Handle, piece: impl Future<Output = DataFusionResult<T>>) -> Result<T> {
    runtime.block_on(AssertUnwindSafe(piece).catch_unwind()).map_or_else(
        |panic| {
            let text = format!("the table's reader gave up: {}", panic_text(panic.as_ref()));
            Err(ColumnError::Source(Arc::new(SqlError::Internal(text))))
        },
        |read| read.map_err(failed),
    )
}

impl ColumnSource for TableColumns {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn key(&self) -> String {
        self.info.key.clone()
    }

    fn version(&self) -> String {
        self.version.lock().clone()
    }

    fn refresh_version(&self) -> Result<String> {
        let now = guarded(&self.runtime, version_now(&self.info, &self.state))?;
        self.version.lock().clone_from(&now);
        Ok(now)
    }

    fn schema(&self) -> SchemaRef {
        self.info.schema()
    }

    fn rows(&self) -> Option<u64> {
        self.info.rows
    }

    fn column_file(&self) -> Option<ColumnFile> {
        column_file(&self.info, &self.state, || self.direct().is_none().then_some(self.partitions))
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        let derived: Vec<Option<&DerivedColumn>> = columns.iter().map(|column| self.info.derived(*column)).collect();
        let own = columns.iter().zip(&derived).map(|(column, derived)| derived.map_or(*column, |of| of.column));
        let scan = self.open_own(&own.collect::<Vec<_>>())?;
        if derived.iter().all(Option::is_none) {
            return Ok(scan);
        }
        Ok(Box::new(DerivedScan { scan, derived: derived.into_iter().map(|derived| derived.cloned()).collect() }))
    }
}

impl TableColumns {
    /// Opens a scan of columns that the table has itself.
    fn open_own(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        if let Some(table) = self.direct() {
            return Ok(table.scan(&self.info.name, columns));
        }
        let mut state = self.state.as_ref().clone();
        // Streams that take files from each other would hand out rows in another order in every scan.
        state.config_mut().options_mut().execution.enable_file_stream_work_stealing = false;
        state.config_mut().options_mut().execution.target_partitions = self.partitions;
        let session: &dyn Session = &state;
        let projection = columns.to_vec();
        let plan = guarded(&self.runtime, self.info.provider.scan(session, Some(&projection), &[], None))?;
        let plan = unordered(with_stored_values(plan).map_err(failed)?);
        let plan = plan.repartitioned(self.partitions, state.config().options()).map_err(failed)?.unwrap_or(plan);
        Ok(Box::new(TableScan { plan, context: state.task_ctx(), runtime: self.runtime.clone() }))
    }
}

/// The scan without its declared order. DataFusion partitions files by that order where the sort column is read, so
/// that partitions would depend on the columns of a load.
fn unordered(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let Some(config) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else { return plan };
    let config = FileScanConfigBuilder::from(config.clone()).with_output_ordering(Vec::new()).build();
    DataSourceExec::from_data_source(config)
}

/// A scan some of whose columns are derived from those that are read.
struct DerivedScan {
    scan: Box<dyn ColumnScan>,
    derived: Vec<Option<DerivedColumn>>,
}

impl DerivedScan {
    /// The columns from `first` on, with derived ones in place of what they are derived from. What a function cannot
    /// compute of all strings, it may of those that a query asks for: the CPU answers it.
    fn made(&self, first: usize, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut made = Vec::with_capacity(batch.num_columns());
        let read = batch.columns().iter().zip(batch.schema_ref().fields());
        for ((column, field), derived) in read.zip(&self.derived[first..]) {
            made.push(match derived {
                None => (field.clone(), column.clone()),
                Some(derived) => {
                    let name = derived.field.name();
                    let column = derived.of(column).map_err(|reason| ColumnError::unsupported(name, reason))?;
                    (Arc::new(derived.field.as_ref().clone().with_data_type(column.data_type().clone())), column)
                }
            });
        }
        let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = made.into_iter().unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|error| ColumnError::source(error.to_string()))
    }
}

impl ColumnScan for DerivedScan {
    fn partitions(&self) -> usize {
        self.scan.partitions()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.scan.read(partition, &mut |batch| sink(self.made(0, &batch)?))
    }

    fn reads_single_columns(&self) -> bool {
        self.scan.reads_single_columns()
    }

    fn read_column(
        &self,
        partition: usize,
        column: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.scan.read_column(partition, column, &mut |batch| sink(self.made(column, &batch)?))
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
        loop {
            let next = async { stream.next().await.transpose() };
            match guarded(&self.runtime, next)? {
                Some(batch) => sink(batch)?,
                None => return Ok(()),
            }
        }
    }
}
