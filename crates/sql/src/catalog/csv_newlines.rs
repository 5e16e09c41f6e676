//! Quoted values of CSV files: those of several lines, and those that never end.
//!
//! Each file of this machine is looked through once, before a table is made of it. Readers that share files each begin
//! behind the first line break of their part, which is wrong if that break stands between quotes: where a file of a
//! table has such a break, its files are read by one reader each (`format.newlines_in_values`), and their columns are
//! inferred here: DataFusion infers them from pieces that end with any line break. A quote that is never closed would
//! make one value of the rest of the file; it is an error with the line on which it stands.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::csv::reader::Format;
use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::logical_expr::CreateExternalTable;
use futures::StreamExt;

use super::memory::{FileMemory, Stop};
use crate::csv_lines::{Characters, Lines, Quotes, compression};
use crate::diagnose::IN_DEFINITION;
use crate::error::{Result, SqlError};
use crate::locations::shown;

/// Bytes that are read between two looks at the stop flag.
const PIECE: usize = 1 << 20;
/// Files looked through at once.
const AT_ONCE: usize = 8;
/// Records that columns are inferred from, as many as DataFusion takes.
const RECORDS: usize = 1000;
/// The option that says that values may have line breaks.
pub(super) const OPTION: &str = "format.newlines_in_values";

/// Looks through the CSV files of a table and notes in its options whether values have line breaks, if the user has not
/// said so.
///
/// # Errors
/// [`SqlError::FileRow`] for a quote that is never closed.
pub(super) async fn check(state: &dyn Session, command: &mut CreateExternalTable, files: &[PathBuf]) -> Result<()> {
    // A terminator of the user's is the reader's to find.
    if command.options.contains_key("format.terminator") {
        return Ok(());
    }
    let characters = Characters::of(command);
    let compression = compression(command);
    let memory = state.config().get_extension::<FileMemory>();
    let looks = files.iter().cloned().map(|path| {
        let memory = memory.clone();
        async move {
            let look = |path: PathBuf| async move {
                let stop = Stop::default();
                let flag = stop.flag();
                let found = tokio::task::spawn_blocking(move || look_through(&path, characters, compression, &flag));
                found.await.unwrap_or_default()
            };
            let found = match memory {
                Some(memory) => memory.quotes.find(&path, characters, look).await,
                None => look(path.clone()).await,
            };
            (path, found)
        }
    });
    let mut looks = futures::stream::iter(looks).buffered(AT_ONCE);
    let mut breaks = false;
    while let Some((path, found)) = looks.next().await {
        if let Some(line) = found.open {
            let quote = char::from(characters.quote);
            let reason = format!(
                "a value begins with {quote} here and has no end; close it, or name the character that quotes values: \
                 CREATE EXTERNAL TABLE … OPTIONS (format.quote '…'), {IN_DEFINITION} quote"
            );
            return Err(SqlError::FileRow { path: shown(&path), line, column: None, reason });
        }
        breaks |= found.breaks;
    }
    if breaks && !command.options.contains_key(OPTION) {
        command.options.insert(OPTION.into(), "true".into());
    }
    Ok(())
}

/// The columns of a table whose CSV files have values of several lines; none where DataFusion may infer them.
pub(super) async fn infer(state: &dyn Session, command: &CreateExternalTable, files: &[PathBuf]) -> Option<Schema> {
    let option = |name: &str| command.options.get(&format!("format.{name}")).map(String::as_str);
    let is_set = |name: &str, default: bool| option(name).map_or(default, |value| value == "true");
    let has_folders = |path: &PathBuf| path.parent().is_some_and(|folder| folder.to_string_lossy().contains('='));
    let is_declared = !command.schema.fields().is_empty() || !command.table_partition_cols.is_empty();
    if !is_set("newlines_in_values", state.config_options().catalog.newlines_in_values)
        || is_declared
        || option("null_regex").is_some()
        || files.iter().any(has_folders)
    {
        return None;
    }
    let Characters { delimiter, quote, escape, comment } = Characters::of(command);
    let mut format = Format::default()
        .with_header(is_set("has_header", state.config_options().catalog.has_header))
        .with_delimiter(delimiter)
        .with_quote(quote)
        .with_truncated_rows(is_set("truncated_rows", false));
    format = escape.into_iter().fold(format, Format::with_escape);
    format = comment.into_iter().fold(format, Format::with_comment);
    let compression = compression(command);
    let most = option("schema_infer_max_rec").and_then(|most| most.parse().ok()).unwrap_or(RECORDS);
    let files = files.to_vec();
    let schemas = move || -> Option<Vec<Schema>> {
        let (mut schemas, mut left) = (Vec::new(), most);
        for path in files {
            let reader = compression.convert_read(File::open(path).ok()?).ok()?;
            let (schema, records) = format.infer_schema(reader, Some(left)).ok()?;
            schemas.push(schema);
            left = left.saturating_sub(records);
            if left == 0 {
                break;
            }
        }
        Some(schemas)
    };
    Schema::try_merge(tokio::task::spawn_blocking(schemas).await.ok()??).ok()
}

