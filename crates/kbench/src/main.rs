//! `kbench`: measures kernels and encodings on one GPU.
//!
//! It knows no SQL, builds in a minute and is small enough to be copied about: many variants are measured by one run.
//! Every case computes a known answer; a wrong one fails the run.

mod cpu;
mod data;
mod decode;
mod encode;
mod encodings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::Value;
use warpcube_column::EncodingChoice;
use warpcube_gpu::Device;
use warpcube_kbench::cube::{self, CubeArgs};
use warpcube_kbench::prims::{self, Follower, PrimitiveArgs, Table};
use warpcube_kbench::report;
use warpcube_kbench::schemes::{self, SchemeArgs};

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
    /// Aggregation of areas over the benchmark cubes Machines and Biker
    Cube(CubeArgs),
    /// Storage schemes of sparse arrays, on one core and on the device
    Schemes(SchemeArgs),
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
        Suite::Primitives(arguments) => primitives(&arguments),
        Suite::Cube(arguments) => cubes(&arguments),
        Suite::Schemes(arguments) => storage_schemes(&arguments),
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

/// Runs the suite of primitives, a line of the table as each case is done.
fn primitives(arguments: &PrimitiveArgs) -> Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let plan = prims::plan(&device, arguments)?;
    if arguments.list {
        plan.cases.iter().for_each(|case| println!("{case}"));
        return Ok(());
    }
    let mut printer = Printer(Table::new(&plan.cases));
    println!("{}", printer.0.head());
    let outcome = prims::run(&device, arguments, plan, &mut printer).map_err(|error| error.to_string())?;
    write(arguments.json.as_deref(), &outcome.report)?;
    match outcome.failures.is_empty() {
        true => Ok(()),
        false => Err(outcome.failures.join("; ")),
    }
}

/// Runs the suite of cubes.
fn cubes(arguments: &CubeArgs) -> Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let report = cube::run(&device, arguments, &mut |line| println!("{line}"))?;
    write(arguments.json.as_deref(), &report)?;
    match cube::wrong(&report).as_slice() {
        [] => Ok(()),
        wrong => Err(format!("other cells than those of the query: {}", wrong.join(", "))),
    }
}

/// Runs the suite of storage schemes.
fn storage_schemes(arguments: &SchemeArgs) -> Result<(), String> {
    if arguments.list {
        schemes::plan(arguments)?.iter().for_each(|case| println!("{case}"));
        return Ok(());
    }
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let report = schemes::run(&device, arguments, &mut |line| println!("{line}"))?;
    write(arguments.json.as_deref(), &report)
}

/// Writes a report to a file, if there is one to write to.
fn write(path: Option<&Path>, report: &Value) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    report::write(path, report).map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints the table of primitives.
struct Printer(Table);

impl Follower for Printer {
    fn measured(&mut self, result: &Value) {
        println!("{}", self.0.line(result));
    }

    fn left_out(&mut self, case: &str, reason: &str) {
        println!("{}", self.0.without(case, reason));
    }

    fn failed(&mut self, reason: &str) {
        println!("FAILED: {reason}");
    }

    fn is_stopped(&self) -> bool {
        false
    }
}
