//! One table's Parquet files: one task a file, each generating, encoding and writing its own part.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use super::marker::{self, table_path};
use super::{Compression, TableJob, WriteOptions, replace};
use crate::{DatagenError, Progress};

/// Rows between generator and encoder: about a megabyte, so that a batch is encoded while it is in the cache.
pub(super) const BATCH_ROWS: usize = 1 << 14;

/// Writes all files of a table and returns what to note of them.
pub(super) fn write_table(
    dir: &Path,
    job: &TableJob,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<marker::Table, DatagenError> {
    let parts = files(job.rows, options.rows_per_file);
    if parts > 1 {
        let folder = table_path(dir, job.name, parts);
        fs::create_dir_all(&folder).map_err(|error| DatagenError::io("create", &folder, error))?;
    }
    let writing = Writing { job, options, progress, done: AtomicU64::new(0), failed: AtomicBool::new(false) };
    let mut files: Vec<_> = (0..parts)
        .into_par_iter()
        .with_max_len(1)
        .map(|part| {
            let name = marker::file_name(job.name, part, parts);
            let path = dir.join(&name);
            let written = replace(&path, |temporary| writing.write_part(temporary, part, parts));
            // The first failure stops the other files at their next batch.
            writing.failed.fetch_or(written.is_err(), Ordering::Relaxed);
            written.map(|bytes| (name, bytes))
        })
        .collect();
    // The failure comes first, before the files that were stopped because of it.
    files.sort_by_key(|file| matches!(file, Err(DatagenError::Cancelled)));
    let files = files.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(marker::Table { name: job.name.to_owned(), rows: writing.done.into_inner(), files })
}

/// How many files a table gets: as few as keep all within `rows_per_file`. Tables are cut by orders, whose lines vary
/// by less than half a percent between files of any size worth cutting, hence the margin.
fn files(rows: u64, rows_per_file: u64) -> usize {
    let target = (rows_per_file - rows_per_file / 200).max(1);
    rows.div_ceil(target).max(1) as usize
}

/// A table while it is being written.
struct Writing<'a> {
    job: &'a TableJob<'a>,
    options: &'a WriteOptions,
    progress: &'a dyn Progress,
    done: AtomicU64,
    failed: AtomicBool,
}

impl Writing<'_> {
    /// Writes one part to `path` and returns its size.
    fn write_part(&self, path: &Path, part: usize, parts: usize) -> Result<u64, DatagenError> {
        let file = File::create(path).map_err(|error| DatagenError::io("create", path, error))?;
        // No Arrow schema goes into the file: readers then see plain Parquet types, as in files of any other writer.
        let writer_options =
            ArrowWriterOptions::new().with_properties(self.properties()).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(file, self.job.schema.clone(), writer_options)
            .map_err(|error| DatagenError::parquet(path, error))?;
        for batch in (self.job.batches)(part, parts)? {
            if self.failed.load(Ordering::Relaxed) || self.progress.cancelled() {
                return Err(DatagenError::Cancelled);
            }
            writer.write(&batch).map_err(|error| DatagenError::parquet(path, error))?;
            let rows = batch.num_rows() as u64;
            let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
            self.progress.rows(self.job.name, done.min(self.job.rows), self.job.rows);
        }
        writer.close().map_err(|error| DatagenError::parquet(path, error))?;
        let file = fs::metadata(path).map_err(|error| DatagenError::io("read", path, error))?;
        Ok(file.len())
    }

    fn properties(&self) -> WriterProperties {
        let codec = match self.options.compression {
            Compression::None => Codec::UNCOMPRESSED,
            Compression::Snappy => Codec::SNAPPY,
            Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
        };
        let mut properties = WriterProperties::builder()
            .set_compression(codec)
            .set_max_row_group_row_count(Some(self.options.rows_per_group.max(1)))
            // Values are spread evenly over all pages, so statistics of pages could never skip one.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("warpcube-datagen ", env!("CARGO_PKG_VERSION")).to_owned());
        for column in self.job.without_dictionary {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), false);
        }
        properties.build()
    }
}

#[cfg(test)]
mod tests {
    use super::files;

    #[test]
    fn files_keep_within_their_rows() {
        assert_eq!(files(0, 100), 1);
        assert_eq!(files(100, 100), 1);
        assert_eq!(files(101, 100), 2);
        assert_eq!(files(6_001_173, 1 << 22), 2);
        assert_eq!(files(4_190_000, 1 << 22), 2, "within the margin");
    }
}
