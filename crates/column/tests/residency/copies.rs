//! Host copies of evicted columns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use warpcube_column::{LoadLimits, Location, Pinned, Residency};
use warpcube_gpu::size_class;

use crate::source::*;

/// Rows of a column of 128 KiB.
const ROWS: usize = 16 << 10;

fn column_bytes() -> u64 {
    size_class(ROWS * 8) as u64
}

fn admit_keeping(residency: &Residency, source: &Source, column: usize, host_bytes: u64) -> Pinned {
    let limits = LoadLimits { host_bytes, ..plain() };
    admit_with(residency, &[source.request(&[column])], 0, &limits).unwrap()
}

fn places(residency: &Residency, columns: usize) -> Vec<Location> {
    (0..columns).map(|column| residency.location("t", "1", column)).collect()
}

#[test]
fn an_evicted_column_returns_from_its_copy() {
    use Location::{Device, Host, Source as Files};
    let source = Source::integers("t", 4, ROWS);
    let residency = residency(2 * column_bytes());
    for column in [0, 1, 2] {
        drop(admit_keeping(&residency, &source, column, u64::MAX));
    }
    assert_eq!(places(&residency, 4), [Host, Device, Device, Files]);
    let column = &residency.summaries()[0].columns[0];
    assert_eq!((column.bytes, column.host_bytes, column.hits), (0, (ROWS * 8) as u64, 0));
    let pinned = admit_keeping(&residency, &source, 0, u64::MAX);
    assert_eq!(source.scans(), [vec![0], vec![1], vec![2]], "nothing is read again");
    assert_eq!((pinned.loaded.restored, pinned.loaded.bytes), (column_bytes(), column_bytes()));
    assert_eq!(values(&residency, &pinned.tables[0], 0)[77], 770);
    assert!(pinned.tables[0].columns[0].facts().statistics.strictly_ascending);
    assert_eq!(places(&residency, 4), [Device, Host, Device, Files]);
    drop(pinned);
    // The column has a copy now: its next eviction copies nothing.
    drop(admit_keeping(&residency, &source, 1, u64::MAX));
    drop(admit_keeping(&residency, &source, 2, u64::MAX));
    assert_eq!(places(&residency, 4), [Host, Device, Device, Files]);
    assert_eq!(residency.summaries()[0].columns.iter().filter(|column| column.host_bytes > 0).count(), 3);
}

#[test]
fn strings_and_nulls_return() {
    let text: ArrayRef =
        Arc::new(StringArray::from_iter((0..ROWS).map(|row| (row % 3 > 0).then(|| format!("{row:x}")))));
    let other: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let source = Source::new("t", vec![("s", text), ("n", other)], &[1_000, ROWS - 1_000], 4_096);
    let residency = residency(column_bytes() + column_bytes() / 2);
    let first = admit_keeping(&residency, &source, 0, u64::MAX);
    let before = (download(&residency, &first.tables[0], 0), first.tables[0].columns[0].facts().statistics.clone());
    drop(first);
    drop(admit_keeping(&residency, &source, 1, u64::MAX));
    assert_eq!(residency.location("t", "1", 0), Location::Host);
    let again = admit_keeping(&residency, &source, 0, u64::MAX);
    let column = &again.tables[0].columns[0];
    assert_eq!((download(&residency, &again.tables[0], 0), column.facts().statistics.clone()), before);
    assert_eq!(
        (column.facts().dictionary.as_ref().unwrap().len(), column.segments().len()),
        (ROWS - ROWS.div_ceil(3), 2)
    );
    assert_eq!(source.scans().len(), 2);
}

#[test]
fn copies_stay_within_their_budget() {
    use Location::{Device, Host, Source as Files};
    let source = Source::integers("t", 4, ROWS);
    let residency = residency(column_bytes());
    let room_for_two = 2 * (ROWS * 8) as u64;
    for column in [0, 1, 2, 3] {
        drop(admit_keeping(&residency, &source, column, room_for_two));
    }
    assert_eq!(places(&residency, 4), [Files, Host, Host, Device], "the oldest copy left");
    drop(admit_keeping(&residency, &source, 0, 0));
    assert_eq!(places(&residency, 4), [Device, Files, Files, Files], "without a budget there are no copies");
    assert_eq!(source.scans().len(), 5);
}

#[test]
fn copies_belong_to_a_version_and_a_table() {
    let source = Source::integers("t", 2, ROWS);
    let residency = residency(column_bytes());
    drop(admit_keeping(&residency, &source, 0, u64::MAX));
    drop(admit_keeping(&residency, &source, 1, u64::MAX));
    assert_eq!(residency.location("t", "2", 0), Location::Source);
    source.0.version.store(2, Ordering::SeqCst);
    drop(admit_keeping(&residency, &source, 0, u64::MAX));
    assert_eq!(source.scans().len(), 3, "a copy of the old version is not used");
    drop(admit_keeping(&residency, &source, 1, u64::MAX));
    let changes = residency.changes();
    assert_eq!(residency.evict_by_name("t").map(|table| table.columns.len()), Some(2));
    assert!(residency.summaries().is_empty() && residency.changes().evictions == changes.evictions + 1);
    assert_eq!(residency.device().pool().usage().reserved, 0);
}

#[test]
fn concurrent_evictions_do_not_fail() {
    // Four threads load four columns of four segments, which evict four others.
    let source = Source::integers("t", 8, ROWS);
    source.0.apart.store(true, Ordering::SeqCst);
    let residency = residency(4 * column_bytes());
    for round in 0..6 {
        let columns: Vec<usize> = if round % 2 == 0 { (0..4).collect() } else { (4..8).collect() };
        let limits = LoadLimits { host_bytes: u64::MAX, threads: 4, ..plain() };
        let pinned = admit_with(&residency, &[source.request(&columns)], 0, &limits).unwrap();
        assert_eq!(values(&residency, &pinned.tables[0], 3)[5], 50 + columns[3] as i64);
    }
    assert_eq!(source.scans().len(), 2);
}
