//! Files whose bounds say nothing of their NaNs: no row is dropped by them, and NaN is largest everywhere.

use std::cmp::Ordering;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Float32Array, Float64Array, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use warpcube_sql::Connection;

use crate::support::{cpu, emulated, one, rehearse};

/// A NaN with a sign and a payload.
const OTHER_NAN: f64 = f64::from_bits(0xfff8_0000_0000_0123);

/// The values of a column: each third page or so has NaNs, zeros of both signs and an infinity are there.
fn values() -> Vec<Option<f64>> {
    let value = |row: i64| match row {
        3 | 44 | 45 => Some(f64::NAN),
        17 | 90 => Some(OTHER_NAN),
        20 => Some(f64::INFINITY),
        21 => Some(-0.0),
        22 => Some(0.0),
        23 => None,
        // A row group of nothing but NaNs.
        60..70 => Some(OTHER_NAN),
        row => Some(row as f64 - 30.0),
    };
    (0..101).map(value).collect()
}

/// Writes them in row groups of ten rows and pages of five.
fn write(path: &Path) {
    let doubles = Float64Array::from(values());
    let floats: Float32Array = values().into_iter().map(|value| value.map(|value| value as f32)).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("i", Arc::new(Int64Array::from_iter_values(0..101)) as _, false),
        ("x", Arc::new(doubles) as _, true),
        ("s", Arc::new(floats) as _, true),
    ]);
    let batch = batch.unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(10))
        .set_data_page_row_count_limit(5)
        .set_write_batch_size(5)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true)
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The order of the session: one NaN, which is largest, and one zero.
fn compare(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
}

/// Rows that pass, and the sum of their numbers.
fn expected(filter: impl Fn(f64, i64) -> bool) -> String {
    let rows = (0..).zip(values()).filter(|(row, value)| value.is_some_and(|value| filter(value, *row)));
    let rows: Vec<i64> = rows.map(|(row, _)| row).collect();
    format!("{} {}", rows.len(), rows.iter().sum::<i64>())
}

/// The sessions: filters above scans and within them on the CPU, and on the device.
fn sessions() -> Vec<(&'static str, Connection)> {
    let pushed = cpu();
    pushed.set("datafusion.execution.parquet.pushdown_filters", "true").unwrap();
    vec![("the CPU", cpu()), ("the CPU, filters in the scan", pushed), ("the device", emulated())]
}

type Filter = fn(f64, i64) -> bool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_of_floats_drop_no_nan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    write(&path);
    let is_nan: Filter = |x, _| x.is_nan();
    let filters: [(&str, Filter); 18] = [
        ("x > 25", |x, _| compare(x, 25.0).is_gt()),
        ("x >= 5", |x, _| compare(x, 5.0).is_ge()),
        ("x < 5", |x, _| x < 5.0),
        ("x <= 0", |x, _| x <= 0.0),
        ("x = 0", |x, _| x == 0.0),
        ("x <> 7", |x, _| x != 7.0),
        ("x = 7", |x, _| x == 7.0),
        ("NOT x < 5", |x, _| compare(x, 5.0).is_ge()),
        ("x BETWEEN 5 AND 20", |x, _| (5.0..=20.0).contains(&x)),
        ("x > 5 AND x < 20", |x, _| x > 5.0 && x < 20.0),
        ("x NOT BETWEEN 5 AND 20", |x, _| !(5.0..=20.0).contains(&x)),
        ("x > 25 OR i = 3", |x, i| compare(x, 25.0).is_gt() || i == 3),
        ("x > 25 AND i > 50", |x, i| compare(x, 25.0).is_gt() && i > 50),
        ("x = 'nan'", is_nan),
        ("x = '-nan'::double", is_nan),
        ("x > 'inf'::double", is_nan),
        ("x IN (7, 8, 9, 0, 'nan'::double)", |x, _| x.is_nan() || [0.0, 7.0, 8.0, 9.0].contains(&x)),
        ("x * 0 = 0", |x, _| x.is_finite()),
    ];
    let statement = |filter: &str| format!("SELECT count(*), sum(i) FROM '{}' WHERE {filter}", path.display());
    for (place, session) in sessions() {
        let all = filters.iter().flat_map(|(filter, _)| ["x", "s"].map(|column| filter.replace('x', column)));
        rehearse(&session, all.map(|filter| statement(&filter))).await;
        for (filter, expects) in &filters {
            for column in ["x", "s"] {
                let filter = filter.replace('x', column);
                let sql = statement(&filter);
                assert_eq!(one(&session, &sql).await.0, expected(expects), "{filter} on {place}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_and_dynamic_filters_know_that_nan_is_largest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    write(&path);
    let file = path.display();
    // The device joins no floats.
    for (place, session) in sessions().into_iter().take(2) {
        for (select, expects) in [
            ("min(x), max(x), max(s) FROM t", "-30 NaN NaN"),
            ("min(x), max(x), max(s) FROM t WHERE i >= 0", "-30 NaN NaN"),
            ("min(x), max(x), max(s) FROM t WHERE i = 20", "Infinity Infinity Infinity"),
            ("min(x) FROM t WHERE x > 69", "70"),
            ("count(*), min(i), max(i) FROM (SELECT i FROM t ORDER BY x DESC NULLS LAST LIMIT 15)", "15 3 90"),
            ("count(*), min(i), max(i) FROM (SELECT i, x FROM t ORDER BY s DESC NULLS LAST LIMIT 16)", "16 3 90"),
            ("count(*), min(i), max(i) FROM (SELECT i, x FROM t ORDER BY x NULLS LAST LIMIT 3)", "3 0 2"),
            ("count(*) FROM t a JOIN t b ON a.x = b.x WHERE b.i IN (44, 21)", "18"),
            ("count(*) FROM t a JOIN (SELECT max(x) AS x FROM t) b ON a.x = b.x", "15"),
            ("count(*) FROM t WHERE x = (SELECT max(x) FROM t)", "15"),
            ("count(DISTINCT x) FROM t", "84"),
            ("count(*) FROM (SELECT DISTINCT x, s FROM t)", "85"),
        ] {
            let sql = format!(
                "SELECT {}",
                select.replace("FROM t", &format!("FROM '{file}'")).replace("JOIN t", &format!("JOIN '{file}'"))
            );
            assert_eq!(one(&session, &sql).await.0, expects, "{select} on {place}");
        }
    }
}
