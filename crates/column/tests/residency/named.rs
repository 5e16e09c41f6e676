//! Loads with a named encoding: segments have the bytes of the CPU, and host copies return unchanged.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use warpcube_column::format::{Encoding, Plain, decode, encode};
use warpcube_column::{EncodingChoice, LoadLimits, Relation, Residency, ResidentColumn};
use warpcube_gpu::DeviceBuffer;

use crate::source::*;

const BUDGET: u64 = 256 << 20;
const ROWS: usize = 5_000;

fn mixed(row: usize) -> u64 {
    (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Columns of every storage, strings, and distributions that suit different encodings.
fn columns() -> Vec<(&'static str, ArrayRef)> {
    let valid = |row: usize| !mixed(row).is_multiple_of(7) && row / 1_024 != 2;
    let rows = || (0..ROWS).map(|row| valid(row).then(|| mixed(row)));
    let integers = Int64Array::from_iter(rows().map(|value| value.map(|value| value as i64)));
    let outliers =
        (0..ROWS).map(|row| if row % 300 == 7 { mixed(row) as i64 & i64::MAX } else { mixed(row) as i64 & 31 });
    let few = (0..ROWS).map(|row| (mixed(row / 40) % 90) as i32 - 45);
    let decimals = |row: usize| (mixed(row) % 100_000) as f64 / 100.0;
    vec![
        ("i8", Arc::new(Int8Array::from_iter(rows().map(|value| value.map(|value| value as i8))))),
        ("i16", Arc::new(Int16Array::from_iter(rows().map(|value| value.map(|value| value as i16))))),
        ("i32", Arc::new(Int32Array::from_iter(rows().map(|value| value.map(|value| value as i32 >> 9))))),
        ("i64", Arc::new(integers)),
        ("u8", Arc::new(UInt8Array::from_iter_values((0..ROWS).map(|row| mixed(row) as u8)))),
        ("u16", Arc::new(UInt16Array::from_iter_values((0..ROWS).map(|row| mixed(row) as u16)))),
        ("u32", Arc::new(UInt32Array::from_iter_values((0..ROWS).map(|row| mixed(row) as u32)))),
        ("u64", Arc::new(UInt64Array::from_iter_values((0..ROWS).map(mixed)))),
        ("f32", Arc::new(Float32Array::from_iter(rows().map(|v| v.map(|v| (v % 1_000) as f32 / 10.0))))),
        ("f64", Arc::new(Float64Array::from_iter((0..ROWS).map(|row| valid(row).then(|| decimals(row)))))),
        ("bool", Arc::new(BooleanArray::from_iter(rows().map(|value| value.map(|value| value & 1 == 1))))),
        ("text", Arc::new(StringArray::from_iter(rows().map(|value| value.map(|value| format!("{}", value % 50)))))),
        ("sorted", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| 3 * row as i64 - 1_000)))),
        ("few", Arc::new(Int32Array::from_iter_values(few))),
        ("outliers", Arc::new(Int64Array::from_iter_values(outliers))),
        ("nulls", new_null_array(&DataType::Int32, ROWS)),
        ("no floats", new_null_array(&DataType::Float64, ROWS)),
    ]
}

fn load(residency: &Residency, source: &Source, encoding: EncodingChoice) -> Relation {
    let all: Vec<usize> = (0..columns().len()).collect();
    let limits = LoadLimits { encoding, host_bytes: BUDGET, ..LoadLimits::default() };
    admit_with(residency, &[source.request(&all)], 0, &limits).unwrap().tables.remove(0)
}

fn content(residency: &Residency, buffer: &DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0u8; buffer.bytes()];
    residency.device().stream().unwrap().download(buffer, 0, &mut bytes).unwrap();
    bytes
}

/// The distinct values of a column on the device are those of its encoding.
fn compare_lookups(residency: &Residency, column: &ResidentColumn) {
    let Encoding::Dictionary(dictionary) = column.encoding() else { return assert!(column.lookup().is_none()) };
    let values = dictionary.values().iter().chain(dictionary.values().is_empty().then_some(&0));
    let expected: Vec<u8> = values.flat_map(|bits| bits.to_le_bytes()[..column.storage().width()].to_vec()).collect();
    assert!(content(residency, column.lookup().unwrap()) == expected, "{}", column.name());
}

