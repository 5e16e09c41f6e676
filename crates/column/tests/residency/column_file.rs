//! Column files: loads after a restart without a read of the source, and warnings about defective files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use tempfile::TempDir;
use warpcube_column::format::{
    EncodedChunk, EncodedColumn, EncodedFile, Encoding, FORMAT_VERSION, FileError, FileWriter, Packed, TableIdentity,
};
use warpcube_column::{
    ColumnError, ColumnOrigin, Dictionary, EncodingChoice, LoadLimits, Pinned, Residency, ResidentColumn, Statistics,
    Storage,
};

use crate::content::{check_every_type, every_type};
use crate::source::*;

const BUDGET: u64 = 64 << 20;
const ROWS: usize = 5_000;

/// The path of a new column file for a source.
fn keep(source: &Source) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.cols");
    *source.0.kept.lock() = Some((path.clone(), true));
    (folder, path)
}

/// Loads columns onto a new device.
fn restart(source: &Source, columns: &[usize]) -> (Residency, Pinned) {
    let residency = residency(BUDGET);
    let pinned = admit(&residency, source, columns, 0).unwrap();
    (residency, pinned)
}

/// All bytes of a column's segments.
fn raw(residency: &Residency, pinned: &Pinned, column: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut stream = residency.device().stream().unwrap();
    let segments = pinned.tables[0].columns[column].segments();
    let mut bytes = |buffer: &warpcube_gpu::DeviceBuffer| {
        let mut bytes = vec![0; buffer.bytes()];
        stream.download(buffer, 0, &mut bytes).unwrap();
        bytes
    };
    segments.iter().map(|s| (bytes(s.values()), s.validity().map_or(Vec::new(), &mut bytes))).collect()
}

fn origins(residency: &Residency) -> Vec<Option<ColumnOrigin>> {
    residency.summaries()[0].columns.iter().map(|column| column.origin).collect()
}

#[test]
fn every_type_loads_without_its_source() {
    let columns = every_type(ROWS);
    let source = Source::new("t", columns.clone(), &[1_500, 0, 2_048, 1_452], 611);
    let (_folder, path) = keep(&source);
    let wanted: Vec<usize> = (0..columns.len()).collect();
    let (first, loaded) = restart(&source, &wanted);
    assert_eq!((loaded.loaded.restored, loaded.loaded.written), (0, std::fs::metadata(&path).unwrap().len()));
    let (second, again) = restart(&source, &wanted);
    assert_eq!(source.scans().len(), 1, "nothing is read again");
    assert_eq!(again.loaded.restored, again.loaded.bytes);
    assert!(again.loaded.bytes > 0 && again.loaded.written == 0 && again.loaded.warnings.is_empty());
    check_every_type(&second, &again.tables[0], &columns);
    for column in wanted {
        let (before, after) = (&loaded.tables[0].columns[column], &again.tables[0].columns[column]);
        assert_eq!((&after.facts().statistics, after.encoding()), (&before.facts().statistics, before.encoding()));
        assert_eq!(
            (after.name(), &after.facts().data_type, after.bytes()),
            (before.name(), &before.facts().data_type, before.bytes())
        );
        assert!(raw(&first, &loaded, column) == raw(&second, &again, column), "{}", after.name());
    }
    assert!(origins(&first).iter().all(|origin| *origin == Some(ColumnOrigin::Source)));
    assert!(origins(&second).iter().all(|origin| *origin == Some(ColumnOrigin::File)));
}

