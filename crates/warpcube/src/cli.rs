//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, Parser, Subcommand};
use warpcube_bench::cube::CubeArgs;
use warpcube_bench::prims::PrimitiveArgs;
use warpcube_bench::queries::{ClickbenchArgs, H2oArgs, ScaledArgs, WindowsArgs};
use warpcube_bench::schemes::SchemeArgs;

use crate::cube::args::CubeCommand;
use crate::error::{CliError, Result};
use crate::serve::ServeArgs;

/// SQL over columnar data at the speed of GPU memory.
///
/// Without a command, statements are read from -c, -f or the standard input; on a terminal a shell opens. A folder is a
/// catalog: views, tables over files and settings of SET GLOBAL are kept in it, tables in memory are not.
///
/// Exit codes: 0 all went well, 1 a statement failed, 2 wrong usage or configuration, 130 cancelled, 129 and 143 ended
/// by SIGHUP and SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "warpcube", version)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Open the catalog that is kept in this folder: its views, tables over files and settings; a name with a slash at
    /// its end is made
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to run and how to write it.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run these statements; may be given several times, in order with -f
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub(crate) statements: Vec<String>,
    /// Run these statements first, before others, the standard input or the shell
    #[arg(long = "cmd", value_name = "SQL", allow_hyphen_values = true)]
    pub(crate) first: Vec<String>,
    /// Run the statements of this file; '-' is the standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to write results: table, box, line, markdown, csv, tsv, list, json, ndjson, parquet or arrow
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Write the result to this file; its extension tells the format unless --format does
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Most rows of a table on a terminal; 0 means all
    #[arg(long, value_name = "ROWS")]
    pub(crate) max_rows: Option<usize>,
    /// Open the shell without its start-up file
    #[arg(short = 'X', long)]
    pub(crate) no_rc: bool,
    /// Go on with the next statement of a script after one failed
    #[arg(long)]
    pub(crate) continue_on_error: bool,
    /// Refuse statements that write files; what --output names is still written
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Write rows, time and placement to the standard error after each statement
    #[arg(long)]
    pub(crate) timing: bool,
}

/// What holds for every command.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// The device: auto, cuda, cuda:N, cpu or columns
    #[arg(long, global = true, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Set a setting, such as warpcube.timeout=30s; may be given several times
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// The configuration file, instead of warpcube/config.toml in the user's configuration folder
    #[arg(long, global = true, value_name = "FILE", env = "WARPCUBE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// What to log to the standard error, such as info or warpcube_sql=debug
    #[arg(long, global = true, value_name = "FILTER", env = "WARPCUBE_LOG")]
    pub(crate) log: Option<String>,
}

/// Commands beside running statements.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say which GPUs there are, what is missing to use them and how to repair it
    ///
    /// Exit code 0 where queries will run on a GPU, and where there is no GPU at all, since the CPU then does all;
    /// 1 where there is a GPU that cannot be used.
    Doctor {
        /// Write one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run a benchmark, verify its answers, print and keep its times
    Bench {
        #[command(subcommand)]
        suite: BenchSuite,
    },
    /// Make, fill and ask cubes: weighted hierarchies over sparse facts, aggregated while you look
    Cube {
        #[command(subcommand)]
        command: CubeCommand,
    },
    /// Serve a database to programs of this machine, over HTTP and Flight SQL, until Ctrl-C or SIGTERM
    Serve(ServeArgs),
    #[command(flatten)]
    Queries(QuerySuite),
}

/// A benchmark.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchSuite {
    /// Measure the device's primitives: selection, projection, scan, aggregation, sorts, top-k, joins
    ///
    /// Each case makes its input on the device, is verified there and stands beside the time that its bytes need
    /// (floor), the time predicted and the best rival. Exit code 1 where an answer is wrong.
    Primitives(PrimitiveArgs),
    /// Measure the aggregation of two benchmark cubes, Machines and Biker, beside the times of Meinke's thesis
    ///
    /// The facts are drawn, and every cell is compared with those of the CPU. Exit code 1 where one is wrong.
    Cube(CubeArgs),
    /// Measure the storage schemes of sparse arrays, on one core and on the device
    Schemes(SchemeArgs),
    /// Find the first rows of SSB's largest table by several orders: ORDER BY with LIMIT
    Topk(ScaledArgs),
    /// Run TPC-DS: make the data, run the 99 queries, print their times and where each part ran
    Tpcds(ScaledArgs),
    /// Run ClickBench: draw its table, run the 43 queries, print their times and where each part ran
    Clickbench(ClickbenchArgs),
    /// Run H2O's db-benchmark: draw its tables, answer the 15 questions, print their times and where each part ran
    H2o(H2oArgs),
    /// Measure windows: row_number, running sums and lag over many and few partitions, and first rows of each
    Windows(WindowsArgs),
    #[command(flatten)]
    Queries(QuerySuite),
}

