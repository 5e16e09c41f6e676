//! Creating and replacing a cube: all files of the next generation, then its manifest, then the files that the last one
//! alone had.
//!
//! A file whose content stays is not written again: the manifest of the next generation names that of the last one.
//! A segment of the facts stays if it was read from the file that the last manifest names, and a generation adds one at
//! most: else all facts are written as one segment. Other files stay if their bytes are the same.

use std::borrow::Cow;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use warpcube_arrays::Scheme;
use warpcube_column::format::TableIdentity;

use super::checked::{self, checksum};
use super::cube::StoredCube;
use super::error::{Result, StoreError};
use super::folder::{LOCK_NAME, MANIFEST_NAME, parent_of, sync_folder, write_file};
use super::holder::now;
use super::index::{self, Index};
use super::lock::CubeLock;
use super::manifest::{
    ColumnSummary, DimensionSummary, FactsSummary, FileEntry, MANIFEST_VERSION, Manifest, Role, SCHEME_VERSION,
    SegmentSummary, is_number,
};
use super::open::identity;
use super::record::{self, PREPARED_MANIFEST};
use super::within::check_outside;
use super::{arrow_file, facts_file, texts};
use crate::facts::{Facts, Segment};
use crate::model::CubeModel;

/// Name of the manifest until it is renamed.
const NEXT_MANIFEST: &str = "cube.json.new";

