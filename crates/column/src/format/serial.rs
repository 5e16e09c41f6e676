//! The fields of a file's directory as bytes, little endian, without padding.
//!
//! ```text
//! string      length u32, bytes in UTF-8
//! option      u8, 1 if there is a value; then the value, or zeros of its length
//! storage     u8: I8 0, I16 1, I32 2, I64 3, U8 4, U16 5, U32 6, U64 7, F32 8, F64 9, Bool 10
//! encoding    u8: plain 0, packed 1, nsf 2, nsv 3, rle 4, gpu-for 5, gpu-dfor 6, dictionary 7, alp 8,
//!             delta 9, bytes 10; then
//!   packed      width u8, reference option of u64, patches u8
//!   nsf         bytes u8
//!   nsv         reference u64
//!   dictionary  number of values u32, values u64 each, encoding of the codes (no dictionary, alp or bytes)
//!   alp         exponent u8, factor u8, packed (without its number)
//!   delta       width u8, differences u8
//!   bytes       exceeded limit of distinct strings u64
//! statistics  rows u64, nulls u64, option of bounds 2 × i128, option of float bounds 2 × f64, strictly ascending u8
//! traits      option of: distinct values u64, runs u64, is sorted u8
//! ```

use super::Encoding;
use super::alp::Alp;
use super::bytes::Bytes;
use super::delta::Delta;
use super::dictionary::Dictionary;
use super::nsf::Nsf;
use super::nsv::Nsv;
use super::packed::Packed;
use crate::units::{Statistics, Storage, Traits};

/// Writes fields.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<u8>);

impl Fields {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn storage(&mut self, storage: Storage) {
        let number = Storage::ALL.iter().position(|known| *known == storage);
        self.u8(number.expect("all storages have a number") as u8);
    }

    pub(crate) fn statistics(&mut self, statistics: &Statistics) {
        self.u64(statistics.rows);
        self.u64(statistics.nulls);
        let (low, high) = statistics.integers.unwrap_or_default();
        self.u8(u8::from(statistics.integers.is_some()));
        self.0.extend([low, high].iter().flat_map(|bound| bound.to_le_bytes()));
        let (low, high) = statistics.floats.unwrap_or_default();
        self.u8(u8::from(statistics.floats.is_some()));
        self.0.extend([low, high].iter().flat_map(|bound| bound.to_le_bytes()));
        self.u8(u8::from(statistics.strictly_ascending));
    }

    pub(crate) fn traits(&mut self, traits: Option<Traits>) {
        self.u8(u8::from(traits.is_some()));
        let traits = traits.unwrap_or(Traits { distinct: 0, runs: 0, is_sorted: false });
        self.u64(traits.distinct);
        self.u64(traits.runs);
        self.u8(u8::from(traits.is_sorted));
    }

    pub(crate) fn encoding(&mut self, encoding: &Encoding) {
        match encoding {
            Encoding::Plain => self.u8(0),
            Encoding::Packed(packed) => {
                self.u8(1);
                self.packed(packed);
            }
            Encoding::Nsf(nsf) => {
                self.u8(2);
                self.u8(nsf.bytes as u8);
            }
            Encoding::Nsv(nsv) => {
                self.u8(3);
                self.u64(nsv.reference);
            }
            Encoding::Rle => self.u8(4),
            Encoding::GpuFor => self.u8(5),
            Encoding::GpuDfor => self.u8(6),
            Encoding::Dictionary(dictionary) => {
                self.u8(7);
                self.u32(dictionary.values().len() as u32);
                dictionary.values().iter().for_each(|value| self.u64(*value));
                self.encoding(dictionary.codes());
            }
            Encoding::Alp(alp) => {
                self.u8(8);
                self.u8(alp.exponent as u8);
                self.u8(alp.factor as u8);
                self.packed(&alp.integers);
            }
            Encoding::Delta(delta) => {
                self.u8(9);
                self.u8(delta.width as u8);
                self.u8(delta.differences as u8);
            }
            Encoding::Bytes(bytes) => {
                self.u8(10);
                self.u64(bytes.limit);
            }
        }
    }

    fn packed(&mut self, packed: &Packed) {
        self.u8(packed.width as u8);
        self.u8(u8::from(packed.reference.is_some()));
        self.u64(packed.reference.unwrap_or(0));
        self.u8(u8::from(packed.patches));
    }
}

/// Reads fields; a field is `None` if the bytes end before it or have no meaning.
#[derive(Debug)]
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.bytes(LENGTH)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i128(&mut self) -> Option<i128> {
        self.array().map(i128::from_le_bytes)
    }

    fn f64(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub(crate) fn storage(&mut self) -> Option<Storage> {
        Storage::ALL.get(usize::from(self.u8()?)).copied()
    }

    pub(crate) fn statistics(&mut self) -> Option<Statistics> {
        let (rows, nulls) = (self.u64()?, self.u64()?);
        let integers = self.bool()?.then_some((self.i128()?, self.i128()?));
        let floats = self.bool()?.then_some((self.f64()?, self.f64()?));
        Some(Statistics { rows, nulls, integers, floats, strictly_ascending: self.bool()? })
    }

    pub(crate) fn traits(&mut self) -> Option<Option<Traits>> {
        let is_there = self.bool()?;
        let traits = Traits { distinct: self.u64()?, runs: self.u64()?, is_sorted: self.bool()? };
        Some(is_there.then_some(traits))
    }

    pub(crate) fn encoding(&mut self, storage: Storage) -> Option<Encoding> {
        match self.u8()? {
            7 => {
                let count = self.u32()? as usize;
                let values = self.bytes(count.checked_mul(8)?)?.as_chunks::<8>().0;
                let values = values.iter().map(|value| u64::from_le_bytes(*value)).collect();
                let number = self.u8()?;
                let codes = self.simple(number)?;
                Some(Encoding::Dictionary(Dictionary::new(storage, values, codes).ok()?))
            }
            8 => {
                let (exponent, factor) = (u32::from(self.u8()?), u32::from(self.u8()?));
                Some(Encoding::Alp(Alp { exponent, factor, integers: self.packed()? }))
            }
            10 => Some(Encoding::Bytes(Bytes { limit: self.u64()? })),
            number => self.simple(number),
        }
    }

    /// An encoding that the codes of a dictionary can have.
    fn simple(&mut self, number: u8) -> Option<Encoding> {
        Some(match number {
            0 => Encoding::Plain,
            1 => Encoding::Packed(self.packed()?),
            2 => Encoding::Nsf(Nsf { bytes: u32::from(self.u8()?) }),
            3 => Encoding::Nsv(Nsv { reference: self.u64()? }),
            4 => Encoding::Rle,
            5 => Encoding::GpuFor,
            6 => Encoding::GpuDfor,
            9 => Encoding::Delta(Delta { width: u32::from(self.u8()?), differences: u32::from(self.u8()?) }),
            _ => return None,
        })
    }

    fn packed(&mut self) -> Option<Packed> {
        let width = u32::from(self.u8()?);
        let has_reference = self.bool()?;
        let reference = self.u64()?;
        Some(Packed { width, reference: has_reference.then_some(reference), patches: self.bool()? })
    }
}
