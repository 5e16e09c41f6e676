//! Files of encoded columns, from which a table is loaded after a restart without decoding its source.
//!
//! A segment's bytes in the file are those it has on the device: a column is read, checked and uploaded as it is, and
//! written as it was loaded. The file of a table holds columns of one version of it, all cut into the same chunks; a
//! load that adds columns writes the file anew. Of several processes that write at once the last one stays, and a
//! column that is lost in this way is added again by the next load.
//!
//! Invariant: a defective file fails no statement. A column that cannot be read or verified is read from the source,
//! with a warning; a path that cannot be written is not tried again.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::datatypes::Field;
use parking_lot::Mutex;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use thiserror::Error;
use warpcube_gpu::{Device, GpuError, Stream};

use super::limits::{LoadLimits, LoadReport, Loaded};
use super::staging::{StagingPool, Uploader, place};
use crate::device::{Encoded, Lookup, Relation, ResidentColumn, Room, Segment};
use crate::error::ColumnError;
use crate::format::{EncodedChunk, EncodedColumn, EncodedFile, FileError, FileWriter, TableIdentity};
use crate::source::{ColumnFile, ColumnSource};
use crate::units::{ColumnFacts, Storage, is_string};

/// The files of one device's tables.
#[derive(Debug, Default)]
pub(crate) struct ColumnFiles {
    /// Files that could not be written.
    unwritable: Mutex<HashSet<PathBuf>>,
    /// Files whose chunks turned out not to be those of their source.
    distrusted: Mutex<HashSet<PathBuf>>,
}

/// Columns restored from a file.
#[derive(Default)]
pub(crate) struct Restored {
    /// The columns that it has of those that were wanted, perhaps none; `None` if the file is of no use.
    pub(crate) loaded: Option<Loaded>,
    pub(crate) warnings: Vec<String>,
}

/// Where columns go: a device, room on it, and buffers on the way.
pub(crate) type Target<'a> = (&'a Device, &'a dyn Room, &'a StagingPool);

/// Why a column did not come from a file, or did not go into it.
#[derive(Debug, Error)]
enum Trouble {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Column(#[from] ColumnError),
}

impl Trouble {
    fn check(limits: &LoadLimits) -> Result<(), Trouble> {
        match limits.cancelled.load(Ordering::Relaxed) {
            true => Err(ColumnError::from(GpuError::Cancelled).into()),
            false => Ok(()),
        }
    }
}

impl ColumnFiles {
    /// Brings those of the `wanted` columns to the device that the file has for this version of the table. If chunks of
    /// the table are known, the file must have the same.
    pub(crate) fn restore(
        &self,
        file: &ColumnFile,
        source: &dyn ColumnSource,
        (version, chunks): (&str, Option<&[u32]>),
        wanted: &[usize],
        limits: &LoadLimits,
        target: Target<'_>,
    ) -> Result<Restored, ColumnError> {
        let start = Instant::now();
        let mut restored = Restored::default();
        if self.distrusted.lock().contains(&file.path) {
            return Ok(restored);
        }
        let identity = TableIdentity { table: file.table.clone(), version: version.to_string() };
        let opened = match EncodedFile::open(&file.path, &identity) {
            Ok(opened) => opened,
            Err(FileError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => return Ok(restored),
            Err(error) => {
                restored.warnings.push(warn(source.name(), &error));
                return Ok(restored);
            }
        };
        if chunks.is_some_and(|chunks| chunks != opened.chunk_rows()) {
            let path = file.path.display();
            let error = format!("'{path}' has rows that are cut differently than those on the device");
            restored.warnings.push(warn(source.name(), &error));
            return Ok(restored);
        }
        let schema = source.schema();
        let found = wanted.iter().filter_map(|index| {
            let position = position(&opened, schema.field(*index))?;
            Some((*index, position))
        });
        let found: Vec<(usize, usize)> = found.collect();
        // Rows count once; if others are still to be read from the source, those count them.
        let counts = found.len() == wanted.len();
        let restore = |(index, position): &(usize, usize)| -> Result<Option<ResidentColumn>, Trouble> {
            let column = restore_column(&opened, *position, (*index, schema.field(*index)), limits, target)?;
            if let Some(column) = column.as_ref().filter(|_| counts) {
                limits.rows_done.fetch_add(column.facts().statistics.rows / found.len() as u64, Ordering::Relaxed);
            }
            Ok(column)
        };
        let outcomes: Vec<Result<Option<ResidentColumn>, Trouble>> =
            limits.share(|| found.par_iter().map(restore).collect());
        let mut columns = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome {
                Ok(column) => columns.extend(column.map(Arc::new)),
                Err(Trouble::File(error)) => restored.warnings.push(warn(source.name(), &error)),
                Err(Trouble::Column(error)) => return Err(error),
            }
        }
        let bytes = columns.iter().map(|column| column.bytes()).sum();
        let elapsed = start.elapsed();
        tracing::info!(table = source.name(), columns = columns.len(), bytes, ?elapsed, "restored from a file");
        let report = LoadReport { bytes, restored: bytes, elapsed, ..LoadReport::default() };
        restored.loaded = Some(Loaded { relation: Relation::new(opened.chunk_rows().into(), columns), report });
        Ok(restored)
    }

