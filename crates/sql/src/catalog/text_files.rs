//! How a statement of a cube's definition reads the text files that it names by path.
//!
//! What the definition says of delimiter, header and encoding are options of these files; columns are text as it is
//! written where the cube asks for that. Files of other encodings are copied into UTF-8 once for each load.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::DFSchema;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::ListingTable;
use datafusion::logical_expr::CreateExternalTable;
use parking_lot::Mutex;
use tempfile::TempDir;
use warpcube_cube::define::Encoding;

use crate::access::Access;
use crate::error::{Result, SqlError};
use crate::formats::{FileType, split_compression};
use crate::locations::is_pattern;

tokio::task_local! {
    /// How the statement that is being planned reads text files.
    pub(crate) static TEXT_FILES: Arc<TextReading>;
}

/// Records by which DataFusion tells types; cubes of older versions have those types.
const RECORDS: &str = "1000";

/// Columns of text files that are text as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenColumns {
    /// All.
    All,
    /// Some of each file, by the name that the statement has for it; types of others are told by their values.
    Some(HashMap<String, BTreeSet<String>>),
    /// None: types are those of the first records, codes with leading zeros among the numbers.
    OfFirstRecords,
}

/// How a statement reads text files.
#[derive(Debug)]
pub(crate) struct TextReading {
    pub(crate) delimiter: Option<char>,
    pub(crate) quote: Option<char>,
    pub(crate) header: Option<bool>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) columns: WrittenColumns,
    pub(crate) copies: Arc<Copies>,
}

/// Copies of files in UTF-8, by file; they are removed with this.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<HashMap<PathBuf, (TempDir, PathBuf)>>);

impl TextReading {
    /// How the statement that is being planned reads text files, if it is one of a cube's definition.
    pub(super) fn current() -> Option<Arc<TextReading>> {
        TEXT_FILES.try_with(Arc::clone).ok()
    }

    /// Puts into the command of text files what the definition says of them.
    ///
    /// # Errors
    /// [`SqlError::FileFormat`] for several files of another encoding, and for one that is not of the encoding or whose
    /// copy would lie outside of the folders that are allowed.
    pub(super) fn prepare(&self, command: &mut CreateExternalTable, sample: &str, access: &Access) -> Result<()> {
        let mut option = |name: &str, value: String| command.options.insert(format!("format.{name}"), value);
        if let Some(delimiter) = self.delimiter {
            option("delimiter", delimiter.to_string());
        }
        if let Some(quote) = self.quote {
            option("quote", quote.to_string());
        }
        if let Some(header) = self.header {
            option("has_header", header.to_string());
        }
        if self.columns == WrittenColumns::OfFirstRecords {
            option("schema_infer_max_rec", RECORDS.to_string());
        }
        let Some(encoding) = self.encoding.filter(|encoding| *encoding != Encoding::Utf8) else { return Ok(()) };
        let place = command.locations.first().cloned().unwrap_or_default();
        if is_pattern(&place) || Path::new(sample) != Path::new(&place) {
            let reason = format!("encoding: {encoding} is of one file; name each file, or convert them to UTF-8");
            return Err(SqlError::FileFormat { path: place, reason });
        }
        let mut copies = self.copies.0.lock();
        let copy = match copies.get(Path::new(sample)) {
            Some((_, copy)) => copy.clone(),
            None => {
                let failed = |error: io::Error| SqlError::FileFormat {
                    path: place.clone(),
                    reason: format!("it cannot be read as {encoding}: {error}"),
                };
                let folder = tempfile::Builder::new().prefix("warpcube-").tempdir().map_err(failed)?;
                if access.check_path(folder.path()).is_err() {
                    let reason = format!(
                        "its copy in UTF-8 would lie in {}, outside of warpcube.allowed_paths: convert it to UTF-8, or \
                         name an allowed folder in TMPDIR",
                        std::env::temp_dir().display()
                    );
                    return Err(SqlError::FileFormat { path: place, reason });
                }
                let name = Path::new(split_compression(sample).0).file_name().unwrap_or_default();
                let copy = folder.path().join(name);
                copy_in_utf8(Path::new(sample), encoding, &copy).map_err(failed)?;
                copies.insert(PathBuf::from(sample), (folder, copy.clone()));
                copy
            }
        };
        command.locations = vec![copy.display().to_string()];
        Ok(())
    }

