//! How a column's values lie on the device.

use std::fmt;
use std::str::FromStr;

use crate::encoding::{Alp, Encoding, Nsf, Nsv, Packed};

/// Layout of the values of all segments of a column, or of its codes where it has a lookup
/// ([`ResidentColumn::lookup`](crate::ResidentColumn::lookup)). The bytes of a segment are those that
/// [`encode`](crate::encoding::encode) gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Values in storage width, one after the other.
    #[default]
    Plain,
    /// Offsets of a constant width in interleaved vectors.
    Packed(Packed),
    /// The same number of bytes for each value.
    Nsf(Nsf),
    /// One to four bytes a value.
    Nsv(Nsv),
    /// Runs of equal values.
    Rle,
    /// Blocks of 128 offsets, packed by miniblocks of 32.
    GpuFor,
    /// Differences within tiles of four blocks, packed like GPU-FOR.
    GpuDfor,
    /// Floats that were decimals, as packed integers.
    Alp(Alp),
}

/// Which layouts columns are loaded into. A named one that a column cannot have leaves it as [`EncodingChoice::Auto`]
/// would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingChoice {
    /// The smallest that is worth it.
    #[default]
    Auto,
    /// Values as they are.
    Plain,
    /// Packed wherever it is possible, worth it or not.
    Packed,
    /// Integers in the fewest bytes that hold all of them.
    Nsf,
    /// Integers less the smallest, in 1 to 4 bytes each.
    Nsv,
    /// Runs of equal values.
    Rle,
    /// Integers in blocks of 128.
    GpuFor,
    /// Differences of integers in blocks of 128.
    GpuDfor,
    /// Numbers as codes for their distinct values, where those are few.
    Dictionary,
    /// Floats as decimals.
    Alp,
}

impl EncodingChoice {
    /// All choices.
    pub const ALL: [EncodingChoice; 10] = [
        EncodingChoice::Auto,
        EncodingChoice::Plain,
        EncodingChoice::Packed,
        EncodingChoice::Nsf,
        EncodingChoice::Nsv,
        EncodingChoice::Rle,
        EncodingChoice::GpuFor,
        EncodingChoice::GpuDfor,
        EncodingChoice::Dictionary,
        EncodingChoice::Alp,
    ];

    /// The choice's name: that of the encoding, or `auto`.
    pub fn name(self) -> &'static str {
        match self {
            EncodingChoice::Auto => "auto",
            EncodingChoice::Plain => "plain",
            EncodingChoice::Packed => "packed",
            EncodingChoice::Nsf => "nsf",
            EncodingChoice::Nsv => "nsv",
            EncodingChoice::Rle => "rle",
            EncodingChoice::GpuFor => "gpu-for",
            EncodingChoice::GpuDfor => "gpu-dfor",
            EncodingChoice::Dictionary => "dictionary",
            EncodingChoice::Alp => "alp",
        }
    }
}

impl fmt::Display for EncodingChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EncodingChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<EncodingChoice, String> {
        let named = EncodingChoice::ALL.into_iter().find(|choice| choice.name() == text);
        named.ok_or_else(|| format!("'{text}' is no encoding"))
    }
}

impl Layout {
    /// The layout of segments in an encoding; of a dictionary, that of its codes.
    pub(crate) fn of(encoding: &Encoding) -> Layout {
        match encoding {
            Encoding::Plain => Layout::Plain,
            Encoding::Packed(packed) => Layout::Packed(*packed),
            Encoding::Nsf(nsf) => Layout::Nsf(*nsf),
            Encoding::Nsv(nsv) => Layout::Nsv(*nsv),
            Encoding::Rle => Layout::Rle,
            Encoding::GpuFor => Layout::GpuFor,
            Encoding::GpuDfor => Layout::GpuDfor,
            Encoding::Dictionary(dictionary) => Layout::of(dictionary.codes()),
            Encoding::Alp(alp) => Layout::Alp(*alp),
        }
    }

    /// Bytes of a value of `width` bytes, references apart; `None` where that depends on the values.
    pub fn bytes_per_value(self, width: usize) -> Option<f64> {
        match self {
            Layout::Plain => Some(width as f64),
            Layout::Packed(Packed { width, patches: false, .. }) => Some(f64::from(width) / 8.0),
            Layout::Nsf(nsf) => Some(f64::from(nsf.bytes)),
            _ => None,
        }
    }
}

/// What a packing's name has in brackets.
fn in_brackets(f: &mut fmt::Formatter<'_>, packed: Packed) -> fmt::Result {
    let references = if packed.reference.is_none() { ", references" } else { "" };
    let patches = if packed.patches { ", patches" } else { "" };
    write!(f, "({}{references}{patches})", packed.width)
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("plain"),
            Layout::Packed(packed) => {
                f.write_str("packed")?;
                in_brackets(f, *packed)
            }
            Layout::Nsf(nsf) => write!(f, "nsf({})", nsf.bytes),
            Layout::Nsv(_) => f.write_str("nsv"),
            Layout::Rle => f.write_str("rle"),
            Layout::GpuFor => f.write_str("gpu-for"),
            Layout::GpuDfor => f.write_str("gpu-dfor"),
            Layout::Alp(alp) => {
                f.write_str("alp")?;
                in_brackets(f, alp.integers)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_named() {
        for choice in EncodingChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert!("zip".parse::<EncodingChoice>().is_err());
    }

    #[test]
    fn layouts_in_words() {
        let packed = Packed { width: 12, reference: None, patches: true };
        assert_eq!(Layout::Packed(packed).to_string(), "packed(12, references, patches)");
        let integers = Packed { width: 3, reference: Some(0), patches: false };
        assert_eq!(Layout::Packed(integers).to_string(), "packed(3)");
        assert_eq!(Layout::Alp(Alp { exponent: 14, factor: 12, integers }).to_string(), "alp(3)");
        assert_eq!(Layout::Nsf(Nsf { bytes: 2 }).to_string(), "nsf(2)");
    }
}
