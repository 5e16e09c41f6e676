//! Measurements of kernels as tables: encodings across, widths or distributions down.

use serde_json::Value;

use crate::bench_table::{head, link};
use crate::process::Result;

/// How cases of a suite become a table.
struct View {
    title: &'static str,
    /// What begins the names of its cases, up to the first name of a row or a column.
    prefix: &'static str,
    /// Whether the column comes before the row in a name.
    column_first: bool,
    /// Whether rows are widths in bits.
    bits: bool,
    cell: fn(&Value) -> Option<String>,
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

fn milliseconds(case: &Value) -> Option<String> {
    Some(format!("{:.3}", case["device_ms"].as_f64()?))
}

fn milliseconds_and_bits(case: &Value) -> Option<String> {
    Some(format!("{:.3} ({:.2})", case["device_ms"].as_f64()?, case["bits_per_value"].as_f64()?))
}

fn speed(case: &Value) -> Option<String> {
    Some(format!("{:.0}", case["gb_per_s"].as_f64()?))
}

/// The tables of a file of the suite `encodings`.
pub(crate) fn encodings(results: &Value, name: &str) -> Result<String> {
    let cases = results["results"].as_array().ok_or("no 'results'")?;
    let mut text = format!("{}\n({}).\n", head(results)?, link(name));
    for view in &VIEWS {
        if let Some(table) = pivot(cases, view) {
            text.push_str(&format!("\n{}:\n\n{table}", view.title));
        }
    }
    let ceiling = |name| cases.iter().find(|case| case["case"] == name).and_then(speed);
    text.extend(ceiling("fill").map(|speed| format!("\nNumbers written, with nothing to read: {speed} GB/s.\n")));
    text.extend(ceiling("copy").map(|speed| format!("\nNumbers copied, read and written: {speed} GB/s.\n")));
    Ok(text)
}

/// The row and the column of a case in a view.
fn place<'a>(case: &'a Value, view: &View) -> Option<(&'a str, &'a str)> {
    let (first, second) = case["case"].as_str()?.strip_prefix(view.prefix)?.split_once('/')?;
    let (row, column) = if view.column_first { (second, first) } else { (first, second) };
    let is_width = second.bytes().all(|byte| byte.is_ascii_digit());
    let is_deeper = column.contains('/') || view.prefix.is_empty() && matches!(first, "sum" | "decode");
    (is_width == view.bits && !is_deeper).then_some((row, column))
}

