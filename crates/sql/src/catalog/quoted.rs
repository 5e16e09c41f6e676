//! Values of several lines in CSV files.
//!
//! Readers that share a file each begin behind the first line break of their part, which is wrong if that break stands
//! between quotes. Files that are large enough to be shared are looked through once; where one of the table's has such
//! a break, its files are read by one reader each (`format.newlines_in_values`), and their columns are inferred here:
//! DataFusion infers them from pieces that end with any line break.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::csv::reader::Format;
use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::logical_expr::CreateExternalTable;
use futures::StreamExt;

use super::memory::FileMemory;

/// Bytes looked at between two looks at whether anyone still waits.
const PIECE: usize = 1 << 20;
/// Files looked through at once.
const AT_ONCE: usize = 8;
/// Records that columns are inferred from, as many as DataFusion takes.
const RECORDS: usize = 1000;
/// The option that says that values may have line breaks.
const OPTION: &str = "format.newlines_in_values";

/// Characters that mean something.
#[derive(Debug, Clone, Copy)]
struct Characters {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
}

impl Characters {
    fn of(command: &CreateExternalTable) -> Characters {
        Characters {
            delimiter: character(command, "delimiter").unwrap_or(b','),
            quote: character(command, "quote").unwrap_or(b'"'),
            escape: character(command, "escape"),
        }
    }
}

/// An option that is one character.
fn character(command: &CreateExternalTable, name: &str) -> Option<u8> {
    command.options.get(&format!("format.{name}"))?.bytes().next()
}

/// Looks through the CSV files of a table and notes in its options whether values have line breaks, if the user has not
/// said so.
pub(super) async fn tell(state: &dyn Session, command: &mut CreateExternalTable, files: &[PathBuf]) {
    let options = state.config_options();
    let least = options.optimizer.repartition_file_min_size as u64;
    let is_compressed = command.options.get("format.compression").is_some_and(|name| name != "uncompressed");
    if command.options.contains_key(OPTION) || options.catalog.newlines_in_values || is_compressed {
        return;
    }
    let characters = Characters::of(command);
    let memory = state.config().get_extension::<FileMemory>();
    let large = files.iter().filter(|path| path.metadata().is_ok_and(|file| file.len() >= least));
    let looks = large.cloned().collect::<Vec<_>>().into_iter().map(|path| {
        let memory = memory.clone();
        async move {
            let look = |path: PathBuf| async move {
                let stop = Stop::default();
                let flag = stop.0.clone();
                let found = tokio::task::spawn_blocking(move || has_breaks(&path, characters, &flag)).await;
                found.unwrap_or_default()
            };
            match memory {
                Some(memory) => memory.breaks(&path, look).await,
                None => look(path).await,
            }
        }
    });
    if futures::stream::iter(looks).buffer_unordered(AT_ONCE).any(|found| async move { found }).await {
        command.options.insert(OPTION.into(), "true".into());
    }
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
    let Characters { delimiter, quote, escape } = Characters::of(command);
    let mut format = Format::default()
        .with_header(is_set("has_header", state.config_options().catalog.has_header))
        .with_delimiter(delimiter)
        .with_quote(quote)
        .with_truncated_rows(is_set("truncated_rows", false));
    format = escape.into_iter().fold(format, Format::with_escape);
    format = character(command, "comment").into_iter().fold(format, Format::with_comment);
    let compression: FileCompressionType = option("compression").unwrap_or("uncompressed").parse().ok()?;
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

/// Ends a look when nobody waits for it any more.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a quoted value of the file has a line break. A file that cannot be read is for its readers to judge.
fn has_breaks(path: &Path, characters: Characters, stop: &AtomicBool) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let (mut piece, mut look) = (vec![0; PIECE], Look::new(characters));
    loop {
        match file.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(_) if stop.load(Ordering::Relaxed) => return false,
            Ok(bytes) if look.finds(&piece[..bytes]) => return true,
            Ok(_) => {}
        }
    }
}

/// A look through a file, piece after piece.
struct Look {
    characters: Characters,
    quoted: bool,
    /// The byte before the piece, a line break at the front of a file.
    last: u8,
    /// Whether the byte before the piece closed a value or is escaped.
    closed: bool,
    escaped: bool,
}

impl Look {
    fn new(characters: Characters) -> Look {
        Look { characters, quoted: false, last: b'\n', closed: false, escaped: false }
    }

    /// Whether a line break stands between quotes in the next piece.
    fn finds(&mut self, piece: &[u8]) -> bool {
        let Characters { delimiter, quote, escape } = self.characters;
        let mut at = 0;
        while at < piece.len() {
            // Nothing matters outside of quotes but the next one, and in them only what may end them and line breaks.
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
            if std::mem::take(&mut self.escaped) {
                self.last = byte;
                continue;
            }
            if self.quoted && byte == b'\n' {
                return true;
            }
            if self.quoted && byte != quote {
                self.escaped = true;
            } else if self.quoted {
                (self.quoted, self.closed) = (false, true);
            } else {
                // Within a value a quote is a character like others, unless it follows one that closed: then it is one.
                self.quoted = self.closed || self.last == delimiter || matches!(self.last, b'\n' | b'\r');
                self.closed = false;
            }
            self.last = byte;
        }
        if at < piece.len() {
            (self.closed, self.escaped) = (false, false);
            self.last = piece[piece.len() - 1];
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_between_quotes_are_found_whatever_the_pieces() {
        let plain = Characters { delimiter: b',', quote: b'"', escape: None };
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
            ("a\n\"x\\\\\"\n\"y\"\n", escaped, false),
        ] {
            for size in 1..=text.len() {
                let mut look = Look::new(characters);
                let found = text.as_bytes().chunks(size).any(|piece| look.finds(piece));
                assert_eq!(found, expected, "{text:?} in pieces of {size}");
            }
        }
    }
}