/// Compares the segments of `table` with those of `plain` as the CPU encodes them.
fn compare(residency: &Residency, table: &Relation, as_is: &Residency, plain: &Relation) {
    for (column, known) in table.columns.iter().zip(&plain.columns) {
        compare_lookups(residency, column);
        let encoding = column.encoding();
        for (chunk, rows) in table.chunks.iter().enumerate() {
            let (segment, known) = (&column.segments()[chunk], &known.segments()[chunk]);
            let (values, rows) = (content(as_is, known.values()), *rows as usize);
            let validity = known.validity().map(|words| content(as_is, words));
            assert_eq!(segment.validity().map(|words| content(residency, words)), validity);
            let words = validity.as_deref().map(|bytes| numbers(bytes, u32::from_le_bytes));
            let own = Plain::new(column.storage(), &values, words.as_deref(), rows).unwrap();
            let (found, expected) = (content(residency, segment.values()), encode(encoding, &own).unwrap());
            // Null slots of plain codes hold the remapped code 0.
            let is_same = *encoding == Encoding::Plain || found[..expected.len()] == expected;
            assert!(is_same, "{} chunk {chunk} as {}", column.name(), column.encoding());
            let decoded = decode(encoding, &expected, column.storage(), words.as_deref(), rows).unwrap();
            assert!(decoded == decode(&Encoding::Plain, &values, column.storage(), words.as_deref(), rows).unwrap());
        }
    }
}

#[test]
fn named_encodings_have_the_bytes_of_the_cpu() {
    let source = Source::new("t", columns(), &[3_000, 1, 1_999], 700);
    let as_is = residency(BUDGET);
    let plain = load(&as_is, &source, EncodingChoice::Plain);
    for choice in EncodingChoice::ALL {
        let residency = residency(BUDGET);
        let table = load(&residency, &source, choice);
        compare(&residency, &table, &as_is, &plain);
        let reserved = residency.device().pool().usage().reserved;
        assert_eq!(reserved, table.columns.iter().map(|column| column.bytes()).sum::<u64>(), "{choice}");
        for column in &table.columns {
            let (name, encoding) = (column.name(), column.encoding());
            assert_eq!(has_name(column, choice), applies(column, choice), "{name} under {choice}: {encoding}");
        }
    }
}

/// Whether the encoding of a column is the named one.
fn has_name(column: &ResidentColumn, choice: EncodingChoice) -> bool {
    let words = column.encoding().to_string();
    match choice {
        EncodingChoice::Auto => true,
        EncodingChoice::Dictionary => words.contains("dictionary("),
        _ if words.contains("dictionary(") => false,
        choice => words.split('(').next() == Some(choice.name()),
    }
}

/// Whether a column can have the named encoding.
fn applies(column: &ResidentColumn, choice: EncodingChoice) -> bool {
    let is_float = column.storage().is_float();
    match choice {
        EncodingChoice::Auto | EncodingChoice::Plain | EncodingChoice::Rle => true,
        EncodingChoice::Packed
        | EncodingChoice::Nsf
        | EncodingChoice::GpuFor
        | EncodingChoice::GpuDfor
        | EncodingChoice::Delta => !is_float,
        EncodingChoice::Nsv => !is_float && !["i64", "u64", "outliers"].contains(&column.name()),
        EncodingChoice::Dictionary => column.name() != "text",
        EncodingChoice::Alp => is_float && column.name() != "no floats",
    }
}

#[test]
fn wide_outliers_are_patches() {
    let residency = residency(BUDGET);
    let table = load(&residency, &Source::new("t", columns(), &[ROWS], 700), EncodingChoice::Packed);
    let words = |name: &str| table.columns.iter().find(|column| column.name() == name).unwrap().encoding().to_string();
    assert_eq!(words("outliers"), "packed(5, references, patches)");
    assert_eq!(words("sorted"), "packed(12, references)");
}

#[test]
fn copies_on_the_host_keep_encodings() {
    let source = Source::new("t", columns(), &[ROWS], 700);
    for choice in [EncodingChoice::Dictionary, EncodingChoice::Alp, EncodingChoice::Rle] {
        let residency = residency(BUDGET);
        let before = load(&residency, &source, choice);
        let words = |table: &Relation| table.columns.iter().map(|c| c.encoding().clone()).collect::<Vec<_>>();
        let all = |table: &Relation| -> Vec<Vec<u8>> {
            let buffers = table.columns.iter().flat_map(|column| {
                column.lookup().into_iter().chain(column.segments().iter().map(|segment| segment.values()))
            });
            buffers.map(|buffer| content(&residency, buffer)).collect()
        };
        let (encodings, bytes) = (words(&before), all(&before));
        drop(before);
        evict_all(&residency);
        let after = load(&residency, &source, EncodingChoice::Plain);
        assert_eq!(words(&after), encodings);
        assert!(all(&after) == bytes, "{choice}");
        assert_eq!(source.scans().len(), 1, "read once");
        source.0.scans.lock().clear();
    }
}

/// Evicts all columns.
fn evict_all(residency: &Residency) {
    let limits = LoadLimits { host_bytes: BUDGET, ..LoadLimits::default() };
    drop(admit_with(residency, &[], BUDGET, &limits).unwrap());
}
