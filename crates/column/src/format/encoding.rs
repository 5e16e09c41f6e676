//! The encodings there are, with their parameters, and their names.

use std::fmt;
use std::str::FromStr;

use super::alp::Alp;
use super::delta::Delta;
use super::dictionary::Dictionary;
use super::nsf::Nsf;
use super::nsv::Nsv;
use super::packed::Packed;
use crate::units::{Storage, VECTOR_ROWS};

/// How the bytes of a segment hold its values; the same on the CPU, in files and on the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The values themselves.
    #[default]
    Plain,
    /// Packed offsets to references, the default.
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
    /// Codes for the column's distinct values.
    Dictionary(Dictionary),
    /// Floats that were decimals, as packed integers.
    Alp(Alp),
}

/// Which encoding columns are loaded into. A named one that a column cannot have leaves it as [`EncodingChoice::Auto`]
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

impl Encoding {
    /// The choice that names it.
    pub fn choice(&self) -> EncodingChoice {
        match self {
            Encoding::Plain => EncodingChoice::Plain,
            Encoding::Packed(_) => EncodingChoice::Packed,
            Encoding::Nsf(_) => EncodingChoice::Nsf,
            Encoding::Nsv(_) => EncodingChoice::Nsv,
            Encoding::Rle => EncodingChoice::Rle,
            Encoding::GpuFor => EncodingChoice::GpuFor,
            Encoding::GpuDfor => EncodingChoice::GpuDfor,
            Encoding::Delta(_) => EncodingChoice::Delta,
            Encoding::Dictionary(_) => EncodingChoice::Dictionary,
            Encoding::Alp(_) => EncodingChoice::Alp,
        }
    }
    /// The encoding's name.
    pub fn name(&self) -> &'static str {
        self.choice().name()
    }

    /// The encoding of what lies in segments: of a dictionary, that of its codes.
    pub fn stored(&self) -> &Encoding {
        match self {
            Encoding::Dictionary(dictionary) => dictionary.codes(),
            encoding => encoding,
        }
    }

    /// Machine type of what lies in segments of a column of that storage: of a dictionary, that of codes.
    pub fn stored_as(&self, storage: Storage) -> Storage {
        if matches!(self, Encoding::Dictionary(_)) { Storage::U32 } else { storage }
    }

    /// Whether columns of a storage may have this encoding with its parameters.
    pub(crate) fn is_for(&self, storage: Storage) -> bool {
        match self {
            Encoding::Plain | Encoding::Rle => true,
            Encoding::Dictionary(dictionary) => dictionary.codes().is_for(Storage::U32),
            Encoding::Packed(packed) => !storage.is_float() && packed.check(storage).is_ok(),
            Encoding::Nsf(nsf) => !storage.is_float() && nsf.check(storage).is_ok(),
            Encoding::Nsv(_) | Encoding::GpuFor | Encoding::GpuDfor => !storage.is_float(),
            Encoding::Delta(delta) => delta.check(storage).is_ok(),
            Encoding::Alp(alp) => Alp::check(storage).is_ok() && alp.scales().is_ok(),
        }
    }

    /// Whether the values of a segment of `rows` rows may take that many bytes.
    pub(crate) fn takes(&self, bytes: usize, storage: Storage, rows: usize) -> bool {
        let vectors = rows.div_ceil(VECTOR_ROWS);
        match self {
            Encoding::Plain => bytes == vectors * VECTOR_ROWS * storage.width(),
            Encoding::Packed(packed) => {
                let reference = if packed.reference.is_none() { storage.width().max(4) } else { 0 };
                let least = vectors * (VECTOR_ROWS / 8 * packed.width as usize + reference);
                bytes == least || packed.patches && bytes > least
            }
            Encoding::Nsf(nsf) => bytes == vectors * VECTOR_ROWS * nsf.bytes as usize,
            Encoding::Delta(delta) => bytes == delta.bytes(storage, vectors),
            Encoding::Dictionary(dictionary) => dictionary.codes().takes(bytes, Storage::U32, rows),
            // That depends on the values.
            Encoding::Nsv(_) | Encoding::Rle | Encoding::GpuFor | Encoding::GpuDfor | Encoding::Alp(_) => true,
        }
    }

    /// Bytes of a value of `width` bytes, references apart; `None` where that depends on the values.
    pub fn bytes_per_value(&self, width: usize) -> Option<f64> {
        match self {
            Encoding::Plain => Some(width as f64),
            Encoding::Packed(Packed { width, patches: false, .. }) => Some(f64::from(*width) / 8.0),
            Encoding::Nsf(nsf) => Some(f64::from(nsf.bytes)),
            Encoding::Delta(delta) => Some(f64::from(delta.width) / 8.0),
            Encoding::Dictionary(dictionary) => dictionary.codes().bytes_per_value(Storage::U32.width()),
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

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Plain => f.write_str("plain"),
            Encoding::Packed(packed) => {
                f.write_str("packed")?;
                in_brackets(f, *packed)
            }
            Encoding::Nsf(nsf) => write!(f, "nsf({})", nsf.bytes),
            Encoding::Nsv(_) => f.write_str("nsv"),
            Encoding::Rle => f.write_str("rle"),
            Encoding::GpuFor => f.write_str("gpu-for"),
            Encoding::GpuDfor => f.write_str("gpu-dfor"),
            Encoding::Delta(delta) => write!(f, "delta({}, differences {})", delta.width, delta.differences),
            Encoding::Dictionary(dictionary) => {
                write!(f, "{} dictionary({})", dictionary.codes(), dictionary.values().len().max(1))
            }
            Encoding::Alp(alp) => {
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
    fn encodings_are_for_some_storages() {
        let packed = |width, reference, patches| Packed { width, reference, patches };
        let alp = |exponent| Alp { exponent, factor: 0, integers: packed(3, Some(0), true) };
        for (encoding, storage, fits) in [
            (Encoding::Plain, Storage::F32, true),
            (Encoding::Packed(packed(12, None, true)), Storage::I32, true),
            (Encoding::Packed(packed(13, None, false)), Storage::I32, false),
            (Encoding::Packed(packed(40, None, false)), Storage::I32, false),
            (Encoding::Packed(packed(12, None, false)), Storage::F32, false),
            (Encoding::Nsf(Nsf { bytes: 2 }), Storage::I64, true),
            (Encoding::Nsf(Nsf { bytes: 3 }), Storage::I64, false),
            (Encoding::Nsf(Nsf { bytes: 4 }), Storage::I16, false),
            (Encoding::Nsv(Nsv { reference: 7 }), Storage::U64, true),
            (Encoding::Rle, Storage::F64, true),
            (Encoding::GpuFor, Storage::I64, true),
            (Encoding::GpuDfor, Storage::F64, false),
            (Encoding::Delta(Delta { width: 10, differences: 13 }), Storage::I8, true),
            (Encoding::Delta(Delta { width: 9, differences: 9 }), Storage::I64, false),
            (Encoding::Delta(Delta { width: 10, differences: 14 }), Storage::I64, false),
            (Encoding::Delta(Delta { width: 32, differences: 31 }), Storage::I16, false),
            (Encoding::Delta(Delta { width: 32, differences: 31 }), Storage::I64, true),
            (Encoding::Delta(Delta { width: 40, differences: 40 }), Storage::U32, false),
            (Encoding::Delta(Delta { width: 3, differences: 3 }), Storage::F32, false),
            (Encoding::Alp(alp(14)), Storage::F64, true),
            (Encoding::Alp(alp(14)), Storage::I64, false),
            (Encoding::Alp(alp(200)), Storage::F64, false),
        ] {
            assert_eq!(encoding.is_for(storage), fits, "{encoding} {storage:?}");
        }
    }

    #[test]
    fn bytes_of_segments_are_those_of_whole_vectors() {
        assert!(Encoding::Plain.takes(2048 * 8, Storage::I64, 1025));
        assert!(!Encoding::Plain.takes(1025 * 8, Storage::I64, 1025));
        let own = |patches| Encoding::Packed(Packed { width: 3, reference: None, patches });
        assert!(own(false).takes(2 * (3 * 128 + 4), Storage::I8, 1025) && own(true).takes(999, Storage::I8, 1025));
        assert!(own(false).takes(3 * 128 + 8, Storage::U64, 1024) && !own(false).takes(999, Storage::I8, 1025));
        let none = Encoding::Packed(Packed { width: 0, reference: Some(7), patches: false });
        assert!(none.takes(0, Storage::I32, 5) && !none.takes(4, Storage::I32, 5));
        assert!(Encoding::Nsf(Nsf { bytes: 2 }).takes(2048, Storage::I32, 5));
        let delta = Encoding::Delta(Delta { width: 3, differences: 4 });
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
    fn encodings_in_words() {
        let packed = Packed { width: 12, reference: None, patches: true };
        assert_eq!(Encoding::Packed(packed).to_string(), "packed(12, references, patches)");
        let integers = Packed { width: 3, reference: Some(0), patches: false };
        assert_eq!(Encoding::Packed(integers).to_string(), "packed(3)");
        assert_eq!(Encoding::Alp(Alp { exponent: 14, factor: 12, integers }).to_string(), "alp(3)");
        assert_eq!(Encoding::Nsf(Nsf { bytes: 2 }).to_string(), "nsf(2)");
        assert_eq!(Encoding::Delta(Delta { width: 2, differences: 1 }).to_string(), "delta(2, differences 1)");
    }
}
