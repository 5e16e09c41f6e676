//! Project chores: `cargo xtask setup`, `test`, `tidy`, `docs`, `judge`, `cases`, `wheel`, `bench-table` and
//! `figures`.
//!
//! Everything here is light: it builds in seconds and knows the project by its files and by `cargo metadata`. Of its
//! crates it links `warpcube-bench` alone, without the features that bring suites: it renders results, which is light.

mod cases;
mod docs;
mod files;
mod judge;
mod process;
mod settings;
mod setup;
mod test;
mod tidy;
mod wheel;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use warpcube_bench::render::{drawings, pages};

use process::{Result, root};

/// Project chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need: a C++ compiler, NVRTC in .venv, rustfmt and clippy
    Setup,
    /// Run every check and every test, as CI does
    Test(test::TestArgs),
    /// Compare random queries with DuckDB
    Judge(judge::JudgeArgs),
    /// Run statements with the rows they are to give
    Cases(cases::CasesArgs),
    /// Build the wheel of the Python module and try it
    Wheel(wheel::WheelArgs),
    /// Check the rules of files, crates and documents
    Tidy,
    /// Write the tables of the documents that are made from the source
    Docs {
        /// Change nothing; fail if a table is not what the source gives
        #[arg(long)]
        check: bool,
    },
    /// Write the tables of measurements in README and docs from bench/results/*.json
    BenchTable {
        /// Change nothing; fail if a table is not what the results give
        #[arg(long)]
        check: bool,
    },
    /// Draw docs/figures/*.svg from bench/results/*.json
    Figures {
        /// Change nothing; fail if a figure is not what the results give
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Setup => setup::run(),
        Task::Test(arguments) => test::run(&arguments),
        Task::Judge(arguments) => judge::run(&arguments),
        Task::Cases(arguments) => cases::run(&arguments),
        Task::Wheel(arguments) => wheel::run(&arguments),
        Task::Tidy => tidy::run(),
        Task::Docs { check } => docs::run(check),
        Task::BenchTable { check } => results(pages::write, pages::differences, check),
        Task::Figures { check } => results(drawings::write, drawings::differences, check),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            if !reason.is_empty() {
                eprintln!("error: {reason}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Writes what is made of results below a folder; tells of each file.
type Write = fn(&Path, &mut dyn FnMut(&str)) -> Result<()>;

/// Writes what is made of results, or with `check` says whether it differs.
fn results(write: Write, differences: fn(&Path) -> Result<Vec<String>>, check: bool) -> Result<()> {
    match check {
        true => differences(&root())?.into_iter().next().map_or(Ok(()), Err),
        false => write(&root(), &mut |path| println!("{path}")),
    }
}
