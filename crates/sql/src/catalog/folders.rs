//! The data files of a folder on this machine: those whose names begin with neither `.` nor `_`, in the folder itself
//! and in `key=value` folders below it.

use std::path::{Path, PathBuf};

use datafusion::object_store::path::Path as ObjectPath;

use crate::file_sets::{self, is_partition};
use crate::formats::FileType;

/// How the names of files of encoded columns end.
pub(crate) const COLUMN_FILE_SUFFIX: &str = ".warpcols";

/// Whether a file of this name in a table's folder holds data of the table.
pub(super) fn is_data(name: &str) -> bool {
    !name.starts_with(['.', '_']) && !name.ends_with(COLUMN_FILE_SUFFIX)
}

/// Whether a list of what is below `prefix` has the file.
pub(super) fn is_shown(prefix: Option<&ObjectPath>, file: &ObjectPath) -> bool {
    let root = ObjectPath::default();
    let Some(below) = file.prefix_match(prefix.unwrap_or(&root)) else { return true };
    let parts: Vec<_> = below.collect();
    let Some((name, folders)) = parts.split_last() else { return true };
    is_data(name.as_ref()) && folders.iter().all(|folder| is_partition(folder.as_ref()))
}

/// The files of a folder and of its `key=value` folders, in order; hidden ones, markers and kept columns are left out.
pub(crate) fn data_files(folder: &Path) -> Vec<PathBuf> {
    let _lock = file_sets::listed(folder);
    files_of_set(folder)
}

/// As [`data_files`], for a caller that holds the folder's lock.
pub(crate) fn files_of_set(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && is_partition(&name) {
            files.extend(files_of_set(&path));
        } else if path.is_file() && is_data(&name) {
            files.push(path);
        }
    }
    files
}

/// The files that a COPY in a format replaces: those of [`data_files`], but behind no link to a folder.
///
/// # Errors
/// A file of another format, or a link to a folder, that would stay in the table.
pub(crate) fn replaceable_files(folder: &Path, format: &str) -> std::result::Result<Vec<PathBuf>, PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match path.is_dir() {
            true if !is_partition(&name) => {}
            true if path.is_symlink() => return Err(path),
            true => files.extend(replaceable_files(&path, format)?),
            false if !is_data(&name) => {}
            false => match FileType::by_extension(&name) {
                Some((found, _)) if found.name.eq_ignore_ascii_case(format) => files.push(path),
                _ => return Err(path),
            },
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_what_holds_data() {
        let below = |prefix: &str, file: &str| is_shown(Some(&ObjectPath::from(prefix)), &ObjectPath::from(file));
        for shown in ["t/a.parquet", "t/k=1/a.parquet", "t/k=1/_j=2/a.parquet"] {
            assert!(below("t", shown), "{shown}");
        }
        for hidden in [
            "t/._a.parquet",
            "t/_SUCCESS",
            "t/.t-0.warpcols",
            "t/a.parquet.warpcols",
            "t/sub/a.parquet",
            "t/.k=1.77.warpcube-staging/content/a.parquet",
            "t/k=1/.j=2.77.warpcube-staging/content/a.parquet",
        ] {
            assert!(!below("t", hidden), "{hidden}");
        }
        // What is above is of no interest.
        assert!(below("_t/.hidden/sub", "_t/.hidden/sub/a.parquet"));
        assert!(is_shown(None, &ObjectPath::from("a.parquet")));
    }
}
