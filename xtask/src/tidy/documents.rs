//! Rules of documents: links lead somewhere, files that are named exist, every error code is explained, and pages that
//! people read whole stay short.

use std::collections::BTreeSet;
use std::path::Path;

use super::TextFile;
use crate::process::root;

/// The page that explains error codes.
const ERRORS: &str = "docs/errors.md";
/// Pages that people read whole, with the most bytes of each.
const SHORT: [(&str, usize); 2] = [("ARCHITECTURE.md", 12 << 10), ("docs/benchmarks.md", 12 << 10)];
/// Beginnings of paths that inline code may name.
const FOLDERS: [&str; 8] = ["crates/", "xtask/", "docs/", "bench/", "gpu/", "slt/", ".ci/", ".config/"];

/// Findings in all documents.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is(&["md"])) {
        links(file, files, &mut findings);
    }
    for file in files.iter().filter(|file| file.is(&["cuh"])) {
        named(file, &mut findings);
    }
    findings.extend(files.iter().filter_map(too_long));
    errors(files, &mut findings);
    findings
}

fn links(file: &TextFile, files: &[TextFile], findings: &mut Vec<String>) {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line) {
            if let Some(reason) = dead_link(&target, &file.path, folder, files) {
                findings.push(format!("{}:{}: link '{target}': {reason}", file.path, index + 1));
            }
        }
        for path in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
            if !root().join(path.trim_end_matches('/')).exists() {
                findings.push(format!("{}:{}: there is no {path}", file.path, index + 1));
            }
        }
    }
}

/// Files that the comments of kernels name, in backticks or without.
fn named(file: &TextFile, findings: &mut Vec<String>) {
    let is_end = |character: char| !(character.is_alphanumeric() || "/._-".contains(character));
    for (index, line) in file.text.lines().enumerate() {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        let words = comment.split(is_end).map(|word| word.trim_end_matches(['.', '/']));
        for word in words.filter(|word| is_path(word) || word.ends_with(".md")) {
            if !root().join(word).exists() {
                findings.push(format!("{}:{}: there is no {word}", file.path, index + 1));
            }
        }
    }
}

fn too_long(file: &TextFile) -> Option<String> {
    let (path, most) = SHORT.into_iter().find(|(path, _)| *path == file.path)?;
    let bytes = file.text.len();
    (bytes > most).then(|| format!("{path}: {bytes} bytes; shorten it to {most}"))
}

/// Targets of `[…](target)`.
fn targets(line: &str) -> Vec<String> {
    let after = line.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.trim().to_string())).collect()
}

fn is_path(code: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "/._-".contains(character);
    FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.chars().all(plain)
}

fn dead_link(target: &str, own: &str, folder: &str, files: &[TextFile]) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let full = match path {
        "" => own.to_string(),
        path => normal(&Path::new(folder).join(path)),
    };
    if !root().join(&full).exists() && !files.iter().any(|file| file.path == full) {
        return Some("no such file".into());
    }
    let page = files.iter().find(|file| file.path == full && file.is(&["md"]))?;
    let found = anchor.is_empty() || headings(&page.text).any(|heading| slug(heading) == anchor);
    (!found).then(|| "no such heading".into())
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part.as_os_str().to_string_lossy().as_ref() {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name.to_string()),
        }
    }
    parts.join("/")
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}

/// A heading's anchor as web sites of repositories make it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn errors(files: &[TextFile], findings: &mut Vec<String>) {
    let in_source: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/") && file.is(&["rs"]))
        .flat_map(|file| codes(&file.text))
        .collect();
    let Some(page) = files.iter().find(|file| file.path == ERRORS) else {
        findings.push(format!("{ERRORS}: missing"));
        return;
    };
    let on_page: Vec<&str> = headings(&page.text).filter_map(|heading| code_at(heading)).collect();
    for code in in_source.iter().filter(|code| !on_page.contains(code)) {
        findings.push(format!("{ERRORS}: {code} is in the source and not explained"));
    }
    for code in on_page.iter().filter(|code| !in_source.contains(**code)) {
        findings.push(format!("{ERRORS}: {code} is explained and not in the source"));
    }
}

/// Codes with which string literals begin, such as `"SQL-002 unknown table"`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('"').filter_map(|(at, _)| code_at(&text[at + 1..]))
}

/// The code at the front: capitals, a hyphen, three digits, then a blank or the end.
fn code_at(text: &str) -> Option<&str> {
    let letters = text.find(|c: char| !c.is_ascii_uppercase()).filter(|count| (2..=6).contains(count))?;
    let number = text[letters..].strip_prefix('-')?.as_bytes();
    let digits = number.len() >= 3 && number[..3].iter().all(u8::is_ascii_digit);
    let ends = number.get(3).is_none_or(|next| *next == b' ' || *next == b':');
    (digits && ends).then(|| &text[..letters + 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn codes_begin_string_literals() {
        let found: Vec<_> = codes(r#"#[error("SQL-002 unknown '{name}'")] "MFGR-1" "see SQL-003 x""#).collect();
        assert_eq!(found, ["SQL-002"]);
    }

    #[test]
    fn every_code_is_explained_and_none_is_invented() {
        let source = file("crates/a/src/error.rs", r#"#[error("SQL-001 x")] #[error("SQL-002 y")]"#);
        let page = file(ERRORS, "## SQL-002 y\n## SQL-009 z\n");
        let mut findings = Vec::new();
        errors(&[source, page], &mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("SQL-001") && findings[1].contains("SQL-009"));
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let page = file("docs/page.md", "# One two, `three`\n");
        let text = "[a](docs/page.md) [b](docs/page.md#one-two-three) [c](docs/none.md) [d](docs/page.md#none) \
                    [e](https://example.org/x) `crates/none/x.rs` `crates/…`\n";
        let readme = file("README.md", text);
        let mut findings = Vec::new();
        let files = [page, readme];
        links(&files[1], &files, &mut findings);
        assert_eq!(findings.len(), 3, "{findings:?}");
    }

    #[test]
    fn kernels_name_files_that_exist() {
        let of = |text: &str| {
            let mut findings = Vec::new();
            named(&file("crates/gpu/kernels/a.cuh", text), &mut findings);
            findings
        };
        let text = "// A row (xtask/src/main.rs; `docs/errors.md`), see README.md.\nint a = b/c;  // docs/a, docs/.\n";
        assert_eq!(of(text), ["crates/gpu/kernels/a.cuh:2: there is no docs/a"]);
        assert_eq!(of("// By NOTES.md.\n"), ["crates/gpu/kernels/a.cuh:1: there is no NOTES.md"]);
    }

    #[test]
    fn pages_that_people_read_whole_are_short() {
        assert_eq!(too_long(&file("ARCHITECTURE.md", &"a".repeat(12 << 10))), None);
        assert_eq!(too_long(&file("docs/sql.md", &"a".repeat(13 << 10))), None);
        let found = too_long(&file("docs/benchmarks.md", &"a".repeat(12_289))).unwrap();
        assert_eq!(found, "docs/benchmarks.md: 12289 bytes; shorten it to 12288");
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(normal(Path::new("docs/../README.md")), "README.md");
    }
}
