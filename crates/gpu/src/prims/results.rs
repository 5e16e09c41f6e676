//! Results of the suite `primitives` in `bench/results`, which tests compare models with.

use std::path::Path;

use serde_json::Value;

/// Results measured on one H200 over inputs of the usual size, of a family of cases.
pub(crate) fn measured_on_h200(family: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results/primitives-h200.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["device"], &report["params"]["log_rows"]), (&"NVIDIA H200".into(), &29.into()));
    let results = report["results"].as_array().unwrap().iter();
    let own = |result: &&Value| result["case"].as_str().unwrap().split('/').next() == Some(family);
    results.filter(own).cloned().collect()
}
