//! The data files of a folder on this machine: those whose names begin with neither `.` nor `_`, in the folder itself
//! and in `key=value` folders below it.

use std::path::{Path, PathBuf};

use super::data_file_store::is_data;
use crate::file_sets::{self, is_partition};
use crate::formats::FileType;

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
