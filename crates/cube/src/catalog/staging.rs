//! Folders that appear whole: they are written within a hidden folder beside the target, and renamed at the end.
//!
//! ```text
//! .machines.3f…c2.warpcube-staging/    the hidden folder, whose name no other process draws
//!   staging                            the mark, locked by the process that writes
//!   content/                           what becomes the target
//! ```
//!
//! The system's lock of the mark ends with its process. The next import or export beside the target removes hidden
//! folders whose mark says what they are and that nothing locks: those of processes that were killed. A folder without
//! the mark is the user's, whatever its name.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::error::{CatalogError, Result};
use super::manifest::KeptFile;
use crate::store::checked::spelled;
use crate::store::{check_outside, drawn_identity, parent_of, sync_folder};

/// Ends the name of a hidden folder.
const SUFFIX: &str = ".warpcube-staging";
/// Name of the mark.
const MARK_NAME: &str = "staging";
/// What the mark says.
const MARK: &str = "Written by an import or export of warpcube that has not ended; the next one removes this folder.\n";
/// Name of the folder that becomes the target.
const CONTENT_NAME: &str = "content";

/// A hidden folder that becomes the target; it is removed unless it does.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    hidden: PathBuf,
    /// The mark, locked; systems that lock no files leave it without a lock.
    _held: File,
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
        remove_left(parent_of(target));
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let hidden = parent_of(target).join(format!(".{name}.{}{SUFFIX}", drawn_identity()));
        let make = || -> io::Result<File> {
            fs::create_dir(&hidden)?;
            let mut mark = File::create_new(hidden.join(MARK_NAME))?;
            // Other processes remove what has a whole mark: it is locked before.
            let _ = mark.lock();
            mark.write_all(MARK.as_bytes())?;
            fs::create_dir(hidden.join(CONTENT_NAME)).map(|()| mark)
        };
        let held = make().inspect_err(|_| drop(fs::remove_dir_all(&hidden)));
        let held = held.map_err(CatalogError::io(target, "created"))?;
        Ok(Staging { target: target.to_path_buf(), hidden, _held: held })
    }

    fn content(&self) -> PathBuf {
        self.hidden.join(CONTENT_NAME)
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

impl Drop for Staging {
    fn drop(&mut self) {
        // After `finish` the mark alone is left; after an error nothing has a use.
        let _ = fs::remove_dir_all(&self.hidden);
    }
}

/// Removes the hidden folders of a folder whose mark no process locks. What cannot be removed stays.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().ends_with(SUFFIX);
        if !is_named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path().join(MARK_NAME);
        let is_marked = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())
            && fs::read(&path).is_ok_and(|text| text == MARK.as_bytes());
        let mark = if is_marked { File::open(&path).ok() } else { None };
        // The lock is held until the folder is gone.
        if let Some(_held) = mark.filter(|mark| mark.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
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
