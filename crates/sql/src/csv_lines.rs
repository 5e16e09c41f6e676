//! Lines and records of CSV files: the characters that a table's files are written with, and a count byte by byte.
//!
//! A record begins after blank lines and comments; `csv-core` has the line of a record's end alone.

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::logical_expr::CreateExternalTable;

/// Characters that mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Characters {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    pub(crate) escape: Option<u8>,
    pub(crate) comment: Option<u8>,
}

impl Characters {
    pub(crate) fn of(command: &CreateExternalTable) -> Characters {
        Characters {
            delimiter: character(command, "delimiter").unwrap_or(b','),
            quote: character(command, "quote").unwrap_or(b'"'),
            escape: character(command, "escape"),
            comment: character(command, "comment"),
        }
    }
}

/// An option that is one character.
fn character(command: &CreateExternalTable, name: &str) -> Option<u8> {
    command.options.get(&format!("format.{name}"))?.bytes().next()
}

/// How the files of a command are compressed.
pub(crate) fn compression(command: &CreateExternalTable) -> FileCompressionType {
    let name = command.options.get("format.compression").map_or("", String::as_str);
    name.parse().unwrap_or(FileCompressionType::UNCOMPRESSED)
}

/// The quoted values of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quotes {
    /// Whether a quoted value has a line break.
    pub(crate) breaks: bool,
    /// The line of a quote that is never closed.
    pub(crate) open: Option<u64>,
}

/// Counts lines and records of a CSV file, byte after byte.
#[derive(Debug)]
pub(crate) struct Lines {
    characters: Characters,
    /// The line of the byte that comes next, from 1.
    pub(crate) line: u64,
    /// Records that have begun; blank lines and comments are none.
    pub(crate) records: u64,
    /// The line of the quote within whose value the byte stands.
    pub(crate) open: Option<u64>,
    begins: bool,
    /// Whether the byte is one of a comment.
    pub(crate) is_comment: bool,
    field_begins: bool,
    closed: bool,
    escaped: bool,
}

impl Lines {
    pub(crate) fn new(characters: Characters) -> Lines {
        Lines {
            characters,
            line: 1,
            records: 0,
            open: None,
            begins: true,
            is_comment: false,
            field_begins: true,
            closed: false,
            escaped: false,
        }
    }

    /// Takes a byte; true if a record begins with it.
    pub(crate) fn next(&mut self, byte: u8) -> bool {
        let Characters { delimiter, quote, escape, comment } = self.characters;
        let escaped = std::mem::take(&mut self.escaped);
        let mut is_first = false;
        if self.begins && byte != b'\n' && byte != b'\r' {
            self.begins = false;
            self.is_comment = Some(byte) == comment;
            is_first = !self.is_comment;
            self.records += u64::from(is_first);
        }
        if byte == b'\n' {
            self.line += 1;
            if self.open.is_none() || self.is_comment {
                (self.begins, self.field_begins, self.open, self.is_comment) = (true, true, None, false);
            }
        } else if self.open.is_some() {
            self.escaped = !escaped && Some(byte) == escape;
            self.closed = !escaped && byte == quote;
            if self.closed {
                self.open = None;
            }
        } else if !self.is_comment {
            // Within a value a quote is a character like others, unless it follows one that closed: then it is one.
            if byte == quote && (self.field_begins || self.closed) {
                self.open = Some(self.line);
            }
            (self.field_begins, self.closed) = (byte == delimiter, false);
        }
        is_first
    }
}
