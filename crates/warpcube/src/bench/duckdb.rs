//! DuckDB as a rival: `bench/rivals/duckdb_rival.py`, a part of this program, run by a Python that has the package.
//!
//! It copies the benchmark's tables into memory tables of DuckDB's own, which is not part of any query's time, runs
//! each query on all cores and writes a JSON line for each.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use warpcube_sql::SqlError;

use super::suite::Case;
use crate::error::{CliError, Result};

const PROGRAM: &str = include_str!("../../../../bench/rivals/duckdb_rival.py");

/// What was measured of DuckDB.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DuckDb {
    /// Its version.
    pub(super) version: String,
    /// Threads that it may use.
    pub(super) threads: usize,
    /// Time of copying the files into its tables.
    pub(super) load: Duration,
    cases: Vec<(String, Times)>,
}

/// What DuckDB took for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// Rows of its answer.
    rows: usize,
    /// The first run behind the copying of the tables.
    pub(super) first: Duration,
    /// Median of the warm runs.
    pub(super) warm: Duration,
}

/// The first line of the rival's output.
#[derive(Deserialize)]
struct Head {
    version: String,
    threads: usize,
    load_ms: f64,
}

/// A further line.
#[derive(Deserialize)]
struct Line {
    case: String,
    rows: usize,
    first_ms: f64,
    warm_ms: f64,
}

impl DuckDb {
    /// Runs all cases, each `runs` times warm.
    ///
    /// # Errors
    /// The Python cannot be run, has no such package, or DuckDB refuses a table or a query.
    pub(super) async fn measure(
        python: &Path,
        tables: &[(String, PathBuf)],
        cases: &[Case],
        runs: usize,
    ) -> Result<DuckDb> {
        let failed = |what: String| CliError::Usage(format!("--rival duckdb: {what}"));
        let paths: Vec<(String, PathBuf)> = tables
            .iter()
            .map(|(name, path)| Ok((name.clone(), std::path::absolute(path)?)))
            .collect::<std::io::Result<_>>()
            .map_err(|error| failed(error.to_string()))?;
        let tables: serde_json::Map<_, _> =
            paths.into_iter().map(|(name, path)| (name, path.to_string_lossy().into())).collect();
        let queries: Vec<_> = cases.iter().map(|case| json!({"case": case.name, "sql": case.sql})).collect();
        let request = json!({"tables": tables, "cases": queries, "runs": runs}).to_string();
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = python.display();
        let child =
            command.spawn().map_err(|error| failed(format!("{program} does not run: {error}; see --python")))?;
        let mut child = Running(child);
        let pipes = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
        let work = tokio::task::spawn_blocking(move || {
            let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) = pipes else { return Default::default() };
            // A program that ends early has told why.
            let _ = stdin.write_all(request.as_bytes());
            drop(stdin);
            let (mut lines, mut reason) = (String::new(), String::new());
            let _ = stdout.read_to_string(&mut lines);
            let _ = stderr.read_to_string(&mut reason);
            (lines, reason)
        });
        let (lines, reason) = work.await.map_err(|error| CliError::from(SqlError::Internal(error.to_string())))?;
        let status = child.0.wait().map_err(|error| failed(format!("{program}: {error}")))?;
        if !status.success() {
            let reason = reason.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("without a message");
            return Err(failed(format!("{program} ends with {status}: {reason}; see --python")));
        }
        DuckDb::read(&lines).map_err(|error| failed(format!("{program} writes what is no measurement: {error}")))
    }

    fn read(lines: &str) -> serde_json::Result<DuckDb> {
        let (head, cases) = lines.trim_end().split_once('\n').unwrap_or((lines, ""));
        let Head { version, threads, load_ms } = serde_json::from_str(head)?;
        let time = |milliseconds: f64| Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default();
        let case = |line: &str| {
            let Line { case, rows, first_ms, warm_ms } = serde_json::from_str(line)?;
            Ok((case, Times { rows, first: time(first_ms), warm: time(warm_ms) }))
        };
        let cases = cases.lines().map(case).collect::<serde_json::Result<_>>()?;
        Ok(DuckDb { version, threads, load: time(load_ms), cases })
    }

    /// Times of a case.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn times(&self, case: &Case) -> Result<Times> {
        let found = self.cases.iter().find(|(name, _)| *name == case.name);
        let missing = || CliError::Usage(format!("--rival duckdb: no time for {}", case.name));
        found.map(|(_, times)| *times).ok_or_else(missing)
    }
}

impl Times {
    /// Whether DuckDB's answer has another number of rows than ours.
    pub(super) fn difference(&self, case: &Case, rows: usize) -> Option<String> {
        (self.rows != rows).then(|| format!("{}: {rows} rows, {} in DuckDB", case.name, self.rows))
    }
}

/// A process that ends with what it works for.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A process that is over cannot be ended again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_rows_compared() {
        let lines = "{\"version\": \"2.0.1\", \"threads\": 16, \"load_ms\": 1500.0}\n\
                     {\"case\": \"q1\", \"rows\": 4, \"first_ms\": 2.5, \"warm_ms\": 1.0}\n";
        let found = DuckDb::read(lines).unwrap();
        assert_eq!((found.version.as_str(), found.threads), ("2.0.1", 16));
        assert_eq!(found.load, Duration::from_millis(1500));
        let case = |name: &str| Case { name: name.into(), sql: String::new(), variations: Vec::new() };
        let times = found.times(&case("q1")).unwrap();
        assert_eq!((times.first, times.warm), (Duration::from_micros(2500), Duration::from_millis(1)));
        assert_eq!(times.difference(&case("q1"), 4), None);
        assert_eq!(times.difference(&case("q1"), 5).as_deref(), Some("q1: 5 rows, 4 in DuckDB"));
        assert!(found.times(&case("q2")).unwrap_err().to_string().ends_with("no time for q2"));
        assert!(DuckDb::read("").is_err() && DuckDb::read(&lines.replace("warm_ms", "ms")).is_err());
    }
}
