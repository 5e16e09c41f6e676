//! Dictionaries of string columns.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, StringArray, StringViewArray};

/// The distinct strings of a column in ascending byte order. The position of a string is its code.
#[derive(Debug, Clone)]
pub struct Dictionary {
    strings: Arc<StringArray>,
    views: Arc<OnceLock<Arc<StringViewArray>>>,
}

impl Dictionary {
    /// The dictionary of distinct strings in ascending order.
    pub fn from_sorted(values: StringArray) -> Dictionary {
        Dictionary { strings: Arc::new(values), views: Arc::default() }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// The strings.
    pub fn values(&self) -> &StringArray {
        &self.strings
    }

    /// The strings as an Arrow array.
    pub fn array(&self) -> ArrayRef {
        self.strings.clone()
    }

    /// Views of the strings, made once: 16 bytes each beside the strings that they share.
    pub fn views(&self) -> ArrayRef {
        self.views.get_or_init(|| Arc::new(StringViewArray::from(&*self.strings))).clone()
    }

    /// The string of a code.
    pub fn value(&self, code: u32) -> &str {
        self.strings.value(code as usize)
    }
}
