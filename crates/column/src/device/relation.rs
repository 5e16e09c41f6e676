//! Relations: columns on the device that share one list of chunks.
//!
//! Operators take and return relations: a version of a table, the output of a pipeline, the facts of a cube. A relation
//! shares the ownership of its columns.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use warpcube_gpu::{DeviceBuffer, Stream};

use super::segment::ResidentColumn;
use crate::error::Result;
use crate::units::ColumnFacts;

/// The number of rows of a relation.
#[derive(Debug, Clone)]
pub enum RowCount {
    /// A number on the host.
    Known(u64),
    /// A `uint64_t` on the device, at most the rows of the chunks.
    OnDevice(DeviceBuffer),
}

/// Columns on the device whose segments are cut into the same chunks.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Rows of each chunk; capacity in rows if the number of rows is on the device.
    pub chunks: Arc<[u32]>,
    /// The columns in order.
    pub columns: Vec<Arc<ResidentColumn>>,
    /// Number of rows.
    pub rows: RowCount,
}

impl Relation {
    /// A relation whose chunks are full.
    pub fn new(chunks: Arc<[u32]>, columns: Vec<Arc<ResidentColumn>>) -> Relation {
        let rows = RowCount::Known(chunks.iter().map(|rows| u64::from(*rows)).sum());
        Relation { chunks, columns, rows }
    }

    /// Facts of a column.
    pub fn facts(&self, column: usize) -> &ColumnFacts {
        self.columns[column].facts()
    }

    /// Names, types and nullability of the columns.
    pub fn schema(&self) -> Schema {
        let field = |facts: &ColumnFacts| Field::new(&facts.name, facts.data_type.clone(), facts.is_nullable());
        Schema::new(self.columns.iter().map(|column| field(column.facts())).collect::<Vec<_>>())
    }

    /// Most rows of the relation.
    pub fn rows_max(&self) -> u64 {
        match self.rows {
            RowCount::Known(rows) => rows,
            RowCount::OnDevice(_) => self.chunks.iter().map(|rows| u64::from(*rows)).sum(),
        }
    }

    /// Number of rows; a number on the device is read after the work on the stream.
    pub fn count(&self, stream: &mut Stream) -> Result<u64> {
        match &self.rows {
            RowCount::Known(rows) => Ok(*rows),
            RowCount::OnDevice(count) => {
                let mut rows = 0u64;
                stream.download(count, 0, bytemuck::bytes_of_mut(&mut rows))?;
                Ok(rows)
            }
        }
    }
}
