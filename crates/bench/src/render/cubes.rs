//! Tables 5.2 to 5.8 of Meinke's thesis (`bench/cubes/thesis.json`) beside what `warpcube-bench cube --tables`
//! measured, which may be missing, and the device's algorithms over the queries of the benchmark cubes.

use serde_json::Value;

use super::markdown::{cell, head, link, pivot, row, table};
use super::text::{distinct, two_below_ten};
use super::{Files, queries};
use crate::report::{Case, Report};

/// The thesis's figures.
const THESIS: &str = include_str!("../../../../bench/cubes/thesis.json");
/// Queries in the order of tables.
const QUERIES: [&str; 6] = ["M1", "M2", "M3", "B1", "B2", "B3"];
/// Variants of table 5.2, ours and the thesis's. Children have the same warps whichever kernel launches them.
const PREAGGREGATED: [(&str, &str); 2] =
    [("first-shared/thread", "first-shared/thread"), ("strided/host-children", "strided/children")];

/// A table of times: its rows are the variants of each query.
struct Times {
    title: &'static str,
    rows: &'static [Row],
}

/// A variant, the thesis's one that it stands beside, and those that it is compared with: the quickest of them.
struct Row {
    variant: &'static str,
    thesis: &'static str,
    base: &'static [&'static str],
}

const BY_THREAD: [&str; 2] = ["first-shared/thread", "shuffle/thread"];
/// Tables before table 5.7.
const TIMES: [Times; 4] = [
    Times {
        title: "Table 5.3: a thread a cell",
        rows: &[
            Row { variant: "source", thesis: "source", base: &[] },
            Row { variant: "none/thread", thesis: "none/thread", base: &["source"] },
            Row { variant: "first-shared/thread", thesis: "first-shared/thread", base: &["source"] },
        ],
    },
    Times {
        title: "Table 5.4: preaggregation by shuffles over the same in shared memory",
        rows: &[Row { variant: "shuffle/thread", thesis: "shuffle/thread", base: &["first-shared/thread"] }],
    },
    Times {
        title: "Table 5.5: children of many blocks over a thread a cell; in-block balancing, which the thesis has not",
        rows: &[
            Row { variant: "none/children", thesis: "none/children", base: &["none/thread"] },
            Row { variant: "strided/children", thesis: "strided/children", base: &BY_THREAD },
            Row { variant: "none/balanced", thesis: "", base: &["none/thread"] },
            Row { variant: "strided/balanced", thesis: "", base: &BY_THREAD },
        ],
    },
    Times {
        title: "Table 5.6: children of one block over children of many",
        rows: &[
            Row { variant: "none/child-blocks", thesis: "none/child-blocks", base: &["none/children"] },
            Row { variant: "strided/child-blocks", thesis: "strided/child-blocks", base: &["strided/children"] },
        ],
    },
];
/// The thesis has parents that wait for children; ours are launched in batches, children by parents or by the host.
const HOST_CHILDREN: Times = Times {
    title: "Table 5.8: children launched by the host over those that parents launch",
    rows: &[
        Row { variant: "none/host-children", thesis: "none/synchronised-children", base: &["none/children"] },
        Row { variant: "strided/host-children", thesis: "strided/synchronised-children", base: &["strided/children"] },
        Row { variant: "none/host-child-blocks", thesis: "", base: &["none/child-blocks"] },
        Row { variant: "strided/host-child-blocks", thesis: "", base: &["strided/child-blocks"] },
    ],
};

/// The sections of files of the suite `cube`; what the thesis's tables show stands behind the others.
pub(super) fn sections(files: &Files) -> Result<Vec<String>, String> {
    let of_thesis = |report: &Report| report.params.get("tables").is_some_and(|tables| *tables == true);
    let mut sections = Vec::new();
    for (name, report) in files.iter().filter(|(_, report)| !of_thesis(report)) {
        sections.push(match report.params.get("algorithms") {
            Some(_) => algorithms(report, name),
            None => queries::table(report, name).map_err(|what| format!("{name}: {what}"))?,
        });
    }
    let measured = files.iter().find(|(_, report)| of_thesis(report));
    sections.push(tables(measured.map(|(name, report)| (report, name.as_str())))?);
    Ok(sections)
}

