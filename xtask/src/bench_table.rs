//! Tables of measurements, made from `bench/results/*.json` and nothing else, and the means that README tells.
//!
//! A figure that a file does not hold is an empty cell, and a column no case has is left out.

use std::fs;

use serde_json::Value;
use warpcube_figures::{Figure, Times, query_times, rounded};

use crate::docs::{no_place, replace, write};
use crate::process::{Result, root};
use crate::{cube_tables, measured, primitives, scheme_tables};

/// A page, or a part of one, that is made of results.
struct Page {
    path: &'static str,
    /// What the mark of its place calls.
    mark: &'static str,
    /// The suites whose files it shows, and which of them by name.
    suites: &'static [&'static str],
    is_shown: fn(&str) -> bool,
    /// Its text, of these files.
    text: fn(&[(String, Value)]) -> Result<String>,
}

const PAGES: [Page; 12] = [
    Page { path: "README.md", mark: CHORE, suites: &["ssb", "ssb-rivals"], is_shown: is_front, text: front_means },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (means)",
        suites: &["ssb", "tpch"],
        is_shown: |name| MEANS.contains(&name),
        text: means_by_suite,
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (tpch)",
        suites: &["tpch"],
        is_shown: |name| name == TPCH,
        text: |files| brief(files, &["/device_ms", "/warm_ms", "/rivals/datafusion_ms", "/rivals/duckdb_ms"]),
    },
    Page {
        path: "docs/benchmarks.md",
        mark: "bench-table (cubes)",
        suites: &["cube"],
        is_shown: |name| name == "cube-h200.json",
        text: |files| {
            brief(files, &["/relevant_cells", "/targets", "/device_ms", "/floor_ms", "/warm_ms", "/thesis_ms"])
        },
    },
    by_file("bench/results/queries.md", &["ssb", "tpch", "topk", "ssb-rivals"], |_| true),
    by_file("bench/results/primitives-h200.md", &["primitives"], |name| !is_h100(name)),
    by_file("bench/results/primitives-h100.md", &["primitives"], is_h100),
    by_file("bench/results/cubes.md", &["cube"], |_| true),
    Page { text: scheme_tables::tables, ..by_file("bench/results/schemes.md", &["schemes"], |_| true) },
    by_file("bench/results/encodings.md", &["encodings", "encode", "encode-cpu"], |_| true),
    by_file("bench/results/latency.md", &["first-runs", "interrupts", "start"], |_| true),
    by_file("bench/results/turns.md", &["turns", "base-turns"], |_| true),
];
const RESULTS: &str = "bench/results";
const CHORE: &str = "bench-table";
/// The results of TPC-H that docs/benchmarks.md shows by query.
pub(crate) const TPCH: &str = "tpch-h200-sf10.json";
/// The results whose means docs/benchmarks.md shows, and the figures that these are of.
const MEANS: [&str; 6] = [
    "ssb-h200-sf20.json",
    "ssb-h200-sf100.json",
    "ssb-h100-sf20.json",
    TPCH,
    "tpch-h200-sf100.json",
    "tpch-h100-sf10.json",
];
const MEANS_OF: [&str; 8] = [
    "/device_ms",
    "/floor_ms",
    "/warm_ms",
    "/fresh_ms",
    "/first_ms",
    "/rivals/datafusion_ms",
    "/rivals/duckdb_ms",
    "/rivals/duckdb_first_ms",
];
/// The results that README shows: ours, and those of programs that were measured by themselves.
const FRONT_RESULTS: [&str; 2] = ["ssb-h200-sf20.json", "ssb-rivals-h200-sf20.json"];
/// Longest line of a head.
const LINE_MAX: usize = 112;

/// A column: its title, where its figure is in a case (a pointer), and its digits after the point.
struct Column {
    title: &'static str,
    figure: &'static str,
    factor: f64,
    digits: usize,
    /// Whether a geometric mean makes sense.
    mean: bool,
}

