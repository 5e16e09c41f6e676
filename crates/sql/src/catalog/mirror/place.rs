//! Where files elsewhere are, and what a location says of them: one file, a folder, or a pattern.
//!
//! Buckets are listed. What a web server has nobody can list, so that each of its files is named.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::Utc;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};

use super::super::folders::{is_data, is_shown};
use super::answers::{patiently, refused};
use crate::error::{Result, SqlError};
use crate::file_sets::is_partition;
use crate::locations::has_wildcards;

/// A file that was written less than this before it is looked at may be written again within the second that its time
/// tells.
const SETTLED: Duration = Duration::from_secs(2);

/// Folders are matched one level a wildcard, and hidden ones by name alone.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A location elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// `s3`, `https` or `http`.
    pub(super) scheme: &'static str,
    /// The bucket, or the server with its port.
    pub(super) authority: String,
    /// A path or a pattern, without a slash in front.
    pub(super) path: String,
    /// What a web server is asked for, as it is written: a signature behind `?` included.
    pub(super) request: String,
}

impl Place {
    /// # Errors
    /// [`SqlError::FileNone`] for what names no files.
    pub(super) fn parse(location: &str) -> Result<Place> {
        let (scheme, rest) = location.split_once("://").unwrap_or(("", location));
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "s3" => "s3",
            "https" => "https",
            _ => "http",
        };
        let named = if scheme == "s3" { rest } else { rest.split(['?', '#']).next().unwrap_or_default() };
        let (authority, path) = named.split_once('/').unwrap_or((named, ""));
        let (authority, path, request) = (authority.to_string(), path.to_string(), location.to_string());
        let place = Place { scheme, authority, path, request };
        let refused = |reason: &str| Err(SqlError::FileNone { path: place.url(), reason: reason.to_string() });
        if place.authority.is_empty() || has_wildcards(&place.authority) {
            return refused("expected s3://bucket/path or https://server/path");
        }
        if place.authority.contains('@') {
            return refused("a name and a password in a URL are not taken");
        }
        let parts = || place.path.trim_end_matches('/').split('/');
        let is_root = place.path.is_empty();
        if !is_root && parts().any(|part| matches!(part, "" | "." | "..")) {
            return refused("a part of the path is empty, '.' or '..'");
        }
        if scheme != "s3" && (is_root || place.path.ends_with('/') || place.path.contains(['*', '['])) {
            return refused("a web server does not list its files: name each, by {a,b} or in a list");
        }
        Ok(place)
    }

    /// The location without what follows `?`, and without what stands in front of an `@`.
    pub(super) fn url(&self) -> String {
        let server = self.authority.rsplit('@').next().unwrap_or_default();
        format!("{}://{server}/{}", self.scheme, self.path)
    }

    /// Whether the location is a pattern, which means all files that it matches.
    pub(super) fn is_pattern(&self) -> bool {
        has_wildcards(&self.path)
    }

    /// The path by which a store has a file of the place.
    pub(super) fn key(&self, file: &ObjectMeta) -> ObjectPath {
        match self.scheme {
            "s3" => file.location.clone(),
            // The client of a web server is that of one URL.
            _ => ObjectPath::default(),
        }
    }

    /// The files as they are now, in order; their locations are paths below the bucket or the server.
    ///
    /// # Errors
    /// [`SqlError::FileMissing`] for a file that is not there, [`SqlError::FileElsewhere`].
    pub(super) async fn look(&self, store: &dyn ObjectStore) -> Result<Vec<ObjectMeta>> {
        let failed = |error: Error| refused(self.url(), &error);
        if self.scheme != "s3" {
            let found = patiently(look_at_page(store)).await.map_err(failed)?;
            // Parts of a URL's path stay as they are written.
            let location = ObjectPath::parse(&self.path).map_err(|error| failed(error.into()))?;
            return Ok(vec![told_apart(ObjectMeta { location, ..found })]);
        }
        let parsed = |path: &str| ObjectPath::parse(path).map_err(|error| failed(error.into()));
        let is_pattern = self.is_pattern();
        if !is_pattern && !self.path.is_empty() && !self.path.ends_with('/') {
            match patiently(store.head(&parsed(&self.path)?)).await {
                Ok(found) => return Ok(vec![told_apart(found)]),
                // It may be a folder.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let folder = match self.path.find(['*', '?', '[']) {
            Some(wildcard) => parsed(self.path[..wildcard].rsplit_once('/').map_or("", |(folder, _)| folder))?,
            None => parsed(&self.path)?,
        };
        let pattern = is_pattern.then(|| Files::of(&self.path)).transpose();
        let pattern = pattern.map_err(|reason| SqlError::FileNone { path: self.url(), reason })?;
        let is_meant = |file: &ObjectMeta| match &pattern {
            Some(pattern) => pattern.have(file.location.as_ref()),
            // An object of the folder's own name marks it.
            None => file.location != folder && is_shown(Some(&folder), &file.location),
        };
        let mut listed = store.list(Some(&folder));
        let mut found = Vec::new();
        while let Some(file) = patiently(listed.try_next()).await.map_err(failed)? {
            if is_meant(&file) {
                found.push(told_apart(file));
            }
        }
        // Stores list in any order.
        found.sort_by(|a, b| a.location.cmp(&b.location));
        match found.is_empty() && !is_pattern {
            true => Err(SqlError::FileMissing { path: self.url(), nearest: None }),
            false => Ok(found),
        }
    }

    /// Whether ranges of a file can be asked for, as they can in all buckets.
    ///
    /// # Errors
    /// [`SqlError::FileElsewhere`].
    pub(super) async fn gives_ranges(&self, store: &dyn ObjectStore, file: &ObjectMeta) -> Result<bool> {
        if self.scheme == "s3" || file.size == 0 {
            return Ok(true);
        }
        match patiently(store.get_opts(&self.key(file), first_byte())).await {
            Ok(_) => Ok(true),
            Err(error) if is_whole(&error) => Ok(false),
            Err(error) => Err(refused(self.url(), &error)),
        }
    }
}

