//! Times of other programs for the same cases, measured by programs of their own (`bench/rivals`).
//!
//! A line is one JSON object: `{"rival": "cub", "version": "3.0.1", "device": "NVIDIA H200", "log_rows": 29,
//! "case": "scan/u32", "ms": 0.70}`. Times of another device or size are refused, since a result beside them would
//! mean nothing; a case without a line has no rival.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

/// Times by case.
#[derive(Debug, Clone, Default)]
pub(super) struct Rivals {
    /// Case, rival and its milliseconds.
    times: Vec<(String, String, f64)>,
    /// Rivals with their versions.
    versions: Map<String, Value>,
}

impl Rivals {
    /// Reads a file of lines.
    ///
    /// # Errors
    /// The file, its line and what is wrong with it.
    pub(super) fn read(path: &Path, device: &str, log_rows: u32) -> Result<Rivals, String> {
        let failed = |reason: String| format!("--rivals {}: {reason}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Rivals::parse(&text, device, log_rows).map_err(failed)
    }

    fn parse(text: &str, device: &str, log_rows: u32) -> Result<Rivals, String> {
        let mut rivals = Rivals::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            rivals.line(line, device, log_rows).map_err(|reason| format!("line {}: {reason}", at + 1))?;
        }
        Ok(rivals)
    }

    fn line(&mut self, line: &str, device: &str, log_rows: u32) -> Result<(), String> {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |key: &str| line[key].as_str().ok_or_else(|| format!("expected a text '{key}'"));
        if text("device")? != device {
            return Err(format!("measured on {}, not on {device}", text("device")?));
        }
        if line["log_rows"].as_u64() != Some(log_rows.into()) {
            return Err(format!("measured with --log-rows {}, not {log_rows}", line["log_rows"]));
        }
        let ms = line["ms"].as_f64().filter(|ms| *ms > 0.0).ok_or("expected a positive number 'ms'")?;
        let (rival, case) = (text("rival")?.to_string(), text("case")?.to_string());
        self.versions.insert(rival.clone(), text("version")?.into());
        self.times.push((case, rival, ms));
        Ok(())
    }

    /// `cub_ms` and its milliseconds for a case that has rivals.
    pub(super) fn of(&self, case: &str) -> BTreeMap<String, f64> {
        let times = self.times.iter().filter(|(of, ..)| of == case);
        times.map(|(_, rival, ms)| (format!("{rival}_ms"), *ms)).collect()
    }

    /// `{"cub": "3.0.1"}`.
    pub(super) fn versions(&self) -> &Map<String, Value> {
        &self.versions
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(rival: &str, case: &str, ms: f64) -> String {
        let version = if rival == "cub" { "3.0.1" } else { "2.11" };
        json!({"rival": rival, "version": version, "device": "D", "log_rows": 20, "case": case, "ms": ms}).to_string()
    }

    #[test]
    fn times_are_merged_by_case() {
        let lines = [line("cub", "scan/u32", 0.5), line("cub", "topk/f32/uniform/32", 3.0), String::new()];
        let text = [&lines[..], &[line("torch", "topk/f32/uniform/32", 9.9)]].concat().join("\n");
        let rivals = Rivals::parse(&text, "D", 20).unwrap();
        let of = |case: &str| serde_json::to_value(rivals.of(case)).unwrap();
        assert_eq!(of("scan/u32"), json!({"cub_ms": 0.5}));
        assert_eq!(of("topk/f32/uniform/32"), json!({"cub_ms": 3.0, "torch_ms": 9.9}));
        assert_eq!(of("scan/u64"), json!({}));
        assert_eq!(Value::from(rivals.versions().clone()), json!({"cub": "3.0.1", "torch": "2.11"}));
    }

    #[test]
    fn times_of_another_run_are_refused() {
        let text = line("cub", "scan/u32", 0.5);
        let other = Rivals::parse(&text, "E", 20).unwrap_err();
        assert_eq!(other, "line 1: measured on D, not on E");
        let other = Rivals::parse(&text, "D", 29).unwrap_err();
        assert_eq!(other, "line 1: measured with --log-rows 20, not 29");
        // A time that was not measured is no zero.
        let zero = Rivals::parse(&format!("\n{}", line("cub", "scan/u32", 0.0)), "D", 20).unwrap_err();
        assert_eq!(zero, "line 2: expected a positive number 'ms'");
        assert!(Rivals::parse("{", "D", 20).unwrap_err().starts_with("line 1: "));
    }
}
