//! Locations of files on this machine: paths, URLs, patterns, and the folders that statements may reach.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Whether a text has characters that patterns have.
pub(crate) fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether a location is a pattern: a name that exists is that file, whatever characters it has.
pub(crate) fn is_pattern(location: &str) -> bool {
    has_wildcards(location) && local_path(location).is_none_or(|path| std::fs::symlink_metadata(path).is_err())
}

/// The path of a location on this machine: from the root, without `.` and `..`, or below the working folder as it is
/// written, which errors show. Links are followed where `..` comes behind them alone; a `~` in front is the user's
/// folder.
pub(crate) fn local_path(location: &str) -> Option<PathBuf> {
    let path = match location.strip_prefix("file://") {
        Some(path) => PathBuf::from(OsString::from_vec(decoded(path))),
        None if location.contains("://") => return None,
        None => match location.strip_prefix("~/").filter(|_| !Path::new("~").exists()) {
            Some(below) => Path::new(&std::env::var_os("HOME")?).join(below),
            None => PathBuf::from(location),
        },
    };
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Some(path.components().collect());
    }
    let mut whole = PathBuf::new();
    for part in std::path::absolute(&path).ok()?.components() {
        match part {
            Component::ParentDir => {
                whole = std::fs::canonicalize(&whole).unwrap_or(whole);
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    Some(whole)
}

/// A location as it is kept: its path on this machine, with the slash that says that it is a folder.
pub(crate) fn canonical(location: &str) -> String {
    let Some(path) = local_path(location) else { return location.to_string() };
    let mut path = path.to_string_lossy().into_owned();
    if location.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// A location as DataFusion takes it, which takes every name with a wildcard character for a pattern.
pub(crate) fn for_listing(location: String) -> String {
    match local_path(&location) {
        Some(path) if has_wildcards(&location) && !is_pattern(&location) => {
            url_of(&path, location.ends_with('/') || path.is_dir())
        }
        _ => location,
    }
}

/// The location that names a path and is no pattern.
pub(crate) fn url_of(path: &Path, is_folder: bool) -> String {
    let mut url = String::from("file://");
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'=' => url.push(char::from(*byte)),
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    if is_folder && !url.ends_with('/') {
        url.push('/');
    }
    url
}

/// The bytes of a URL's path.
fn decoded(path: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// Folders that hold all files that statements may read and write, as the system resolves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPaths(Arc<[PathBuf]>);

impl AllowedPaths {
    /// Folders separated by ':'; none where one of them is not there, or where there is none.
    pub(crate) fn parse(text: &str) -> Option<AllowedPaths> {
        let folders = text.split(':').map(str::trim).filter(|folder| !folder.is_empty());
        let folders: Vec<PathBuf> = folders
            .map(|folder| std::fs::canonicalize(folder).ok().filter(|folder| folder.is_dir()))
            .collect::<Option<_>>()?;
        (!folders.is_empty()).then(|| AllowedPaths(folders.into()))
    }

    /// Whether a path, which need not exist, lies in one of the folders or is one of them.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        resolved(path).is_some_and(|path| self.0.iter().any(|folder| path.starts_with(folder)))
    }
}

impl fmt::Display for AllowedPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders: Vec<String> = self.0.iter().map(|folder| folder.display().to_string()).collect();
        f.write_str(&folders.join(":"))
    }
}

/// The path that the system would open, without links and `..`; none where it cannot be told, as for a link to a file
/// that does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut above = std::path::absolute(path).ok()?;
    let mut below = Vec::new();
    loop {
        if let Ok(mut found) = std::fs::canonicalize(&above) {
            found.extend(below.iter().rev());
            return Some(found);
        }
        let is_name = matches!(above.components().next_back(), Some(Component::Normal(_)));
        if !is_name || std::fs::symlink_metadata(&above).is_ok() {
            return None;
        }
        below.push(above.file_name()?.to_os_string());
        above.pop();
    }
}
