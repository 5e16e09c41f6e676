//! Column files: writes, reads, and errors of damaged files.

use std::path::Path;

use arrow::array::StringArray;
use warpcube_column::format::{
    Dictionary, EncodedChunk, EncodedColumn, EncodedFile, Encoding, FORMAT_VERSION, FileError, FileWriter, Packed,
    TableIdentity, decode, encode,
};
use warpcube_column::{Statistics, Storage, Traits};

use crate::data::*;
use crate::every::encodings;

fn identity() -> TableIdentity {
    TableIdentity { table: "sales".into(), version: "a.parquet 17 2026-11-21".into() }
}

fn column(name: &str, storage: Storage, encoding: Encoding) -> EncodedColumn {
    let statistics = Statistics { rows: 7, nulls: 1, integers: Some((-1, 9)), ..Statistics::default() };
    let data_type = format!("{storage:?}");
    let traits = Some(Traits { distinct: 5, runs: 6, is_sorted: true });
    EncodedColumn { name: name.into(), data_type, storage, encoding, statistics, traits }
}

fn chunk(segment: &Segment, encoding: &Encoding) -> EncodedChunk {
    let bytes = encode(encoding, &segment.plain()).unwrap();
    EncodedChunk { bytes, validity: segment.validity.clone(), rows: segment.rows }
}

/// A small file: two chunks of a column with nulls, of one without and of strings; the segments by column and chunk.
fn write(path: &Path) -> Vec<Vec<Segment>> {
    let chunks = |values: &[u64], valid: Option<&[bool]>| {
        vec![Segment::new(Storage::U32, values, valid), Segment::new(Storage::U32, &values[..1], None)]
    };
    let nulls = chunks(&[5, 6, 0], Some(&[true, true, false]));
    let runs = chunks(&[3, 3, 3], None);
    let codes = chunks(&[0, 1, 1], None);
    let packed = Encoding::Packed(Packed { width: 1, reference: Some(5), patches: true });
    let dictionary = Dictionary::new(Storage::U32, vec![0, 1], Encoding::Rle).unwrap();
    let columns = [
        column("nulls", Storage::U32, packed),
        column("runs", Storage::U32, Encoding::Rle),
        column("text", Storage::U32, Encoding::Dictionary(dictionary)),
    ];
    let strings = StringArray::from_iter_values(["", "größer"]);
    let strings = warpcube_column::Dictionary::from_sorted(strings);
    let mut writer = FileWriter::create(path, &identity(), &[3, 1]).unwrap();
    let all = vec![nulls, runs, codes];
    for (column, segments) in columns.iter().zip(&all) {
        let chunks = segments.iter().map(|segment| Ok::<_, FileError>(chunk(segment, &column.encoding)));
        writer.column(column, (column.name == "text").then_some(&strings), chunks).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), std::fs::metadata(path).unwrap().len());
    all
}

/// The decoded values of a chunk.
fn decoded(file: &EncodedFile, column: usize, chunk: usize) -> Result<Vec<u8>, FileError> {
    let (head, EncodedChunk { bytes, validity, rows }) = (&file.columns()[column], file.chunk(column, chunk)?);
    Ok(decode(&head.encoding, &bytes, head.storage, validity.as_deref(), rows).unwrap())
}

/// Reads every column and compares it with the written one.
fn read(path: &Path, segments: &[Vec<Segment>]) -> Result<(), FileError> {
    let file = EncodedFile::open(path, &identity())?;
    assert_eq!(file.chunk_rows(), [3, 1]);
    let names: Vec<&str> = file.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["nulls", "runs", "text"]);
    assert_eq!(file.columns()[0].statistics.integers, Some((-1, 9)));
    assert_eq!(file.columns()[1].traits, Some(Traits { distinct: 5, runs: 6, is_sorted: true }));
    assert!(file.strings(0)?.is_none());
    assert_eq!(file.strings(2)?.unwrap().values().value(1), "größer");
    for (column, segments) in segments.iter().enumerate() {
        for (chunk, segment) in segments.iter().enumerate() {
            assert_eq!(file.chunk(column, chunk)?.validity, segment.validity);
            assert!(decoded(&file, column, chunk)? == segment.values);
        }
    }
    Ok(())
}

#[test]
fn written_columns_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let segments = write(&path);
    read(&path, &segments).unwrap();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["sales.cols"], "the temporary file is gone");
}

#[test]
fn any_flipped_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let segments = write(&path);
    let bytes = std::fs::read(&path).unwrap();
    let mut harmless = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, damaged).unwrap();
        harmless += usize::from(read(&path, &segments).is_ok());
    }
    // Padding before a payload: at most 63 bytes each, before seven of them.
    assert!(harmless < 7 * 64, "{harmless} of {} flips were not found", bytes.len());
}

#[test]
fn a_cut_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let segments = write(&path);
    let bytes = std::fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = read(&path, &segments).unwrap_err();
        assert!(matches!(error, FileError::Damaged { .. }), "cut to {length}: {error}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read(&path, &segments), Err(FileError::Io { .. })));
}

