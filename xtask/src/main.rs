//! Project chores: `cargo xtask setup`, `test`, `tidy`, `docs`, `judge` and `bench-table`.
//!
//! Everything here is light: it builds in seconds and knows the project by its files and by `cargo metadata` alone,
//! never by linking its crates.

mod bench_table;
mod docs;
mod judge;
mod measured;
mod process;
mod settings;
mod setup;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Check the rules of files, crates and documents
    Tidy,
    /// Write the tables of the documents that are made from the source
    Docs {
        /// Change nothing; fail if a table is not what the source gives
        #[arg(long)]
        check: bool,
    },
    /// Write README's tables of measurements from bench/results/*.json
    BenchTable {
        /// Change nothing; fail if a table is not what the results give
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Setup => setup::run(),
        Task::Test(arguments) => test::run(&arguments),
        Task::Judge(arguments) => judge::run(&arguments),
        Task::Tidy => tidy::run(),
        Task::Docs { check } => docs::run(check),
        Task::BenchTable { check } => bench_table::run(check),
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
