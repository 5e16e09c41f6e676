//! Which files a folder or a pattern means: the same on the device, which reads them directly, and on the CPU, whose
//! scans list them.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::support::{cpu, emulated, lenient, one};

/// Writes a table of one row at a place of a folder.
async fn write(folder: &Path, name: &str, value: i64) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Names that are hidden from tables are no places for COPY either.
    let fresh = folder.join("fresh.parquet");
    let copy = format!("COPY (SELECT CAST({value} AS BIGINT) AS a) TO '{}' STORED AS PARQUET", fresh.display());
    cpu().collect(&copy).await.unwrap();
    std::fs::rename(fresh, path).unwrap();
}

/// The sum over what a name means, by the device and by the CPU.
async fn sums(sessions: &[Connection; 2], folder: &Path, name: &str) -> [String; 2] {
    let sql = format!("SELECT sum(a) FROM '{}'", folder.join(name).display());
    let [device, host] = sessions;
    [one(device, &sql).await.0, one(host, &sql).await.0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_device_and_the_cpu_read_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, value) in [
        ("a.parquet", 1),
        ("b.parquet", 2),
        ("._a.parquet", 10),
        ("_b.parquet", 20),
        ("sub/c.parquet", 100),
        ("written.parquet/part-0.parquet", 10_000),
        ("_temporary/e.parquet", 100_000),
    ] {
        write(at, name, value).await;
    }
    let sessions = [emulated(), cpu()];
    for (name, expected) in [
        ("*.parquet", "3"),
        ("[ab].parquet", "3"),
        ("sub/", "100"),
        ("_temporary/", "100000"),
        ("_temporary/*.parquet", "100000"),
        ("._a.parquet", "10"),
        ("sub/*.parquet", "100"),
        ("*/*.parquet", "10100"),
        ("**/*.parquet", "10103"),
        ("**/c.parquet", "100"),
        ("s*/**/*.parquet", "100"),
    ] {
        assert_eq!(sums(&sessions, at, name).await, [expected, expected], "{name}");
    }
    for session in &sessions {
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/'", at.join("sub").display());
        session.collect(&create).await.unwrap();
        assert_eq!(one(session, "SELECT sum(a), count(*) FROM t").await.0, "100 1");
    }
    // What joins a folder is seen by both, and what is hidden by neither.
    write(at, "sub/more.parquet", 7).await;
    write(at, "sub/_SUCCESS.parquet", 5).await;
    write(at, "sub/deep/f.parquet", 3).await;
    for session in &sessions {
        assert_eq!(one(session, "SELECT sum(a), count(*) FROM t").await.0, "107 2");
    }
    let names = sums(&sessions, at, "**/*.parquet").await;
    assert_eq!(names, ["10113", "10113"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_read_with_the_folder_they_are_in() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, value) in [
        ("k=1/j=1/a.parquet", 1),
        ("k=2/j=1/b.parquet", 2),
        ("k=2/j=1/._b.parquet", 10),
        ("k=2/_temporary/c.parquet", 20),
        ("k=2/plain/d.parquet", 40),
    ] {
        write(at, name, value).await;
    }
    let sessions = [emulated(), cpu()];
    for (name, expected) in [("", "3"), ("*.parquet", "3"), ("k=2/", "2"), ("k=2/plain/", "40"), ("**/b.parquet", "2")]
    {
        assert_eq!(sums(&sessions, at, name).await, [expected, expected], "{name}");
    }
    let sql = format!("SELECT sum(k * a) FROM '{}'", at.join("**/*.parquet").display());
    for session in &sessions {
        let Err(error) = session.collect(&sql).await else { panic!("a file without keys is read") };
        assert!(error.to_string().contains("plain/d.parquet: it is not in a folder 'k=…/j=…'"), "{error}");
    }
    std::fs::remove_dir_all(at.join("k=2/plain")).unwrap();
    for session in &sessions {
        assert_eq!(one(session, &sql).await.0, "5");
    }
}

/// Writes a table of one row, columns by name and value; those in capitals are NOT NULL.
fn write_columns(path: &Path, columns: &[(&str, i64)]) {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    let field = |name: &str| Field::new(name.to_lowercase(), DataType::Int64, name != name.to_uppercase());
    let schema = Arc::new(Schema::new(columns.iter().map(|(name, _)| field(name)).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, value)| Arc::new(Int64Array::from(vec![*value])) as ArrayRef).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    match path.extension().is_some_and(|extension| extension == "arrow") {
        true => {
            let mut writer = arrow::ipc::writer::FileWriter::try_new(file, &schema).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        false => {
            let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_a_file_lacks_is_null_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_columns(&at("t/a.parquet"), &[("A", 1), ("B", 10)]);
    write_columns(&at("t/b.parquet"), &[("A", 2)]);
    write_columns(&at("p/k=1/a.parquet"), &[("A", 1), ("B", 10)]);
    write_columns(&at("p/k=2/b.parquet"), &[("A", 2)]);
    write_columns(&at("n/a.parquet"), &[("A", 1), ("B", 10)]);
    write_columns(&at("n/b.parquet"), &[("b", 20), ("A", 2)]);
    for session in [emulated(), cpu()] {
        for (name, expected, sum, nulls) in
            [("t", "2 1 10 3", "10", 1), ("p", "2 1 10 3", "10", 1), ("n", "2 2 30 3", "30", 0)]
        {
            let place = at(name);
            let create = format!(
                "CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}/' OPTIONS (union_by_name true)",
                place.display()
            );
            session.collect(&create).await.unwrap();
            let sql = format!("SELECT count(*), count(b), sum(b), sum(a) FROM {name}");
            assert_eq!(one(&session, &sql).await.0, expected, "{name}");
            let sql = format!("SELECT a FROM {name} WHERE b IS NULL");
            let found = session.collect(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
            assert_eq!(found.iter().map(|batch| batch.num_rows()).sum::<usize>(), nulls, "{name}");
            assert_eq!(one(&session, &format!("SELECT sum(b) FROM {name}")).await.0, sum);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_parquet_whose_columns_differ_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_columns(&at("t/a.parquet"), &[("a", 1), ("b", 10)]);
    write_columns(&at("t/b.parquet"), &[("a", 2)]);
    write_columns(&at("more/a.parquet"), &[("a", 2)]);
    write_columns(&at("more/b.parquet"), &[("a", 1), ("b", 10)]);
    write_columns(&at("p/k=1/a.parquet"), &[("a", 1), ("b", 10)]);
    write_columns(&at("p/k=2/b.parquet"), &[("a", 2)]);
    let session = cpu();
    std::fs::create_dir_all(at("types")).unwrap();
    for (name, value) in [("a", "1"), ("b", "'x'")] {
        let copy = format!("COPY (SELECT {value} AS a) TO '{}'", at(&format!("types/{name}.parquet")).display());
        session.collect(&copy).await.unwrap();
    }
    for (name, file, reason) in [
        ("t", "t/b.parquet", "it has no column 'b'"),
        ("more", "more/b.parquet", "it has a column 'b'"),
        ("p", "p/k=2/b.parquet", "it has no column 'b'"),
        ("types", "types/b.parquet", "its column 'a' is VARCHAR"),
    ] {
        let place = at(name).display().to_string();
        for sql in [
            format!("SELECT count(*) FROM '{place}/'"),
            format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{place}/'"),
        ] {
            let error = session.collect(&sql).await.unwrap_err().to_string();
            assert!(error.starts_with(&format!("FILE-002 {}: {reason}", at(file).display())), "{sql}\n{error}");
            assert!(error.contains("union_by_name") || name == "types", "{error}");
        }
    }
    // Declared columns are those of the table, whatever files have.
    let place = at("t").display().to_string();
    session
        .collect(&format!("CREATE EXTERNAL TABLE t (b BIGINT) STORED AS PARQUET LOCATION '{place}/'"))
        .await
        .unwrap();
    assert_eq!(one(&session, "SELECT count(*), sum(b) FROM t").await.0, "2 10");
    write_columns(&at("x/a.arrow"), &[("a", 1)]);
    for (format, name, value, reason) in [
        ("PARQUET", "t", "maybe", "union_by_name is true or false, not 'maybe'"),
        ("ARROW", "x", "true", "union_by_name is for Parquet and JSON; ARROW is read by position"),
    ] {
        let place = at(name).display().to_string();
        let options = format!("OPTIONS (union_by_name {value})");
        let sql = format!("CREATE EXTERNAL TABLE u STORED AS {format} LOCATION '{place}/' {options}");
        let error = session.collect(&sql).await.unwrap_err().to_string();
        assert!(error.starts_with("FILE-002") && error.contains(reason), "{sql}\n{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_arrow_whose_columns_differ_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_columns(&at("t/a.arrow"), &[("A", 1), ("B", 10)]);
    write_columns(&at("t/b.arrow"), &[("A", 2), ("b", 20), ("C", 7)]);
    write_columns(&at("swapped/a.arrow"), &[("A", 1), ("B", 10)]);
    write_columns(&at("swapped/b.arrow"), &[("B", 20), ("A", 2)]);
    write_columns(&at("lacking/a.arrow"), &[("A", 1), ("B", 10)]);
    write_columns(&at("lacking/b.arrow"), &[("A", 2)]);
    for session in [emulated(), cpu()] {
        let declared = |columns: &str, name: &str| {
            let place = at(name).display().to_string();
            format!("CREATE OR REPLACE EXTERNAL TABLE t ({columns}) STORED AS ARROW LOCATION '{place}/'")
        };
        session.collect(&declared("a BIGINT, b BIGINT", "t")).await.unwrap();
        assert_eq!(one(&session, "SELECT sum(a), sum(b) FROM t").await.0, "3 30");
        for (sql, file, column) in [
            (format!("SELECT sum(a) FROM '{}/'", at("swapped").display()), "swapped/b.arrow", "column 1 is 'b'"),
            (format!("SELECT sum(a) FROM '{}/'", at("lacking").display()), "lacking/b.arrow", "column 2 is not there"),
            (declared("b BIGINT, a BIGINT", "t"), "t/a.arrow", "column 1 is 'a', and that of the table 'b'"),
        ] {
            let error = session.collect(&sql).await.unwrap_err().to_string();
            assert!(error.starts_with(&format!("FILE-002 {}: its {column}", at(file).display())), "{sql}\n{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_lacks_a_column_may_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for session in [emulated(), cpu()] {
        write_columns(&at("a.parquet"), &[("A", 1), ("B", 10)]);
        let place = folder.path().display();
        let create =
            format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{place}/' OPTIONS (union_by_name true)");
        session.collect(&create).await.unwrap();
        assert_eq!(one(&session, "SELECT count(*), sum(b) FROM t WHERE b IS NOT NULL").await.0, "1 10");
        write_columns(&at("b.parquet"), &[("A", 2)]);
        assert_eq!(one(&session, "SELECT count(*), count(b), sum(a) FROM t").await.0, "2 1 3");
        assert_eq!(one(&session, "SELECT count(*), sum(a) FROM t WHERE b IS NULL").await.0, "1 2");
        std::fs::remove_file(at("b.parquet")).unwrap();
    }
}

#[tokio::test]
async fn a_folder_of_the_name_of_a_new_table_is_no_matter() {
    let folder = tempfile::tempdir().unwrap();
    let session = cpu();
    // There is nothing to read in it.
    let name = format!("\"{}/Some\"", folder.path().display());
    std::fs::create_dir(folder.path().join("Some")).unwrap();
    for kind in ["TABLE", "VIEW"] {
        session.collect(&format!("CREATE {kind} {name} AS SELECT 1 AS x")).await.unwrap();
        assert_eq!(one(&session, &format!("SELECT x FROM {name}")).await.0, "1");
        session.collect(&format!("DROP {kind} {name}")).await.unwrap();
    }
    for sql in [format!("SELECT * FROM {name}"), format!("CREATE TABLE u AS SELECT * FROM {name}")] {
        let error = session.collect(&sql).await.unwrap_err().to_string();
        assert!(error.starts_with("FILE-005"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strings_of_any_type_are_one_column_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    for (name, text, data_type) in [("a", "x", "Utf8"), ("b", "y", "Utf8View"), ("c", "x", "LargeUtf8")] {
        let copy = format!("COPY (SELECT 7 AS a, arrow_cast('{text}', '{data_type}') AS s) TO '{at}/{name}.parquet'");
        cpu().collect(&copy).await.unwrap();
    }
    let sql = format!("SELECT count(*), sum(a), min(s), max(s) FROM '{at}/' WHERE s LIKE '%'");
    for (number, session) in [emulated(), cpu()].into_iter().enumerate() {
        let rows = 3 + number;
        assert_eq!(one(&session, &sql).await.0, format!("{rows} {} x y", rows * 7));
        // The table that is inserted into is the folder.
        session.collect(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'")).await.unwrap();
        session.collect("INSERT INTO t VALUES (7, 'x')").await.unwrap();
        assert_eq!(one(&session, "SELECT count(*) FROM t WHERE s = 'x'").await.0, (rows).to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_compare_an_earlier_one_with_a_subquery_sort_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let cpu = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
    cpu.set("warpcube.target_partitions", "3").unwrap();
    for (file, from) in [(0, 1), (1, 501)] {
        let rows =
            format!("SELECT value AS id, value % 7 AS a, value % 5 AS b FROM generate_series({from}, {})", from + 499);
        let path = folder.path().join(format!("{file}.parquet"));
        cpu.collect(&format!("COPY ({rows}) TO '{}'", path.display())).await.unwrap();
    }
    for session in [&cpu, &lenient()] {
        let create = format!("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{}/'", folder.path().display());
        session.collect(&create).await.unwrap();
        let key = "CASE WHEN a >= (SELECT max(a) FROM f) THEN -b ELSE b END";
        for (select, expected) in [
            (format!("SELECT id FROM f ORDER BY a DESC, {key}, id LIMIT 2"), ["34", "69"]),
            (format!("SELECT id, {key} AS k FROM f ORDER BY a, k DESC, id LIMIT 2"), ["14 4", "49 4"]),
        ] {
            let found = crate::format::rows(&session.collect(&select).await.unwrap());
            assert_eq!(found.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), expected, "{select}");
        }
    }
}
