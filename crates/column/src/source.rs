//! Where columns come from: the one interface between tables and the code that keeps them on a device.
//!
//! No code that reads files goes past [`ColumnSource`].

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{ColumnError, Result};

/// Where a table's rows come from.
pub trait ColumnSource: Send + Sync {
    /// Name of the table for people.
    fn name(&self) -> &str;

    /// Identity of the table across statements.
    fn key(&self) -> String;

    /// Version of the content: equal versions hold equal rows in equal order.
    fn version(&self) -> String;

    /// Looks at the table once more: the version of its content now, which [`ColumnSource::version`] gives from then
    /// on. Called after each load, so that content that changed meanwhile is not taken for that of another version.
    fn look_again(&self) -> Result<String> {
        Ok(self.version())
    }

    /// All columns of the table.
    fn schema(&self) -> SchemaRef;

    /// Rows, where that is known beforehand.
    fn rows(&self) -> Option<u64>;

    /// Where encoded columns of the table are kept beside it; the version is then the same in every process.
    fn column_file(&self) -> Option<ColumnFile> {
        None
    }

    /// Opens a scan of some columns; every scan of one version has the same partitions with the same rows in order.
    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>>;
}

/// A scan in progress; partitions are read by several threads.
pub trait ColumnScan: Send + Sync {
    /// Number of partitions.
    fn partitions(&self) -> usize;

    /// Hands the partition's batches to `sink`, in order. Runs on a thread that may block.
    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()>;

    /// Whether [`ColumnScan::read_column`] reads no more than that column, so that threads may share a partition.
    fn columns_apart(&self) -> bool {
        false
    }

    /// As [`ColumnScan::read`], with one column alone, named by its position among those of the scan.
    fn read_column(
        &self,
        partition: usize,
        column: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.read(partition, &mut |batch| {
            let one = batch.project(&[column]).map_err(|error| ColumnError::source(error.to_string()))?;
            sink(one)
        })
    }
}

/// A file that encoded columns of a table are kept in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFile {
    /// Where it is.
    pub path: PathBuf,
    /// Identity of the table and of the way it is read; the same in every process.
    pub table: String,
    /// Whether columns that are loaded from their source are added.
    pub write: bool,
}
