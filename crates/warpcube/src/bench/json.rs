//! A benchmark's results for machines: the report that all benchmarks of the project share.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use warpcube_bench::report::{self, Case, Figures, Report};
use warpcube_bench::suite::{COMMIT, figures, today};
use warpcube_sql::{DeviceColumn, Session};

use super::duckdb::DuckDb;
use super::measure::{Loading, Measured, Memory, Threads};
use super::suite::Suite;
use crate::cli::BenchArgs;
use crate::error::{CliError, Result};

/// What was measured.
pub(super) struct Results<'a> {
    /// Of each case.
    pub(super) cases: &'a [Measured],
    /// Of the device's memory.
    pub(super) memory: Option<Memory>,
    /// Of threads side by side.
    pub(super) threads: Option<Threads>,
    /// Of DuckDB as a whole.
    pub(super) duckdb: Option<&'a DuckDb>,
}

/// Writes the report. Its columns are those in device memory at the end.
pub(super) fn write(
    path: &Path,
    suite: &Suite,
    arguments: &BenchArgs,
    session: &Session,
    results: &Results<'_>,
) -> Result<()> {
    let device = session.device().get();
    let name = device.as_ref().map_or_else(|| "CPU".to_string(), |device| device.info().name.clone());
    let mut report = Report::new(suite.name, &name);
    report.driver = device.map(|device| device.info().driver.clone());
    (report.date, report.commit) = (Some(today()), COMMIT.map(str::to_string));
    report.params = params(arguments, session);
    if let Some(duckdb) = results.duckdb {
        let sums = results.cases.iter().all(|case| case.duckdb.as_ref().is_some_and(|times| times.is_shared));
        let mut known = json!({"version": duckdb.version, "threads": duckdb.threads, "sums": sums});
        match duckdb.load {
            Some(time) => known["load_ms"] = milliseconds(time).into(),
            None => known["files"] = true.into(),
        }
        report.rivals.insert("duckdb".into(), known);
    }
    report.loading = Loading::of(results.cases).map(|loading| report::Loading {
        bytes: loading.bytes,
        ms: milliseconds(loading.time),
        gb_per_s_core: loading.gigabytes_per_second_core(),
    });
    report.memory = results.memory.map(|memory| report::Memory {
        columns_bytes: memory.columns,
        tables_bytes: memory.tables,
        held_bytes: memory.held,
        held_peak_bytes: memory.held_peak,
        reserved_peak_bytes: memory.reserved_peak,
        budget_bytes: memory.budget,
        warm_driver_allocations: memory.warm_allocations,
    });
    report.threads = results.threads.as_ref().map(|ran| report::Threads {
        threads: ran.threads,
        statements: ran.statements,
        ms: milliseconds(ran.time),
        statements_per_s: ran.rate(),
        verified: ran.differences.is_empty(),
    });
    let tables = session.resident_tables();
    let columns = tables.iter().flat_map(|table| table.columns.iter().map(|entry| column(&table.name, entry)));
    report.columns = columns.collect();
    report.results = results.cases.iter().map(case).collect();
    report.write(path).map_err(|error| CliError::writing(&path.display().to_string(), &error))
}

/// How queries are measured: whether the device was insisted on, or loads had to pay.
fn params(arguments: &BenchArgs, session: &Session) -> Figures {
    let settings = session.settings();
    let (placed, encoding) = (settings.device.to_string(), settings.encoding.to_string());
    let mut params = json!({"sf": whole(arguments.sf), "device": placed, "encoding": encoding});
    if let Some(column) = &arguments.sorted_by {
        params["sorted_by"] = column.as_str().into();
    }
    if let Some(compression) = arguments.compression.to_possible_value().filter(|_| arguments.is_compressed()) {
        params["compression"] = compression.get_name().into();
    }
    figures(params)
}

fn column(table: &str, column: &DeviceColumn) -> report::Column {
    report::Column {
        table: table.to_string(),
        column: column.name.clone(),
        encoding: column.encoding.clone(),
        bytes: column.bytes,
        bits_per_value: column.bits_per_value,
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn case(measured: &Measured) -> Case {
    let mut case = Case::new(&measured.name, Value::Null);
    let mut put = |figure: &str, value: Option<Value>| {
        if let Some(value) = value {
            case.put(figure, value);
        }
    };
    let time = |time: Option<Duration>| time.map(|time| milliseconds(time).into());
    put("rows", Some(measured.rows.into()));
    put("device_ms", time(measured.device));
    put("warm_ms", time(Some(measured.warm)));
    put("fresh_ms", time(measured.fresh));
    let steps = measured.fresh_steps.iter();
    let steps: Map<String, Value> =
        steps.map(|(step, time)| (format!("{step}_ms"), milliseconds(*time).into())).collect();
    put("fresh", (!steps.is_empty()).then(|| steps.into()));
    put("cold_ms", time(measured.cold));
    put("first_ms", time(Some(measured.first)));
    put("bytes", measured.bytes.map(Into::into));
    put("floor_ms", time(measured.floor));
    put("share_of_peak", measured.share_of_peak().map(Into::into));
    put("gpu_share", measured.share.map(Into::into));
    case.verified = measured.verified;
    let duckdb = measured.duckdb.as_ref();
    let rivals = [
        ("datafusion_ms", measured.datafusion),
        ("datafusion_first_ms", measured.datafusion_first),
        ("duckdb_ms", duckdb.and_then(|times| times.warm)),
        ("duckdb_first_ms", duckdb.map(|times| times.first)),
    ];
    case.rivals = rivals.into_iter().filter_map(|(name, time)| Some((name.into(), milliseconds(time?)))).collect();
    case
}

/// A scale factor without a fraction is a whole number in JSON too.
fn whole(sf: f64) -> Value {
    if sf.fract() == 0.0 { (sf as u64).into() } else { sf.into() }
}