    /// The command of a table over text files whose columns are known, with those as text that are so as written; none
    /// if there is nothing to change.
    pub(super) fn as_written(
        &self,
        name: &str,
        command: &CreateExternalTable,
        listing: &ListingTable,
    ) -> Result<Option<CreateExternalTable>> {
        let is_written = |column: &str| match &self.columns {
            WrittenColumns::All => true,
            WrittenColumns::Some(tables) => tables.get(name).is_some_and(|columns| columns.contains(column)),
            WrittenColumns::OfFirstRecords => false,
        };
        let schema = TableProvider::schema(listing);
        let keys: Vec<String> = listing.options().table_partition_cols.iter().map(|(key, _)| key.clone()).collect();
        let is_text = |field: &Field| match field.data_type() {
            DataType::Dictionary(_, values) => values.is_string(),
            other => other.is_string(),
        };
        let is_changed = |field: &Field| is_written(field.name()) && !is_text(field);
        if !schema.fields().iter().any(|field| is_changed(field)) {
            return Ok(None);
        }
        let of_field = |field: &Arc<Field>| match is_changed(field) {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
            false => field.clone(),
        };
        let fields: Vec<Arc<Field>> = schema.fields().iter().map(of_field).collect();
        let mut written = command.clone();
        written.schema = Arc::new(DFSchema::try_from(Schema::new(fields))?);
        written.table_partition_cols = keys;
        Ok(Some(written))
    }
}

/// True if a name in place of a table means text files with delimiters.
pub(crate) fn is_text_file(path: &Path) -> bool {
    FileType::by_extension(&path.to_string_lossy()).is_some_and(|(kind, _)| kind.name == "CSV")
}

/// Copies a file, which may be compressed, in UTF-8.
fn copy_in_utf8(path: &Path, encoding: Encoding, copy: &Path) -> io::Result<()> {
    let compression = split_compression(&path.to_string_lossy().to_lowercase()).1.unwrap_or_default();
    let compression = compression.parse().unwrap_or(FileCompressionType::UNCOMPRESSED);
    let file = compression.convert_read(File::open(path)?).map_err(io::Error::other)?;
    let mut out = BufWriter::new(File::create(copy)?);
    let mut write = |character: char| out.write_all(character.encode_utf8(&mut [0; 4]).as_bytes());
    let mut bytes = BufReader::new(file).bytes();
    match encoding {
        Encoding::Utf16 => {
            let mut failed = None;
            let mut is_big = false;
            let mut is_first = true;
            let units = std::iter::from_fn(|| {
                let mut next = || match bytes.next()? {
                    Ok(byte) => Some(byte),
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                };
                let pair = [next()?, next()?];
                let is_mark = std::mem::take(&mut is_first);
                is_big |= is_mark && pair == [0xfe, 0xff];
                Some(if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
            });
            for character in char::decode_utf16(units) {
                write(character.map_err(|_| io::Error::other("a character is cut in two"))?)?;
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Encoding::Utf8 | Encoding::Latin1 | Encoding::Windows1252 => {
            for byte in bytes {
                write(match byte? {
                    byte @ 0x80..=0x9f if encoding == Encoding::Windows1252 => WINDOWS_1252[usize::from(byte) - 0x80],
                    byte => char::from(byte),
                })?;
            }
        }
    }
    out.flush()
}

/// The characters of Windows-1252 for 0x80 to 0x9f; the five that it does not define are controls.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_encodings_are_copied_in_utf_8() {
        let folder = tempfile::tempdir().unwrap();
        let utf16 = |text: &str, is_big: bool| -> Vec<u8> {
            let bytes = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            text.encode_utf16().flat_map(bytes).collect()
        };
        let text = "\u{feff}a;é\n€;𝄞\n";
        for (encoding, bytes, expected) in [
            (Encoding::Latin1, b"a;\xe9\n".to_vec(), "a;é\n"),
            (Encoding::Windows1252, b"\x80;\xe9\n".to_vec(), "€;é\n"),
            (Encoding::Utf16, utf16(text, false), text),
            (Encoding::Utf16, utf16(text, true), text),
            (Encoding::Utf16, utf16(&text[3..], false), &text[3..]),
        ] {
            let (from, to) = (folder.path().join("from.csv"), folder.path().join("to.csv"));
            std::fs::write(&from, bytes).unwrap();
            copy_in_utf8(&from, encoding, &to).unwrap();
            assert_eq!(std::fs::read_to_string(&to).unwrap(), expected, "{encoding}");
        }
    }
}
