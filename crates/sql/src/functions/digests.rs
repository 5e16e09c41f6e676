//! Digests and encodings of texts and bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::datatypes::DataType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::NaiveDateTime;
use datafusion::error::{DataFusionError, Result};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;

use super::{Arguments, Bytes, Long, Own, Text, Texts, Time, Uuid, raised, time_of};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("md5", &[Text], Text, digest::<Md5>),
    Own::new("md5", &[Bytes], Text, digest::<Md5>),
    Own::new("sha1", &[Text], Text, digest::<Sha1>),
    Own::new("sha1", &[Bytes], Text, digest::<Sha1>),
    Own::new("sha256", &[Text], Text, digest::<Sha256>),
    Own::new("sha256", &[Bytes], Text, digest::<Sha256>),
    Own::new("to_base64", &[Text], Text, to_base64),
    Own::new("to_base64", &[Bytes], Text, to_base64),
    Own::new("from_base64", &[Text], Bytes, |args| args.blobs(|row| from_base64(args.text(0).value(row)).map(Some))),
    Own::new("hex", &[Text], Text, to_hex),
    Own::new("hex", &[Bytes], Text, to_hex),
    Own::new("hex", &[Long], Text, |args| args.texts(|row| Ok(Some(format!("{:X}", args.longs(0).value(row)))))),
    Own::new("unhex", &[Text], Bytes, |args| args.blobs(|row| unhex(args.text(0).value(row)).map(Some))),
    Own::new("bin", &[Text], Text, to_bits),
    Own::new("bin", &[Bytes], Text, to_bits),
    Own::new("bin", &[Long], Text, |args| args.texts(|row| Ok(Some(format!("{:b}", args.longs(0).value(row)))))),
    Own::new("unbin", &[Text], Bytes, |args| args.blobs(|row| unbin(args.text(0).value(row)).map(Some))),
    Own::new("as_uuid", &[Text], Uuid, |args| args.texts(|row| uuid(args.text(0).value(row)).map(Some))),
    Own::new("as_uuid", &[Bytes], Uuid, |args| args.texts(|row| uuid_of_bytes(args.bytes(0).value(row)).map(Some))),
    Own::new("try_as_uuid", &[Text], Uuid, |args| args.texts(|row| Ok(uuid(args.text(0).value(row)).ok()))),
    Own::new("as_uuids", &[Texts], Texts, uuids),
    Own::new("octet_length", &[Text], Long, |args| args.integers(|row| Ok(Some(bytes(args, row).len() as i64)))),
    Own::new("octet_length", &[Bytes], Long, |args| args.integers(|row| Ok(Some(bytes(args, row).len() as i64)))),
    Own::new("uuid_extract_timestamp", &[Text], Time, |args| {
        args.times(|row| time_of_uuid(args.text(0).value(row)).map(Some))
    }),
    Own::new("uuid_extract_version", &[Text], Long, |args| {
        args.integers(|row| {
            Ok(uuid(args.text(0).value(row))?.chars().nth(14).and_then(|v| v.to_digit(16)).map(i64::from))
        })
    }),
    Own::new("encode", &[Text], Bytes, |args| args.blobs(|row| Ok(Some(bytes(args, row).to_vec())))),
    Own::new("encode", &[Text, Text], Text, encoded),
    Own::new("encode", &[Bytes, Text], Text, encoded),
    Own::new("decode", &[Bytes], Text, |args| args.texts(|row| of_utf8(bytes(args, row).to_vec()).map(Some))),
    Own::new("decode", &[Text, Text], Bytes, |args| {
        args.blobs(|row| decoded(args.text(0).value(row), args.text(1).value(row)).map(Some))
    }),
    Own::new("url_encode", &[Text], Text, |args| args.texts(|row| Ok(Some(url_encoded(args.text(0).value(row)))))),
    Own::new("url_decode", &[Text], Text, |args| args.texts(|row| url_decoded(args.text(0).value(row)).map(Some))),
];

/// The bytes of the first argument, which is a text or bytes.
fn bytes(args: &Arguments, row: usize) -> &[u8] {
    match args.columns[0].data_type() {
        DataType::Utf8 => args.text(0).value(row).as_bytes(),
        _ => args.bytes(0).value(row),
    }
}

fn digest<D: Digest>(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(Some(hex(&D::digest(bytes(args, row))))))
}

fn to_base64(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(Some(STANDARD.encode(bytes(args, row)))))
}

fn to_hex(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(Some(hex(bytes(args, row)).to_uppercase())))
}

fn to_bits(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(Some(bytes(args, row).iter().map(|byte| format!("{byte:08b}")).collect())))
}

