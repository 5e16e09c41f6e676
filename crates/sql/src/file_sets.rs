//! Folders whose files are one set: a list of the folder has all files of a statement that wrote there, or none.
//!
//! A statement that gives its files their places holds the folder's lock alone while it moves and removes them, and a
//! list of the folder is made under a lock that lists share. The lock is the system's on the folder itself, so that it
//! holds between processes and goes with the process that has it. Where a file system knows no locks, or the folder
//! cannot be opened, there is none.
//!
//! Invariant: a shared lock is held while a list is made and no longer, and the other one by a thread that may block.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Whether a folder of this name in a table's folder holds a partition of the table, and is not one that a statement
/// writes into that will be one.
pub(crate) fn is_partition(name: &str) -> bool {
    name.contains('=') && !name.starts_with('.')
}

/// The folder whose files a folder's are among: partitions belong to the folder above them.
fn set_of(folder: &Path) -> PathBuf {
    let is_whole = |folder: &&Path| !folder.file_name().is_some_and(|name| is_partition(&name.to_string_lossy()));
    folder.ancestors().find(is_whole).unwrap_or(folder).to_path_buf()
}

/// Keeps the files of a folder from changing as a set until it is dropped.
pub(crate) fn listed(folder: &Path) -> Option<File> {
    let lock = File::open(set_of(folder)).ok()?;
    lock.lock_shared().ok()?;
    Some(lock)
}

/// Keeps all others from the files of a folder until it is dropped.
pub(crate) fn changed(folder: &Path) -> Option<File> {
    let lock = File::open(set_of(folder)).ok()?;
    lock.lock().ok()?;
    Some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_locked_with_the_folder_above_them() {
        let folder = tempfile::tempdir().unwrap();
        let partition = folder.path().join("k=1/j=2");
        std::fs::create_dir_all(&partition).unwrap();
        assert_eq!(set_of(&partition), folder.path());
        let lists = (listed(&partition).unwrap(), listed(folder.path()).unwrap());
        let writer = File::open(folder.path()).unwrap();
        assert!(writer.try_lock().is_err());
        drop(lists);
        assert!(writer.try_lock().is_ok());
        assert!(listed(Path::new("/nowhere/at/all")).is_none());
    }
}
