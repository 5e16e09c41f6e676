//! The dictionary of a string column.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};

/// The distinct strings of a column in ascending byte order; a code is a position here.
#[derive(Debug, Clone)]
pub struct Dictionary {
    values: Arc<StringArray>,
    bytes: u64,
}

impl Dictionary {
    /// A dictionary of strings that are already distinct and ascending.
    pub fn from_sorted(values: StringArray) -> Dictionary {
        let bytes = values.value_data().len() as u64;
        Dictionary { values: Arc::new(values), bytes }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The strings.
    pub fn values(&self) -> &StringArray {
        &self.values
    }

    /// The strings as an Arrow array.
    pub fn array(&self) -> ArrayRef {
        self.values.clone()
    }

    /// The string of a code.
    pub fn value(&self, code: u32) -> &str {
        self.values.value(code as usize)
    }

    /// Bytes of text.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