#[test]
fn columns_of_every_encoding_load_unchanged() {
    let mut columns = every_type(ROWS);
    let prices = Float64Array::from_iter((0..ROWS).map(|row| (row % 6 > 0).then_some((row % 700) as f64 / 100.0)));
    columns.push(("price", Arc::new(prices)));
    columns.push(("id", Arc::new(Int64Array::from_iter_values(1_000_000..1_000_000 + ROWS as i64))));
    let wanted: Vec<usize> = (0..columns.len()).collect();
    for choice in EncodingChoice::ALL {
        let source = Source::new("t", columns.clone(), &[4_000, 1_000], 611);
        let (_folder, _) = keep(&source);
        let first = residency(BUDGET);
        let limits = LoadLimits { encoding: choice, ..plain() };
        let loaded = admit_with(&first, &[source.request(&wanted)], 0, &limits).unwrap();
        assert!(loaded.loaded.written > 0, "{choice}");
        // The choice of the plain encoding applies to loads from the source.
        let (second, again) = restart(&source, &wanted);
        assert_eq!((source.scans().len(), again.loaded.restored), (1, again.loaded.bytes), "{choice}");
        let mut named = 0;
        for column in &wanted {
            let (before, after) = (&loaded.tables[0].columns[*column], &again.tables[0].columns[*column]);
            let what = format!("{choice}: {} {}", after.name(), after.encoding());
            assert_eq!(
                (after.encoding(), &after.facts().statistics),
                (before.encoding(), &before.facts().statistics),
                "{what}"
            );
            assert_eq!(after.facts().traits, before.facts().traits, "{what}");
            assert!(raw(&first, &loaded, *column) == raw(&second, &again, *column), "{what}");
            let lookup = |residency: &Residency, column: &ResidentColumn| {
                let lookup = column.lookup()?;
                let mut bytes = vec![0; lookup.bytes()];
                residency.device().stream().unwrap().download(lookup, 0, &mut bytes).unwrap();
                Some(bytes)
            };
            assert!(lookup(&first, before) == lookup(&second, after), "{what}");
            named += usize::from(after.encoding().to_string().contains(choice.name()));
        }
        assert!(named > 0 || choice == EncodingChoice::Auto, "no column is {choice}");
    }
}

#[test]
fn loads_add_columns_to_the_file() {
    let source = Source::integers("t", 4, ROWS);
    let (_folder, path) = keep(&source);
    drop(restart(&source, &[2]));
    drop(restart(&source, &[0, 2]));
    assert_eq!(source.scans(), [vec![2], vec![0]]);
    let identity = TableIdentity { table: "table t".into(), version: "1".into() };
    let names = |path: &Path| -> Vec<String> {
        let file = EncodedFile::open(path, &identity).unwrap();
        file.columns().iter().map(|column| column.name.clone()).collect()
    };
    assert_eq!(names(&path), ["c2", "c0"]);
    // A source without `write` adds no columns.
    *source.0.kept.lock() = Some((path.clone(), false));
    let (residency, pinned) = restart(&source, &[0, 1, 2]);
    assert_eq!((source.scans().len(), names(&path).len()), (3, 2));
    for column in 0..3 {
        assert_eq!(values(&residency, &pinned.tables[0], column)[7], 70 + column as i64);
    }
    assert_eq!(origins(&residency), [Some(ColumnOrigin::File), Some(ColumnOrigin::Source), Some(ColumnOrigin::File)]);
    // A new version replaces the file.
    *source.0.kept.lock() = Some((path.clone(), true));
    source.0.version.store(2, Ordering::SeqCst);
    let (_, pinned) = restart(&source, &[3]);
    let warnings = &pinned.loaded.warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("holds version 'table t 1'"), "{warnings:?}");
    let identity = TableIdentity { table: "table t".into(), version: "2".into() };
    let file = EncodedFile::open(&path, &identity).unwrap();
    assert_eq!(file.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["c3"]);
}

#[test]
fn a_file_without_columns_has_rows() {
    let source = Source::integers("t", 1, ROWS);
    let (_folder, _) = keep(&source);
    drop(restart(&source, &[0]));
    let (_, pinned) = restart(&source, &[]);
    assert_eq!((pinned.tables[0].rows(), source.scans().len()), (ROWS as u64, 1));
}

#[test]
fn an_evicted_table_loads_from_its_file() {
    let source = Source::integers("t", 2, ROWS);
    let (_folder, _) = keep(&source);
    let (residency, pinned) = restart(&source, &[0, 1]);
    drop(pinned);
    assert!(residency.evict_by_name("t").is_some() && residency.device().pool().usage().reserved == 0);
    let again = admit(&residency, &source, &[1, 0], 0).unwrap();
    assert_eq!((values(&residency, &again.tables[0], 0)[9], again.loaded.restored), (91, again.loaded.bytes));
    assert_eq!(source.scans().len(), 1);
}

#[test]
fn a_dictionary_over_the_limit_stays_in_its_file() {
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{}", row % 50))));
    let source = Source::new("t", vec![("s", text)], &[ROWS], 611);
    let (_folder, _) = keep(&source);
    drop(restart(&source, &[0]));
    let limited = |values: usize| LoadLimits { dictionary_values: values, ..plain() };
    let refused = admit_with(&residency(BUDGET), &[source.request(&[0])], 0, &limited(49)).unwrap_err();
    assert!(refused.is_unsupported() && source.scans().len() == 2, "{refused}");
    assert!(admit_with(&residency(BUDGET), &[source.request(&[0])], 0, &limited(50)).is_ok());
    assert_eq!(source.scans().len(), 2);
}

