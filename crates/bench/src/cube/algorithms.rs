//! Measures a query with the device's other algorithms, over the facts that its own case has on the device.

use std::sync::Arc;

use serde_json::json;
use warpcube_cube::aggregate::Area;
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, DeviceCells, ResidentFacts};

use crate::report::Case;
use crate::stats::Sample;
use crate::suite::Run;

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

/// The measurements of one algorithm in one case: its time, unless its cells are wrong.
struct Measured {
    time: Option<Sample>,
    runs: usize,
    used: String,
}

impl AlgorithmCases<'_> {
    /// Measures one algorithm and adds its result to the run, which is given. An algorithm that the device refuses is
    /// left out, with the reason; one that gives other cells has no time and is not verified.
    pub(super) fn measure(&self, algorithm: DeviceAlgorithm, run: &mut Run) -> Case {
        let name = format!("{}/{algorithm}", self.query);
        let mut result = described(&name, algorithm);
        match self.runs(algorithm) {
            Err(reason) => {
                run.leave_out(&name, &reason);
                result.put("left_out", reason);
                run.report.results.push(result.clone());
                return result;
            }
            Ok(Measured { time, runs, used }) => {
                if let Some(time) = time {
                    result.put("device_ms", time.ms);
                    result.put("spread", time.spread);
                    result.put("timed_runs", runs);
                }
                if let (DeviceAlgorithm::Source(_), Some(functions)) = (algorithm, functions_of(&used)) {
                    result.put("hash_functions_used", functions);
                }
                result.put("used", used);
                result.verified = Some(time.is_some());
            }
        }
        run.add(result.clone());
        result
    }

    /// Runs an algorithm. A first run that is too long counts alone; else the others do.
    fn runs(&self, algorithm: DeviceAlgorithm) -> Result<Measured, String> {
        let aggregation = DeviceAggregation::new(self.facts.clone());
        let recorded = aggregation.record(algorithm, self.area, 0, &Arc::default());
        let mut recorded = recorded.map_err(|error| error.to_string())?.ok_or("no target is filled")?;
        let mut times = vec![recorded.run().map_err(|error| error.to_string())?];
        // Wrong cells need no time.
        let mut is_right = recorded.cells().map_err(|error| error.to_string())? == *self.expected;
        if is_right && times[0] <= self.first_run_ms_max {
            times.clear();
            for _ in 0..self.runs {
                times.push(recorded.run().map_err(|error| error.to_string())?);
            }
            is_right = recorded.cells().map_err(|error| error.to_string())? == *self.expected;
        }
        Ok(Measured { time: is_right.then(|| Sample::of(&times)), runs: times.len(), used: recorded.used() })
    }
}

/// The number of hash functions that a run used, from its report.
fn functions_of(used: &str) -> Option<u64> {
    used.split_once(" hash functions")?.0.parse().ok()
}

/// The names of a case: its algorithm, and the choices of a source-based variant.
fn described(name: &str, algorithm: DeviceAlgorithm) -> Case {
    let mut result = Case::new(name, json!({"algorithm": algorithm.to_string()}));
    if let DeviceAlgorithm::Source(variant) = algorithm {
        result.put("preaggregation", variant.preaggregation.name());
        result.put("expansion", variant.expansion.name());
        result.put("hash_functions", variant.hash_functions);
        result.put("map", variant.map.name());
    }
    result
}
