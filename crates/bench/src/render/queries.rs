//! Tables of cases with one column a figure: queries beside other programs, and the benchmark cubes.

use super::Files;
use super::markdown::{LINE_MAX, RESULTS, cell, head, link, table as markdown};
use super::query_charts::{Times, query_times};
use super::text::rounded;
use crate::report::{Case, Loading, Memory, Report, Threads};
use crate::stats::geometric_mean;

/// The results of TPC-H that docs/benchmarks.md shows by query.
pub(super) const TPCH: &str = "tpch-h200-sf10.json";
/// The results that README shows: ours, and those of programs that were measured by themselves.
pub(super) const FRONT: [&str; 2] = ["ssb-h200-sf20.json", "ssb-rivals-h200-sf20.json"];
/// The figures whose means docs/benchmarks.md shows.
const MEANS: [&str; 8] = [
    "device_ms",
    "floor_ms",
    "warm_ms",
    "fresh_ms",
    "first_ms",
    "rivals/datafusion_ms",
    "rivals/duckdb_ms",
    "rivals/duckdb_first_ms",
];

/// A column: its title, its figure, and its digits behind the point.
struct Column {
    title: &'static str,
    figure: &'static str,
    factor: f64,
    digits: usize,
    /// Whether a geometric mean makes sense.
    mean: bool,
}

static COLUMNS: [Column; 19] = [
    count("rows", "rows"),
    count("relevant cells", "relevant_cells"),
    count("targets", "targets"),
    count("filled", "filled_targets"),
    Column { factor: 1e-9, digits: 2, ..count("additions, 10⁹", "additions") },
    Column { digits: 2, ..count("bytes a fact", "bytes_per_fact") },
    time("device, ms", "device_ms", 3),
    time("floor, ms", "floor_ms", 3),
    Column { factor: 100.0, ..count("share of peak, %", "share_of_peak") },
    time("warm, ms", "warm_ms", 2),
    time("fresh, ms", "fresh_ms", 2),
    time("cold, ms", "cold_ms", 0),
    time("first, ms", "first_ms", 0),
    time("DataFusion, ms", "rivals/datafusion_ms", 1),
    time("DataFusion first, ms", "rivals/datafusion_first_ms", 0),
    count("thesis, ms", "thesis_ms"),
    time("hand-written, ms", "rivals/handwritten_ms", 3),
    time("DuckDB, ms", "rivals/duckdb_ms", 1),
    time("DuckDB first, ms", "rivals/duckdb_first_ms", 0),
];

const fn count(title: &'static str, figure: &'static str) -> Column {
    Column { title, figure, factor: 1.0, digits: 0, mean: false }
}

const fn time(title: &'static str, figure: &'static str, digits: usize) -> Column {
    Column { title, figure, factor: 1.0, digits, mean: true }
}

/// The means that README tells.
pub(super) fn front_means(files: &Files) -> Result<String, String> {
    let of = |name: &str| files.iter().find(|file| file.0 == name).map(|file| &file.1);
    let [ours, others] = FRONT;
    let reports = of(ours).zip(of(others));
    let (report, others) = reports.ok_or_else(|| format!("{RESULTS}: README shows {ours} and {others}"))?;
    Ok(means(&query_times(report, Some(others))))
}

/// The means of all programs as a list.
fn means(times: &[Times]) -> String {
    let line = |times: &Times| {
        let when = times.date.as_ref().map(|date| format!(" ({date})")).unwrap_or_default();
        format!("- {}: **{} ms**{when}\n", times.name, rounded(times.mean()))
    };
    times.iter().map(line).collect()
}

/// The geometric means of each file over its queries, a line a file.
pub(super) fn means_by_suite(files: &Files) -> Result<String, String> {
    let shown = columns(&MEANS);
    let mut rows = Vec::new();
    for (name, report) in files {
        let date = report.date.as_ref().ok_or_else(|| format!("{RESULTS}/{name}: no 'date'"))?;
        let (suite, device, cases) = (report.suite.to_uppercase(), &report.device, &report.results);
        let (scale, count) = (&report.params["sf"], cases.len());
        let text = format!("{suite} at scale {scale}, {count} queries, {device}, {date}");
        rows.push((text, cells(&shown, |column| mean(cases, column))));
    }
    Ok(markdown("geometric mean", &titles(&shown), rows))
}

/// Some figures of each case of each file, for a page in `docs`.
pub(super) fn brief(files: &Files, figures: &[&str]) -> Result<String, String> {
    let table = |(name, report): &(String, Report)| {
        let rows = rows(&report.results, &columns(figures));
        format!("{};\n[{name}](../{RESULTS}/{name}).\n\n{rows}", head(report))
    };
    Ok(files.iter().map(table).collect::<Vec<_>>().join("\n"))
}

