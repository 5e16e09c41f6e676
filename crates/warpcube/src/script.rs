//! Scripts: statements, and commands on lines of their own or behind a statement.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use warpcube_sql::Script;

use crate::commands::{self, Next};
use crate::error::{CliError, Result};
use crate::runner::{Runner, report_error};
use crate::statement_reader::{Piece, StatementReader, is_command};

impl Runner {
    /// Runs a statement or a command of a reader.
    pub(crate) fn piece(&mut self, piece: Piece, reader: &mut StatementReader) -> Result<Next> {
        match piece {
            Piece::Statement(sql) => self.statement(&sql).map(|()| Next::Prompt),
            Piece::Command(line) => commands::run(self, reader, &line),
        }
    }

    /// Runs a script: statements that end with semicolons, the last one may do without, and shell commands. `name`
    /// stands before line numbers in errors.
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
                match self.piece(piece, &mut statements) {
                    Ok(Next::Quit) => return Ok(Next::Quit),
                    Ok(Next::Prompt) => {}
                    Err(error) => {
                        let (error, line) = error.begun_on(line);
                        self.script_error(error.at(format!("{name}:{line}")))?;
                    }
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
        if is_command(text) {
            return commands::run(self, &mut StatementReader::default(), text.trim()).map(|_| ());
        }
        for statement in Script::split(text).into_statements(text) {
            if let Err(error) = self.statement(&statement.sql) {
                self.script_error(error.begun_on(statement.line).0)?;
            }
        }
        Ok(())
    }
}
