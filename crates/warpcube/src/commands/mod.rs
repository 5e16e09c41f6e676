//! Commands of the shell and of scripts: one table of names, what they take and what they do, which help, completion
//! and the commands themselves read.
//!
//! A command has the name that it has in psql, and those of DuckDB's shell that mean the same. Names of other shells
//! that have no command here are answered with what to type in place of them.

mod buffer;
mod display;
mod names;
mod syntax;

use std::path::{Path, PathBuf};

use warpcube_sql::nearest;

use crate::console::tell;
use crate::error::{CliError, Result};
use crate::runner::Runner;
use crate::statement_reader::StatementReader;
pub(crate) use syntax::STATEMENTS;

/// What a script or the shell does after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Goes on.
    Prompt,
    /// Leaves.
    Quit,
}

/// What the argument of a command is, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// None, or nothing that is known.
    Nothing,
    /// A file.
    File,
    /// A table or view.
    Table,
    /// A format of results.
    Format,
    /// A setting of Warpcube.
    Setting,
    /// A kind of statement.
    Statement,
    /// One of these.
    Words(&'static [&'static str]),
}

/// What runs a command with the rest of its line.
type Run = fn(&mut Runner, &mut StatementReader, &str) -> Result<Next>;

/// One command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Other names that it has.
    pub(crate) others: &'static [&'static str],
    /// The form of its argument.
    argument: &'static str,
    pub(crate) takes: Takes,
    meaning: &'static str,
    run: Run,
}

const SWITCH: Takes = Takes::Words(&["on", "off"]);

/// A row of [`COMMANDS`].
const fn command(
    name: &'static str,
    others: &'static [&'static str],
    argument: &'static str,
    takes: Takes,
    meaning: &'static str,
    run: Run,
) -> Command {
    Command { name, others, argument, takes, meaning, run }
}

/// Every command, as help lists them.
#[rustfmt::skip]
pub(crate) static COMMANDS: [Command; 30] = [
    command("\\!", &[".shell", ".system"], "command", Takes::Nothing,
        "run a command of the system", |runner, _, line| buffer::system(runner, line)),
    command("\\copy", &[], "t to 'file'", Takes::Nothing,
        "run COPY", |runner, _, line| prompt(runner.statement(&format!("COPY {line}")))),
    command("\\cube", &[], "query cube rows …", Takes::File,
        "ask a cube; other commands are those of 'warpcube cube'",
        |runner, _, line| prompt(crate::cube::run_line(line, &runner.connection, runner.host()))),
    command("\\d", &[".describe"], "[name]", Takes::Table,
        "list tables and views, or the columns of one", |runner, _, name| names::describe(runner, name)),
    command(".schema", &["\\sv"], "[name]", Takes::Table,
        "list tables and views, or show the statement that makes one",
        |runner, _, name| names::definition(runner, name)),
    command("\\df", &[".functions"], "[pattern]", Takes::Nothing,
        "list functions", |runner, _, pattern| names::functions(runner, pattern)),
    command("\\dm", &[], "", Takes::Nothing,
        "list what is in device memory", |runner, _, _| prompt(runner.statement("SHOW DEVICE TABLES"))),
    command("\\dt", &[], "[pattern]", Takes::Table,
        "list tables", |runner, _, pattern| names::relations(runner, &["BASE TABLE"], pattern)),
    command("\\dv", &[".views"], "[pattern]", Takes::Table,
        "list views", |runner, _, pattern| names::relations(runner, &["VIEW"], pattern)),
    command("\\dtv", &[".tables"], "[pattern]", Takes::Table,
        "list tables and views", |runner, _, pattern| names::relations(runner, &[], pattern)),
    command("\\device", &[], "[auto|cuda|cuda:N|cpu]", Takes::Words(&["auto", "cpu", "cuda"]),
        "show the device, or choose another", |runner, _, value| names::device(runner, value)),
    command("\\e", &["\\edit", ".edit"], "[file]", Takes::File,
        "edit the buffer, or the last statement, or a file, and run it", buffer::edit),
    command("\\echo", &["\\qecho", ".print"], "text", Takes::Nothing,
        "write a text to the output", |_, _, text| prompt(crate::console::print(&format!("{}\n", unquoted(text))))),
    command("\\format", &[".mode"], "[name [separator]]", Takes::Format,
        "show how results are written, or choose another format", |runner, _, name| display::format(runner, name)),
    command("\\g", &[], "[file]", Takes::File,
        "run the buffer or the last statement, into a file if one is named",
        |runner, reader, file| buffer::go(runner, reader, file, false)),
    command("\\gx", &[], "[file]", Takes::File,
        "as \\g, with one line a value", |runner, reader, file| buffer::go(runner, reader, file, true)),
    command("\\h", &[], "[statement]", Takes::Statement,
        "show the form of a statement of SQL", |_, _, name| syntax::help(name)),
    command("\\help", &["\\?", ".help"], "[command]", Takes::Nothing,
        "show this", |_, _, name| help(name)),
    command("\\i", &["\\ir", "\\include", ".read"], "file", Takes::File,
        "run the statements of a file", |runner, _, name| runner.file(&file(name, "\\i")?)),
    command("\\l", &["\\list", "\\dn", ".databases"], "", Takes::Nothing,
        "list databases and their schemas", |runner, _, _| names::schemas(runner)),
    command("\\o", &["\\out", ".output"], "[file]", Takes::File,
        "write results to a file, one behind the other, or to the screen again",
        |runner, _, name| buffer::output(runner, name)),
    command("\\once", &[".once"], "file", Takes::File,
        "write the next result to a file of any format", |runner, _, name| buffer::once(runner, name)),
    command("\\p", &["\\print"], "", Takes::Nothing,
        "show the buffer, or the last statement", |_, reader, _| buffer::print(reader)),
    command("\\pset", &[], "[name [value]]", Takes::Words(&display::OPTION_NAMES),
        "show how results look, or change it: expanded, format, header, maxrows, null, pager, separator",
        |runner, _, line| display::pset(runner, line)),
    command("\\q", &["\\quit", ".exit", ".quit"], "", Takes::Nothing,
        "leave", |_, _, _| Ok(Next::Quit)),
    command("\\r", &["\\reset"], "", Takes::Nothing,
        "empty the buffer", |_, reader, _| buffer::reset(reader)),
    command("\\s", &[".show"], "[name]", Takes::Setting,
        "show all settings of Warpcube, or one with its origin", |runner, _, name| display::settings(runner, name)),
    command("\\timing", &[".timer"], "[on|off]", SWITCH,
        "show whether times are written after each statement, or switch them",
        |runner, _, value| display::timing(runner, value)),
    command("\\watch", &[], "[seconds]", Takes::Nothing,
        "run the buffer or the last statement again and again, each two seconds, until Ctrl-C", buffer::watch),
    command("\\x", &[], "[on|off|auto]", Takes::Words(&["auto", "off", "on"]),
        "write tables with one line a value, or no longer; auto: if they are wider than the screen",
        |runner, _, value| display::expanded(runner, value)),
];

