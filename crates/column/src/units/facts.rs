//! The facts of a column, wherever its bytes lie.

use std::sync::Arc;

use arrow::datatypes::DataType;

use super::dictionary::Dictionary;
use super::statistics::{Statistics, Traits};
use super::storage::Storage;

/// The facts of a column: its type, its bounds and nullability, its order, its distinct values.
#[derive(Debug, Clone)]
pub struct ColumnFacts {
    /// Name of the column.
    pub name: String,
    /// Arrow type.
    pub data_type: DataType,
    /// Machine type of the values.
    pub storage: Storage,
    /// Bounds and counts.
    pub statistics: Statistics,
    /// The dictionary of a string column.
    pub dictionary: Option<Arc<Dictionary>>,
    /// Traits from the column's profile; `None` if none was taken.
    pub traits: Option<Traits>,
}

impl ColumnFacts {
    /// Whether a row is NULL.
    pub fn is_nullable(&self) -> bool {
        self.statistics.nulls > 0
    }

    /// Whether valid values are known never to get smaller from row to row.
    pub fn is_sorted(&self) -> bool {
        self.traits.is_some_and(|traits| traits.is_sorted)
    }

    /// Distinct valid values: as many as the dictionary has, or an estimate to a few percent; `None` if none was made.
    pub fn distinct(&self) -> Option<u64> {
        let strings = self.dictionary.as_ref().map(|dictionary| dictionary.len() as u64);
        strings.or(self.traits.map(|traits| traits.distinct))
    }
}
