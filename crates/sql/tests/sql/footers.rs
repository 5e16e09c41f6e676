//! What footers of Parquet files leave unknown is not concluded from, and an order is believed as far as they prove it.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use warpcube_sql::Connection;

use crate::bad_files::with_footer;
use crate::format::rows;
use crate::support::{cpu, emulated, one, physical_plan};

/// Writes a file of row groups, said to be sorted by columns.
fn write(path: &Path, groups: &[RecordBatch], sorted_by: &[SortingColumn]) {
    let sorted_by = (!sorted_by.is_empty()).then(|| sorted_by.to_vec());
    let properties = WriterProperties::builder().set_sorting_columns(sorted_by).build();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, groups[0].schema(), Some(properties)).unwrap();
    for group in groups {
        writer.write(group).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

fn by(column_idx: i32, descending: bool, nulls_first: bool) -> SortingColumn {
    SortingColumn { column_idx, descending, nulls_first }
}

/// A row group with the columns `a` and `b`.
fn group(a: &[Option<i64>], b: &[i64]) -> RecordBatch {
    let a: ArrayRef = Arc::new(Int64Array::from(a.to_vec()));
    let b: ArrayRef = Arc::new(Int64Array::from(b.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap()
}

/// One partition, so that files are read one after the other.
fn in_one_partition() -> Connection {
    let session = cpu();
    session.set("warpcube.target_partitions", "1").unwrap();
    session
}

/// Asserts that rows come in order, with a sort or without one.
async fn check_order(place: &str, order: &str, is_believed: bool) {
    let session = in_one_partition();
    let sql = format!("SELECT a, b FROM '{place}' ORDER BY {order}");
    let plan = physical_plan(&session, &sql).await;
    assert_eq!(!plan.contains("SortExec"), is_believed, "{sql}\n{plan}");
    // The same rows through a table in memory, which has no order.
    let copy = format!("CREATE OR REPLACE TABLE copied AS SELECT a, b FROM '{place}'");
    session.collect(&copy).await.unwrap();
    let expected = session.collect(&format!("SELECT a, b FROM copied ORDER BY {order}")).await.unwrap();
    assert_eq!(rows(&session.collect(&sql).await.unwrap()), rows(&expected), "{sql}");
}

#[tokio::test]
async fn an_order_is_believed_where_row_groups_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let (up, down, first) = (by(0, false, false), by(0, true, true), by(0, false, true));
    const N: Option<i64> = None;
    let some = |values: &[i64]| -> Vec<Option<i64>> { values.iter().copied().map(Some).collect() };
    for (number, (groups, sorted_by, order, is_believed)) in [
        ([some(&[1, 2, 3]), some(&[3, 4])], &up, "a", true),
        ([some(&[1, 5]), some(&[2, 6])], &up, "a", false),
        ([some(&[5, 4]), some(&[4, 1])], &down, "a DESC", true),
        ([some(&[5, 4]), some(&[6, 1])], &down, "a DESC", false),
        ([some(&[1, 2]), vec![Some(3), N]], &up, "a", true),
        ([vec![Some(1), N], some(&[3, 4])], &up, "a", false),
        ([vec![N, Some(1)], some(&[2, 3])], &first, "a NULLS FIRST", true),
        ([vec![N, Some(1)], vec![N, Some(3)]], &first, "a NULLS FIRST", false),
        ([vec![N, N], vec![N, Some(1)]], &first, "a NULLS FIRST", true),
        ([vec![N, N], some(&[1, 2])], &up, "a", false),
        ([vec![N, Some(9)], some(&[8, 1])], &down, "a DESC", true),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{number}.parquet"));
        let groups = groups.map(|a| group(&a, &(0..a.len() as i64).collect::<Vec<_>>()));
        write(&path, &groups, std::slice::from_ref(sorted_by));
        check_order(&path.display().to_string(), order, is_believed).await;
    }
}

#[tokio::test]
async fn an_order_of_several_keys_ends_where_it_is_not_proved() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let keys = [by(0, false, false), by(1, false, false)];
    // Both row groups have rows with a = 2, and those of the first have the larger b.
    let groups = [group(&[Some(1), Some(2)], &[5, 9]), group(&[Some(2), Some(3)], &[1, 1])];
    write(&path("ties.parquet"), &groups, &keys);
    write(&path("apart.parquet"), &[groups[0].clone(), group(&[Some(3), Some(4)], &[1, 1])], &keys);
    let place = |name: &str| path(name).display().to_string();
    check_order(&place("ties.parquet"), "a", true).await;
    check_order(&place("ties.parquet"), "a, b", false).await;
    check_order(&place("apart.parquet"), "a, b", true).await;
    // The row groups of a file tell different orders, or one tells none.
    write(&path("some.parquet"), &groups, &keys);
    with_footer(&path("some.parquet"), |_, groups| {
        groups[1] = groups[1].clone().into_builder().set_sorting_columns(None).build().unwrap();
    });
    check_order(&place("some.parquet"), "a", false).await;
    // The key is a member of an object that has the name of a column.
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let inner = StructArray::from(vec![(Arc::new(Field::new("a", DataType::Int64, true)), inner)]);
    let (a, b): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from(vec![2, 1])), Arc::new(Int64Array::from(vec![0, 0])));
    let batch = RecordBatch::try_from_iter([("s", Arc::new(inner) as ArrayRef), ("a", a), ("b", b)]).unwrap();
    write(&path("nested.parquet"), &[batch], &[by(0, false, false)]);
    check_order(&place("nested.parquet"), "a", false).await;
}