/// Commands that another one is short for.
const SHORT: [(&str, &str); 7] = [
    (".header", "\\pset header"),
    (".headers", "\\pset header"),
    (".maxrows", "\\pset maxrows"),
    (".nullvalue", "\\pset null"),
    (".pager", "\\pset pager"),
    (".separator", "\\pset separator"),
    ("\\f", "\\pset separator"),
];

/// Names of other shells that have no command, each with what to type.
const ANSWERS: [(&[&str], &str); 22] = [
    (&[".import", "\\copyfrom"], "CREATE TABLE t AS SELECT * FROM 'file.csv'"),
    (
        &[".open", "\\c", "\\connect"],
        "ATTACH 'folder' AS name and USE name for a catalog; FROM 'file.parquet' needs none",
    ),
    (&[".cd", "\\cd"], "paths from the root, or start the program in the folder"),
    (&[".bail"], "--continue-on-error behind the program's name; a script ends at its first error without it"),
    (&[".changes", "\\conninfo"], "\\timing for rows and time behind each statement, \\device, \\l"),
    (&[".indexes", ".indices", "\\di"], "\\d t: tables have keys, and no indexes"),
    (&["\\du", "\\dp", "\\z", "\\password"], "\\dt: there are no users, and no rights"),
    (&["\\ds", "\\dT", "\\dD"], "\\h CREATE TABLE: there are no sequences, and no types of one's own"),
    (&["\\gset", "\\gexec", "\\if", "\\prompt"], "SET VARIABLE name = value, and getvariable('name')"),
    (&[".prompt", ".echo", ".log", ".highlight", "\\encoding"], "\\pset for how results look, \\s for all settings"),
    (&[".rows", ".large_number_rendering", ".thousand_sep", ".decimal_sep"], "\\format, or format(…) in the query"),
    (&[".excel"], "COPY t TO 'file.csv'"),
    (&["\\crosstabview"], "PIVOT t ON column USING sum(value)"),
    (&["\\t"], "\\pset header off"),
    (&[".version"], "SELECT version()"),
    (&[".stats", ".progress_bar"], "\\timing for rows and time behind each statement; long statements show progress"),
    (&[".last", ".limit"], "\\pset maxrows, and \\g for the last statement again"),
    (&[".maxwidth", ".width", ".columns"], "\\format box for all columns, \\x for one line a value"),
    (&[".dump"], "COPY t TO 't.parquet' for each table"),
    (&[".explain"], "EXPLAIN"),
    (&["\\set", "\\unset", ".set"], "SET name = value; \\s lists settings"),
    (&["\\a", "\\H"], "\\format list, csv or markdown"),
];