/// A change of the folder that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A file is written and synchronised.
    Write(&'a Path),
    /// The manifest takes its name; from here on the cube is the next one.
    Rename(&'a Path),
    /// The entries of the folder are synchronised.
    Sync(&'a Path),
    /// A file is removed.
    Remove(&'a Path),
}

/// Refuses a folder in which [`create`] would make no cube, before anything is read for it.
///
/// # Errors
/// [`StoreError::Exists`], [`StoreError::NotEmpty`], [`StoreError::Within`], [`StoreError::Io`].
pub fn check_new(folder: &Path) -> Result<()> {
    check_outside(parent_of(&std::path::absolute(folder).map_err(StoreError::io(folder, "read"))?))?;
    match folder.try_exists() {
        Ok(true) => refuse_entries(folder),
        Ok(false) => Ok(()),
        Err(error) => Err(StoreError::io(folder, "read")(error)),
    }
}

/// Creates a cube in a new or empty folder. Files that a crash of another creation left are removed.
///
/// # Errors
/// Those of [`check_new`]; [`StoreError::Locked`] while another process creates a cube there;
/// [`StoreError::Contradiction`], [`StoreError::Scheme`], [`StoreError::Facts`], [`StoreError::Arrow`],
/// [`StoreError::Io`].
pub fn create(folder: &Path, cube: &StoredCube) -> Result<()> {
    create_in_steps(folder, cube, &mut |_| Ok(()))
}

/// As [`create`], and calls `before` before each change of the folder. Its error ends the creation there, and the
/// folder is as it was before.
///
/// # Errors
/// Those of [`create`], and [`StoreError::Io`] with an error of `before`.
pub fn create_in_steps(
    folder: &Path,
    cube: &StoredCube,
    before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
) -> Result<()> {
    check(cube)?;
    let facts = NextFacts::of(cube, None)?;
    check_new(folder)?;
    let is_new = !folder.exists();
    fs::create_dir_all(folder).map_err(StoreError::io(folder, "created"))?;
    let held = CubeLock::lock_folder(folder, LOCK_NAME, &mut |_| false)?;
    // A cube may have been created before the lock was taken.
    refuse_entries(folder)?;
    if let Err(error) = held.replace_by(cube, Some(facts), before) {
        // Nothing of a cube is left; what cannot be removed is left to the next creation.
        if !folder.join(MANIFEST_NAME).exists() {
            let _ = Folder { path: folder, before: &mut |_| Ok(()) }.remove_all_but(None);
            let _ = fs::remove_file(folder.join(LOCK_NAME));
            let _ = if is_new { fs::remove_dir(folder) } else { Ok(()) };
        }
        return Err(error);
    }
    sync_folder(parent_of(folder)).map_err(StoreError::io(folder, "synchronised"))
}

impl CubeLock {
    /// Replaces the cube and returns the new generation. After an error or a crash the folder holds the old cube or the
    /// new one, whole; after [`CubeLock::replace`] has returned the new one stays, even if the machine stops.
    ///
    /// # Errors
    /// [`StoreError::Contradiction`], [`StoreError::Scheme`], [`StoreError::Facts`], [`StoreError::Arrow`],
    /// [`StoreError::Io`];
    /// [`StoreError::Damaged`] and [`StoreError::Version`] if the old manifest cannot be read.
    pub fn replace(&self, cube: &StoredCube) -> Result<u64> {
        self.replace_in_steps(cube, &mut |_| Ok(()))
    }

    /// As [`CubeLock::replace`], and calls `before` before each change of the folder. Its error ends the replacement
    /// there.
    ///
    /// # Errors
    /// Those of [`CubeLock::replace`], and [`StoreError::Io`] with an error of `before`.
    pub fn replace_in_steps(
        &self,
        cube: &StoredCube,
        before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
    ) -> Result<u64> {
        self.replace_by(cube, None, before)
    }

    /// As [`CubeLock::replace_in_steps`]; a new cube has all of its facts written.
    fn replace_by(
        &self,
        cube: &StoredCube,
        new: Option<NextFacts<'_>>,
        before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
    ) -> Result<u64> {
        let mut folder = Folder { path: self.folder(), before };
        let manifest = folder.write_next(cube, new)?;
        folder.write_manifest(&manifest, NEXT_MANIFEST)?;
        folder.publish(NEXT_MANIFEST)?;
        // Files that cannot be removed are left to the next replacement: the cube is replaced already.
        let _ = folder.remove_all_but(Some(&manifest));
        Ok(manifest.generation)
    }

    /// Writes the next generation with its manifest as [`PREPARED_MANIFEST`], for [`super::replace_together_in_steps`].
    pub(super) fn prepare(
        &self,
        cube: &StoredCube,
        before: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
    ) -> Result<Manifest> {
        let mut folder = Folder { path: self.folder(), before };
        let manifest = folder.write_next(cube, None)?;
        folder.write_manifest(&manifest, PREPARED_MANIFEST)?;
        folder.sync()?;
        Ok(manifest)
    }

    /// Gives the prepared manifest its name and removes the files of the last generation.
    pub(super) fn publish_prepared(&self, before: &mut dyn FnMut(Step<'_>) -> io::Result<()>) -> Result<()> {
        let mut folder = Folder { path: self.folder(), before };
        folder.publish(PREPARED_MANIFEST)?;
        let manifest = Manifest::read_named(self.folder(), MANIFEST_NAME)?;
        let _ = manifest.map(|manifest| folder.remove_all_but(Some(&manifest)));
        Ok(())
    }
}

/// 128 random bits in hexadecimal digits: the keys of hash maps are the system's random numbers.
pub fn drawn_identity() -> String {
    let drawn = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{:016x}{:016x}", drawn(), drawn())
}

/// Refuses a cube whose parts contradict each other.
fn check(cube: &StoredCube) -> Result<()> {
    match cube.contradiction() {
        Some(reason) => Err(StoreError::Contradiction { cube: cube.model.name().to_owned(), reason }),
        None => Ok(()),
    }
}

/// The facts of the next generation.
enum NextFacts<'a> {
    /// Those of the last one, whose manifest this is, and one segment more if `more`; live cells may be fewer.
    Kept { old: &'a Manifest, more: bool },
    /// One segment, with its index unless that is its keys.
    Written { facts: Cow<'a, Facts>, index: Option<Index> },
}

impl<'a> NextFacts<'a> {
    /// The facts of a cube behind those that a manifest names; builds the index of facts that are written.
    fn of(cube: &'a StoredCube, old: Option<&'a Manifest>) -> Result<NextFacts<'a>> {
        // Files of a cube without an identity have another name once it has one.
        let is_same_cube = |old: &&Manifest| {
            !old.identity.is_empty()
                && old.cube == cube.model.name()
                && (&old.facts.scheme, old.facts.scheme_version) == (&cube.scheme.to_string(), SCHEME_VERSION)
                && (cube.scheme == Scheme::Bess || has_same_shape(old, &cube.model))
        };
        if let Some(old) = old.filter(is_same_cube) {
            let (segments, files) = (cube.facts.segments(), || old.of_role(Role::Facts));
            let is_same = |(segment, file): (&Arc<Segment>, &FileEntry)| {
                segment.stored() == Some(&old.state_of(file.generation()))
            };
            let (kept, all) = (files().count(), segments.iter().zip(files()).all(is_same));
            if all && (kept..=kept + 1).contains(&segments.len()) {
                return Ok(NextFacts::Kept { old, more: segments.len() > kept });
            }
        }
        let facts = cube.facts.merged();
        let refused = |source| StoreError::Scheme { cube: cube.model.name().to_owned(), source: Box::new(source) };
        let index = index::of(cube.scheme, &cube.model, facts.base()).map_err(refused)?;
        Ok(NextFacts::Written { facts, index })
    }
}

/// True if a manifest has the coordinates of a model, which the arrays of a scheme depend on; keys do not.
fn has_same_shape(old: &Manifest, model: &CubeModel) -> bool {
    let coordinates = model.dimensions().iter().map(|dimension| dimension.base_count() as u64);
    old.dimensions.iter().map(|dimension| dimension.coordinates).eq(coordinates)
}

/// Refuses a folder with entries other than the lock and files of a creation that did not finish, which begins with the
/// lock: without one, files of such names are the user's.
fn refuse_entries(folder: &Path) -> Result<()> {
    let is_begun = folder.join(LOCK_NAME).exists();
    let own = |name: &str| is_begun && (name == LOCK_NAME || is_leftover(name));
    match entries(folder)?.into_iter().find(|name| !own(name)) {
        Some(entry) if entry == MANIFEST_NAME || folder.join(MANIFEST_NAME).exists() => {
            Err(StoreError::Exists { folder: folder.to_path_buf() })
        }
        Some(entry) => Err(StoreError::NotEmpty { folder: folder.to_path_buf(), entry }),
        None => Ok(()),
    }
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    let read = || -> io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    read().map_err(StoreError::io(folder, "read"))
}

/// True for names of files that a replacement writes, the manifest excepted.
fn is_leftover(name: &str) -> bool {
    // A column file is hidden behind the number of its process until it is whole: `.71-0.facts-7.warpcols`.
    let hidden = name.strip_prefix('.').and_then(|rest| rest.split_once('.'));
    let hidden = hidden.filter(|(numbers, _)| numbers.split('-').all(is_number));
    name == NEXT_MANIFEST || name == PREPARED_MANIFEST || Role::is_file_name(hidden.map_or(name, |(_, name)| name))
}

/// The next manifest, whose files are not all written, and the last one.
struct Next<'a> {
    manifest: &'a mut Manifest,
    old: Option<&'a Manifest>,
}

impl Next<'_> {
    /// Names the segments of another manifest.
    fn keep_facts(&mut self, old: &Manifest) {
        let FactsSummary { columns, pointers, .. } = old.facts.clone();
        (self.manifest.facts.columns, self.manifest.facts.pointers) = (columns, pointers);
        self.manifest.files.extend(old.of_role(Role::Facts).chain(old.of_role(Role::Index)).cloned());
    }
}

/// The folder of a replacement.
struct Folder<'a> {
    path: &'a Path,
    before: &'a mut dyn FnMut(Step<'_>) -> io::Result<()>,
}

