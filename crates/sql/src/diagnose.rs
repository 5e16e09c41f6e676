//! Which file, line and column an error comes from.
//!
//! Readers run on slices of many files at once and say neither the file nor the true line. When a statement fails over
//! files, they are read once more here, one after the other from their starts, until one gives an error; that one is
//! named. Costs time only where there already is an error, and gives the first error back where nothing is found.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::csv::ReaderBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, FileSource, JsonSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::physical_plan::ExecutionPlan;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::{SqlError, one_line, panic_text};

/// A file that an error may come from, and how it is read.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    path: PathBuf,
    format: Format,
}

#[derive(Debug, Clone)]
enum Format {
    Parquet,
    Csv(Csv),
    Json(Option<SchemaRef>, FileCompressionType),
    Arrow,
}

/// How a text file with columns is read.
#[derive(Debug, Clone)]
struct Csv {
    /// The columns; none where they are still to be inferred, and only their number is looked at.
    schema: Option<SchemaRef>,
    header: bool,
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
    truncated: bool,
    compression: FileCompressionType,
}

impl Suspect {
    /// A file whose columns were to be inferred for `command`.
    pub(crate) fn to_infer(path: &Path, command: &CreateExternalTable) -> Suspect {
        let option = |name: &str| command.options.get(&format!("format.{name}")).cloned();
        let character = |name: &str| option(name).and_then(|text| text.bytes().next());
        let format = match command.file_type.as_str() {
            "PARQUET" => Format::Parquet,
            "ARROW" => Format::Arrow,
            "JSON" => Format::Json(None, compression(command)),
            _ => Format::Csv(Csv {
                schema: None,
                header: option("has_header").is_none_or(|value| value != "false"),
                delimiter: character("delimiter").unwrap_or(b','),
                quote: character("quote").unwrap_or(b'"'),
                escape: character("escape"),
                comment: character("comment"),
                truncated: option("truncated_rows").is_some_and(|value| value == "true"),
                compression: compression(command),
            }),
        };
        Suspect { path: path.to_path_buf(), format }
    }

    /// The files of this machine that a plan reads.
    pub(crate) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Vec<Suspect> {
        let mut suspects = Vec::new();
        collect(plan, &mut suspects);
        // A file may be read in slices by several partitions.
        suspects.sort_by(|a: &Suspect, b| a.path.cmp(&b.path));
        suspects.dedup_by(|a, b| a.path == b.path);
        suspects
    }

    /// Reads the file until it gives an error, or its reader gives up.
    fn examine(&self) -> Option<SqlError> {
        catch_unwind(AssertUnwindSafe(|| self.read())).unwrap_or_else(|panic| {
            let reason = format!("its reader gave up: {}", panic_text(panic.as_ref()));
            Some(SqlError::FileCorrupt { path: self.path.display().to_string(), reason })
        })
    }

    /// Reads the file until it gives an error.
    fn read(&self) -> Option<SqlError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) => return Some(SqlError::FileAccess(format!("{}: {error}", self.path.display()))),
        };
        let path = self.path.display().to_string();
        let corrupt = |reason: String| Some(SqlError::FileCorrupt { path: path.clone(), reason: one_line(&reason) });
        match &self.format {
            Format::Parquet => read_parquet(file).and_then(corrupt),
            Format::Arrow => read_arrow(file).and_then(corrupt),
            Format::Csv(csv) => csv.read(&path, file),
            Format::Json(schema, compression) => read_json(&path, file, schema.clone(), compression),
        }
    }
}

/// Whether an error may come from a file that is not named yet, or from the reader of one.
pub(crate) fn may_be_about_files(error: &SqlError) -> bool {
    matches!(
        error,
        SqlError::Execution(_) | SqlError::Internal(_) | SqlError::FileCorrupt { .. } | SqlError::FileAccess(_)
    )
}

/// The error with its file, line and column where one of the suspects gives one, or the error as it is.
pub(crate) async fn explain(suspects: Vec<Suspect>, error: SqlError) -> SqlError {
    if !may_be_about_files(&error) || suspects.is_empty() {
        return error;
    }
    let found = tokio::task::spawn_blocking(move || suspects.iter().find_map(Suspect::examine)).await;
    found.ok().flatten().unwrap_or(error)
}

