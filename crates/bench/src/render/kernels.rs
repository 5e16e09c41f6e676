//! Tables of suites with a section a file: encodings across, widths or distributions down; H-trees by case; turns,
//! first runs, starts and interrupts as medians.

use super::Files;
use super::markdown::{cell, head, link, pivot, table};
use crate::report::{Case, Report};
use crate::stats;

/// How cases of a suite become a table.
struct View {
    title: &'static str,
    /// What begins the names of its cases, up to the first name of a row or a column.
    prefix: &'static str,
    /// Whether the column comes before the row in a name.
    column_first: bool,
    /// Whether rows are widths in bits.
    bits: bool,
    cell: fn(&Case) -> Option<String>,
}

const VIEWS: [View; 4] = [
    View { title: "Sum, ms", prefix: "sum/", column_first: true, bits: true, cell: milliseconds },
    View {
        title: "Decoded to memory, GB/s read and written",
        prefix: "decode/",
        column_first: true,
        bits: true,
        cell: speed,
    },
    View { title: "Sum, ms (bits a value)", prefix: "", column_first: false, bits: false, cell: milliseconds_and_bits },
    View {
        title: "Decoded to memory, GB/s read and written",
        prefix: "decode/",
        column_first: false,
        bits: false,
        cell: speed,
    },
];

fn milliseconds(case: &Case) -> Option<String> {
    Some(format!("{:.3}", case.figure("device_ms")?))
}

fn milliseconds_and_bits(case: &Case) -> Option<String> {
    Some(format!("{:.3} ({:.2})", case.figure("device_ms")?, case.figure("bits_per_value")?))
}

fn speed(case: &Case) -> Option<String> {
    Some(format!("{:.0}", case.figure("gb_per_s")?))
}

/// The section of a file.
///
/// # Errors
/// A figure that every case of the suite has is absent; a suite that has no table here.
pub(super) fn section(report: &Report, name: &str) -> Result<String, String> {
    let (cases, linked) = (&report.results, format!("{}\n({}).\n", head(report), link(name)));
    let table = match report.suite.as_str() {
        "encodings" => encodings(cases),
        "encode" => {
            let columns = [("ms", "ms", 2), ("GB/s of plain values", "plain_gb_per_s", 0), ("bits a value", BITS, 2)];
            figures("case", &columns, cases)
        }
        "encode-cpu" => {
            let columns = [
                ("encode, GB/s", "encode_gb_per_s", 1),
                ("decode, GB/s", "decode_gb_per_s", 1),
                ("bits a value", BITS, 2),
            ];
            figures("case", &columns, cases)
        }
        "htree" => figures("case", &TREES, cases),
        "cube-operator" => {
            let columns = [
                ("one core, ms", "cpu_ms", 0),
                ("device, ms", "device_ms", 2),
                ("with transfers, ms", "warm_ms", 1),
                ("times one core", "speedup", 1),
                ("sorts", "sorts", 0),
                ("groups", "groups", 0),
            ];
            figures("case", &columns, cases)
        }
        "turns" => ratios(cases, ["plain", "encoded"], ["plain_ms", "auto_ms"], 3),
        "base-turns" => ratios(cases, ["base", "this"], ["base_ms", "this_ms"], 3),
        "first-runs" => ratios(cases, ["DataFusion", "first"], ["datafusion_ms", "auto_ms"], 0),
        "interrupts" => {
            let columns = [("interrupts", "interrupts", 0), ("median, ms", "median_ms", 0), ("most, ms", "most_ms", 0)];
            figures("statement", &columns, cases)
        }
        "start" => {
            let row = |case: &Case| (case.name.clone(), vec![cell(median(case, "times_ms"), 1)]);
            table("process", &["median, ms"], cases.iter().map(row))
        }
        other => return Err(format!("there is no table of suite {other}")),
    };
    Ok(format!("{linked}\n{table}"))
}

const BITS: &str = "bits_per_value";

/// Figures of H-trees.
const TREES: [(&str, &str, usize); 7] = [
    ("one core, ms", "cpu_ms", 1),
    ("device, ms", "device_ms", 3),
    ("with transfers, ms", "warm_ms", 3),
    ("times one core", "speedup", 1),
    ("floor, ms", "floor_ms", 3),
    ("paper, ms", "paper_ms", 1),
    ("nodes", "nodes", 0),
];

/// The cases of H-trees that have a limit, of all files.
pub(super) fn limited_trees(files: &Files) -> String {
    let cases = files.iter().flat_map(|(_, report)| &report.results);
    let limited: Vec<Case> = cases.filter(|case| case.figure("limit_ms").is_some()).cloned().collect();
    figures("case", &TREES[..6], &limited)
}

/// A table of figures: titles, names and digits behind the point. A case whose encoding was chosen names it.
fn figures(corner: &str, columns: &[(&str, &str, usize)], cases: &[Case]) -> String {
    let row = |case: &Case| {
        let chosen = case.text("encoding").map(|encoding| format!(": {encoding}")).unwrap_or_default();
        let cells = columns.iter().map(|(_, figure, digits)| cell(case.figure(figure), *digits));
        (format!("{}{chosen}", case.name), cells.collect())
    };
    let titles: Vec<&str> = columns.iter().map(|(title, ..)| *title).collect();
    table(corner, &titles, cases.iter().map(row))
}

