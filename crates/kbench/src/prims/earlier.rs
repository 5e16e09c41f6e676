//! Results of earlier runs, which `--update` keeps in the file of `--json`: those that a run does not measure again.
//!
//! Each result has the commit and the date that it was measured with, and its number of runs.

use std::path::Path;

use serde_json::{Map, Value};

use super::SUITE;

/// Fields by which results of one case differ.
const IDENTITY: [&str; 6] = ["case", "order", "algorithm", "strategy", "keys", "match_share"];
/// Fields of a result that come from its run.
const PROVENANCE: [&str; 2] = ["commit", "date"];

/// The results of a file, and the rivals that it names.
#[derive(Debug, Clone, Default)]
pub(super) struct Earlier {
    results: Vec<Value>,
    pub(super) rivals: Map<String, Value>,
}

impl Earlier {
    /// Reads a file of results; a file that does not exist yet has none.
    ///
    /// # Errors
    /// A file that cannot be read, or of another suite, device or size.
    pub(super) fn read(path: &Path, device: &str, log_rows: u32) -> Result<Earlier, String> {
        if !path.exists() {
            return Ok(Earlier::default());
        }
        let failed = |reason: String| format!("--update {}: {reason}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let report = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        Earlier::of(&report, device, log_rows).map_err(failed)
    }

    fn of(report: &Value, device: &str, log_rows: u32) -> Result<Earlier, String> {
        if report["suite"] != SUITE {
            return Err(format!("results of the suite {}, not of {SUITE}", report["suite"]));
        }
        if report["device"] != device {
            return Err(format!("measured on {}, not on {device}", report["device"]));
        }
        if report["params"]["log_rows"] != log_rows {
            return Err(format!("measured with --log-rows {}, not {log_rows}", report["params"]["log_rows"]));
        }
        let mut results = report["results"].as_array().cloned().ok_or("no 'results'")?;
        for result in &mut results {
            for key in PROVENANCE {
                if result.get(key).is_none() && report.get(key).is_some() {
                    result[key] = report[key].clone();
                }
            }
        }
        Ok(Earlier { results, rivals: report["rivals"].as_object().cloned().unwrap_or_default() })
    }

    /// These results, with those measured again in their places and the new ones at the end.
    pub(super) fn with(self, measured: Vec<Value>) -> Vec<Value> {
        let is_same = |one: &Value, other: &Value| IDENTITY.iter().all(|key| one.get(*key) == other.get(*key));
        let mut rest: Vec<Option<Value>> = measured.into_iter().map(Some).collect();
        let mut results = Vec::new();
        for earlier in self.results {
            let mut again = rest.iter_mut().filter(|result| result.as_ref().is_some_and(|it| is_same(it, &earlier)));
            match again.next().and_then(Option::take) {
                Some(result) => results.push(result),
                None => results.push(earlier),
            }
        }
        results.into_iter().chain(rest.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(results: Value) -> Value {
        json!({
            "suite": "primitives", "device": "D", "date": "2026-01-31", "commit": "a1", "params": {"log_rows": 20},
            "results": results, "rivals": {"cub": "3"},
        })
    }

    #[test]
    fn results_keep_their_place_and_their_commit() {
        let earlier = report(json!([
            {"case": "select/0", "order": "any", "device_ms": 1.0},
            {"case": "select/0", "order": "stable", "device_ms": 2.0},
            {"case": "scan/u32", "device_ms": 3.0, "commit": "a0", "date": "2026-01-01"},
        ]));
        let earlier = Earlier::of(&earlier, "D", 20).unwrap();
        assert_eq!(earlier.rivals["cub"], "3");
        let measured = vec![
            json!({"case": "join/8192", "strategy": "DirectAddress", "device_ms": 4.0, "commit": "b2"}),
            json!({"case": "select/0", "order": "stable", "device_ms": 5.0, "commit": "b2"}),
        ];
        let results = earlier.with(measured);
        let found: Vec<_> = results.iter().map(|it| (it["device_ms"].as_f64().unwrap(), &it["commit"])).collect();
        assert_eq!(found, [(1.0, &"a1".into()), (5.0, &"b2".into()), (3.0, &"a0".into()), (4.0, &"b2".into())]);
        assert_eq!((&results[0]["date"], &results[2]["date"]), (&"2026-01-31".into(), &"2026-01-01".into()));
    }

    #[test]
    fn results_of_another_device_or_size_are_refused() {
        let one = report(json!([]));
        assert_eq!(Earlier::of(&one, "E", 20).unwrap_err(), "measured on \"D\", not on E");
        assert_eq!(Earlier::of(&one, "D", 29).unwrap_err(), "measured with --log-rows 20, not 29");
        let other = json!({"suite": "ssb"});
        assert_eq!(Earlier::of(&other, "D", 20).unwrap_err(), "results of the suite \"ssb\", not of primitives");
        assert!(Earlier::read(Path::new("no such file"), "D", 20).unwrap().with(Vec::new()).is_empty());
    }
}