/// One file as a heading line and a table.
pub(super) fn table(report: &Report, name: &str) -> Result<String, String> {
    let cases = &report.results;
    if cases.is_empty() {
        return Err("no 'results'".into());
    }
    let head = match &report.threads {
        Some(ran) => head(report).replacen("**,", &format!(", {} threads**,", ran.threads), 1),
        None => head(report),
    };
    let checked = match cases.iter().filter(|case| case.verified == Some(true)).count() {
        0 => "answers not compared".to_string(),
        count => format!("{count} of {} answers equal the CPU's, row by row", cases.len()),
    };
    let is_shown = |column: &&Column| cases.iter().any(|case| case.figure(column.figure).is_some());
    let shown: Vec<&Column> = COLUMNS.iter().filter(is_shown).collect();
    let link = link(name);
    let gap = if checked.len() + link.len() > LINE_MAX { "\n" } else { " " };
    let mut text = format!("{head};\n{checked}{gap}({link}).\n\n{}", rows(cases, &shown));
    let lines = [
        duckdb(report),
        report.loading.as_ref().map(loading),
        report.memory.as_ref().filter(|memory| memory.columns_bytes > 0).map(memory),
        report.threads.as_ref().map(threads),
    ];
    text.extend(lines.into_iter().flatten().map(|line| format!("\n{line}\n")));
    Ok(text)
}

fn columns(figures: &[&str]) -> Vec<&'static Column> {
    figures.iter().filter_map(|figure| COLUMNS.iter().find(|column| column.figure == *figure)).collect()
}

/// A line for each case, and one for the means.
fn rows(cases: &[Case], shown: &[&Column]) -> String {
    let figure = |case: &Case, column: &Column| Some(case.figure(column.figure)? * column.factor);
    let all = cases.iter().map(|case| (case.name.clone(), cells(shown, |column| figure(case, column))));
    let means = ("geometric mean".to_string(), cells(shown, |column| mean(cases, column)));
    markdown("case", &titles(shown), all.chain([means]))
}

fn titles(shown: &[&Column]) -> Vec<&'static str> {
    shown.iter().map(|column| column.title).collect()
}

fn cells(shown: &[&Column], figure: impl Fn(&Column) -> Option<f64>) -> Vec<String> {
    shown.iter().map(|column| cell(figure(column), column.digits)).collect()
}

/// The mean of a column that every case has.
fn mean(cases: &[Case], column: &Column) -> Option<f64> {
    geometric_mean(cases.iter().map(|case| case.figure(column.figure))).filter(|_| column.mean)
}

/// What DuckDB ran over.
fn duckdb(report: &Report) -> Option<String> {
    let known = report.rivals.get("duckdb")?;
    let (version, threads) = (known["version"].as_str()?, known["threads"].as_u64()?);
    let loaded = known["load_ms"].as_f64().map(|ms| format!(", filled in {:.1} s", ms / 1e3)).unwrap_or_default();
    let over = if known["files"] == true { "the files".into() } else { format!("its own tables in memory{loaded}") };
    let sums = known["sums"] == true;
    let compared = if sums { ",\nwhose rows and sums of columns its answers share" } else { "" };
    Some(format!("DuckDB {version}: {threads} threads, over {over}{compared}."))
}

/// How fast columns came onto the device.
fn loading(loading: &Loading) -> String {
    let (gigabytes, seconds) = (loading.bytes as f64 / 1e9, loading.ms / 1e3);
    format!(
        "Loading: {gigabytes:.1} GB of plain values in {seconds:.2} s, decoded, sent and encoded: {:.2} GB/s a core.",
        loading.gb_per_s_core
    )
}

/// What columns and tables take of the device's memory, and how much of it was held.
fn memory(memory: &Memory) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "Device memory: {:.1} MB of columns, up to {:.1} MB of tables and results; {:.1} MB held in the end, {:.2} \
         times\nthat, and up to {:.1} MB while columns were loaded; {} allocations in warm runs.",
        megabytes(memory.columns_bytes),
        megabytes(memory.tables_bytes),
        megabytes(memory.held_bytes),
        memory.held_bytes as f64 / (memory.columns_bytes + memory.tables_bytes) as f64,
        megabytes(memory.held_peak_bytes),
        memory.warm_driver_allocations,
    )
}

