//! Encoded columns of a table in a file, to be loaded again without reading the source.
//!
//! ```text
//! 0          magic      8 bytes "WARPCOLS"
//! 8          version    u32 of this format, 3
//! 12         zeros      4
//! 16         payloads   each at a multiple of 64, zeros between them; of a chunk:
//!                         encoded bytes, zeros to a multiple of 16, validity words if it has nulls
//!                       of a column's strings:
//!                         number u32, then each as length u32 and bytes in UTF-8
//! D          directory  fields (see `serial.rs`), below
//! end - 24   D          u64: where the directory begins, it ends here
//! end - 16   checksum   u32: CRC-32 (IEEE) of the directory
//! end - 12   version    u32 again
//! end - 8    magic      8 bytes again
//!
//! directory:  table string, table version string, number of chunks u32, rows of each chunk u32,
//!             number of columns u32, columns
//! column:     name string, type string, storage, encoding, statistics, traits, strings: option of piece;
//!             a piece for each chunk, before it u8: 1 if it has validity words
//! piece:      position u64, bytes u64, checksum u32 (CRC-32 of the payload)
//! ```
//!
//! A chunk's `bytes` are those of its encoding; validity words follow from its rows. A file is written under another
//! name, synchronised and renamed, so that whoever opens it sees all of it or none; those who write at once each write
//! a file of their own, and the last one stays. Readers check every checksum, and every length against the file before
//! memory is taken.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::StringArray;
use thiserror::Error;

use super::plain::padded;
use super::serial::{FieldReader, Fields};
use super::{Encoding, decode};
use crate::units::{CHUNK_ROWS, Dictionary, Statistics, Storage, Traits};

/// First and last bytes of a file.
const MAGIC: &[u8; 8] = b"WARPCOLS";
/// Version of the format that is written and read; since version 3 every NaN is the one that loads make.
pub const FORMAT_VERSION: u32 = 3;
/// Payloads begin at multiples of this.
const PAYLOAD_ALIGN: u64 = 64;
/// Bytes before the payloads.
const HEAD_BYTES: u64 = 16;
/// Bytes after the directory.
const TAIL_BYTES: u64 = 24;

/// An error of a file of encoded columns. In each case the table's source can be read instead.
#[derive(Debug, Clone, Error)]
pub enum FileError {
    /// The system could not read or write.
    #[error("encoded columns in '{path}': {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: Arc<std::io::Error>,
    },
    /// The file has another format.
    #[error("'{path}' has format version {found} of encoded columns, this program reads {FORMAT_VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u32,
    },
    /// The file belongs to another table or another version of it.
    #[error("'{path}' holds version '{found}' of another table or of other files, wanted '{wanted}'")]
    Stale {
        /// The file.
        path: PathBuf,
        /// Table and version found.
        found: String,
        /// Table and version wanted.
        wanted: String,
    },
    /// Bytes of the file are not those that were written.
    #[error("'{path}' is damaged at {place}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Column and chunk, or part of the file.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

type Result<T, E = FileError> = std::result::Result<T, E>;

/// Which table a file is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIdentity {
    /// What tells the table from others.
    pub table: String,
    /// What changes when its files do.
    pub version: String,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedColumn {
    /// Name of the column.
    pub name: String,
    /// Its type, in words that the writer and the reader agree on.
    pub data_type: String,
    /// Machine type of its values.
    pub storage: Storage,
    /// Encoding of all its chunks.
    pub encoding: Encoding,
    /// Bounds and counts.
    pub statistics: Statistics,
    /// What a pass over its values told, if there was one.
    pub traits: Option<Traits>,
}

/// A chunk of a column as it was encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedChunk {
    /// Bytes of its encoding.
    pub bytes: Vec<u8>,
    /// Validity words, padded to whole vectors; `None` if every row is valid.
    pub validity: Option<Vec<u32>>,
    /// Rows without padding.
    pub rows: usize,
}

