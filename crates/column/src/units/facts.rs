//! Facts of columns.

use std::sync::Arc;

use arrow::datatypes::DataType;

use super::dictionary::Dictionary;
use super::statistics::{Statistics, Traits};
use super::storage::Storage;

/// Facts of a column: type, bounds, nullability, order, distinct values.
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
    /// Traits from the profile; `None` without a profile.
    pub traits: Option<Traits>,
}

impl ColumnFacts {
    /// Whether any row is NULL.
    pub fn is_nullable(&self) -> bool {
        self.statistics.nulls > 0
    }

    /// Whether the profile found valid values in ascending order.
    pub fn is_sorted(&self) -> bool {
        self.traits.is_some_and(|traits| traits.is_sorted)
    }

    /// Number of distinct valid values: that of the dictionary, or the estimate of the profile.
    pub fn distinct(&self) -> Option<u64> {
        let strings = self.dictionary.as_ref().map(|dictionary| dictionary.len() as u64);
        strings.or(self.traits.map(|traits| traits.distinct))
    }
}