/// A benchmark of queries.
#[derive(Debug, Subcommand)]
pub(crate) enum QuerySuite {
    /// Run the Star Schema Benchmark: make the data, run the 13 queries, print their times
    Ssb(ScaledArgs),
    /// Run TPC-H: make the data, run the 22 queries, print their times and where each part ran
    Tpch(ScaledArgs),
}

/// Flags of DuckDB's program, with ours; those with a value have it behind them, or behind the `=` of ours.
const OF_DUCKDB: [(&str, &[&str]); 24] = [
    ("-A", &["--format", "list"]),
    ("-At", &["--format", "list", "--set", "warpcube.header=off"]),
    ("-bail", &[]),
    ("-box", &["--format", "box"]),
    ("-cmd", &["--cmd"]),
    ("-csv", &["--format", "csv"]),
    ("-help", &["--help"]),
    ("-header", &["--set", "warpcube.header=on"]),
    ("-json", &["--format", "json"]),
    ("-jsonlines", &["--format", "ndjson"]),
    ("-line", &["--format", "line"]),
    ("-list", &["--format", "list"]),
    ("-markdown", &["--format", "markdown"]),
    ("-no-init", &["--no-rc"]),
    ("-noheader", &["--set", "warpcube.header=off"]),
    ("-nullvalue", &["--set", "warpcube.null="]),
    ("-readonly", &["--read-only"]),
    ("-s", &["-c"]),
    ("-separator", &["--set", "warpcube.separator="]),
    ("-table", &["--format", "table"]),
    ("-tabs", &["--format", "tsv"]),
    ("-version", &["--version"]),
    (":memory:", &[]),
    ("-duckbox", &["--format", "table"]),
];
/// Flags of DuckDB's program and of psql that have no like here, with what to write.
const REFUSED: [(&str, &str); 7] = [
    ("-batch", "statements of -c, of -f and of a pipe open no shell"),
    ("-column", "--format table"),
    ("-html", "--format markdown"),
    ("-init", "statements of a file stand behind -f; the shell's start-up file is that of WARPCUBE_RC"),
    ("-echo", "statements are not repeated"),
    ("-t", "--set warpcube.header=off"),
    ("-d", "a folder is a catalog: warpcube folder/"),
];
/// Flags whose value is the argument behind them.
const WITH_VALUE: [&str; 11] =
    ["-c", "--cmd", "--command", "-f", "--file", "-o", "--output", "--format", "--set", "--config", "--log"];

/// Arguments in our words; those behind a flag that takes a value stay as they are.
///
/// # Errors
/// A flag of another program that has no like.
pub(crate) fn in_our_words(arguments: impl Iterator<Item = OsString>) -> Result<Vec<OsString>> {
    let mut ours: Vec<OsString> = Vec::new();
    let mut arguments = arguments.fuse();
    ours.extend(arguments.next());
    let commands = Cli::command();
    // What stands behind a command is the command's.
    let is_command = |word: &OsString| commands.get_subcommands().any(|command| command.get_name() == word.as_os_str());
    let is_of_statements = |ours: &[OsString]| !ours.iter().skip(1).any(is_command);
    while let Some(argument) = arguments.next() {
        let word = argument.to_str().unwrap_or_default();
        if WITH_VALUE.contains(&word) {
            ours.push(argument);
            ours.extend(arguments.next());
            continue;
        }
        if let Some((flag, instead)) = REFUSED.iter().find(|(flag, _)| *flag == word && is_of_statements(&ours)) {
            return Err(CliError::Usage(format!("there is no {flag}: {instead}")));
        }
        match OF_DUCKDB.iter().find(|(flag, _)| *flag == word && is_of_statements(&ours)) {
            None => ours.push(argument),
            Some((_, [flag, name])) if name.ends_with('=') => {
                let mut value = OsString::from(*name);
                value.push(arguments.next().unwrap_or_default());
                ours.extend([OsString::from(*flag), value]);
            }
            Some((_, words)) => {
                ours.extend(words.iter().map(OsString::from));
                if matches!(words.last(), Some(&"-c" | &"--cmd")) {
                    ours.extend(arguments.next());
                }
            }
        }
    }
    Ok(ours)
}

