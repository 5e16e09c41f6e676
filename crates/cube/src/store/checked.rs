//! JSON files with a version and their own checksum.
//!
//! The first line is `{"checksum": "89abcdef",` with the CRC-32 of all bytes after it, so that the whole file is JSON
//! and no bit of it is without a checksum.

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{Result, StoreError};

/// Bytes of such a file at most.
const BYTES_MAX: u64 = 1 << 26;

/// The version, read before the other fields: those of another version may differ.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

/// The form in which checksums are written: CRC-32 (IEEE), eight hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    spelled(crc32fast::hash(bytes))
}

/// A checksum as text.
pub fn spelled(checksum: u32) -> String {
    format!("{checksum:08x}")
}

/// The text of a value that is written as an object of at least one field, `version` among them.
pub fn text(value: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(value).expect("manifests have text keys and finite numbers");
    let body = format!("{}\n", json.strip_prefix("{\n").expect("manifests have fields"));
    format!("{}{body}", first_line(body.as_bytes()))
}

/// Reads a value of one of these versions; `None` if there is no such file.
///
/// # Errors
/// [`StoreError::Damaged`], [`StoreError::Version`], [`StoreError::Io`].
pub fn read<T: DeserializeOwned>(path: &Path, versions: RangeInclusive<u64>) -> Result<Option<T>> {
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened.map_err(StoreError::io(path, "read"))?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(StoreError::io(path, "read"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(StoreError::damaged(path, format!("it has more than {BYTES_MAX} bytes")));
    }
    parse(&bytes, path, versions).map(Some)
}

fn parse<T: DeserializeOwned>(bytes: &[u8], path: &Path, versions: RangeInclusive<u64>) -> Result<T> {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let (head, body) = bytes.split_at(end);
    if head != first_line(body).as_bytes() {
        return Err(StoreError::damaged(path, "the checksum in its first line is not that of its other lines"));
    }
    let json = [b"{", body].concat();
    let unreadable = |error: serde_json::Error| StoreError::damaged(path, format!("it is no manifest: {error}"));
    let Versioned { version: found } = serde_json::from_slice(&json).map_err(unreadable)?;
    if !versions.contains(&found) {
        return Err(StoreError::Version { path: path.to_path_buf(), found, wanted: *versions.end() });
    }
    serde_json::from_slice(&json).map_err(unreadable)
}

/// The first line of a file with these other lines.
fn first_line(body: &[u8]) -> String {
    format!("{{\"checksum\": \"{}\",\n", checksum(body))
}
