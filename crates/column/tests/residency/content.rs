//! Resident columns equal the rows of their source.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::*;
use arrow::compute::{cast, concat};
use arrow::datatypes::*;
use warpcube_column::{ColumnError, LoadLimits, Relation, Residency, Storage};

use crate::source::*;

/// Enough for small tables.
const BUDGET: u64 = 64 << 20;

/// The column as Arrow would write it: storage bytes of valid rows, zeros elsewhere.
fn expected(array: &ArrayRef, dictionary: Option<&StringArray>) -> Vec<Option<Vec<u8>>> {
    (0..array.len())
        .map(|row| {
            if array.is_null(row) {
                return None;
            }
            let one = array.slice(row, 1);
            Some(match array.data_type() {
                DataType::Boolean => vec![u8::from(one.as_boolean().value(0))],
                DataType::Decimal128(_, _) => {
                    (one.as_primitive::<Decimal128Type>().value(0) as i64).to_le_bytes().to_vec()
                }
                DataType::Utf8 => {
                    let text = one.as_string::<i32>().value(0);
                    let code = dictionary.unwrap().iter().position(|known| known == Some(text)).unwrap();
                    (code as u32).to_le_bytes().to_vec()
                }
                _ => {
                    let data = one.to_data();
                    let width = data.data_type().primitive_width().unwrap();
                    data.buffers()[0].as_slice()[data.offset() * width..(data.offset() + 1) * width].to_vec()
                }
            })
        })
        .collect()
}

pub fn every_type(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let base: ArrayRef =
        Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 5 != 3).then_some((row * 37 % 101) as i64 - 50))));
    let unsigned: ArrayRef =
        Arc::new(UInt64Array::from_iter((0..rows).map(|row| (row % 7 != 0).then_some((row * 31 % 200) as u64))));
    let to = |array: &ArrayRef, data_type: DataType| cast(array, &data_type).unwrap();
    let decimals = Decimal128Array::from_iter((0..rows).map(|row| (row % 4 != 1).then_some(row as i128 * 1_000 - 77)));
    vec![
        ("i8", to(&base, DataType::Int8)),
        ("i16", to(&base, DataType::Int16)),
        ("i32", to(&base, DataType::Int32)),
        ("i64", base.clone()),
        ("u8", to(&unsigned, DataType::UInt8)),
        ("u16", to(&unsigned, DataType::UInt16)),
        ("u32", to(&unsigned, DataType::UInt32)),
        ("u64", unsigned),
        ("f32", to(&base, DataType::Float32)),
        ("f64", to(&base, DataType::Float64)),
        ("date", to(&to(&base, DataType::Int32), DataType::Date32)),
        ("time", to(&base, DataType::Timestamp(TimeUnit::Microsecond, None))),
        ("decimal", Arc::new(decimals.with_precision_and_scale(15, 2).unwrap())),
        ("bool", Arc::new(BooleanArray::from_iter((0..rows).map(|row| (row % 3 != 2).then_some(row % 2 == 0))))),
        (
            "text",
            Arc::new(StringArray::from_iter((0..rows).map(|row| (row % 6 != 5).then(|| format!("{}", 90 - row % 9))))),
        ),
        ("null", new_null_array(&DataType::Int32, rows)),
        ("null text", new_null_array(&DataType::Utf8, rows)),
    ]
}

#[test]
fn resident_values_equal_the_source() {
    let columns = every_type(5_000);
    let source = Source::new("t", columns.clone(), &[1_500, 0, 2_048, 1_452], 611);
    let residency = residency(BUDGET);
    let wanted: Vec<usize> = (0..columns.len()).collect();
    let pinned = admit(&residency, &source, &wanted, 0).unwrap();
    check_every_type(&residency, &pinned.tables[0], &columns);
}

#[test]
fn columns_of_single_scans_have_the_same_chunks() {
    let columns = every_type(5_000);
    let source = Source::new("t", columns.clone(), &[1_500, 0, 2_048, 1_452], 611);
    source.0.apart.store(true, Ordering::SeqCst);
    let residency = residency(BUDGET);
    let limits = LoadLimits { threads: 5, ..plain() };
    let wanted: Vec<usize> = (0..columns.len()).collect();
    let pinned = admit_with(&residency, &[source.request(&wanted)], 0, &limits).unwrap();
    check_every_type(&residency, &pinned.tables[0], &columns);
    assert!(pinned.loaded.busy >= pinned.loaded.encode && pinned.loaded.gigabytes_per_second_core() > 0.0);
}

