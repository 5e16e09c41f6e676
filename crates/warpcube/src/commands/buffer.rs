//! Commands of the buffer, of the editor and of where results go.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use crate::commands::{Next, file, unquoted};
use crate::console::print as write;
use crate::error::{CliError, Result};
use crate::output::Target;
use crate::runner::Runner;
use crate::statement_reader::StatementReader;

/// The editor where neither VISUAL nor EDITOR names one.
const EDITOR: &str = "vi";

/// Runs the buffer, into a file if one is named.
pub(super) fn go(runner: &mut Runner, reader: &mut StatementReader, name: &str, is_expanded: bool) -> Result<Next> {
    let target = (!name.is_empty()).then(|| checked(runner, name, "\\g")).transpose()?;
    let sql = reader.take().ok_or_else(|| CliError::Command("there is no statement to run".into()))?;
    runner.once.target = target.or(runner.once.target.take());
    runner.once.is_expanded = is_expanded;
    runner.statement(&sql).map(|()| Next::Prompt)
}

/// Runs the buffer again and again, until Ctrl-C.
pub(super) fn watch(runner: &mut Runner, reader: &mut StatementReader, seconds: &str) -> Result<Next> {
    check_interactive(runner, "\\watch")?;
    let refused = || CliError::Command(format!("\\watch takes a number of seconds, not '{seconds}'"));
    let seconds = if seconds.is_empty() { "2" } else { seconds.trim_start_matches("i=") };
    let pause = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let pause = pause.ok_or_else(refused)?;
    let sql = reader.take().ok_or_else(|| CliError::Command("there is no statement to run".into()))?;
    loop {
        runner.statement(&sql)?;
        if runner.pause(pause)? {
            return Ok(Next::Prompt);
        }
    }
}

/// A file that takes one result, if the connection may write it.
fn checked(runner: &Runner, name: &str, command: &str) -> Result<Target> {
    let path = file(name, command)?;
    if name.starts_with('|') {
        return Err(CliError::Command(format!("{command} takes the name of a file and no command")));
    }
    runner.connection.check_write(&path, command)?;
    Ok(Target::new(Some(path)))
}

/// Writes the next result to a file.
pub(super) fn once(runner: &mut Runner, name: &str) -> Result<Next> {
    runner.once.target = Some(checked(runner, name, "\\once")?);
    Ok(Next::Prompt)
}

/// Writes results to a file from now on, or to the screen.
pub(super) fn output(runner: &mut Runner, name: &str) -> Result<Next> {
    let target = match unquoted(name) {
        "" | "stdout" => Target::Stdout,
        _ => checked(runner, name, "\\o")?.for_several()?,
    };
    runner.target = target;
    Ok(Next::Prompt)
}

/// Shows the buffer.
pub(super) fn print(reader: &StatementReader) -> Result<Next> {
    write(&format!("{}\n", reader.buffer().unwrap_or_default()))?;
    Ok(Next::Prompt)
}

/// Empties the buffer.
pub(super) fn reset(reader: &mut StatementReader) -> Result<Next> {
    reader.clear();
    Ok(Next::Prompt)
}

/// Refuses what only a person may do: scripts are held to the settings of files.
fn check_interactive(runner: &Runner, command: &str) -> Result<()> {
    match runner.interactive {
        true => Ok(()),
        false => Err(CliError::Command(format!("{command} is a command of the shell alone"))),
    }
}

/// Edits the buffer, the last statement or a file; what is whole then runs, and the rest is the buffer.
pub(super) fn edit(runner: &mut Runner, reader: &mut StatementReader, name: &str) -> Result<Next> {
    check_interactive(runner, "\\e")?;
    let failed = |error: std::io::Error| CliError::Command(format!("\\e: {error}"));
    let ours = tempfile::Builder::new().prefix("warpcube-").suffix(".sql").tempfile().map_err(failed)?;
    let path = match name {
        "" => {
            let mut text = reader.buffer().unwrap_or_default().to_string();
            text.push_str(if reader.is_between_statements() && !text.is_empty() { ";\n" } else { "\n" });
            ours.as_file().write_all(text.as_bytes()).map_err(failed)?;
            ours.path().to_path_buf()
        }
        name => file(name, "\\e")?,
    };
    let named =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let editor = named.unwrap_or_else(|| EDITOR.into());
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&path).status();
    runner.forget_interrupt();
    match status.map_err(failed)? {
        status if status.success() => {}
        status => return Err(CliError::Command(format!("\\e: '{editor}' ended with {status}"))),
    }
    let mut text = String::new();
    File::open(&path).and_then(|mut file| file.read_to_string(&mut text)).map_err(failed)?;
    reader.clear();
    if !text.trim().is_empty() {
        write(&text)?;
        runner.edited = Some(text.trim_end().to_string());
    }
    for line in text.lines() {
        for (piece, _) in reader.line(line) {
            if runner.piece(piece, reader)? == Next::Quit {
                return Ok(Next::Quit);
            }
        }
    }
    Ok(Next::Prompt)
}

/// Runs a command of the system.
pub(super) fn system(runner: &mut Runner, line: &str) -> Result<Next> {
    check_interactive(runner, "\\!")?;
    let status = Command::new("sh").args(["-c", line]).status();
    runner.forget_interrupt();
    match status {
        Ok(_) => Ok(Next::Prompt),
        Err(error) => Err(CliError::Command(format!("\\!: {error}"))),
    }
}
