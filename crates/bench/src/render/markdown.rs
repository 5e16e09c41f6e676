//! Tables of Markdown, heads of files of results, and the places of pages that are made by a chore.

use crate::report::{Case, Report};

use super::Drawing;
use super::text::distinct;

/// The folder of the results.
pub(super) const RESULTS: &str = "bench/results";
/// Longest line of a head.
pub(super) const LINE_MAX: usize = 112;

/// A table: what its first column is, the other columns, and rows of a name and their cells.
pub(super) fn table(
    corner: &str,
    columns: &[impl AsRef<str>],
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) -> String {
    let titles: String = columns.iter().map(|title| format!(" {} |", title.as_ref())).collect();
    let mut text = format!("| {corner} |{titles}\n|---|{}\n", "---:|".repeat(columns.len()));
    text.extend(rows.into_iter().map(|(name, cells)| row(&name, &cells)));
    text
}

/// A row of a table.
pub(super) fn row(name: &str, cells: &[String]) -> String {
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// A table of what `cell` gives of cases, by the row and the column that `place` gives of them.
pub(super) fn pivot<'c>(
    corner: &str,
    cases: impl IntoIterator<Item = &'c Case>,
    place: impl Fn(&'c Case) -> Option<(String, String)>,
    cell: impl Fn(&Case) -> String,
) -> String {
    let placed: Vec<_> = cases.into_iter().filter_map(|case| Some((place(case)?, case))).collect();
    let columns = distinct(placed.iter().map(|((_, column), _)| column.clone()));
    let rows = distinct(placed.iter().map(|((row, _), _)| row.clone())).into_iter().map(|row| {
        let at = |column: &String| placed.iter().find(|((r, c), _)| *r == row && c == column);
        let cells = columns.iter().map(|column| at(column).map(|(_, case)| cell(case)).unwrap_or_default());
        (row.clone(), cells.collect())
    });
    table(corner, &columns, rows.collect::<Vec<_>>())
}

/// A figure with so many digits behind the point; empty where it is absent.
pub(super) fn cell(figure: Option<f64>, digits: usize) -> String {
    figure.map(|figure| format!("{figure:.digits$}")).unwrap_or_default()
}

/// A file's suite, device, parameters and when they were measured.
pub(super) fn head(report: &Report) -> String {
    let mut head = format!("**{} on {}**", report.suite.to_uppercase(), report.device);
    for (name, value) in &report.params {
        let value = value.to_string();
        match value.trim_matches('"') {
            "" | "false" | "null" => {}
            value => head.push_str(&format!(", {name} {value}")),
        }
    }
    let when = [("CUDA driver ", &report.driver), ("", &report.date), ("commit ", &report.commit)];
    let when = when.into_iter().filter_map(|(what, text)| Some(format!("{what}{}", text.as_ref()?)));
    let when = when.collect::<Vec<_>>().join(", ");
    let gap = if head.len() + when.len() > LINE_MAX { ",\n" } else { ", " };
    head + gap + &when
}

/// A link to a file of results, for a page beside it.
pub(super) fn link(name: &str) -> String {
    format!("[{name}]({name})")
}

/// A drawing of docs/figures, for a page beside the results.
pub(super) fn image(drawing: &Drawing) -> String {
    format!("![{}](../../docs/figures/{}.svg)\n", drawing.title, drawing.name)
}

/// The page with `made` between the marks of a chore, `<!-- made by cargo xtask NAME -->` and `<!-- end -->`; none if
/// the marks are not there.
pub fn replaced(page: &str, chore: &str, made: &str) -> Option<String> {
    let mark = format!("<!-- made by cargo xtask {chore} -->\n");
    let (before, rest) = page.split_once(&mark)?;
    let at = rest.find("<!-- end -->")?;
    Some(format!("{before}{mark}\n{made}\n{}", &rest[at..]))
}

/// The message for a page without marks.
pub fn no_place(page: &str, chore: &str) -> String {
    format!("{page}: has no '<!-- made by cargo xtask {chore} -->' with '<!-- end -->'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- made by cargo xtask docs -->\nold\n<!-- end -->\nb\n";
        let once = replaced(page, "docs", "| new |\n").unwrap();
        assert_eq!(once, "a\n<!-- made by cargo xtask docs -->\n\n| new |\n\n<!-- end -->\nb\n");
        assert_eq!(replaced(&once, "docs", "| new |\n").unwrap(), once);
        assert_eq!(replaced("none", "docs", ""), None);
    }
}