#[tokio::test]
async fn an_order_of_files_is_that_in_which_they_are_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let up = [by(0, false, false)];
    let (low, high) = (group(&[Some(1), Some(2)], &[1, 1]), group(&[Some(2), Some(9)], &[1, 1]));
    let with_null = group(&[Some(1), None], &[1, 1]);
    for (name, files, is_believed) in [
        ("ordered", [&low, &high], true),
        ("swapped", [&high, &low], false),
        ("overlap", [&high, &high], false),
        ("nulls", [&with_null, &high], false),
    ] {
        for (number, batch) in files.into_iter().enumerate() {
            write(&folder.path().join(name).join(format!("{number}.parquet")), std::slice::from_ref(batch), &up);
        }
        check_order(&format!("{}/", folder.path().join(name).display()), "a", is_believed).await;
    }
}

#[tokio::test]
async fn an_order_that_is_declared_is_of_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let session = in_one_partition();
    std::fs::write(folder.path().join("x.csv"), "a,b\n3,1\n1,2\n2,3\n").unwrap();
    let place = folder.path().join("x.csv").display().to_string();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{place}' WITH ORDER (a ASC)");
    session.collect(&create).await.unwrap();
    let found = session.collect("SELECT a FROM t ORDER BY a LIMIT 3").await.unwrap();
    assert_eq!(rows(&found), [["1"], ["2"], ["3"]]);
    let place = folder.path().join("p/").display().to_string();
    let create =
        format!("CREATE EXTERNAL TABLE p (a BIGINT, b BIGINT) STORED AS PARQUET LOCATION '{place}' WITH ORDER (a ASC)");
    session.collect(&create).await.unwrap();
    session.collect("INSERT INTO p VALUES (3, 1), (1, 2), (2, 3)").await.unwrap();
    check_order(&place, "a", true).await;
}

/// The row group with other statistics of its first column.
fn with_statistics(group: &RowGroupMetaData, statistics: Option<Statistics>) -> RowGroupMetaData {
    let mut columns: Vec<ColumnChunkMetaData> = group.columns().to_vec();
    let builder = columns[0].clone().into_builder();
    let builder = match statistics {
        Some(statistics) => builder.set_statistics(statistics),
        None => builder.clear_statistics(),
    };
    columns[0] = builder.build().unwrap();
    group.clone().into_builder().set_column_metadata(columns).build().unwrap()
}

