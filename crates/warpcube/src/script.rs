//! Scripts: statements, and backslash commands on lines of their own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use warpcube_sql::Script;

use crate::console::tell;
use crate::error::{CliError, Result};
use crate::runner::{Runner, report_error};
use crate::statement_reader::{Piece, StatementReader};

/// What a script or the shell does after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Goes on.
    Prompt,
    /// Leaves.
    Quit,
}

/// Names, arguments and meanings, for help and completion.
pub(crate) const COMMANDS: [(&str, &str, &str); 10] = [
    ("\\cube", "query cube rows …", "ask a cube; other commands are those of 'warpcube cube'"),
    ("\\d", "[table]", "list tables and views, or the columns of one"),
    ("\\device", "[auto|cuda|cuda:N|cpu]", "show the device, or choose another"),
    ("\\format", "[name]", "show how results are written, or choose another format"),
    ("\\help", "", "show this"),
    ("\\i", "file", "run the statements of a file"),
    ("\\q", "", "leave"),
    ("\\timing", "[on|off]", "show whether times are written after each statement, or switch them"),
    ("\\l", "", "list what is in device memory"),
    ("\\s", "[name]", "show all settings of Warpcube, or one with its origin"),
];

/// The command that is meant by a word of other shells in place of a statement.
pub(crate) fn meant_by(statement: &str) -> Option<&'static str> {
    match statement.trim().trim_end_matches(';').trim_end().to_lowercase().as_str() {
        "help" => Some("\\help"),
        "exit" | "quit" => Some("\\q"),
        _ => None,
    }
}

impl Runner {
    /// Runs a script: statements that end with semicolons, the last one may do without, and shell commands on lines of
    /// their own. `name` stands before line numbers in errors.
    ///
    /// Errors end the script unless they are to be gone on from; then they are written and counted.
    pub(crate) fn script(&mut self, name: &str, reader: impl BufRead) -> Result<Next> {
        let mut statements = StatementReader::default();
        let mut lines = reader.lines();
        loop {
            let line = lines.next().transpose();
            let line = line.map_err(|error| CliError::Input { path: name.into(), reason: error.to_string() })?;
            let at_end = line.is_none();
            let pieces = match line {
                Some(line) => statements.line(&line),
                None => statements.end(),
            };
            for (piece, line) in pieces {
                let done = match piece {
                    Piece::Statement(sql) => self.statement(&sql).map(|()| Next::Prompt),
                    Piece::Command(command) => run_command(self, &command),
                };
                match done {
                    Ok(Next::Quit) => return Ok(Next::Quit),
                    Ok(Next::Prompt) => {}
                    Err(error) => self.script_error(error.at(format!("{name}:{line}")))?,
                }
            }
            if at_end {
                return Ok(Next::Prompt);
            }
        }
    }

    /// Gives an error back if it ends a script, or writes it.
    fn script_error(&mut self, error: CliError) -> Result<()> {
        let ends = !(self.continue_on_error || self.interactive) || error.is_cancelled() || error.is_closed();
        if ends {
            return Err(error);
        }
        self.failures += 1;
        report_error(&error);
        Ok(())
    }

    /// Runs a script file.
    pub(crate) fn file(&mut self, path: &Path) -> Result<Next> {
        let file = File::open(path)
            .map_err(|error| CliError::Input { path: path.to_path_buf(), reason: error.to_string() })?;
        self.script(&path.display().to_string(), BufReader::new(file))
    }

    /// Runs the statements of one `-c`, or the one shell command in it; an error there has no line to name.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        if text.trim_start().starts_with('\\') {
            return run_command(self, text.trim()).map(|_| ());
        }
        for statement in Script::split(text).into_statements() {
            if let Err(error) = self.statement(&statement.sql) {
                self.script_error(error)?;
            }
        }
        Ok(())
    }
}

/// Runs one command.
pub(crate) fn run_command(runner: &mut Runner, line: &str) -> Result<Next> {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim().trim_end_matches(';').trim();
    match (name, argument) {
        ("\\q" | "\\quit", _) => return Ok(Next::Quit),
        ("\\?" | "\\help" | "\\h", _) => help(),
        ("\\d", "") => runner.statement(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables \
             WHERE table_schema <> 'information_schema' ORDER BY table_schema, table_name",
        )?,
        ("\\d", table) => runner.statement(&format!("DESCRIBE {table}"))?,
        ("\\cube", line) => crate::cube::run_line(line, &runner.connection, runner.host())?,
        ("\\timing", "") => tell(if runner.is_timed() { "timing is on" } else { "timing is off" }),
        ("\\timing", value) => runner.connection.set("warpcube.timing", value)?,
        ("\\device", "") => device(runner),
        ("\\device", value) => {
            runner.connection.set("warpcube.device", value)?;
            device(runner);
        }
        ("\\format", "") => tell(format_args!("format is {}", runner.connection.settings().format)),
        ("\\format", value) => runner.connection.set("warpcube.format", value)?,
        ("\\l", _) => runner.statement("SHOW DEVICE TABLES")?,
        ("\\s", "") => {
            let settings: Vec<String> =
                warpcube_sql::SETTINGS.iter().map(|info| info.name.trim_start_matches("warpcube.").into()).collect();
            for setting in settings {
                let value = runner.connection.settings().value(&format!("warpcube.{setting}"))?;
                tell(format_args!("{setting} = {value}"));
            }
        }
        ("\\s", setting) => {
            let prefix = if setting.starts_with("warpcube.") { "" } else { "warpcube." };
            runner.statement(&format!("SHOW {prefix}{setting}"))?;
        }
        ("\\i", "") => return Err(CliError::Command("\\i takes the name of a file".into())),
        ("\\i", file) => return runner.file(Path::new(file.trim_matches('\''))),
        (other, _) => return Err(CliError::Command(format!("there is no command '{other}'; \\? lists them"))),
    }
    Ok(Next::Prompt)
}

fn device(runner: &Runner) {
    match runner.connection.database().device().get() {
        Some(device) => tell(format_args!("device: {}", device.info().name)),
        None => {
            tell(format_args!("device: CPU ({})", runner.connection.database().device().reason().unwrap_or_default()));
        }
    }
}

fn help() {
    tell("Statements end with ';' and may take several lines. Ctrl-C cancels a statement, Ctrl-D leaves.");
    for (name, argument, meaning) in COMMANDS {
        tell(format_args!("  {:32} {meaning}", format!("{name} {argument}")));
    }
    tell("  SELECT … FROM 'file.parquet'     query files by name (also .csv, .json, .arrow, folders, patterns)");
    tell("  SHOW TABLES, DESCRIBE t, SHOW ALL, SET warpcube.name = value, RESET warpcube.name");
    tell("  SHOW DEVICE TABLES, LOAD TABLE t [(columns)], EVICT TABLE t");
}
