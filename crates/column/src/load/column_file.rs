//! Loads from column files, and the writing of column files after loads from the source.
//!
//! The bytes of a segment are the same in the file and on the device: columns are checked and uploaded without
//! decoding. A file has columns of one table version, all with the same chunks; a load that adds columns writes a new
//! file. Of concurrent writers the last one stays; the next load adds the columns of the others again.
//!
//! Invariant: no statement fails because of a defective file. The source gives a column that the file does not, with a
//! warning. After a failed write the path is not written again.

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
use warpcube_gpu::{Device, GpuError};

use super::bytes_alone;
use super::limits::{LoadLimits, LoadReport, Loaded};
use super::staging::{Target, download, upload_column};
use crate::device::{Relation, ResidentColumn};
use crate::error::ColumnError;
use crate::format::{EncodedColumn, EncodedFile, Encoding, FileError, FileWriter, TableIdentity};
use crate::source::{ColumnFile, ColumnSource};
use crate::units::{ColumnFacts, Storage, is_string};

/// The files of one device's tables.
#[derive(Debug, Default)]
pub(crate) struct ColumnFiles {
    /// Paths of failed writes.
    unwritable: Mutex<HashSet<PathBuf>>,
    /// Files whose chunks differ from those of their source.
    mismatched: Mutex<HashSet<PathBuf>>,
}

/// Columns restored from a file.
#[derive(Default)]
pub(crate) struct Restored {
    /// The wanted columns of the file; `None` without a usable file.
    pub(crate) loaded: Option<Loaded>,
    pub(crate) warnings: Vec<String>,
}

/// An error of a transfer between a file and the device.
#[derive(Debug, Error)]
enum TransferError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Column(#[from] ColumnError),
}

fn check_cancelled(limits: &LoadLimits) -> Result<(), ColumnError> {
    if limits.cancelled.load(Ordering::Relaxed) { Err(GpuError::Cancelled.into()) } else { Ok(()) }
}

impl ColumnFiles {
    /// Loads the `wanted` columns that the file has for this version of the table; those among `coded` must have codes
    /// if they have strings. The chunks of the file must be `chunks`, if these are given.
    pub(crate) fn restore(
        &self,
        file: &ColumnFile,
        source: &dyn ColumnSource,
        (version, chunks): (&str, Option<&[u32]>),
        (wanted, coded): (&[usize], &[usize]),
        limits: &LoadLimits,
        target: Target<'_>,
    ) -> Result<Restored, ColumnError> {
        let start = Instant::now();
        let mut restored = Restored::default();
        if self.mismatched.lock().contains(&file.path) {
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
        let mut found: Vec<(usize, usize)> = found.collect();
        for (index, position) in found.clone().into_iter().filter(|(index, _)| coded.contains(index)) {
            let Encoding::Bytes(bytes) = opened.columns()[position].encoding else { continue };
            if limits.dictionary_values as u64 <= bytes.limit {
                return Err(bytes_alone(schema.field(index).name(), bytes.limit));
            }
            // Under the present limit the column may have a dictionary.
            found.retain(|(other, _)| *other != index);
        }
        // Columns from the source count the rows, if there are any.
        let counts_rows = found.len() == wanted.len();
        let restore = |(index, position): &(usize, usize)| -> Result<Option<ResidentColumn>, TransferError> {
            let column = restore_column(&opened, *position, (*index, schema.field(*index)), limits, target)?;
            if let Some(column) = column.as_ref().filter(|_| counts_rows) {
                limits.rows_done.fetch_add(column.facts().statistics.rows / found.len() as u64, Ordering::Relaxed);
            }
            Ok(column)
        };
        let outcomes: Vec<Result<Option<ResidentColumn>, TransferError>> =
            limits.share(|| found.par_iter().map(restore).collect());
        let mut columns = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome {
                Ok(column) => columns.extend(column.map(Arc::new)),
                Err(TransferError::File(error)) => restored.warnings.push(warn(source.name(), &error)),
                Err(TransferError::Column(error)) => return Err(error),
            }
        }
        let bytes = columns.iter().map(|column| column.bytes()).sum();
        let elapsed = start.elapsed();
        tracing::info!(table = source.name(), columns = columns.len(), bytes, ?elapsed, "restored from a file");
        let report = LoadReport { bytes, restored: bytes, elapsed, ..LoadReport::default() };
        restored.loaded = Some(Loaded { relation: Relation { chunks: opened.chunk_rows().into(), columns }, report });
        Ok(restored)
    }

