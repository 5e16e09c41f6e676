//! Column files: the encoded columns of a table, which a load takes in place of the source.
//!
//! ```text
//! 0          magic      8 bytes "WARPCOLS"
//! 8          version    u32 of this format, 3
//! 12         zeros      4
//! 16         payloads   each at a multiple of 64, zeros between them; of a chunk:
//!                         encoded bytes, zeros to a multiple of 16, validity words if it has nulls
//!                       of the strings of a column:
//!                         number u32, then each as length u32 and bytes in UTF-8
//! D          directory  fields (see `serial.rs`), below
//! end - 24   D          u64: first byte of the directory, which ends here
//! end - 16   checksum   u32: CRC-32 (IEEE) of the directory
//! end - 12   version    u32 again
//! end - 8    magic      8 bytes again
//!
//! directory:  table string, table version string, number of chunks u32, rows of each chunk u32,
//!             number of columns u32, columns
//! column:     name string, type string, storage, encoding, statistics, traits, strings: option of piece;
//!             for each chunk u8, 1 if it has validity words, and a piece
//! piece:      position u64, bytes u64, checksum u32 (CRC-32 of the payload)
//! ```
//!
//! The `bytes` of a chunk are those of its encoding; its rows give the number of validity words. A writer writes to a
//! temporary file, synchronises it and renames it, so that readers see a whole file or none. Of concurrent writers the
//! last one stays. Readers check every checksum, and every length against the file before they allocate.

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

use super::Encoding;
use super::serial::{FieldReader, Fields};
use super::values::padded;
use crate::units::{CHUNK_ROWS, Dictionary, Statistics, Storage, Traits};

/// The first and the last bytes of a file.
const MAGIC: &[u8; 8] = b"WARPCOLS";
/// Version of the format. Since version 3 all NaNs have the bits that loads give them.
pub const FORMAT_VERSION: u32 = 3;
/// Alignment of payloads.
const PAYLOAD_ALIGN: u64 = 64;
/// Bytes before the payloads.
const HEAD_BYTES: u64 = 16;
/// Bytes after the directory.
const TAIL_BYTES: u64 = 24;

/// An error of a column file. The source of the table can be read instead.
#[derive(Debug, Clone, Error)]
pub enum FileError {
    /// A call to the system failed.
    #[error("encoded columns in '{path}': {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
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
    /// The file is of another table or of another version of it.
    #[error("'{path}' holds version '{found}' of another table or of other files, wanted '{wanted}'")]
    Stale {
        /// The file.
        path: PathBuf,
        /// Table and version found.
        found: String,
        /// Table and version wanted.
        wanted: String,
    },
    /// The bytes of the file differ from those that were written.
    #[error("'{path}' is damaged at {place}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Column and chunk, or part of the file.
        place: String,
        /// The contradiction.
        reason: String,
    },
}

impl FileError {
    fn io(path: &Path, error: std::io::Error) -> FileError {
        FileError::Io { path: path.to_path_buf(), error: Arc::new(error) }
    }

    fn damaged(path: &Path, place: impl Into<String>, reason: impl Into<String>) -> FileError {
        FileError::Damaged { path: path.to_path_buf(), place: place.into(), reason: reason.into() }
    }
}

type Result<T, E = FileError> = std::result::Result<T, E>;

/// The table and the version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIdentity {
    /// Identity of the table.
    pub table: String,
    /// Version of its content.
    pub version: String,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedColumn {
    /// Name of the column.
    pub name: String,
    /// Name of its type.
    pub data_type: String,
    /// Machine type of its values.
    pub storage: Storage,
    /// Encoding of all its chunks.
    pub encoding: Encoding,
    /// Bounds and counts.
    pub statistics: Statistics,
    /// Traits from its profile, if there is one.
    pub traits: Option<Traits>,
}

/// An encoded chunk of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedChunk {
    /// Encoded bytes.
    pub bytes: Vec<u8>,
    /// Validity words, padded to whole vectors; `None` if every row is valid.
    pub validity: Option<Vec<u32>>,
    /// Rows without padding.
    pub rows: usize,
}

/// Place and checksum of a payload.
#[derive(Debug, Clone, Copy, Default)]
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

