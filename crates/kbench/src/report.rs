//! The object that all benchmarks of the project write: suite, device, date, commit, parameters, results.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::temporal_conversions::timestamp_s_to_datetime;
use serde_json::{Value, json};
use warpcube_gpu::Device;

/// The commit that the program was built from, if the build was given it.
pub const COMMIT: Option<&str> = option_env!("WARPCUBE_COMMIT");

/// A report of what was measured on a device.
pub fn of(suite: &str, device: &Device, params: Value, results: Vec<Value>) -> Value {
    let info = device.info();
    let mut report = without_driver(suite, &info.name, params, results);
    report["driver"] = json!(info.driver);
    report
}

/// A report of a device that has no driver, the CPU.
pub fn without_driver(suite: &str, device: &str, params: Value, results: Vec<Value>) -> Value {
    let mut report = json!({"suite": suite, "device": device, "date": today()});
    if let Some(commit) = COMMIT {
        report["commit"] = commit.into();
    }
    report["params"] = params;
    report["results"] = results.into();
    report
}

/// Writes a report to a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, report: &Value) -> io::Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(report)? + "\n")
}

/// The date, as `2026-01-31`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    timestamp_s_to_datetime(seconds as i64).map_or_else(String::new, |now| now.date().to_string())
}
