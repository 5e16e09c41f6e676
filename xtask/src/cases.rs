//! `cargo xtask cases DIR`: statements with the rows they are to give, run by the built program.
//!
//! A case is a folder. Each of its files `queryK.sql` is run there, and its rows, as `--format csv` writes them, are
//! held against `expectedK.csv`: in that order, numbers by value. An `expectedK.err` in its place is a text that the
//! error has to have, in which `.*` stands for anything. A folder with a `run.py` is a script that checks itself: it
//! finds the program in `WARPCUBE`, and its last line is `RESULT 0 failed checks`. Cases are copied before they run,
//! because scripts write beside themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::Args;

use crate::judge::{absolute, built};
use crate::process::{Result, program, run as run_command};

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct CasesArgs {
    /// A case, or a folder of cases, or one of such folders
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The program; target/debug/warpcube if none is named
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Where the program runs statements: a value of its --device
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: String,
    /// Only cases with this text in their names
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Runs the cases; fails if one of them gives something else.
pub(crate) fn run(arguments: &CasesArgs) -> Result<()> {
    let warpcube = absolute(arguments.program.clone().unwrap_or_else(built))?;
    if !warpcube.is_file() {
        return Err(format!("there is no {}: 'cargo build' makes it, or name one by --program", warpcube.display()));
    }
    let source = absolute(arguments.folder.clone())?;
    if !source.is_dir() {
        return Err(format!("{} is no folder", source.display()));
    }
    let copy = std::env::temp_dir().join(format!("warpcube-cases-{}", std::process::id()));
    run_command(program("cp").args(["-r", "--no-preserve=mode"]).arg(&source).arg(&copy))?;
    let outcome = run_all(arguments, &warpcube, &copy);
    let _ = std::fs::remove_dir_all(&copy);
    let (passed, failed) = outcome?;
    println!("{passed} passed, {failed} failed, 0 skipped");
    match (passed, failed) {
        (0, 0) => Err(format!("{} has no case: no queryK.sql and no run.py", source.display())),
        (_, 0) => Ok(()),
        _ => Err(String::new()),
    }
}

/// Runs the cases below a folder; gives how many passed and failed.
fn run_all(arguments: &CasesArgs, warpcube: &Path, folder: &Path) -> Result<(usize, usize)> {
    let (mut passed, mut failed) = (0, 0);
    for (name, file) in files(folder, folder)? {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let outcome = match file.extension().is_some_and(|extension| extension == "py") {
            true => run_script(warpcube, &file),
            false => run_statement(warpcube, &arguments.device, &file),
        };
        match outcome {
            Ok(()) => passed += 1,
            Err(reason) => {
                failed += 1;
                println!("{name}: {reason}");
            }
        }
    }
    Ok((passed, failed))
}

/// Files to run below a folder, in order, with their names from `top`.
fn files(folder: &Path, top: &Path) -> Result<Vec<(String, PathBuf)>> {
    let unread = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries: Vec<PathBuf> =
        folder.read_dir().map_err(unread)?.map(|entry| Ok(entry.map_err(unread)?.path())).collect::<Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path, top)?);
        } else if name == "run.py" || (name.starts_with("query") && name.ends_with(".sql")) {
            found.push((path.strip_prefix(top).unwrap_or(&path).display().to_string(), path));
        }
    }
    Ok(found)
}

fn output_of(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| format!("cannot be run: {error}"))
}

fn run_script(warpcube: &Path, script: &Path) -> Result<()> {
    let done = output_of(Command::new("python3").arg("-B").arg(script).env("WARPCUBE", warpcube))?;
    let text = String::from_utf8_lossy(&done.stdout);
    if done.status.success() && text.lines().next_back() == Some("RESULT 0 failed checks") {
        return Ok(());
    }
    let failures: Vec<&str> = text.split("CHECK ").filter(|check| check.starts_with("FAIL")).map(str::trim).collect();
    Err(format!("{}\n{}", failures.join("\n"), String::from_utf8_lossy(&done.stderr).trim()))
}

