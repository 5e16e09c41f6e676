//! Finding the line and the column of an error in a CSV file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::csv::ReaderBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::{IN_DEFINITION, Search};
use crate::csv_lines::{Characters, Lines};
use crate::error::{SqlError, one_line};
use crate::text_formats::{Failed, TextForm, declared, read_schema};

/// How the types of columns are said.
const DECLARED: &str = "CREATE EXTERNAL TABLE t (column type, …) STORED AS CSV LOCATION '…'";

/// What helps where a column's type does not hold a value.
pub(super) const REMEDY: &str = "declare the column of a type that holds it";

/// How a text file with columns is read.
#[derive(Debug, Clone)]
pub(super) struct Csv {
    /// The columns; none where they are still to be inferred, and only their number is looked at.
    pub(super) schema: Option<SchemaRef>,
    pub(super) header: bool,
    pub(super) delimiter: u8,
    pub(super) quote: u8,
    pub(super) escape: Option<u8>,
    pub(super) comment: Option<u8>,
    pub(super) truncated: bool,
    pub(super) compression: FileCompressionType,
}

impl Csv {
    /// Reads the file until it gives an error; of its columns those at `columns`, or all.
    pub(super) fn read(
        &self,
        path: &str,
        file: File,
        columns: Option<Vec<usize>>,
        search: &Search,
    ) -> Option<SqlError> {
        let reader = self.compression.convert_read(file).ok()?;
        let mut reader = BufReader::new(reader);
        if let Err(error) = reader.fill_buf() {
            let reason = format!("it cannot be read: {}", one_line(&error.to_string()));
            return Some(SqlError::FileCorrupt { path: path.to_string(), reason });
        }
        let schema = match &self.schema {
            Some(schema) => schema.clone(),
            None => text_columns(&mut reader, self.delimiter)?,
        };
        if let Some(error) = self.repeated_name(path, &mut reader) {
            return Some(error);
        }
        // Without the header's names the first line is a row like others, so its width is that of all.
        let header = self.header && self.schema.is_some();
        let mut builder = ReaderBuilder::new(read_schema(&schema, TextForm::Csv))
            .with_header(header)
            .with_delimiter(self.delimiter)
            .with_quote(self.quote)
            .with_truncated_rows(self.truncated);
        if let Some(escape) = self.escape {
            builder = builder.with_escape(escape);
        }
        if let Some(comment) = self.comment {
            builder = builder.with_comment(comment);
        }
        if let Some(columns) = columns {
            builder = builder.with_projection(columns);
        }
        // What `text_columns` looked at is still in the buffer.
        let reader = match builder.build_buffered(reader) {
            Ok(reader) => reader,
            Err(error) => return Some(self.place(path, &schema, &error, search)),
        };
        let mut records = u64::from(header);
        for batch in reader.take_while(|_| !search.is_over()) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return Some(self.place(path, &schema, &error, search)),
            };
            if let Some((row, column, reason)) = misfit(&batch, &schema) {
                let record = records + row as u64 + 1;
                let line = self.line_of(path, record, search).unwrap_or(record);
                let reason = format!("{reason}; {REMEDY}: {DECLARED}, {IN_DEFINITION} types");
                return Some(SqlError::FileRow { path: path.to_string(), line, column: Some(column), reason });
            }
            records += batch.num_rows() as u64;
        }
        None
    }

    /// The error of a header with a name twice: columns were inferred one for each name, and rows have more values.
    fn repeated_name(&self, path: &str, reader: &mut impl BufRead) -> Option<SqlError> {
        let inferred = self.schema.as_ref().filter(|_| self.header)?.fields().len();
        let schema = text_columns(reader, self.delimiter)?;
        if schema.fields().len() <= inferred {
            return None;
        }
        let line = reader.fill_buf().ok()?.split(|byte| *byte == b'\n').next()?;
        let row = ReaderBuilder::new(schema).with_delimiter(self.delimiter).with_quote(self.quote).build(line).ok()?;
        let row = row.filter_map(Result::ok).next()?;
        let names: Vec<&str> = row.columns().iter().map(|column| column.as_string::<i32>().value(0)).collect();
        let (_, name) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name))?;
        let reason = format!("two columns are named '{name}'; rename one, or name all of them: {DECLARED}");
        Some(SqlError::FileRow { path: path.to_string(), line: 1, column: None, reason })
    }

    /// Takes the reader's message apart: it knows line and column, in words of its own.
    fn place(&self, path: &str, schema: &Schema, error: &ArrowError, search: &Search) -> SqlError {
        let text = one_line(&error.to_string());
        let number = |before: &str| {
            let from = text.find(before)? + before.len();
            text[from..].split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        // Errors of values count records from 0 and the header as one; those of a record's shape count from 1.
        let Some(record) = number("at line ").map(|row| row + 1).or_else(|| number("for line ")) else {
            return SqlError::FileCorrupt { path: path.to_string(), reason: text };
        };
        let column = number("for column ").or_else(|| number("parsing column "));
        let column = column.and_then(|column| schema.fields().get(column as usize)).map(|field| field.name().clone());
        let reason = text.split(" for column ").next().unwrap_or(&text);
        let reason = reason.trim_start_matches("Csv error: ").trim_start_matches("Parser error: ");
        let reason = reason.replace(&format!(" for line {record}"), "");
        let line = self.line_of(path, record, search).unwrap_or(record);
        let other = self.other_delimiter(path).filter(|_| reason.contains("incorrect number of fields"));
        let reason = match (other, self.begins_as_utf16(path)) {
            (_, true) => {
                format!("{reason}; it is UTF-16, and UTF-8 is read: convert it, {IN_DEFINITION} encoding: utf-16")
            }
            (Some(other), _) => format!(
                "{reason}; its lines have {other:?}: name it, OPTIONS (format.delimiter '{other}'), {IN_DEFINITION} \
                 delimiter: {other:?}"
            ),
            _ if reason.contains("invalid UTF-8") => {
                format!("{reason}; convert the file to UTF-8, {IN_DEFINITION} encoding: windows-1252")
            }
            _ if reason.contains("parsing value") => {
                format!("{reason}; {REMEDY}: {DECLARED}, {IN_DEFINITION} types")
            }
            _ => reason,
        };
        SqlError::FileRow { path: path.to_string(), line, column, reason }
    }

    /// True if a file begins with the byte order mark of UTF-16.
    fn begins_as_utf16(&self, path: &str) -> bool {
        let mut mark = [0; 2];
        let reader = File::open(path).ok().and_then(|file| self.compression.convert_read(file).ok());
        reader.is_some_and(|mut reader| reader.read_exact(&mut mark).is_ok())
            && [[0xff, 0xfe], [0xfe, 0xff]].contains(&mark)
    }

    /// A delimiter that the first line has, if it has none of those that are read.
    fn other_delimiter(&self, path: &str) -> Option<char> {
        let mut reader = BufReader::new(self.compression.convert_read(File::open(path).ok()?).ok()?);
        let line = reader.fill_buf().ok()?.split(|byte| *byte == b'\n').next()?;
        let has = |delimiter: &char| line.contains(&(*delimiter as u8));
        if line.contains(&self.delimiter) { None } else { [';', '|', '\t', ','].into_iter().find(has) }
    }

    /// The line at which a record begins, both counted from 1: quoted values may have several lines, and blank ones and
    /// comments are no records.
    fn line_of(&self, path: &str, record: u64, search: &Search) -> Option<u64> {
        let mut reader = self.compression.convert_read(File::open(path).ok()?).ok()?;
        let mut lines = Lines::new(Characters {
            delimiter: self.delimiter,
            quote: self.quote,
            escape: self.escape,
            comment: self.comment,
        });
        let mut piece = vec![0; 1 << 16];
        while let Ok(bytes @ 1..) = reader.read(&mut piece) {
            if search.is_over() {
                return None;
            }
            if piece[..bytes].iter().any(|byte| lines.next(*byte) && lines.records == record) {
                return Some(lines.line);
            }
        }
        None
    }
}

/// The first record of a batch that has a value which its declared column does not hold: its position, the column and
/// the reason.
fn misfit(batch: &RecordBatch, schema: &Schema) -> Option<(usize, String, String)> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    let misfits = columns.filter_map(|(values, field)| {
        let (_, field) = schema.fields().find(field.name())?;
        match declared(values, field.data_type()) {
            Err(Failed::Misfit(misfit)) => Some((misfit.row, field.name().clone(), misfit.reason)),
            _ => None,
        }
    });
    misfits.min_by_key(|(row, ..)| *row)
}

/// As many columns of text as the first line has; the line stays in the reader's buffer.
fn text_columns(reader: &mut impl BufRead, delimiter: u8) -> Option<SchemaRef> {
    let buffer = reader.fill_buf().ok()?;
    let line = buffer.split(|byte| *byte == b'\n').next()?;
    let mut quoted = false;
    let mut columns = 1;
    for byte in line {
        match *byte {
            b'"' => quoted = !quoted,
            byte if byte == delimiter && !quoted => columns += 1,
            _ => {}
        }
    }
    let field = |column| Field::new(format!("column_{column}"), DataType::Utf8, true);
    Some(Arc::new(Schema::new((1..=columns).map(field).collect::<Vec<_>>())))
}
