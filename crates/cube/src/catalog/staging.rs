//! Folders and files that appear whole: a hidden folder beside the target, renamed at the end.
//!
//! A process holds the system's lock of its hidden folder, which ends with the process. The next one with the same
//! target removes hidden folders that nothing holds: those of processes that were killed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::error::{CatalogError, Result};
use super::manifest::KeptFile;
use crate::store::checked::spelled;
use crate::store::{is_number, sync_folder};

/// A hidden folder that becomes the target; it is removed unless it does.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    folder: PathBuf,
    /// The hidden folder, locked; systems that lock no folders leave it without a lock.
    _held: File,
}

impl Staging {
    /// Makes the hidden folder of a target that is new or an empty folder.
    ///
    /// # Errors
    /// [`CatalogError::NotEmpty`], [`CatalogError::Io`].
    pub(super) fn new(target: &Path) -> Result<Staging> {
        if target.exists() {
            let mut entries = fs::read_dir(target).map_err(CatalogError::io(target, "read"))?;
            if entries.next().is_some() {
                return Err(CatalogError::NotEmpty { folder: target.to_path_buf() });
            }
        }
        let prefix = format!(".{}.", target.file_name().unwrap_or_default().to_string_lossy());
        let folder = parent(target).join(format!("{prefix}{}", std::process::id()));
        fs::create_dir_all(parent(target)).map_err(CatalogError::io(parent(target), "created"))?;
        remove_left(parent(target), &prefix);
        let hold = || -> io::Result<File> {
            loop {
                fs::create_dir(&folder)?;
                let held = File::open(&folder)?;
                let is_held = held.lock().is_ok();
                // Until it was locked another process could take it for one that was left.
                if !is_held || folder.try_exists()? {
                    return Ok(held);
                }
            }
        };
        let held = hold().map_err(CatalogError::io(&folder, "created"))?;
        Ok(Staging { target: target.to_path_buf(), folder, _held: held })
    }

    /// Path of a file or folder until it is renamed.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    /// [`CatalogError::Io`].
    pub(super) fn finish(self) -> Result<()> {
        let renamed = sync_folder(&self.folder)
            .and_then(|()| if self.target.exists() { fs::remove_dir(&self.target) } else { Ok(()) })
            .and_then(|()| fs::rename(&self.folder, &self.target))
            .and_then(|()| sync_folder(parent(&self.target)));
        renamed.map_err(CatalogError::io(&self.target, "written"))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After `finish` the folder has another name; after an error it has no use.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes hidden folders of a prefix and a number that no process holds. Files that cannot be removed stay.
fn remove_left(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let is_left = number.is_some_and(is_number) && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let held = if is_left { File::open(entry.path()).ok() } else { None };
        // The lock is held until the folder is gone.
        if let Some(_held) = held.filter(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies a file and makes the copy durable; returns its name, length and checksum.
///
/// # Errors
/// [`CatalogError::Io`].
pub(super) fn copy(from: &Path, to: &Path) -> Result<KeptFile> {
    let mut input = BufReader::new(File::open(from).map_err(CatalogError::io(from, "read"))?);
    let mut output = File::create(to).map_err(CatalogError::io(to, "written"))?;
    let (mut bytes, mut checksum) = (0, crc32fast::Hasher::new());
    loop {
        let part = input.fill_buf().map_err(CatalogError::io(from, "read"))?;
        if part.is_empty() {
            break;
        }
        checksum.update(part);
        output.write_all(part).map_err(CatalogError::io(to, "written"))?;
        let length = part.len();
        bytes += length as u64;
        input.consume(length);
    }
    output.sync_all().map_err(CatalogError::io(to, "written"))?;
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(KeptFile { name, bytes, checksum: spelled(checksum.finalize()) })
}

/// Copies a file that was kept.
///
/// # Errors
/// [`CatalogError::Damaged`] if it is not the one that was kept; [`CatalogError::Io`].
pub(super) fn copy_kept(folder: &Path, kept: &KeptFile, to: &Path) -> Result<()> {
    let from = folder.join(&kept.name);
    let KeptFile { bytes, checksum, .. } = copy(&from, to)?;
    match bytes == kept.bytes && checksum == kept.checksum {
        true => Ok(()),
        false => Err(CatalogError::Damaged { path: from }),
    }
}
