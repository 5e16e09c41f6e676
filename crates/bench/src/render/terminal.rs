//! Results on a terminal: a line a case, in columns of one width.

use crate::report::Case;

use super::text::{milliseconds, time};

/// A column: its title, its width, and its cell of a case, a dash where there is none.
pub struct Shown {
    title: &'static str,
    width: usize,
    cell: fn(&Case) -> Option<String>,
}

const fn shown(title: &'static str, width: usize, cell: fn(&Case) -> Option<String>) -> Shown {
    Shown { title, width, cell }
}

/// Queries: our times, what the device moved, and rivals.
pub(super) static QUERIES: [Shown; 10] = [
    shown("rows", 8, |case| count(case, "rows")),
    shown("device", 11, |case| Some(time(case.figure("device_ms")?))),
    shown("warm", 11, |case| Some(time(case.figure("warm_ms")?))),
    shown("fresh", 11, |case| Some(time(case.figure("fresh_ms")?))),
    shown("first", 11, |case| Some(time(case.figure("first_ms")?))),
    shown("MB", 10, |case| Some(format!("{:.1}", case.figure("bytes")? / 1e6))),
    shown("of peak", 7, |case| percent(case.figure("share_of_peak"))),
    shown("on GPU", 7, |case| percent(case.figure("gpu_share"))),
    shown("DataFusion", 11, |case| Some(time(case.figure("rivals/datafusion_ms")?))),
    // Over the files it runs once.
    shown(DUCKDB, 11, |case| Some(time(case.figure("rivals/duckdb_ms").or(case.figure("rivals/duckdb_first_ms"))?))),
];
/// The column that is there if DuckDB is measured.
const DUCKDB: &str = "DuckDB";

/// Primitives, in milliseconds; the share is that of the floor, or else of the prediction, in the time.
pub(super) static PRIMITIVES: [Shown; 5] = [
    shown("ms", 9, |case| ms(case, "device_ms")),
    shown("floor", 9, |case| ms(case, "floor_ms")),
    shown("predicted", 9, |case| ms(case, "predicted_ms")),
    shown("share", 6, |case| {
        percent(Some(case.figure("floor_ms").or(case.figure("predicted_ms"))? / case.figure("device_ms")?))
    }),
    shown("rival", 15, |case| {
        let (name, ms) = case.rivals().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some(format!("{name} {}", milliseconds(ms)))
    }),
];

/// Cubes, in milliseconds.
pub(super) static CUBES: [Shown; 8] = [
    shown("device", 10, |case| fixed(case, "device_ms", 4)),
    shown("warm", 10, |case| fixed(case, "warm_ms", 4)),
    shown("one core", 10, |case| fixed(case, "cpu_ms", 1)),
    shown("floor", 9, |case| fixed(case, "floor_ms", 4)),
    shown("limit", 8, |case| fixed(case, "limit_ms", 2)),
    shown("thesis", 8, |case| fixed(case, "thesis_ms", 0)),
    shown("filled", 11, |case| count(case, "filled_targets")),
    shown("atomic", 14, |case| count(case, "atomic_additions")),
];

/// One query of a cube by an algorithm, in milliseconds.
pub(super) static CUBE_QUERY: [Shown; 4] = [
    shown("ms", 10, |case| fixed(case, "ms", 3)),
    shown("first", 10, |case| fixed(case, "first_ms", 3)),
    shown("compared", 21, |case| case.text("compared").map(str::to_string)),
    shown("device", 20, |case| case.text("device").map(str::to_string)),
];

/// Storage schemes, in milliseconds.
pub(super) static SCHEMES: [Shown; 6] = [
    shown("one core", 11, |case| fixed(case, "cpu_ms", 4)),
    shown("device", 11, |case| fixed(case, "device_ms", 4)),
    shown("with transfers", 14, |case| fixed(case, "warm_ms", 4)),
    shown("times one core", 14, |case| fixed(case, "speedup", 1)),
    shown("of dense", 9, |case| fixed(case, "ratio", 5)),
    shown("found", 10, |case| count(case, "found")),
];