/// A file being written; readers see it after [`FileWriter::finish`].
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
    position: u64,
    chunk_rows: Vec<u32>,
    /// The directory up to the number of columns, then the columns.
    head: Fields,
    columns: Fields,
    columns_written: u32,
}

impl FileWriter {
    /// Begins the file of a table with chunks of `chunk_rows` rows.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn create(path: &Path, identity: &TableIdentity, chunk_rows: &[u32]) -> Result<FileWriter> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        // The temporary file is hidden and has the extension of the file, so that filters by extension apply to it.
        let mut name = format!(".{}-{}.", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed)).into_bytes();
        name.extend_from_slice(path.file_name().unwrap_or_default().as_bytes());
        let temporary = path.with_file_name(OsString::from_vec(name));
        let file = File::create(&temporary).map_err(|error| FileError::io(&temporary, error))?;
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

    /// Writes a column: its head, the dictionary of a string column, its chunks. After an error the file is without the
    /// column; others may follow unless it is [`FileError::Io`].
    ///
    /// # Errors
    /// [`FileError::Io`]; [`FileError::Damaged`] if the rows of the chunks are not those of the file; errors of
    /// `chunks`.
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
            None => Piece::default(),
        };
        strings.write(&mut fields);
        let mut expected = self.chunk_rows.clone().into_iter();
        let mismatch = |path: &Path| {
            let place = format!("column '{}'", column.name);
            FileError::damaged(path, place, "its chunks have other rows than the chunks of the file")
        };
        for chunk in chunks {
            let chunk = chunk?;
            if expected.next().is_none_or(|rows| rows as usize != chunk.rows) {
                return Err(mismatch(&self.path).into());
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
        if expected.next().is_some() {
            return Err(mismatch(&self.path).into());
        }
        self.columns.0.append(&mut fields.0);
        self.columns_written += 1;
        Ok(())
    }

    /// Writes the directory and renames the file; returns its bytes.
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
        let file = self.file.take().expect("only `finish` takes it");
        let done = file.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_all());
        let done = done.and_then(|()| std::fs::rename(&self.temporary, &self.path));
        done.map(|()| self.position).map_err(|error| FileError::io(&self.path, error))
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
        let file = self.file.as_mut().expect("only `finish` takes it");
        file.write_all(bytes).map_err(|error| FileError::io(&self.temporary, error))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // `finish` renames the temporary file; after a failure it has no use.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// A column file whose directory was checked.
#[derive(Debug)]
pub struct EncodedFile {
    path: PathBuf,
    file: File,
    directory: Directory,
}

impl EncodedFile {
    /// Opens a file of a table.
    ///
    /// # Errors
    /// [`FileError::Version`] for another version of the format, [`FileError::Stale`] for another version of the table,
    /// [`FileError::Damaged`] if the directory differs from the written one.
    pub fn open(path: &Path, identity: &TableIdentity) -> Result<EncodedFile> {
        let io = |error| FileError::io(path, error);
        let damaged = |place: &str, reason: &str| FileError::damaged(path, place, reason);
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        if length < HEAD_BYTES + TAIL_BYTES {
            return Err(damaged("its end", "the file is shorter than an empty one"));
        }
        let head = read_at(&file, 0, HEAD_BYTES as usize).map_err(io)?;
        if head[..8] != MAGIC[..] {
            return Err(damaged("its beginning", "it is not a file of encoded columns"));
        }
        let mut fields = FieldReader(&head[8..]);
        let found = fields.u32().unwrap_or_default();
        if found != FORMAT_VERSION {
            return Err(FileError::Version { path: path.to_path_buf(), found });
        }
        if fields.u32() != Some(0) {
            return Err(damaged("its beginning", "the bytes after the version are not zeros"));
        }
        let tail_at = length - TAIL_BYTES;
        let tail = read_at(&file, tail_at, TAIL_BYTES as usize).map_err(io)?;
        let mut fields = FieldReader(&tail);
        let (start, checksum, again) = (fields.u64(), fields.u32(), fields.u32());
        let start = start.filter(|start| (HEAD_BYTES..=tail_at).contains(start));
        let (Some(start), Some(FORMAT_VERSION), true) = (start, again, fields.0 == MAGIC) else {
            return Err(damaged("its end", "it was cut off or never finished"));
        };
        let directory = read_at(&file, start, (tail_at - start) as usize).map_err(io)?;
        if Some(crc32fast::hash(&directory)) != checksum {
            return Err(damaged("the directory", "its checksum differs"));
        }
        let directory = Directory::read(&directory, start)
            .ok_or_else(|| damaged("the directory", "its fields are no directory"))?;
        if directory.identity != *identity {
            let name = |identity: &TableIdentity| format!("{} {}", identity.table, identity.version);
            let (found, wanted) = (name(&directory.identity), name(identity));
            return Err(FileError::Stale { path: path.to_path_buf(), found, wanted });
        }
        Ok(EncodedFile { path: path.to_path_buf(), file, directory })
    }

