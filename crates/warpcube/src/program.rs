//! The program: its command line, and what ends it.

use std::ffi::OsString;
use std::io::{BufReader, IsTerminal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use warpcube_sql::{Database, DatabaseOptions, SqlError, outputs};

use crate::cli::{Cli, Command};
use crate::commands::Next;
use crate::error::{CliError, Result};
use crate::host::Host;
use crate::output::Target;
use crate::runner::{Runner, report_error};
use crate::{bench, cli, config, cube, doctor, escape, exit, host, logging, serve, shell, signals};

/// Runs the program with its arguments, the first of which is its own name. Gives its exit code.
pub fn program(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Arc<[OsString]> = arguments.into_iter().collect();
    let copy = arguments.clone();
    let run = move || run(&copy);
    // Plans are built and dropped on this thread too, however deep they are.
    let thread = std::thread::Builder::new().name("main".into()).stack_size(host::STACK_BYTES).spawn(run);
    match thread.map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        // If no thread can be made, the program runs on this one; a thread that panicked has reported it.
        Ok(Err(_)) => 1,
        Err(_) => self::run(&arguments),
    }
}

fn run(arguments: &[OsString]) -> u8 {
    let arguments = match cli::in_our_words(arguments.iter().cloned()) {
        Ok(arguments) => arguments,
        Err(error) => {
            report_error(&error);
            return error.exit_code();
        }
    };
    let parsed = Cli::command().try_get_matches_from(arguments);
    let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return wrong_usage(&error),
    };
    // A panic becomes an error of one line, like others; its place is in the log.
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    let run = || Host::new().and_then(|host| start(&cli, &matches, &Arc::new(host)));
    let done = catch_unwind(AssertUnwindSafe(run));
    let code = match done.unwrap_or_else(|panic| Err(SqlError::of_panic(panic.as_ref()).into())) {
        Ok(failures) => u8::from(failures > 0),
        Err(error) => {
            if !error.is_closed() {
                report_error(&error);
            }
            error.exit_code()
        }
    };
    // Abandoned tasks may still have hidden files.
    outputs::remove_all();
    signals::code().unwrap_or(code)
}

/// Says what is wrong with a command line, or the help that it asked for: people get the usage too, scripts one line.
fn wrong_usage(error: &clap::Error) -> u8 {
    let text = error.to_string();
    let is_harmless = escape::lines(&text) == text;
    if !error.use_stderr() || (std::io::stderr().is_terminal() && is_harmless) {
        error.exit();
    }
    let usage = CliError::Usage(cli::reason(error));
    report_error(&usage);
    usage.exit_code()
}

/// Runs the command line. Returns the number of failed statements after which the run went on.
fn start(cli: &Cli, matches: &ArgMatches, host: &Arc<Host>) -> Result<usize> {
    cli.check(matches)?;
    logging::start(cli.common.log.as_deref())?;
    if let Some(Command::Doctor { json }) = &cli.command {
        return doctor::run(*json);
    }
    let assignments = config::assignments(&cli.run, &cli.common)?;
    match &cli.command {
        Some(Command::Queries(suite)) => return bench::query_suite(suite, assignments, host).map(|()| 0),
        Some(Command::Bench { suite }) => return bench::suite(suite, assignments, host).map(|()| 0),
        _ => {}
    }
    let mut options = DatabaseOptions::new().with_assignments(assignments);
    let served = match &cli.command {
        Some(Command::Serve(args)) => Some(args),
        _ => None,
    };
    if let Some(folder) = served.map_or(cli.folder.as_ref(), |args| args.catalog.as_ref()) {
        options = options.with_catalog(folder);
    }
    let tokens = served.map(|_| config::tokens(&cli.common)).transpose()?;
    let database = Database::open(options).map_err(config::from_outside)?;
    if let Some(args) = served {
        let (tokens, file) = (tokens.unwrap_or_default(), config::file(&cli.common));
        return serve::run(args, tokens, file, &database, host).map(|()| 0);
    }
    let connection = database.connect();
    if let Some(Command::Cube { command }) = &cli.command {
        host.hold(connection.database());
        let done = cube::run(command, &connection, host);
        exit::close(connection.database());
        return done.map(|()| 0);
    }
    let mut runner = Runner::new(connection, host.clone(), Target::new(cli.run.output.clone()));
    runner.continue_on_error = cli.run.continue_on_error;
    for text in &cli.run.first {
        runner.text(text)?;
    }
    let steps = steps(cli, matches);
    if steps.is_empty() {
        let stdin = std::io::stdin();
        match stdin.is_terminal() {
            true => shell::run(&mut runner, !cli.run.no_rc)?,
            false => {
                runner.script("stdin", stdin.lock())?;
            }
        }
        // The shell has shown its errors; a script's count.
        return Ok(if runner.interactive { 0 } else { runner.failures });
    }
    for step in steps {
        match step {
            Step::Text(text) => runner.text(text)?,
            Step::File(path) => {
                let next = match path.as_os_str() == "-" {
                    true => runner.script("stdin", BufReader::new(std::io::stdin()))?,
                    false => runner.file(path)?,
                };
                if next == Next::Quit {
                    break;
                }
            }
        }
    }
    Ok(runner.failures)
}

/// One `-c` or `-f`.
enum Step<'a> {
    Text(&'a str),
    File(&'a Path),
}

/// All `-c` and `-f` in the order they were given.
fn steps<'a>(cli: &'a Cli, matches: &ArgMatches) -> Vec<Step<'a>> {
    let places = |name: &str| matches.indices_of(name).into_iter().flatten().collect::<Vec<_>>();
    let texts = cli.run.statements.iter().map(|text| Step::Text(text));
    let files = cli.run.files.iter().map(|path| Step::File(path));
    let mut steps: Vec<_> =
        places("statements").into_iter().zip(texts).chain(places("files").into_iter().zip(files)).collect();
    steps.sort_by_key(|(place, _)| *place);
    steps.into_iter().map(|(_, step)| step).collect()
}
