//! Generates a benchmark into a folder and says how long it took:
//! `cargo run --release -p warpcube-datagen --example generate -- ssb 1 /tmp/ssb none`

use std::path::Path;
use std::time::Instant;

use warpcube_datagen::{
    Compression, NoProgress, WriteOptions, write_clickbench_parquet, write_h2o_parquet, write_ssb_parquet,
    write_tpcds_parquet, write_tpch_parquet,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [benchmark, scale, dir, compression] = &arguments[..] else {
        return Err("usage: generate ssb|tpch|tpcds SCALE FOLDER none|snappy|zstd, \
             or clickbench|h2o ROWS …"
            .into());
    };
    let compression = match compression.as_str() {
        "none" => Compression::None,
        "snappy" => Compression::Snappy,
        "zstd" => Compression::Zstd,
        other => return Err(format!("no compression is called {other}").into()),
    };
    let start = Instant::now();
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let dir = Path::new(dir);
    let report = match benchmark.as_str() {
        "ssb" => write_ssb_parquet(dir, scale.parse()?, &options, &NoProgress),
        "tpch" => write_tpch_parquet(dir, scale.parse()?, &options, &NoProgress),
        "tpcds" => write_tpcds_parquet(dir, scale.parse()?, &options, &NoProgress),
        "clickbench" => write_clickbench_parquet(dir, scale.parse()?, &options, &NoProgress),
        "h2o" => write_h2o_parquet(dir, scale.parse()?, &options, &NoProgress),
        other => return Err(format!("no benchmark is called {other}").into()),
    }?;
    for table in &report.tables {
        println!("{:<10} {:>12} rows {:>14} bytes {:>4} files", table.name, table.rows, table.bytes, table.files);
    }
    println!("{:.2} s{}", start.elapsed().as_secs_f64(), if report.reused { ", reused" } else { "" });
    Ok(())
}
