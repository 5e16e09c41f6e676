//! Record batches as Arrow streams in memory.

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

/// The stream of batches of one schema; without batches there is no stream.
///
/// # Errors
/// Those of the Arrow writer.
pub(super) fn write(batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut writer = StreamWriter::try_new(Vec::new(), &first.schema())?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.into_inner()
}

/// The batches of a stream.
///
/// # Errors
/// Those of the Arrow reader.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(Cursor::new(bytes), None)?.collect()
}

/// Runs of consecutive batches of one schema.
pub(super) fn runs(batches: &[RecordBatch]) -> impl Iterator<Item = &[RecordBatch]> {
    batches.chunk_by(|one, next| one.schema() == next.schema())
}
