//! The formats that Arrow and Parquet write for us.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::csv::{Writer as CsvWriter, WriterBuilder as CsvWriterBuilder};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::json::WriterBuilder as JsonWriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer as JsonWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::ResultWriter;

type Sink = Box<dyn Write + Send>;

/// Arrow hides I/O errors in its own; a closed pipe must be recognised.
fn as_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        ArrowError::ExternalError(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other.to_string()),
    }
}

struct Separated {
    writer: CsvWriter<Sink>,
    /// The columns, until the header is written.
    header: Option<SchemaRef>,
}

/// Values with a separator between them and a header, which comes with the first rows or at the end: a statement that
/// fails at once writes nothing.
pub(super) fn separated(sink: Sink, schema: SchemaRef, delimiter: u8) -> Box<dyn ResultWriter> {
    let writer = CsvWriterBuilder::new().with_header(true).with_delimiter(delimiter).build(sink);
    Box::new(Separated { writer, header: Some(schema) })
}

impl ResultWriter for Separated {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.header = None;
        let schema = batch.schema();
        if let Some(column) = schema.fields().iter().find(|column| column.data_type().is_nested()) {
            let (name, kind) = (column.name(), column.data_type());
            return Err(io::Error::other(format!("column '{name}' has type {kind}, which CSV cannot hold")));
        }
        self.writer.write(batch).map_err(as_io)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The writer makes the header with its first batch, however empty, and hands on what it has after each.
        match self.header.take() {
            Some(schema) => self.writer.write(&RecordBatch::new_empty(schema)).map_err(as_io),
            None => Ok(()),
        }
    }
}

struct Json<F: JsonFormat> {
    writer: JsonWriter<Sink, F>,
    /// What follows the last object.
    end: &'static [u8],
}

/// One array of objects; NULL is written, so that every object has every key.
pub(super) fn json(sink: Sink) -> Box<dyn ResultWriter> {
    let writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(sink);
    Box::new(Json { writer, end: b"\n" })
}

/// One object a line.
pub(super) fn ndjson(sink: Sink) -> Box<dyn ResultWriter> {
    let writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(sink);
    Box::new(Json { writer, end: b"" })
}

impl<F: JsonFormat + Send> ResultWriter for Json<F> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).map_err(as_io)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(as_io)?;
        let sink = self.writer.get_mut();
        sink.write_all(self.end)?;
        sink.flush()
    }
}

struct Parquet {
    writer: Option<ArrowWriter<Sink>>,
}

/// A Parquet file.
pub(super) fn parquet(sink: Sink, schema: SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let writer = ArrowWriter::try_new(sink, schema, Some(properties)).map_err(io::Error::other)?;
    Ok(Box::new(Parquet { writer: Some(writer) }))
}

impl ResultWriter for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => writer.write(batch).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => writer.into_inner().map_err(io::Error::other)?.flush(),
            None => Ok(()),
        }
    }
}

struct ArrowFile(FileWriter<Sink>);
struct ArrowStream(StreamWriter<Sink>);

/// An Arrow IPC file.
pub(super) fn arrow_file(sink: Sink, schema: &SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
    Ok(Box::new(ArrowFile(FileWriter::try_new(sink, schema).map_err(as_io)?)))
}

/// An Arrow IPC stream, which needs no seeking.
pub(super) fn arrow_stream(sink: Sink, schema: &SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
    Ok(Box::new(ArrowStream(StreamWriter::try_new(sink, schema).map_err(as_io)?)))
}

impl ResultWriter for ArrowFile {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(as_io)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(as_io)?;
        self.0.get_mut().flush()
    }
}

impl ResultWriter for ArrowStream {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(as_io)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(as_io)?;
        self.0.get_mut().flush()
    }
}
