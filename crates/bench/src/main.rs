//! `warpcube-bench`: measures kernels, encodings, cubes, storage schemes, H-trees and CUBEs on one GPU.
//!
//! It knows no SQL, builds in a minute and is small enough to be copied about: many variants are measured by one run.
//! Every case computes a known answer; a wrong one fails the run. `warpcube bench` has the suites for users.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use warpcube_bench::cube::{CubeArgs, Cubes};
use warpcube_bench::cube_operator::{CubeOperator, CubeOperatorArgs};
use warpcube_bench::encodings::{Encode, EncodeArgs, EncodeCpu, EncodingArgs, Encodings};
use warpcube_bench::htree::{HTreeArgs, HTrees};
use warpcube_bench::prims::{PrimitiveArgs, Primitives};
use warpcube_bench::schemes::{SchemeArgs, Schemes};
use warpcube_bench::suite::{self, Failure, Listener, RunArgs, Suite};
use warpcube_gpu::{Device, EmulatorOptions};

/// The exit code of a run that was stopped.
const CANCELLED: u8 = 130;

/// Benchmarks of Warpcube without SQL.
#[derive(Debug, Parser)]
#[command(name = "warpcube-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// H-trees of tuples, on one core and on the device
    #[command(name = "htree")]
    HTree(HTreeArgs),
    /// The CUBE of rows by algorithm, on one core and on the device
    CubeOperator(CubeOperatorArgs),
    /// Encoding and decoding of segments on the CPU, on one core and on all
    EncodeCpu(RunArgs),
}

impl Command {
    /// The suite on the first GPU, or on any device where cases are only listed, and what to do with its results.
    fn suite(self) -> Result<(Box<dyn Suite>, RunArgs), Failure> {
        let device = |run: &RunArgs| match run.list {
            true => Device::emulated(EmulatorOptions::default(), 0),
            false => Device::cuda(0, None),
        };
        Ok(match self {
            Command::Encodings(args) => (Box::new(Encodings::new(device(&args.run)?, args.clone())?), args.run),
            Command::Encode(args) => (Box::new(Encode::new(device(&args.run)?, args.clone())), args.run),
            Command::Primitives(args) => (Box::new(Primitives::new(device(&args.run)?, args.clone())), args.run),
            Command::Cube(args) => (Box::new(Cubes::new(device(&args.run)?, args.clone())?), args.run),
            Command::Schemes(args) => (Box::new(Schemes::new(device(&args.run)?, args.clone())), args.run),
            Command::HTree(args) => (Box::new(HTrees::new(device(&args.run)?, args.clone())), args.run),
            Command::CubeOperator(args) => (Box::new(CubeOperator::new(device(&args.run)?, args.clone())), args.run),
            Command::EncodeCpu(run) => (Box::new(EncodeCpu), run),
        })
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Cancelled) => ExitCode::from(CANCELLED),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let (mut suite, arguments) = command.suite()?;
    if arguments.list {
        suite.cases()?.concat().iter().for_each(|case| println!("{case}"));
        return Ok(());
    }
    suite::run(suite.as_mut(), &arguments, Box::new(Screen::new())).map(drop)
}

/// Prints lines, shows on a terminal which case is measured, and hears Ctrl-C.
struct Screen {
    stopped: Arc<AtomicBool>,
    is_terminal: bool,
}

impl Screen {
    fn new() -> Screen {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = stopped.clone();
        // The first Ctrl-C stops the suite before its next timed run, a second one ends the program, as every one does
        // where there is no such thread.
        let hear = async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.store(true, Ordering::Relaxed);
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(CANCELLED.into());
            }
        };
        let _ = std::thread::Builder::new().name("ctrl-c".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(hear))
        });
        Screen { stopped, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Writes a line that the next one covers.
    fn status(&self, text: &str) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }
}

impl Listener for Screen {
    fn line(&mut self, line: &str) {
        self.status("");
        // A run goes on after the reader of its text has gone.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    fn tell(&mut self, line: &str) {
        self.status("");
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn at(&mut self, what: &str, done: u64, total: u64) {
        self.status(&format!("{what} ({done} of {total})"));
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