impl Folder<'_> {
    /// Makes one change.
    fn step(&mut self, step: Step<'_>, action: &'static str, change: impl FnOnce() -> io::Result<()>) -> Result<()> {
        let (Step::Write(path) | Step::Rename(path) | Step::Sync(path) | Step::Remove(path)) = step;
        (self.before)(step).and_then(|()| change()).map_err(StoreError::io(path, action))
    }

    /// Removes the files of other generations, and those of replacements that did not finish.
    fn remove_all_but(&mut self, kept: Option<&Manifest>) -> Result<()> {
        let is_kept = |name: &String| kept.is_some_and(|kept| kept.files.iter().any(|file| file.name == *name));
        for name in entries(self.path)?.into_iter().filter(|name| is_leftover(name) && !is_kept(name)) {
            let path = self.path.join(name);
            self.step(Step::Remove(&path), "removed", || fs::remove_file(&path))?;
        }
        Ok(())
    }

    /// Writes the files of the next generation that the last one does not have.
    fn write_next(&mut self, cube: &StoredCube, new: Option<NextFacts<'_>>) -> Result<Manifest> {
        check(cube)?;
        // A change together with other cubes may have left its manifest without its name.
        record::finish(self.path)?;
        let old = match Manifest::read(self.path) {
            Ok(manifest) => Some(manifest),
            Err(StoreError::NoCube { .. }) => None,
            Err(error) => return Err(error),
        };
        let facts = new.map_or_else(|| NextFacts::of(cube, old.as_ref()), Ok)?;
        self.remove_all_but(old.as_ref())?;
        let manifest = self.write_generation(cube, facts, old.as_ref())?;
        // The names of the files are on disk before the manifest that lists them.
        self.sync()?;
        Ok(manifest)
    }

    fn write_generation(
        &mut self,
        cube: &StoredCube,
        facts: NextFacts<'_>,
        old: Option<&Manifest>,
    ) -> Result<Manifest> {
        let model = &cube.model;
        let identity = old.map(|old| old.identity.clone()).filter(|identity| !identity.is_empty());
        let dimensions =
            model.dimensions().iter().zip(model.layout().bits()).map(|(dimension, bits)| DimensionSummary {
                name: dimension.name().to_owned(),
                elements: dimension.elements().len() as u64,
                coordinates: dimension.base_count() as u64,
                bits: *bits,
            });
        let mut manifest = Manifest {
            version: MANIFEST_VERSION,
            cube: model.name().to_owned(),
            identity: identity.unwrap_or_else(drawn_identity),
            generation: old.map_or(1, |old| old.generation + 1),
            written: now(),
            dimensions: dimensions.collect(),
            facts: FactsSummary {
                cells: cube.facts.len() as u64,
                scheme: cube.scheme.to_string(),
                scheme_version: SCHEME_VERSION,
                key_bits: model.layout().total_bits(),
                page_cells: cube.facts.page_cells() as u64,
                columns: Vec::new(),
                pointers: Vec::new(),
                segments: Vec::new(),
            },
            texts: cube.texts.len() as u64,
            aside: cube.aside.iter().map(|batch| batch.num_rows() as u64).sum(),
            files: Vec::new(),
        };
        let mut next = Next { manifest: &mut manifest, old };
        self.write_model(cube, &mut next)?;
        match facts {
            NextFacts::Written { facts, index } => self.write_base(facts.base(), index.as_ref(), next.manifest)?,
            NextFacts::Kept { old, more } => {
                next.keep_facts(old);
                if more {
                    self.write_more(&cube.facts, next.manifest)?;
                }
                self.write_removed(&cube.facts, old, next.manifest)?;
            }
        }
        self.write_others(cube, &mut next)?;
        Ok(manifest)
    }

    fn write_model(&mut self, cube: &StoredCube, next: &mut Next<'_>) -> Result<()> {
        let path = self.path_of(next.manifest, Role::Model, 0);
        let json = cube.model.to_json().map_err(StoreError::model(&path))?;
        self.write(next, (Role::Model, 0), json.as_bytes())
    }

    fn write_base(&mut self, facts: &Segment, index: Option<&Index>, manifest: &mut Manifest) -> Result<()> {
        manifest.facts.columns = self.write_columns(manifest, (Role::Facts, 0), |path, identity| {
            facts_file::write(path, identity, facts, index)
        })?;
        for (number, array) in index.iter().flat_map(|index| &index.pointers).enumerate() {
            let summaries = self.write_columns(manifest, (Role::Index, number), |path, identity| {
                facts_file::write_array(path, identity, array)
            })?;
            manifest.facts.pointers.extend(summaries);
        }
        Ok(())
    }

    /// Writes the last segment, behind those that the manifest lists.
    fn write_more(&mut self, facts: &Facts, manifest: &mut Manifest) -> Result<()> {
        let Some(segment) = facts.segments().last() else { return Ok(()) };
        let columns = self.write_columns(manifest, (Role::Facts, 0), |path, identity| {
            facts_file::write(path, identity, segment, None)
        })?;
        for column in columns {
            match manifest.facts.columns.iter_mut().find(|held| held.name == column.name) {
                Some(held) => held.bytes += column.bytes,
                None => manifest.facts.columns.push(column),
            }
        }
        Ok(())
    }

    /// Writes which cells are not live, or lists the file of the last generation that says so.
    fn write_removed(&mut self, facts: &Facts, old: &Manifest, manifest: &mut Manifest) -> Result<()> {
        if facts.is_whole() {
            return Ok(());
        }
        for (number, segment) in facts.segments().iter().enumerate() {
            let (cells, mut removed) = (segment.len() as u64, 0);
            if let Some(live) = segment.live() {
                removed = (live.len() - live.count()) as u64;
                let is_same = |file: &&FileEntry| segment.live_stored() == Some(&old.state_of(file.generation()));
                match old.removed(number).filter(is_same) {
                    Some(file) => manifest.files.push(file.clone()),
                    None => {
                        let array = facts_file::removed_of(segment);
                        self.write_columns(manifest, (Role::Removed, number), |path, identity| {
                            facts_file::write_array(path, identity, &array)
                        })?;
                    }
                }
            }
            manifest.facts.segments.push(SegmentSummary { cells, removed });
        }
        Ok(())
    }

    /// Writes a column file of the generation and lists it.
    fn write_columns(
        &mut self,
        manifest: &mut Manifest,
        (role, number): (Role, usize),
        write: impl FnOnce(&Path, &TableIdentity) -> Result<Vec<ColumnSummary>>,
    ) -> Result<Vec<ColumnSummary>> {
        let path = self.path_of(manifest, role, number);
        (self.before)(Step::Write(&path)).map_err(StoreError::io(&path, "written"))?;
        let summaries = write(&path, &identity(manifest, manifest.state()))?;
        let bytes = fs::metadata(&path).map_err(StoreError::io(&path, "read"))?.len();
        let name = role.file_name(manifest.generation, number);
        manifest.files.push(FileEntry { role, name, bytes, checksum: None });
        Ok(summaries)
    }

    fn write_others(&mut self, cube: &StoredCube, next: &mut Next<'_>) -> Result<()> {
        if let Some(definition) = &cube.definition {
            self.write(next, (Role::Definition, 0), definition.as_bytes())?;
        }
        if !cube.texts.is_empty() {
            let path = self.path_of(next.manifest, Role::Texts, 0);
            let stream = texts::to_batch(&cube.model, &cube.texts).and_then(|batch| arrow_file::write(&[batch]));
            let stream = stream.map_err(|source| StoreError::Arrow { path, source })?;
            self.write(next, (Role::Texts, 0), &stream)?;
        }
        for (number, run) in arrow_file::runs(&cube.aside).enumerate() {
            let path = self.path_of(next.manifest, Role::Aside, number);
            let stream = arrow_file::write(run).map_err(|source| StoreError::Arrow { path, source })?;
            self.write(next, (Role::Aside, number), &stream)?;
        }
        if let Some(origin) = &cube.origin {
            let json = serde_json::to_vec(origin).expect("an origin has text keys");
            self.write(next, (Role::Origin, 0), &json)?;
        }
        Ok(())
    }

    fn path_of(&self, manifest: &Manifest, role: Role, number: usize) -> PathBuf {
        self.path.join(role.file_name(manifest.generation, number))
    }

    /// Writes a file of the generation and lists it; a file of the last one with the same bytes is listed in its place.
    fn write(&mut self, next: &mut Next<'_>, (role, number): (Role, usize), bytes: &[u8]) -> Result<()> {
        let name = role.file_name(next.manifest.generation, number);
        let entry = FileEntry { role, name, bytes: bytes.len() as u64, checksum: Some(checksum(bytes)) };
        let is_same = |file: &&FileEntry| {
            (file.role, file.bytes, &file.checksum) == (role, entry.bytes, &entry.checksum)
                && fs::read(self.path.join(&file.name)).is_ok_and(|held| held == bytes)
        };
        let same = next.old.and_then(|old| old.files.iter().find(is_same));
        if same.is_none() {
            let path = self.path.join(&entry.name);
            self.step(Step::Write(&path), "written", || write_file(&path, bytes))?;
        }
        next.manifest.files.push(same.cloned().unwrap_or(entry));
        Ok(())
    }

    fn write_manifest(&mut self, manifest: &Manifest, name: &str) -> Result<()> {
        let path = self.path.join(name);
        self.step(Step::Write(&path), "written", || write_file(&path, checked::text(manifest).as_bytes()))
    }

    /// Gives the manifest of the next generation its name.
    fn publish(&mut self, name: &str) -> Result<()> {
        let (next, path) = (self.path.join(name), self.path.join(MANIFEST_NAME));
        self.step(Step::Rename(&path), "replaced", || fs::rename(&next, &path))?;
        self.sync()
    }

    fn sync(&mut self) -> Result<()> {
        let folder = self.path;
        self.step(Step::Sync(folder), "synchronised", || sync_folder(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_told_from_other_files() {
        for name in [NEXT_MANIFEST, PREPARED_MANIFEST, "facts-7.warpcols", ".71-0.facts-7.warpcols", "aside-7-0.arrow"]
        {
            assert!(is_leftover(name), "{name}");
        }
        for name in [MANIFEST_NAME, LOCK_NAME, ".71-0.notes.txt", ".facts-7.warpcols", ".x.facts-7.warpcols", "a.yaml"]
        {
            assert!(!is_leftover(name), "{name}");
        }
    }
}
