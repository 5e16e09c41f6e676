//! Reading of JSON files: numbers and truth values are texts as they are written where their column is one of texts.
//!
//! DataFusion's reader (55.2) refuses a number for a text, and has no option of arrow's reader that takes it; apart
//! from that option files are read as there. The file goes once it has.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::json::ReaderBuilder;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonDecoder;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::{GetResultPayload, ObjectStore, ObjectStoreExt};
use datafusion_datasource::boundary_stream::AlignedBoundaryStream;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource_json::utils::JsonArrayToNdjsonReader;
use futures::{StreamExt, TryStreamExt};

use super::form::TextForm;

/// Rows of a batch where the scan names none.
const BATCH_SIZE: usize = 8192;

/// How values are read of files.
pub(crate) fn reader(schema: SchemaRef) -> ReaderBuilder {
    ReaderBuilder::new(schema).with_coerce_primitive(true)
}

/// Opens files whose columns are read as those of `schema`.
pub(super) struct JsonOpener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) schema: SchemaRef,
    pub(super) form: TextForm,
    pub(super) compression: FileCompressionType,
    pub(super) batch_size: Option<usize>,
}

impl FileOpener for JsonOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let reader = reader(self.schema.clone()).with_batch_size(self.batch_size.unwrap_or(BATCH_SIZE));
        let (store, form, compression) = (self.store.clone(), self.form, self.compression);
        Ok(Box::pin(async move {
            let path = &file.object_meta.location;
            // Slices are those of plain files of lines.
            if let Some(range) = &file.range {
                let (start, end, size) = (range.start as u64, range.end as u64, file.object_meta.size);
                let lines = AlignedBoundaryStream::new(store, path.clone(), start, end, size, b'\n').await?;
                let lines = lines.map_err(DataFusionError::from).boxed().fuse();
                let decoder = DecoderDeserializer::new(JsonDecoder::new(reader.build_decoder()?));
                return Ok(deserialize_stream(lines, decoder).map_err(Into::into).boxed());
            }
            let found = store.get(path).await?;
            let bytes: Box<dyn Read + Send> = match found.payload {
                GetResultPayload::File(file, _) => compression.convert_read(file)?,
                GetResultPayload::Stream(_) => compression.convert_read(Cursor::new(found.bytes().await?))?,
            };
            let lines: Box<dyn BufRead + Send> = match form {
                TextForm::JsonArray => Box::new(JsonArrayToNdjsonReader::new(bytes)),
                _ => Box::new(BufReader::new(bytes)),
            };
            let batches = futures::stream::iter(reader.build(lines)?);
            Ok(batches.map_err(Into::into).boxed())
        }))
    }
}
