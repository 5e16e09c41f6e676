//! What a session adds to DataFusion where everything runs on the CPU.
//!
//! Times are for people: `cargo test --release -p warpcube-sql --test sql overhead -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, write_ssb_parquet};

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
    let (ours, plain) = (cpu(), SessionContext::new());
    for table in TABLES {
        let written = report.tables.iter().find(|written| written.name == table).unwrap();
        let path = written.path.display().to_string();
        let sql = format!("CREATE EXTERNAL TABLE \"{table}\" STORED AS PARQUET LOCATION '{path}'");
        ours.collect(&sql).await.unwrap();
        let path = if written.files > 1 { format!("{path}/") } else { path };
        plain.register_parquet(table, path, ParquetReadOptions::default()).await.unwrap();
    }
    let mut ratios = Vec::new();
    for (name, sql) in SSB_QUERIES {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..=RUNS {
            let clock = Instant::now();
            let found = ours.collect(sql).await.unwrap();
            with.push(clock.elapsed());
            let clock = Instant::now();
            let expected = plain.sql(sql).await.unwrap().collect().await.unwrap();
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
