//! `cargo xtask judge`: random queries in Warpcube and DuckDB, compared; with `--cubes` random changes of cubes and a
//! brute force.
//!
//! The comparisons are Python programs in `xtask/judge`. Packages of the first go into `.venv` on the first run; CI
//! runs neither. Tables, queries and changes come from the seed alone.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::process::{Result, program, root, run as run_command, succeeds};
use crate::setup;

/// What the comparison imports, as arguments of `pip`: DuckDB in the version that benchmarks measure.
const PACKAGES: [&str; 4] = ["-r", "bench/rivals/requirements.txt", "pyarrow", "pytz"];

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// How many statements to compare, 2000 if not given; with --cubes sequences, 1000
    #[arg(long)]
    queries: Option<u64>,
    /// Hold sequences of define, change, load, refresh, kill and export of cubes against a brute force
    #[arg(long, conflicts_with = "shape")]
    cubes: bool,
    /// Seed of tables and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where Warpcube runs them
    #[arg(long, value_enum, default_value_t = Device::Cpu)]
    device: Device,
    /// The program; target/debug/warpcube if none is named
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Write the tables into this folder and leave them there
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Compare the query, or play the sequence, of this number alone
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
    /// Draw this shape of statement alone, a name of xtask/judge/draw.py
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,
}

/// Devices that need no GPU.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Device {
    Cpu,
    Emulated,
}

/// Compares the engines; fails if a difference has no explanation.
pub(crate) fn run(arguments: &JudgeArgs) -> Result<()> {
    let warpcube = absolute(arguments.program.clone().unwrap_or_else(built))?;
    if !warpcube.is_file() {
        return Err(format!("there is no {}: 'cargo build' makes it, or name one by --program", warpcube.display()));
    }
    let python = setup::python()?;
    let script = if arguments.cubes { "xtask/judge/cubes.py" } else { "xtask/judge/main.py" };
    let imports = || succeeds(program(&python).args(["-c", "import duckdb, pyarrow, pytz"]));
    if !arguments.cubes && !imports() {
        setup::pip(&PACKAGES)?;
    }
    let mut judge = program(&python);
    judge.args(["-B", script, "--program"]).arg(warpcube);
    let queries = arguments.queries.unwrap_or(if arguments.cubes { 1000 } else { 2000 });
    judge.args(["--queries", &queries.to_string(), "--seed", &arguments.seed.to_string()]);
    judge.args(["--device", if matches!(arguments.device, Device::Cpu) { "cpu" } else { "emulated" }]);
    if let Some(folder) = &arguments.keep {
        judge.arg("--keep").arg(absolute(folder.clone())?);
    }
    if let Some(number) = arguments.only {
        judge.args(["--only", &number.to_string()]);
    }
    if let Some(shape) = &arguments.shape {
        judge.args(["--shape", shape]);
    }
    // The lines printed say what differs.
    run_command(&mut judge).map_err(|_| "something differs, or the comparison failed".into())
}

/// The program as `cargo build` makes it.
pub(crate) fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug/warpcube")
}

/// A path from the folder where the command was typed; programs run in the workspace's root.
pub(crate) fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}
