//! Locations of files: paths, URLs, patterns, the folders that statements may reach, and where files that are elsewhere
//! have their places on this machine.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
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

/// Whether a location is that of files elsewhere: in a bucket of S3, or on a web server.
pub(crate) fn is_elsewhere(location: &str) -> bool {
    let begins = |scheme: &str| location.get(..scheme.len()).is_some_and(|front| front.eq_ignore_ascii_case(scheme));
    ["s3://", "https://", "http://"].iter().any(|scheme| begins(scheme))
}

/// How the name of a hidden folder begins and ends that has the places of files elsewhere.
const MIRROR: (&str, &str) = (".elsewhere.", ".warpcube-staging");

/// The folder in a mirror of files whose bytes are fetched when they are read: in their places are none.
pub(crate) const FETCHED: &str = "fetched";

/// The folder in a mirror of files that were copied whole.
pub(crate) const COPIED: &str = "copied";

/// What a place in a mirror stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirrored {
    /// Whether the file's bytes are fetched when they are read.
    pub(crate) is_fetched: bool,
    /// The number of the set of files that it is one of.
    pub(crate) set: u64,
    /// Where the file is.
    pub(crate) url: String,
}

/// The file elsewhere whose place a path is, `.elsewhere.…/content/fetched/7/s3/bucket/a.parquet`; none of others.
pub(crate) fn mirrored(path: &Path) -> Option<Mirrored> {
    let mut parts = path.iter().map(|part| part.to_str().unwrap_or_default());
    parts.find(|part| part.starts_with(MIRROR.0) && part.ends_with(MIRROR.1))?;
    let (_, kind, set, scheme) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let rest: Vec<&str> = parts.collect();
    let begin = if scheme == "file" { "/".to_string() } else { format!("{scheme}://") };
    let url = begin + &rest.join("/");
    Some(Mirrored { is_fetched: kind == FETCHED, set: set.parse().ok()?, url })
}

/// A path as people know it: of a file elsewhere its URL.
pub(crate) fn shown(path: &Path) -> String {
    mirrored(path).map_or_else(|| path.display().to_string(), |file| file.url)
}

/// Why a path outside of the allowed folders is refused.
pub(crate) const OUTSIDE: &str = "outside of warpcube.allowed_paths";
/// Why a file with secrets of the process is refused.
const SECRET: &str = "no statement reads or writes it: it has secrets of the server";

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

/// Files that no statement reads or writes, whatever folders are allowed: those with secrets of the process.
///
/// `/proc` is one of them where there are any: `/proc/self/mem` has the memory of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretFiles(Arc<[PathBuf]>);

impl SecretFiles {
    /// These files and those of before.
    pub(crate) fn with(&self, files: &[PathBuf]) -> SecretFiles {
        let proc = (!files.is_empty()).then(|| PathBuf::from("/proc"));
        let files = files.iter().map(|file| resolved(file).unwrap_or_else(|| file.clone()));
        let mut all: Vec<PathBuf> = self.0.iter().cloned().chain(files).chain(proc).collect();
        all.sort();
        all.dedup();
        SecretFiles(all.into())
    }

    /// Whether a path is one of the files, by its name or by another name of the same file.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let file = |path: &Path| std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()));
        let found = file(path);
        resolved(path).is_some_and(|path| self.0.iter().any(|secret| path.starts_with(secret)))
            || found.is_some() && self.0.iter().any(|secret| file(secret) == found)
    }
}

/// The files that statements of a database reach: those of the allowed folders, where not all are, save secret ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) allowed: Option<AllowedPaths>,
    pub(crate) secret: SecretFiles,
}

impl Reach {
    /// Why a path is out of reach; none where it is not.
    pub(crate) fn refusal(&self, path: &Path) -> Option<&'static str> {
        match &self.allowed {
            _ if self.secret.holds(path) => Some(SECRET),
            Some(allowed) if !allowed.holds(path) => Some(OUTSIDE),
            _ => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_files_elsewhere_tell_their_urls() {
        let path = Path::new("/tmp/.elsewhere.3f.warpcube-staging/content/fetched/7/s3/bucket/a=1/b.parquet");
        let file = mirrored(path).unwrap();
        assert_eq!((file.is_fetched, file.set, file.url.as_str()), (true, 7, "s3://bucket/a=1/b.parquet"));
        let copied = Path::new("/x/.elsewhere.0.warpcube-staging/content/copied/12/http/127.0.0.1:80/b.csv");
        assert_eq!(shown(copied), "http://127.0.0.1:80/b.csv");
        assert_eq!(shown(Path::new("a/.t.1.warpcube-staging/content/b.csv")), "a/.t.1.warpcube-staging/content/b.csv");
        for (location, elsewhere) in [("S3://b/x", true), ("https://h/x", true), ("file:///x", false), ("é", false)] {
            assert_eq!(is_elsewhere(location), elsewhere, "{location}");
        }
    }
}