static COLUMNS: [Column; 19] = [
    Column { title: "rows", figure: "/rows", factor: 1.0, digits: 0, mean: false },
    Column { title: "relevant cells", figure: "/relevant_cells", factor: 1.0, digits: 0, mean: false },
    Column { title: "targets", figure: "/targets", factor: 1.0, digits: 0, mean: false },
    Column { title: "filled", figure: "/filled_targets", factor: 1.0, digits: 0, mean: false },
    Column { title: "additions, 10⁹", figure: "/additions", factor: 1e-9, digits: 2, mean: false },
    Column { title: "bytes a fact", figure: "/bytes_per_fact", factor: 1.0, digits: 2, mean: false },
    Column { title: "device, ms", figure: "/device_ms", factor: 1.0, digits: 3, mean: true },
    Column { title: "floor, ms", figure: "/floor_ms", factor: 1.0, digits: 3, mean: true },
    Column { title: "share of peak, %", figure: "/share_of_peak", factor: 100.0, digits: 0, mean: false },
    Column { title: "warm, ms", figure: "/warm_ms", factor: 1.0, digits: 2, mean: true },
    Column { title: "fresh, ms", figure: "/fresh_ms", factor: 1.0, digits: 2, mean: true },
    Column { title: "cold, ms", figure: "/cold_ms", factor: 1.0, digits: 0, mean: true },
    Column { title: "first, ms", figure: "/first_ms", factor: 1.0, digits: 0, mean: true },
    Column { title: "DataFusion, ms", figure: "/rivals/datafusion_ms", factor: 1.0, digits: 1, mean: true },
    Column { title: "DataFusion first, ms", figure: "/rivals/datafusion_first_ms", factor: 1.0, digits: 0, mean: true },
    Column { title: "thesis, ms", figure: "/thesis_ms", factor: 1.0, digits: 0, mean: false },
    Column { title: "hand-written, ms", figure: "/rivals/handwritten_ms", factor: 1.0, digits: 3, mean: true },
    Column { title: "DuckDB, ms", figure: "/rivals/duckdb_ms", factor: 1.0, digits: 1, mean: true },
    Column { title: "DuckDB first, ms", figure: "/rivals/duckdb_first_ms", factor: 1.0, digits: 0, mean: true },
];