/// A table of three columns, one of them of strings, and the bytes of its file.
fn kept_table() -> (Source, TempDir, PathBuf, Vec<u8>) {
    let mut columns = every_type(ROWS);
    columns.retain(|(name, _)| ["i32", "f64", "text"].contains(name));
    let source = Source::new("t", columns, &[3_000, 2_000], 611);
    let (folder, path) = keep(&source);
    drop(restart(&source, &[0, 1, 2]));
    let bytes = std::fs::read(&path).unwrap();
    (source, folder, path, bytes)
}

/// The three columns by row, and the strings of the last.
type Content = (Vec<Vec<Option<Vec<u8>>>>, Vec<String>);

fn content(residency: &Residency, pinned: &Pinned) -> Content {
    let table = &pinned.tables[0];
    let by_row = |column: usize| {
        let (bytes, valid) = download(residency, table, column);
        let width = table.columns[column].storage().width();
        bytes.chunks(width).zip(valid).map(|(value, valid)| valid.then(|| value.to_vec())).collect()
    };
    let strings =
        table.columns[2].facts().dictionary.as_ref().unwrap().values().iter().map(|text| text.unwrap().to_string());
    ((0..3).map(by_row).collect(), strings.collect())
}

/// Loads all columns with a changed file, and checks their values. Returns the number of columns from the file, and the
/// warnings.
fn load_beside(source: &Source, path: &Path, bytes: &[u8], expected: &Content) -> (usize, Vec<String>) {
    std::fs::write(path, bytes).unwrap();
    let (residency, pinned) = restart(source, &[0, 1, 2]);
    assert!(content(&residency, &pinned) == *expected, "{:?}", pinned.loaded.warnings);
    let from_file = origins(&residency).iter().filter(|origin| **origin == Some(ColumnOrigin::File)).count();
    (from_file, pinned.loaded.warnings.clone())
}

/// The content of a load without a file.
fn without_file(source: &Source) -> Content {
    let kept = source.0.kept.lock().take();
    let (residency, pinned) = restart(source, &[0, 1, 2]);
    *source.0.kept.lock() = kept;
    content(&residency, &pinned)
}

#[test]
fn truncated_files_are_ignored_and_replaced() {
    let (source, _folder, path, bytes) = kept_table();
    let expected = without_file(&source);
    for length in (0..bytes.len()).step_by(bytes.len() / 40).chain([1, 8, 39, 40, bytes.len() - 1]) {
        let (from_file, warnings) = load_beside(&source, &path, &bytes[..length], &expected);
        assert_eq!((from_file, warnings.len()), (0, 1), "cut to {length}: {warnings:?}");
        assert!(warnings[0].contains("t.cols' is damaged at its ") && warnings[0].ends_with("is read instead"));
        assert_eq!(std::fs::read(&path).unwrap().len(), bytes.len(), "it was written anew");
    }
    assert_eq!(load_beside(&source, &path, &bytes, &expected), (3, vec![]));
}

#[test]
fn flipped_bits_exclude_their_column_or_the_file() {
    let (source, _folder, path, bytes) = kept_table();
    let expected = without_file(&source);
    let directory = u64::from_le_bytes(bytes[bytes.len() - 24..][..8].try_into().unwrap()) as usize;
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut columns, mut files, mut harmless) = (0, 0, 0);
    for round in 0..150 {
        let at = match round % 3 {
            0 => 64 + random(directory - 64),
            1 => directory + random(bytes.len() - directory),
            _ => bytes.len() - 1 - random(24),
        };
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random(8);
        let (from_file, warnings) = load_beside(&source, &path, &damaged, &expected);
        match (from_file, warnings.as_slice()) {
            // Zeros between payloads.
            (3, []) => harmless += 1,
            (2, [warning]) => {
                let told =
                    warning.contains("column '") && (warning.contains(", chunk ") || warning.contains("strings of"));
                assert!(told && warning.contains("its checksum differs"), "{warning}");
                columns += 1;
            }
            (0, [_]) => files += 1,
            other => panic!("byte {at}: {other:?}"),
        }
        assert!(at < directory || from_file == 0, "byte {at} of the directory or the trailer");
        // The load replaced the damaged file.
        let (from_file, warnings) = load_beside(&source, &path, &std::fs::read(&path).unwrap(), &expected);
        assert_eq!((from_file, warnings), (3, vec![]));
    }
    assert!(columns > 30 && files == 100 && harmless < 20, "{columns} columns, {files} files, {harmless} harmless");
}

