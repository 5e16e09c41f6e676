//! The record of cubes of one folder that are replaced together (`together`). Readers of a listed cube take its next
//! manifest; the next holder of its lock renames that manifest.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checked;
use super::error::{Result, StoreError};
use super::folder::{MANIFEST_NAME, sync_folder};
use super::manifest::Manifest;

/// Name of the manifest of a cube that is replaced together with others, until it is renamed.
pub(super) const PREPARED_MANIFEST: &str = "cube.json.next";
/// Name of the record in the folder of the cubes.
pub const RECORD_NAME: &str = "warpcube-changed.json";
/// Version of the record's form.
pub(super) const RECORD_VERSION: u64 = 1;

/// The cubes that are replaced together.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) version: u64,
    pub(super) cubes: Vec<RecordedCube>,
}

/// A cube with its next state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedCube {
    /// Name of its folder.
    pub(super) folder: String,
    pub(super) identity: String,
    pub(super) generation: u64,
}

impl Manifest {
    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// [`StoreError::NoCube`], [`StoreError::Damaged`], [`StoreError::Version`], [`StoreError::Io`].
    pub(super) fn read(folder: &Path) -> Result<Manifest> {
        let manifest = Manifest::read_named(folder, MANIFEST_NAME)?;
        let manifest = manifest.ok_or_else(|| StoreError::no_cube(folder))?;
        Ok(recorded(folder, &manifest)?.unwrap_or(manifest))
    }
}

/// The folder of a cube's folder, and the name of the cube's in it, if it is one for a record.
pub(super) fn place(folder: &Path) -> Result<(PathBuf, Option<String>)> {
    let whole = fs::canonicalize(folder).map_err(StoreError::io(folder, "read"))?;
    let parent = whole.parent().unwrap_or(&whole).to_path_buf();
    let name = whole.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name));
    Ok((parent, name.map(str::to_owned)))
}

/// Whether a record may name a folder so: the name of a folder beside it, without a path.
pub(super) fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none()
}

/// The record in a folder of cubes, if there is one.
pub(super) fn read_record(parent: &Path) -> Result<Option<Record>> {
    checked::read(&parent.join(RECORD_NAME), RECORD_VERSION..=RECORD_VERSION)
}

/// The manifest that a record of the folder above puts in place of a cube's.
fn recorded(folder: &Path, current: &Manifest) -> Result<Option<Manifest>> {
    let (parent, Some(name)) = place(folder)? else { return Ok(None) };
    let Some(record) = read_record(&parent)? else { return Ok(None) };
    // Another cube may have been created in the folder; cubes of old versions have no identity.
    let is_same = |cube: &RecordedCube| current.identity.is_empty() || cube.identity == current.identity;
    let is_next =
        |cube: &RecordedCube| cube.folder == name && cube.generation == current.generation + 1 && is_same(cube);
    let Some(cube) = record.cubes.into_iter().find(is_next) else { return Ok(None) };
    match Manifest::read_named(folder, PREPARED_MANIFEST)? {
        Some(next) => {
            Ok(Some(next).filter(|next| (&next.identity, next.generation) == (&cube.identity, cube.generation)))
        }
        // It has just taken its name.
        None => Manifest::read_named(folder, MANIFEST_NAME),
    }
}

/// Gives the manifest that a record puts in place of a cube's its name. The caller holds the lock of the cube.
pub(super) fn finish(folder: &Path) -> Result<()> {
    // A manifest that cannot be read is the reader's error, not this function's.
    let Ok(Some(current)) = Manifest::read_named(folder, MANIFEST_NAME) else { return Ok(()) };
    let (prepared, path) = (folder.join(PREPARED_MANIFEST), folder.join(MANIFEST_NAME));
    if recorded(folder, &current)?.is_none() {
        return Ok(());
    }
    if !prepared.exists() {
        return Ok(());
    }
    fs::rename(&prepared, &path).and_then(|()| sync_folder(folder)).map_err(StoreError::io(&path, "replaced"))
}
