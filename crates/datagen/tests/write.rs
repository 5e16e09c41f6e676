//! Writing Parquet folders: what is written is what was generated, a whole folder is reused, and neither other data
//! nor half a file is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;
use warpcube_datagen::{
    Compression, DatagenError, NoProgress, Progress, SsbTable, TpchTable, WriteOptions, ssb_batches, tpch_batches,
    write_ssb_parquet, write_tpcds_parquet, write_tpch_parquet,
};

const SF: f64 = 0.01;
/// Rows of `store_sales`, `store_returns`, `date_dim`, `time_dim`, `customer_demographics`, `item` and `ship_mode`.
const TPCDS_ROWS: [u64; 7] = [120_527, 11_925, 73_049, 86_400, 1_920_800, 2_000, 20];

fn small_files() -> WriteOptions {
    WriteOptions { rows_per_file: 20_000, rows_per_group: 5_000, ..WriteOptions::default() }
}

/// Reads a file, or all files of a folder in order.
fn read(path: &Path) -> RecordBatch {
    let mut files = vec![path.to_path_buf()];
    if path.is_dir() {
        files = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
    }
    let batches: Vec<RecordBatch> = files
        .iter()
        .flat_map(|file| {
            let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(file).expect("a file"));
            reader.expect("Parquet").build().expect("a reader").map(|batch| batch.expect("a batch"))
        })
        .collect();
    concat_batches(&batches[0].schema(), &batches).expect("batches of one schema")
}

fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(all_files(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn ssb_files_hold_the_batches() {
    for compression in [Compression::None, Compression::Snappy, Compression::Zstd] {
        let dir = TempDir::new().expect("a temporary folder");
        let options = WriteOptions { compression, ..small_files() };
        let report = write_ssb_parquet(dir.path(), SF, &options, &NoProgress).expect("it writes");
        assert!(!report.reused);
        assert_eq!(report.tables[0].files, 4, "60,000 lines within 20,000 a file, less a margin");
        for (table, written) in SsbTable::ALL.into_iter().zip(&report.tables) {
            assert_eq!(written.name, table.name());
            let batches: Vec<_> = ssb_batches(table, SF, 0, 1, 10_000).expect("a sound part").collect();
            let expected = concat_batches(&batches[0].schema(), &batches).expect("batches of one schema");
            assert!(read(&written.path).columns() == expected.columns(), "{}", table.name());
            assert_eq!(written.rows, expected.num_rows() as u64);
        }
    }
}

#[test]
fn tpch_files_hold_the_batches() {
    let dir = TempDir::new().expect("a temporary folder");
    let report = write_tpch_parquet(dir.path(), SF, &small_files(), &NoProgress).expect("it writes");
    for (table, written) in TpchTable::ALL.into_iter().zip(&report.tables) {
        assert_eq!(written.rows, table.rows(SF).expect("a sound scale"), "{}", table.name());
        let batches: Vec<_> = tpch_batches(table, SF, 0, 1, 10_000).expect("a sound part").collect();
        assert_eq!(batches[0].schema(), table.schema());
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let read = read(&written.path);
        assert_eq!((read.num_rows(), written.rows), (rows, rows as u64), "{}", table.name());
        let expected = concat_batches(&batches[0].schema(), &batches).expect("batches of one schema");
        // Text is read back as Utf8 where it was generated as Utf8View: the schemas differ, the rows do not.
        for (found, expected) in read.columns().iter().zip(expected.columns()) {
            let expected = arrow::compute::cast(expected, found.data_type()).expect("text is text");
            assert!(*found == expected, "{}", table.name());
        }
    }
}

#[test]
fn lineitem_has_the_standard_number_of_rows() {
    assert_eq!(TpchTable::Lineitem.rows(1.0).expect("a sound scale"), 6_001_215);
}

#[test]
fn a_whole_folder_is_reused_and_a_broken_one_made_again() {
    let dir = TempDir::new().expect("a temporary folder");
    let write = || write_ssb_parquet(dir.path(), SF, &small_files(), &NoProgress).expect("it writes");
    let first = write();
    let again = write();
    assert!(again.reused && again.tables == first.tables);
    fs::remove_file(dir.path().join("part.parquet")).expect("the file is there");
    assert!(!write().reused);
    assert!(write().reused);
}

#[test]
fn other_data_stay_unless_overwriting() {
    let dir = TempDir::new().expect("a temporary folder");
    write_ssb_parquet(dir.path(), SF, &small_files(), &NoProgress).expect("it writes");
    let error = write_ssb_parquet(dir.path(), 0.02, &small_files(), &NoProgress).expect_err("other data");
    assert!(error.to_string().contains("holds ssb at scale factor 0.01"), "{error}");
    // One file a table now: the folder that lineorder had goes.
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let report = write_ssb_parquet(dir.path(), 0.02, &options, &NoProgress).expect("it overwrites");
    assert_eq!(report.tables[0].path, dir.path().join("lineorder.parquet"));
    assert_eq!(all_files(dir.path()).len(), 6, "five tables and the marker");

    let strange = TempDir::new().expect("a temporary folder");
    fs::write(strange.path().join("part.parquet"), "mine").expect("it writes");
    let error = write_ssb_parquet(strange.path(), SF, &small_files(), &NoProgress).expect_err("not ours");
    assert!(matches!(error, DatagenError::OtherData { .. }), "{error}");
    assert_eq!(fs::read(strange.path().join("part.parquet")).expect("still there"), b"mine");
}

/// Stops after some calls.
struct Impatient {
    calls: AtomicU64,
    last: u64,
}

impl Progress for Impatient {
    fn rows(&self, table: &str, done: u64, total: u64) {
        assert!(done <= total, "{done} of {total} rows of {table}");
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= self.last
    }
}

#[test]
fn cancelling_leaves_no_half_file_and_can_be_taken_up() {
    let dir = TempDir::new().expect("a temporary folder");
    let impatient = Impatient { calls: AtomicU64::new(0), last: 3 };
    let error = write_ssb_parquet(dir.path(), SF, &small_files(), &impatient).expect_err("cancelled");
    assert!(matches!(error, DatagenError::Cancelled), "{error}");
    let temporary = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "tmp");
    assert!(!all_files(dir.path()).iter().any(temporary));
    let report = write_ssb_parquet(dir.path(), SF, &small_files(), &NoProgress).expect("it writes");
    assert!(!report.reused);
}

#[test]
fn an_unwritable_folder_is_named() {
    let dir = TempDir::new().expect("a temporary folder");
    let file = dir.path().join("taken");
    fs::write(&file, "").expect("it writes");
    let error = write_ssb_parquet(&file, SF, &small_files(), &NoProgress).expect_err("a file is in the way");
    assert!(matches!(&error, DatagenError::Io { path, .. } if *path == file), "{error}");
}

#[test]
fn tpcds_files_hold_the_batches_however_they_are_cut() {
    let dir = TempDir::new().expect("a temporary folder");
    let options = WriteOptions { rows_per_file: 60_000, ..WriteOptions::default() };
    let report = write_tpcds_parquet(dir.path(), SF, &options, &NoProgress).expect("it writes");
    assert_eq!(report.tables.len(), 24);
    let table = |name: &str| report.tables.iter().find(|table| table.name == name).expect("a table");
    let rows = ["store_sales", "store_returns", "date_dim", "time_dim", "customer_demographics", "item", "ship_mode"];
    let rows = rows.map(|name| table(name).rows);
    assert_eq!(rows, TPCDS_ROWS);
    // Cut by orders, the facts hold the same rows.
    let whole = TempDir::new().expect("a temporary folder");
    let report_whole = write_tpcds_parquet(whole.path(), SF, &WriteOptions::default(), &NoProgress).expect("it writes");
    assert!(table("inventory").files > 1);
    for (cut, whole) in report.tables.iter().zip(&report_whole.tables) {
        assert!(read(&cut.path).columns() == read(&whole.path).columns(), "{}", cut.name);
    }
}