    /// Leaves the file alone until it is written anew.
    pub(crate) fn distrust(&self, file: &ColumnFile) {
        self.distrusted.lock().insert(file.path.clone());
    }

    /// Adds columns to the file, which keeps others of the same version that it has.
    pub(crate) fn add(
        &self,
        device: &Device,
        file: &ColumnFile,
        (version, chunks, columns): (String, &[u32], &[&ResidentColumn]),
        limits: &LoadLimits,
    ) -> LoadReport {
        let start = Instant::now();
        let mut report = LoadReport::default();
        if self.unwritable.lock().contains(&file.path) {
            return report;
        }
        let identity = TableIdentity { table: file.table.clone(), version };
        match write(device, &file.path, &identity, chunks, columns, limits) {
            Ok(bytes) => {
                self.distrusted.lock().remove(&file.path);
                report.written = bytes;
                tracing::info!(path = %file.path.display(), bytes, elapsed = ?start.elapsed(), "columns are kept");
            }
            // The statement tells that itself.
            Err(Trouble::Column(ColumnError::Gpu(GpuError::Cancelled))) => {}
            Err(error) => {
                tracing::warn!(%error, "columns are not kept");
                report.warnings.push(format!("columns are not kept: {error}"));
                self.unwritable.lock().insert(file.path.clone());
            }
        }
        report.elapsed = start.elapsed();
        report
    }
}

fn warn(table: &str, error: &impl std::fmt::Display) -> String {
    tracing::warn!(table, %error, "the source is read instead");
    format!("{error}; the source of table '{table}' is read instead")
}

/// The column of the file that is the table's, of a type and a layout that can be taken as they are.
fn position(file: &EncodedFile, field: &Field) -> Option<usize> {
    let storage = Storage::of(field.data_type())?;
    let is_column = |column: &EncodedColumn| {
        column.name == *field.name()
            && column.data_type == field.data_type().to_string()
            && column.storage == storage
            && column.encoding.is_for(storage)
    };
    file.columns().iter().position(is_column)
}

/// Brings a column to the device; `None` if its dictionary is larger than columns may have.
fn restore_column(
    file: &EncodedFile,
    position: usize,
    (index, field): (usize, &Field),
    limits: &LoadLimits,
    (device, room, staging): Target<'_>,
) -> Result<Option<ResidentColumn>, Trouble> {
    let head = &file.columns()[position];
    let strings = file.strings(position)?;
    let rows: u64 = file.chunk_rows().iter().map(|rows| u64::from(*rows)).sum();
    if head.statistics.rows != rows || strings.is_some() != is_string(field.data_type()) {
        return Err(file.damaged(position, 0, "its head contradicts the table").into());
    }
    if strings.as_ref().is_some_and(|strings| strings.len() > limits.dictionary_values) {
        return Ok(None);
    }
    let mut uploader = Uploader::new(device, staging)?;
    let mut segments = Vec::with_capacity(file.chunk_rows().len());
    for chunk in 0..file.chunk_rows().len() {
        let segment = || -> Result<Segment, Trouble> {
            Trouble::check(limits)?;
            let EncodedChunk { bytes, validity, rows } = file.chunk(position, chunk)?;
            if !head.encoding.takes(bytes.len(), head.storage, rows) {
                return Err(file.damaged(position, chunk, "it is not as long as its encoding and rows say").into());
            }
            let validity = validity.as_deref().map(bytemuck::cast_slice);
            Ok(place(device, room, &mut uploader, &bytes, validity, rows as u32)?)
        };
        let segment = { segment }();
        // Segments hold the promise of their memory, and copies on their way hold the memory: that goes first.
        segments.push(segment.inspect_err(|_| uploader.settle())?);
    }
    uploader.finish()?;
    let lookup = Lookup::of(&head.encoding, head.storage, device, room)?;
    let facts = ColumnFacts {
        name: head.name.clone(),
        data_type: field.data_type().clone(),
        storage: head.storage,
        statistics: head.statistics.clone(),
        dictionary: strings.map(Arc::new),
        traits: head.traits,
    };
    Ok(Some(ResidentColumn::new(index, Arc::new(facts), Encoded { encoding: head.encoding.clone(), lookup, segments })))
}

/// Writes a file with these columns and those of the same version that it has already; its bytes.
fn write(
    device: &Device,
    path: &Path,
    identity: &TableIdentity,
    chunks: &[u32],
    columns: &[&ResidentColumn],
    limits: &LoadLimits,
) -> Result<u64, Trouble> {
    if let Some(folder) = path.parent() {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|error| FileError::Io { path: folder.to_path_buf(), error: error.into() })?;
    }
    // A defect of the file was reported when it was read.
    let before = EncodedFile::open(path, identity).ok().filter(|before| before.chunk_rows() == chunks);
    let mut writer = FileWriter::create(path, identity, chunks)?;
    for before in before.iter() {
        for (position, head) in before.columns().iter().enumerate() {
            if columns.iter().any(|column| column.name() == head.name) {
                continue;
            }
            let kept = before.strings(position).map_err(Trouble::from).and_then(|strings| {
                let chunks = (0..chunks.len()).map(|chunk| {
                    Trouble::check(limits)?;
                    Ok::<_, Trouble>(before.chunk(position, chunk)?)
                });
                writer.column(head, strings.as_ref(), chunks)
            });
            match kept {
                Err(Trouble::File(error @ FileError::Damaged { .. })) => {
                    tracing::warn!(%error, "the column is not kept any more");
                }
                kept => kept?,
            }
        }
    }
    let mut stream = device.stream().map_err(ColumnError::from)?;
    for column in columns {
        let facts = column.facts();
        let head = EncodedColumn {
            name: facts.name.clone(),
            data_type: facts.data_type.to_string(),
            storage: facts.storage,
            encoding: column.encoding().clone(),
            statistics: facts.statistics.clone(),
            traits: facts.traits,
        };
        let chunks = column.segments().iter().map(|segment| {
            Trouble::check(limits)?;
            Ok::<_, Trouble>(download(&mut stream, segment).map_err(ColumnError::from)?)
        });
        writer.column(&head, facts.dictionary.as_deref(), chunks)?;
    }
    Ok(writer.finish()?)
}

fn download(stream: &mut Stream, segment: &Segment) -> Result<EncodedChunk, GpuError> {
    let mut bytes = vec![0; segment.values().bytes()];
    stream.download(segment.values(), 0, &mut bytes)?;
    let validity = match segment.validity() {
        Some(words) => {
            let mut copy = vec![0u32; words.bytes() / size_of::<u32>()];
            stream.download(words, 0, bytemuck::cast_slice_mut(&mut copy))?;
            Some(copy)
        }
        None => None,
    };
    Ok(EncodedChunk { bytes, validity, rows: segment.rows() as usize })
}
