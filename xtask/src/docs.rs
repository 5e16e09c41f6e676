//! Parts of documents that are made from the source: the table of settings.
//!
//! Such a part stands between `<!-- made by cargo xtask NAME -->` and `<!-- end -->`; the rest of the page is prose.

use std::fs;

use crate::process::{Result, root};
use crate::settings;
use crate::tidy::{TextFile, text_files};

/// The page of settings.
const PAGE: &str = "docs/settings.md";

/// Writes the table, or with `check` says where it differs.
pub(crate) fn run(check: bool) -> Result<()> {
    let files = text_files()?;
    if check {
        return differences(&files)?.into_iter().next().map_or(Ok(()), Err);
    }
    let page = page(&files)?;
    let text = replace(page, "docs", &table(&files)?).ok_or_else(|| no_place(PAGE, "docs"))?;
    write(PAGE, &text)
}

/// What is not as the source gives it.
pub(crate) fn differences(files: &[TextFile]) -> Result<Vec<String>> {
    let Ok(page) = page(files) else { return Ok(vec![format!("{PAGE}: missing")]) };
    Ok(match replace(page, "docs", &table(files)?) {
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

/// The page with `made` between the marks of that chore; none if the marks are not there.
pub(crate) fn replace(page: &str, chore: &str, made: &str) -> Option<String> {
    let mark = format!("<!-- made by cargo xtask {chore} -->\n");
    let (before, rest) = page.split_once(&mark)?;
    let at = rest.find("<!-- end -->")?;
    Some(format!("{before}{mark}\n{made}\n{}", &rest[at..]))
}

/// The message for a page without marks.
pub(crate) fn no_place(page: &str, chore: &str) -> String {
    format!("{page}: has no '<!-- made by cargo xtask {chore} -->' with '<!-- end -->'")
}

/// Writes a file of the workspace.
pub(crate) fn write(path: &str, text: &str) -> Result<()> {
    fs::write(root().join(path), text).map_err(|error| format!("{path}: {error}"))?;
    println!("{path}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- made by cargo xtask docs -->\nold\n<!-- end -->\nb\n";
        let once = replace(page, "docs", "| new |\n").unwrap();
        assert_eq!(once, "a\n<!-- made by cargo xtask docs -->\n\n| new |\n\n<!-- end -->\nb\n");
        assert_eq!(replace(&once, "docs", "| new |\n").unwrap(), once);
        assert_eq!(replace("none", "docs", ""), None);
    }
}