#[test]
fn files_of_other_formats_tables_and_versions_are_ignored() {
    let (source, _folder, path, bytes) = kept_table();
    let expected = without_file(&source);
    for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1, u32::MAX] {
        let mut other = bytes.clone();
        let end = other.len();
        other[8..12].copy_from_slice(&version.to_le_bytes());
        other[end - 12..end - 8].copy_from_slice(&version.to_le_bytes());
        let (from_file, warnings) = load_beside(&source, &path, &other, &expected);
        assert!(from_file == 0 && warnings.len() == 1, "{warnings:?}");
        assert!(warnings[0].contains(&format!("has format version {version} of encoded columns")), "{warnings:?}");
        assert_eq!(std::fs::read(&path).unwrap()[8..12], FORMAT_VERSION.to_le_bytes(), "replaced by one of ours");
    }
    for content in [&b"PAR1"[..], &[0; 100], &[0xff; 5_000]] {
        let (from_file, warnings) = load_beside(&source, &path, content, &expected);
        assert!(from_file == 0 && warnings.len() == 1 && warnings[0].contains("is damaged at its "), "{warnings:?}");
    }
    let other = Source::integers("other", 2, 2_000);
    *other.0.kept.lock() = Some((path.clone(), false));
    let (residency, pinned) = restart(&other, &[1]);
    assert_eq!(values(&residency, &pinned.tables[0], 0)[1_999], 19_991);
    assert!(pinned.loaded.warnings[0].contains("wanted 'table other 1'"), "{:?}", pinned.loaded.warnings);
}

#[test]
fn files_with_other_chunks_are_replaced() {
    let source = Source::integers("t", 2, ROWS);
    let (_folder, path) = keep(&source);
    drop(restart(&source, &[0]));
    // The same version in two partitions contradicts the contract of scans.
    let whole = source.0.partitions.lock().concat();
    let batch = arrow::compute::concat_batches(&source.0.schema, &whole).unwrap();
    *source.0.partitions.lock() = vec![vec![batch.slice(0, 4_000)], vec![batch.slice(4_000, 1_000)]];
    let (residency, pinned) = restart(&source, &[0, 1]);
    assert_eq!(pinned.tables[0].chunks[..], [4_000, 1_000]);
    for column in 0..2 {
        assert_eq!(values(&residency, &pinned.tables[0], column)[4_321], 43_210 + column as i64);
    }
    drop(pinned);
    // The new file is used again.
    assert!(residency.evict_by_name("t").is_some());
    let again = admit(&residency, &source, &[0, 1], 0).unwrap();
    assert_eq!((again.tables[0].chunks.len(), again.loaded.restored), (2, again.loaded.bytes));
    // A file with other chunks than a resident column is not used.
    *source.0.kept.lock() = None;
    *source.0.partitions.lock() = vec![vec![batch]];
    let (second, first) = restart(&source, &[0]);
    *source.0.kept.lock() = Some((path, false));
    let scans = source.scans().len();
    let pinned = admit(&second, &source, &[1], 0).unwrap();
    assert_eq!((first.tables[0].chunks.len(), pinned.tables[0].chunks.len()), (1, 1));
    assert_eq!((values(&second, &pinned.tables[0], 0)[4_321], source.scans().len()), (43_211, scans + 1));
    let warnings = &pinned.loaded.warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("rows that are cut differently"), "{warnings:?}");
}

