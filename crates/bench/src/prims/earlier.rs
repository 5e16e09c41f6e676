//! Results of earlier runs, which `--update` keeps in the file of `--json`: those that a run does not measure again.
//!
//! Each result has the commit and the date that it was measured with, and its number of runs.

use std::path::Path;

use serde_json::Value;

use crate::report::{Case, Figures, Report};

/// Figures by which results of one case differ.
const IDENTITY: [&str; 5] = ["order", "algorithm", "strategy", "keys", "match_share"];

/// The results of a file, and the rivals that it names.
#[derive(Debug, Clone, Default)]
pub(super) struct Earlier {
    results: Vec<Case>,
    pub(super) rivals: Figures,
}

impl Earlier {
    /// Reads a file of results; a file that does not exist yet has none.
    ///
    /// # Errors
    /// A file that cannot be read, or of another suite, device or size.
    pub(super) fn read(path: &Path, suite: &str, device: &str, log_rows: u32) -> Result<Earlier, String> {
        if !path.exists() {
            return Ok(Earlier::default());
        }
        let found = Report::read(path).and_then(|report| Earlier::of(report, suite, device, log_rows));
        found.map_err(|reason| format!("--update {}: {reason}", path.display()))
    }

    fn of(report: Report, suite: &str, device: &str, log_rows: u32) -> Result<Earlier, String> {
        if report.suite != suite {
            return Err(format!("results of the suite {}, not of {suite}", report.suite));
        }
        if report.device != device {
            return Err(format!("measured on {}, not on {device}", report.device));
        }
        let measured = report.params.get("log_rows").unwrap_or(&Value::Null);
        if *measured != log_rows {
            return Err(format!("measured with --log-rows {measured}, not {log_rows}"));
        }
        let mut results = report.results;
        for result in &mut results {
            for (figure, value) in [("commit", &report.commit), ("date", &report.date)] {
                if let Some(value) = value.as_ref().filter(|_| result[figure].is_null()) {
                    result.put(figure, value.as_str());
                }
            }
        }
        Ok(Earlier { results, rivals: report.rivals })
    }

    /// These results, with those measured again in their places and the new ones at the end.
    pub(super) fn with(&self, measured: Vec<Case>) -> Vec<Case> {
        let is_same = |one: &Case, other: &Case| {
            one.name == other.name && IDENTITY.iter().all(|figure| one[figure] == other[figure])
        };
        let mut rest: Vec<Option<Case>> = measured.into_iter().map(Some).collect();
        let kept = self.results.iter().map(|earlier| {
            let mut again = rest.iter_mut().filter(|result| result.as_ref().is_some_and(|it| is_same(it, earlier)));
            again.next().and_then(Option::take).unwrap_or_else(|| earlier.clone())
        });
        let kept: Vec<Case> = kept.collect();
        kept.into_iter().chain(rest.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SUITE: &str = "primitives";

    fn report(results: Value) -> Report {
        let report = json!({
            "suite": "primitives", "device": "D", "date": "2026-01-31", "commit": "a1", "params": {"log_rows": 20},
            "results": results, "rivals": {"cub": "3"},
        });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn results_keep_their_place_and_their_commit() {
        let earlier = report(json!([
            {"case": "select/0", "order": "any", "device_ms": 1.0},
            {"case": "select/0", "order": "stable", "device_ms": 2.0},
            {"case": "scan/u32", "device_ms": 3.0, "commit": "a0", "date": "2026-01-01"},
        ]));
        let earlier = Earlier::of(earlier, SUITE, "D", 20).unwrap();
        assert_eq!(earlier.rivals["cub"], "3");
        let measured = vec![
            Case::new("join/8192", json!({"strategy": "DirectAddress", "device_ms": 4.0, "commit": "b2"})),
            Case::new("select/0", json!({"order": "stable", "device_ms": 5.0, "commit": "b2"})),
        ];
        let results = earlier.with(measured);
        let found: Vec<_> = results.iter().map(|it| (it["device_ms"].as_f64().unwrap(), &it["commit"])).collect();
        assert_eq!(found, [(1.0, &"a1".into()), (5.0, &"b2".into()), (3.0, &"a0".into()), (4.0, &"b2".into())]);
        assert_eq!((&results[0]["date"], &results[2]["date"]), (&"2026-01-31".into(), &"2026-01-01".into()));
    }

    #[test]
    fn results_of_another_device_or_size_are_refused() {
        let one = report(json!([]));
        assert_eq!(Earlier::of(one.clone(), SUITE, "E", 20).unwrap_err(), "measured on D, not on E");
        assert_eq!(Earlier::of(one, SUITE, "D", 29).unwrap_err(), "measured with --log-rows 20, not 29");
        let other = Report::new("ssb", "D");
        assert_eq!(Earlier::of(other, SUITE, "D", 20).unwrap_err(), "results of the suite ssb, not of primitives");
        assert!(Earlier::read(Path::new("no such file"), SUITE, "D", 20).unwrap().with(Vec::new()).is_empty());
    }
}
