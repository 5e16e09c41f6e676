//! Results that are larger than the screen, shown by a program that scrolls.

use std::io::{ErrorKind, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::console::print;
use crate::error::Result;

/// The pager where PAGER names none: lines are cut at the screen's edge, and the arrow keys move it.
const PAGER: &str = "less -S";
/// The exit code of a command that is not found, as POSIX has it.
const NOT_FOUND: i32 = 127;

/// Shows a text whose control characters are escaped; without a pager it is written as it is.
///
/// # Errors
/// The standard output cannot be written.
pub(crate) fn show(text: &str) -> Result<()> {
    match run(text) {
        Ok(status) if status.code() != Some(NOT_FOUND) => Ok(()),
        _ => print(text),
    }
}

fn run(text: &str) -> std::io::Result<ExitStatus> {
    let program = std::env::var("PAGER").ok().filter(|program| !program.trim().is_empty());
    let mut command = Command::new("sh");
    command.args(["-c", program.as_deref().unwrap_or(PAGER)]).stdin(Stdio::piped());
    if std::env::var_os("LESSCHARSET").is_none() {
        command.env("LESSCHARSET", "utf-8");
    }
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    let status = child.wait()?;
    match written {
        // The pager was left before the end.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(status),
    }
}
