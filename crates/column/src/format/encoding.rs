//! The list of encodings, with their parameters and names.

use std::fmt;
use std::str::FromStr;

use super::alp::Alp;
use super::bytes::Bytes;
use super::codec::Codec;
use super::delta::Delta;
use super::dictionary::Dictionary;
use super::gpu_dfor::GpuDfor;
use super::gpu_for::GpuFor;
use super::nsf::Nsf;
use super::nsv::Nsv;
use super::packed::Packed;
use super::plain::PlainCodec;
use super::rle::Rle;
use crate::units::Storage;

/// The layout of a segment's values; the same on the host, in files and on the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The values themselves.
    #[default]
    Plain,
    /// Packed offsets to references.
    Packed(Packed),
    /// The same number of bytes for each value.
    Nsf(Nsf),
    /// One to four bytes a value.
    Nsv(Nsv),
    /// Runs of equal values.
    Rle,
    /// Blocks of 128 offsets, packed by miniblocks of 32.
    GpuFor,
    /// Differences within tiles of four blocks, packed as in GPU-FOR.
    GpuDfor,
    /// Differences within quads of rows, packed as offsets.
    Delta(Delta),
    /// Codes for the column's distinct values.
    Dictionary(Dictionary),
    /// Floats that are decimals, as packed integers.
    Alp(Alp),
    /// Strings as bytes with offsets.
    Bytes(Bytes),
}

/// Declares the choices with their names.
macro_rules! choices {
    ($($(#[$attribute:meta])* $choice:ident = $name:literal,)*) => {
        /// The encoding that a load gives its columns. A column that cannot have the named one is loaded as with
        /// [`EncodingChoice::Auto`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum EncodingChoice {
            $($(#[$attribute])* $choice,)*
        }

        impl EncodingChoice {
            /// All choices.
            pub const ALL: [EncodingChoice; [$($name),*].len()] = [$(EncodingChoice::$choice),*];

            /// Name of the choice: that of the encoding, or `auto`.
            pub fn name(self) -> &'static str {
                match self {
                    $(EncodingChoice::$choice => $name,)*
                }
            }
        }
    };
}

choices! {
    /// The encoding with the lowest estimated time to read.
    #[default]
    Auto = "auto",
    /// Values as they are.
    Plain = "plain",
    /// Packed, also if that saves nothing.
    Packed = "packed",
    /// Integers in the fewest bytes that hold all of them.
    Nsf = "nsf",
    /// Integers less the smallest, in 1 to 4 bytes each.
    Nsv = "nsv",
    /// Runs of equal values.
    Rle = "rle",
    /// Integers in blocks of 128.
    GpuFor = "gpu-for",
    /// Differences of integers in blocks of 128.
    GpuDfor = "gpu-dfor",
    /// Differences of integers, packed as [`EncodingChoice::Packed`] packs offsets.
    Delta = "delta",
    /// Codes for the distinct values of numbers, if those are few.
    Dictionary = "dictionary",
    /// Floats as decimals.
    Alp = "alp",
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
        named.ok_or_else(|| format!("'{text}' is not an encoding"))
    }
}

impl Encoding {
    /// The choice that names the encoding; `None` if loads choose it alone.
    fn choice(&self) -> Option<EncodingChoice> {
        Some(match self {
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
            Encoding::Bytes(_) => return None,
        })
    }

    /// Name of the encoding.
    pub fn name(&self) -> &'static str {
        self.choice().map_or("bytes", EncodingChoice::name)
    }

    /// The encoding of stored values: that of its codes for a dictionary.
    pub fn stored(&self) -> &Encoding {
        match self {
            Encoding::Dictionary(dictionary) => dictionary.codes(),
            encoding => encoding,
        }
    }

    /// Machine type of stored values of a column of this storage: that of codes for a dictionary.
    pub fn stored_as(&self, storage: Storage) -> Storage {
        if matches!(self, Encoding::Dictionary(_)) { Storage::U32 } else { storage }
    }

    /// Whether columns of a storage may have this encoding with its parameters.
    pub(crate) fn is_for(&self, storage: Storage) -> bool {
        let floats = matches!(self, Encoding::Plain | Encoding::Rle | Encoding::Dictionary(_) | Encoding::Alp(_));
        (floats || !storage.is_float()) && self.codec().check(storage).is_ok()
    }

    /// The codec with the parameters of the encoding.
    pub(crate) fn codec(&self) -> &dyn Codec {
        match self {
            Encoding::Plain => &PlainCodec,
            Encoding::Packed(packed) => packed,
            Encoding::Nsf(nsf) => nsf,
            Encoding::Nsv(nsv) => nsv,
            Encoding::Rle => &Rle,
            Encoding::GpuFor => &GpuFor,
            Encoding::GpuDfor => &GpuDfor,
            Encoding::Delta(delta) => delta,
            Encoding::Dictionary(dictionary) => dictionary,
            Encoding::Alp(alp) => alp,
            Encoding::Bytes(bytes) => bytes,
        }
    }

    /// Encoded bytes of a value of `width` bytes, without references; `None` if they depend on the values.
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

/// Writes the parameters of a packing.
fn packed_parameters(f: &mut fmt::Formatter<'_>, packed: Packed) -> fmt::Result {
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
                packed_parameters(f, *packed)
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
                packed_parameters(f, alp.integers)
            }
            Encoding::Bytes(_) => f.write_str("bytes"),
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
            (Encoding::Bytes(Bytes { limit: 9 }), Storage::U32, true),
            (Encoding::Bytes(Bytes { limit: 9 }), Storage::I64, false),
        ] {
            assert_eq!(encoding.is_for(storage), fits, "{encoding} {storage:?}");
        }
    }

    #[test]
    fn bytes_of_segments_are_those_of_whole_vectors() {
        let takes = |encoding: &Encoding, bytes, storage, rows| encoding.codec().takes(bytes, storage, rows);
        assert!(takes(&Encoding::Plain, 2048 * 8, Storage::I64, 1025));
        assert!(!takes(&Encoding::Plain, 1025 * 8, Storage::I64, 1025));
        let own = |patches| Encoding::Packed(Packed { width: 3, reference: None, patches });
        assert!(takes(&own(false), 2 * (3 * 128 + 4), Storage::I8, 1025) && takes(&own(true), 999, Storage::I8, 1025));
        assert!(takes(&own(false), 3 * 128 + 8, Storage::U64, 1024) && !takes(&own(false), 999, Storage::I8, 1025));
        let none = Encoding::Packed(Packed { width: 0, reference: Some(7), patches: false });
        assert!(takes(&none, 0, Storage::I32, 5) && !takes(&none, 4, Storage::I32, 5));
        assert!(takes(&Encoding::Nsf(Nsf { bytes: 2 }), 2048, Storage::I32, 5));
        let delta = Encoding::Delta(Delta { width: 3, differences: 4 });
        assert!(takes(&delta, 2 * (3 * 128 + 16), Storage::I8, 1025) && !takes(&delta, 2 * 3 * 128, Storage::I8, 1025));
        assert!(takes(&delta, 3 * 128 + 32, Storage::U64, 1024));
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
