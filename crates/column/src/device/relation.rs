//! Relations: columns on the device that share one list of chunks.
//!
//! Operators take relations: a version of a table, the facts of a cube. A relation shares the ownership of its columns.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};

use super::segment::ResidentColumn;
use crate::units::ColumnFacts;

/// Columns on the device whose segments are cut into the same chunks.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Rows of each chunk.
    pub chunks: Arc<[u32]>,
    /// The columns in order.
    pub columns: Vec<Arc<ResidentColumn>>,
}

impl Relation {
    /// Facts of a column.
    pub fn facts(&self, column: usize) -> &ColumnFacts {
        self.columns[column].facts()
    }

    /// Names, types and nullability of the columns.
    pub fn schema(&self) -> Schema {
        let field = |facts: &ColumnFacts| Field::new(&facts.name, facts.data_type.clone(), facts.is_nullable());
        Schema::new(self.columns.iter().map(|column| field(column.facts())).collect::<Vec<_>>())
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|rows| u64::from(*rows)).sum()
    }
}
