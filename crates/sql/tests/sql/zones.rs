//! Time zones of columns in files, and of the session that reads them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use parquet::arrow::ArrowWriter;
use warpcube_sql::Connection;

use crate::support::{cpu, emulated, one};

/// 2024-01-01 00:00, 2024-03-31 01:30 and 2024-10-27 00:30 UTC, in seconds.
const INSTANTS: [i64; 3] = [1_704_067_200, 1_711_848_600, 1_729_989_000];

/// A file of the same instants in columns of different zones: isAdjustedToUTC, with and without a zone of Arrow's.
fn parquet(path: &Path) {
    let of = |zone: &str| {
        let instants = TimestampMicrosecondArray::from_iter_values(INSTANTS.map(|second| second * 1_000_000));
        Arc::new(instants.with_timezone(zone)) as _
    };
    let columns = [("u", of("UTC")), ("b", of("Europe/Berlin")), ("n", of("America/New_York"))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

async fn asks(session: &Connection, sql: &str, expected: &str) {
    assert_eq!(one(session, sql).await.0, expected, "{sql}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_parquet_files_are_instants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    parquet(&path);
    let from = format!("FROM '{}'", path.display());
    for session in [cpu(), emulated()] {
        for column in ["u", "b", "n"] {
            let count = async |filter: &str, expected: &str| {
                asks(&session, &format!("SELECT count(*) {from} WHERE {filter}"), expected).await;
            };
            session.collect("SET TIME ZONE = 'UTC'").await.unwrap();
            count(&format!("{column} = timestamptz '2024-01-01 01:00:00+01'"), "1").await;
            count(&format!("{column} = '2024-01-01 00:00:00'"), "1").await;
            count(&format!("{column} > timestamp '2024-01-01 00:00:00'"), "2").await;
            count(&format!("{column} < now() AND {column} = u AND {column} = b AND n = {column}"), "3").await;
            count(&format!("{column}::date = date '2024-10-27'"), "1").await;
            session.collect("SET TIME ZONE = 'America/New_York'").await.unwrap();
            count(&format!("{column} = '2023-12-31 19:00:00'"), "1").await;
            count(&format!("{column} = timestamptz '2024-01-01 00:00:00Z'"), "1").await;
            count(&format!("{column}::date = date '2024-10-26'"), "1").await;
            count(&format!("{column}::timestamp < timestamp '2024-01-01 00:00:00'"), "1").await;
            session.collect("SET TIME ZONE = 'Europe/Berlin'").await.unwrap();
            // Clocks go from two to three.
            count(&format!("{column} = timestamp '2024-03-31 02:30:00'"), "1").await;
            count(&format!("{column} = '2024-03-31 03:30:00'"), "1").await;
            // The later one of two is meant.
            count(&format!("{column} = '2024-10-27 02:30:00'"), "0").await;
            count(&format!("{column} = timestamptz '2024-10-27 02:30:00+02'"), "1").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_of_a_csv_file_is_read_in_the_zone_of_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "i,at\n1,2024-01-01 00:00:00+01:00\n2,2024-01-01 00:00:00\n3,2024-01-01T00:00:00Z\n")
        .unwrap();
    let session = cpu();
    for (zone, name, expected) in [("UTC", "u", "2 5"), ("America/New_York", "n", "1 2")] {
        session.collect(&format!("SET TIME ZONE = '{zone}'")).await.unwrap();
        let create = format!(
            "CREATE EXTERNAL TABLE {name} (i BIGINT, at TIMESTAMPTZ) STORED AS CSV LOCATION '{}' \
                              OPTIONS ('format.has_header' 'true')",
            path.display()
        );
        session.collect(&create).await.unwrap();
        let sql = format!("SELECT count(*), sum(i) FROM {name} WHERE at = timestamptz '2024-01-01 00:00:00'");
        asks(&session, &sql, expected).await;
    }
    asks(&session, "SELECT sum(i) FROM n WHERE at = timestamptz '2024-01-01 00:00:00Z'", "3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_that_travel_keep_their_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    parquet(&path);
    let (here, there) = (cpu(), cpu());
    here.collect("SET TIME ZONE = 'America/New_York'").await.unwrap();
    let sql = format!(
        "SELECT count(*) FROM '{}' WHERE u::timestamp AT TIME ZONE 'Asia/Tokyo' < '2024-01-01'",
        path.display()
    );
    let expected = one(&here, &sql).await.0;
    assert_eq!(expected, "1");
    let bytes = here.encode_plan(&sql).await.unwrap();
    let batches = there.run_encoded(&bytes).await.unwrap().collect().await.unwrap();
    assert_eq!(crate::format::rows(&batches)[0].join(" "), expected);
}