/// Looks through a file. One that cannot be read is for its readers to judge.
fn look_through(path: &Path, characters: Characters, compression: FileCompressionType, stop: &AtomicBool) -> Quotes {
    let open = || File::open(path).ok().and_then(|file| compression.convert_read(file).ok());
    let Some(mut file) = open() else { return Quotes::default() };
    let (mut piece, mut look) = (vec![0; PIECE], Look::new(characters));
    let mut breaks = false;
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Err(_) => return Quotes { breaks, open: None },
            Ok(_) if stop.load(Ordering::Relaxed) => return Quotes::default(),
            Ok(bytes) => breaks |= look.finds(&piece[..bytes]),
        }
    }
    // Quotes in comments quote nothing. Comments and lines are counted only if a quote may be open or stand in one.
    if !look.quoted && (characters.comment.is_none() || !look.has_quotes) {
        return Quotes { breaks, open: None };
    }
    let (mut lines, again) = (Lines::new(characters), open());
    if let Some(mut file) = again {
        while let Ok(bytes @ 1..) = file.read(&mut piece) {
            piece[..bytes].iter().for_each(|byte| {
                lines.next(*byte);
            });
            if stop.load(Ordering::Relaxed) {
                return Quotes::default();
            }
        }
    }
    Quotes { breaks, open: lines.open }
}

/// A look through a file, piece after piece.
struct Look {
    characters: Characters,
    quoted: bool,
    /// Whether there was a quoted value.
    has_quotes: bool,
    /// The byte before the piece, a line break at the front of a file.
    last: u8,
    /// Whether the byte before the piece closed a value or is escaped.
    closed: bool,
    escaped: bool,
}

impl Look {
    fn new(characters: Characters) -> Look {
        Look { characters, quoted: false, has_quotes: false, last: b'\n', closed: false, escaped: false }
    }

    /// Whether a line break stands between quotes in the next piece.
    fn finds(&mut self, piece: &[u8]) -> bool {
        let Characters { delimiter, quote, escape, .. } = self.characters;
        let (mut at, mut found) = (0, false);
        while at < piece.len() {
            // Outside of quotes only the next quote matters; within them, line breaks and what may end them.
            let rest = &piece[at..];
            let next = match (self.quoted, escape) {
                (false, _) => memchr::memchr(quote, rest),
                (true, None) => memchr::memchr2(quote, b'\n', rest),
                (true, Some(escape)) => memchr::memchr3(quote, b'\n', escape, rest),
            };
            let Some(next) = next else { break };
            if next > 0 {
                (self.closed, self.escaped, self.last) = (false, false, rest[next - 1]);
            }
            let byte = rest[next];
            at += next + 1;
            found |= self.quoted && byte == b'\n';
            if std::mem::take(&mut self.escaped) || self.quoted && byte == b'\n' {
                // Neither ends the value.
            } else if self.quoted && byte != quote {
                self.escaped = true;
            } else if self.quoted {
                (self.quoted, self.closed) = (false, true);
            } else {
                // Within a value a quote is a character like others, unless it follows one that closed: then it is one.
                self.quoted = self.closed || self.last == delimiter || matches!(self.last, b'\n' | b'\r');
                self.closed = false;
                self.has_quotes |= self.quoted;
            }
            self.last = byte;
        }
        if at < piece.len() {
            (self.closed, self.escaped) = (false, false);
            self.last = piece[piece.len() - 1];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_between_quotes_are_found_whatever_the_pieces() {
        let plain = Characters { delimiter: b',', quote: b'"', escape: None, comment: None };
        let escaped = Characters { escape: Some(b'\\'), ..plain };
        for (text, characters, expected) in [
            ("a,b\n1,2\n", plain, false),
            ("a,b\n\"x\",\"y\"\n\"z\",1\n", plain, false),
            ("a,b\n1,\"two\nlines\"\n", plain, true),
            ("\"two\nlines\",1\n", plain, true),
            ("a\n5\" pipe\nx\n", plain, false),
            ("a,b\n5\" pipe,\"two\nlines\"\n", plain, true),
            ("a\n\"say \"\"so\"\"\"\nx\n", plain, false),
            ("a\n\"say \"\"so\n\"\"\"\nx\n", plain, true),
            ("a\r\n\"x\"\r\n\"y\"\r\n", plain, false),
            ("a\n\"x\\\"\"\n1\n", escaped, false),
            ("a\n\"x\\\"\n\"\n", escaped, true),
            ("a\n\"x\\\n\"\n", escaped, true),
            ("a\n\"x\\\\\"\n\"y\"\n", escaped, false),
        ] {
            for size in 1..=text.len() {
                let mut look = Look::new(characters);
                let found = text.as_bytes().chunks(size).fold(false, |found, piece| found | look.finds(piece));
                assert_eq!(found, expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_has_its_line() {
        let plain = Characters { delimiter: b',', quote: b'"', escape: None, comment: None };
        let commented = Characters { comment: Some(b'#'), ..plain };
        let escaped = Characters { escape: Some(b'\\'), ..plain };
        for (text, characters, expected) in [
            ("a,b\n1,x\n", plain, None),
            ("a,b\n1,\"x\n2,y\n3,z\n", plain, Some(2)),
            ("a,b\n1,x\n2,\"y", plain, Some(3)),
            ("a,b\n1,\"two\nlines\"\n3,\"z\n4,z\n", plain, Some(4)),
            ("a,b\n1,\"\"\"\n2,y\n", plain, Some(2)),
            ("a,b\n1,5\" pipe\n2,y\n", plain, None),
            ("a,b\n1,\"x\\\"\n2,y\n", escaped, Some(2)),
            ("a,b\n1,\"x\\\"\"\n2,y\n", escaped, None),
            ("a,b\n# it's,\"so\n1,x\n", commented, None),
            ("a,b\n# it's,\"so\n1,\"x\n", commented, Some(3)),
        ] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            let stop = AtomicBool::new(false);
            let found = look_through(file.path(), characters, FileCompressionType::UNCOMPRESSED, &stop);
            assert_eq!(found.open, expected, "{text:?}");
        }
    }
}