/// The tables of the suite `encodings`, and the limits of decoding.
fn encodings(cases: &[Case]) -> String {
    let tables = VIEWS.iter().filter_map(|view| {
        let corner = if view.bits { "bits" } else { "values" };
        let is_empty = !cases.iter().any(|case| place(case, view).is_some());
        let cell = |case: &Case| (view.cell)(case).unwrap_or_default();
        (!is_empty).then(|| format!("{}:\n\n{}", view.title, pivot(corner, cases, |case| place(case, view), cell)))
    });
    let ceiling = |name| cases.iter().find(|case| case.name == name).and_then(speed);
    let ceilings = [
        ceiling("fill").map(|speed| format!("Numbers written, with nothing to read: {speed} GB/s.\n")),
        ceiling("copy").map(|speed| format!("Numbers copied, read and written: {speed} GB/s.\n")),
    ];
    tables.chain(ceilings.into_iter().flatten()).collect::<Vec<_>>().join("\n")
}

/// The row and the column of a case in a view.
fn place(case: &Case, view: &View) -> Option<(String, String)> {
    let (first, second) = case.name.strip_prefix(view.prefix)?.split_once('/')?;
    let (row, column) = if view.column_first { (second, first) } else { (first, second) };
    let is_width = second.bytes().all(|byte| byte.is_ascii_digit());
    let is_deeper = column.contains('/') || view.prefix.is_empty() && matches!(first, "sum" | "decode");
    (is_width == view.bits && !is_deeper).then(|| (row.to_string(), column.to_string()))
}

/// A table of the medians of two lists of times, and their ratio. The lines of whole suites have a ratio alone.
fn ratios(cases: &[Case], [rival, own]: [&str; 2], lists: [&str; 2], digits: usize) -> String {
    let row = |case: &Case| {
        let [rival, own] = lists.map(|list| median(case, list));
        let ratio = own.zip(rival).map(|(own, rival)| own / rival).or(case.figure("ratio"));
        let figure = case.text("figure").map(|figure| format!(", {}", figure.trim_end_matches("_ms")));
        let cells = vec![cell(rival, digits), cell(own, digits), cell(ratio, 2)];
        (format!("{}{}", case.name, figure.unwrap_or_default()), cells)
    };
    let titles = [format!("{rival}, ms"), format!("{own}, ms"), format!("{own} over {rival}")];
    table("case", &titles, cases.iter().map(row))
}

/// The median of a case's list of times, if it has one.
fn median(case: &Case, list: &str) -> Option<f64> {
    stats::median(case[list].as_array()?.iter().filter_map(serde_json::Value::as_f64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: serde_json::Value) -> String {
        section(&serde_json::from_value(value).unwrap(), "x.json").unwrap()
    }

    #[test]
    fn interrupts_are_counted() {
        let case = json!({"case": "GPU, loading", "interrupts": 9, "median_ms": 11.4, "most_ms": 80.6});
        let results = json!({"suite": "interrupts", "device": "D", "date": "2026-01-31", "results": [case]});
        let text = text(results);
        assert!(text.ends_with("|---|---:|---:|---:|\n| GPU, loading | 9 | 11 | 81 |\n"), "{text}");
    }

    #[test]
    fn first_runs_are_medians() {
        let case = json!({"case": "SSB, q1.1", "datafusion_ms": [100, 900, 200], "auto_ms": [10.2, 250, 700]});
        let results = json!({"suite": "first-runs", "device": "D", "date": "2026-01-31", "results": [case]});
        let text = text(results);
        assert!(text.ends_with("|---|---:|---:|---:|\n| SSB, q1.1 | 200 | 250 | 1.25 |\n"), "{text}");
    }

    #[test]
    fn turns_name_what_they_timed() {
        let case = json!({"case": "ssb/q1.1", "figure": "warm_ms", "base_ms": [2, 4, 3], "this_ms": [1.5, 1, 9]});
        let mean = json!({"case": "ssb", "figure": "warm_ms", "ratio": 0.75});
        let results = json!({"suite": "base-turns", "device": "D", "date": "2026-01-31", "results": [case, mean]});
        let text = text(results);
        let table = "| case | base, ms | this, ms | this over base |\n|---|---:|---:|---:|\n\
                     | ssb/q1.1, warm | 3.000 | 1.500 | 0.50 |\n| ssb, warm |  |  | 0.75 |\n";
        assert!(text.ends_with(table), "{text}");
    }

    #[test]
    fn encodings_are_side_by_side() {
        let case = |name: &str, ms: f64| json!({"case": name, "device_ms": ms, "bits_per_value": 2, "gb_per_s": 7});
        let results = json!({
            "suite": "encodings", "device": "D", "date": "2026-01-31", "params": {"rows": 9},
            "results": [
                case("sum/plain/4", 1.0), case("sum/packed/4", 0.5), case("sum/packed/8", 0.6), case("zipf/plain", 2.0),
                case("decode/plain/4", 3.0), case("decode/zipf/plain", 3.0),
            ],
        });
        let text = text(results);
        assert!(text.starts_with("**ENCODINGS on D**, rows 9, 2026-01-31\n([x.json]"), "{text}");
        assert!(text.contains("| bits | plain | packed |\n|---|---:|---:|\n| 4 | 1.000 | 0.500 |\n| 8 |  | 0.600 |\n"));
        assert!(text.contains("Sum, ms (bits a value):\n\n| values | plain |\n|---|---:|\n| zipf | 2.000 (2.00) |\n"));
        assert_eq!(text.matches("| plain |\n|---|---:|\n| zipf | 7 |\n").count(), 1, "{text}");
        assert_eq!(text.matches("| 4 | 7 |").count(), 1, "{text}");
    }
}
