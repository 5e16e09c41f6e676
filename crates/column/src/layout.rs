//! How a column's values lie on the device.

use std::fmt;

/// Layout of the values of all segments of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Values in storage width, one after the other.
    #[default]
    Plain,
    /// Offsets of a constant width in interleaved vectors.
    Packed(Packing),
}

/// A packed layout: a value is its offset plus a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packing {
    /// Bits of an offset, 0 to 64.
    pub bits: u32,
    /// The reference of all vectors as a value (two's complement, modulo 2⁶⁴); `None` where each vector has its own,
    /// behind the packed values.
    pub reference: Option<u64>,
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

/// Widths that offsets are rounded up to, in bits: fewer widths are fewer kernels.
const LADDER: [u32; 24] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17, 18, 20, 22, 24, 28, 32, 40, 48, 56, 64];

/// The width for offsets of `bits` bits of values `width` bytes wide.
pub(crate) fn ladder(bits: u32, width: usize) -> u32 {
    let rounded = LADDER.into_iter().find(|rung| *rung >= bits).unwrap_or(64);
    rounded.min(8 * width as u32)
}

impl Layout {
    /// Bytes of a value on average, references apart.
    pub fn bytes_per_value(self, width: usize) -> f64 {
        match self {
            Layout::Plain => width as f64,
            Layout::Packed(packing) => f64::from(packing.bits) / 8.0,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("plain"),
            Layout::Packed(Packing { bits, reference: Some(_) }) => write!(f, "packed({bits})"),
            Layout::Packed(Packing { bits, reference: None }) => write!(f, "packed({bits}, references)"),
        }
    }
}
