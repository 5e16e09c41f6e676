//! DuckDB as a rival: `bench/rivals/duckdb_rival.py`, a part of this program, run by a Python that has the package.
//!
//! It copies the benchmark's tables into memory tables of DuckDB's own, which is not part of any query's time, runs
//! each query on all cores and writes a JSON line for each. Rows and sums of columns of its answers are compared.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::error::ArrowError;
use serde::Deserialize;
use serde_json::json;
use warpcube_sql::SqlError;

use super::benchmark::Query;
use crate::suite::Failure;

const PROGRAM: &str = include_str!("../../../../bench/rivals/duckdb_rival.py");

/// The measurements of DuckDB.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DuckDb {
    /// Its version.
    pub(super) version: String,
    /// Threads that it may use.
    pub(super) threads: usize,
    /// Time of copying the files into its tables; none where it ran over the files.
    pub(super) load: Option<Duration>,
    cases: Vec<(String, Times)>,
}

/// DuckDB's times of a case, and its answer in numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    /// Rows of its answer.
    rows: usize,
    /// Sums of the columns of its answer, of characters where they are text; none where they are neither.
    sums: Vec<Option<f64>>,
    /// The first run behind the copying of the tables.
    pub(super) first: Duration,
    /// Median of the warm runs, if there were some.
    pub(super) warm: Option<Duration>,
}

/// The first line of the rival's output.
#[derive(Deserialize)]
struct Head {
    version: String,
    threads: usize,
    load_ms: Option<f64>,
}

/// A further line.
#[derive(Deserialize)]
struct Line {
    case: String,
    rows: usize,
    sums: Vec<Option<f64>>,
    first_ms: f64,
    warm_ms: Option<f64>,
}

impl DuckDb {
    /// Runs all cases, each `runs` times warm; where it is none, over the files themselves, once.
    ///
    /// # Errors
    /// The Python cannot be run, has no such package, or DuckDB refuses a table or a query.
    pub(super) async fn measure(
        python: &Path,
        tables: &[(String, PathBuf)],
        queries: &[Query],
        runs: Option<usize>,
    ) -> Result<DuckDb, Failure> {
        let failed = |what: String| Failure::Usage(format!("--rival duckdb: {what}"));
        let paths: Vec<(String, PathBuf)> = tables
            .iter()
            .map(|(name, path)| Ok((name.clone(), std::path::absolute(path)?)))
            .collect::<std::io::Result<_>>()
            .map_err(|error| failed(error.to_string()))?;
        let tables: serde_json::Map<_, _> =
            paths.into_iter().map(|(name, path)| (name, path.to_string_lossy().into())).collect();
        let queries: Vec<_> = queries.iter().map(|case| json!({"case": case.name, "sql": case.sql})).collect();
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
            // A program that ends early has written the reason.
            let _ = stdin.write_all(request.as_bytes());
            drop(stdin);
            let (mut lines, mut reason) = (String::new(), String::new());
            let _ = stdout.read_to_string(&mut lines);
            let _ = stderr.read_to_string(&mut reason);
            (lines, reason)
        });
        let (lines, reason) = work.await.map_err(|error| Failure::from(SqlError::Internal(error.to_string())))?;
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
            let Line { case, rows, sums, first_ms, warm_ms } = serde_json::from_str(line)?;
            Ok((case, Times { rows, sums, first: time(first_ms), warm: warm_ms.map(time) }))
        };
        let cases = cases.lines().map(case).collect::<serde_json::Result<_>>()?;
        Ok(DuckDb { version, threads, load: load_ms.map(time), cases })
    }

    /// Times of a case.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn times(&self, case: &Query) -> Result<Times, Failure> {
        let found = self.cases.iter().find(|(name, _)| *name == case.name);
        let missing = || Failure::Usage(format!("--rival duckdb: no time for {}", case.name));
        found.map(|(_, times)| times.clone()).ok_or_else(missing)
    }
}

impl Times {
    /// Where DuckDB's answer has another number of rows than ours, or another sum in a column.
    ///
    /// # Errors
    /// A column of ours that cannot be summed up.
    pub(super) fn difference(&self, case: &Query, answer: &[RecordBatch]) -> Result<Option<String>, Failure> {
        let rows: usize = answer.iter().map(RecordBatch::num_rows).sum();
        if self.rows != rows {
            return Ok(Some(format!("{}: {rows} rows, {} in DuckDB", case.name, self.rows)));
        }
        let Some(schema) = answer.first().map(RecordBatch::schema) else { return Ok(None) };
        let columns = schema.fields().len();
        if self.sums.len() != columns {
            return Ok(Some(format!("{}: {columns} columns, {} in DuckDB", case.name, self.sums.len())));
        }
        for (column, field) in schema.fields().iter().enumerate() {
            let Some(wanted) = self.sums.get(column).copied().flatten() else { continue };
            let sums = answer.iter().map(|batch| sum(batch.column(column)));
            let sums = sums.collect::<Result<Option<Vec<f64>>, _>>();
            let sums = sums.map_err(|error| Failure::from(SqlError::Internal(error.to_string())))?;
            let Some(found) = sums.map(|sums| sums.iter().sum::<f64>()) else { continue };
            // A decimal of ours is cut to its digits, in each row.
            let cut = match field.data_type() {
                DataType::Decimal128(_, scale) => rows as f64 * 10f64.powi(-i32::from(*scale)),
                _ => 0.0,
            };
            let is_same = (found - wanted).abs() <= TOLERANCE * found.abs().max(wanted.abs()) + cut;
            if !is_same || found.is_finite() != wanted.is_finite() {
                let (case, name) = (&case.name, field.name());
                return Ok(Some(format!("{case}: the sum of column '{name}' is {found}, {wanted} in DuckDB")));
            }
        }
        Ok(None)
    }
}