/// H-trees, in milliseconds.
pub(super) static HTREES: [Shown; 7] = [
    shown("one core", 11, |case| fixed(case, "cpu_ms", 2)),
    shown("device", 10, |case| fixed(case, "device_ms", 4)),
    shown("with transfers", 14, |case| fixed(case, "warm_ms", 4)),
    shown("times one core", 14, |case| fixed(case, "speedup", 1)),
    shown("limit", 8, |case| fixed(case, "limit_ms", 2)),
    shown("paper", 8, |case| fixed(case, "paper_ms", 1)),
    shown("nodes", 10, |case| count(case, "nodes")),
];

/// The CUBE operator, in milliseconds.
pub(super) static CUBE_OPERATOR: [Shown; 6] = [
    shown("one core", 12, |case| fixed(case, "cpu_ms", 1)),
    shown("device", 10, |case| fixed(case, "device_ms", 2)),
    shown("with transfers", 14, |case| fixed(case, "warm_ms", 1)),
    shown("times one core", 14, |case| fixed(case, "speedup", 1)),
    shown("sorts", 6, |case| count(case, "sorts")),
    shown("groups", 12, |case| count(case, "groups")),
];

/// Sums and decodings of encoded columns, in milliseconds.
pub(super) static ENCODINGS: [Shown; 6] = [
    shown("ms", 9, |case| fixed(case, "device_ms", 4)),
    shown("floor", 9, |case| fixed(case, "floor_ms", 4)),
    shown("share", 7, |case| fixed(case, "share_of_peak", 2)),
    shown("bits", 7, |case| fixed(case, "bits_per_value", 2)),
    shown("GB/s", 7, |case| fixed(case, "gb_per_s", 0)),
    shown("load, ms", 9, |case| fixed(case, "load_ms", 0)),
];

/// Encoding on the device, in milliseconds.
pub(super) static ENCODE: [Shown; 3] = [
    shown("ms", 9, |case| fixed(case, "ms", 3)),
    shown("GB/s", 9, |case| fixed(case, "plain_gb_per_s", 1)),
    shown("bits", 9, |case| fixed(case, "bits_per_value", 2)),
];

/// Encoding and decoding on the CPU, in GB of plain values a second.
pub(super) static ENCODE_CPU: [Shown; 3] = [
    shown("encode", 9, |case| fixed(case, "encode_gb_per_s", 2)),
    shown("decode", 9, |case| fixed(case, "decode_gb_per_s", 2)),
    shown("bits", 9, |case| fixed(case, "bits_per_value", 2)),
];

fn ms(case: &Case, figure: &str) -> Option<String> {
    case.figure(figure).map(milliseconds)
}

fn fixed(case: &Case, figure: &str, digits: usize) -> Option<String> {
    Some(format!("{:.digits$}", case.figure(figure)?))
}

fn count(case: &Case, figure: &str) -> Option<String> {
    fixed(case, figure, 0)
}

fn percent(share: Option<f64>) -> Option<String> {
    share.map(|share| format!("{:.0} %", share * 100.0))
}

/// Lines of one width for the cases of a run.
pub struct Terminal {
    shown: Vec<&'static Shown>,
    /// What a case is called.
    corner: &'static str,
    width: usize,
}

impl Terminal {
    /// A table for cases of these names, which are called `corner`, with a column for DuckDB if it is measured.
    pub(super) fn new(
        shown: &'static [Shown],
        corner: &'static str,
        width_min: usize,
        cases: &[String],
        has_duckdb: bool,
    ) -> Terminal {
        let shown = shown.iter().filter(|shown| shown.title != DUCKDB || has_duckdb).collect();
        let width = cases.iter().map(String::len).max().unwrap_or(0).max(width_min);
        Terminal { shown, corner, width }
    }

    /// The titles of the columns.
    pub fn head(&self) -> String {
        self.cells(self.corner, |shown| shown.title.to_string(), "verified")
    }

