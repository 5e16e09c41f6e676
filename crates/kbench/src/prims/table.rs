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
        let mut name = name(result);
        if let Some(share) = result["match_share"].as_f64().filter(|share| *share < 1.0) {
            name.push_str(&format!(" {:.0} %", share * 100.0));
        }
        self.cells(&name, cells, if result["verified"] == true { "yes" } else { "NO" })
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

/// The case, with the order, algorithm or strategy that tells its results apart. A case may have that in its name
/// already; `--cases` takes the name with an order or an algorithm, and no strategy.
fn name(result: &Value) -> String {
    let case = result["case"].as_str().unwrap_or_default();
    let by = ["order", "algorithm", "strategy"].into_iter().find_map(|key| result[key].as_str());
    match by.filter(|by| !format!("/{case}/").contains(&format!("/{by}/"))) {
        Some(by) => format!("{case}/{by}"),
        None => case.to_string(),
    }
}

/// The number of `cases` that are done after this result. A case with results by strategy is not done before its last
/// one. `None` for results of other cases, such as those of some sweeps.
pub fn done_behind(cases: &[String], result: &Value) -> Option<usize> {
    let place = |name: &str| cases.iter().position(|case| case == name);
    place(&name(result)).map(|place| place + 1).or_else(|| place(result["case"].as_str()?))
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
        // A missing figure is a dash; without a floor the share is of the prediction.
        let bare = table.line(&json!({"case": "scan/u32", "device_ms": 120.0, "verified": false}));
        assert_eq!(bare, "scan/u32                          120.0         -         -      -               -  NO");
        let predicted = table.line(&json!({"case": "join/8192", "device_ms": 2.0, "predicted_ms": 1.0}));
        assert!(predicted.contains(" 1.0000   50 % "), "{predicted}");
        let few = table.line(&json!({"case": "join/8192", "strategy": "DirectAddress", "match_share": 0.1}));
        assert!(few.starts_with("join/8192/DirectAddress 10 % "), "{few}");
        let form = table.line(&json!({"case": "ordered/forms/one_kernel/count/16", "algorithm": "one_kernel"}));
        assert!(form.starts_with("ordered/forms/one_kernel/count/16 "), "{form}");
        assert_eq!(table.without("scan/u32", "why"), "scan/u32                      left out: why");
    }

    #[test]
    fn cases_are_over_by_their_names() {
        let cases = ["select/30/any", "select/30/stable", "join/8192", "ordered/forms/five/count/16"].map(String::from);
        let behind = |result: Value| done_behind(&cases, &result);
        assert_eq!(behind(json!({"case": "select/30", "order": "any"})), Some(1));
        assert_eq!(behind(json!({"case": "select/30", "order": "stable"})), Some(2));
        assert_eq!(behind(json!({"case": "join/8192", "strategy": "DirectAddress"})), Some(2), "others may follow");
        assert_eq!(behind(json!({"case": "ordered/forms/five/count/16", "algorithm": "five"})), Some(4));
        assert_eq!(behind(json!({"case": "groupby/10", "strategy": "DeviceTable"})), None);
    }
}
