//! The arguments of benchmarks of queries.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::suite::RunArgs;

/// How to run a benchmark of queries whose data have a scale factor.
#[derive(Debug, Clone, Args)]
pub struct ScaledArgs {
    /// Scale factor
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// How to run it
    #[command(flatten)]
    pub queries: QueryArgs,
}

/// How to run ClickBench.
#[derive(Debug, Clone, Args)]
pub struct ClickbenchArgs {
    /// Rows of the table
    #[arg(long, default_value_t = 20_000_000)]
    pub rows: u64,
    /// How to run it
    #[command(flatten)]
    pub queries: QueryArgs,
}

/// How to run H2O's db-benchmark.
#[derive(Debug, Clone, Args)]
pub struct H2oArgs {
    /// Rows of the largest tables
    #[arg(long, default_value_t = 10_000_000)]
    pub rows: u64,
    /// How to run it
    #[command(flatten)]
    pub queries: QueryArgs,
}

/// How to run the benchmark of windows.
#[derive(Debug, Clone, Args)]
pub struct WindowsArgs {
    /// Rows of each table
    #[arg(long, default_value_t = 1 << 24)]
    pub rows: u64,
    /// How to run it
    #[command(flatten)]
    pub queries: QueryArgs,
}

/// How to run a benchmark of queries.
#[derive(Debug, Clone, Args)]
pub struct QueryArgs {
    /// Folder for the data, reused if it holds them already
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Compare every row with the answer of plain DataFusion, time it too, and fail on a difference
    #[arg(long)]
    pub verify: bool,
    /// Compare every row with the CSV files in this folder, q1.1.csv and so on, and fail on a difference
    #[arg(long, value_name = "FOLDER")]
    pub answers: Option<PathBuf>,
    /// Only these queries, by comma: q1.1,q2.3
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Vec<String>,
    /// Warm runs of each query; the median counts
    #[arg(long, default_value_t = 5, value_name = "RUNS")]
    pub runs: usize,
    /// How columns are kept on the device: auto, plain, packed or another encoding
    #[arg(long, value_name = "ENCODING")]
    pub encoding: Option<String>,
    /// Sort the largest table by this column first, such as lo_orderdate
    #[arg(long, value_name = "COLUMN")]
    pub sorted_by: Option<String>,
    /// Compression of the data's files, if they are made now
    #[arg(long, value_enum, default_value_t = Compression::None, value_name = "CODEC")]
    pub compression: Compression,
    /// Time this engine too, on all cores, and compare the rows and the sums of columns of its answers
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub rival: Option<Rival>,
    /// The Python that has the rival's package
    #[arg(long, value_name = "PROGRAM", env = "PYTHON", default_value = "python3")]
    pub python: PathBuf,
    /// Run all queries once more from this many threads at once, and fail if an answer is another
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "THREADS")]
    pub threads: usize,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// An engine beside which queries are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// DuckDB's package for Python, over its own tables in memory
    Duckdb,
    /// The same over the files themselves, each query once: for data that memory has no room for twice
    DuckdbFiles,
}

/// How pages of Parquet files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Not at all
    None,
    /// Snappy
    Snappy,
    /// Zstandard
    Zstd,
}

impl From<Compression> for warpcube_datagen::Compression {
    fn from(compression: Compression) -> warpcube_datagen::Compression {
        match compression {
            Compression::None => warpcube_datagen::Compression::None,
            Compression::Snappy => warpcube_datagen::Compression::Snappy,
            Compression::Zstd => warpcube_datagen::Compression::Zstd,
        }
    }
}
