//! Hidden folders with a mark: what is written in one is moved to its place when it is whole.
//!
//! ```text
//! .machines.3f…c2.warpcube-staging/    the hidden folder, whose name no other process draws
//!   staging                            the mark, locked by the process that writes
//!   content/                           what is moved to its place
//! ```
//!
//! The system's lock of the mark ends with its process. [`MarkedFolder::remove_left`] removes the hidden folders whose
//! mark says what they are and that nothing locks: those of processes that were killed. A folder without the mark is
//! the user's, whatever its name.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use warpcube_cube::store::drawn_identity;

/// Ends the name of a hidden folder.
const SUFFIX: &str = ".warpcube-staging";
/// Characters of the target's name that the folder's name has: 4 bytes each, of 255 that a name may have.
const NAME_CHARACTERS: usize = 50;
/// Name of the mark.
const MARK_NAME: &str = "staging";
/// What the mark says.
const MARK: &str = "Written by a process of warpcube that has not ended; the next one here removes this folder.\n";
/// Name of the folder of what is moved to its place.
const CONTENT_NAME: &str = "content";

/// A hidden folder with its mark; it is removed when this is dropped.
#[derive(Debug)]
pub struct MarkedFolder {
    path: PathBuf,
    /// Locked; systems that lock no files leave it without a lock.
    _mark: File,
}

impl MarkedFolder {
    /// Makes a hidden folder in `parent` for what is called `name` later. Only this user can look into it.
    ///
    /// # Errors
    /// The operating system's; nothing is left then.
    pub fn new(parent: &Path, name: &OsStr) -> io::Result<MarkedFolder> {
        let name: String = name.to_string_lossy().chars().take(NAME_CHARACTERS).collect();
        let path = parent.join(format!(".{name}.{}{SUFFIX}", drawn_identity()));
        let make = || -> io::Result<File> {
            DirBuilder::new().mode(0o700).create(&path)?;
            let mut mark = File::create_new(path.join(MARK_NAME))?;
            // Other processes remove what has a whole mark: it is locked before.
            let _ = mark.lock();
            mark.write_all(MARK.as_bytes())?;
            fs::create_dir(path.join(CONTENT_NAME)).map(|()| mark)
        };
        let mark = make().inspect_err(|_| drop(fs::remove_dir_all(&path)))?;
        Ok(MarkedFolder { path, _mark: mark })
    }

    /// The hidden folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of what is moved to its place.
    pub fn content(&self) -> PathBuf {
        self.path.join(CONTENT_NAME)
    }

    /// Removes the folder with all that is in it.
    pub fn remove(&self) {
        // What was moved is not there any more, and nothing else has a use.
        let _ = fs::remove_dir_all(&self.path);
    }

    /// Removes the hidden folders in `parent` whose mark no process locks. What cannot be removed stays.
    pub fn remove_left(parent: &Path) {
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
}

impl Drop for MarkedFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_a_process_holds_stays_and_one_with_a_long_name_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let name = "ä".repeat(127);
        let folder = MarkedFolder::new(parent.path(), OsStr::new(&name)).unwrap();
        MarkedFolder::remove_left(parent.path());
        assert!(folder.content().is_dir());
        // As one of a process that was killed: nothing locks its mark.
        let left = parent.path().join(format!(".x.00{SUFFIX}"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(MARK_NAME), MARK).unwrap();
        MarkedFolder::remove_left(parent.path());
        assert!(folder.content().is_dir() && !left.exists());
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
