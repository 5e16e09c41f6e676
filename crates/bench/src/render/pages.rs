//! The pages with tables of measurements, made from `bench/results/*.json` and nothing else: README, docs/benchmarks.md
//! and those beside the results.
//!
//! A figure that a file does not hold is an empty cell, and a column no case has is left out.

use std::fs;
use std::path::Path;

use super::markdown::{RESULTS, no_place, replaced};
use super::{Files, Spec, kernels, queries};
use crate::report::Report;

/// A page, or a part of one, that is made of results.
struct Page {
    path: &'static str,
    /// What the mark of its place calls.
    mark: &'static str,
    /// The suites whose files it shows, and which of them by name.
    suites: &'static [&'static str],
    is_shown: fn(&str) -> bool,
    /// Its text, of these files.
    text: fn(&Files) -> Result<String, String>,
}

static PAGES: [Page; 15] = [
    Page {
        path: "README.md",
        mark: CHORE,
        suites: &["ssb", "ssb-rivals"],
        is_shown: |name| queries::FRONT.contains(&name),
        text: queries::front_means,
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (means)",
        suites: &["ssb", "tpch"],
        is_shown: |name| MEANS.contains(&name),
        text: queries::means_by_suite,
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (tpch)",
        suites: &["tpch"],
        is_shown: |name| name == queries::TPCH,
        text: |files| queries::brief(files, &["device_ms", "warm_ms", "rivals/datafusion_ms", "rivals/duckdb_ms"]),
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (cubes)",
        suites: &["cube"],
        is_shown: |name| name == "cube-h200.json",
        text: |files| {
            queries::brief(files, &["relevant_cells", "targets", "device_ms", "floor_ms", "warm_ms", "thesis_ms"])
        },
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (htrees)",
        suites: &["htree"],
        is_shown: |_| true,
        text: |files| Ok(kernels::limited_trees(files)),
    },
    sections(
        "bench/results/queries.md",
        &["ssb", "tpch", "topk", "tpcds", "clickbench", "h2o", "windows", "ssb-rivals"],
        |_| true,
    ),
    sections("bench/results/primitives-h200.md", &["primitives"], |name| !is_h100(name)),
    sections("bench/results/primitives-h100.md", &["primitives"], is_h100),
    sections("bench/results/cubes.md", &["cube"], |_| true),
    sections("bench/results/schemes.md", &["schemes"], |_| true),
    sections("bench/results/htree.md", &["htree"], |_| true),
    sections("bench/results/cube-operator.md", &["cube-operator"], |_| true),
    sections("bench/results/encodings.md", &["encodings", "encode", "encode-cpu"], |_| true),
    sections("bench/results/latency.md", &["first-runs", "interrupts", "start"], |_| true),
    sections("bench/results/turns.md", &["turns", "base-turns"], |_| true),
];
const CHORE: &str = "bench-table";
/// The results whose means docs/benchmarks.md shows.
const MEANS: [&str; 6] = [
    queries::FRONT[0],
    "ssb-h200-sf100.json",
    "ssb-h100-sf20.json",
    queries::TPCH,
    "tpch-h200-sf100.json",
    "tpch-h100-sf10.json",
];

/// A page with the sections of its files.
const fn sections(path: &'static str, suites: &'static [&'static str], is_shown: fn(&str) -> bool) -> Page {
    Page { path, mark: CHORE, suites, is_shown, text: all_sections }
}

fn is_h100(name: &str) -> bool {
    name.contains("-h100")
}

/// Writes the tables below the project's root; `written` hears of each page.
///
/// # Errors
/// Files that cannot be read or written or have another form; a page without a place for its tables.
pub fn write(root: &Path, written: &mut dyn FnMut(&str)) -> Result<(), String> {
    for made in &PAGES {
        let text = made.replaced(root, &page(root, made.path)?)?.ok_or_else(|| no_place(made.path, made.mark))?;
        fs::write(root.join(made.path), text).map_err(|error| format!("{}: {error}", made.path))?;
        written(made.path);
    }
    Ok(())
}

/// Where the pages' tables are not what the results give.
///
/// # Errors
/// As [`write`].
pub fn differences(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for made in &PAGES {
        let (path, page) = (made.path, page(root, made.path)?);
        match made.replaced(root, &page)? {
            None => found.push(no_place(path, made.mark)),
            Some(text) if text != page => {
                found.push(format!("{path}: not what {RESULTS} gives; run 'cargo xtask {CHORE}'"));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

impl Page {
    /// The page with its part made anew; none if the page has no place for it.
    fn replaced(&self, root: &Path, page: &str) -> Result<Option<String>, String> {
        let mut files = read(root, self.suites)?;
        files.retain(|(name, _)| (self.is_shown)(name));
        let made = match files.is_empty() {
            true => "No results are recorded yet.\n".into(),
            false => (self.text)(&files)?,
        };
        Ok(replaced(page, self.mark, &made))
    }
}

fn page(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The results of some suites with the names of their files, by name.
pub(super) fn read(root: &Path, suites: &[&str]) -> Result<Vec<(String, Report)>, String> {
    let entries = root.join(RESULTS).read_dir().into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let report = Report::read(&path).map_err(|what| format!("{RESULTS}/{name}: {what}"))?;
        if suites.contains(&report.suite.as_str()) {
            files.push((name, report));
        }
    }
    Ok(files)
}

/// The sections of files: those of one suite behind each other, by the names of files in all.
fn all_sections(files: &Files) -> Result<String, String> {
    let mut sections: Vec<String> = Vec::new();
    // Neighbours of one spec are made together.
    for of_spec in files.chunk_by(|one, other| same_spec(&one.1.suite, &other.1.suite)) {
        let Some((_, report)) = of_spec.first() else { continue };
        sections.extend((Spec::of(&report.suite)?.sections)(of_spec).map_err(|what| format!("{RESULTS}/{what}"))?);
    }
    Ok(sections.join("\n"))
}

fn same_spec(one: &str, other: &str) -> bool {
    Spec::of(one).is_ok_and(|spec| spec.suites.contains(&other))
}
