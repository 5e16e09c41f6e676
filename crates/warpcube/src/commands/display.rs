//! Commands that show and change settings, those of how results look first.

use warpcube_sql::{Expanded, SETTINGS};

use crate::commands::{Next, unquoted};
use crate::console::tell;
use crate::error::{CliError, Result};
use crate::runner::Runner;

/// Names that `\pset` takes, each with its setting.
const OPTIONS: [(&str, &str); 7] = [
    ("expanded", "warpcube.expanded"),
    ("format", "warpcube.format"),
    ("header", "warpcube.header"),
    ("maxrows", "warpcube.max_rows"),
    ("null", "warpcube.null"),
    ("pager", "warpcube.pager"),
    ("separator", "warpcube.separator"),
];

/// The names of [`OPTIONS`].
pub(super) const OPTION_NAMES: [&str; 7] = {
    let mut names = [""; OPTIONS.len()];
    let mut at = 0;
    while at < OPTIONS.len() {
        names[at] = OPTIONS[at].0;
        at += 1;
    }
    names
};

/// Shows the options of `\pset`, or one, or sets it.
pub(super) fn pset(runner: &mut Runner, line: &str) -> Result<Next> {
    let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = if name == "x" { "expanded" } else { name };
    let value = unquoted(value.trim());
    let given: Vec<_> = OPTIONS.iter().filter(|(option, _)| name.is_empty() || *option == name).collect();
    if given.is_empty() {
        let all = OPTION_NAMES.join(", ");
        return Err(CliError::Command(format!("\\pset has no '{name}'; it takes {all}")));
    }
    let is_shown = name.is_empty() || (line.trim() == name && name != "null");
    for (option, setting) in given {
        if !is_shown {
            let value = if *option == "pager" && value == "always" { "on" } else { value };
            runner.connection.set(setting, value)?;
        }
        tell(format_args!("{option} is {}", shown(&runner.connection.settings().value(setting)?)));
    }
    Ok(Next::Prompt)
}

/// A value as people can see it.
fn shown(value: &str) -> &str {
    if value.is_empty() { "''" } else { value }
}

/// Shows or chooses the format, with what stands between values behind its name.
pub(super) fn format(runner: &mut Runner, line: &str) -> Result<Next> {
    let (name, separator) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let separator = unquoted(separator.trim());
    if name.is_empty() {
        tell(format_args!("format is {}", runner.connection.settings().format));
        return Ok(Next::Prompt);
    }
    if !separator.is_empty() && !matches!(name, "csv" | "tsv" | "list") {
        return Err(CliError::Command(format!("format '{name}' takes no separator; csv, tsv and list do")));
    }
    runner.connection.set("warpcube.format", name)?;
    if !separator.is_empty() {
        runner.connection.set("warpcube.separator", separator)?;
    }
    Ok(Next::Prompt)
}

/// Switches tables with one line a value.
pub(super) fn expanded(runner: &mut Runner, value: &str) -> Result<Next> {
    let value = match (value, runner.connection.settings().expanded) {
        ("", Expanded::Off) => "on",
        ("", _) => "off",
        (value, _) => value,
    };
    pset(runner, &format!("expanded {value}"))
}

/// Shows or switches times.
pub(super) fn timing(runner: &mut Runner, value: &str) -> Result<Next> {
    match value {
        "" => tell(if runner.is_timed() { "timing is on" } else { "timing is off" }),
        value => runner.connection.set("warpcube.timing", value)?,
    }
    Ok(Next::Prompt)
}

/// Shows all settings, or one with its origin.
pub(super) fn settings(runner: &mut Runner, name: &str) -> Result<Next> {
    if !name.is_empty() {
        let prefix = if name.starts_with("warpcube.") { "" } else { "warpcube." };
        return runner.statement(&format!("SHOW {prefix}{name}")).map(|()| Next::Prompt);
    }
    for info in SETTINGS {
        let value = runner.connection.settings().value(info.name)?;
        tell(format_args!("{} = {value}", info.name.trim_start_matches("warpcube.")));
    }
    Ok(Next::Prompt)
}