/// Milliseconds on the device of each algorithm over each query of a cube.
fn algorithms(report: &Report, name: &str) -> String {
    let place = |case: &Case| {
        let (query, algorithm) = case.name.split_once('/').unwrap_or((&case.name, "gpu-contract"));
        Some((format!("`{algorithm}`"), query.to_string()))
    };
    let cell = |case: &Case| milliseconds(case.figure("device_ms").filter(|_| case.verified == Some(true)));
    format!("{};\n{}.\n\n{}", head(report), link(name), pivot("algorithm", &report.results, place, cell))
}

/// All tables; without measurements they have the thesis's figures alone.
fn tables(measured: Option<(&Report, &str)>) -> Result<String, String> {
    let failed = |what: String| format!("bench/cubes/thesis.json: {what}");
    let thesis: Value = serde_json::from_str(THESIS).map_err(|error| failed(error.to_string()))?;
    let device = thesis["device"].as_str().ok_or_else(|| failed("no 'device'".into()))?;
    let mut text = match measured {
        Some((report, name)) => format!("{};\n{}; thesis: {device}.\n", head(report), link(name)),
        None => format!("What tables 5.2 to 5.8 show is not measured yet; thesis: {device}.\n"),
    };
    let results = measured.map_or(&[][..], |(report, _)| &report.results);
    let view = View { thesis: &thesis["queries"], results };
    text.push_str(&view.additions());
    TIMES.iter().for_each(|times| text.push_str(&view.times(times)));
    text.push_str(&view.children());
    text.push_str(&view.times(&HOST_CHILDREN));
    text.push_str(&view.sweeps());
    Ok(text)
}

/// Milliseconds and hash functions of one variant.
#[derive(Clone, Copy)]
struct Run {
    ms: f64,
    warm_ms: Option<f64>,
    functions: Option<u64>,
}

/// Figures of the thesis by query, and measured results.
struct View<'a> {
    thesis: &'a Value,
    results: &'a [Case],
}