/// The first line of a text file, decompressed.
pub(crate) fn first_line(path: &Path, command: &CreateExternalTable) -> Option<String> {
    let reader = compression(command).convert_read(File::open(path).ok()?).ok()?;
    let mut line = Vec::new();
    // A file that is not text has no end of line; a mebibyte is more than any header needs.
    BufReader::new(reader.take(1 << 20)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn compression(command: &CreateExternalTable) -> FileCompressionType {
    let name = command.options.get("format.compression").map_or("", String::as_str);
    name.parse().unwrap_or(FileCompressionType::from(CompressionTypeVariant::UNCOMPRESSED))
}

fn collect(plan: &Arc<dyn ExecutionPlan>, suspects: &mut Vec<Suspect>) {
    for child in plan.children() {
        collect(child, suspects);
    }
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else { return };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return };
    if !config.object_store_url.as_str().starts_with("file://") {
        return;
    }
    let compression = config.file_compression_type;
    let source: &dyn FileSource = config.file_source.as_ref();
    let format = if source.is::<ParquetSource>() {
        Format::Parquet
    } else if let Some(csv) = source.downcast_ref::<CsvSource>() {
        Format::Csv(Csv {
            schema: Some(config.file_schema().clone()),
            header: csv.has_header(),
            delimiter: csv.delimiter(),
            quote: csv.quote(),
            escape: csv.escape(),
            comment: csv.comment(),
            truncated: csv.truncate_rows(),
            compression,
        })
    } else if source.is::<JsonSource>() {
        Format::Json(Some(config.file_schema().clone()), compression)
    } else {
        Format::Arrow
    };
    let files = config.file_groups.iter().flat_map(|group| group.iter());
    suspects.extend(files.map(|file| Suspect {
        path: PathBuf::from(format!("/{}", file.object_meta.location)),
        format: format.clone(),
    }));
}

fn read_parquet(file: File) -> Option<String> {
    let reader = match ParquetRecordBatchReaderBuilder::try_new(file) {
        Ok(builder) => builder.build(),
        Err(error) => return Some(format!("not a Parquet file, or cut off: {error}")),
    };
    match reader {
        Ok(reader) => reader.filter_map(Result::err).map(|error| error.to_string()).next(),
        Err(error) => Some(error.to_string()),
    }
}

fn read_arrow(mut file: File) -> Option<String> {
    let mut magic = [0; 6];
    let is_file = file.read_exact(&mut magic).is_ok() && &magic == b"ARROW1";
    if std::io::Seek::rewind(&mut file).is_err() {
        return None;
    }
    let first_error = |error: ArrowError| format!("not an Arrow IPC file, or cut off: {error}");
    if is_file {
        match arrow::ipc::reader::FileReader::try_new(file, None) {
            Ok(reader) => reader.filter_map(Result::err).map(first_error).next(),
            Err(error) => Some(first_error(error)),
        }
    } else {
        match arrow::ipc::reader::StreamReader::try_new(BufReader::new(file), None) {
            Ok(reader) => reader.filter_map(Result::err).map(first_error).next(),
            Err(error) => Some(first_error(error)),
        }
    }
}

fn read_json(path: &str, file: File, schema: Option<SchemaRef>, compression: &FileCompressionType) -> Option<SqlError> {
    let reader = BufReader::new(compression.convert_read(file).ok()?);
    for (index, line) in reader.lines().enumerate() {
        let row = |reason: String| {
            let line = index as u64 + 1;
            Some(SqlError::FileRow { path: path.to_string(), line, column: None, reason: one_line(&reason) })
        };
        let line = match line {
            Ok(line) => line,
            Err(error) => return row(error.to_string()),
        };
        if let Some(error) = json_error(&line, schema.as_ref()) {
            return row(error);
        }
    }
    None
}

fn json_error(line: &str, schema: Option<&SchemaRef>) -> Option<String> {
    let error = match schema {
        None => arrow::json::reader::infer_json_schema(line.as_bytes(), None).err(),
        Some(schema) => match arrow::json::ReaderBuilder::new(schema.clone()).build(line.as_bytes()) {
            Ok(mut reader) => reader.find_map(Result::err),
            Err(error) => Some(error),
        },
    };
    error.map(|error| error.to_string())
}

impl Csv {
    fn read(&self, path: &str, file: File) -> Option<SqlError> {
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
        let mut builder = ReaderBuilder::new(schema.clone())
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
        // What `text_columns` looked at is still in the buffer.
        let error = match builder.build_buffered(reader) {
            Ok(reader) => reader.filter_map(Result::err).next()?,
            Err(error) => error,
        };
        Some(self.place(path, &schema, &error))
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
        let reason = format!(
            "two columns are named '{name}'; rename one, or name all of them: \
             CREATE EXTERNAL TABLE t (column type, …) STORED AS CSV LOCATION '…'"
        );
        Some(SqlError::FileRow { path: path.to_string(), line: 1, column: None, reason })
    }

    /// Takes the reader's message apart: it knows line and column, in words of its own.
    fn place(&self, path: &str, schema: &Schema, error: &ArrowError) -> SqlError {
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
        let line = self.line_of(path, record).unwrap_or(record);
        SqlError::FileRow { path: path.to_string(), line, column, reason }
    }

    /// The line at which a record begins, both counted from 1: quoted values may have several lines, and blank ones and
    /// comments are no records.
    fn line_of(&self, path: &str, record: u64) -> Option<u64> {
        let reader = BufReader::new(self.compression.convert_read(File::open(path).ok()?).ok()?);
        let (mut line, mut records) = (1, 0);
        let (mut begins, mut is_comment, mut field_begins) = (true, false, true);
        let (mut quoted, mut closed, mut escaped) = (false, false, false);
        for byte in reader.bytes() {
            let byte = byte.ok()?;
            if begins && byte != b'\n' && byte != b'\r' {
                begins = false;
                is_comment = Some(byte) == self.comment;
                records += u64::from(!is_comment);
                if records == record && !is_comment {
                    return Some(line);
                }
            }
            if byte == b'\n' {
                line += 1;
                if !quoted || is_comment {
                    (begins, field_begins, quoted, is_comment) = (true, true, false, false);
                }
            } else if escaped {
                escaped = false;
            } else if quoted {
                escaped = Some(byte) == self.escape;
                quoted = byte != self.quote;
                closed = !quoted;
            } else if !is_comment {
                // Within a value a quote is a character like others, unless it follows one that closed: then it is one.
                quoted = byte == self.quote && (field_begins || closed);
                (field_begins, closed) = (byte == self.delimiter, false);
            }
        }
        None
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn csv(schema: Option<SchemaRef>) -> Format {
        Format::Csv(Csv {
            schema,
            header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            comment: None,
            truncated: false,
            compression: FileCompressionType::from(CompressionTypeVariant::UNCOMPRESSED),
        })
    }

    fn first_error(text: &[u8], format: Format) -> Option<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let path = file.path().to_path_buf();
        let name = path.display().to_string();
        Suspect { path, format }.read().map(|error| error.to_string().replace(&name, "F"))
    }

    #[test]
    fn bad_numbers_have_line_and_column() {
        let columns = vec![Field::new("a", DataType::Int64, true), Field::new("price", DataType::Float64, true)];
        let schema = Arc::new(Schema::new(columns));
        let found = first_error(b"a,price\n1,2.5\n2,cheap\n", csv(Some(schema.clone()))).unwrap();
        assert_eq!(found, "FILE-004 F, line 3, column 'price': Error while parsing value 'cheap' as type 'Float64'");
        assert_eq!(first_error(b"a,price\n1,2.5\n", csv(Some(schema))), None);
    }

    #[test]
    fn lines_are_counted_past_values_of_several_and_blank_ones() {
        let columns = vec![Field::new("a", DataType::Utf8, true), Field::new("price", DataType::Float64, true)];
        let schema = Arc::new(Schema::new(columns));
        let text = b"a,price\n\"two\nlines\",1\n\n\"say \"\"so\n\"\"\",2\n5\" pipe,3\nx,cheap\n";
        let found = first_error(text, csv(Some(schema))).unwrap();
        assert_eq!(found, "FILE-004 F, line 8, column 'price': Error while parsing value 'cheap' as type 'Float64'");
    }

    #[test]
    fn ragged_rows_have_their_line() {
        let found = first_error(b"a,b\n1,2\n3\n4,5\n", csv(None)).unwrap();
        assert_eq!(found, "FILE-004 F, line 3: incorrect number of fields, expected 2 got 1");
    }

    #[test]
    fn broken_files_are_told() {
        assert!(
            first_error(b"PAR1 and no more", Format::Parquet).unwrap().starts_with("FILE-003 F: not a Parquet file")
        );
        assert!(first_error(b"ARROW1 nor this", Format::Arrow).unwrap().starts_with("FILE-003 F: not an Arrow IPC"));
        let uncompressed = FileCompressionType::from(CompressionTypeVariant::UNCOMPRESSED);
        let json = first_error(b"{\"a\":1}\n{\"a\":\n", Format::Json(None, uncompressed)).unwrap();
        assert!(json.starts_with("FILE-004 F, line 2: "), "{json}");
    }
}