/// A page that has a section for each file.
const fn by_file(path: &'static str, suites: &'static [&'static str], is_shown: fn(&str) -> bool) -> Page {
    Page { path, mark: CHORE, suites, is_shown, text: tables }
}

fn is_front(name: &str) -> bool {
    FRONT_RESULTS.contains(&name)
}

fn is_h100(name: &str) -> bool {
    name.contains("-h100")
}

/// Writes the tables, or with `check` says whether they differ.
pub(crate) fn run(check: bool) -> Result<()> {
    if check {
        return differences()?.into_iter().next().map_or(Ok(()), Err);
    }
    for made in PAGES {
        let text = made.replaced(&page(made.path)?)?.ok_or_else(|| no_place(made.path, made.mark))?;
        write(made.path, &text)?;
    }
    Ok(())
}

/// Whether the pages' tables are what the results give.
pub(crate) fn differences() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for made in PAGES {
        let (path, page) = (made.path, page(made.path)?);
        match made.replaced(&page)? {
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
    fn replaced(&self, page: &str) -> Result<Option<String>> {
        let mut files = read(self.suites)?;
        files.retain(|(name, _)| (self.is_shown)(name));
        let made = match files.is_empty() {
            true => "No results are recorded yet.\n".into(),
            false => (self.text)(&files)?,
        };
        Ok(replace(page, self.mark, &made))
    }
}

fn page(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The results of some suites with the names of their files, by name.
pub(crate) fn read(suites: &[&str]) -> Result<Vec<(String, Value)>> {
    let mut paths: Vec<_> = root().join(RESULTS).read_dir().into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let failed = |what: String| format!("{RESULTS}/{name}: {what}");
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let results: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if results["suite"].as_str().is_some_and(|suite| suites.contains(&suite)) {
            files.push((name, results));
        }
    }
    Ok(files)
}

/// The results that README shows.
pub(crate) fn front() -> Result<(Value, Value)> {
    front_of(&read(&["ssb", "ssb-rivals"])?)
}

fn front_of(files: &[(String, Value)]) -> Result<(Value, Value)> {
    let of = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.clone());
    let [ours, others] = FRONT_RESULTS;
    of(ours).zip(of(others)).ok_or_else(|| format!("{RESULTS}: README shows {ours} and {others}"))
}

/// The means that README tells.
fn front_means(files: &[(String, Value)]) -> Result<String> {
    let (report, others) = front_of(files)?;
    Ok(means(&query_times(&report, &others)))
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
fn means_by_suite(files: &[(String, Value)]) -> Result<String> {
    let (mut texts, mut reports) = (Vec::new(), Vec::new());
    for (name, results) in files {
        let text = |key: &str| results[key].as_str().ok_or_else(|| format!("{RESULTS}/{name}: no '{key}'"));
        let cases = results["results"].as_array().ok_or_else(|| format!("{RESULTS}/{name}: no 'results'"))?;
        let (suite, device, date) = (text("suite")?.to_uppercase(), text("device")?, text("date")?);
        let scale = &results["params"]["sf"];
        texts.push(format!("{suite} at scale {scale}, {} queries, {device}, {date}", cases.len()));
        reports.push(cases);
    }
    let shown = columns(&MEANS_OF);
    let mut table = titles("geometric mean", &shown);
    for (text, cases) in texts.iter().zip(reports) {
        table.push_str(&line(text, &shown, |column| geometric_mean(cases, column)));
    }
    Ok(table)
}

/// Some figures of each case of each file, for a page in `docs`.
fn brief(files: &[(String, Value)], figures: &[&str]) -> Result<String> {
    let mut tables = Vec::new();
    for (name, results) in files {
        let cases = results["results"].as_array().ok_or_else(|| format!("{RESULTS}/{name}: no 'results'"))?;
        let rows = rows(cases, &columns(figures))?;
        tables.push(format!("{};\n[{name}](../{RESULTS}/{name}).\n\n{rows}", head(results)?));
    }
    Ok(tables.join("\n"))
}

fn columns(figures: &[&str]) -> Vec<&'static Column> {
    figures.iter().filter_map(|figure| COLUMNS.iter().find(|column| column.figure == *figure)).collect()
}

/// A section for each file.
fn tables(files: &[(String, Value)]) -> Result<String> {
    let mut tables = Vec::new();
    for (name, results) in files {
        let made = match results["suite"].as_str().unwrap_or_default() {
            "encodings" => measured::encodings(results, name),
            "encode" => measured::encode(results, name),
            "encode-cpu" => measured::encode_cpu(results, name),
            "turns" => measured::turns(results, name),
            "base-turns" => measured::base_turns(results, name),
            "first-runs" => measured::first_runs(results, name),
            "start" => measured::start(results, name),
            "interrupts" => measured::interrupts(results, name),
            "primitives" => primitives::tables(results, name),
            // Behind the others.
            "cube" if is_thesis(results) => continue,
            "cube" if results["params"]["algorithms"].is_array() => algorithms(results, name),
            _ => table(results, name),
        };
        tables.push(made.map_err(|what| format!("{RESULTS}/{name}: {what}"))?);
    }
    if files.iter().any(|(_, results)| results["suite"] == "cube") {
        let measured = files.iter().find(|(_, results)| is_thesis(results));
        tables.push(cube_tables::tables(measured.map(|(name, results)| (results, name.as_str())))?);
    }
    Ok(tables.join("\n"))
}

/// True if a file of the suite `cube` has what the thesis's tables show.
fn is_thesis(results: &Value) -> bool {
    results["params"]["tables"] == true
}

/// A file's suite, device, parameters and when they were measured.
pub(crate) fn head(results: &Value) -> Result<String> {
    let text = |key: &str| results[key].as_str();
    let suite = text("suite").ok_or("no 'suite'")?;
    let device = text("device").ok_or("no 'device'")?;
    let mut head = format!("**{} on {device}**", suite.to_uppercase());
    for (name, value) in results["params"].as_object().into_iter().flatten() {
        let value = value.to_string();
        match value.trim_matches('"') {
            "" | "false" | "null" => {}
            value => head.push_str(&format!(", {name} {value}")),
        }
    }
    let mut when = Vec::new();
    for (what, key) in [("CUDA driver ", "driver"), ("", "date"), ("commit ", "commit")] {
        when.extend(text(key).map(|value| format!("{what}{value}")));
    }
    let when = when.join(", ");
    let gap = if head.len() + when.len() > LINE_MAX { ",\n" } else { ", " };
    Ok(head + gap + &when)
}

/// A link to a file of results, for a page beside it.
pub(crate) fn link(name: &str) -> String {
    format!("[{name}]({name})")
}

/// A figure of docs/figures, for a page beside the results.
pub(crate) fn image(figure: &Figure) -> String {
    format!("![{}](../../docs/figures/{}.svg)\n", figure.title, figure.name)
}

/// Milliseconds on the device of each algorithm over each query of a cube.
fn algorithms(results: &Value, name: &str) -> Result<String> {
    let cases = results["results"].as_array().filter(|cases| !cases.is_empty()).ok_or("no 'results'")?;
    let (mut queries, mut rows): (Vec<&str>, Vec<(&str, Vec<String>)>) = (Vec::new(), Vec::new());
    for case in cases {
        let text = case["case"].as_str().ok_or("a case without a name")?;
        let (query, algorithm) = text.split_once('/').unwrap_or((text, "gpu-contract"));
        if !queries.contains(&query) {
            queries.push(query);
        }
        let row = rows.iter().position(|(known, _)| *known == algorithm).unwrap_or_else(|| {
            rows.push((algorithm, Vec::new()));
            rows.len() - 1
        });
        let milliseconds = case["device_ms"].as_f64().filter(|_| case["verified"] == true);
        rows[row].1.push(milliseconds.map_or(String::new(), |ms| format!("{ms:.*}", if ms < 10.0 { 2 } else { 0 })));
    }
    let mut text = format!("{};\n{}.\n\n| algorithm | {} |\n", head(results)?, link(name), queries.join(" | "));
    text.push_str(&format!("|---|{}\n", "---:|".repeat(queries.len())));
    for (algorithm, cells) in rows {
        text.push_str(&format!("| `{algorithm}` | {} |\n", cells.join(" | ")));
    }
    Ok(text)
}

/// One file as a heading line and a table.
fn table(results: &Value, name: &str) -> Result<String> {
    let cases = results["results"].as_array().filter(|cases| !cases.is_empty()).ok_or("no 'results'")?;
    let head = match results["threads"]["threads"].as_u64() {
        Some(threads) => head(results)?.replacen("**,", &format!(", {threads} threads**,"), 1),
        None => head(results)?,
    };
    let checked = match cases.iter().filter(|case| case["verified"] == true).count() {
        0 => "answers not compared".to_string(),
        count => format!("{count} of {} answers equal the CPU's, row by row", cases.len()),
    };
    let shown: Vec<&Column> =
        COLUMNS.iter().filter(|column| cases.iter().any(|case| figure(case, column).is_some())).collect();
    let link = link(name);
    let gap = if checked.len() + link.len() > LINE_MAX { "\n" } else { " " };
    let mut table = format!("{head};\n{checked}{gap}({link}).\n\n");
    table.push_str(&rows(cases, &shown)?);
    table.extend(rival(&results["rivals"]["duckdb"]).map(|line| format!("\n{line}\n")));
    table.extend(loading(&results["loading"]).map(|line| format!("\n{line}\n")));
    table.extend(memory(&results["memory"]).map(|line| format!("\n{line}\n")));
    table.extend(threads(&results["threads"]).map(|line| format!("\n{line}\n")));
    Ok(table)
}

/// A line for each case, and one for the means.
fn rows(cases: &[Value], shown: &[&Column]) -> Result<String> {
    let mut table = titles("case", shown);
    for case in cases {
        let name = case["case"].as_str().ok_or("a case without a name")?;
        table.push_str(&line(name, shown, |column| figure(case, column)));
    }
    table.push_str(&line("geometric mean", shown, |column| geometric_mean(cases, column)));
    Ok(table)
}

fn titles(first: &str, shown: &[&Column]) -> String {
    let titles: String = shown.iter().map(|column| format!(" {} |", column.title)).collect();
    format!("| {first} |{titles}\n|---|{}\n", "---:|".repeat(shown.len()))
}

fn line(name: &str, shown: &[&Column], figure: impl Fn(&Column) -> Option<f64>) -> String {
    let cell = |column: &&Column| match figure(column) {
        Some(figure) => format!(" {figure:.*} |", column.digits),
        None => "  |".into(),
    };
    format!("| {name} |{}\n", shown.iter().map(cell).collect::<String>())
}

/// What DuckDB ran over.
fn rival(duckdb: &Value) -> Option<String> {
    let (version, threads) = (duckdb["version"].as_str()?, duckdb["threads"].as_u64()?);
    let loaded = duckdb["load_ms"].as_f64().map(|ms| format!(", filled in {:.1} s", ms / 1e3)).unwrap_or_default();
    let over = if duckdb["files"] == true { "the files".into() } else { format!("its own tables in memory{loaded}") };
    let sums = duckdb["sums"] == true;
    let compared = if sums { ",\nwhose rows and sums of columns its answers share" } else { "" };
    Some(format!("DuckDB {version}: {threads} threads, over {over}{compared}."))
}

/// How fast columns came onto the device.
fn loading(loading: &Value) -> Option<String> {
    let (bytes, time) = (loading["bytes"].as_f64()?, loading["ms"].as_f64()?);
    let speed = loading["gb_per_s_core"].as_f64()?;
    let (gigabytes, seconds) = (bytes / 1e9, time / 1e3);
    Some(format!(
        "Loading: {gigabytes:.1} GB of plain values in {seconds:.2} s, decoded, sent and encoded: {speed:.2} GB/s a \
         core."
    ))
}

/// What columns and tables take of the device's memory, and how much of it was held.
fn memory(memory: &Value) -> Option<String> {
    let bytes = |name: &str| memory[name].as_u64().map(|bytes| bytes as f64);
    let (columns, tables) = (bytes("columns_bytes")?, bytes("tables_bytes")?);
    let (held, peak) = (bytes("held_bytes")?, bytes("held_peak_bytes")?);
    let asked = memory["warm_driver_allocations"].as_u64()?;
    (columns > 0.0).then(|| {
        format!(
            "Device memory: {:.1} MB of columns, up to {:.1} MB of tables and results; {:.1} MB held in the end, {:.2} \
             times\nthat, and up to {:.1} MB while columns were loaded; {asked} allocations in warm runs.",
            columns / 1e6,
            tables / 1e6,
            held / 1e6,
            held / (columns + tables),
            peak / 1e6,
        )
    })
}

/// What threads did side by side.
fn threads(ran: &Value) -> Option<String> {
    let (threads, statements) = (ran["threads"].as_u64()?, ran["statements"].as_u64()?);
    let (time, rate) = (ran["ms"].as_f64()?, ran["statements_per_s"].as_f64()?);
    let same = if ran["verified"] == true { "all answers the same" } else { "answers NOT the same" };
    Some(format!("{threads} threads: {statements} statements in {time:.0} ms, {rate:.1} a second, {same}."))
}

fn figure(case: &Value, column: &Column) -> Option<f64> {
    Some(case.pointer(column.figure)?.as_f64()? * column.factor)
}

/// The mean of a column that every case has.
fn geometric_mean(cases: &[Value], column: &Column) -> Option<f64> {
    if !column.mean {
        return None;
    }
    let logarithms = cases.iter().map(|case| figure(case, column).filter(|figure| *figure > 0.0).map(f64::ln));
    let sum: f64 = logarithms.collect::<Option<Vec<f64>>>()?.iter().sum();
    Some((sum / cases.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn memory_and_threads_follow_the_table() {
        let results = json!({
            "suite": "ssb", "device": "D", "params": {}, "results": [{"case": "q1.1", "rows": 1}],
            "loading": {"bytes": 4_370_000_000u64, "ms": 899.0, "gb_per_s_core": 0.799},
            "memory": {
                "columns_bytes": 90_000_000, "tables_bytes": 10_000_000, "held_bytes": 105_000_000,
                "held_peak_bytes": 150_000_000, "warm_driver_allocations": 0,
            },
            "threads": {"threads": 8, "statements": 104, "ms": 2000.0, "statements_per_s": 52.0, "verified": true},
        });
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
        let results = json!({
            "suite": "ssb", "device": "D", "date": "2026-01-31", "params": {"sf": 20},
            "results": [case("q1.1", 1.0, 10.0), case("q1.2", 4.0, 40.0)],
        });
        let files = [("x.json".to_string(), results)];
        let text = means_by_suite(&files).unwrap();
        let mean = "| SSB at scale 20, 2 queries, D, 2026-01-31 | 2.000 |  | 9.00 |  |  |  | 20.0 |  |\n";
        assert!(text.starts_with("| geometric mean | device, ms | floor, ms |") && text.ends_with(mean), "{text}");
        let text = brief(&files, &["/rivals/duckdb_ms", "/device_ms"]).unwrap();
        assert!(text.starts_with("**SSB on D**, sf 20, 2026-01-31;\n[x.json](../bench/results/x.json).\n"), "{text}");
        assert!(
            text.contains("| case | DuckDB, ms | device, ms |\n|---|---:|---:|\n| q1.1 | 10.0 | 1.000 |\n"),
            "{text}"
        );
        assert!(means_by_suite(&[("x.json".to_string(), json!({"suite": "ssb"}))]).is_err());
    }

    #[test]
    fn a_table_has_what_was_measured() {
        let results = json!({
            "suite": "ssb", "device": "D", "date": "2026-01-31", "params": {"sf": 20},
            "results": [
                {"case": "q1.1", "rows": 1, "device_ms": 0.5, "warm_ms": 1.0, "fresh_ms": 1.5, "verified": true},
                {"case": "q1.2", "rows": 1, "device_ms": 2.0, "verified": true, "rivals": {"duckdb_ms": 40.0}},
            ],
            "rivals": {"duckdb": {"version": "2.0.1", "threads": 16, "load_ms": 12_340.0}},
        });
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
