//! The suite `encodings`: `SELECT SUM(x)` over one column, by encoding and width.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use serde_json::{Value, json};
use warpcube_column::{EncodingChoice, LoadLimits, TableRequest};
use warpcube_engine::{
    AggregateCall, AggregateKind, BindingCache, Engine, Expr, Fragment, FragmentTable, Pipeline, RunOptions, RunReport,
    Sink, Tuning,
};
use warpcube_gpu::Device;

use crate::EncodingArgs;
use crate::data::Uniform;

/// Encodings that are measured, by name.
const ENCODINGS: [(&str, EncodingChoice); 2] = [("plain", EncodingChoice::Plain), ("packed", EncodingChoice::Packed)];

/// Runs the suite.
pub(crate) fn run(arguments: &EncodingArgs) -> Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let tuning: Tuning = arguments.tuning.parse()?;
    let mut results = Vec::new();
    println!("{:<18} {:>9} {:>9} {:>7} {:>10} {:>8}", "case", "device_ms", "floor_ms", "share", "bytes", "load_s");
    for bits in arguments.bits.iter().copied() {
        if !(1..=32).contains(&bits) {
            return Err(format!("{bits} bits: expected 1 to 32"));
        }
        let data = |key| Uniform { rows: arguments.rows, bits, nulls: arguments.nulls, key };
        let expected = data(String::new()).sum();
        for (name, choice) in ENCODINGS {
            let engine = Engine::new(device.clone()).with_tuning(tuning.clone());
            let case = format!("sum/{name}/{bits}");
            let source = data(case.clone());
            results.push(measure(&engine, &case, source, choice, expected, arguments.runs)?);
        }
    }
    let params = json!({"rows": arguments.rows, "nulls": arguments.nulls, "tuning": arguments.tuning});
    let report = crate::report("encodings", &device, params, results);
    crate::write(arguments.json.as_deref(), &report)
}

/// Loads a column, sums it again and again, and tells the median time on the device.
fn measure(
    engine: &Engine,
    case: &str,
    source: Uniform,
    encoding: EncodingChoice,
    expected: i64,
    runs: usize,
) -> Result<Value, String> {
    let rows = source.rows;
    let requests = [TableRequest { source: Arc::new(source), columns: vec![0] }];
    let limits = LoadLimits { encoding, ..LoadLimits::default() };
    let options = RunOptions { limits, ..RunOptions::default() };
    let (fragment, cache) = (sum(), BindingCache::default());
    let once = || -> Result<RunReport, String> {
        let (batch, report) =
            engine.run_again(&fragment, &cache, &requests, &options).map_err(|error| format!("{case}: {error}"))?;
        check(&batch, expected).map_err(|reason| format!("{case}: {reason}"))?;
        Ok(report)
    };
    let start = Instant::now();
    once()?;
    let load = start.elapsed();
    let mut times: Vec<Duration> = Vec::new();
    let mut bytes = 0;
    for _ in 0..runs.max(1) {
        let report = once()?;
        times.push(report.device);
        bytes = report.bytes;
    }
    times.sort_unstable();
    let device = times[times.len() / 2].as_secs_f64();
    let floor = bytes as f64 / engine.device().info().peak_bandwidth;
    let resident =
        engine.residency().summaries().iter().flat_map(|table| &table.columns).map(|column| column.bytes).sum();
    let (resident, share): (u64, f64) = (resident, floor / device);
    println!(
        "{case:<18} {:>9.4} {:>9.4} {share:>7.2} {bytes:>10} {:>8.2}",
        device * 1e3,
        floor * 1e3,
        load.as_secs_f64()
    );
    Ok(json!({
        "case": case, "device_ms": device * 1e3, "bytes": bytes, "floor_ms": floor * 1e3, "share_of_peak": share,
        "bits_per_value": resident as f64 * 8.0 / rows as f64, "verified": true,
    }))
}

/// `SELECT SUM(x) FROM uniform`.
fn sum() -> Fragment {
    let call = AggregateCall {
        kind: AggregateKind::Sum,
        argument: Some(Expr::Reg(0)),
        filter: None,
        data_type: DataType::Int64,
    };
    let sink = Sink::Aggregate { groups: Vec::new(), aggregates: vec![call] };
    Fragment {
        tables: vec![FragmentTable { name: "uniform".into(), columns: vec![0] }],
        pipelines: vec![Pipeline { table: 0, steps: Vec::new(), sink }],
    }
}

fn check(batch: &RecordBatch, expected: i64) -> Result<(), String> {
    let found = batch.column(0).as_primitive_opt::<Int64Type>().map(|sums| sums.value(0));
    if found == Some(expected) { Ok(()) } else { Err(format!("expected {expected}, found {found:?}")) }
}
