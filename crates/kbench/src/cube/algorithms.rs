//! Measures a query with the device's other algorithms, over the facts that its own case has on the device.

use std::sync::Arc;

use serde_json::{Value, json};
use warpcube_cube::aggregate::Area;
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, DeviceCells, ResidentFacts};

use super::suite::median;

/// Hash functions of the source-based variants that `all` stands for.
const ALL_HASH_FUNCTIONS: u32 = 64;
/// Milliseconds of a first run behind which no other one of `--algorithms` follows.
pub(super) const FIRST_RUN_MS_MAX: f64 = 2000.0;

/// The algorithms that were asked for by name; `all` is every one but contraction, which a query's own case measures.
///
/// # Errors
/// A name of no algorithm.
pub(super) fn named(names: &[String]) -> Result<Vec<DeviceAlgorithm>, String> {
    let mut algorithms = Vec::new();
    for name in names {
        if name == "all" {
            let all = DeviceAlgorithm::all_variants(&[ALL_HASH_FUNCTIONS]);
            algorithms.extend(all.into_iter().filter(|algorithm| *algorithm != DeviceAlgorithm::Contract));
        } else {
            algorithms.push(name.parse().map_err(|error| format!("--algorithms {name}: {error}"))?);
        }
    }
    Ok(algorithms)
}

/// One query, whose cells are known.
pub(super) struct AlgorithmCases<'a> {
    pub(super) query: &'a str,
    pub(super) facts: &'a Arc<ResidentFacts>,
    pub(super) area: &'a Area,
    /// The query's cells, which were verified.
    pub(super) expected: &'a DeviceCells,
    /// Runs behind the first one.
    pub(super) runs: u32,
    /// Milliseconds of a first run behind which no other one follows: it counts alone.
    pub(super) first_run_ms_max: f64,
}

/// The measurements of one algorithm in one case.
struct Measured {
    device_ms: f64,
    runs: usize,
    used: String,
    is_right: bool,
}

impl AlgorithmCases<'_> {
    /// Measures one algorithm. An algorithm that the device refuses is left out, with the reason; one that gives other
    /// cells has no time and is not verified. `say` hears a line.
    pub(super) fn measure(&self, algorithm: DeviceAlgorithm, say: &mut dyn FnMut(&str)) -> Value {
        let case = format!("{}/{algorithm}", self.query);
        let mut result = described(&case, algorithm);
        match self.runs(algorithm) {
            Err(reason) => {
                say(&format!("{case} left out: {reason}"));
                result["left_out"] = reason.into();
            }
            Ok(Measured { is_right: false, used, .. }) => {
                say(&format!("{case} WRONG: other cells than those of the query; {used}"));
                result["verified"] = false.into();
                result["used"] = used.into();
            }
            Ok(Measured { device_ms, runs, used, is_right: true }) => {
                let used_text = if used.is_empty() { String::new() } else { format!("; {used}") };
                say(&format!("{case} device {device_ms:.4} ms, {runs} runs, verified{used_text}"));
                result["device_ms"] = device_ms.into();
                result["timed_runs"] = runs.into();
                if let (DeviceAlgorithm::Source(_), Some(functions)) = (algorithm, functions_of(&used)) {
                    result["hash_functions_used"] = functions.into();
                }
                result["used"] = used.into();
                result["verified"] = true.into();
            }
        }
        result
    }

    /// Runs an algorithm. A first run that is too long counts alone; else the median of the others does.
    fn runs(&self, algorithm: DeviceAlgorithm) -> Result<Measured, String> {
        let aggregation = DeviceAggregation::new(self.facts.clone());
        let recorded = aggregation.record(algorithm, self.area, 0, &Arc::default());
        let mut recorded = recorded.map_err(|error| error.to_string())?.ok_or("no target is filled")?;
        let mut times = vec![recorded.run().map_err(|error| error.to_string())?];
        // Wrong cells need no time.
        let mut is_right = recorded.cells().map_err(|error| error.to_string())? == *self.expected;
        if is_right && times[0] <= self.first_run_ms_max {
            for _ in 0..self.runs {
                times.push(recorded.run().map_err(|error| error.to_string())?);
            }
            is_right = recorded.cells().map_err(|error| error.to_string())? == *self.expected;
        }
        let runs = times.len().saturating_sub(1).max(1);
        let device_ms = if times.len() == 1 { times[0] } else { median(times) };
        Ok(Measured { device_ms, runs, used: recorded.used(), is_right })
    }
}

/// The number of hash functions that a run used, from its report.
fn functions_of(used: &str) -> Option<u64> {
    used.split_once(" hash functions")?.0.parse().ok()
}

/// The names of a case: its algorithm, and the choices of a source-based variant.
fn described(case: &str, algorithm: DeviceAlgorithm) -> Value {
    let mut result = json!({"case": case, "algorithm": algorithm.to_string()});
    if let DeviceAlgorithm::Source(variant) = algorithm {
        result["preaggregation"] = variant.preaggregation.name().into();
        result["expansion"] = variant.expansion.name().into();
        result["hash_functions"] = variant.hash_functions.into();
        result["map"] = variant.map.name().into();
    }
    result
}
