//! How a column's values lie on the device.

use std::fmt;
use std::str::FromStr;

use crate::build::VECTOR_ROWS;
use crate::encoding::{Alp, Delta, Encoding, Nsf, Nsv, Packed};
use crate::storage::Storage;

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
    /// Differences to the row before, packed like offsets.
    Delta(Delta),
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
    /// Differences of integers, packed as [`EncodingChoice::Packed`] packs offsets.
    Delta,
    /// Numbers as codes for their distinct values, where those are few.
    Dictionary,
    /// Floats as decimals.
    Alp,
}

impl EncodingChoice {
    /// All choices.
    pub const ALL: [EncodingChoice; 11] = [
        EncodingChoice::Auto,
        EncodingChoice::Plain,
        EncodingChoice::Packed,
        EncodingChoice::Nsf,
        EncodingChoice::Nsv,
        EncodingChoice::Rle,
        EncodingChoice::GpuFor,
        EncodingChoice::GpuDfor,
        EncodingChoice::Delta,
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
            EncodingChoice::Delta => "delta",
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
    pub fn of(encoding: &Encoding) -> Layout {
        match encoding {
            Encoding::Plain => Layout::Plain,
            Encoding::Packed(packed) => Layout::Packed(*packed),
            Encoding::Nsf(nsf) => Layout::Nsf(*nsf),
            Encoding::Nsv(nsv) => Layout::Nsv(*nsv),
            Encoding::Rle => Layout::Rle,
            Encoding::GpuFor => Layout::GpuFor,
            Encoding::GpuDfor => Layout::GpuDfor,
            Encoding::Delta(delta) => Layout::Delta(*delta),
            Encoding::Dictionary(dictionary) => Layout::of(dictionary.codes()),
            Encoding::Alp(alp) => Layout::Alp(*alp),
        }
    }

    /// The encoding of segments of this layout, or of their codes, where the column has a lookup.
    pub fn encoding(self) -> Encoding {
        match self {
            Layout::Plain => Encoding::Plain,
            Layout::Packed(packed) => Encoding::Packed(packed),
            Layout::Nsf(nsf) => Encoding::Nsf(nsf),
            Layout::Nsv(nsv) => Encoding::Nsv(nsv),
            Layout::Rle => Encoding::Rle,
            Layout::GpuFor => Encoding::GpuFor,
            Layout::GpuDfor => Encoding::GpuDfor,
            Layout::Delta(delta) => Encoding::Delta(delta),
            Layout::Alp(alp) => Encoding::Alp(alp),
        }
    }

    /// Whether columns of a storage may have this layout with its parameters.
    pub(crate) fn is_for(self, storage: Storage) -> bool {
        match self {
            Layout::Plain | Layout::Rle => true,
            Layout::Packed(packed) => !storage.is_float() && packed.check(storage).is_ok(),
            Layout::Nsf(nsf) => !storage.is_float() && nsf.check(storage).is_ok(),
            Layout::Nsv(_) | Layout::GpuFor | Layout::GpuDfor => !storage.is_float(),
            Layout::Delta(delta) => delta.check(storage).is_ok(),
            Layout::Alp(alp) => Alp::check(storage).is_ok() && alp.scales().is_ok(),
        }
    }

    /// Whether the values of a segment of `rows` rows may take that many bytes.
    pub(crate) fn takes(self, bytes: usize, storage: Storage, rows: usize) -> bool {
        let vectors = rows.div_ceil(VECTOR_ROWS);
        match self {
            Layout::Plain => bytes == vectors * VECTOR_ROWS * storage.width(),
            Layout::Packed(packed) => {
                let reference = if packed.reference.is_none() { storage.width().max(4) } else { 0 };
                let least = vectors * (VECTOR_ROWS / 8 * packed.width as usize + reference);
                bytes == least || packed.patches && bytes > least
            }
            Layout::Nsf(nsf) => bytes == vectors * VECTOR_ROWS * nsf.bytes as usize,
            Layout::Delta(delta) => bytes == delta.bytes(storage, vectors),
            // That depends on the values.
            Layout::Nsv(_) | Layout::Rle | Layout::GpuFor | Layout::GpuDfor | Layout::Alp(_) => true,
        }
    }

    /// Bytes of a value of `width` bytes, references apart; `None` where that depends on the values.
    pub fn bytes_per_value(self, width: usize) -> Option<f64> {
        match self {
            Layout::Plain => Some(width as f64),
            Layout::Packed(Packed { width, patches: false, .. }) => Some(f64::from(width) / 8.0),
            Layout::Nsf(nsf) => Some(f64::from(nsf.bytes)),
            Layout::Delta(delta) => Some(f64::from(delta.width) / 8.0),
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
            Layout::Delta(delta) => write!(f, "delta({}, differences {})", delta.width, delta.differences),
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
    fn layouts_are_those_of_their_encodings_and_of_some_storages() {
        let packed = |width, reference, patches| Packed { width, reference, patches };
        let alp = |exponent| Alp { exponent, factor: 0, integers: packed(3, Some(0), true) };
        for (layout, storage, fits) in [
            (Layout::Plain, Storage::F32, true),
            (Layout::Packed(packed(12, None, true)), Storage::I32, true),
            (Layout::Packed(packed(13, None, false)), Storage::I32, false),
            (Layout::Packed(packed(40, None, false)), Storage::I32, false),
            (Layout::Packed(packed(12, None, false)), Storage::F32, false),
            (Layout::Nsf(Nsf { bytes: 2 }), Storage::I64, true),
            (Layout::Nsf(Nsf { bytes: 3 }), Storage::I64, false),
            (Layout::Nsf(Nsf { bytes: 4 }), Storage::I16, false),
            (Layout::Nsv(Nsv { reference: 7 }), Storage::U64, true),
            (Layout::Rle, Storage::F64, true),
            (Layout::GpuFor, Storage::I64, true),
            (Layout::GpuDfor, Storage::F64, false),
            (Layout::Delta(Delta { width: 10, differences: 13 }), Storage::I8, true),
            (Layout::Delta(Delta { width: 9, differences: 9 }), Storage::I64, false),
            (Layout::Delta(Delta { width: 10, differences: 14 }), Storage::I64, false),
            (Layout::Delta(Delta { width: 32, differences: 31 }), Storage::I16, false),
            (Layout::Delta(Delta { width: 32, differences: 31 }), Storage::I64, true),
            (Layout::Delta(Delta { width: 40, differences: 40 }), Storage::U32, false),
            (Layout::Delta(Delta { width: 3, differences: 3 }), Storage::F32, false),
            (Layout::Alp(alp(14)), Storage::F64, true),
            (Layout::Alp(alp(14)), Storage::I64, false),
            (Layout::Alp(alp(200)), Storage::F64, false),
        ] {
            assert_eq!(Layout::of(&layout.encoding()), layout);
            assert_eq!(layout.is_for(storage), fits, "{layout} {storage:?}");
        }
    }

    #[test]
    fn bytes_of_segments_are_those_of_whole_vectors() {
        assert!(Layout::Plain.takes(2048 * 8, Storage::I64, 1025));
        assert!(!Layout::Plain.takes(1025 * 8, Storage::I64, 1025));
        let own = |patches| Layout::Packed(Packed { width: 3, reference: None, patches });
        assert!(own(false).takes(2 * (3 * 128 + 4), Storage::I8, 1025) && own(true).takes(999, Storage::I8, 1025));
        assert!(own(false).takes(3 * 128 + 8, Storage::U64, 1024) && !own(false).takes(999, Storage::I8, 1025));
        let none = Layout::Packed(Packed { width: 0, reference: Some(7), patches: false });
        assert!(none.takes(0, Storage::I32, 5) && !none.takes(4, Storage::I32, 5));
        assert!(Layout::Nsf(Nsf { bytes: 2 }).takes(2048, Storage::I32, 5));
        let delta = Layout::Delta(Delta { width: 3, differences: 4 });
        assert!(delta.takes(2 * (3 * 128 + 16), Storage::I8, 1025) && !delta.takes(2 * 3 * 128, Storage::I8, 1025));
        assert!(delta.takes(3 * 128 + 32, Storage::U64, 1024));
    }

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
        assert_eq!(Layout::Delta(Delta { width: 2, differences: 1 }).to_string(), "delta(2, differences 1)");
    }
}
