//! Text for people: what was asked for to the standard output, and what is told beside it to the standard error.
//!
//! Both may be pipes that nobody reads any more, where `println!` and `eprintln!` would panic. What is told holds names
//! and values of any origin: control characters in it are escaped.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::error::{CliError, Result};
use crate::escape;

/// What errors call the standard output.
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