fn pivot(cases: &[Value], view: &View) -> Option<String> {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for (row, column) in cases.iter().filter_map(|case| place(case, view)) {
        if !rows.contains(&row) {
            rows.push(row);
        }
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let corner = if view.bits { "bits" } else { "values" };
    let mut table = format!("| {corner} | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()));
    for row in rows {
        table.push_str(&format!("| {row} |"));
        for column in &columns {
            let case = cases.iter().find(|case| place(case, view) == Some((row, *column)));
            table.push_str(&format!(" {} |", case.and_then(view.cell).unwrap_or_default()));
        }
        table.push('\n');
    }
    Some(table)
}

/// The table of a file of the suite `encode`.
pub(crate) fn encode(results: &Value, name: &str) -> Result<String> {
    let cases = results["results"].as_array().ok_or("no 'results'")?;
    let mut text = format!("{}\n({}).\n\n", head(results)?, link(name));
    text.push_str("| case | ms | GB/s of plain values | bits a value |\n|---|---:|---:|---:|\n");
    for case in cases {
        let figure = |key: &str, digits: usize| case[key].as_f64().map(|figure| format!("{figure:.digits$}"));
        let cells = [figure("ms", 2), figure("plain_gb_per_s", 0), figure("bits_per_value", 2)];
        let cells = cells.map(Option::unwrap_or_default).join(" | ");
        let encoding = case["encoding"].as_str().map(|encoding| format!(": {encoding}")).unwrap_or_default();
        text.push_str(&format!("| {}{encoding} | {cells} |\n", name_of(case)?));
    }
    Ok(text)
}

/// The table of a file of the suite `encode-cpu`.
pub(crate) fn encode_cpu(results: &Value, name: &str) -> Result<String> {
    let mut text = format!("{}\n({}).\n\n", head(results)?, link(name));
    text.push_str("| case | encode, GB/s | decode, GB/s | bits a value |\n|---|---:|---:|---:|\n");
    for case in results["results"].as_array().ok_or("no 'results'")? {
        let figure = |key: &str, digits: usize| case[key].as_f64().map(|figure| format!("{figure:.digits$}"));
        let cells = [figure("encode_gb_per_s", 1), figure("decode_gb_per_s", 1), figure("bits_per_value", 2)];
        let cells = cells.map(Option::unwrap_or_default).join(" | ");
        text.push_str(&format!("| {} | {cells} |\n", name_of(case)?));
    }
    Ok(text)
}

fn name_of(case: &Value) -> Result<&str> {
    Ok(case["case"].as_str().ok_or("a case without a name")?)
}

/// The table of a file of the suite `turns`: medians of what was measured in turn.
pub(crate) fn turns(results: &Value, name: &str) -> Result<String> {
    ratios(results, name, ("plain", "plain_ms"), ("encoded", "auto_ms"), 3)
}

/// An older program and this one in turn: medians.
pub(crate) fn base_turns(results: &Value, name: &str) -> Result<String> {
    ratios(results, name, ("base", "base_ms"), ("this", "this_ms"), 3)
}

/// First runs beside DataFusion's: medians over several processes.
pub(crate) fn first_runs(results: &Value, name: &str) -> Result<String> {
    ratios(results, name, ("DataFusion", "datafusion_ms"), ("first", "auto_ms"), 0)
}

/// A table of the medians of two lists of times, each a name and a key, and their ratio.
fn ratios(results: &Value, name: &str, below: (&str, &str), above: (&str, &str), digits: usize) -> Result<String> {
    let mut text = format!("{}\n({}).\n\n", head(results)?, link(name));
    let (rival, own) = (below.0, above.0);
    text.push_str(&format!("| case | {rival}, ms | {own}, ms | {own} over {rival} |\n|---|---:|---:|---:|\n"));
    for case in results["results"].as_array().ok_or("no 'results'")? {
        let (rival, own) = (median(case, below.1), median(case, above.1));
        // The lines of whole suites have a ratio alone.
        let ratio = own.zip(rival).map(|(own, rival)| own / rival).or(case["ratio"].as_f64());
        let cell = |figure: Option<f64>, digits| figure.map(|figure| format!("{figure:.digits$}")).unwrap_or_default();
        let cells = [cell(rival, digits), cell(own, digits), cell(ratio, 2)].join(" | ");
        let figure = case["figure"].as_str().map(|figure| format!(", {}", figure.trim_end_matches("_ms")));
        text.push_str(&format!("| {}{} | {cells} |\n", name_of(case)?, figure.unwrap_or_default()));
    }
    Ok(text)
}

/// The median of a case's list of times, if it has one.
fn median(case: &Value, key: &str) -> Option<f64> {
    let mut times: Vec<f64> = case[key].as_array()?.iter().filter_map(Value::as_f64).collect();
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Statements that were interrupted, and how long the next prompt took.
pub(crate) fn interrupts(results: &Value, name: &str) -> Result<String> {
    let mut text = format!("{}\n({}).\n\n", head(results)?, link(name));
    text.push_str("| statement | interrupts | median, ms | most, ms |\n|---|---:|---:|---:|\n");
    for case in results["results"].as_array().ok_or("no 'results'")? {
        let figure = |key: &str| case[key].as_f64().ok_or_else(|| format!("no '{key}'"));
        let (count, median, most) = (figure("interrupts")?, figure("median_ms")?, figure("most_ms")?);
        text.push_str(&format!("| {} | {count} | {median:.0} | {most:.0} |\n", name_of(case)?));
    }
    Ok(text)
}

/// Processes of one statement, from their start to their end.
pub(crate) fn start(results: &Value, name: &str) -> Result<String> {
    let mut text = format!("{}\n({}).\n\n| process | median, ms |\n|---|---:|\n", head(results)?, link(name));
    for case in results["results"].as_array().ok_or("no 'results'")? {
        let median = median(case, "times_ms").ok_or("no 'times_ms'")?;
        text.push_str(&format!("| {} | {median:.1} |\n", name_of(case)?));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn interrupts_are_counted() {
        let case = json!({"case": "GPU, loading", "interrupts": 9, "median_ms": 11.4, "most_ms": 80.6});
        let results = json!({"suite": "interrupts", "device": "D", "date": "2026-01-31", "results": [case]});
        let text = interrupts(&results, "x.json").unwrap();
        assert!(text.ends_with("|---|---:|---:|---:|\n| GPU, loading | 9 | 11 | 81 |\n"), "{text}");
        assert!(interrupts(&json!({"suite": "interrupts", "device": "D"}), "x.json").is_err());
    }

    #[test]
    fn first_runs_are_medians() {
        let case = json!({"case": "SSB, q1.1", "datafusion_ms": [100, 900, 200], "auto_ms": [10.2, 250, 700]});
        let results = json!({"suite": "first-runs", "device": "D", "date": "2026-01-31", "results": [case]});
        let text = first_runs(&results, "x.json").unwrap();
        assert!(text.ends_with("|---|---:|---:|---:|\n| SSB, q1.1 | 200 | 250 | 1.25 |\n"), "{text}");
        assert!(first_runs(&json!({"suite": "first-runs", "device": "D", "results": [{}]}), "x.json").is_err());
    }

    #[test]
    fn turns_name_what_they_timed() {
        let case = json!({"case": "ssb/q1.1", "figure": "warm_ms", "base_ms": [2, 4, 3], "this_ms": [1.5, 1, 9]});
        let mean = json!({"case": "ssb", "figure": "warm_ms", "ratio": 0.75});
        let results = json!({"suite": "base-turns", "device": "D", "date": "2026-01-31", "results": [case, mean]});
        let text = base_turns(&results, "x.json").unwrap();
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
        let text = encodings(&results, "x.json").unwrap();
        assert!(text.starts_with("**ENCODINGS on D**, rows 9, 2026-01-31\n([x.json]"), "{text}");
        assert!(text.contains("| bits | plain | packed |\n|---|---:|---:|\n| 4 | 1.000 | 0.500 |\n| 8 |  | 0.600 |\n"));
        assert!(text.contains("Sum, ms (bits a value):\n\n| values | plain |\n|---|---:|\n| zipf | 2.000 (2.00) |\n"));
        assert_eq!(text.matches("| plain |\n|---|---:|\n| zipf | 7 |\n").count(), 1, "{text}");
        assert_eq!(text.matches("| 4 | 7 |").count(), 1, "{text}");
    }
}