/// A payload's place.
#[derive(Debug, Clone, Copy)]
struct Piece {
    position: u64,
    bytes: u64,
    checksum: u32,
}

impl Piece {
    fn write(&self, fields: &mut Fields) {
        fields.u64(self.position);
        fields.u64(self.bytes);
        fields.u32(self.checksum);
    }

    fn read(fields: &mut FieldReader<'_>) -> Option<Piece> {
        Some(Piece { position: fields.u64()?, bytes: fields.u64()?, checksum: fields.u32()? })
    }
}

/// A file being written; it is nowhere until [`FileWriter::finish`].
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
    position: u64,
    chunk_rows: Vec<u32>,
    /// The directory up to the number of columns, and its columns.
    head: Fields,
    columns: Fields,
    columns_written: u32,
}

impl FileWriter {
    /// Begins a file of a table whose rows are cut into chunks of `chunk_rows` rows.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn create(path: &Path, identity: &TableIdentity, chunk_rows: &[u32]) -> Result<FileWriter> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        // Hidden, and with the ending that the file will have: who leaves out files of that ending leaves out this too.
        let mut name = format!(".{}-{}.", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed)).into_bytes();
        name.extend_from_slice(path.file_name().unwrap_or_default().as_bytes());
        let temporary = path.with_file_name(OsString::from_vec(name));
        let file = File::create(&temporary).map_err(|error| io(&temporary, error))?;
        let mut head = Fields::default();
        head.string(&identity.table);
        head.string(&identity.version);
        head.u32(chunk_rows.len() as u32);
        chunk_rows.iter().for_each(|rows| head.u32(*rows));
        let mut writer = FileWriter {
            path: path.to_path_buf(),
            temporary,
            file: Some(BufWriter::new(file)),
            position: 0,
            chunk_rows: chunk_rows.to_vec(),
            head,
            columns: Fields::default(),
            columns_written: 0,
        };
        writer.put(MAGIC)?;
        writer.put(&FORMAT_VERSION.to_le_bytes())?;
        writer.put(&[0; 4])?;
        Ok(writer)
    }

    /// Writes a column: its head, its dictionary if it is one of strings, and all its chunks as they come, each with
    /// its validity words if it has nulls. After an error the file is without this column, and others may follow
    /// unless the file cannot be written.
    ///
    /// # Errors
    /// [`FileError::Io`]; [`FileError::Damaged`] if the chunks are not those that were announced; errors of `chunks`.
    pub fn column<E: From<FileError>>(
        &mut self,
        column: &EncodedColumn,
        strings: Option<&Dictionary>,
        chunks: impl IntoIterator<Item = Result<EncodedChunk, E>>,
    ) -> Result<(), E> {
        let mut fields = Fields::default();
        fields.string(&column.name);
        fields.string(&column.data_type);
        fields.storage(column.storage);
        fields.encoding(&column.encoding);
        fields.statistics(&column.statistics);
        fields.traits(column.traits);
        fields.u8(u8::from(strings.is_some()));
        let strings = match strings {
            Some(strings) => {
                let mut fields = Fields::default();
                fields.u32(strings.len() as u32);
                strings.values().iter().for_each(|text| fields.string(text.unwrap_or_default()));
                self.payload(&[&fields.0])?
            }
            None => Piece { position: 0, bytes: 0, checksum: 0 },
        };
        strings.write(&mut fields);
        let mut announced = self.chunk_rows.clone().into_iter();
        let other = |path: &Path| {
            let reason = "its chunks are not those that were announced".to_string();
            FileError::Damaged { path: path.to_path_buf(), place: place(&column.name, None), reason }
        };
        for chunk in chunks {
            let chunk = chunk?;
            if announced.next().is_none_or(|rows| rows as usize != chunk.rows) {
                return Err(other(&self.path).into());
            }
            let padding = vec![0; chunk.bytes.len().next_multiple_of(16) - chunk.bytes.len()];
            let words: Vec<u8> = chunk.validity.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
            let mut piece = match &chunk.validity {
                Some(_) => self.payload(&[&chunk.bytes, &padding, &words])?,
                None => self.payload(&[&chunk.bytes])?,
            };
            piece.bytes = chunk.bytes.len() as u64;
            fields.u8(u8::from(chunk.validity.is_some()));
            piece.write(&mut fields);
        }
        if announced.next().is_some() {
            return Err(other(&self.path).into());
        }
        self.columns.0.append(&mut fields.0);
        self.columns_written += 1;
        Ok(())
    }

    /// Writes the directory and gives the file its name; its bytes.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn finish(mut self) -> Result<u64> {
        let mut directory = std::mem::take(&mut self.head);
        directory.u32(self.columns_written);
        directory.0.append(&mut self.columns.0);
        let start = self.position;
        self.put(&directory.0)?;
        self.put(&start.to_le_bytes())?;
        self.put(&crc32fast::hash(&directory.0).to_le_bytes())?;
        self.put(&FORMAT_VERSION.to_le_bytes())?;
        self.put(MAGIC)?;
        let file = self.file.take().expect("there until here");
        let done = file.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_all());
        let done = done.and_then(|()| std::fs::rename(&self.temporary, &self.path));
        done.map(|()| self.position).map_err(|error| io(&self.path, error))
    }

    fn payload(&mut self, parts: &[&[u8]]) -> Result<Piece> {
        let position = self.position.next_multiple_of(PAYLOAD_ALIGN);
        self.put(&[0; PAYLOAD_ALIGN as usize][..(position - self.position) as usize])?;
        let mut checksum = crc32fast::Hasher::new();
        for part in parts {
            checksum.update(part);
            self.put(part)?;
        }
        Ok(Piece { position, bytes: self.position - position, checksum: checksum.finalize() })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.position += bytes.len() as u64;
        let file = self.file.as_mut().expect("there until finished");
        file.write_all(bytes).map_err(|error| io(&self.temporary, error))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // After a finish there is nothing of that name; otherwise what is left of a failure has no use.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn io(path: &Path, error: std::io::Error) -> FileError {
    FileError::Io { path: path.to_path_buf(), error: Arc::new(error) }
}