/// What threads did side by side.
fn threads(ran: &Threads) -> String {
    let same = if ran.verified { "all answers the same" } else { "answers NOT the same" };
    let Threads { threads, statements, ms, statements_per_s, .. } = ran;
    format!("{threads} threads: {statements} statements in {ms:.0} ms, {statements_per_s:.1} a second, {same}.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(value: Value) -> Report {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn memory_and_threads_follow_the_table() {
        let results = report(json!({
            "suite": "ssb", "device": "D", "params": {}, "results": [{"case": "q1.1", "rows": 1}],
            "loading": {"bytes": 4_370_000_000u64, "ms": 899.0, "gb_per_s_core": 0.799},
            "memory": {
                "columns_bytes": 90_000_000, "tables_bytes": 10_000_000, "held_bytes": 105_000_000,
                "held_peak_bytes": 150_000_000, "warm_driver_allocations": 0,
            },
            "threads": {"threads": 8, "statements": 104, "ms": 2000.0, "statements_per_s": 52.0, "verified": true},
        }));
        let table = table(&results, "x.json").unwrap();
        assert!(table.starts_with("**SSB on D, 8 threads**"), "{table}");
        let lines: Vec<&str> = table.lines().rev().take(6).collect();
        let loading = "Loading: 4.4 GB of plain values in 0.90 s, decoded, sent and encoded: 0.80 GB/s a core.";
        assert_eq!(lines[5], loading);
        assert_eq!(lines[0], "8 threads: 104 statements in 2000 ms, 52.0 a second, all answers the same.");
        assert_eq!(lines[2], "that, and up to 150.0 MB while columns were loaded; 0 allocations in warm runs.");
        assert!(lines[3].ends_with("105.0 MB held in the end, 1.05 times"), "{table}");
    }

    #[test]
    fn means_of_another_day_have_a_date() {
        let times = |name: &str, date: Option<&str>| Times {
            name: name.into(),
            ms: vec![1.0, 4.0],
            date: date.map(str::to_string),
        };
        let list = means(&[times("a", None), times("b", Some("2026-01-31"))]);
        assert_eq!(list, "- a: **2.00 ms**\n- b: **2.00 ms** (2026-01-31)\n");
    }

    #[test]
    fn a_page_of_the_docs_has_means_and_some_columns() {
        let case = |name: &str, device: f64, duckdb: f64| {
            let rivals = json!({"duckdb_ms": duckdb});
            json!({"case": name, "device_ms": device, "warm_ms": 9.0, "rivals": rivals})
        };
        let results = report(json!({
            "suite": "ssb", "device": "D", "date": "2026-01-31", "params": {"sf": 20},
            "results": [case("q1.1", 1.0, 10.0), case("q1.2", 4.0, 40.0)],
        }));
        let files = [("x.json".to_string(), results)];
        let text = means_by_suite(&files).unwrap();
        let mean = "| SSB at scale 20, 2 queries, D, 2026-01-31 | 2.000 |  | 9.00 |  |  |  | 20.0 |  |\n";
        assert!(text.starts_with("| geometric mean | device, ms | floor, ms |") && text.ends_with(mean), "{text}");
        let text = brief(&files, &["rivals/duckdb_ms", "device_ms"]).unwrap();
        assert!(text.starts_with("**SSB on D**, sf 20, 2026-01-31;\n[x.json](../bench/results/x.json).\n"), "{text}");
        assert!(
            text.contains("| case | DuckDB, ms | device, ms |\n|---|---:|---:|\n| q1.1 | 10.0 | 1.000 |\n"),
            "{text}"
        );
        let undated = report(json!({"suite": "ssb", "device": "D", "results": []}));
        assert!(means_by_suite(&[("x.json".to_string(), undated)]).is_err());
    }

    #[test]
    fn a_table_has_what_was_measured() {
        let results = report(json!({
            "suite": "ssb", "device": "D", "date": "2026-01-31", "params": {"sf": 20},
            "results": [
                {"case": "q1.1", "rows": 1, "device_ms": 0.5, "warm_ms": 1.0, "fresh_ms": 1.5, "verified": true},
                {"case": "q1.2", "rows": 1, "device_ms": 2.0, "verified": true, "rivals": {"duckdb_ms": 40.0}},
            ],
            "rivals": {"duckdb": {"version": "2.0.1", "threads": 16, "load_ms": 12_340.0}},
        }));
        let table = table(&results, "x.json").unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "**SSB on D**, sf 20, 2026-01-31;");
        assert!(lines[1].starts_with("2 of 2 answers equal the CPU's"), "{table}");
        assert!(lines[1].ends_with(" ([x.json](x.json))."), "{table}");
        assert_eq!(lines[3], "| case | rows | device, ms | warm, ms | fresh, ms | DuckDB, ms |");
        assert_eq!(lines[5], "| q1.1 | 1 | 0.500 | 1.00 | 1.50 |  |");
        assert_eq!(lines[6], "| q1.2 | 1 | 2.000 |  |  | 40.0 |");
        assert_eq!(lines[7], "| geometric mean |  | 1.000 |  |  |  |");
        assert_eq!(lines[9], "DuckDB 2.0.1: 16 threads, over its own tables in memory, filled in 12.3 s.");
    }
}