/// What a server tells of the file that a client is for. One that answers no question about a file (a signature is
/// good for reading alone, and many programs know GET alone) is asked for its first byte.
async fn look_at_page(store: &dyn ObjectStore) -> datafusion::object_store::Result<ObjectMeta> {
    let page = ObjectPath::default();
    let error = match store.head(&page).await {
        Err(error) if is_answer(&error) => error,
        found => return found,
    };
    match store.get_opts(&page, first_byte()).await {
        Err(whole) if is_whole(&whole) => store.get_opts(&page, GetOptions::default()).await.map(|got| got.meta),
        Err(_) => Err(error),
        Ok(got) => Ok(got.meta),
    }
}

fn first_byte() -> GetOptions {
    GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() }
}

/// Whether a server has answered, although not as it was asked.
fn is_answer(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("status code") || text.contains("Header missing")
}

/// Whether a server has sent a whole file where a range was asked for.
fn is_whole(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("non-partial response") || text.contains("Range request not supported")
}

/// A file with a version by which it is told from its successor. One that tells nothing, or a time so short ago that
/// its successor may have it too, is another one at each look.
fn told_apart(file: ObjectMeta) -> ObjectMeta {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let age = Utc::now().signed_duration_since(file.last_modified).to_std().unwrap_or_default();
    let is_told = file.e_tag.is_some() || file.last_modified.timestamp() > 0 && age >= SETTLED;
    let version = match is_told {
        true => file.version,
        false => Some(format!("look {}", LOOKS.fetch_add(1, Ordering::Relaxed))),
    };
    ObjectMeta { version, ..file }
}

/// The files that a pattern means: its last part matches their names, the parts above it their folders, but for
/// `key=value` folders below these.
struct Files {
    folders: Pattern,
    /// The folder above those of any depth, which is one of them.
    top: Option<Pattern>,
    name: Pattern,
}

