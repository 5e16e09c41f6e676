//! Dictionaries of string columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};

/// The distinct strings of a column in ascending byte order. The position of a string is its code.
#[derive(Debug, Clone)]
pub struct Dictionary(Arc<StringArray>);

impl Dictionary {
    /// The dictionary of distinct strings in ascending order.
    pub fn from_sorted(values: StringArray) -> Dictionary {
        Dictionary(Arc::new(values))
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The strings.
    pub fn values(&self) -> &StringArray {
        &self.0
    }

    /// The strings as an Arrow array.
    pub fn array(&self) -> ArrayRef {
        self.0.clone()
    }

    /// The string of a code.
    pub fn value(&self, code: u32) -> &str {
        self.0.value(code as usize)
    }
}
