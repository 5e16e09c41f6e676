//! Bytes of integers; texts of bytes, and bytes of texts, as DuckDB writes them: `\xAA` is one byte, and other
//! characters are those of UTF-8.
//!
//! Casts of texts to BLOB and back go this way, those of columns and of constants alike, and so do declared columns of
//! text files. Printable ASCII is written as it is, but for quotes and the backslash.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, BinaryBuilder, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use arrow::error::ArrowError;

/// How the escape of a byte begins; two digits follow.
const ESCAPE: &[u8] = b"\\x";
/// Printable characters that are written as escapes.
const ESCAPED: &[u8] = b"\\'\"";

/// Whether values of a type are bytes.
pub(crate) fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// A text with an escape that is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Its position among the texts.
    pub(crate) row: usize,
    pub(crate) text: String,
}

impl Misfit {
    pub(crate) fn reason(&self) -> String {
        format!("'{}' has an escape that is none; a byte is \\x and two digits", self.text)
    }
}

/// Texts as bytes of a type, or the first with an escape that is none; such a text is NULL if the cast `may_fail`.
pub(crate) fn read(texts: &ArrayRef, to: &DataType, may_fail: bool) -> Result<Result<ArrayRef, Misfit>, ArrowError> {
    let texts = cast(texts, &DataType::LargeUtf8)?;
    let mut values = BinaryBuilder::new();
    for (row, text) in texts.as_string::<i64>().iter().enumerate() {
        let bytes = text.and_then(bytes);
        if let (Some(text), None, false) = (text, &bytes, may_fail) {
            return Ok(Err(Misfit { row, text: text.to_string() }));
        }
        values.append_option(bytes);
    }
    cast(&(Arc::new(values.finish()) as ArrayRef), to).map(Ok)
}

/// Bytes as texts of a type.
pub(crate) fn texts(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let values = cast(values, &DataType::Binary)?;
    let values: &BinaryArray = values.as_binary();
    let texts: LargeStringArray = values.iter().map(|bytes| bytes.map(text)).collect();
    cast(&(Arc::new(texts) as ArrayRef), to)
}

/// Integers as bytes of a type, the most significant byte first, as many as the integer's type has: as in PostgreSQL.
pub(crate) fn of_integers(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let width = values.data_type().primitive_width().unwrap_or(size_of::<i64>());
    // What is past the largest signed integer has the same bits.
    let bytes: BinaryArray = match values.as_primitive_opt::<UInt64Type>() {
        Some(values) => values.iter().map(|value| value.map(u64::to_be_bytes)).map(|it| last(it, width)).collect(),
        None => {
            let values = cast(values, &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>();
            values.iter().map(|value| value.map(i64::to_be_bytes)).map(|it| last(it, width)).collect()
        }
    };
    cast(&(Arc::new(bytes) as ArrayRef), to)
}

fn last(bytes: Option<[u8; 8]>, width: usize) -> Option<Vec<u8>> {
    bytes.map(|bytes| bytes[bytes.len() - width..].to_vec())
}

/// The bytes of a text; none if an escape in it is none.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, others @ ..] = rest {
        rest = match rest.strip_prefix(ESCAPE) {
            Some(escaped) => {
                let digit = |place: usize| char::from(*escaped.get(place)?).to_digit(16);
                bytes.push((digit(0)? * 16 + digit(1)?) as u8);
                &escaped[2..]
            }
            None => {
                bytes.push(*first);
                others
            }
        };
    }
    Some(bytes)
}

/// The text of bytes.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if !ESCAPED.contains(byte) => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_bytes_are_read_as_they_are_written() {
        for (read, expected, written) in [
            ("abc", Some(&b"abc"[..]), "abc"),
            ("\\xAA", Some(&[0xAA][..]), "\\xAA"),
            ("a\\xaab", Some(&[b'a', 0xAA, b'b'][..]), "a\\xAAb"),
            ("\u{e9}", Some("\u{e9}".as_bytes()), "\\xC3\\xA9"),
            ("a\\b", Some(&b"a\\b"[..]), "a\\x5Cb"),
            ("\\x27\"", Some(&b"'\""[..]), "\\x27\\x22"),
            ("", Some(&b""[..]), ""),
            ("\\xA", None, ""),
            ("\\xZZ", None, ""),
            ("\\x\u{e9}", None, ""),
        ] {
            assert_eq!(bytes(read).as_deref(), expected, "{read}");
            assert_eq!(expected.map_or(String::new(), text), written, "{read}");
        }
    }
}
