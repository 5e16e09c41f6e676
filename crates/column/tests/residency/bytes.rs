//! String columns past the dictionary limit: bytes on the device, in column files and in host copies.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use warpcube_column::format::{Bytes, Encoding};
use warpcube_column::{LoadLimits, Location, Pinned, Relation, Residency, TableRequest};

use crate::source::*;

const BUDGET: u64 = 64 << 20;
const ROWS: usize = 6_000;
const LIMIT: usize = 40;

fn comment(row: usize) -> Option<String> {
    (row % 7 != 3).then(|| format!("{}-{}", "ä".repeat(row % 5), row / 2)).filter(|_| row % 1_000 > 0)
}

fn tone(row: usize) -> Option<String> {
    (row % 9 != 0).then(|| format!("tone {}", row % LIMIT))
}

/// An integer, strings past the limit, and strings within it.
fn table() -> Source {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let comments: ArrayRef = Arc::new(StringArray::from_iter((0..ROWS).map(comment)));
    let tones: ArrayRef = Arc::new(StringArray::from_iter((0..ROWS).map(tone)));
    Source::new("t", vec![("n", numbers), ("comment", comments), ("tone", tones)], &[2_500, 0, 1, 3_499], 611)
}

fn request(source: &Source, columns: &[usize], coded: &[usize]) -> TableRequest {
    TableRequest { coded: coded.to_vec(), ..source.request(columns) }
}

fn limits(dictionary_values: usize) -> LoadLimits {
    LoadLimits { dictionary_values, host_bytes: u64::MAX, ..plain() }
}

fn load(residency: &Residency, source: &Source, columns: &[usize], limit: usize) -> Pinned {
    admit_with(residency, &[request(source, columns, &[])], 0, &limits(limit)).unwrap()
}

/// The strings of a column of bytes.
fn strings(residency: &Residency, relation: &Relation, column: usize) -> Vec<Option<String>> {
    let mut stream = residency.device().stream().unwrap();
    let mut all = Vec::new();
    for segment in relation.columns[column].segments() {
        let mut values = vec![0; segment.values().bytes()];
        stream.download(segment.values(), 0, &mut values).unwrap();
        let mut valid = vec![u8::MAX; segment.rows() as usize / 8 + 1];
        if let Some(words) = segment.validity() {
            valid.resize(words.bytes(), 0);
            stream.download(words, 0, &mut valid).unwrap();
        }
        let rows = segment.rows() as usize;
        let offset = |row: usize| u32::from_le_bytes(values[4 * row..4 * row + 4].try_into().unwrap()) as usize;
        let text = &values[4 * (rows.next_multiple_of(1024) + 4)..];
        let string = |row: usize| String::from_utf8(text[offset(row)..offset(row + 1)].to_vec()).unwrap();
        all.extend((0..rows).map(|row| (valid[row / 8] >> (row % 8) & 1 == 1).then(|| string(row))));
    }
    all
}

fn check(residency: &Residency, pinned: &Pinned, column: usize) {
    let relation = &pinned.tables[0];
    let resident = &relation.columns[column];
    assert_eq!(resident.encoding(), &Encoding::Bytes(Bytes { limit: LIMIT as u64 }));
    let expected: Vec<Option<String>> = (0..ROWS).map(comment).collect();
    assert!(strings(residency, relation, column) == expected);
    let facts = resident.facts();
    assert_eq!(facts.statistics.nulls as usize, expected.iter().filter(|text| text.is_none()).count());
    assert!(facts.dictionary.is_none() && facts.is_nullable());
    let text: usize = expected.iter().flatten().map(String::len).sum();
    assert!(resident.bytes() as usize > text && resident.bytes_per_value() * ROWS as f64 > text as f64);
}

#[test]
fn strings_past_the_limit_are_bytes_beside_columns_of_values() {
    for apart in [false, true] {
        let (source, residency) = (table(), residency(BUDGET));
        source.0.apart.store(apart, Ordering::SeqCst);
        let pinned = load(&residency, &source, &[0, 1, 2], LIMIT);
        check(&residency, &pinned, 1);
        assert_eq!(&pinned.tables[0].chunks[..], [2_500, 1, 3_499]);
        assert_eq!(pinned.tables[0].columns[2].facts().dictionary.as_ref().unwrap().len(), LIMIT);
        assert_eq!(values(&residency, &pinned.tables[0], 0)[77], 77);
        assert_eq!(source.scans(), [vec![0, 1, 2], vec![1]], "the strings are read again");
        assert_eq!(residency.summaries()[0].columns[1].encoding, "bytes");
        let text_bytes = |column| residency.text_bytes("t", "1", column);
        assert!(text_bytes(1).is_some_and(|bytes| (8.0..20.0).contains(&bytes)) && text_bytes(2).is_none());
    }
}