#[test]
fn contradictory_files_are_ignored() {
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{}", row % 5))));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let source = Source::new("t", vec![("n", numbers), ("s", text)], &[ROWS], 611);
    let (_folder, path) = keep(&source);
    *source.0.kept.lock() = Some((path.clone(), false));
    let identity = TableIdentity { table: "table t".into(), version: "1".into() };
    let bytes = |width: usize| vec![0; ROWS.next_multiple_of(1024) * width];
    let all = Statistics { rows: ROWS as u64, integers: Some((0, 4)), ..Statistics::default() };
    let fewer = Statistics { rows: ROWS as u64 - 1, ..all.clone() };
    let strings = Dictionary::from_sorted(StringArray::from_iter_values(["0", "1", "2", "3", "4"]));
    let packed = |width| Encoding::Packed(Packed { width, reference: Some(0), patches: false });
    for (column, data_type, encoding, bytes, statistics, strings, told) in [
        (0, "Int64", Encoding::Plain, bytes(4), &all, None, "column 'n', chunk 0: it is not as long as"),
        (0, "Int64", packed(3), bytes(8), &all, None, "column 'n', chunk 0: it is not as long as"),
        (0, "Int64", Encoding::Plain, bytes(8), &fewer, None, "its head contradicts the table"),
        (0, "Int64", Encoding::Plain, bytes(8), &all, Some(&strings), "its head contradicts the table"),
        (1, "Utf8", Encoding::Plain, bytes(4), &all, None, "its head contradicts the table"),
        // Columns of other types or of invalid encodings are not read.
        (0, "Timestamp(ns)", Encoding::Plain, bytes(8), &all, None, ""),
        (0, "Int64", packed(13), bytes(8), &all, None, ""),
    ] {
        let (name, storage) = [("n", Storage::I64), ("s", Storage::U32)][column];
        let (name, data_type, statistics) = (name.to_string(), data_type.to_string(), statistics.clone());
        let head = EncodedColumn { name, data_type, storage, encoding, statistics, traits: None };
        let mut writer = FileWriter::create(&path, &identity, &[ROWS as u32]).unwrap();
        let chunk = EncodedChunk { bytes, validity: None, rows: ROWS };
        writer.column(&head, strings, [Ok::<_, FileError>(chunk)]).unwrap();
        writer.finish().unwrap();
        let (residency, pinned) = restart(&source, &[column]);
        assert_eq!((origins(&residency), pinned.loaded.restored), (vec![Some(ColumnOrigin::Source)], 0), "{head:?}");
        let warnings = &pinned.loaded.warnings;
        assert_eq!(warnings.len(), usize::from(!told.is_empty()), "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains(told)), "{warnings:?}");
    }
}

#[test]
fn a_failed_write_gives_one_warning() {
    let source = Source::integers("t", 3, ROWS);
    let (folder, _) = keep(&source);
    // A folder at the path of the file, then a file at the path of its folder.
    let (taken, file) = (folder.path().join("taken"), folder.path().join("file"));
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(&file, "not a folder").unwrap();
    for path in [taken, file.join("t.cols")] {
        *source.0.kept.lock() = Some((path.clone(), true));
        let residency = residency(BUDGET);
        for (column, told) in [(0, true), (1, false), (2, false)] {
            let pinned = admit(&residency, &source, &[column], 0).unwrap();
            assert_eq!(values(&residency, &pinned.tables[0], 0)[3], 30 + column as i64);
            let warnings = &pinned.loaded.warnings;
            let written = warnings.iter().filter(|warning| warning.starts_with("columns are not kept: ")).count();
            assert_eq!(written == 1, told, "{}: {warnings:?}", path.display());
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "failed writes leave no files");
}

#[test]
fn concurrent_writers_leave_a_whole_file() {
    let source = Source::integers("t", 8, ROWS);
    let (folder, _) = keep(&source);
    std::thread::scope(|scope| {
        for column in 0..8 {
            let source = &source;
            scope.spawn(move || {
                let (residency, pinned) = restart(source, &[column]);
                assert_eq!(values(&residency, &pinned.tables[0], 0)[3], 30 + column as i64);
                assert!(pinned.loaded.warnings.is_empty(), "{:?}", pinned.loaded.warnings);
            });
        }
    });
    let (residency, pinned) = restart(&source, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(pinned.loaded.warnings.is_empty() && pinned.loaded.restored > 0, "one of them was the last");
    for column in 0..8 {
        assert_eq!(values(&residency, &pinned.tables[0], column)[3], 30 + column as i64);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_load_from_a_file_past_the_budget_is_refused() {
    let source = Source::integers("t", 2, 16 << 10);
    let (_folder, _) = keep(&source);
    drop(restart(&source, &[0, 1]));
    let small = residency(200 << 10);
    let error = admit(&small, &source, &[0, 1], 0).unwrap_err();
    assert!(matches!(error, ColumnError::OverBudget { .. }), "{error}");
    assert_eq!(small.device().pool().usage().reserved, 0);
    let one = admit(&small, &source, &[1], 0).unwrap();
    assert_eq!((values(&small, &one.tables[0], 0)[3], source.scans().len()), (31, 1));
}
