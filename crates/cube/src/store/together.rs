//! Several cubes of one folder replaced together, all of them or none.
//!
//! The next generation of each cube is written beside its old one, with its manifest as `cube.json.next`. Then the
//! record `warpcube-changed.json` takes its name in the folder of the cubes: it lists them with their next generations,
//! and from here on a reader takes the manifest of a listed cube from `cube.json.next`. Then these manifests take their
//! names and the record is removed. The next holder of a listed cube's lock renames its manifest, which finishes an
//! interrupted change; without a record the files that it left go with the next replacement.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::checked;
use super::cube::StoredCube;
use super::error::{Result, StoreError};
use super::folder::{MANIFEST_NAME, sync_folder, write_file};
use super::lock::CubeLock;
use super::manifest::Manifest;
use super::record::{
    PREPARED_MANIFEST, RECORD_NAME, RECORD_VERSION, Record, RecordedCube, is_name, place, read_record,
};
use super::replace::Step;

/// Name of the record until it is renamed.
const NEXT_RECORD: &str = "warpcube-changed.json.new";
/// Name of the file whose lock is held over a change, in the folder of the cubes.
const CHANGE_LOCK_NAME: &str = "warpcube-changed.lock";
/// How long a replacement waits for one of other cubes of the folder.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Replaces cubes whose folders lie in one folder, and calls `before` before each change of a folder. After an error,
/// of `before` too, or a crash all of them are the old ones or all are the new ones; after it has returned the new ones
/// stay, even if the machine stops.
///
/// # Errors
/// Those of [`CubeLock::replace`]; [`StoreError::Locked`] while another process replaces cubes of the folder together;
/// [`StoreError::Io`] with an error of `before`.
pub fn replace_together_in_steps(
    cubes: &[(&CubeLock, &StoredCube)],
    before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
) -> Result<()> {
    let places = cubes.iter().map(|(held, _)| place(held.folder())).collect::<Result<Vec<_>>>()?;
    let Some((parent, _)) = places.first() else { return Ok(()) };
    if let Some((other, _)) = places.iter().find(|(other, _)| other != parent) {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "cubes of several folders are not replaced together");
        return Err(StoreError::io(other, "changed")(error));
    }
    let started = Instant::now();
    let _alone = CubeLock::lock_folder(parent, CHANGE_LOCK_NAME, &mut |_| started.elapsed() < WAIT_MAX)?;
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
            drop(CubeLock::lock(&folder)?);
        }
    }
    let path = parent.join(RECORD_NAME);
    fs::remove_file(&path).and_then(|()| sync_folder(parent)).map_err(StoreError::io(&path, "removed"))
}