impl Files {
    fn of(pattern: &str) -> std::result::Result<Files, String> {
        let compiled = |text: &str| Pattern::new(text).map_err(|error| format!("no pattern: {}", error.msg));
        let (folders, name) = match pattern.rsplit_once('/') {
            Some((_, "**")) => (pattern, "*"),
            Some(parts) => parts,
            None if pattern == "**" => (pattern, "*"),
            None => ("", pattern),
        };
        let top = folders.strip_suffix("**").map(|top| compiled(top.trim_end_matches('/'))).transpose()?;
        Ok(Files { folders: compiled(folders)?, top, name: compiled(name)? })
    }

    fn have(&self, file: &str) -> bool {
        let (mut folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        if !is_data(name) || !self.name.matches(name) {
            return false;
        }
        loop {
            let is_top = |top: &Pattern| top.matches_with(folder, OPTIONS);
            if self.folders.matches_with(folder, OPTIONS) || self.top.as_ref().is_some_and(is_top) {
                return true;
            }
            let (above, last) = folder.rsplit_once('/').unwrap_or(("", folder));
            if !is_partition(last) {
                return false;
            }
            folder = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_files_folders_or_patterns() {
        let place = Place::parse("S3://bucket/a/*.csv").unwrap();
        assert_eq!((place.scheme, place.authority.as_str(), place.path.as_str()), ("s3", "bucket", "a/*.csv"));
        let signed = Place::parse("https://host:1/a%20b.csv?signature=x#y").unwrap();
        assert_eq!(signed.url(), "https://host:1/a%20b.csv");
        for wrong in ["s3://", "s3://b*/x", "s3://b/a//x", "https://h/../x", "https://u:p@h/x"] {
            let error = Place::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("u:p"), "{error}");
        }
        for list in ["https://h", "https://h/a/", "http://h/*.csv"] {
            assert!(Place::parse(list).unwrap_err().to_string().contains("does not list"), "{list}");
        }
    }

    #[test]
    fn patterns_mean_files_of_their_folders_and_of_partitions() {
        let have = |pattern: &str, file: &str| Files::of(pattern).unwrap().have(file);
        for (pattern, file) in [
            ("*.csv", "x.csv"),
            ("a/*.csv", "a/x.csv"),
            ("a/*.csv", "a/k=1/j=2/x.csv"),
            ("*/x.csv", "a/x.csv"),
            ("a/k=*/*.csv", "a/k=1/x.csv"),
            ("a/**", "a/x.csv"),
            ("a/**", "a/b/c/x.csv"),
            ("a/**/*.csv", "a/x.csv"),
            ("a/**/*.csv", "a/b/x.csv"),
            ("**/x.csv", "x.csv"),
            ("**", "a/x.csv"),
        ] {
            assert!(have(pattern, file), "{pattern} {file}");
        }
        for (pattern, file) in
            [("*.csv", "a/x.csv"), ("a/*.csv", "b/x.csv"), ("a/*", "a/_x.csv"), ("a/*.csv", "a/b/x.csv")]
        {
            assert!(!have(pattern, file), "{pattern} {file}");
        }
    }

    #[test]
    fn files_that_tell_no_version_are_others_at_each_look() {
        let location = ObjectPath::from("x");
        let file = ObjectMeta { location, last_modified: Default::default(), size: 1, e_tag: None, version: None };
        assert_ne!(told_apart(file.clone()), told_apart(file.clone()));
        let now = ObjectMeta { last_modified: Utc::now(), ..file.clone() };
        assert_ne!(told_apart(now.clone()), told_apart(now.clone()));
        let before = ObjectMeta { last_modified: now.last_modified - 2 * SETTLED, ..file };
        assert_eq!(told_apart(before.clone()), told_apart(before.clone()));
        let tagged = ObjectMeta { e_tag: Some("x".into()), ..now };
        assert_eq!(told_apart(tagged.clone()), tagged);
    }
}
