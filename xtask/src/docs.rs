//! Parts of documents that are made from the source: the table of settings, and the tables for those who come from
//! other systems, whose rows are comments of a file of tests.
//!
//! Such a part stands between `<!-- made by cargo xtask NAME -->` and `<!-- end -->`; the rest of the page is prose.

use std::fs;

use warpcube_bench::render::markdown::{no_place, replaced};

use crate::files::{TextFile, text_files};
use crate::process::{Result, root};
use crate::settings;

/// A page, and what makes its part.
type Page = (&'static str, fn(&[TextFile]) -> Result<String>);

const PAGES: [Page; 2] = [("docs/settings.md", table_of_settings), ("docs/sql.md", tables_of_systems)];
/// The file of tests whose comments are rows.
const ROWS: &str = "slt/coming_from.slt";
/// What begins a row: the systems, and what is written there.
const THERE: &str = "#: ";
/// What ends one: whether that works, and how.
const HERE: &str = "#= ";
const STATES: [&str; 3] = ["works", "differs", "missing"];
const SYSTEMS: [&str; 2] = ["DuckDB", "PostgreSQL"];

/// Writes the parts, or with `check` says where one differs.
pub(crate) fn run(check: bool) -> Result<()> {
    let files = text_files()?;
    if check {
        return differences(&files)?.into_iter().next().map_or(Ok(()), Err);
    }
    for (path, made) in PAGES {
        let text = replaced(page(&files, path)?, "docs", &made(&files)?).ok_or_else(|| no_place(path, "docs"))?;
        write(path, &text)?;
    }
    Ok(())
}

/// What is not as the source gives it.
pub(crate) fn differences(files: &[TextFile]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (path, made) in PAGES {
        let page = match page(files, path) {
            Ok(page) => page,
            Err(missing) => {
                found.push(missing);
                continue;
            }
        };
        match replaced(page, "docs", &made(files)?) {
            None => found.push(no_place(path, "docs")),
            Some(text) if text != page => {
                found.push(format!("{path}: not what the source gives; run 'cargo xtask docs'"));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

fn page<'a>(files: &'a [TextFile], path: &str) -> Result<&'a str> {
    let page = files.iter().find(|file| file.path == path);
    page.map(|file| file.text.as_str()).ok_or_else(|| format!("{path}: missing"))
}

fn table_of_settings(files: &[TextFile]) -> Result<String> {
    let source = page(files, settings::SOURCE)?;
    let settings = settings::read(source).map_err(|what| format!("{}: {what}", settings::SOURCE))?;
    let mut table = String::from("| setting | takes | default | whose | what it does |\n|---|---|---|---|---|\n");
    for setting in settings {
        table.push_str(&format!(
            "| `{}` | {} | `{}` | {} | {} |\n",
            setting.name,
            cell(&setting.expected),
            cell(&setting.default),
            setting.owner,
            cell(&setting.description)
        ));
    }
    Ok(table)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A row of the tables of other systems.
struct Row<'a> {
    systems: Vec<&'a str>,
    there: &'a str,
    state: &'a str,
    how: &'a str,
}

fn tables_of_systems(files: &[TextFile]) -> Result<String> {
    let rows = rows(page(files, ROWS)?)?;
    let table = |system: &str| {
        let of_system = rows.iter().filter(|row| row.systems.contains(&system));
        let lines = of_system.map(|row| format!("| {} | {} | {} |\n", cell(row.there), row.state, cell(row.how)));
        format!("### From {system}\n\n| there | here | how |\n|---|---|---|\n{}", lines.collect::<String>())
    };
    Ok(SYSTEMS.map(table).join("\n"))
}

/// The rows of a file of tests, each with a statement below it.
fn rows(text: &str) -> Result<Vec<Row<'_>>> {
    let mut rows = Vec::new();
    let mut begun: Option<(usize, &str)> = None;
    let mut is_shown = true;
    let wrong = |line: usize, what: &str| Err(format!("{ROWS}:{line}: {what}"));
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(there) = line.strip_prefix(THERE) {
            if begun.is_some() || !is_shown {
                return wrong(number, "the row above has no statement");
            }
            begun = Some((number, there));
        } else if let Some(here) = line.strip_prefix(HERE) {
            let Some((number, there)) = begun.take() else { return wrong(number, "a row begins with '#: '") };
            let Some((systems, there)) = there.split_once(": ") else { return wrong(number, "no system") };
            let systems: Vec<&str> = systems.split(", ").collect();
            let (state, how) = here.split_once(": ").unwrap_or((here, ""));
            if !systems.iter().all(|system| SYSTEMS.contains(system)) || !STATES.contains(&state) {
                return wrong(number, "another system or state");
            }
            rows.push(Row { systems, there, state, how });
            is_shown = false;
        } else if line.starts_with("query") || line.starts_with("statement") {
            is_shown = true;
        }
    }
    match begun.is_some() || !is_shown {
        true => wrong(text.lines().count(), "the last row has no statement"),
        false => Ok(rows),
    }
}

/// Writes a file of the workspace.
fn write(path: &str, text: &str) -> Result<()> {
    fs::write(root().join(path), text).map_err(|error| format!("{path}: {error}"))?;
    println!("{path}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_statement_below_it() {
        let row = "#: DuckDB, PostgreSQL: `a || b`\n#= differs: as x\nquery T\nSELECT 1\n";
        let found = rows(row).unwrap();
        assert_eq!((found[0].systems.len(), found[0].state, found[0].how), (2, "differs", "as x"));
        assert_eq!(cell(found[0].there), "`a \\|\\| b`");
        assert!(rows(&format!("#: DuckDB: x\n#= works\n{row}")).is_err());
        assert!(rows("#: Oracle: x\n#= works\nquery I\n").is_err());
    }
}
