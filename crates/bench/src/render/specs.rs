//! How the results of each suite are shown: one table for terminals, pages and drawings.

use super::terminal::{self, Shown, Terminal};
use super::{Drawing, Files, cubes, kernels, primitives, queries, query_charts, schemes};
use crate::report::Report;

/// How the results of some suites are shown.
pub struct Spec {
    /// The suites.
    pub(super) suites: &'static [&'static str],
    /// What a terminal shows of a case behind its name; nothing for suites that no program of ours runs.
    shown: &'static [Shown],
    /// The sections of files on a page, in the order of their names.
    pub(super) sections: fn(&Files) -> Result<Vec<String>, String>,
    /// The drawings of some reports, and the files whose drawings are kept.
    drawings: fn(&[&Report]) -> Vec<Drawing>,
    is_drawn: fn(&str) -> bool,
}

/// All suites.
pub(super) static SPECS: [Spec; 11] = [
    Spec {
        suites: &["ssb", "tpch", "topk", "tpcds", "clickbench", "h2o", "windows", "ssb-rivals"],
        shown: &terminal::QUERIES,
        sections: |files| each(files, queries::table),
        drawings: query_charts::drawings,
        is_drawn: |name| name == queries::TPCH || queries::FRONT.contains(&name),
    },
    Spec {
        suites: &["primitives"],
        shown: &terminal::PRIMITIVES,
        sections: |files| each(files, primitives::tables),
        drawings: primitives::drawings,
        is_drawn: |name| name == primitives::DRAWN,
    },
    Spec { shown: &terminal::CUBES, sections: cubes::sections, ..undrawn(&["cube"]) },
    Spec {
        shown: &terminal::SCHEMES,
        sections: |files| Ok(vec![schemes::tables(files)?]),
        drawings: schemes::drawings,
        is_drawn: |_| true,
        ..undrawn(&["schemes"])
    },
    Spec { shown: &terminal::HTREES, ..undrawn(&["htree"]) },
    Spec { shown: &terminal::CUBE_OPERATOR, ..undrawn(&["cube-operator"]) },
    Spec { shown: &terminal::ENCODINGS, ..undrawn(&["encodings"]) },
    Spec { shown: &terminal::ENCODE, ..undrawn(&["encode"]) },
    Spec { shown: &terminal::ENCODE_CPU, ..undrawn(&["encode-cpu"]) },
    Spec { shown: &terminal::CUBE_QUERY, ..undrawn(&["cube-query", "cube-cross-tabs"]) },
    undrawn(&["turns", "base-turns", "first-runs", "interrupts", "start"]),
];

/// Suites with a section a file and no drawing.
const fn undrawn(suites: &'static [&'static str]) -> Spec {
    let sections: fn(&Files) -> Result<Vec<String>, String> = |files| each(files, kernels::section);
    Spec { suites, shown: &[], sections, drawings: |_| Vec::new(), is_drawn: |_| false }
}

impl Spec {
    /// How the results of a suite are shown.
    ///
    /// # Errors
    /// A suite that no spec names.
    pub fn of(suite: &str) -> Result<&'static Spec, String> {
        let spec = SPECS.iter().find(|spec| spec.suites.contains(&suite));
        spec.ok_or_else(|| format!("suite {suite}: no spec of crates/bench/src/render/specs.rs has it"))
    }

    /// Lines for cases of these names, with a column for DuckDB if it is measured.
    pub fn terminal(&self, cases: &[String], has_duckdb: bool) -> Terminal {
        let (corner, width_min) = if self.suites.contains(&"ssb") { ("query", 6) } else { ("case", 4) };
        Terminal::new(self.shown, corner, width_min, cases, has_duckdb)
    }

    /// The drawings that a report has results for.
    pub fn drawings(&self, report: &Report) -> Vec<Drawing> {
        (self.drawings)(&[report])
    }

    /// The drawings of the files whose drawings are kept.
    pub(super) fn kept_drawings(&self, files: &Files) -> Vec<Drawing> {
        let drawn = files.iter().filter(|(name, _)| (self.is_drawn)(name));
        (self.drawings)(&drawn.map(|(_, report)| report).collect::<Vec<_>>())
    }
}

/// A section a file.
fn each(files: &Files, section: fn(&Report, &str) -> Result<String, String>) -> Result<Vec<String>, String> {
    let made = |(name, report): &(String, Report)| section(report, name).map_err(|what| format!("{name}: {what}"));
    files.iter().map(made).collect()
}
