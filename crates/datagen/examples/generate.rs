//! Generates a benchmark into a folder and says how long it took:
//! `cargo run --release -p warpcube-datagen --example generate -- ssb 1 /tmp/ssb none`

use std::path::Path;
use std::time::Instant;

use warpcube_datagen::{Compression, NoProgress, WriteOptions, write_ssb_parquet, write_tpch_parquet};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [benchmark, scale, dir, compression] = &arguments[..] else {
        return Err("usage: generate ssb|tpch SCALE FOLDER none|snappy|zstd".into());
    };
    let write = match benchmark.as_str() {
        "ssb" => write_ssb_parquet,
        "tpch" => write_tpch_parquet,
        other => return Err(format!("no benchmark is called {other}").into()),
    };
    let compression = match compression.as_str() {
        "none" => Compression::None,
        "snappy" => Compression::Snappy,
        "zstd" => Compression::Zstd,
        other => return Err(format!("no compression is called {other}").into()),
    };
    let start = Instant::now();
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let report = write(Path::new(dir), scale.parse()?, &options, &NoProgress)?;
    for table in &report.tables {
        println!("{:<10} {:>12} rows {:>14} bytes {:>4} files", table.name, table.rows, table.bytes, table.files);
    }
    println!("{:.2} s{}", start.elapsed().as_secs_f64(), if report.reused { ", reused" } else { "" });
    Ok(())
}
