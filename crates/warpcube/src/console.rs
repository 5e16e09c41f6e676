//! Text for people: results go to the standard output, messages to the standard error.
//!
//! Both may be pipes whose reader has gone, where `println!` and `eprintln!` would panic. Messages contain names and
//! values of any origin: their control characters are escaped.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::error::{CliError, Result};
use crate::escape;

/// The name of the standard output in errors.
pub(crate) const STDOUT: &str = "the standard output";

/// Writes to the standard output, at once.
///
/// # Errors
/// [`CliError::Closed`] where its reader has gone, [`CliError::Output`] where it takes no more.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let shown = if stdout.is_terminal() { escape::lines(text) } else { text.into() };
    let written = stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| CliError::writing(STDOUT, &error))
}

/// Writes a line to the standard error.
pub(crate) fn tell(line: impl Display) {
    // Nothing can be done where even the standard error is closed.
    let _ = writeln!(io::stderr(), "{}", escape::line(&line.to_string()));
}
