//! The suite `encodings`: `SELECT SUM(x)` over one column, by encoding and width or distribution, and how fast columns
//! are decoded to memory. Beside it the suites of encoding: on the device ([`Encode`]) and on the CPU ([`EncodeCpu`]).

mod cpu;
mod data;
mod decode;
mod encode;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use clap::Args;
use serde_json::json;
use warpcube_column::{EncodingChoice, LoadLimits, TableRequest};
use warpcube_engine::{
    AggregateCall, AggregateKind, BindingCache, Engine, Expr, Fragment, FragmentTable, Overflow, Pipeline, RunOptions,
    Sink, Source, Tuning,
};
use warpcube_gpu::Device;

use crate::report::Case;
use crate::stats::repeat;
use crate::suite::{About, Failure, Run, RunArgs, Suite};
pub use cpu::EncodeCpu;
use data::{Content, Made};
use decode::{ceilings, decode};
pub use encode::{Encode, EncodeArgs};

/// Logarithms of the distinct values of sorted columns.
const SORTED: [u32; 8] = [2, 6, 10, 14, 18, 22, 26, 28];

/// Logarithms of the means of normal columns.
const MEANS: [u32; 4] = [6, 14, 22, 30];
/// Exponents of Zipf columns.
const EXPONENTS: [u32; 5] = [1, 2, 3, 4, 5];

/// What to measure of encodings.
#[derive(Debug, Clone, Args)]
pub struct EncodingArgs {
    /// Values of a column
    #[arg(long, default_value_t = 500_000_000)]
    rows: usize,
    /// Widths in bits, by comma
    #[arg(long, value_delimiter = ',', default_values_t = 2..=32,
          value_parser = clap::value_parser!(u32).range(1..=32))]
    bits: Vec<u32>,
    /// Encodings, by comma; columns that cannot have one are left out, alp adds columns of doubles
    #[arg(long, value_delimiter = ',', default_value = "plain,packed")]
    encodings: Vec<EncodingChoice>,
    /// Sorted, normal and Zipf columns too
    #[arg(long)]
    distributions: bool,
    /// Decode each column to memory too
    #[arg(long)]
    decode: bool,
    /// Every tenth value is NULL
    #[arg(long)]
    nulls: bool,
    /// Runs of a case; the median is reported
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Choices in generated kernels, by name=value,…
    #[arg(long, env = "WARPCUBE_TUNING", default_value = "")]
    tuning: String,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// The suite: a group is a column in every encoding that it can have; the first one has the limits of decoding.
pub struct Encodings {
    device: Device,
    arguments: EncodingArgs,
    tuning: Tuning,
    contents: Vec<Content>,
}

impl Encodings {
    /// The columns that these arguments ask for.
    ///
    /// # Errors
    /// A tuning that is none.
    pub fn new(device: Device, arguments: EncodingArgs) -> Result<Encodings, Failure> {
        // Only kernels of measured cases are compiled.
        let tuning: Tuning = arguments.tuning.parse().map_err(Failure::Usage)?;
        let (tuning, has_doubles) = (Tuning { tiers: 0, ..tuning }, arguments.encodings.contains(&EncodingChoice::Alp));
        let mut contents = Vec::new();
        for bits in arguments.bits.iter().copied() {
            contents.push(Content::Uniform { bits });
            contents.extend((has_doubles && bits < 32).then_some(Content::Hundredths { bits }));
        }
        if arguments.distributions {
            contents.extend(SORTED.map(|log2| Content::Sorted { log2 }));
            contents.extend(MEANS.map(|mean_log2| Content::Normal { mean_log2 }));
            contents.extend(EXPONENTS.map(|exponent| Content::Zipf { exponent }));
        }
        Ok(Encodings { device, arguments, tuning, contents })
    }

