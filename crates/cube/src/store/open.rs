//! Opening a cube folder without a lock.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use warpcube_arrays::restore::Words;
use warpcube_arrays::{Scheme, UnknownScheme};
use warpcube_column::format::TableIdentity;

use super::checked::checksum;
use super::cube::{CubeOrigin, StoredCube, TextCell};
use super::error::{Result, StoreError};
use super::facts_file::{FactsFile, live_of};
use super::folder::MANIFEST_NAME;
use super::lock::CubeLock;
use super::manifest::{FileEntry, Manifest, Role, SCHEME_VERSION, SegmentSummary};
use super::{arrow_file, texts};
use crate::facts::Facts;
use crate::model::CubeModel;

/// Opens the cube of a folder; a change by another process meanwhile does not show. Pages are decoded on all cores of
/// the current rayon pool.
///
/// # Errors
/// [`StoreError::NoCube`], [`StoreError::Version`]; [`StoreError::Damaged`], [`StoreError::Facts`] and others name the
/// file, and for facts the column and page, that differ from what was written; [`StoreError::Io`].
pub fn open(folder: &Path) -> Result<StoredCube> {
    open_with_manifest(folder).map(|(cube, _)| cube)
}

/// The cube of a folder with the manifest of its generation.
///
/// # Errors
/// As [`open`].
pub fn open_with_manifest(folder: &Path) -> Result<(StoredCube, Manifest)> {
    let mut manifest = Manifest::read(folder)?;
    loop {
        match read(folder, &manifest) {
            Ok(cube) => return Ok((cube, manifest)),
            // Another process may have replaced the cube, whose files are gone then, or have created another one in
            // its place, whose files have the names of this one's.
            Err(error) => match Manifest::read(folder) {
                Ok(next) if next.state() != manifest.state() => manifest = next,
                _ => return Err(error),
            },
        }
    }
}

/// The manifest of a cube folder: sizes, statistics, generation. Reads no other file.
///
/// # Errors
/// [`StoreError::NoCube`], [`StoreError::Version`], [`StoreError::Damaged`], [`StoreError::Io`].
pub fn info(folder: &Path) -> Result<Manifest> {
    Manifest::read(folder)
}

impl CubeLock {
    /// Opens the cube; it stays the same until [`CubeLock::replace`].
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(&self) -> Result<StoredCube> {
        open(self.folder())
    }
}

/// The identity of the facts that a state has written.
pub(super) fn identity(manifest: &Manifest, state: String) -> TableIdentity {
    TableIdentity { table: format!("facts of cube {}", manifest.cube), version: state }
}

/// A file of the generation, opened and not yet read.
struct Part {
    path: PathBuf,
    file: File,
    entry: FileEntry,
}

impl Part {
    fn open(folder: &Path, entry: &FileEntry) -> Result<Part> {
        let path = folder.join(&entry.name);
        let file = File::open(&path).map_err(StoreError::io(&path, "read"))?;
        Ok(Part { path, file, entry: entry.clone() })
    }

    /// Opens the file of a role, if there is one.
    fn of_role(folder: &Path, manifest: &Manifest, role: Role) -> Result<Option<Part>> {
        manifest.of_role(role).next().map(|entry| Part::open(folder, entry)).transpose()
    }

    /// The bytes, if length and checksum are those of the manifest.
    fn bytes(&mut self) -> Result<Vec<u8>> {
        let FileEntry { bytes: expected, checksum: expected_checksum, .. } = &self.entry;
        let io = || StoreError::io(&self.path, "read");
        let length = self.file.metadata().map_err(io())?.len();
        if length != *expected {
            let reason = format!("it has {length} bytes, {MANIFEST_NAME} says {expected}");
            return Err(StoreError::damaged(&self.path, reason));
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes).map_err(io())?;
        if *expected_checksum != Some(checksum(&bytes)) {
            let reason = format!("its checksum is not the one in {MANIFEST_NAME}");
            return Err(StoreError::damaged(&self.path, reason));
        }
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|error| StoreError::damaged(&self.path, error.to_string()))
    }
}

fn read(folder: &Path, manifest: &Manifest) -> Result<StoredCube> {
    let missing = |what: &str| StoreError::damaged(&folder.join(MANIFEST_NAME), format!("it names no {what}"));
    // All files are opened before one is read: an open file stays readable when a writer removes it.
    let mut model = Part::of_role(folder, manifest, Role::Model)?.ok_or_else(|| missing("model"))?;
    let segments = segments(folder, manifest)?;
    let scheme = scheme_of(folder, manifest)?;
    let arrays = manifest.of_role(Role::Index).map(|entry| ColumnFile::open(folder, manifest, entry, None));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let mut definition = Part::of_role(folder, manifest, Role::Definition)?;
    let mut texts = Part::of_role(folder, manifest, Role::Texts)?;
    let mut origin = Part::of_role(folder, manifest, Role::Origin)?;
    let aside = manifest.of_role(Role::Aside).map(|entry| Part::open(folder, entry)).collect::<Result<Vec<_>>>()?;

    let json = model.text()?;
    let model = CubeModel::from_json(&json).map_err(StoreError::model(&model.path))?;
    let pointers = arrays.into_iter().map(|array| array.file.array()).collect::<Result<_>>()?;
    let cube = StoredCube {
        facts: read_facts(folder, manifest, segments, &model, (scheme, pointers))?,
        scheme,
        definition: definition.as_mut().map(Part::text).transpose()?,
        texts: texts.as_mut().map(|part| read_texts(part, &model)).transpose()?.unwrap_or_default(),
        aside: aside.into_iter().map(read_aside).collect::<Result<Vec<_>>>()?.concat(),
        origin: origin.as_mut().map(read_origin).transpose()?,
        model,
    };
    match cube.contradiction() {
        None => Ok(cube),
        Some(reason) => Err(StoreError::damaged(folder, reason)),
    }
}

