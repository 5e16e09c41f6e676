//! The baseline that benchmarks compare with, and what a session adds to DataFusion where everything runs on the CPU.
//!
//! Times are for people: `cargo test --release -p warpcube-sql --test sql overhead -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, write_ssb_parquet};
use warpcube_sql::Baseline;

use crate::support::{cpu, rows};

const TABLES: [&str; 5] = ["lineorder", "customer", "supplier", "part", "date"];
const RUNS: usize = 7;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; WARPCUBE_OVERHEAD_SF sets the scale"]
async fn beside_plain_datafusion() {
    let scale = std::env::var("WARPCUBE_OVERHEAD_SF").ok().and_then(|text| text.parse().ok()).unwrap_or(0.1);
    let folder = tempfile::tempdir().unwrap();
    let report = write_ssb_parquet(folder.path(), scale, &WriteOptions::default(), &NoProgress).unwrap();
    let (ours, plain) = (cpu(), Baseline::default());
    for table in TABLES {
        let written = report.tables.iter().find(|written| written.name == table).unwrap();
        let path = written.path.display().to_string();
        let sql = format!("CREATE EXTERNAL TABLE \"{table}\" STORED AS PARQUET LOCATION '{path}'");
        ours.collect(&sql).await.unwrap();
        plain.register_parquet(table, &written.path).await.unwrap();
    }
    let mut ratios = Vec::new();
    for (name, sql) in SSB_QUERIES {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..=RUNS {
            let clock = Instant::now();
            let found = ours.collect(sql).await.unwrap();
            with.push(clock.elapsed());
            let clock = Instant::now();
            let expected = plain.collect(sql).await.unwrap();
            without.push(clock.elapsed());
            assert_eq!(rows(&found), rows(&expected), "{name}");
        }
        let (with, without) = (median(with), median(without));
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!("{name}: {with:.2?} in a session, {without:.2?} in DataFusion, ratio {ratio:.2}");
        ratios.push(ratio);
    }
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    println!("geometric mean of the ratios: {:.3}", mean.exp());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_baseline_is_right_about_extremes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.parquet");
    let session = cpu();
    // The largest `a` is known after the first row group, the largest `b` after the last.
    let copy = format!(
        "COPY (SELECT 100.0 AS a, value AS b FROM generate_series(1, 500000)) TO '{}' STORED AS PARQUET \
         OPTIONS ('format.max_row_group_size' '5000')",
        file.display()
    );
    session.collect(&copy).await.unwrap();
    let plain = Baseline::default();
    plain.register_parquet("f", &file).await.unwrap();
    plain.register_parquet("folder", folder.path()).await.unwrap();
    for table in ["f", "folder"] {
        let found = plain.collect(&format!("SELECT max(a) AS a, max(b + 0) AS b FROM {table}")).await.unwrap();
        assert_eq!(rows(&found)[0], "| 100.0 | 500000 |", "{table}");
    }
}
