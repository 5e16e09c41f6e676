//! Folders and files that appear whole: a hidden folder beside the target, renamed at the end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::error::{CatalogError, Result};
use super::manifest::KeptFile;
use crate::store::checked::spelled;
use crate::store::sync_folder;

/// A hidden folder that becomes the target; it is removed unless it does.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    folder: PathBuf,
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
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let folder = parent(target).join(format!(".{name}.{}", std::process::id()));
        fs::create_dir_all(parent(target)).map_err(CatalogError::io(parent(target), "created"))?;
        fs::create_dir(&folder).map_err(CatalogError::io(&folder, "created"))?;
        Ok(Staging { target: target.to_path_buf(), folder })
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
