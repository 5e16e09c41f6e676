//! Finding the line and the column of an error in a JSON file.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::Search;
use super::csv::REMEDY;
use crate::error::{SqlError, one_line};
use crate::text_formats::{Failed, TextForm, declared, json_reader, read_schema};

/// What stands in the reader's errors before the name of a column or of a member of it.
const DECODING: &str = "whilst decoding field '";
/// How the types of columns are said.
const DECLARED: &str = "CREATE EXTERNAL TABLE t (column type, …) STORED AS JSON LOCATION '…'";
/// Bytes read at a time.
const PIECE: usize = 1 << 16;

/// The first error of a file, of whose records the columns of `schema` are read, or are to be inferred.
pub(super) fn read(
    path: &str,
    file: File,
    schema: Option<SchemaRef>,
    compression: &FileCompressionType,
    search: &Search,
) -> Option<SqlError> {
    let mut reader = BufReader::new(compression.convert_read(file).ok()?);
    let corrupt = |error: &std::io::Error| {
        let reason = format!("it cannot be read: {}", one_line(&error.to_string()));
        Some(SqlError::FileCorrupt { path: path.to_string(), reason })
    };
    let start = match reader.fill_buf() {
        Ok(start) => start,
        Err(error) => return corrupt(&error),
    };
    if start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return read_array(path, reader, schema?, search);
    }
    for (index, line) in reader.lines().take_while(|_| !search.is_over()).enumerate() {
        let found = match line {
            Ok(line) => error_of(&line, schema.as_ref()),
            Err(error) if error.kind() == ErrorKind::InvalidData => Some(error.to_string()),
            Err(error) => return corrupt(&error),
        };
        if let Some(found) = found {
            return Some(row(path, index as u64 + 1, &found));
        }
    }
    None
}

/// The first value of an array's records that does not fit its column.
fn read_array(path: &str, mut reader: impl Read, schema: SchemaRef, search: &Search) -> Option<SqlError> {
    let (mut piece, mut record) = (vec![0; PIECE], Vec::new());
    let (mut line, mut first_line, mut depth) = (1, 1, 0u32);
    let (mut is_text, mut is_escaped) = (false, false);
    while let Ok(bytes @ 1..) = reader.read(&mut piece) {
        if search.is_over() {
            return None;
        }
        for byte in &piece[..bytes] {
            line += u64::from(*byte == b'\n');
            if is_text {
                is_text = *byte != b'"' || is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
            } else {
                match byte {
                    b'"' => is_text = true,
                    b'{' => depth += 1,
                    b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 1 && *byte == b'{' {
                    first_line = line;
                }
            }
            let ends = depth == 0 && *byte == b'}' && !is_text && !record.is_empty();
            if depth > 0 || ends {
                record.push(*byte);
            }
            if ends {
                let text = String::from_utf8_lossy(&record).into_owned();
                if let Some(found) = error_of(&text, Some(&schema)).filter(|found| found.contains(DECODING)) {
                    return Some(row(path, first_line, &found));
                }
                record.clear();
            }
        }
    }
    None
}

/// The error of a record.
fn error_of(record: &str, schema: Option<&SchemaRef>) -> Option<String> {
    let Some(schema) = schema else {
        return arrow::json::reader::infer_json_schema(record.as_bytes(), None).err().map(|error| error.to_string());
    };
    let mut reader = match json_reader(read_schema(schema, TextForm::JsonLines)).build(record.as_bytes()) {
        Ok(reader) => reader,
        Err(error) => return Some(error.to_string()),
    };
    reader.find_map(|batch| match batch {
        Ok(batch) => misfit(&batch, schema),
        Err(error) => Some(error.to_string()),
    })
}

/// The error of a value that its declared column does not hold, in the form of the reader's errors.
fn misfit(batch: &RecordBatch, schema: &SchemaRef) -> Option<String> {
    batch.columns().iter().zip(schema.fields()).find_map(|(values, field)| match declared(values, field.data_type()) {
        Err(Failed::Misfit(misfit)) => {
            Some(format!("{DECODING}{}{}': {}; {REMEDY}: {DECLARED}", field.name(), misfit.place, misfit.reason))
        }
        _ => None,
    })
}

/// The error of a row, with its column where the reader has told it.
fn row(path: &str, line: u64, found: &str) -> SqlError {
    let places: Vec<&str> = found.split(DECODING).collect();
    let named = |place: &&str| place.split_once("': ").map(|(name, found)| (name.to_string(), found.to_string()));
    let named: Vec<(String, String)> = places[1..].iter().filter_map(named).collect();
    let Some((_, reason)) = named.last() else {
        return SqlError::FileRow { path: path.to_string(), line, column: None, reason: one_line(found) };
    };
    let reason = reason.replace("expected primitive got", "expected a number, found");
    let reason =
        reason.replace("expected string got", "expected a text or a number, found").replace(" got ", ", found ");
    let column = named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
    let reason = match reason.contains(REMEDY) {
        true => one_line(&reason),
        false => format!(
            "{}; a column is of the type of its first value; write all of its values alike, or declare the types: \
             {DECLARED}",
            one_line(&reason)
        ),
    };
    SqlError::FileRow { path: path.to_string(), line, column: Some(column), reason }
}
