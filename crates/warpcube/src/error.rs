//! Errors of the program itself: its arguments, files it writes and scripts it reads.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use warpcube_bench::suite::Failure;
use warpcube_server::ServerError;
use warpcube_sql::SqlError;

use crate::excerpt::Excerpt;

/// Result of the program's own calls.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// An error of the program; its text is one line that starts with its code.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// A statement's error, with a code of its own.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A statement's error that has a position in the statement's text.
    #[error("{error}")]
    Statement {
        /// The error.
        error: SqlError,
        /// The line of the text.
        excerpt: Box<Excerpt>,
    },
    /// The server cannot start; has a code of its own.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A setting from outside of the session that does not exist, or does not take its value; has a code of its own.
    #[error(transparent)]
    Setting(SqlError),
    /// A statement's error in a script.
    #[error("{place}: {error}")]
    Script {
        /// File and line.
        place: String,
        /// What is wrong.
        error: Box<CliError>,
    },
    /// The arguments make no sense together.
    #[error("CLI-001 {0}")]
    Usage(String),
    /// The result cannot be written.
    #[error("CLI-002 cannot write {target}: {reason}")]
    Output {
        /// The file, or the standard output.
        target: String,
        /// The reason.
        reason: String,
    },
    /// A script or the configuration file cannot be read.
    #[error("CLI-003 cannot read {}: {reason}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The configuration file is not what it should be.
    #[error("CLI-004 {}: {reason}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        reason: String,
    },
    /// A shell command that does not exist or is used wrongly.
    #[error("CLI-005 {0}")]
    Command(String),
    /// The reader of the standard output has gone; not worth a word.
    #[error("CLI-006 the output was closed")]
    Closed,
    /// Benchmark data could not be made.
    #[error("CLI-007 {0}")]
    Data(String),
    /// A benchmark's answers differ from the CPU's, or are wrong by its own check.
    #[error("CLI-008 {0}")]
    Verify(String),
}

impl CliError {
    /// The error of writing to `target`.
    pub(crate) fn writing(target: &str, error: &io::Error) -> CliError {
        // Some writers keep of an I/O error only its text.
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe || error.to_string().contains("Broken pipe");
        match is_closed {
            true => CliError::Closed,
            false => CliError::Output { target: target.to_string(), reason: error.to_string() },
        }
    }

    /// Whether the user cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            CliError::Sql(error) | CliError::Statement { error, .. } => error.is_cancelled(),
            CliError::Script { error, .. } => error.is_cancelled(),
            _ => false,
        }
    }

    /// Whether the output was closed by its reader.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            CliError::Script { error, .. } => error.is_closed(),
            other => matches!(other, CliError::Closed),
        }
    }

    /// The exit code of the program: 2 for usage and configuration, 130 for cancelled, 1 for all else.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            error if error.is_cancelled() => 130,
            CliError::Closed => 0,
            CliError::Script { error, .. } => error.exit_code(),
            CliError::Server(ServerError::DeviceLost) => 1,
            CliError::Usage(_)
            | CliError::Server(_)
            | CliError::Setting(_)
            | CliError::Config { .. }
            | CliError::Input { .. } => 2,
            _ => 1,
        }
    }

    /// An error of a statement, with the line of its text that it is about.
    pub(crate) fn of_statement(error: SqlError, sql: &str) -> CliError {
        match error.position_in(sql) {
            Some(position) => CliError::Statement { excerpt: Box::new(Excerpt::new(sql, position)), error },
            None => CliError::Sql(error),
        }
    }

    /// The line of a statement that it is about.
    pub(crate) fn excerpt(&self) -> Option<&Excerpt> {
        match self {
            CliError::Statement { excerpt, .. } => Some(excerpt),
            CliError::Script { error, .. } => error.excerpt(),
            _ => None,
        }
    }

    /// This error of a statement that begins on a line of a text, and the line that the error is about.
    pub(crate) fn begun_on(mut self, start: usize) -> (CliError, usize) {
        match &mut self {
            CliError::Statement { excerpt, .. } => {
                excerpt.line += start - 1;
                let line = excerpt.line;
                (self, line)
            }
            _ => (self, start),
        }
    }

    /// This error with the place in a script that it belongs to.
    pub(crate) fn at(self, place: String) -> CliError {
        CliError::Script { place, error: Box::new(self) }
    }
}

impl From<Failure> for CliError {
    fn from(failure: Failure) -> CliError {
        match failure {
            Failure::Wrong(reason) => CliError::Verify(reason),
            Failure::Usage(reason) => CliError::Usage(reason),
            Failure::Data(reason) => CliError::Data(reason),
            Failure::Input { path, reason } => CliError::Input { path, reason },
            Failure::Output { path, error } => CliError::writing(&path.display().to_string(), &error),
            Failure::Cancelled => CliError::Sql(SqlError::Cancelled),
            Failure::Sql { place, error } => match place {
                Some(place) => CliError::from(*error).at(place),
                None => CliError::from(*error),
            },
        }
    }
}
