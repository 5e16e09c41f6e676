//! The arguments of the suite `cube`.

use clap::Args;
use warpcube_cube::device::HASH_FUNCTIONS_MAX;

use crate::suite::RunArgs;

/// What to measure of cubes.
#[derive(Debug, Clone, Args)]
pub struct CubeArgs {
    /// Only these queries, by comma: B1,M3
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// About so many facts in each cube, at most as many as it has
    #[arg(long, value_name = "NUMBER")]
    pub facts: Option<u64>,
    /// Runs of each query behind a first one; the median counts
    #[arg(long, default_value_t = 21, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Measure each query with these threads of a block, too, by comma: tune/B3/1024x16
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub threads: Vec<u32>,
    /// With --threads: miniblocks of a ticket, by comma
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_value = "16")]
    pub tickets: Vec<u32>,
    /// Measure each query with these algorithms, too, by comma; `all` is every one, with 64 hash functions:
    /// gpu-target,gpu-source/none/thread/h64
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub algorithms: Vec<String>,
    /// Measure what the thesis's tables 5.2 to 5.8 show of each query, too: counts of atomic additions, variants of the
    /// source-based algorithm by their number of hash functions, one core of the CPU
    #[arg(long)]
    pub tables: bool,
    /// With --tables: parallel hash functions, by comma
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_value = "1,4,16,64,256,1024,4096,12288",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(HASH_FUNCTIONS_MAX)))]
    pub hash_functions: Vec<u32>,
    /// With --tables: seconds behind which variants are measured with 64 hash functions alone
    #[arg(long, value_name = "NUMBER")]
    pub seconds: Option<u64>,
    /// Measure contraction by other rules, types and weights, too: M1/count, M1/avg, M1/min, M1/max, M1/double,
    /// M1/fractional, M1/sum128
    #[arg(long)]
    pub rules: bool,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}