/// The bytes in PostgreSQL's `hex`, `base64` or `escape`.
fn encoded(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| {
        let bytes = bytes(args, row);
        match args.text(1).value(row).to_lowercase().as_str() {
            "hex" => Ok(Some(hex(bytes))),
            "base64" => Ok(Some(in_lines(&STANDARD.encode(bytes)))),
            "escape" => Ok(Some(escaped(bytes))),
            other => Err(no_encoding(other)),
        }
    })
}

/// Lines of 76 characters, as PostgreSQL has base64.
fn in_lines(text: &str) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    lines.join("\n")
}

fn decoded(text: &str, encoding: &str) -> Result<Vec<u8>> {
    match encoding.to_lowercase().as_str() {
        "hex" => {
            let digits: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            if !digits.len().is_multiple_of(2) {
                return Err(raised(format!("'{text}' has an odd number of hexadecimal digits")));
            }
            unhex(&digits)
        }
        "base64" => from_base64(&text.chars().filter(|c| !c.is_ascii_whitespace()).collect::<String>()),
        "escape" => unescaped(text),
        other => Err(no_encoding(other)),
    }
}

fn no_encoding(name: &str) -> datafusion::error::DataFusionError {
    raised(format!("'{name}' is no encoding; there are 'hex', 'base64', 'escape'"))
}

/// Bytes as text: zero and those above 127 as a backslash and three octal digits, a backslash as two.
fn escaped(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b'\\' => "\\\\".to_string(),
        0 | 128.. => format!("\\{byte:03o}"),
        plain => char::from(*plain).to_string(),
    };
    bytes.iter().map(shown).collect()
}

fn unescaped(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
            bytes.push(byte.ok_or_else(|| raised(format!("'{text}' has a backslash without three octal digits")))?);
            rest = &rest[3..];
        }
    }
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; the first of an odd number is a byte.
fn unhex(text: &str) -> Result<Vec<u8>> {
    of_digits(text, 16, 2).ok_or_else(|| raised(format!("'{text}' is not of hexadecimal digits")))
}

fn unbin(text: &str) -> Result<Vec<u8>> {
    of_digits(text, 2, 8).ok_or_else(|| raised(format!("'{text}' is not of binary digits")))
}

/// The bytes of digits, so many a byte; the first byte may have fewer.
fn of_digits(text: &str, radix: u32, per_byte: usize) -> Option<Vec<u8>> {
    if !text.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let (front, whole) = text.split_at(text.len() % per_byte);
    let front = (!front.is_empty()).then_some(front.as_bytes());
    let parts = front.into_iter().chain(whole.as_bytes().chunks(per_byte));
    parts.map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()).collect()
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|error| raised(format!("'{text}' is not base64: {error}")))
}

fn of_utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| raised("bytes that are no UTF-8; encode(x, 'hex') shows them".into()))
}

fn url_encoded(text: &str) -> String {
    let shown = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(shown).collect()
}

/// The text with `%` and two digits as a byte each; another `%` stays.
pub(crate) fn url_decoded(text: &str) -> Result<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| of_digits(digits, 16, 2)) {
            Some(byte) => {
                bytes.extend(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    of_utf8(bytes)
}

/// The usual text of a UUID in any of its spellings.
pub(super) fn uuid(text: &str) -> Result<String> {
    let bare = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let digits: String = bare.chars().filter(|c| *c != '-').collect::<String>().to_lowercase();
    if digits.len() != 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(raised(format!("'{text}' is no UUID")));
    }
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(parts.join("-"))
}

/// The time that a UUID of version 7 begins with, in milliseconds since 1970.
fn time_of_uuid(text: &str) -> Result<NaiveDateTime> {
    let digits = uuid(text)?.replace('-', "");
    match digits.chars().nth(12) {
        Some('7') => {
            let millis = i64::from_str_radix(&digits[..12], 16).map_err(|error| raised(error.to_string()))?;
            time_of(millis * 1_000)
        }
        version => {
            Err(raised(format!("a UUID of version {} has no time; one of version 7 has", version.unwrap_or('0'))))
        }
    }
}

/// Lists of texts as lists of UUIDs.
fn uuids(args: &Arguments) -> Result<ArrayRef> {
    let lists = args.columns[0].as_list::<i32>();
    let DataType::List(field) = lists.data_type() else {
        return Err(DataFusionError::Internal("a list of another type".into()));
    };
    let items = lists.values().as_string::<i32>().iter().map(|text| text.map(uuid).transpose());
    let items = Arc::new(items.collect::<Result<StringArray>>()?);
    Ok(Arc::new(ListArray::try_new(field.clone(), lists.offsets().clone(), items, lists.nulls().cloned())?))
}

/// The usual text of a UUID of 16 bytes.
pub(crate) fn uuid_of_bytes(bytes: &[u8]) -> Result<String> {
    match bytes.len() {
        16 => uuid(&hex(bytes)),
        other => Err(raised(format!("{other} bytes are no UUID, which has 16"))),
    }
}