/// Arguments for statements alone: as clap knows them, and as written.
const OF_STATEMENTS: [(&str, &str); 11] = [
    ("folder", "FOLDER"),
    ("first", "--cmd"),
    ("statements", "-c"),
    ("files", "-f"),
    ("format", "--format"),
    ("output", "--output"),
    ("max_rows", "--max-rows"),
    ("no_rc", "--no-rc"),
    ("continue_on_error", "--continue-on-error"),
    ("timing", "--timing"),
    ("read_only", "--read-only"),
];
/// Arguments of sessions, which `doctor` does not open.
const OF_SESSIONS: [(&str, &str); 3] = [("device", "--device"), ("settings", "--set"), ("config", "--config")];

impl Cli {
    /// Refuses arguments that the command would ignore, and a word that is neither a command nor a folder.
    pub(crate) fn check(&self, matches: &ArgMatches) -> Result<()> {
        let folder = match &self.command {
            Some(Command::Serve(args)) => args.catalog.as_ref(),
            _ => self.folder.as_ref(),
        };
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let name = folder.to_string_lossy();
            if folder.exists() || !name.ends_with('/') {
                let reason = match folder.is_file() {
                    _ if name.contains(char::is_whitespace) => {
                        format!("unrecognized command '{name}'; statements stand behind -c, or in a file behind -f")
                    }
                    true if OF_DATABASES.iter().any(|extension| name.ends_with(extension)) => format!(
                        "'{name}' is a file of another database, which is not read; a catalog is a folder, and \
                         Parquet, CSV and JSON files are tables"
                    ),
                    true if name.ends_with(".sql") => format!("'{name}' is a file: warpcube -f '{name}' runs it"),
                    true => format!("'{name}' is a file: warpcube -c \"FROM '{name}'\" reads it"),
                    false => format!(
                        "unrecognized command '{name}', and no folder of that name; --help lists commands, and \
                         'warpcube {name}/' makes a catalog in a new folder"
                    ),
                };
                return Err(CliError::Usage(reason));
            }
        }
        let Some(command) = matches.subcommand_name() else { return Ok(()) };
        let opens_a_session = !matches!(self.command, Some(Command::Doctor { .. }));
        let of_sessions = OF_SESSIONS.iter().filter(|_| !opens_a_session);
        let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        match OF_STATEMENTS.iter().chain(of_sessions).find(|(name, _)| is_given(name)) {
            Some((_, flag)) => Err(CliError::Usage(format!("{flag} does not go with '{command}', which ignores it"))),
            None => Ok(()),
        }
    }
}

/// Extensions of files of other databases.
const OF_DATABASES: [&str; 5] = [".db", ".ddb", ".duckdb", ".sqlite", ".sqlite3"];

/// Rust's messages for texts that are no numbers, each with ours.
const PLAIN: [(&str, &str); 5] = [
    ("invalid digit found in string", "a whole number is expected"),
    ("cannot parse integer from empty string", "a whole number is expected"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid float literal", "a number is expected"),
    ("cannot parse float from empty string", "a number is expected"),
];

/// The error of arguments in one line, without the usage.
pub(crate) fn reason(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; --help lists them".into();
    }
    let text = error.to_string();
    let lines = text.split("\n\n").next().unwrap_or_default().lines().map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_string();
    let text = PLAIN.iter().fold(text, |text, (words, plain)| text.replace(words, plain));
    let found = text.strip_prefix("unexpected argument '").and_then(|rest| rest.strip_suffix("' found"));
    match found.is_some_and(|found| found.contains(char::is_whitespace)) {
        true => format!("{text}; statements stand behind -c"),
        false => text,
    }
}