    /// Excludes a file, whose chunks differ from those of the source, until the next write.
    pub(crate) fn exclude(&self, file: &ColumnFile) {
        self.mismatched.lock().insert(file.path.clone());
    }

    /// Adds columns to the file; it keeps its other columns of the same version.
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
                self.mismatched.lock().remove(&file.path);
                report.written = bytes;
                tracing::info!(path = %file.path.display(), bytes, elapsed = ?start.elapsed(), "columns are kept");
            }
            // The statement reports its cancellation.
            Err(TransferError::Column(ColumnError::Gpu(GpuError::Cancelled))) => {}
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

/// Position in the file of a column with the name, the type and a valid encoding of a field.
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

/// Uploads a column; `None` if its dictionary is past the limit.
fn restore_column(
    file: &EncodedFile,
    position: usize,
    (index, field): (usize, &Field),
    limits: &LoadLimits,
    target: Target<'_>,
) -> Result<Option<ResidentColumn>, TransferError> {
    let head = &file.columns()[position];
    let strings = file.strings(position)?;
    let rows: u64 = file.chunk_rows().iter().map(|rows| u64::from(*rows)).sum();
    let is_coded = is_string(field.data_type()) && !matches!(head.encoding, Encoding::Bytes(_));
    if head.statistics.rows != rows || strings.is_some() != is_coded {
        return Err(file.damaged(position, 0, "its head contradicts the table").into());
    }
    if strings.as_ref().is_some_and(|strings| strings.len() > limits.dictionary_values) {
        return Ok(None);
    }
    let facts = ColumnFacts {
        name: head.name.clone(),
        data_type: field.data_type().clone(),
        storage: head.storage,
        statistics: head.statistics.clone(),
        dictionary: strings.map(Arc::new),
        traits: head.traits,
    };
    let chunks = (0..file.chunk_rows().len()).map(|chunk| {
        check_cancelled(limits)?;
        let encoded = file.chunk(position, chunk)?;
        match head.encoding.codec().takes(encoded.bytes.len(), head.storage, encoded.rows) {
            true => Ok(encoded),
            false => Err(file.damaged(position, chunk, "it is not as long as its encoding and rows say").into()),
        }
    });
    upload_column(target, index, Arc::new(facts), head.encoding.clone(), chunks).map(Some)
}

/// Writes a file with these columns and those of the present file, if it has the same version; returns its bytes.
fn write(
    device: &Device,
    path: &Path,
    identity: &TableIdentity,
    chunks: &[u32],
    columns: &[&ResidentColumn],
    limits: &LoadLimits,
) -> Result<u64, TransferError> {
    if let Some(folder) = path.parent() {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|error| FileError::Io { path: folder.to_path_buf(), error: error.into() })?;
    }
    // The read of the file has reported its defects.
    let before = EncodedFile::open(path, identity).ok().filter(|before| before.chunk_rows() == chunks);
    let mut writer = FileWriter::create(path, identity, chunks)?;
    for before in before.iter() {
        for (position, head) in before.columns().iter().enumerate() {
            if columns.iter().any(|column| column.name() == head.name) {
                continue;
            }
            let kept = before.strings(position).map_err(TransferError::from).and_then(|strings| {
                let chunks = (0..chunks.len()).map(|chunk| {
                    check_cancelled(limits)?;
                    Ok::<_, TransferError>(before.chunk(position, chunk)?)
                });
                writer.column(head, strings.as_ref(), chunks)
            });
            match kept {
                Err(TransferError::File(error @ FileError::Damaged { .. })) => {
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
            check_cancelled(limits)?;
            Ok::<_, TransferError>(download(&mut stream, segment)?)
        });
        writer.column(&head, facts.dictionary.as_deref(), chunks)?;
    }
    Ok(writer.finish()?)
}
