//! Writes a whole benchmark as Parquet files into a folder. Files appear under their names only when they are whole,
//! a marker file says what the folder holds, and a folder that already holds the data is left as it is.

mod marker;
mod parquet;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;

use crate::h2o::H2oTable;
use crate::tpcds::{TPCDS_TABLES, TpcdsTable};
use crate::windows::WindowsTable;
use crate::{Batches, DatagenError, Progress, Size, SsbTable, TpchTable, clickbench, ssb_batches, tpch_batches};
use marker::{Identity, Marker};

/// How pages are compressed. At scale factor 1, SSB takes 232 MB without compression, 179 MB with Snappy and 130 MB
/// with Zstandard; TPC-H takes 705, 334 and 232 MB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all: the default. Data are made once and loaded often, and values that repeat are dictionary-coded
    /// already; reading the bytes that a compressor would save is faster than decompressing.
    #[default]
    None,
    /// Snappy: cheap to decompress, for a disk that is slow beside the processor.
    Snappy,
    /// Zstandard at its default level: smallest.
    Zstd,
}

/// How Parquet files are written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Compression of pages.
    pub compression: Compression,
    /// Most rows of a file; a table with more becomes a folder of files. Files are written in parallel, one a thread,
    /// so smaller files mean more threads at work. The cut does not depend on the machine.
    pub rows_per_file: u64,
    /// Rows of a row group, the smallest piece that a reader loads.
    pub rows_per_group: usize,
    /// Whether a folder that holds other data may be overwritten. The same data are never made twice.
    pub overwrite: bool,
}

impl Default for WriteOptions {
    /// No compression, files of 4 Mi rows, row groups of 1 Mi rows, nothing overwritten.
    fn default() -> Self {
        Self { compression: Compression::None, rows_per_file: 1 << 22, rows_per_group: 1 << 20, overwrite: false }
    }
}

/// The outcome of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReport {
    /// The folder.
    pub dir: PathBuf,
    /// Whether the data were there already, so that nothing was written.
    pub reused: bool,
    /// The tables, the largest first.
    pub tables: Vec<WrittenTable>,
}

/// A table in a [`WriteReport`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenTable {
    /// The table's name.
    pub name: String,
    /// Its file, or its folder if it has several.
    pub path: PathBuf,
    /// The number of its files.
    pub files: usize,
    /// Its rows.
    pub rows: u64,
    /// The size of its files.
    pub bytes: u64,
}

/// A table to be written.
struct TableJob<'a> {
    name: &'static str,
    schema: SchemaRef,
    /// Rows, or for returns of TPC-DS the number expected: files are cut by it, and progress counts up to it.
    rows: u64,
    /// Columns whose values hardly repeat: a dictionary would cost time and be given up.
    without_dictionary: &'static [&'static str],
    /// The batches of a part, given the number of parts.
    batches: Box<dyn Fn(usize, usize) -> Result<Batches, DatagenError> + Sync + 'a>,
}

/// Writes the Star Schema Benchmark at a scale factor into a folder: `<table>.parquet` for a table of one file,
/// `<table>/part-00000.parquet` and so on for a table of several. The rayon pool that this is called in does the work;
/// each of its threads holds one row group at a time.
///
/// # Errors
/// When the scale factor is out of range, the file system refuses, the folder holds other data, or `progress` says to
/// stop. No half-written file is left in any of these cases.
pub fn write_ssb_parquet(
    dir: &Path,
    sf: f64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_scale(sf)?;
    write(dir, Identity::new("ssb", Size::Scale(sf)), &SsbTable::ALL.map(SsbTable::name), options, progress, |index| {
        let table = SsbTable::ALL[index];
        Ok(TableJob {
            name: table.name(),
            schema: table.schema(sf)?,
            rows: table.rows(sf)?,
            without_dictionary: table.distinct_columns(),
            batches: Box::new(move |part, parts| {
                Ok(Box::new(ssb_batches(table, sf, part, parts, parquet::BATCH_ROWS)?))
            }),
        })
    })
}

/// Writes TPC-H at a scale factor into a folder, as [`write_ssb_parquet`] does.
///
/// # Errors
/// As for [`write_ssb_parquet`].
pub fn write_tpch_parquet(
    dir: &Path,
    sf: f64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_scale(sf)?;
    write(
        dir,
        Identity::new("tpch", Size::Scale(sf)),
        &TpchTable::ALL.map(TpchTable::name),
        options,
        progress,
        |index| {
            let table = TpchTable::ALL[index];
            Ok(TableJob {
                name: table.name(),
                schema: table.schema(),
                rows: table.rows(sf)?,
                without_dictionary: table.distinct_columns(),
                batches: Box::new(move |part, parts| {
                    Ok(Box::new(tpch_batches(table, sf, part, parts, parquet::BATCH_ROWS)?))
                }),
            })
        },
    )
}

/// Writes TPC-DS at a scale factor into a folder, as [`write_ssb_parquet`] does.
///
/// # Errors
/// As for [`write_ssb_parquet`].
pub fn write_tpcds_parquet(
    dir: &Path,
    sf: f64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_scale(sf)?;
    let names = TPCDS_TABLES.each_ref().map(TpcdsTable::name);
    write(dir, Identity::new("tpcds", Size::Scale(sf)), &names, options, progress, |index| {
        let table = &TPCDS_TABLES[index];
        Ok(TableJob {
            name: table.name(),
            schema: table.schema(),
            rows: table.rows_expected(sf)?,
            without_dictionary: table.distinct_columns,
            batches: Box::new(move |part, parts| table.batches(sf, part, parts, parquet::BATCH_ROWS)),
        })
    })
}