fn place(column: &str, chunk: Option<usize>) -> String {
    match chunk {
        Some(chunk) => format!("column '{column}', chunk {chunk}"),
        None => format!("column '{column}'"),
    }
}

/// A file of encoded columns, opened and its directory checked.
#[derive(Debug)]
pub struct EncodedFile {
    path: PathBuf,
    file: File,
    chunk_rows: Vec<u32>,
    columns: Vec<EncodedColumn>,
    /// Of each column its strings, if it has any.
    strings: Vec<Option<Piece>>,
    /// Of each column and chunk: whether it has validity words, and its payload.
    chunks: Vec<Vec<(bool, Piece)>>,
}

impl EncodedFile {
    /// Opens a file of a table.
    ///
    /// # Errors
    /// [`FileError::Version`] if another version of the format wrote it, [`FileError::Stale`] if it is of another
    /// version of the table, [`FileError::Damaged`] if its directory is not what was written.
    pub fn open(path: &Path, identity: &TableIdentity) -> Result<EncodedFile> {
        let file = File::open(path).map_err(|error| io(path, error))?;
        let length = file.metadata().map_err(|error| io(path, error))?.len();
        let damaged = |place: &str, reason: &str| FileError::Damaged {
            path: path.to_path_buf(),
            place: place.to_string(),
            reason: reason.to_string(),
        };
        if length < HEAD_BYTES + TAIL_BYTES {
            return Err(damaged("its end", "it is shorter than an empty one"));
        }
        let head = read_at(&file, 0, HEAD_BYTES as usize).map_err(|error| io(path, error))?;
        if head[..8] != MAGIC[..] {
            return Err(damaged("its beginning", "it is no file of encoded columns"));
        }
        let mut fields = FieldReader(&head[8..]);
        let found = fields.u32().unwrap_or_default();
        if found != FORMAT_VERSION {
            return Err(FileError::Version { path: path.to_path_buf(), found });
        }
        if fields.u32() != Some(0) {
            return Err(damaged("its beginning", "zeros are expected after the version"));
        }
        let tail_at = length - TAIL_BYTES;
        let tail = read_at(&file, tail_at, TAIL_BYTES as usize).map_err(|error| io(path, error))?;
        let mut fields = FieldReader(&tail);
        let (start, checksum, again) = (fields.u64(), fields.u32(), fields.u32());
        let start = start.filter(|start| (HEAD_BYTES..=tail_at).contains(start));
        let (Some(start), Some(FORMAT_VERSION), true) = (start, again, fields.0 == MAGIC) else {
            return Err(damaged("its end", "it was cut off, or never written to its end"));
        };
        let directory = read_at(&file, start, (tail_at - start) as usize).map_err(|error| io(path, error))?;
        if Some(crc32fast::hash(&directory)) != checksum {
            return Err(damaged("the directory", "its checksum differs"));
        }
        let read =
            Directory::read(&directory, start).ok_or_else(|| damaged("the directory", "it contradicts itself"))?;
        if read.identity != *identity {
            let words = |identity: &TableIdentity| format!("{} {}", identity.table, identity.version);
            let (found, wanted) = (words(&read.identity), words(identity));
            return Err(FileError::Stale { path: path.to_path_buf(), found, wanted });
        }
        Ok(EncodedFile {
            path: path.to_path_buf(),
            file,
            chunk_rows: read.chunk_rows,
            columns: read.columns,
            strings: read.strings,
            chunks: read.chunks,
        })
    }

