//! Writers of results in the formats that Arrow and Parquet write for us.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::csv::{QuoteStyle, Writer as CsvWriter, WriterBuilder as CsvWriterBuilder};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::json::WriterBuilder as JsonWriterBuilder;
use arrow::json::writer::{JsonArray, JsonFormat, LineDelimited, Writer as JsonWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use warpcube_sql::{shown_values, unwritable, with_texts_of_intervals};

/// Where the bytes of a result go.
pub type Sink = Box<dyn Write + Send>;

/// Takes a result, batch by batch.
pub trait ResultWriter: Send {
    /// Writes some rows.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes what is left, such as a table or a footer.
    fn finish(&mut self) -> io::Result<()>;
}

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

/// How values with a separator between them are written.
#[derive(Debug, Clone)]
pub struct Separation {
    /// What stands between values.
    pub separator: u8,
    /// What NULL is written as.
    pub null: String,
    /// Whether the first line has the names of columns.
    pub has_header: bool,
    /// Whether values with separators, quotes or ends of lines within stand in quotes.
    pub quotes: bool,
}

impl Separation {
    /// CSV with a header, where NULL is an empty text.
    pub fn csv() -> Separation {
        Separation { separator: b',', null: String::new(), has_header: true, quotes: true }
    }
}

/// Values with a separator between them. The header comes with the first rows or at the end: a statement that fails at
/// once writes nothing.
pub fn separated(sink: Sink, schema: SchemaRef, separation: Separation) -> Box<dyn ResultWriter> {
    let Separation { separator, null, has_header, quotes } = separation;
    let builder = CsvWriterBuilder::new().with_header(has_header).with_delimiter(separator).with_null(null);
    let quotes = if quotes { QuoteStyle::Necessary } else { QuoteStyle::Never };
    Box::new(Separated { writer: builder.with_quote_style(quotes).build(sink), header: Some(schema) })
}

impl ResultWriter for Separated {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.header = None;
        self.writer.write(&flat(batch).map_err(as_io)?).map_err(as_io)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The writer makes the header with its first batch, even an empty one, and is flushed after each batch.
        match self.header.take() {
            Some(schema) => self.write(&RecordBatch::new_empty(schema)),
            None => Ok(()),
        }
    }
}

/// The rows with intervals as texts.
fn with_intervals(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let columns: Vec<ArrayRef> = batch
        .columns()
        .iter()
        .map(with_texts_of_intervals)
        .collect::<Result<_, _>>()
        .map_err(|error| ArrowError::ExternalError(error.into()))?;
    let of =
        |(field, column): (&Arc<Field>, &ArrayRef)| field.as_ref().clone().with_data_type(column.data_type().clone());
    let fields: Vec<Field> = schema.fields().iter().zip(&columns).map(of).collect();
    // A statement that gives no rows gives no columns.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// The rows with texts for keys of maps: members of an object have no others.
fn with_text_keys(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let fields: Fields = schema.fields().iter().map(text_keys).collect();
    if fields == *schema.fields() {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(&fields).map(|(column, field)| cast(column, field.data_type()));
    RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), columns.collect::<Result<_, _>>()?)
}

/// A field whose maps, however deep within, have keys of texts.
fn text_keys(field: &Arc<Field>) -> Arc<Field> {
    let other = match field.data_type() {
        DataType::List(item) => DataType::List(text_keys(item)),
        DataType::LargeList(item) => DataType::LargeList(text_keys(item)),
        DataType::Struct(members) => DataType::Struct(members.iter().map(text_keys).collect()),
        DataType::Map(entries, is_sorted) => {
            let DataType::Struct(members) = entries.data_type() else { return field.clone() };
            let of = |(place, member): (usize, &Arc<Field>)| match place {
                0 if !matches!(member.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                    Arc::new(member.as_ref().clone().with_data_type(DataType::Utf8))
                }
                _ => text_keys(member),
            };
            let members = DataType::Struct(members.iter().enumerate().map(of).collect());
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(members)), *is_sorted)
        }
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(other))
}

/// The rows with intervals, lists, structs and maps as texts, as tables show them: CSV has no form for them.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let batch = with_intervals(batch)?;
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch);
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let texts = shown_values(column).filter(|_| field.data_type().is_nested());
        fields.push(match &texts {
            Some(_) => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            None => field.clone(),
        });
        columns.push(texts.unwrap_or_else(|| column.clone()));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

struct Json<F: JsonFormat> {
    writer: JsonWriter<Sink, F>,
    /// What follows the last object.
    end: &'static [u8],
}

/// One array of objects; NULL is written, so that every object has every key.
pub fn json(sink: Sink, schema: &Schema) -> io::Result<Box<dyn ResultWriter>> {
    check_names(schema)?;
    let writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(sink);
    Ok(Box::new(Json { writer, end: b"\n" }))
}

/// One object a line.
pub fn ndjson(sink: Sink, schema: &Schema) -> io::Result<Box<dyn ResultWriter>> {
    check_names(schema)?;
    let writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(sink);
    Ok(Box::new(Json { writer, end: b"" }))
}

/// Refuses columns of one name, of which an object would have one.
fn check_names(schema: &Schema) -> io::Result<()> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        Some(field) => Err(io::Error::other(format!(
            "two columns of the JSON result would be named '{}'; name one otherwise with AS",
            field.name()
        ))),
        None => Ok(()),
    }
}

impl<F: JsonFormat + Send> ResultWriter for Json<F> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let fields = batch.schema_ref().fields();
        if let Some(reason) =
            fields.iter().zip(batch.columns()).find_map(|(field, column)| unwritable(field.name(), column))
        {
            return Err(io::Error::other(reason));
        }
        with_intervals(batch)
            .and_then(|batch| with_text_keys(&batch))
            .and_then(|batch| self.writer.write(&batch))
            .map_err(as_io)
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
pub fn parquet(sink: Sink, schema: SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
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
pub fn arrow_file(sink: Sink, schema: &SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
    Ok(Box::new(ArrowFile(FileWriter::try_new(sink, schema).map_err(as_io)?)))
}

/// An Arrow IPC stream, which needs no seeking.
pub fn arrow_stream(sink: Sink, schema: &SchemaRef) -> io::Result<Box<dyn ResultWriter>> {
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