fn words(words: &[Option<&str>], ids: &[i64]) -> RecordBatch {
    let words: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
    let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("w", words, true), ("id", ids, true)]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_row_group_does_not_tell_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let groups = [words(&[Some("a"), Some("m")], &[1, 2]), words(&[Some("z\u{e4}"), None], &[3, 4])];
    // The old fields have bounds of bytes as signed numbers: `ä` before all letters.
    let bounds = |low: &str, high: &str, nulls, is_old| {
        let value = |text: &str| Some(parquet::data_type::ByteArray::from(text));
        Some(Statistics::byte_array(value(low), value(high), None, nulls, is_old))
    };
    for (name, statistics) in [
        ("none", None),
        ("counts", Some(Statistics::byte_array(None, None, None, Some(1), false))),
        ("half", Some(Statistics::byte_array(None, Some("z\u{e4}".into()), None, Some(1), false))),
        ("uncounted", bounds("z\u{e4}", "z\u{e4}", None, false)),
        ("old", bounds("b", "c", Some(1), true)),
        ("right", bounds("z\u{e4}", "z\u{e4}", Some(1), false)),
    ] {
        let path = folder.path().join(format!("{name}.parquet"));
        write(&path, &groups, &[]);
        with_footer(&path, |_, groups| groups[1] = with_statistics(&groups[1], statistics));
        for session in [cpu(), emulated()] {
            for (select, expected) in
                [("max(w), min(w), count(w), count(*)", "z\u{e4} a 3 4"), ("count(*) FILTER (WHERE w > 'n')", "1")]
            {
                let sql = format!("SELECT {select} FROM '{}'", path.display());
                assert_eq!(one(&session, &sql).await.0, expected, "{name}: {sql}");
            }
            for (filter, expected) in
                [("w > 'n'", "3"), ("w LIKE 'z%'", "3"), ("w IS NULL", "4"), ("w IN ('z\u{e4}', 'q')", "3")]
            {
                let sql = format!("SELECT sum(id) FROM '{}' WHERE {filter}", path.display());
                assert_eq!(one(&session, &sql).await.0, expected, "{name}: {sql}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_that_are_no_number_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let values: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1.0, 2.0]));
    write(&path, &[RecordBatch::try_from_iter([("x", values)]).unwrap()], &[]);
    with_footer(&path, |_, groups| {
        let bounds = Statistics::double(Some(f64::NAN), Some(f64::NAN), None, Some(0), false);
        groups[0] = with_statistics(&groups[0], Some(bounds));
    });
    for filter in ["x < 5", "x > 0", "x = 2 OR x = 1", "x BETWEEN 1 AND 2"] {
        let sql = format!("SELECT count(*) FROM '{}' WHERE {filter}", path.display());
        assert_eq!(one(&cpu(), &sql).await.0, "2", "{sql}");
    }
}

#[tokio::test]
async fn a_file_with_two_columns_of_one_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.parquet");
    let column = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let fields = ["a", "b", "a"].map(|name| Field::new(name, DataType::Int64, false));
    let schema = Arc::new(arrow::datatypes::Schema::new(fields.to_vec()));
    let batch = RecordBatch::try_new(schema, vec![column(), column(), column()]).unwrap();
    write(&path, &[batch], &[]);
    let session = cpu();
    for sql in [
        format!("SELECT b FROM '{}'", path.display()),
        format!("CREATE EXTERNAL TABLE t (b BIGINT) STORED AS PARQUET LOCATION '{}'", path.display()),
    ] {
        let error = session.collect(&sql).await.unwrap_err().to_string();
        assert!(error.contains("two columns are named 'a'"), "{sql}\n{error}");
    }
}