    /// Rows of each chunk.
    pub fn chunk_rows(&self) -> &[u32] {
        &self.chunk_rows
    }

    /// The columns.
    pub fn columns(&self) -> &[EncodedColumn] {
        &self.columns
    }

    /// Reads the dictionary of a column of strings; `None` for other columns.
    ///
    /// # Errors
    /// [`FileError::Damaged`] names the column if its strings are not those that were written.
    pub fn strings(&self, column: usize) -> Result<Option<Dictionary>> {
        let Some(piece) = &self.strings[column] else { return Ok(None) };
        let place = format!("the strings of column '{}'", self.columns[column].name);
        let bytes = self.payload(piece, piece.bytes, &place)?;
        let reason = "they are no strings in ascending order".to_string();
        match strings(&bytes) {
            Some(strings) => Ok(Some(strings)),
            None => Err(FileError::Damaged { path: self.path.clone(), place, reason }),
        }
    }

    /// The error of a chunk whose bytes make no sense, though they are those that were written.
    pub(crate) fn damaged(&self, column: usize, chunk: usize, reason: &str) -> FileError {
        let place = place(&self.columns[column].name, Some(chunk));
        FileError::Damaged { path: self.path.clone(), place, reason: reason.to_string() }
    }

    /// Reads a chunk of a column as it was encoded.
    ///
    /// # Errors
    /// [`FileError::Damaged`] names column and chunk if its bytes are not those that were written.
    pub fn chunk(&self, column: usize, chunk: usize) -> Result<EncodedChunk> {
        let (has_validity, piece) = self.chunks[column][chunk];
        let rows = self.chunk_rows[chunk] as usize;
        let place = place(&self.columns[column].name, Some(chunk));
        let mut bytes = self.payload(&piece, payload_bytes(piece.bytes, has_validity, rows), &place)?;
        let validity = has_validity.then(|| {
            let words = bytes.split_off((piece.bytes as usize).next_multiple_of(16));
            words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
        });
        bytes.truncate(piece.bytes as usize);
        Ok(EncodedChunk { bytes, validity, rows })
    }