fn run_statement(warpcube: &Path, device: &str, query: &Path) -> Result<()> {
    let folder = query.parent().unwrap_or(Path::new("."));
    let name = query.file_stem().unwrap_or_default().to_string_lossy().replace("query", "expected");
    let mut command = Command::new(warpcube);
    command.args(["--device", device, "--format", "csv", "-f"]).arg(query.file_name().unwrap_or_default());
    let done = output_of(command.current_dir(folder))?;
    let (rows, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let expected = |extension: &str| std::fs::read_to_string(folder.join(&name).with_extension(extension));
    if let Ok(pattern) = expected("err") {
        return match !done.status.success() && has(&errors, pattern.trim()) {
            true => Ok(()),
            false => Err(format!("an error with '{}' was expected, found\n{rows}{errors}", pattern.trim())),
        };
    }
    let expected = expected("csv").map_err(|error| format!("{name}.csv, or .err: {error}"))?;
    if !done.status.success() {
        return Err(errors.trim().to_string());
    }
    match is_same(&table(&expected), &table(&rows)) {
        true => Ok(()),
        false => Err(format!("expected\n{expected}found\n{rows}")),
    }
}

/// Whether a text has the pieces of a pattern between its `.*`, in their order.
fn has(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    pattern.split(".*").all(|piece| match rest.split_once(piece) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The rows of a text of comma-separated values.
fn table(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

fn is_same(expected: &[Vec<String>], found: &[Vec<String>]) -> bool {
    let row = |(expected, found): (&Vec<String>, &Vec<String>)| {
        expected.len() == found.len() && expected.iter().zip(found).all(|(expected, found)| equals(expected, found))
    };
    expected.len() == found.len() && expected.iter().zip(found).all(row)
}

/// Digits up to which a number is compared as a double too.
const DOUBLE_DIGITS_MAX: usize = 17;

/// Whether two values are the same text or the same number.
fn equals(expected: &str, found: &str) -> bool {
    let is_code = |text: &str| text.starts_with('0') && text[1..].starts_with(|next: char| next.is_ascii_digit());
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite) && !is_code(text);
    if expected == found || !is_number(expected) || !is_number(found) {
        return expected == found;
    }
    // Without zeros that change nothing, as decimals of any width are the same.
    let plain = |text: &str| match text.contains('.') && !text.contains(['e', 'E']) {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    let is_short = |text: &str| text.chars().filter(char::is_ascii_digit).count() <= DOUBLE_DIGITS_MAX;
    plain(expected) == plain(found)
        || (is_short(expected) && is_short(found) && expected.parse::<f64>().ok() == found.parse::<f64>().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value_and_texts_as_they_are() {
        for (expected, found, same) in [
            ("7", "7.00", true),
            ("0.1", "1e-1", true),
            ("24691357802469135783", "24691357802469135783.0", true),
            ("24691357802469135783", "24691357802469135784", false),
            ("01067", "1067", false),
            ("", "0", false),
            ("a", "a ", false),
            ("NaN", "NaN", true),
        ] {
            assert_eq!(equals(expected, found), same, "{expected} and {found}");
        }
    }

    #[test]
    fn values_may_be_quoted() {
        let rows = [vec!["a", "b"], vec!["1, \"x\"\n", ""]].map(|row| row.into_iter().map(String::from).collect());
        assert_eq!(table("a,b\r\n\"1, \"\"x\"\"\n\",\n"), rows.to_vec() as Vec<Vec<String>>);
    }

    #[test]
    fn patterns_are_pieces_in_their_order() {
        assert!(has("SQL-005 not supported: LIMIT of a DELETE", "SQL-005.*DELETE"));
        assert!(!has("SQL-005 not supported: LIMIT of a DELETE", "DELETE.*LIMIT"));
    }
}