#[test]
fn single_scans_of_different_rows_are_an_error() {
    let source = Source::integers("t", 3, 10_000);
    source.0.apart.store(true, Ordering::SeqCst);
    *source.0.cut.lock() = Some(1);
    let residency = residency(BUDGET);
    let error = admit(&residency, &source, &[0, 1, 2], 0).unwrap_err();
    assert!(matches!(error, ColumnError::Changed { .. }), "{error}");
    assert_eq!(residency.device().pool().usage().reserved, 0);
    assert_eq!(values(&residency, &admit(&residency, &source, &[0, 2], 0).unwrap().tables[0], 1)[9_999], 99_992);
}

/// Whether a table cut into three chunks holds these columns.
pub fn check_every_type(residency: &Residency, table: &Relation, columns: &[(&str, ArrayRef)]) {
    assert_eq!(table.chunks[..], [1_500, 2_048, 1_452]);
    for (column, (name, array)) in columns.iter().enumerate() {
        let resident = &table.columns[column];
        let dictionary = resident.facts().dictionary.as_ref().map(|dictionary| dictionary.values().clone());
        let (bytes, valid) = download(residency, table, column);
        let width = resident.storage().width();
        for (row, expected) in expected(array, dictionary.as_ref()).into_iter().enumerate() {
            assert_eq!(valid[row], expected.is_some(), "{name} row {row}");
            if let Some(expected) = expected {
                assert_eq!(bytes[row * width..(row + 1) * width], expected, "{name} row {row}");
            }
        }
        let statistics = &resident.facts().statistics;
        assert_eq!((statistics.rows, statistics.nulls), (5_000, array.null_count() as u64), "{name}");
        if *name == "i16" {
            assert_eq!(statistics.integers, Some((-50, 50)));
        }
        if resident.storage() == Storage::F64 {
            assert_eq!(statistics.floats, Some((-50.0, 50.0)));
        }
    }
}

#[test]
fn strings_of_all_threads_share_one_sorted_dictionary() {
    let text = |row: usize| format!("{:05}", (row * 7_919) % 20_011);
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..40_000).map(text)));
    let source = Source::new("t", vec![("s", strings.clone())], &[9_000, 11_000, 1, 19_999], 1_000);
    let residency = residency(BUDGET);
    let limits = LoadLimits { threads: 4, ..plain() };
    let pinned = admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap();
    let column = &pinned.tables[0].columns[0];
    let dictionary = column.facts().dictionary.as_ref().unwrap();
    let known: Vec<&str> = dictionary.values().iter().flatten().collect();
    assert!(known.is_sorted() && known.len() == 20_011);
    let codes: Vec<u32> = numbers(&download(&residency, &pinned.tables[0], 0).0, u32::from_le_bytes);
    for (row, code) in codes.iter().enumerate() {
        assert_eq!(dictionary.value(*code), text(row), "row {row}");
    }
    assert_eq!(column.facts().statistics.integers, Some((0, 20_010)));
}

#[test]
fn columns_of_several_loads_have_the_same_chunks() {
    let source = Source::new(
        "t",
        vec![
            ("a", Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef),
            ("b", Arc::new(Int64Array::from_iter_values((0..10_000).map(|row| row * 3))) as ArrayRef),
        ],
        &[2_500, 2_500, 5_000],
        999,
    );
    let residency = residency(BUDGET);
    drop(admit(&residency, &source, &[1], 0).unwrap());
    let limits = LoadLimits { threads: 3, ..plain() };
    let pinned = admit_with(&residency, &[source.request(&[0, 1])], 0, &limits).unwrap();
    assert_eq!(source.scans(), [vec![1], vec![0]]);
    let (a, b) = (values(&residency, &pinned.tables[0], 0), values(&residency, &pinned.tables[0], 1));
    assert!(a.iter().zip(&b).enumerate().all(|(row, (a, b))| *a == row as i64 && *b == a * 3));
}

#[test]
fn a_partition_longer_than_a_chunk_is_cut() {
    let rows = (1 << 20) + 1;
    let source = Source::integers("t", 1, rows);
    let residency = residency(BUDGET);
    let pinned = admit(&residency, &source, &[0], 0).unwrap();
    assert_eq!(pinned.tables[0].chunks[..], [1 << 20, 1]);
    assert!(pinned.tables[0].columns[0].facts().statistics.strictly_ascending);
    let loaded = values(&residency, &pinned.tables[0], 0);
    assert!(loaded.iter().enumerate().all(|(row, value)| *value == row as i64 * 10));
}

#[test]
fn a_request_without_columns_has_rows() {
    let source = Source::integers("t", 2, 3_000);
    let residency = residency(BUDGET);
    let pinned = admit(&residency, &source, &[], 0).unwrap();
    assert_eq!((pinned.tables[0].rows(), pinned.tables[0].columns.len()), (3_000, 0));
    let both = admit(&residency, &source, &[1], 0).unwrap();
    assert_eq!(both.tables[0].chunks, pinned.tables[0].chunks);
}

