//! The suite `encodings`: `SELECT SUM(x)` over one column, by encoding and width or distribution, and how fast columns
//! are decoded to memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use serde_json::{Value, json};
use warpcube_column::{EncodingChoice, LoadLimits, TableRequest};
use warpcube_engine::{
    AggregateCall, AggregateKind, BindingCache, Engine, Expr, Fragment, FragmentTable, Overflow, Pipeline, RunOptions,
    RunReport, Sink, Source, Tuning,
};
use warpcube_gpu::Device;
use warpcube_kbench::report;

use crate::EncodingArgs;
use crate::data::{Content, Made};
use crate::decode::{ceilings, decode};

/// Logarithms of the distinct values of sorted columns.
const SORTED: [u32; 8] = [2, 6, 10, 14, 18, 22, 26, 28];

/// Logarithms of the means of normal columns.
const MEANS: [u32; 4] = [6, 14, 22, 30];
/// Exponents of Zipf columns.
const EXPONENTS: [u32; 5] = [1, 2, 3, 4, 5];

/// Runs the suite.
pub(crate) fn run(arguments: &EncodingArgs) -> Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let tuning: Tuning = arguments.tuning.parse()?;
    let mut suite = Suite { arguments, device, tuning, results: Vec::new() };
    println!("{:<24} {:>9} {:>9} {:>7} {:>7} {:>8}", "case", "device_ms", "floor_ms", "share", "bits", "load_s");
    if arguments.decode {
        suite.results.extend(ceilings(&suite.device, arguments.rows as u64, arguments.runs.max(1))?);
    }
    for bits in arguments.bits.iter().copied() {
        if !(1..=32).contains(&bits) {
            return Err(format!("{bits} bits: expected 1 to 32"));
        }
        suite.contents(Content::Uniform { bits }, |encoding| format!("sum/{encoding}/{bits}"))?;
        if arguments.encodings.contains(&EncodingChoice::Alp) && bits < 32 {
            suite.contents(Content::Hundredths { bits }, |encoding| format!("sum/{encoding}-f64/{bits}"))?;
        }
    }
    if arguments.distributions {
        let sorted = SORTED.map(|log2| Content::Sorted { log2 });
        let normal = MEANS.map(|mean_log2| Content::Normal { mean_log2 });
        let zipf = EXPONENTS.map(|exponent| Content::Zipf { exponent });
        for content in sorted.into_iter().chain(normal).chain(zipf) {
            suite.contents(content, |encoding| format!("{content}/{encoding}"))?;
        }
    }
    let params = json!({"rows": arguments.rows, "nulls": arguments.nulls, "tuning": arguments.tuning});
    let report = report::of("encodings", &suite.device, params, suite.results);
    crate::write(arguments.json.as_deref(), &report)
}

struct Suite<'a> {
    arguments: &'a EncodingArgs,
    device: Device,
    tuning: Tuning,
    results: Vec<Value>,
}

