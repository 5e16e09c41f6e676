//! Several cubes of one folder replaced together, all of them or none.
//!
//! The next generation of each cube is written beside its old one, with its manifest as `cube.json.next`. Then the
//! record `warpcube-changed.json` takes its name in the folder of the cubes: it lists them with their next generations,
//! and from here on a reader takes the manifest of a listed cube from `cube.json.next`. Then these manifests take their
//! names and the record is removed. The next holder of a listed cube's lock renames its manifest, which finishes an
//! interrupted change; without a record the files that it left go with the next replacement.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checked;
use super::cube::StoredCube;
use super::error::{Result, StoreError};
use super::manifest::Manifest;
use super::replace::{Step, sync_folder, write_file};
use super::{Held, MANIFEST_NAME};

/// Name of the manifest of a cube that is replaced together with others, until it is renamed.
pub(super) const PREPARED_MANIFEST: &str = "cube.json.next";
/// Name of the record in the folder of the cubes.
pub const RECORD_NAME: &str = "warpcube-changed.json";
/// Name of the record until it is renamed.
const NEXT_RECORD: &str = "warpcube-changed.json.new";
/// Name of the file whose lock is held over a change, in the folder of the cubes.
const CHANGE_LOCK_NAME: &str = "warpcube-changed.lock";
/// Version of the record's form.
const RECORD_VERSION: u64 = 1;

/// The cubes that are replaced together.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u64,
    cubes: Vec<RecordedCube>,
}

/// A cube with its next state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedCube {
    /// Name of its folder.
    folder: String,
    identity: String,
    generation: u64,
}

/// Replaces cubes whose folders lie in one folder. After an error or a crash all of them are the old ones or all are
/// the new ones; after it has returned the new ones stay, even if the machine stops.
///
/// # Errors
/// Those of [`Held::replace`]; [`StoreError::Held`] while another process replaces cubes of the folder together.
pub fn replace_together(cubes: &[(&Held, &StoredCube)]) -> Result<()> {
    replace_together_in_steps(cubes, &mut |_| Ok(()))
}

/// As [`replace_together`], and calls `before` before each change of a folder. Its error ends the replacement there.
///
/// # Errors
/// Those of [`replace_together`], and [`StoreError::Io`] with an error of `before`.
pub fn replace_together_in_steps(
    cubes: &[(&Held, &StoredCube)],
    before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
) -> Result<()> {
    let places = cubes.iter().map(|(held, _)| place(held.folder())).collect::<Result<Vec<_>>>()?;
    let Some((parent, _)) = places.first() else { return Ok(()) };
    if let Some((other, _)) = places.iter().find(|(other, _)| other != parent) {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "cubes of several folders are not replaced together");
        return Err(StoreError::io(other, "changed")(error));
    }
    let _alone = Held::lock_folder(parent, CHANGE_LOCK_NAME)?;
    finish_last(parent)?;
    let mut listed = Vec::new();
    for ((held, cube), (_, folder)) in cubes.iter().zip(&places) {
        let Manifest { identity, generation, .. } = held.prepare(cube, before)?;
        let unfit =
            || io::Error::new(io::ErrorKind::InvalidInput, "names of folders that are not UTF-8 are not recorded");
        let folder = folder.clone().ok_or_else(|| StoreError::io(held.folder(), "changed")(unfit()))?;
        listed.push(RecordedCube { folder, identity, generation });
    }
    let record = Record { version: RECORD_VERSION, cubes: listed };
    let (next, path) = (parent.join(NEXT_RECORD), parent.join(RECORD_NAME));
    let mut step = |step: Step<'_>, action, change: &dyn Fn() -> io::Result<()>| {
        let (Step::Write(path) | Step::Rename(path) | Step::Sync(path) | Step::Remove(path)) = step;
        before(step).and_then(|()| change()).map_err(StoreError::io(path, action))
    };
    step(Step::Write(&next), "written", &|| write_file(&next, checked::text(&record).as_bytes()))?;
    step(Step::Rename(&path), "replaced", &|| fs::rename(&next, &path))?;
    step(Step::Sync(parent), "synchronised", &|| sync_folder(parent))?;
    // The cubes are replaced. After a failure from here on, the next holder of a cube's lock finishes that cube, and
    // the next replacement removes the record.
    let named = cubes.iter().try_for_each(|(held, _)| held.publish_prepared(before));
    if named.is_ok() && before(Step::Remove(&path)).is_ok() {
        let _ = fs::remove_file(&path);
    }
    Ok(())
}

/// The folder of a cube's folder, and the name of the cube's in it, if it is one for a record.
fn place(folder: &Path) -> Result<(PathBuf, Option<String>)> {
    let whole = fs::canonicalize(folder).map_err(StoreError::io(folder, "read"))?;
    let parent = whole.parent().unwrap_or(&whole).to_path_buf();
    let name = whole.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name));
    Ok((parent, name.map(str::to_owned)))
}

/// Whether a record may name a folder so: the name of a folder beside it, without a path.
fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none()
}

fn read_record(parent: &Path) -> Result<Option<Record>> {
    checked::read(&parent.join(RECORD_NAME), RECORD_VERSION)
}

/// Finishes the change whose record is left in a folder, and removes the record.
fn finish_last(parent: &Path) -> Result<()> {
    let Some(record) = read_record(parent)? else { return Ok(()) };
    for cube in record.cubes {
        if !is_name(&cube.folder) {
            continue;
        }
        let folder = parent.join(cube.folder);
        let waits = match Manifest::read_named(&folder, MANIFEST_NAME)? {
            Some(current) => current.generation + 1 == cube.generation && folder.join(PREPARED_MANIFEST).exists(),
            None => false,
        };
        if waits {
            // Locking finishes it.
            drop(Held::lock(&folder)?);
        }
    }
    let path = parent.join(RECORD_NAME);
    fs::remove_file(&path).and_then(|()| sync_folder(parent)).map_err(StoreError::io(&path, "removed"))
}

/// The manifest that a record of the folder above puts in place of a cube's.
pub(super) fn recorded(folder: &Path, current: &Manifest) -> Result<Option<Manifest>> {
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
