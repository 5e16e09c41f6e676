//! The object that all benchmarks of the project write: suite, device, date, commit, parameters, results.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use warpcube_gpu::Device;

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
    if let Some(commit) = option_env!("WARPCUBE_COMMIT") {
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
    date(seconds / 86_400)
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar (H. Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`).
fn date(days: u64) -> String {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_454), "2026-01-01");
    }
}
