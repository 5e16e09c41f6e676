//! Parts of documents that are made from the source: the table of settings.
//!
//! Such a part stands between `<!-- made by cargo xtask NAME -->` and `<!-- end -->`; the rest of the page is prose.

use std::fs;

use warpcube_bench::render::markdown::{no_place, replaced};

use crate::files::{TextFile, text_files};
use crate::process::{Result, root};
use crate::settings;

/// The page of settings.
const PAGE: &str = "docs/settings.md";

/// Writes the table, or with `check` says where it differs.
pub(crate) fn run(check: bool) -> Result<()> {
    let files = text_files()?;
    if check {
        return differences(&files)?.into_iter().next().map_or(Ok(()), Err);
    }
    let page = page(&files)?;
    let text = replaced(page, "docs", &table(&files)?).ok_or_else(|| no_place(PAGE, "docs"))?;
    write(PAGE, &text)
}

/// What is not as the source gives it.
pub(crate) fn differences(files: &[TextFile]) -> Result<Vec<String>> {
    let Ok(page) = page(files) else { return Ok(vec![format!("{PAGE}: missing")]) };
    Ok(match replaced(page, "docs", &table(files)?) {
        None => vec![no_place(PAGE, "docs")],
        Some(text) if text != page => vec![format!("{PAGE}: not what the source gives; run 'cargo xtask docs'")],
        Some(_) => Vec::new(),
    })
}

fn page(files: &[TextFile]) -> Result<&str> {
    let page = files.iter().find(|file| file.path == PAGE);
    page.map(|file| file.text.as_str()).ok_or_else(|| format!("{PAGE}: missing"))
}

fn table(files: &[TextFile]) -> Result<String> {
    let source = files.iter().find(|file| file.path == settings::SOURCE);
    let source = source.ok_or_else(|| format!("{}: missing", settings::SOURCE))?;
    let settings = settings::read(&source.text).map_err(|what| format!("{}: {what}", settings::SOURCE))?;
    let mut table = String::from("| setting | takes | default | whose | what it does |\n|---|---|---|---|---|\n");
    for setting in settings {
        let cell = |text: &str| text.replace('|', "\\|");
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

/// Writes a file of the workspace.
fn write(path: &str, text: &str) -> Result<()> {
    fs::write(root().join(path), text).map_err(|error| format!("{path}: {error}"))?;
    println!("{path}");
    Ok(())
}
