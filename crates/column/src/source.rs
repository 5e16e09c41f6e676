//! The interface between tables and loads. Readers of table files are behind [`ColumnSource`].

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{ColumnError, Result};

/// The source of a table's rows.
pub trait ColumnSource: Send + Sync {
    /// Name of the table in messages.
    fn name(&self) -> &str;

    /// Identity of the table across statements.
    fn key(&self) -> String;

    /// Version of the content: equal versions have equal rows in equal order.
    fn version(&self) -> String;

    /// Reads the present version of the content, which [`ColumnSource::version`] returns from then on. A load calls it
    /// at its end to detect changes.
    fn refresh_version(&self) -> Result<String> {
        Ok(self.version())
    }

    /// All columns of the table, and behind them those that a statement derives from them.
    fn schema(&self) -> SchemaRef;

    /// Number of rows, if known before a scan.
    fn rows(&self) -> Option<u64>;

    /// The column file of the table. Its version must be the same in every process.
    fn column_file(&self) -> Option<ColumnFile> {
        None
    }

    /// Opens a scan of columns. All scans of a version have the same partitions with the same rows in the same order.
    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>>;
}

/// A scan in progress; several threads read its partitions.
pub trait ColumnScan: Send + Sync {
    /// Number of partitions.
    fn partitions(&self) -> usize;

    /// Passes the batches of a partition to `sink` in order. Runs on a thread that may block.
    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()>;

    /// Whether [`ColumnScan::read_column`] reads a single column, so that threads can share a partition.
    fn reads_single_columns(&self) -> bool {
        false
    }

    /// As [`ColumnScan::read`] for one column, by its position in the scan.
    fn read_column(
        &self,
        partition: usize,
        column: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.read(partition, &mut |batch| {
            sink(batch.project(&[column]).map_err(|error| ColumnError::source(error.to_string()))?)
        })
    }
}

/// The file of a table's encoded columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Identity of the table and of the options of its reader, the same in every process.
    pub table: String,
    /// Whether loads add columns from the source.
    pub write: bool,
}