/// Runs one command. `reader` has the buffer.
pub(crate) fn run(runner: &mut Runner, reader: &mut StatementReader, line: &str) -> Result<Next> {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.trim_end_matches(';');
    // psql's commands that list take a '+' for more and an 'S' for those of the system, which is all there is here.
    let name =
        if name.starts_with("\\d") || name.starts_with("\\l") { name.trim_end_matches(['+', 'S']) } else { name };
    let argument = argument.trim();
    // A command of the system, or a text, may end with a semicolon of its own, and a separator may be one.
    let is_separator = matches!(name, "\\format" | ".mode" | "\\pset" | "\\f" | ".separator")
        && argument.split_whitespace().next_back() == Some(";");
    let argument = match is_separator || matches!(name, "\\!" | "\\echo") {
        true => argument,
        false => argument.trim_end_matches(';').trim_end(),
    };
    if let Some((_, long)) = SHORT.iter().find(|(short, _)| *short == name) {
        return run(runner, reader, &format!("{long} {argument}"));
    }
    match find(name) {
        Some(found) => (found.run)(runner, reader, argument),
        None => Err(CliError::Command(unknown(name))),
    }
}

/// The command of that name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name || command.others.contains(&name))
}

fn unknown(name: &str) -> String {
    match ANSWERS.iter().find(|(names, _)| names.contains(&name)) {
        Some((_, instead)) => format!("there is no command '{name}'; type {instead}"),
        None => {
            let all = COMMANDS.iter().flat_map(|command| command.others.iter().copied().chain([command.name]));
            let others = all.chain(SHORT.iter().map(|(short, _)| *short)).map(String::from);
            match nearest(name, others) {
                Some(near) => format!("there is no command '{name}'; did you mean {near}?"),
                None => format!("there is no command '{name}'; \\? lists them"),
            }
        }
    }
}

/// The command that is meant by a word of other shells in place of a statement.
pub(crate) fn meant_by(statement: &str) -> Option<&'static str> {
    match statement.trim().trim_end_matches(';').trim_end().to_lowercase().as_str() {
        "help" => Some("\\help"),
        "exit" | "quit" => Some("\\q"),
        _ => None,
    }
}

/// Goes on after what gives nothing.
fn prompt(done: Result<()>) -> Result<Next> {
    done.map(|()| Next::Prompt)
}

/// The file that a command takes, without quotes around its name.
fn file(argument: &str, command: &str) -> Result<PathBuf> {
    match unquoted(argument) {
        "" => Err(CliError::Command(format!("{command} takes the name of a file"))),
        name => Ok(Path::new(name).to_path_buf()),
    }
}

/// A word without the quotes around it.
fn unquoted(word: &str) -> &str {
    let inner = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(word)
}

fn help(name: &str) -> Result<Next> {
    let wanted = name.trim_start_matches(['\\', '.']);
    let is_wanted = |command: &&Command| {
        let names = [command.name].into_iter().chain(command.others.iter().copied());
        wanted.is_empty() || names.into_iter().any(|name| name.trim_start_matches(['\\', '.']).starts_with(wanted))
    };
    let found: Vec<&Command> = COMMANDS.iter().filter(is_wanted).collect();
    if found.is_empty() {
        return Err(CliError::Command(unknown(name)));
    }
    if wanted.is_empty() {
        tell("Statements end with ';' and may take several lines. Ctrl-C cancels a statement, Ctrl-D leaves.");
    }
    for command in found {
        let others = command.others.join(" ");
        let others = if others.is_empty() { others } else { format!("  ({others})") };
        tell(format_args!("  {:32} {}{others}", format!("{} {}", command.name, command.argument), command.meaning));
    }
    if wanted.is_empty() {
        tell("  SELECT … FROM 'file.parquet'     query files by name (also .csv, .json, .arrow, folders, patterns)");
        tell("  SHOW TABLES, DESCRIBE t, SHOW ALL, SET warpcube.name = value, RESET warpcube.name");
        tell("  SHOW DEVICE TABLES, LOAD TABLE t [(columns)], EVICT TABLE t");
    }
    Ok(Next::Prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_thing() {
        let names =
            COMMANDS.iter().flat_map(|command| [command.name].into_iter().chain(command.others.iter().copied()));
        let answered = ANSWERS.iter().flat_map(|(names, _)| names.iter().copied());
        let short = SHORT.iter().map(|(short, _)| *short);
        let mut all: Vec<&str> = names.chain(answered).chain(short).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|name| name.starts_with(['\\', '.'])));
    }

    #[test]
    fn names_of_other_shells_are_answered() {
        assert_eq!(find(".timer").map(|command| command.name), Some("\\timing"));
        assert_eq!(
            unknown(".import"),
            "there is no command '.import'; type CREATE TABLE t AS SELECT * FROM 'file.csv'"
        );
        assert_eq!(unknown("\\nope"), "there is no command '\\nope'; \\? lists them");
        assert_eq!(unknown(".tabels"), "there is no command '.tabels'; did you mean .tables?");
        assert_eq!((meant_by(" EXIT ; "), meant_by("select")), (Some("\\q"), None));
    }

    #[test]
    fn quotes_around_names_are_taken_off() {
        assert_eq!(["'a b'", "\"a\"", "a'", "''"].map(unquoted), ["a b", "a", "a'", ""]);
    }
}