    /// Loads a column and sums it again and again.
    fn measure(
        &self,
        run: &mut Run,
        case: &str,
        made: Made,
        encoding: EncodingChoice,
        expected: i64,
    ) -> Result<(), Failure> {
        let engine = Engine::new(self.device.clone()).with_tuning(self.tuning.clone());
        let (rows, runs, is_float) = (made.rows, self.arguments.runs, made.is_float());
        let requests = [TableRequest { source: Arc::new(made), columns: vec![0], coded: Vec::new() }];
        let limits = LoadLimits { encoding, ..LoadLimits::default() };
        let start = Instant::now();
        let loaded = engine.residency().admit(&requests, &limits, |_: &[_]| Ok::<u64, warpcube_column::ColumnError>(0));
        let pinned = loaded.map_err(|error| error.to_string())?;
        let load_ms = start.elapsed().as_secs_f64() * 1e3;
        let column = &pinned.tables[0].columns[0];
        let words = column.encoding().to_string();
        if !is_named(&words, encoding) {
            run.leave_out(case, &format!("the column is {words}"));
            return Ok(());
        }
        let bits = column.bytes() as f64 * 8.0 / rows as f64;
        let options = RunOptions { limits, ..RunOptions::default() };
        let (fragment, cache, mut bytes) = (sum(is_float), BindingCache::default(), 0);
        let time = repeat(runs, || {
            run.go_on()?;
            let (batch, report) =
                engine.run_again(&fragment, &cache, &requests, &options).map_err(|error| error.to_string())?;
            check(&batch, expected, is_float)?;
            bytes = report.bytes;
            Ok::<f64, Failure>(report.device.as_secs_f64() * 1e3)
        })?;
        let floor_ms = bytes as f64 / engine.device().info().peak_bandwidth * 1e3;
        let figures = json!({
            "encoding": words, "device_ms": time.ms, "spread": time.spread, "bytes": bytes, "floor_ms": floor_ms,
            "share_of_peak": floor_ms / time.ms, "bits_per_value": bits, "load_ms": load_ms,
        });
        run.add(Case::new(case, figures).verified(true));
        if self.arguments.decode {
            let case = format!("decode/{}", case.strip_prefix("sum/").unwrap_or(case));
            run.add(decode(engine.device(), &case, column, runs, expected)?);
        }
        Ok(())
    }
}

impl Suite for Encodings {
    fn about(&self) -> About<'_> {
        let EncodingArgs { rows, nulls, tuning, .. } = &self.arguments;
        About {
            name: "encodings",
            device: Some(&self.device),
            params: json!({"rows": rows, "nulls": nulls, "tuning": tuning}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let limits = if self.arguments.decode { vec!["fill".to_string(), "copy".into()] } else { Vec::new() };
        let of = |content: &Content| self.arguments.encodings.iter().map(|choice| name(*content, *choice)).collect();
        Ok([limits].into_iter().chain(self.contents.iter().map(of)).collect())
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let EncodingArgs { rows, nulls, runs, .. } = self.arguments;
        let Some(content) = group.checked_sub(1).map(|at| self.contents[at]) else {
            ceilings(&self.device, rows as u64, runs)?.into_iter().for_each(|case| run.add(case));
            return Ok(());
        };
        let made = |key| Made { rows, content, nulls, key };
        let expected = made(String::new()).sum();
        for choice in self.arguments.encodings.iter().copied() {
            let case = name(content, choice);
            let measured = self.measure(run, &case, made(case.clone()), choice, expected);
            measured.map_err(|failure| failure.at(&case))?;
        }
        Ok(())
    }
}

/// The case of a column in an encoding.
fn name(content: Content, choice: EncodingChoice) -> String {
    let encoding = choice.name();
    match content {
        Content::Uniform { bits } => format!("sum/{encoding}/{bits}"),
        Content::Hundredths { bits } => format!("sum/{encoding}-f64/{bits}"),
        content => format!("{content}/{encoding}"),
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
        unites: false,
    };
    let sink = Sink::Aggregate { groups: Vec::new(), aggregates: vec![call] };
    Fragment {
        tables: vec![FragmentTable { name: "made".into(), columns: vec![0] }],
        pipelines: vec![Pipeline { source: Source::Table(0), steps: Vec::new(), sink }],
        unions: Vec::new(),
        result: Vec::new(),
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