impl View<'_> {
    /// A measured case.
    fn case(&self, name: &str) -> Option<&Case> {
        self.results.iter().find(|case| case.name == name)
    }

    /// The quickest measured run of a variant; `source` is one core.
    fn measured(&self, query: &str, variant: &str) -> Option<Run> {
        if variant == "source" {
            let ms = self.case(&format!("{query}/source"))?.figure("cpu_ms")?;
            return Some(Run { ms, warm_ms: None, functions: None });
        }
        let best = self.runs(query, variant).min_by(|one, other| one.1.total_cmp(&other.1))?.0;
        let (ms, warm_ms) = (best.figure("device_ms")?, best.figure("warm_ms"));
        Some(Run { ms, warm_ms, functions: best["hash_functions_used"].as_u64() })
    }

    /// The verified runs of a variant with their milliseconds.
    fn runs(&self, query: &str, variant: &str) -> impl Iterator<Item = (&Case, f64)> {
        let prefix = format!("{query}/gpu-source/{variant}/h");
        let own = move |case: &&Case| case.name.starts_with(&prefix) && case.verified == Some(true);
        self.results.iter().filter(own).filter_map(|case| Some((case, case.figure("device_ms")?)))
    }

    /// The thesis's run of a variant.
    fn in_thesis(&self, query: &str, variant: &str) -> Option<Run> {
        let figures = &self.thesis[query];
        let (ms, functions) = match variant {
            "source" => (figures["one_core_ms"].as_f64()?, None),
            _ => {
                let run = &figures["runs"][variant];
                (run["ms"].as_f64()?, run["hash_functions"].as_u64())
            }
        };
        Some(Run { ms, warm_ms: None, functions })
    }

    /// Table 5.2, and the factors of all variants that were counted.
    fn additions(&self) -> String {
        let mut columns = vec!["none".to_string(), "thesis".to_string()];
        for (variant, _) in PREAGGREGATED {
            columns.extend([format!("`{variant}`"), "factor".into(), "thesis".into(), "factor".into()]);
        }
        let line = |query: &&str| {
            let measured =
                |variant: &str| self.case(&format!("{query}/additions/{variant}"))?.figure("atomic_additions");
            let in_thesis = |variant: &str| self.thesis[query]["atomic_additions"][variant].as_f64();
            let (none, thesis_none) = (measured("none/thread"), in_thesis("none/thread"));
            let mut cells = vec![cell(none, 0), cell(thesis_none, 0)];
            for (variant, thesis) in PREAGGREGATED {
                for (count, all) in [(measured(variant), none), (in_thesis(thesis), thesis_none)] {
                    cells.extend([cell(count, 0), ratio(all, count)]);
                }
            }
            (query.to_string(), cells)
        };
        let counts = table("query", &columns, QUERIES.iter().map(line));
        let mut text = format!("\n### Table 5.2: atomic additions\n\n{counts}");
        let counted = distinct(self.results.iter().filter_map(|case| Some(case.name.split_once("/additions/")?.1)));
        if counted.is_empty() {
            return text;
        }
        text.push_str("\nFactors by which preaggregation lessens atomic additions, at most 32:\n\n");
        let factors = counted.iter().filter(|variant| !variant.starts_with("none/")).map(|variant| {
            let factor = |query: &str| {
                let case = self.case(&format!("{query}/additions/{variant}"))?;
                Some(case.figure("additions")? / case.figure("atomic_additions")?)
            };
            (format!("`{variant}`"), QUERIES.map(|query| cell(factor(query), 2)).to_vec())
        });
        text.push_str(&table("variant", &QUERIES, factors));
        text
    }

    /// A table of times.
    fn times(&self, times: &Times) -> String {
        let columns = [
            "variant",
            "device, ms",
            "warm, ms",
            "hash functions",
            "speedup",
            "thesis, ms",
            "hash functions",
            "speedup",
        ];
        let mut text = format!("\n### {}\n\n", times.title);
        text.push_str(&format!("| query | {} |\n|---|---|{}\n", columns.join(" | "), "---:|".repeat(7)));
        for (query, of) in QUERIES.iter().flat_map(|query| times.rows.iter().map(move |of| (*query, of))) {
            let functions = |run: Option<Run>| cell(run.and_then(|run| run.functions).map(|count| count as f64), 0);
            let mut cells = vec![format!("`{}`", of.variant)];
            let run = self.measured(query, of.variant);
            let base = self.least(query, of.base, Self::measured);
            cells.extend([milliseconds(run.map(|run| run.ms)), milliseconds(run.and_then(|run| run.warm_ms))]);
            cells.extend([functions(run), ratio(base, run.map(|run| run.ms))]);
            let run = self.in_thesis(query, of.thesis);
            let base = self.least(query, of.base, Self::in_thesis);
            cells.extend([cell(run.map(|run| run.ms), 0), functions(run), ratio(base, run.map(|run| run.ms))]);
            text.push_str(&row(query, &cells));
        }
        text
    }

    /// The least milliseconds of some variants.
    fn least(&self, query: &str, variants: &[&str], of: fn(&Self, &str, &str) -> Option<Run>) -> Option<f64> {
        variants.iter().filter_map(|variant| of(self, query, variant)).map(|run| run.ms).min_by(f64::total_cmp)
    }

    /// Table 5.7.
    fn children(&self) -> String {
        let columns = ["child kernels", "thesis", "child blocks", "blocks a child", "thesis", "batches of parents"];
        let line = |query: &&str| {
            let case = self.case(&format!("{query}/children"));
            let figure = |key: &str| case.and_then(|case| case.figure(key));
            let thesis = &self.thesis[query]["children"];
            let (kernels, blocks) = (figure("child_kernels"), figure("child_blocks"));
            let cells = vec![
                cell(kernels, 0),
                cell(thesis["kernels"].as_f64(), 0),
                cell(blocks, 0),
                cell(blocks.zip(kernels).map(|(blocks, kernels)| blocks / kernels), 1),
                cell(thesis["blocks_each"].as_f64(), 1),
                cell(figure("batches"), 0),
            ];
            (query.to_string(), cells)
        };
        format!("\n### Table 5.7: child kernels\n\n{}", table("query", &columns, QUERIES.iter().map(line)))
    }

    /// Milliseconds by the number of hash functions, a table a query.
    fn sweeps(&self) -> String {
        let mut text = String::new();
        for query in QUERIES {
            let prefix = format!("{query}/gpu-source/");
            let runs = self.results.iter().filter_map(|case| {
                let (variant, asked) = case.name.strip_prefix(&prefix)?.rsplit_once("/h")?;
                Some((variant, asked.parse::<u64>().ok()?, case))
            });
            let runs: Vec<(&str, u64, &Case)> = runs.collect();
            if runs.is_empty() {
                continue;
            }
            let mut numbers: Vec<u64> = runs.iter().map(|run| run.1).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let titles: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let lines = distinct(runs.iter().map(|run| run.0)).into_iter().map(|variant| {
                let time = |number: &u64| {
                    let case = runs.iter().find(|run| run.0 == variant && run.1 == *number)?.2;
                    let ms = milliseconds(case.figure("device_ms").filter(|_| case.verified == Some(true)));
                    match case["hash_functions_used"].as_u64() {
                        Some(used) if used != *number => Some(format!("{ms} ({used})")),
                        _ => Some(ms),
                    }
                };
                let cells = numbers.iter().map(|number| time(number).unwrap_or_default());
                (format!("`{variant}`"), cells.collect())
            });
            text.push_str(&format!("\n{query}, milliseconds on the device by hash functions:\n\n"));
            text.push_str(&table("variant", &titles, lines));
        }
        match text.is_empty() {
            true => text,
            false => format!("\n### Numbers of hash functions\n{text}"),
        }
    }
}

