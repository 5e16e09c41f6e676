//! Operations on one core of the CPU, each verified.

use std::time::Instant;

use serde_json::{Value, json};
use warpcube_arrays::formulas::{self, Statistics, Words};
use warpcube_arrays::{GroupBy, Scheme, Storage};

use super::case::Operation;
use super::data::{Data, mix};

/// Runs of random access and aggregation, whose results are small; the least counts.
const RUNS: u32 = 2;

/// Figures of one verified case.
pub(super) struct Measured {
    /// Milliseconds on one core; 0 for a storage ratio, which takes none.
    pub(super) cpu_ms: f64,
    /// The figures of the operation, for the report.
    pub(super) figures: Value,
}

/// The last result of `work` and the least milliseconds of its runs.
pub(super) fn timed<T>(runs: u32, work: impl Fn() -> T) -> (T, f64) {
    let once = || {
        let begin = Instant::now();
        let result = work();
        (result, begin.elapsed().as_secs_f64() * 1e3)
    };
    let (mut result, mut least) = once();
    for _ in 1..runs {
        // Memory of the last result is freed before a run.
        drop(result);
        let (again, ms) = once();
        result = again;
        least = least.min(ms);
    }
    (result, least)
}

/// Measures an operation; `build_ms` is the time of the construction of `stored`.
///
/// # Errors
/// A result that is wrong.
pub(super) fn measure(
    data: &Data,
    stored: &dyn Storage<i64>,
    operation: Operation,
    build_ms: f64,
) -> Result<Measured, String> {
    match operation {
        Operation::Storage => storage(data, stored),
        Operation::Construction => construction(data, stored, build_ms),
        Operation::Random => {
            let (found, ms) = timed(RUNS, || stored.get(&data.asked));
            check("random access", found.map_err(|error| error.to_string())? == data.found)?;
            Ok(each(ms, "lookups", data.found.len()))
        }
        Operation::SubArray(number) => {
            let (area, inside) = &data.areas[number];
            let (found, ms) = timed(1, || stored.sub_array(area));
            check("the sub-array", found.map_err(|error| error.to_string())? == *inside)?;
            Ok(each(ms, "found", inside.len()))
        }
        Operation::Aggregation => {
            let (found, ms) = timed(RUNS, || stored.prefix_sums());
            let found = found.map_err(|error| error.to_string())?;
            // xCCS scans columns: its group-bys are by other dimensions.
            let is_right = match stored.scheme() {
                Scheme::Xccs => found.iter().all(|sums| data.is_group_by(sums)),
                _ => data.is_sums(&found),
            };
            check("the aggregation", is_right)?;
            let groups = found.iter().map(GroupBy::len).sum();
            Ok(each(ms, "groups", groups))
        }
    }
}

fn storage(data: &Data, stored: &dyn Storage<i64>) -> Result<Measured, String> {
    let (sizes, statistics) = (stored.sizes(), Statistics::of(&data.cells));
    let scheme = stored.scheme();
    let predicted = formulas::predicted(scheme, &statistics);
    check("the number of bytes", predicted == Some(sizes.total().into()))?;
    let ratio = sizes.ratio::<i64>(data.shape()).map_err(|error| error.to_string())?;
    let mut figures = json!({"ratio": ratio, "index_bytes": sizes.index_bytes, "value_bytes": sizes.value_bytes});
    // The ratio by the thesis's formula, with its words: values of 4 bytes.
    if let (Some(bytes), Ok(places)) = (formulas::thesis(scheme, &statistics, Words::THESIS), data.shape().places()) {
        figures["thesis_ratio"] = (bytes as f64 / (places as f64 * Words::THESIS.value as f64)).into();
    }
    Ok(Measured { cpu_ms: 0.0, figures })
}

fn construction(data: &Data, stored: &dyn Storage<i64>, build_ms: f64) -> Result<Measured, String> {
    let mut mixed = 0u64;
    stored.for_each(&mut |tuple, value| mixed = mixed.wrapping_add(mix(tuple, value)));
    check("the array", stored.len() == data.cells.len() && mixed == data.mixed)?;
    Ok(each(build_ms, "built", data.cells.len()))
}

/// Figures of so many results.
fn each(cpu_ms: f64, what: &str, count: usize) -> Measured {
    let mut figures = json!({"cpu_ms": cpu_ms, "ns_each": cpu_ms * 1e6 / count.max(1) as f64});
    figures[what] = count.into();
    Measured { cpu_ms, figures }
}

/// An error if a result is wrong.
pub(super) fn check(what: &str, is_right: bool) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(format!("{what} is wrong")),
    }
}