#[test]
fn damage_names_column_and_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let segments = write(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = read(&path, &segments).unwrap_err().to_string();
    assert!(error.contains("damaged at column 'nulls', chunk 0: its checksum differs"), "{error}");
    let file = EncodedFile::open(&path, &identity()).unwrap();
    assert!(decoded(&file, 0, 1).is_ok() && decoded(&file, 1, 0).is_ok(), "other chunks are readable");
}

#[test]
fn other_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    write(&path);
    let other = TableIdentity { version: "a.parquet 18".into(), ..identity() };
    let error = EncodedFile::open(&path, &other).unwrap_err();
    assert!(matches!(&error, FileError::Stale { found, .. } if found.contains("17")), "{error}");
    let bytes = std::fs::read(&path).unwrap();
    for version in [FORMAT_VERSION as u8 - 1, FORMAT_VERSION as u8 + 1] {
        let mut changed = bytes.clone();
        changed[8] = version;
        std::fs::write(&path, changed).unwrap();
        let error = EncodedFile::open(&path, &identity()).unwrap_err().to_string();
        assert!(error.contains(&format!("has format version {version} of encoded columns")), "{error}");
    }
}

#[test]
fn a_file_that_is_not_finished_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let writer = FileWriter::create(&path, &identity(), &[3]).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    drop(writer);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_column_that_fails_is_not_in_the_file_and_others_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let mut writer = FileWriter::create(&path, &identity(), &[3, 1]).unwrap();
    let values = Segment::new(Storage::U32, &[7, 8, 9], None);
    let last = Segment::new(Storage::U32, &[4], None);
    let ok = |segment: &Segment| Ok::<_, FileError>(chunk(segment, &Encoding::Plain));
    let mut add = |name: &str, chunks: Vec<Result<EncodedChunk, FileError>>| {
        writer.column(&column(name, Storage::U32, Encoding::Plain), None, chunks)
    };
    let lost = FileError::Version { path: path.clone(), found: 77 };
    assert!(matches!(add("fails", vec![ok(&values), Err(lost)]), Err(FileError::Version { found: 77, .. })));
    let short = add("short", vec![ok(&values)]).unwrap_err().to_string();
    assert!(short.contains("column 'short': its chunks have other rows"), "{short}");
    assert!(add("long", vec![ok(&values), ok(&last), ok(&last)]).is_err() && add("other", vec![ok(&last)]).is_err());
    add("whole", vec![ok(&values), ok(&last)]).unwrap();
    writer.finish().unwrap();
    let file = EncodedFile::open(&path, &identity()).unwrap();
    assert_eq!(file.columns(), [column("whole", Storage::U32, Encoding::Plain)]);
    assert!(decoded(&file, 0, 0).unwrap() == values.values && decoded(&file, 0, 1).unwrap() == last.values);
}

#[test]
fn writers_at_once_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let values = [1, 2].map(|value| Segment::new(Storage::U32, &[value; 3], None));
    let mut writers = [1, 2].map(|_| FileWriter::create(&path, &identity(), &[3]).unwrap());
    for (writer, values) in writers.iter_mut().zip(&values) {
        let head = column("a", Storage::U32, Encoding::Plain);
        writer.column(&head, None, [Ok::<_, FileError>(chunk(values, &Encoding::Plain))]).unwrap();
    }
    for (writer, values) in writers.into_iter().zip(&values) {
        writer.finish().unwrap();
        assert!(decoded(&EncodedFile::open(&path, &identity()).unwrap(), 0, 0).unwrap() == values.values);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn strings_out_of_order_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sales.cols");
    let mut writer = FileWriter::create(&path, &identity(), &[]).unwrap();
    let head = column("a", Storage::U32, Encoding::Plain);
    let strings = warpcube_column::Dictionary::from_sorted(StringArray::from_iter_values(["b", "a"]));
    writer.column(&head, Some(&strings), [] as [Result<EncodedChunk, FileError>; 0]).unwrap();
    writer.finish().unwrap();
    let error = EncodedFile::open(&path, &identity()).unwrap().strings(0).unwrap_err().to_string();
    assert!(error.contains("the strings of column 'a': they are not strings in ascending order"), "{error}");
}

#[test]
fn every_encoding_goes_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    for storage in [Storage::I64, Storage::F32] {
        let segment = Segment::draw(storage, Distribution::MostlySmall, Nulls::Some, 1500, 3);
        let found = encodings(&segment);
        let mut writer = FileWriter::create(&path, &identity(), &[1500]).unwrap();
        for encoding in &found {
            let head = column(encoding.name(), storage, encoding.clone());
            writer.column(&head, None, [Ok::<_, FileError>(chunk(&segment, encoding))]).unwrap();
        }
        writer.finish().unwrap();
        let file = EncodedFile::open(&path, &identity()).unwrap();
        for (index, encoding) in found.iter().enumerate() {
            assert_eq!(file.columns()[index].encoding, *encoding);
            assert!(decoded(&file, index, 0).unwrap() == segment.values);
        }
    }
}
