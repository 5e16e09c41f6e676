//! Running other programs, and where the workspace is.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Result of a chore; the error is a line for people.
pub(crate) type Result<T, E = String> = std::result::Result<T, E>;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Cargo, the one that runs this program where there is one.
pub(crate) fn cargo() -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

/// A program that will run in the workspace's root with nothing to read. What cargo sets for this package is taken
/// away: in a build that the program starts, build scripts that read it would run anew, and all that stands on them
/// would be compiled anew.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether the program can be started and succeeds; it prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a program to its end; it prints as it likes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("cannot run {}: {error}", show(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {status}", show(command))),
    }
}

/// Runs a program and gives what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", show(command)))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|_| format!("{} wrote no UTF-8", show(command))),
        false => Err(format!("{}: {}", show(command), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Runs a program, shows its standard output and error as they come and calls `see` with each line of both; gives
/// whether it succeeded.
pub(crate) fn watch(command: &mut Command, see: impl FnMut(&str) + Send) -> Result<bool> {
    let failed = |error: std::io::Error, command: &Command| format!("cannot run {}: {error}", show(command));
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| failed(error, command))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let see = std::sync::Mutex::new(see);
    let forward = |line: std::io::Result<String>| {
        if let Ok(line) = line {
            println!("{line}");
            if let Ok(mut see) = see.lock() {
                see(&line);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| output.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).for_each(&forward));
        scope.spawn(|| errors.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).for_each(&forward));
    });
    Ok(child.wait().map_err(|error| failed(error, command))?.success())
}

/// The command line, for messages.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