    /// Reads a chunk of a column and decodes it to padded plain values.
    ///
    /// # Errors
    /// As [`EncodedFile::chunk`], also if the bytes contradict the encoding.
    pub fn decode(&self, column: usize, chunk: usize) -> Result<Vec<u8>> {
        let head = &self.columns[column];
        let EncodedChunk { bytes, validity, rows } = self.chunk(column, chunk)?;
        decode(&head.encoding, &bytes, head.storage, validity.as_deref(), rows)
            .map_err(|error| self.damaged(column, chunk, &error.to_string()))
    }

    fn payload(&self, piece: &Piece, length: u64, place: &str) -> Result<Vec<u8>> {
        let bytes = read_at(&self.file, piece.position, length as usize);
        let bytes = bytes.map_err(|error| io(&self.path, error))?;
        if crc32fast::hash(&bytes) != piece.checksum {
            let reason = "its checksum differs".to_string();
            return Err(FileError::Damaged { path: self.path.clone(), place: place.to_string(), reason });
        }
        Ok(bytes)
    }
}

/// Bytes of a chunk's payload.
fn payload_bytes(bytes: u64, has_validity: bool, rows: usize) -> u64 {
    if has_validity { bytes.next_multiple_of(16) + padded(rows) as u64 / 8 } else { bytes }
}

fn read_at(file: &File, position: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, position)?;
    Ok(bytes)
}

fn strings(bytes: &[u8]) -> Option<Dictionary> {
    let mut fields = FieldReader(bytes);
    let count = fields.u32()?;
    if bytes.len() > i32::MAX as usize {
        return None;
    }
    let texts: Vec<&str> = (0..count).map(|_| fields.string()).collect::<Option<_>>()?;
    let ascend = texts.windows(2).all(|pair| pair[0] < pair[1]);
    (ascend && fields.0.is_empty()).then(|| Dictionary::from_sorted(StringArray::from_iter_values(texts)))
}

/// A directory taken apart.
struct Directory {
    identity: TableIdentity,
    chunk_rows: Vec<u32>,
    columns: Vec<EncodedColumn>,
    strings: Vec<Option<Piece>>,
    chunks: Vec<Vec<(bool, Piece)>>,
}

impl Directory {
    /// Reads a directory; all its payloads end before `end`.
    fn read(bytes: &[u8], end: u64) -> Option<Directory> {
        let mut fields = FieldReader(bytes);
        let identity = TableIdentity { table: fields.string()?.into(), version: fields.string()?.into() };
        let count = fields.u32()?;
        let row_counts: Option<Vec<u32>> = (0..count).map(|_| fields.u32()).collect();
        let chunk_rows = row_counts?;
        if chunk_rows.iter().any(|rows| *rows as usize > CHUNK_ROWS) {
            return None;
        }
        let inside = |position: u64, length: u64| position.checked_add(length).is_some_and(|last| last <= end);
        let mut directory =
            Directory { identity, chunk_rows, columns: Vec::new(), strings: Vec::new(), chunks: Vec::new() };
        for _ in 0..fields.u32()? {
            let (name, data_type) = (fields.string()?.to_string(), fields.string()?.to_string());
            let storage = fields.storage()?;
            directory.columns.push(EncodedColumn {
                name,
                data_type,
                storage,
                encoding: fields.encoding(storage)?,
                statistics: fields.statistics()?,
                traits: fields.traits()?,
            });
            let has_strings = fields.bool()?;
            let strings = Piece::read(&mut fields)?;
            inside(strings.position, strings.bytes).then_some(())?;
            directory.strings.push(has_strings.then_some(strings));
            let mut chunks = Vec::new();
            for rows in &directory.chunk_rows {
                let (has_validity, piece) = (fields.bool()?, Piece::read(&mut fields)?);
                // No sum of lengths below overflows.
                let length = (piece.bytes <= end).then(|| payload_bytes(piece.bytes, has_validity, *rows as usize))?;
                inside(piece.position, length).then_some(())?;
                chunks.push((has_validity, piece));
            }
            directory.chunks.push(chunks);
        }
        fields.0.is_empty().then_some(directory)
    }
}
