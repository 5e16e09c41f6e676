//! Locations of files on this machine: paths, URLs, patterns, and the folders that a session may reach.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Whether a location is a pattern.
pub(crate) fn is_pattern(location: &str) -> bool {
    location.contains(['*', '?', '['])
}

/// The path of a location on this machine.
pub(crate) fn local_path(location: &str) -> Option<PathBuf> {
    match location.strip_prefix("file://") {
        Some(path) => Some(PathBuf::from(path)),
        None => (!location.contains("://")).then(|| PathBuf::from(location)),
    }
}

/// Folders that hold all files a session may read and write, as the system resolves them.
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