#[test]
fn an_empty_table_has_no_chunks() {
    let residency = residency(BUDGET);
    let pinned = admit(&residency, &Source::integers("t", 2, 0), &[0, 1], 0).unwrap();
    assert_eq!((pinned.tables[0].rows(), pinned.tables[0].columns.len()), (0, 2));
    assert_eq!(pinned.tables[0].columns[0].facts().statistics.integers, None);
}

#[test]
fn a_new_version_replaces_the_old_one_and_running_statements_keep_theirs() {
    let source = Source::integers("t", 1, 2_000);
    let residency = residency(BUDGET);
    let old = admit(&residency, &source, &[0], 0).unwrap();
    let doubled: Vec<Vec<RecordBatch>> = {
        let partitions = source.0.partitions.lock();
        let twice = |batches: &Vec<RecordBatch>| {
            let column = concat(&[batches[0].column(0), batches[0].column(0)]).unwrap();
            vec![RecordBatch::try_new(source.0.schema.clone(), vec![column]).unwrap()]
        };
        partitions.iter().map(twice).collect()
    };
    *source.0.partitions.lock() = doubled;
    source.0.version.store(2, Ordering::SeqCst);
    assert!(!residency.is_resident("t", "2", &[0]));
    let new = admit(&residency, &source, &[0], 0).unwrap();
    assert_eq!((old.tables[0].rows(), new.tables[0].rows()), (2_000, 4_000));
    assert_eq!(values(&residency, &old.tables[0], 0)[1_999], 19_990);
    assert!(residency.is_resident("t", "2", &[0]) && !residency.is_resident("t", "1", &[0]));
}

#[test]
fn other_rows_of_the_same_version_are_detected() {
    let source = Source::integers("t", 2, 2_000);
    let residency = residency(BUDGET);
    drop(admit(&residency, &source, &[0], 0).unwrap());
    source.0.partitions.lock()[0].truncate(0);
    // The first attempt finds other rows and forgets the table; the second loads all columns.
    let pinned = admit(&residency, &source, &[0, 1], 0).unwrap();
    assert_eq!(pinned.tables[0].rows(), 0);
}

#[test]
fn a_table_that_changes_during_a_load_is_loaded_once_more() {
    for fails in [false, true] {
        let source = Source::integers("t", 2, 3_000);
        let residency = residency(BUDGET);
        drop(admit(&residency, &source, &[0], 0).unwrap());
        source.0.fails.store(fails, Ordering::SeqCst);
        source.0.changes.store(1, Ordering::SeqCst);
        // The resident column is of the earlier version too.
        let pinned = admit(&residency, &source, &[0, 1], 0).unwrap();
        assert_eq!(source.scans(), [vec![0], vec![1], vec![0, 1]]);
        assert_eq!(values(&residency, &pinned.tables[0], 1)[7], 71);
        assert!(residency.is_resident("t", "2", &[0, 1]));
        drop(pinned);
        residency.clear();
        source.0.changes.store(2, Ordering::SeqCst);
        let error = admit(&residency, &source, &[0], 0).unwrap_err();
        assert!(error.to_string().starts_with("COL-003 table 't' changed while it was loaded: "), "{error}");
        assert_eq!(residency.device().pool().usage().reserved, 0);
        drop(admit(&residency, &source, &[0], 0).unwrap());
    }
}

#[test]
fn too_many_strings_and_unknown_types_stay_on_the_cpu() {
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|row| row.to_string())));
    let source = Source::new("t", vec![("s", strings), ("n", new_null_array(&DataType::Binary, 100))], &[100], 50);
    let residency = residency(BUDGET);
    let limits = LoadLimits { dictionary_values: 99, ..plain() };
    let error = admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("99 distinct strings"), "{error}");
    let error = admit(&residency, &source, &[1], 0).unwrap_err();
    assert!(matches!(&error, ColumnError::Unsupported { column, .. } if column == "n"), "{error}");
    assert_eq!(residency.device().pool().usage().reserved, 0);
}

#[test]
fn a_column_of_distinct_strings_is_refused_before_it_is_read_whole() {
    let rows = 600_000;
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| row.to_string())));
    let source = Source::new("t", vec![("s", strings)], &[rows], 4_096);
    let residency = residency(BUDGET);
    let limits = LoadLimits { dictionary_values: 200_000, threads: 1, ..plain() };
    let error = admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("more than 200000"), "{error}");
    let read = limits.rows_done.load(Ordering::SeqCst);
    assert!(read < 150_000, "{read} rows were read");
    let again = admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap_err();
    assert_eq!((again.to_string(), source.scans().len()), (error.to_string(), 1), "the ledger stores the refusal");
}
