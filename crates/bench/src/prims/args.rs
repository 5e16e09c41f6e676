//! The arguments of the suite `primitives`.

use std::path::PathBuf;

use clap::Args;

use crate::suite::RunArgs;

/// What to measure of primitives.
#[derive(Debug, Clone, Args)]
pub struct PrimitiveArgs {
    /// Only these cases, or all below a name, by comma: topk/f32/uniform,sort/keys/u32. Cases below ordered/forms,
    /// large and tune run only if they are named
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// Rows of the largest inputs, as a power of two; those of other cases are relative to it
    #[arg(long, default_value_t = 29, value_name = "LOG2", value_parser = clap::value_parser!(u32).range(10..=32))]
    pub log_rows: u32,
    /// Runs of each case behind a first one; the median counts
    #[arg(long, default_value_t = 21, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Times of other programs for the same cases, as bench/rivals prints them
    #[arg(long, value_name = "FILE")]
    pub rivals: Option<PathBuf>,
    /// Keep the results that the file of --json has, but for those that are measured again
    #[arg(long, requires = "json")]
    pub update: bool,
    /// Add the fastest plans of ordered aggregation, which cases ordered/forms find, to this file
    #[arg(long, value_name = "FILE")]
    pub findings: Option<PathBuf>,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

#[cfg(test)]
impl PrimitiveArgs {
    /// Arguments for tests on the emulated device: one run of each case over few rows.
    pub(crate) fn small(log_rows: u32, cases: &[&str]) -> PrimitiveArgs {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let (rivals, update, findings, run) = (None, false, None, RunArgs::default());
        PrimitiveArgs { cases, log_rows, runs: 1, rivals, update, findings, run }
    }
}