impl Suite<'_> {
    /// A column in every encoding that it can have.
    fn contents(&mut self, content: Content, case: impl Fn(&str) -> String) -> Result<(), String> {
        let EncodingArgs { rows, nulls, .. } = *self.arguments;
        let made = |key| Made { rows, content, nulls, key };
        let expected = made(String::new()).sum();
        for choice in self.arguments.encodings.clone() {
            let case = case(choice.name());
            // Only kernels of measured cases are compiled.
            let tuning = Tuning { tiers: 0, ..self.tuning.clone() };
            let engine = Engine::new(self.device.clone()).with_tuning(tuning);
            self.measure(&engine, &case, made(case.clone()), choice, expected)
                .map_err(|reason| format!("{case}: {reason}"))?;
        }
        Ok(())
    }

    /// Loads a column, sums it again and again, and returns the median time on the device.
    fn measure(
        &mut self,
        engine: &Engine,
        case: &str,
        made: Made,
        encoding: EncodingChoice,
        expected: i64,
    ) -> Result<(), String> {
        let (rows, runs, is_float) = (made.rows, self.arguments.runs.max(1), made.is_float());
        let requests = [TableRequest { source: Arc::new(made), columns: vec![0], coded: Vec::new() }];
        let limits = LoadLimits { encoding, ..LoadLimits::default() };
        let start = Instant::now();
        let loaded = engine.residency().admit(&requests, &limits, |_: &[_]| Ok::<u64, warpcube_column::ColumnError>(0));
        let pinned = loaded.map_err(|error| error.to_string())?;
        let load = start.elapsed();
        let column = &pinned.tables[0].columns[0];
        let words = column.encoding().to_string();
        if !is_named(&words, encoding) {
            return Ok(());
        }
        let bits = column.bytes() as f64 * 8.0 / rows as f64;
        let options = RunOptions { limits, ..RunOptions::default() };
        let (fragment, cache) = (sum(is_float), BindingCache::default());
        let once = || -> Result<RunReport, String> {
            let (batch, report) =
                engine.run_again(&fragment, &cache, &requests, &options).map_err(|error| error.to_string())?;
            check(&batch, expected, is_float)?;
            Ok(report)
        };
        once()?;
        let mut times: Vec<Duration> = Vec::new();
        let mut bytes = 0;
        for _ in 0..runs {
            let report = once()?;
            times.push(report.device);
            bytes = report.bytes;
        }
        times.sort_unstable();
        let device = times[times.len() / 2].as_secs_f64();
        let floor = bytes as f64 / engine.device().info().peak_bandwidth;
        let share = floor / device;
        println!(
            "{case:<24} {:>9.4} {:>9.4} {share:>7.2} {bits:>7.2} {:>8.2}",
            device * 1e3,
            floor * 1e3,
            load.as_secs_f64()
        );
        self.results.push(json!({
            "case": case, "encoding": words, "device_ms": device * 1e3, "bytes": bytes,
            "floor_ms": floor * 1e3, "share_of_peak": share, "bits_per_value": bits, "verified": true,
        }));
        if self.arguments.decode {
            let case = format!("decode/{}", case.strip_prefix("sum/").unwrap_or(case));
            self.results.push(decode(engine.device(), &case, column, runs, expected)?);
        }
        Ok(())
    }
}

/// Whether a column has the encoding that was asked for.
fn is_named(words: &str, encoding: EncodingChoice) -> bool {
    match encoding {
        EncodingChoice::Auto => true,
        EncodingChoice::Dictionary => words.contains("dictionary("),
        named => words.split('(').next() == Some(named.name()) && !words.contains("dictionary("),
    }
}

/// `SELECT SUM(x) FROM made`.
fn sum(is_float: bool) -> Fragment {
    let call = AggregateCall {
        kind: AggregateKind::Sum,
        argument: Some(Expr::Reg(0)),
        filter: None,
        data_type: if is_float { DataType::Float64 } else { DataType::Int64 },
    };
    let sink = Sink::Aggregate { groups: Vec::new(), aggregates: vec![call] };
    Fragment {
        tables: vec![FragmentTable { name: "made".into(), columns: vec![0] }],
        pipelines: vec![Pipeline { source: Source::Table(0), steps: Vec::new(), sink }],
        unions: Vec::new(),
        overflow: Overflow::Raise,
    }
}

fn check(batch: &RecordBatch, expected: i64, is_float: bool) -> Result<(), String> {
    if is_float {
        let found = batch.column(0).as_primitive_opt::<Float64Type>().map(|sums| sums.value(0) * 100.0);
        let is_near = found.is_some_and(|found| (found / expected as f64 - 1.0).abs() < 1e-9);
        return if is_near { Ok(()) } else { Err(format!("expected {expected}, found {found:?}")) };
    }
    let found = batch.column(0).as_primitive_opt::<Int64Type>().map(|sums| sums.value(0));
    if found == Some(expected) { Ok(()) } else { Err(format!("expected {expected}, found {found:?}")) }
}
