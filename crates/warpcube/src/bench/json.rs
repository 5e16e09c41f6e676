//! A benchmark's results for machines: one object of a shape that all benchmarks of the project share.
//!
//! A figure that was not measured is absent, never zero.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use warpcube_kbench::report;
use warpcube_sql::{Connection, DeviceColumn};

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

/// Writes the object. Its columns are those in device memory at the end.
pub(super) fn write(
    path: &Path,
    suite: &Suite,
    arguments: &BenchArgs,
    session: &Connection,
    results: &Results<'_>,
) -> Result<()> {
    let mut object = Map::new();
    object.insert("suite".into(), suite.name.into());
    match session.database().device().get() {
        Some(device) => {
            object.insert("device".into(), device.info().name.clone().into());
            object.insert("driver".into(), device.info().driver.clone().into());
        }
        None => {
            object.insert("device".into(), "CPU".into());
        }
    }
    object.insert("date".into(), report::today().into());
    if let Some(commit) = option_env!("WARPCUBE_COMMIT") {
        object.insert("commit".into(), commit.into());
    }
    // Whether the device was insisted on, or loads had to pay.
    let settings = session.settings();
    let (placed, encoding) = (settings.database.device.to_string(), settings.encoding.to_string());
    let mut params = json!({"sf": whole(arguments.sf), "device": placed, "encoding": encoding});
    if let Some(column) = &arguments.sorted_by {
        params["sorted_by"] = column.as_str().into();
    }
    if let Some(compression) = arguments.compression.to_possible_value().filter(|_| arguments.is_compressed()) {
        params["compression"] = compression.get_name().into();
    }
    object.insert("params".into(), params);
    if let Some(duckdb) = results.duckdb {
        let load_ms = duckdb.load.map(|time| time.as_secs_f64() * 1e3);
        let sums = results.cases.iter().all(|case| case.duckdb.as_ref().is_some_and(|times| times.is_shared));
        let mut figures = json!({"version": duckdb.version, "threads": duckdb.threads, "sums": sums});
        match load_ms {
            Some(ms) => figures["load_ms"] = ms.into(),
            None => figures["files"] = true.into(),
        }
        object.insert("rivals".into(), json!({ "duckdb": figures }));
    }
    if let Some(loading) = Loading::of(results.cases) {
        let figures = json!({
            "bytes": loading.bytes,
            "ms": loading.time.as_secs_f64() * 1e3,
            "gb_per_s_core": loading.gigabytes_per_second_core(),
        });
        object.insert("loading".into(), figures);
    }
    if let Some(memory) = results.memory {
        let figures = json!({
            "columns_bytes": memory.columns,
            "tables_bytes": memory.tables,
            "held_bytes": memory.held,
            "held_peak_bytes": memory.held_peak,
            "reserved_peak_bytes": memory.reserved_peak,
            "budget_bytes": memory.budget,
            "warm_driver_allocations": memory.warm_allocations,
        });
        object.insert("memory".into(), figures);
    }
    if let Some(ran) = &results.threads {
        let figures = json!({
            "threads": ran.threads,
            "statements": ran.statements,
            "ms": ran.time.as_secs_f64() * 1e3,
            "statements_per_s": ran.rate(),
            "verified": ran.differences.is_empty(),
        });
        object.insert("threads".into(), figures);
    }
    let tables = session.database().resident_tables();
    let columns = tables.iter().flat_map(|table| table.columns.iter().map(|entry| column(&table.name, entry)));
    object.insert("columns".into(), columns.collect());
    object.insert("results".into(), results.cases.iter().map(case).collect());
    report::write(path, &Value::Object(object)).map_err(|error| CliError::writing(&path.display().to_string(), &error))
}

fn column(table: &str, column: &DeviceColumn) -> Value {
    json!({
        "table": table, "column": column.name, "encoding": column.encoding, "bytes": column.bytes,
        "bits_per_value": column.bits_per_value,
    })
}

fn case(measured: &Measured) -> Value {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut case = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            case.insert(name.into(), value);
        }
    };
    put("case", Some(measured.name.as_str().into()));
    put("rows", Some(measured.rows.into()));
    put("device_ms", measured.device.map(|time| milliseconds(time).into()));
    put("warm_ms", Some(milliseconds(measured.warm).into()));
    put("fresh_ms", measured.fresh.map(|time| milliseconds(time).into()));
    let steps = measured.fresh_steps.iter();
    let steps: Map<String, Value> =
        steps.map(|(step, time)| (format!("{step}_ms"), milliseconds(*time).into())).collect();
    put("fresh", (!steps.is_empty()).then(|| steps.into()));
    put("cold_ms", measured.cold.map(|time| milliseconds(time).into()));
    put("first_ms", Some(milliseconds(measured.first).into()));
    put("bytes", measured.bytes.map(Into::into));
    put("floor_ms", measured.floor.map(|time| milliseconds(time).into()));
    put("share_of_peak", measured.share_of_peak().map(Into::into));
    put("gpu_share", measured.share.map(Into::into));
    put("verified", measured.verified.map(Into::into));
    let duckdb = measured.duckdb.as_ref();
    let rivals = [
        ("datafusion_ms", measured.datafusion),
        ("datafusion_first_ms", measured.datafusion_first),
        ("duckdb_ms", duckdb.and_then(|times| times.warm)),
        ("duckdb_first_ms", duckdb.map(|times| times.first)),
    ];
    let rivals = rivals.into_iter().filter_map(|(name, time)| Some((name.to_string(), milliseconds(time?).into())));
    let rivals: Map<String, Value> = rivals.collect();
    put("rivals", (!rivals.is_empty()).then(|| rivals.into()));
    Value::Object(case)
}

/// A scale factor without a fraction is a whole number in JSON too.
fn whole(sf: f64) -> Value {
    if sf.fract() == 0.0 { (sf as u64).into() } else { sf.into() }
}
