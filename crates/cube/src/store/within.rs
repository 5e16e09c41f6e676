//! What lies in the folder of a cube: such a folder holds the files of the cube alone.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Result, StoreError};
use super::folder::{LOCK_NAME, MANIFEST_NAME};
use super::manifest::Manifest;

/// Refuses a path in the folder of a cube, that folder included, as a place for anything else. The path need not exist,
/// and links are followed.
///
/// # Errors
/// [`StoreError::Within`].
pub fn check_outside(path: &Path) -> Result<()> {
    let Some(there) = existing(path) else { return Ok(()) };
    match there.ancestors().find(|folder| is_cube(folder)) {
        Some(folder) => Err(StoreError::Within { path: path.to_path_buf(), folder: folder.to_path_buf() }),
        None => Ok(()),
    }
}

/// The nearest file or folder above a path, or at it, that is there, without links.
fn existing(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    whole.ancestors().find_map(|part| fs::canonicalize(part).ok())
}

/// Whether a folder holds a cube: its manifest, or a damaged one beside the lock. Others may have a `cube.json`, too.
fn is_cube(folder: &Path) -> bool {
    match Manifest::read_named(folder, MANIFEST_NAME) {
        Ok(manifest) => manifest.is_some(),
        Err(StoreError::Damaged { .. }) => folder.join(LOCK_NAME).is_file(),
        Err(StoreError::Version { .. }) => true,
        // Above a file, and where nothing may be read.
        Err(_) => false,
    }
}
