//! What a benchmark measured: the object that all suites write (`bench/results/*.json`), and all tables and charts are
//! made of. A figure that was not measured is absent, never zero.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Index;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Figures by name; times are in milliseconds.
pub type Figures = Map<String, Value>;

/// The results of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The suite's name.
    pub suite: String,
    /// The device's name, `CPU` without one.
    pub device: String,
    /// The device's driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The day, as `2026-01-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The commit that the program was built from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How it was measured.
    #[serde(default)]
    pub params: Figures,
    /// Other programs: their versions, or what is to be known of each.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub rivals: Figures,
    /// The loads of all first runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loading: Option<Loading>,
    /// The device's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// All cases from several threads at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
    /// Columns in device memory at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// The cases.
    pub results: Vec<Case>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name.
    #[serde(rename = "case")]
    pub name: String,
    /// The figures of its suite.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether its answer is right, if it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Times of other programs, `<rival>_ms`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rivals: BTreeMap<String, f64>,
}

/// The loads of a benchmark's first runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loading {
    /// Bytes moved to the device.
    pub bytes: u64,
    /// Milliseconds of that.
    pub ms: f64,
    /// 10⁹ bytes a second and core, reading, decoding and encoding.
    pub gb_per_s_core: f64,
}

/// A benchmark's use of the device's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Of columns that are there at the end.
    pub columns_bytes: u64,
    /// Of tables and results of the query that has most of them: queries take turns at that memory.
    pub tables_bytes: u64,
    /// Allocated from the driver at the end.
    pub held_bytes: u64,
    /// The peak of it, with the plain bytes of columns that are being encoded.
    pub held_peak_bytes: u64,
    /// The peak of reservations of statements and columns.
    #[serde(default)]
    pub reserved_peak_bytes: u64,
    /// The limit of reservations.
    #[serde(default)]
    pub budget_bytes: u64,
    /// Allocations that warm runs asked of the driver.
    pub warm_driver_allocations: u64,
}

/// All cases from several threads at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Threads {
    /// How many.
    pub threads: usize,
    /// Statements of all threads.
    pub statements: usize,
    /// Milliseconds from the first one's start to the last one's end.
    pub ms: f64,
    /// Statements a second.
    pub statements_per_s: f64,
    /// Whether all answers were those expected.
    pub verified: bool,
}

/// A column in device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Its encoding, in words.
    pub encoding: String,
    /// Its bytes.
    pub bytes: u64,
    /// Bits a value.
    pub bits_per_value: f64,
}

impl Report {
    /// An empty report.
    pub fn new(suite: &str, device: &str) -> Report {
        Report { suite: suite.to_string(), device: device.to_string(), ..Report::default() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, or has another form.
    pub fn read(path: &Path) -> Result<Report, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")
    }

    /// The cases whose answers are wrong.
    pub fn wrong(&self) -> Vec<&str> {
        let wrong = self.results.iter().filter(|case| case.verified == Some(false));
        wrong.map(|case| case.name.as_str()).collect()
    }
}

impl Case {
    /// A case with the figures of an object, that was not compared.
    pub fn new(name: impl Into<String>, figures: Value) -> Case {
        let figures = if let Value::Object(figures) = figures { figures } else { Figures::new() };
        Case { name: name.into(), figures, verified: None, rivals: BTreeMap::new() }
    }

    /// The case with whether its answer is right.
    pub fn verified(self, verified: bool) -> Case {
        Case { verified: Some(verified), ..self }
    }

    /// Adds a figure.
    pub fn put(&mut self, figure: &str, value: impl Into<Value>) {
        self.figures.insert(figure.to_string(), value.into());
    }

    /// A number; those of rivals are named `rivals/<rival>_ms`.
    pub fn figure(&self, figure: &str) -> Option<f64> {
        match figure.strip_prefix("rivals/") {
            Some(rival) => self.rivals.get(rival).copied(),
            None => self[figure].as_f64(),
        }
    }

    /// A text.
    pub fn text(&self, figure: &str) -> Option<&str> {
        self[figure].as_str()
    }

    /// A part of the name, which is a path; empty if it has fewer.
    pub fn part(&self, at: usize) -> &str {
        self.name.split('/').nth(at).unwrap_or_default()
    }

    /// Names and times of rivals.
    pub fn rivals(&self) -> impl Iterator<Item = (&str, f64)> {
        self.rivals.iter().filter_map(|(name, ms)| Some((name.strip_suffix("_ms")?, *ms)))
    }
}

/// A figure by name, null where it is absent.
impl Index<&str> for Case {
    type Output = Value;

    fn index(&self, figure: &str) -> &Value {
        self.figures.get(figure).unwrap_or(&Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        let value = json!({
            "suite": "ssb", "device": "D", "driver": "13.0", "date": "2026-01-31", "commit": "a1", "params": {"sf": 20},
            "rivals": {"duckdb": {"version": "2"}}, "loading": {"bytes": 1, "ms": 2.5, "gb_per_s_core": 0.5},
            "threads": {"threads": 8, "statements": 104, "ms": 46.0, "statements_per_s": 2.5, "verified": true},
            "results": [
                {"case": "q1", "rows": 3, "fresh": {"run_ms": 0.5}, "verified": true, "rivals": {"duckdb_ms": 1.5}},
                {"case": "q2", "times_ms": [1.5, 2.5]},
            ],
        });
        let report: Report = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), value.to_string());
        let case = &report.results[0];
        assert_eq!((case.figure("rows"), case.figure("rivals/duckdb_ms")), (Some(3.0), Some(1.5)));
        assert!(case.figure("device_ms").is_none() && case["device_ms"].is_null());
    }

    #[test]
    fn files_of_another_form_are_refused() {
        let refused = |value: Value| serde_json::from_value::<Report>(value).unwrap_err().to_string();
        assert!(refused(json!({"suite": "ssb", "device": "D"})).contains("`results`"));
        assert!(refused(json!({"suite": "ssb", "results": []})).contains("`device`"));
        assert!(refused(json!({"suite": "s", "device": "D", "results": [{"ms": 1}]})).contains("`case`"));
        assert!(refused(json!({"suite": "s", "device": "D", "results": [], "result": 1})).contains("`result`"));
    }

    #[test]
    fn wrong_cases_are_named() {
        let mut report = Report::new("cube", "CPU");
        report.results = vec![
            Case::new("a", Value::Null).verified(true),
            Case::new("b", json!({"ms": 1})).verified(false),
            Case::new("c", Value::Null),
        ];
        assert_eq!(report.wrong(), ["b"]);
    }
}
