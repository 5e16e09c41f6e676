//! `kbench`: measures kernels and encodings on one GPU.
//!
//! It knows no SQL, builds in a minute and is small enough to be copied about: many variants are measured by one run.
//! Every case computes a known answer; a wrong one fails the run.

mod cpu;
mod data;
mod decode;
mod encode;
mod encodings;
mod prims;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use warpcube_column::EncodingChoice;
use warpcube_gpu::Device;

/// Kernel benchmarks of Warpcube.
#[derive(Debug, Parser)]
#[command(name = "kbench", version)]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Sums of columns by encoding and width
    Encodings(EncodingArgs),
    /// Encoding of plain columns on the device
    Encode(EncodeArgs),
    /// Primitives: selection, projection, top-k, sorts, scans, ordered aggregation
    Primitives(PrimitiveArgs),
    /// Encoding and decoding of segments on the CPU, on one core and on all
    EncodeCpu(CpuArgs),
}

/// What to measure of encoding on the CPU.
#[derive(Debug, Args)]
struct CpuArgs {
    /// Write results to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// What to measure of primitives.
#[derive(Debug, Args)]
struct PrimitiveArgs {
    /// Cases whose names begin so, by comma; all if none is named
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Elements of the largest inputs, as a power of two; the sizes of the suite's tables are relative to it
    #[arg(long, default_value_t = 29)]
    log_rows: u32,
    /// Runs of a case; the median is reported
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// Write results to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Add the fastest plans of ordered aggregation to this file, which cases ordered/forms find
    #[arg(long)]
    findings: Option<PathBuf>,
}

/// What to measure of encoding.
#[derive(Debug, Args)]
struct EncodeArgs {
    /// Values of a column
    #[arg(long, default_value_t = 500_000_000)]
    rows: usize,
    /// Runs of a case; the median is reported
    #[arg(long, default_value_t = 11)]
    runs: usize,
    /// Write results to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// What to measure of encodings.
#[derive(Debug, Args)]
struct EncodingArgs {
    /// Values of a column
    #[arg(long, default_value_t = 500_000_000)]
    rows: usize,
    /// Widths in bits, by comma
    #[arg(long, value_delimiter = ',', default_values_t = 2..=32)]
    bits: Vec<u32>,
    /// Encodings, by comma; columns that cannot have one are left out, alp adds columns of doubles
    #[arg(long, value_delimiter = ',', default_value = "plain,packed")]
    encodings: Vec<EncodingChoice>,
    /// Sorted, normal and Zipf columns too
    #[arg(long)]
    distributions: bool,
    /// Decode each column to memory too
    #[arg(long)]
    decode: bool,
    /// Every tenth value is NULL
    #[arg(long)]
    nulls: bool,
    /// Runs of a case; the median is reported
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// Choices in generated kernels, by name=value,…
    #[arg(long, env = "WARPCUBE_TUNING", default_value = "")]
    tuning: String,
    /// Write results to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().suite {
        Suite::Encodings(arguments) => encodings::run(&arguments),
        Suite::Encode(arguments) => encode::run(&arguments),
        Suite::Primitives(arguments) => prims::run(&arguments),
        Suite::EncodeCpu(arguments) => cpu::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The object that all benchmarks of the project share, around these results.
fn report(suite: &str, device: &Device, params: Value, results: Vec<Value>) -> Value {
    let info = device.info();
    let mut report = report_of(suite, &info.name, params, results);
    report["driver"] = json!(info.driver);
    report
}

/// The same of a device that has no driver.
fn report_of(suite: &str, device: &str, params: Value, results: Vec<Value>) -> Value {
    json!({
        "suite": suite, "device": device, "date": today(), "commit": option_env!("WARPCUBE_COMMIT"),
        "params": params, "results": results,
    })
}

/// Writes a report to a file, if there is one to write to.
fn write(path: Option<&Path>, report: &Value) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())? + "\n";
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The date in days since 1970-01-01 as a civil date (H. Hinnant, "chrono-compatible low-level date algorithms").
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400) + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}