    /// Rows of each chunk.
    pub fn chunk_rows(&self) -> &[u32] {
        &self.directory.chunk_rows
    }

    /// The columns.
    pub fn columns(&self) -> &[EncodedColumn] {
        &self.directory.columns
    }

    /// Reads the dictionary of a column of strings; `None` for other columns.
    ///
    /// # Errors
    /// [`FileError::Damaged`] names the column if its strings differ from the written ones.
    pub fn strings(&self, column: usize) -> Result<Option<Dictionary>> {
        let Some(piece) = &self.directory.strings[column] else { return Ok(None) };
        let place = format!("the strings of column '{}'", self.columns()[column].name);
        let bytes = self.payload(piece, piece.bytes, &place)?;
        let not_ascending = || FileError::damaged(&self.path, place, "they are not strings in ascending order");
        strings(&bytes).map(Some).ok_or_else(not_ascending)
    }

    /// The error of a chunk with a valid checksum and invalid bytes.
    pub(crate) fn damaged(&self, column: usize, chunk: usize, reason: &str) -> FileError {
        FileError::damaged(&self.path, self.place(column, chunk), reason)
    }

    fn place(&self, column: usize, chunk: usize) -> String {
        format!("column '{}', chunk {chunk}", self.columns()[column].name)
    }

    /// Reads an encoded chunk of a column.
    ///
    /// # Errors
    /// [`FileError::Damaged`] names column and chunk if the bytes differ from the written ones.
    pub fn chunk(&self, column: usize, chunk: usize) -> Result<EncodedChunk> {
        let (has_validity, piece) = self.directory.chunks[column][chunk];
        let rows = self.chunk_rows()[chunk] as usize;
        let place = self.place(column, chunk);
        let mut bytes = self.payload(&piece, payload_bytes(piece.bytes, has_validity, rows), &place)?;
        let validity = has_validity.then(|| {
            let words = bytes.split_off((piece.bytes as usize).next_multiple_of(16));
            words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
        });
        bytes.truncate(piece.bytes as usize);
        Ok(EncodedChunk { bytes, validity, rows })
    }

    fn payload(&self, piece: &Piece, length: u64, place: &str) -> Result<Vec<u8>> {
        let bytes = read_at(&self.file, piece.position, length as usize);
        let bytes = bytes.map_err(|error| FileError::io(&self.path, error))?;
        if crc32fast::hash(&bytes) != piece.checksum {
            return Err(FileError::damaged(&self.path, place, "its checksum differs"));
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

/// The directory of a file.
#[derive(Debug)]
struct Directory {
    identity: TableIdentity,
    chunk_rows: Vec<u32>,
    columns: Vec<EncodedColumn>,
    /// The strings of each string column.
    strings: Vec<Option<Piece>>,
    /// By column and chunk: whether there are validity words, and the payload.
    chunks: Vec<Vec<(bool, Piece)>>,
}

impl Directory {
    /// Reads a directory whose payloads end before `end`.
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
                // The test of `bytes` excludes overflow of the length.
                let length = (piece.bytes <= end).then(|| payload_bytes(piece.bytes, has_validity, *rows as usize))?;
                inside(piece.position, length).then_some(())?;
                chunks.push((has_validity, piece));
            }
            directory.chunks.push(chunks);
        }
        fields.0.is_empty().then_some(directory)
    }
}
