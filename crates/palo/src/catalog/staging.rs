//! Folders that appear whole: they are written within a hidden folder beside the target ([`MarkedFolder`]), and renamed
//! at the end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::error::{CatalogError, Result};
use super::manifest::KeptFile;
use super::marked_folder::MarkedFolder;
use warpcube_cube::store::checked::spelled;
use warpcube_cube::store::{check_outside, parent_of, sync_folder};

/// A hidden folder that becomes the target; it is removed unless it does.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    hidden: MarkedFolder,
}

impl Staging {
    /// Makes the hidden folder of a target that is new or an empty folder.
    ///
    /// # Errors
    /// [`CatalogError::NotEmpty`], [`CatalogError::Io`]; [`CatalogError::Store`] for a target in the folder of a cube.
    pub(super) fn new(target: &Path) -> Result<Staging> {
        check_outside(target)?;
        if target.exists() {
            let mut entries = fs::read_dir(target).map_err(CatalogError::io(target, "read"))?;
            if entries.next().is_some() {
                return Err(CatalogError::NotEmpty { folder: target.to_path_buf() });
            }
        }
        fs::create_dir_all(parent_of(target)).map_err(CatalogError::io(target, "created"))?;
        MarkedFolder::remove_left(parent_of(target));
        let hidden = MarkedFolder::new(parent_of(target), target.file_name().unwrap_or_default());
        let hidden = hidden.map_err(CatalogError::io(target, "created"))?;
        Ok(Staging { target: target.to_path_buf(), hidden })
    }

    fn content(&self) -> PathBuf {
        self.hidden.content()
    }

    /// Path of a file or folder until it is renamed.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.content().join(name)
    }

    /// Gives the folder its name, unless `commit` says that the work was cancelled.
    ///
    /// # Errors
    /// [`CatalogError::Cancelled`], [`CatalogError::Io`].
    pub(super) fn finish(self, commit: &dyn Fn() -> bool) -> Result<()> {
        sync_folder(&self.content()).map_err(CatalogError::io(&self.target, "written"))?;
        if !commit() {
            return Err(CatalogError::Cancelled);
        }
        let emptied = if self.target.exists() { fs::remove_dir(&self.target) } else { Ok(()) };
        let renamed = emptied
            .and_then(|()| fs::rename(self.content(), &self.target))
            .and_then(|()| sync_folder(parent_of(&self.target)));
        renamed.map_err(CatalogError::io(&self.target, "written"))
    }
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
