//! Intervals and UUIDs in Parquet files, as other programs write them.

use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use warpcube_sql::Connection;

use crate::format::rows;
use crate::support::{cpu, emulated, on_real_device, same_on_device};

const SCHEMA: &str = "message rows {
    required int64 n;
    optional fixed_len_byte_array(12) i (INTERVAL);
    optional fixed_len_byte_array(16) u (UUID);
}";
const LONGEST: &str = "INTERVAL '14 months 3 days 14706.789 seconds'";
const NESTED: &str = "message rows {
    required int64 n;
    required group s { optional fixed_len_byte_array(12) i (INTERVAL); }
}";

/// The rows of a statement, cells apart.
async fn found(session: &Connection, sql: &str) -> Vec<String> {
    let batches = session.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    rows(&batches).into_iter().map(|cells| cells.join("|")).collect()
}

fn interval(months: u32, days: u32, milliseconds: u32) -> Vec<u8> {
    [months, days, milliseconds].map(u32::to_le_bytes).concat()
}

/// Writes a row group with numbers and columns of bytes.
fn write(path: &Path, schema: &str, numbers: &[i64], columns: &[Vec<Option<Vec<u8>>>]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(numbers, None, None).unwrap();
    column.close().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let bytes = values.iter().flatten().map(|value| FixedLenByteArray::from(ByteArray::from(value.clone())));
        let bytes: Vec<FixedLenByteArray> = bytes.collect();
        column.typed::<FixedLenByteArrayType>().write_batch(&bytes, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn write_rows(path: &Path) {
    let intervals = vec![
        Some(interval(14, 3, 14_706_789)),
        Some(interval(0, 10, 0)),
        None,
        Some(interval(2, 0, 0)),
        Some(interval(0, 0, 4_294_967_295)),
    ];
    let uuid = |last: u8| Some((0..15).chain([last]).map(|byte| byte * 17).collect::<Vec<u8>>());
    let uuids = vec![uuid(15), None, uuid(1), uuid(15), uuid(0)];
    write(path, SCHEMA, &[1, 2, 3, 4, 5], &[intervals, uuids]);
}

#[tokio::test]
async fn intervals_have_their_months() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_rows(&path);
    let session = cpu();
    let place = path.display();
    session.collect(&format!("CREATE VIEW read AS SELECT * FROM '{place}'")).await.unwrap();
    session
        .collect(&format!("CREATE EXTERNAL TABLE declared (n BIGINT, i INTERVAL) STORED AS PARQUET LOCATION '{place}'"))
        .await
        .unwrap();
    for table in ["read", "declared"] {
        let sql =
            format!("SELECT n, i = {LONGEST}, DATE '2024-01-01' + i, i IS NULL FROM {table} WHERE n < 5 ORDER BY i, n");
        let given = found(&session, &sql).await;
        let expected = [
            "2|false|2024-01-11T00:00:00|false",
            "4|false|2024-03-01T00:00:00|false",
            "1|true|2025-03-04T04:05:06.789|false",
            "3|NULL|NULL|true",
        ];
        assert_eq!(given, expected, "{table}");
        let sql = format!("SELECT count(i), max(i) = {LONGEST}, min(i) < INTERVAL '50 days' FROM {table}");
        assert_eq!(found(&session, &sql).await, ["4|true|true"], "{table}");
        let sql = format!("SELECT n FROM {table} WHERE i > INTERVAL '59 days' ORDER BY n");
        assert_eq!(found(&session, &sql).await, ["1", "4"], "{table}");
    }
    // What they are copied to has them, too.
    session.collect("CREATE TABLE copied AS SELECT * FROM read").await.unwrap();
    let sql = "SELECT count(*) FROM copied JOIN read USING (n) WHERE copied.i IS NOT DISTINCT FROM read.i";
    assert_eq!(found(&session, sql).await, ["5"]);
}

#[tokio::test]
async fn intervals_within_structs_are_refused_where_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.parquet");
    write(&path, NESTED, &[7], &[vec![Some(interval(1, 2, 3))]]);
    let session = cpu();
    let of = |items: &str| format!("SELECT {items} FROM '{}'", path.display());
    assert_eq!(found(&session, &of("n, count(*) OVER ()")).await, ["7|1"]);
    for items in ["s", "s.i", "*"] {
        let error = session.collect(&of(items)).await.unwrap_err().to_string();
        assert!(error.contains("intervals within column 's' of a Parquet file"), "{items}: {error}");
    }
}

#[tokio::test]
async fn uuids_of_bytes_are_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_rows(&path);
    let (session, device) = (cpu(), emulated());
    let place = path.display();
    let sql = format!(
        "SELECT n, upper(u), left(u, 4) || '!', length(CAST(u AS VARCHAR)), typeof(u), u LIKE '%ff' FROM '{place}' \
         ORDER BY n LIMIT 2"
    );
    let given = found(&session, &sql).await;
    assert_eq!(given, ["1|00112233-4455-6677-8899-AABBCCDDEEFF|0011!|36|UUID|true", "2|NULL|NULL|NULL|UUID|NULL"]);
    let copied = folder.path().join("copied.csv");
    session.collect(&format!("COPY (SELECT n, u FROM '{place}') TO '{}'", copied.display())).await.unwrap();
    let text = std::fs::read_to_string(&copied).unwrap();
    assert!(text.contains("3,00112233-4455-6677-8899-aabbccddee11\n"), "{text}");
    for sql in [
        format!("SELECT u, count(*), max(n) FROM '{place}' GROUP BY u ORDER BY u"),
        format!("SELECT n FROM '{place}' WHERE u = '00112233-4455-6677-8899-AABBCCDDEEFF' ORDER BY n"),
        format!("SELECT max(u), min(u), count(u) FROM '{place}'"),
        format!("SELECT a.n, b.n FROM '{place}' a JOIN '{place}' b ON a.u = b.u ORDER BY 1, 2"),
    ] {
        assert!(!found(&session, &sql).await.is_empty(), "{sql}");
        if !on_real_device() {
            same_on_device(&device, &session, &sql).await;
        }
    }
    let sql = format!("SELECT n FROM '{place}' WHERE u = '00112233-4455-6677-8899-AABBCCDDEEFF' ORDER BY n");
    assert_eq!(found(&session, &sql).await, ["1", "4"]);
    let sql = format!("SELECT max(u), min(u) FROM '{place}'");
    let given = found(&session, &sql).await;
    assert_eq!(given, ["00112233-4455-6677-8899-aabbccddeeff|00112233-4455-6677-8899-aabbccddee00"]);
}
