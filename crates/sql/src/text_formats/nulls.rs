//! JSON files whose records have all members, NULL among them.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::config::JsonOptions;
use datafusion::common::file_options::json_writer::JsonWriterOptions;
use datafusion::common::not_impl_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};

/// Writes JSON, a record a line.
#[derive(Debug)]
pub(super) struct WithNulls {
    config: FileSinkConfig,
    options: JsonWriterOptions,
}

impl WithNulls {
    /// # Errors
    /// For rows that take the place of a table's files, which the caller moves itself.
    pub(super) fn new(config: FileSinkConfig, options: &JsonOptions) -> Result<WithNulls> {
        if config.insert_op != InsertOp::Append {
            return not_impl_err!("JSON files that replace others");
        }
        Ok(WithNulls { config, options: JsonWriterOptions::try_from(options)? })
    }
}

impl DisplayAs for WithNulls {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonSink(file={})", self.config.original_url)
    }
}

#[async_trait]
impl DataSink for WithNulls {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, rows: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        FileSink::write_all(self, rows, context).await
    }
}

#[async_trait]
impl FileSink for WithNulls {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        streams: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let (compression, level) = (self.options.compression.into(), self.options.compression_level);
        spawn_writer_tasks_and_join(context, Arc::new(Lines), compression, level, store, demux_task, streams).await
    }
}

struct Lines;

impl BatchSerializer for Lines {
    fn serialize(&self, batch: RecordBatch, _initial: bool) -> Result<Bytes> {
        let mut text = Vec::new();
        let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut text);
        writer.write(&batch)?;
        writer.finish()?;
        drop(writer);
        Ok(text.into())
    }
}