    /// The line of a case.
    pub fn line(&self, case: &Case) -> String {
        let verified = match case.verified {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let name = match case.figure("match_share").filter(|share| *share < 1.0) {
            Some(share) => format!("{} {:.0} %", full_name(case), share * 100.0),
            None => full_name(case),
        };
        self.cells(&name, |shown| (shown.cell)(case).unwrap_or_else(|| "-".into()), verified)
    }

    /// The line of a case that has no result.
    pub fn without(&self, case: &str, reason: &str) -> String {
        format!("{case:<0$} left out: {reason}", self.width)
    }

    fn cells(&self, name: &str, cell: impl Fn(&Shown) -> String, verified: &str) -> String {
        let cells = self.shown.iter().map(|shown| format!(" {:>1$}", cell(shown), shown.width));
        format!("{name:<0$}{1}  {verified}", self.width, cells.collect::<String>())
    }
}

/// The case's name with the order, algorithm or strategy that tells its results apart, unless the name has that.
/// `--cases` takes the name with an order or an algorithm, and no strategy.
pub fn full_name(case: &Case) -> String {
    let by = ["order", "algorithm", "strategy"].into_iter().find_map(|figure| case.text(figure));
    match by.filter(|by| !format!("/{}/", case.name).contains(&format!("/{by}/"))) {
        Some(by) => format!("{}/{by}", case.name),
        None => case.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn case(value: Value) -> Case {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_line_has_what_was_measured() {
        let cases = ["scan/u32".to_string(), "topk/f32/uniform/32/threshold".to_string()];
        let table = Terminal::new(&PRIMITIVES, "case", 4, &cases, false);
        let result = case(json!({
            "case": "topk/f32/uniform/32", "algorithm": "threshold", "device_ms": 0.5, "floor_ms": 0.45,
            "predicted_ms": 0.4, "verified": true, "rivals": {"torch_ms": 9.87654, "cub_ms": 12.5},
        }));
        let lines = [table.head(), table.line(&result)];
        assert_eq!(
            lines,
            [
                "case                                 ms     floor predicted  share           rival  verified",
                "topk/f32/uniform/32/threshold    0.5000    0.4500    0.4000   90 %    torch 9.8765  yes",
            ]
        );
        // A missing figure is a dash; without a floor the share is of the prediction.
        let line = |value| table.line(&case(value));
        let bare = line(json!({"case": "scan/u32", "device_ms": 120.0, "verified": false}));
        assert_eq!(bare, "scan/u32                          120.0         -         -      -               -  NO");
        let predicted = line(json!({"case": "join/8192", "device_ms": 2.0, "predicted_ms": 1.0}));
        assert!(predicted.contains(" 1.0000   50 % "), "{predicted}");
        let few = line(json!({"case": "join/8192", "strategy": "DirectAddress", "match_share": 0.1}));
        assert!(few.starts_with("join/8192/DirectAddress 10 % "), "{few}");
        let form = line(json!({"case": "ordered/forms/one_kernel/count/16", "algorithm": "one_kernel"}));
        assert!(form.starts_with("ordered/forms/one_kernel/count/16 "), "{form}");
        assert_eq!(table.without("scan/u32", "why"), "scan/u32                      left out: why");
    }

    #[test]
    fn queries_have_a_column_for_duckdb_if_it_is_measured() {
        let table = |has_duckdb| Terminal::new(&QUERIES, "query", 6, &["q1".to_string()], has_duckdb);
        let without = table(false);
        let table = table(true);
        assert!(table.head().starts_with("query      rows      device ") && table.head().ends_with("DuckDB  verified"));
        let line = table.line(&case(json!({"case": "q1", "rows": 4, "rivals": {"duckdb_first_ms": 7.5}})));
        assert!(line.starts_with("q1            4           - ") && line.ends_with("     7.50 ms  -"), "{line}");
        assert!(without.head().ends_with("DataFusion  verified"));
    }
}
