//! Relations: rows on the device as columns that share one list of chunks.
//!
//! A relation is what operators take and give: a version of a table, the output of a pipeline, the facts of a cube. It
//! owns nothing alone; its columns stay on the device as long as someone holds them.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use warpcube_gpu::{DeviceBuffer, Stream};

use super::segment::ResidentColumn;
use crate::error::Result;
use crate::units::ColumnFacts;

/// How many rows a relation has.
#[derive(Debug, Clone)]
pub enum RowCount {
    /// The host knows it.
    Known(u64),
    /// Only the device does: a `uint64_t` there, of at most as many rows as the chunks have.
    OnDevice(DeviceBuffer),
}

/// Columns on the device whose segments are cut into the same chunks.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Rows of each chunk; where only the device knows how many rows there are, those that there is room for.
    pub chunks: Arc<[u32]>,
    /// The columns in order.
    pub columns: Vec<Arc<ResidentColumn>>,
    /// Rows of all chunks.
    pub rows: RowCount,
}

impl Relation {
    /// A relation that fills its chunks.
    pub fn new(chunks: Arc<[u32]>, columns: Vec<Arc<ResidentColumn>>) -> Relation {
        let rows = RowCount::Known(chunks.iter().map(|rows| u64::from(*rows)).sum());
        Relation { chunks, columns, rows }
    }

    /// What is known of a column.
    pub fn facts(&self, column: usize) -> &ColumnFacts {
        self.columns[column].facts()
    }

    /// Names, types and nullability of the columns.
    pub fn schema(&self) -> Schema {
        let field = |facts: &ColumnFacts| Field::new(&facts.name, facts.data_type.clone(), facts.is_nullable());
        Schema::new(self.columns.iter().map(|column| field(column.facts())).collect::<Vec<_>>())
    }

    /// Most rows that it may have.
    pub fn rows_max(&self) -> u64 {
        match self.rows {
            RowCount::Known(rows) => rows,
            RowCount::OnDevice(_) => self.chunks.iter().map(|rows| u64::from(*rows)).sum(),
        }
    }

    /// Its rows; a count that only the device has is read after the work on the stream.
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