/// A column file of the generation, opened and not yet read.
struct ColumnFile {
    file: FactsFile,
    path: PathBuf,
    /// The state that wrote it.
    state: String,
}

impl ColumnFile {
    fn open(folder: &Path, manifest: &Manifest, entry: &FileEntry, cells: Option<u64>) -> Result<ColumnFile> {
        let (path, state) = (folder.join(&entry.name), manifest.state_of(entry.generation()));
        let file = FactsFile::open(&path, &identity(manifest, state.clone()), entry.bytes, cells)?;
        Ok(ColumnFile { file, path, state })
    }
}

/// The files of each segment: its cells, and those that are not live.
fn segments(folder: &Path, manifest: &Manifest) -> Result<Vec<(ColumnFile, Option<ColumnFile>)>> {
    let damaged = |reason: String| StoreError::damaged(&folder.join(MANIFEST_NAME), reason);
    let files: Vec<&FileEntry> = manifest.of_role(Role::Facts).collect();
    let whole = [SegmentSummary { cells: manifest.facts.cells, removed: 0 }];
    let summaries = if manifest.facts.segments.is_empty() { &whole[..] } else { &manifest.facts.segments };
    match files.len() {
        0 => return Err(damaged("it names no facts".to_owned())),
        found if found == summaries.len() => {}
        found => return Err(damaged(format!("it names {found} files of {} segments", summaries.len()))),
    }
    let open = |(number, (entry, summary)): (usize, (&FileEntry, &SegmentSummary))| {
        let cells = ColumnFile::open(folder, manifest, entry, Some(summary.cells))?;
        let removed = match (summary.removed, manifest.removed(number)) {
            (0, None) => None,
            (removed, Some(entry)) => Some(ColumnFile::open(folder, manifest, entry, Some(removed))?),
            (_, None) => return Err(damaged(format!("it names no file of the removed cells of segment {number}"))),
        };
        Ok((cells, removed))
    };
    files.into_iter().zip(summaries).enumerate().map(open).collect()
}

/// The facts of all segments: the first one is stored in a scheme with these arrays beside it, others by their keys.
fn read_facts(
    folder: &Path,
    manifest: &Manifest,
    segments: Vec<(ColumnFile, Option<ColumnFile>)>,
    model: &CubeModel,
    scheme: (Scheme, Words),
) -> Result<Facts> {
    let page_cells = usize::try_from(manifest.facts.page_cells).unwrap_or(usize::MAX);
    let schemes = std::iter::once(scheme).chain(std::iter::repeat_with(|| (Scheme::Bess, Words::default())));
    let read = |((cells, removed), scheme): ((ColumnFile, Option<ColumnFile>), (Scheme, Words))| {
        let segment = cells.file.facts(model, page_cells, scheme)?;
        let Some(removed) = removed else { return Ok(segment.stored_in(&cells.state, None).into()) };
        let live = live_of(&removed.file.array()?, segment.len());
        let live = live.ok_or_else(|| StoreError::damaged(&removed.path, "its column is not that of removed cells"))?;
        Ok(segment.with_live(live).stored_in(&cells.state, Some(&removed.state)).into())
    };
    let segments = segments.into_iter().zip(schemes).map(read).collect::<Result<Vec<_>>>()?;
    let facts = Facts::from_segments(model.layout().clone(), segments);
    let facts = facts.map_err(|source| StoreError::FactsParts { path: folder.to_path_buf(), source })?;
    match facts.len() as u64 == manifest.facts.cells {
        true => Ok(facts),
        false => {
            let reason = format!("its segments have {} cells, not {}", facts.len(), manifest.facts.cells);
            Err(StoreError::damaged(&folder.join(MANIFEST_NAME), reason))
        }
    }
}

/// The scheme of the facts, if this program reads it.
fn scheme_of(folder: &Path, manifest: &Manifest) -> Result<Scheme> {
    let (path, facts) = (folder.join(MANIFEST_NAME), &manifest.facts);
    if facts.scheme_version != SCHEME_VERSION {
        return Err(StoreError::Version { path, found: facts.scheme_version, wanted: SCHEME_VERSION });
    }
    facts.scheme.parse().map_err(|error: UnknownScheme| StoreError::damaged(&path, error.to_string()))
}

fn read_texts(part: &mut Part, model: &CubeModel) -> Result<Vec<TextCell>> {
    let bytes = part.bytes()?;
    let batches = arrow_file::read(&bytes).map_err(|source| StoreError::Arrow { path: part.path.clone(), source })?;
    let cells = texts::from_batches(model, &batches);
    cells.ok_or_else(|| StoreError::damaged(&part.path, "its columns are not those of text cells"))
}

fn read_aside(mut part: Part) -> Result<Vec<arrow::array::RecordBatch>> {
    let bytes = part.bytes()?;
    arrow_file::read(&bytes).map_err(|source| StoreError::Arrow { path: part.path.clone(), source })
}

fn read_origin(part: &mut Part) -> Result<CubeOrigin> {
    let text = part.text()?;
    serde_json::from_str(&text).map_err(|error| StoreError::damaged(&part.path, error.to_string()))
}