/// Largest difference of sums that count as equal, relative to the larger.
const TOLERANCE: f64 = 1e-9;

/// The sum of a column's numbers, or of the characters of its texts; none of other types.
fn sum(column: &ArrayRef) -> Result<Option<f64>, ArrowError> {
    let is_text = matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if is_text {
        let texts = cast(column, &DataType::LargeUtf8)?;
        let characters = texts.as_string::<i64>().iter().flatten().map(|text| text.chars().count());
        return Ok(Some(characters.sum::<usize>() as f64));
    }
    if !column.data_type().is_numeric() {
        return Ok(None);
    }
    let numbers = cast(column, &DataType::Float64)?;
    Ok(Some(numbers.as_primitive::<Float64Type>().iter().flatten().sum()))
}

/// A process that is killed when this value is dropped.
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
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn lines_are_read_and_answers_compared() {
        let lines = "{\"version\": \"2.0.1\", \"threads\": 16, \"load_ms\": 1500.0}\n\
                     {\"case\": \"q1\", \"rows\": 3, \"sums\": [6.0, 4, null], \"first_ms\": 2.5, \"warm_ms\": 1.0}\n";
        let found = DuckDb::read(lines).unwrap();
        assert_eq!((found.version.as_str(), found.threads), ("2.0.1", 16));
        assert_eq!(found.load, Some(Duration::from_millis(1500)));
        let case = |name: &str| Query { name: name.into(), sql: String::new(), variations: Vec::new() };
        let times = found.times(&case("q1")).unwrap();
        assert_eq!((times.first, times.warm), (Duration::from_micros(2500), Some(Duration::from_millis(1))));
        let answer = |numbers: Vec<i64>, texts: Vec<&str>| {
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
            vec![RecordBatch::try_from_iter([("n", numbers.clone()), ("t", texts), ("other", numbers)]).unwrap()]
        };
        let difference = |answer: Vec<RecordBatch>| times.difference(&case("q1"), &answer).unwrap();
        assert_eq!(difference(answer(vec![1, 2, 3], vec!["a", "é", "bc"])), None);
        assert_eq!(difference(answer(vec![1, 2], vec!["a", "b"])).as_deref(), Some("q1: 2 rows, 3 in DuckDB"));
        let wrong = difference(answer(vec![1, 2, 4], vec!["a", "é", "bc"]));
        assert_eq!(wrong.as_deref(), Some("q1: the sum of column 'n' is 7, 6 in DuckDB"));
        let wrong = difference(answer(vec![1, 2, 3], vec!["a", "é", "b"]));
        assert_eq!(wrong.as_deref(), Some("q1: the sum of column 't' is 3, 4 in DuckDB"));
        assert!(found.times(&case("q2")).unwrap_err().to_string().ends_with("no time for q2"));
        assert!(DuckDb::read("").is_err() && DuckDb::read(&lines.replace("first_ms", "ms")).is_err());
        let over_files = DuckDb::read(&lines.replace("1500.0", "null").replace(", \"warm_ms\": 1.0", "")).unwrap();
        let times = over_files.times(&case("q1")).unwrap();
        assert_eq!((over_files.load, times.warm, times.first), (None, None, Duration::from_micros(2500)));
    }

    #[test]
    fn decimals_may_be_cut_in_each_row() {
        let times = Times { rows: 2, sums: vec![Some(1.0)], first: Duration::ZERO, warm: None };
        let case = Query { name: "q".into(), sql: String::new(), variations: Vec::new() };
        let difference = |values: [i128; 2]| {
            let decimals = Decimal128Array::from(values.to_vec()).with_precision_and_scale(10, 2).unwrap();
            let answer = RecordBatch::try_from_iter([("d", Arc::new(decimals) as ArrayRef)]).unwrap();
            times.difference(&case, &[answer]).unwrap()
        };
        assert_eq!(difference([33, 66]), None);
        let not_a_number =
            RecordBatch::try_from_iter([("f", Arc::new(Float64Array::from(vec![f64::NAN, 1.0])) as ArrayRef)]);
        assert!(times.difference(&case, &[not_a_number.unwrap()]).unwrap().is_some());
        assert!(difference([33, 64]).is_some());
    }
}
