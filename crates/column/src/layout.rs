//! How a column's values lie on the device.

use std::fmt;

use crate::encoding::Packed;

/// Layout of the values of all segments of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Values in storage width, one after the other.
    #[default]
    Plain,
    /// Offsets of a constant width in interleaved vectors.
    Packed(Packed),
}

/// Which layouts columns are loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingChoice {
    /// The smallest that is worth it.
    #[default]
    Auto,
    /// Values as they are.
    Plain,
    /// Packed wherever it is possible, worth it or not.
    Packed,
}

impl Layout {
    /// Bytes of a value on average, references apart.
    pub fn bytes_per_value(self, width: usize) -> f64 {
        match self {
            Layout::Plain => width as f64,
            Layout::Packed(packed) => f64::from(packed.width) / 8.0,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("plain"),
            Layout::Packed(Packed { width, reference: Some(_), .. }) => write!(f, "packed({width})"),
            Layout::Packed(Packed { width, reference: None, .. }) => write!(f, "packed({width}, references)"),
        }
    }
}