/// Writes ClickBench's table of `rows` rows into a folder, as [`write_ssb_parquet`] does, in files of a quarter of the
/// rows, as these are wide.
///
/// # Errors
/// As for [`write_ssb_parquet`].
pub fn write_clickbench_parquet(
    dir: &Path,
    rows: u64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_rows(rows)?;
    let options = WriteOptions { rows_per_file: options.rows_per_file.div_ceil(4), ..options.clone() };
    write(dir, Identity::new("clickbench", Size::Rows(rows)), &[clickbench::TABLE], &options, progress, |_| {
        Ok(TableJob {
            name: clickbench::TABLE,
            schema: clickbench::schema(),
            rows,
            without_dictionary: &clickbench::DISTINCT_COLUMNS,
            batches: Box::new(move |part, parts| clickbench::batches(rows, part, parts, parquet::BATCH_ROWS)),
        })
    })
}

/// Writes the tables of H2O's db-benchmark, the largest of `rows` rows, into a folder, as [`write_ssb_parquet`] does.
///
/// # Errors
/// As for [`write_ssb_parquet`].
pub fn write_h2o_parquet(
    dir: &Path,
    rows: u64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_rows(rows)?;
    write(dir, Identity::new("h2o", Size::Rows(rows)), &H2oTable::ALL.map(H2oTable::name), options, progress, |index| {
        let table = H2oTable::ALL[index];
        Ok(TableJob {
            name: table.name(),
            schema: table.schema(),
            rows: table.rows(rows),
            without_dictionary: table.distinct_columns(),
            batches: Box::new(move |part, parts| table.batches(rows, part, parts, parquet::BATCH_ROWS)),
        })
    })
}

/// Writes the tables for windows, of `rows` rows each, into a folder, as [`write_ssb_parquet`] does.
///
/// # Errors
/// As for [`write_ssb_parquet`].
pub fn write_windows_parquet(
    dir: &Path,
    rows: u64,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<WriteReport, DatagenError> {
    crate::check_rows(rows)?;
    let names = WindowsTable::ALL.map(WindowsTable::name);
    write(dir, Identity::new("windows", Size::Rows(rows)), &names, options, progress, |index| {
        let table = WindowsTable::ALL[index];
        Ok(TableJob {
            name: table.name(),
            schema: table.schema(),
            rows,
            without_dictionary: table.distinct_columns(),
            batches: Box::new(move |part, parts| table.batches(rows, part, parts, parquet::BATCH_ROWS)),
        })
    })
}

/// Writes the tables that `job` describes, unless they are there.
fn write<'a>(
    dir: &Path,
    identity: Identity,
    tables: &[&str],
    options: &WriteOptions,
    progress: &dyn Progress,
    job: impl Fn(usize) -> Result<TableJob<'a>, DatagenError>,
) -> Result<WriteReport, DatagenError> {
    fs::create_dir_all(dir).map_err(|error| DatagenError::io("create", dir, error))?;
    let found = Marker::read(dir)?;
    match &found {
        Some(found) if found.identity == identity && found.is_whole(dir) => return Ok(found.report(dir, true)),
        Some(found) if found.identity != identity && !options.overwrite => {
            return Err(other_data(dir, found.identity.to_string(), &identity));
        }
        None if !options.overwrite => {
            if let Some(name) =
                tables.iter().find(|name| dir.join(name).exists() || dir.join(format!("{name}.parquet")).exists())
            {
                return Err(other_data(dir, format!("a table {name} of another origin"), &identity));
            }
        }
        _ => {}
    }
    let old = found.iter().flat_map(|found| found.tables.iter().map(|table| table.name.as_str()));
    for name in old.chain(tables.iter().copied()) {
        remove_table(dir, name)?;
    }

    let unwritten = |name: &&str| marker::Table { name: (*name).to_owned(), rows: 0, files: Vec::new() };
    let mut marker = Marker { identity, tables: tables.iter().map(unwritten).collect(), complete: false };
    marker.write(dir)?;
    for index in 0..tables.len() {
        marker.tables[index] = parquet::write_table(dir, &job(index)?, options, progress)?;
    }
    marker.complete = true;
    marker.write(dir)?;
    Ok(marker.report(dir, false))
}

fn other_data(dir: &Path, found: String, wanted: &Identity) -> DatagenError {
    DatagenError::OtherData { path: dir.to_path_buf(), found, wanted: wanted.to_string() }
}

/// Removes a table's files, of whichever layout, so that no file of an earlier cut stays among the new ones.
fn remove_table(dir: &Path, name: &str) -> Result<(), DatagenError> {
    let remove = |path: &Path| match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DatagenError::io("remove", path, error)),
        _ => Ok(()),
    };
    remove(&dir.join(format!("{name}.parquet")))?;
    let folder = dir.join(name);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(DatagenError::io("read", &folder, error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| DatagenError::io("read", &folder, error))?.path();
        let ours = |file: &str| file.starts_with("part-") && file.contains(".parquet");
        if path.file_name().and_then(|file| file.to_str()).is_some_and(ours) {
            remove(&path)?;
        }
    }
    // A file that is not ours keeps the folder.
    _ = fs::remove_dir(&folder);
    Ok(())
}

/// Lets `fill` write a file under a temporary name beside `path`, then gives it its name; removes it on failure.
fn replace<T>(path: &Path, fill: impl FnOnce(&Path) -> Result<T, DatagenError>) -> Result<T, DatagenError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let result = fill(&temporary).and_then(|value| {
        fs::rename(&temporary, path).map_err(|error| DatagenError::io("create", path, error))?;
        Ok(value)
    });
    if result.is_err() {
        // An error of the removal is ignored: the caller gets the failure.
        _ = fs::remove_file(&temporary);
    }
    result
}