#[test]
fn strings_alone_and_on_many_threads_are_bytes() {
    for threads in [1, 4] {
        let (source, residency) = (table(), residency(BUDGET));
        source.0.apart.store(true, Ordering::SeqCst);
        let limits = LoadLimits { threads, ..limits(LIMIT) };
        let pinned = admit_with(&residency, &[request(&source, &[1], &[])], 0, &limits).unwrap();
        check(&residency, &pinned, 0);
    }
}

#[test]
fn codes_of_bytes_are_refused_and_a_higher_limit_brings_them() {
    let (source, residency) = (table(), residency(BUDGET));
    let coded = |limit: usize| admit_with(&residency, &[request(&source, &[0, 1], &[1])], 0, &limits(limit));
    let error = coded(LIMIT).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("more than 40 distinct strings"), "{error}");
    assert_eq!(source.scans().len(), 1);
    // A column known to be past the limit is read once.
    let pinned = load(&residency, &source, &[0, 1], LIMIT);
    check(&residency, &pinned, 1);
    assert_eq!(source.scans().len(), 2);
    drop(pinned);
    for _ in 0..2 {
        let error = coded(LIMIT).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("lies on the device as bytes"), "{error}");
    }
    assert_eq!(source.scans().len(), 2, "nothing is read for what is refused");
    let pinned = coded(10_000).unwrap();
    assert!(pinned.tables[0].columns[1].facts().dictionary.is_some());
    assert_eq!(source.scans()[2..], [vec![1]]);
    drop(pinned);
    // Codes serve statements that take bytes too, under any limit.
    assert!(load(&residency, &source, &[0, 1], LIMIT).tables[0].columns[1].facts().dictionary.is_some());
}

#[test]
fn bytes_return_from_column_files() {
    let source = table();
    let folder = tempfile::tempdir().unwrap();
    *source.0.kept.lock() = Some((folder.path().join("t.cols"), true));
    let first = residency(BUDGET);
    assert!(load(&first, &source, &[0, 1], LIMIT).loaded.written > 0);
    let read = source.scans().len();
    let second = residency(BUDGET);
    let pinned = load(&second, &source, &[0, 1], LIMIT);
    check(&second, &pinned, 1);
    assert_eq!((pinned.loaded.restored, &pinned.loaded.warnings[..]), (pinned.loaded.bytes, &[][..]));
    assert_eq!(source.scans().len(), read, "nothing is read again");
    let coded = |limit: usize| admit_with(&residency(BUDGET), &[request(&source, &[1], &[1])], 0, &limits(limit));
    let error = coded(LIMIT).unwrap_err();
    assert!(error.is_unsupported() && source.scans().len() == read, "{error}");
    assert!(coded(10_000).unwrap().tables[0].columns[0].facts().dictionary.is_some());
    assert_eq!(source.scans()[read..], [vec![1]]);
    // The file has the codes now; they are past the lower limit.
    let third = residency(BUDGET);
    let pinned = load(&third, &source, &[1], LIMIT);
    check(&third, &pinned, 0);
}

#[test]
fn bytes_return_from_host_copies() {
    let (source, small) = (table(), residency(256 << 10));
    let pinned = load(&small, &source, &[1], LIMIT);
    check(&small, &pinned, 0);
    let read = source.scans().len();
    drop(pinned);
    let others = Source::integers("others", 1, 24 << 10);
    drop(admit_with(&small, &[others.request(&[0])], 0, &limits(LIMIT)).unwrap());
    assert_eq!(small.location("t", "1", 1), Location::Host);
    let error = admit_with(&small, &[request(&source, &[1], &[1])], 0, &limits(LIMIT)).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    let pinned = load(&small, &source, &[1], LIMIT);
    check(&small, &pinned, 0);
    assert!(pinned.loaded.restored > 0 && source.scans().len() == read, "nothing is read again");
}

#[test]
fn strings_of_rows_come_back() {
    let (source, residency) = (table(), residency(BUDGET));
    let pinned = load(&residency, &source, &[1], LIMIT);
    let column = &pinned.tables[0].columns[0];
    let mut stream = residency.device().stream().unwrap();
    // Rows of every chunk, backwards and twice, and rows that are not there.
    let rows: Vec<Option<usize>> = (0..ROWS).rev().chain([7, 7, 2_500, 2_501]).map(Some).chain([None]).collect();
    let place = |row: usize| {
        let (chunk, first) = [(2, 2_501), (1, 2_500), (0, 0)].into_iter().find(|(_, first)| row >= *first).unwrap();
        ((chunk as u64) << 20) + (row - first) as u64
    };
    let wanted = |row: &Option<usize>| row.filter(|row| comment(*row).is_some());
    let places: Vec<Option<u64>> = rows.iter().map(|row| wanted(row).map(place)).collect();
    let found = column.strings_at(residency.device(), &mut stream, &places).unwrap();
    let expected: Vec<Option<String>> = rows.iter().map(|row| row.and_then(comment)).collect();
    assert!(found.iter().map(|text| text.map(str::to_string)).eq(expected));
    assert_eq!(column.strings_at(residency.device(), &mut stream, &[None, None]).unwrap().null_count(), 2);
}
