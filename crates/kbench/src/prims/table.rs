//! The suite's results for people: a line a case.

use serde_json::Value;

/// Lines of one width.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    case_width: usize,
}

impl Table {
    /// A table for cases of these names.
    pub fn new(cases: &[String]) -> Table {
        Table { case_width: cases.iter().map(String::len).max().unwrap_or(0).max("case".len()) }
    }

    /// The names of the columns. Times are in milliseconds; the share is that of the floor, or else of the prediction,
    /// in the time.
    pub fn head(&self) -> String {
        self.cells("case", ["ms", "floor", "predicted", "share", "rival"].map(str::to_string), "verified")
    }

    /// The line of a result.
    pub fn line(&self, result: &Value) -> String {
        let figure = |key: &str| result[key].as_f64();
        let ms = |figure: Option<f64>| figure.map_or_else(|| "-".to_string(), milliseconds);
        let share = figure("floor_ms").or(figure("predicted_ms")).zip(figure("device_ms"));
        let share = share.map_or_else(|| "-".to_string(), |(floor, ms)| format!("{:.0} %", floor / ms * 100.0));
        let cells = [ms(figure("device_ms")), ms(figure("floor_ms")), ms(figure("predicted_ms")), share, rival(result)];
        self.cells(&name(result), cells, if result["verified"] == true { "yes" } else { "NO" })
    }

    /// The line of a case that has no result.
    pub fn without(&self, case: &str, reason: &str) -> String {
        format!("{case:<0$} left out: {reason}", self.case_width)
    }

    fn cells(&self, case: &str, cells: [String; 5], verified: &str) -> String {
        let [ms, floor, predicted, share, rival] = cells;
        let width = self.case_width;
        format!("{case:<width$} {ms:>9} {floor:>9} {predicted:>9} {share:>6} {rival:>15}  {verified}")
    }
}

/// The name that `--cases` takes: that of the case, and what tells several results of one case apart.
fn name(result: &Value) -> String {
    let case = result["case"].as_str().unwrap_or_default();
    match ["order", "algorithm", "strategy"].into_iter().find_map(|key| result[key].as_str()) {
        Some(by) => format!("{case}/{by}"),
        None => case.to_string(),
    }
}

/// The rival that took the least time.
fn rival(result: &Value) -> String {
    let rivals = result["rivals"].as_object().into_iter().flatten();
    let times = rivals.filter_map(|(name, ms)| Some((name.strip_suffix("_ms")?, ms.as_f64()?)));
    let best = times.min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map_or_else(|| "-".to_string(), |(name, ms)| format!("{name} {}", milliseconds(ms)))
}

/// Four digits or so that count.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.4}"),
        ms if ms < 100.0 => format!("{ms:.3}"),
        ms => format!("{ms:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_what_was_measured() {
        let table = Table::new(&["scan/u32".into(), "topk/f32/uniform/32/threshold".into()]);
        let result = json!({
            "case": "topk/f32/uniform/32", "algorithm": "threshold", "device_ms": 0.5, "floor_ms": 0.45,
            "predicted_ms": 0.4, "verified": true, "rivals": {"torch_ms": 9.87654, "cub_ms": 12.5},
        });
        let lines = [table.head(), table.line(&result)];
        assert_eq!(
            lines,
            [
                "case                                 ms     floor predicted  share           rival  verified",
                "topk/f32/uniform/32/threshold    0.5000    0.4500    0.4000   90 %    torch 9.8765  yes",
            ]
        );
        // What was not measured has a dash, and a prediction stands in for the floor.
        let bare = table.line(&json!({"case": "scan/u32", "device_ms": 120.0, "verified": false}));
        assert_eq!(bare, "scan/u32                          120.0         -         -      -               -  NO");
        let predicted = table.line(&json!({"case": "join/8192", "device_ms": 2.0, "predicted_ms": 1.0}));
        assert!(predicted.contains(" 1.0000   50 % "), "{predicted}");
        assert_eq!(table.without("scan/u32", "why"), "scan/u32                      left out: why");
    }
}
