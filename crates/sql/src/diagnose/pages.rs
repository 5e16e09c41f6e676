//! Finding the row group, the column and the page of an error in a Parquet file.

use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::column::page::PageReader;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::Search;
use crate::error::panic_text;

/// What the reader says of a page whose bytes are not those that its checksum was taken of.
const MISMATCH: &str = "CRC checksum mismatch";

/// The first error of a file and where in it; of its columns those of these names are read, or all.
pub(super) fn read(path: &Path, columns: Option<&BTreeSet<String>>, search: &Search) -> Option<String> {
    let metadata = File::open(path).map_err(|error| error.to_string()).and_then(|file| {
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| error.to_string())
    });
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("not a Parquet file, or cut off: {error}")),
    };
    for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
        for (index, chunk) in group.columns().iter().enumerate() {
            let root = chunk.column_path().parts().first();
            if columns.is_some_and(|columns| root.is_none_or(|root| !columns.contains(root))) {
                continue;
            }
            if search.is_over() {
                return None;
            }
            let place = format!("row group {number}, column '{}'", chunk.column_path().string());
            if let Some((page, error)) = bad_page(path, group, index, search) {
                return Some(format!("{place}, {page}: {error}"));
            }
            if let Some(error) = guarded(|| bad_value(path, &metadata, (number, index), search)) {
                return Some(format!("{place}: {error}"));
            }
        }
    }
    None
}

/// The first page of a column of a row group that cannot be read, and why.
fn bad_page(path: &Path, group: &RowGroupMetaData, index: usize, search: &Search) -> Option<(String, String)> {
    let chunk = group.column(index);
    let dictionaries = usize::from(chunk.dictionary_page_offset().is_some());
    let mut pages = 0;
    let error = guarded(|| {
        let file = Arc::new(File::open(path).ok()?);
        let rows = usize::try_from(group.num_rows()).ok()?;
        let mut reader = match SerializedPageReader::new(file, chunk, rows, None) {
            Ok(reader) => reader,
            Err(error) => return Some(error.to_string()),
        };
        while !search.is_over() {
            match reader.get_next_page() {
                Ok(Some(_)) => pages += 1,
                Ok(None) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
        None
    })?;
    let page = match pages < dictionaries {
        true => "dictionary page".to_string(),
        false => format!("data page {}", pages - dictionaries + 1),
    };
    let error = match error.contains(MISMATCH) {
        true => "its bytes are not those that its checksum was taken of".to_string(),
        false => error,
    };
    Some((page, error))
}

/// Why values of a column of a row group cannot be decoded.
fn bad_value(
    path: &Path,
    metadata: &ArrowReaderMetadata,
    (group, column): (usize, usize),
    search: &Search,
) -> Option<String> {
    let mask = ProjectionMask::leaves(metadata.parquet_schema(), [column]);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(path).ok()?, metadata.clone())
        .with_row_groups(vec![group])
        .with_projection(mask)
        .build();
    match reader {
        Ok(reader) => {
            let mut batches = reader.take_while(|_| !search.is_over());
            batches.find_map(Result::err).map(|error| error.to_string())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// What `look` finds, or what its panic said.
fn guarded(look: impl FnOnce() -> Option<String>) -> Option<String> {
    catch_unwind(AssertUnwindSafe(look))
        .unwrap_or_else(|panic| Some(format!("the reader gave up: {}", panic_text(panic.as_ref()))))
}