/// Two digits below 10 ms.
fn milliseconds(ms: Option<f64>) -> String {
    ms.map(two_below_ten).unwrap_or_default()
}

/// How often `figure` goes into `all`.
fn ratio(all: Option<f64>, figure: Option<f64>) -> String {
    cell(all.zip(figure).map(|(all, figure)| all / figure), 2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn measured_figures_stand_beside_the_thesis() {
        let run = |variant: &str, functions: u64, ms: f64| {
            json!({
                "case": format!("B1/gpu-source/{variant}/h{functions}"), "device_ms": ms, "verified": true,
                "hash_functions_used": functions, "warm_ms": ms + 1.0,
            })
        };
        let count = |variant: &str, atomic: u64| {
            let case = format!("B1/additions/{variant}");
            json!({"case": case, "atomic_additions": atomic, "additions": 640})
        };
        let results = serde_json::from_value(json!({
            "suite": "cube", "device": "D", "date": "2026-01-31", "params": {"tables": true},
            "results": [
                {"case": "B1/children", "child_kernels": 4, "child_blocks": 10, "batches": 1},
                count("none/thread", 640), count("first-shared/thread", 20), count("match/balanced", 160),
                run("none/thread", 16, 20.0), run("none/thread", 64, 30.0), run("none/children", 64, 5.0),
                {"case": "B1/gpu-source/none/child-blocks/h64", "device_ms": 1.0, "verified": false},
                {"case": "B1/source", "cpu_ms": 4000.0, "verified": true},
            ],
        }))
        .unwrap();
        let text = tables(Some((&results, "x.json"))).unwrap();
        assert!(text.starts_with("**CUBE on D**, tables true, 2026-01-31;\n[x.json]"), "{text}");
        let counts = "| B1 | 640 | 281057088 | 20 | 32.00 | 8783034 | 32.00 |  |  | 8783034 | 32.00 |\n";
        assert!(text.contains(counts), "{text}");
        assert!(text.contains("| `match/balanced` |  |  |  | 4.00 |  |  |\n"), "{text}");
        assert!(text.contains("| B1 | `source` | 4000 |  |  |  | 110777 |  |  |\n"), "{text}");
        assert!(text.contains("| B1 | `none/thread` | 20 | 21 | 16 | 200.00 | 2133 | 3072 | 51.93 |\n"), "{text}");
        assert!(text.contains("| B1 | `none/children` | 5.00 | 6.00 | 64 | 4.00 | 2327 | 6144 | 0.92 |\n"), "{text}");
        assert!(text.contains("| B1 | `none/child-blocks` |  |  |  |  | 2430 | 7168 | 0.96 |\n"), "{text}");
        assert!(text.contains("| B1 | 4 | 365960 | 10 | 2.5 | 1.0 | 1 |\n"), "{text}");
        let sweep =
            "| variant | 16 | 64 |\n|---|---:|---:|\n| `none/thread` | 20 | 30 |\n| `none/children` |  | 5.00 |\n";
        assert!(text.contains(sweep), "{text}");
    }

    #[test]
    fn without_measurements_the_thesis_stands_alone() {
        let text = tables(None).unwrap();
        assert!(text.starts_with("What tables 5.2 to 5.8 show is not measured yet; thesis: Tesla K40c.\n"), "{text}");
        assert!(text.contains("| M3 | `none/children` |  |  |  |  | 16101 | 4 | 3.64 |\n"), "{text}");
        assert!(!text.contains("Numbers of hash functions"), "{text}");
    }
}
