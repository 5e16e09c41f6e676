//! The suite `schemes`: storage schemes of sparse arrays on one core and on a device.
//!
//! Data: arrays of 2, 3, 4 and 8 dimensions at sparsities of 90, 95, 99 and 99.9 % (Wang, *Sparse Array Representations
//! and Some Selected Array Operations on GPUs*, section 6.2); values are decimals of scale 2, so that sums are compared
//! to the bit. Operations: storage ratio, construction, random access, the three sub-arrays of section 7.2.1.3, the
//! k - 1 aggregations of one scan. Every scheme runs on one core of the CPU; BESS, xCRS, BxCRS and hybrid run on the
//! device too. Hybrid has the r that section 7.2 measures.
//!
//! Each result is compared with a plain scan of the generated cells, made without a scheme (`data.rs`).

mod case;
mod cpu;
mod data;
mod gpu;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use warpcube_cube::schemes::generate::{DIMENSIONS, SPARSITIES};
use warpcube_cube::schemes::{Limits, Scheme};
use warpcube_gpu::Device;

use crate::report;
use case::{Case, DeviceKind, Operation};
use cpu::Measured;
use data::Data;
use gpu::GpuBench;

/// The name of the suite in reports.
pub const SUITE: &str = "schemes";

/// What to measure of storage schemes.
#[derive(Debug, Clone, Args)]
pub struct SchemeArgs {
    /// Only these cases, or all below a name, by comma; * stands for any part: random/*/k8/s99,aggregation/bess.
    /// Operations are storage, construction, random, sub-array-1, sub-array-2, sub-array-3 and aggregation
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// List the cases that would run, and run none
    #[arg(long)]
    pub list: bool,
    /// Filled cells of the arrays, by comma; every case runs for each
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_values_t = [2_000_000, 10_000_000])]
    pub cells: Vec<usize>,
    /// Tuples of a random access; at most as many as cells
    #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
    pub lookups: usize,
    /// Runs of a case on the device behind a first one; the median counts
    #[arg(long, default_value_t = 11, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The schemes of the suite for an array of so many dimensions.
fn schemes(dimensions: usize) -> [Scheme; 8] {
    [
        Scheme::Coordinate,
        Scheme::OffsetValue,
        Scheme::Bess,
        Scheme::Xcrs,
        Scheme::Xccs,
        Scheme::Bxcrs,
        Scheme::measured_hybrid(dimensions),
        Scheme::Ptcs,
    ]
}

/// The cases that were asked for, in the order they run.
///
/// # Errors
/// A name of `--cases` that no case has.
pub fn plan(arguments: &SchemeArgs) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for (dimensions, sparsity) in DIMENSIONS.into_iter().flat_map(|k| SPARSITIES.map(|sparsity| (k, sparsity))) {
        for scheme in schemes(dimensions) {
            names.extend(Case::all(dimensions, sparsity, scheme).map(|case| case.name()));
        }
    }
    let unknown = |wanted: &&String| !names.iter().any(|name| case::is_named(name, wanted));
    if let Some(unknown) = arguments.cases.iter().find(unknown) {
        return Err(format!("--cases {unknown}: no case has this name; --list shows all"));
    }
    names.retain(|name| arguments.wants(name));
    Ok(names)
}

/// Measures all cases that were asked for; `say` hears a line for each.
///
/// # Errors
/// Unknown cases; a device that fails; a result that is wrong.
pub fn run(device: &Device, arguments: &SchemeArgs, say: &mut dyn FnMut(&str)) -> Result<Value, String> {
    plan(arguments)?;
    let begin = Instant::now();
    let mut bench = Bench { device, arguments, say, results: Vec::new() };
    for cells in arguments.cells.iter().copied() {
        for (dimensions, sparsity) in DIMENSIONS.into_iter().flat_map(|k| SPARSITIES.map(|sparsity| (k, sparsity))) {
            bench.measure_array(dimensions, sparsity, cells)?;
        }
    }
    let Bench { results, .. } = bench;
    say(&case::least_speedup(&results));
    say(&format!("{} results in {:.0} s", results.len(), begin.elapsed().as_secs_f64()));
    let params = json!({"cells": arguments.cells, "lookups": arguments.lookups, "runs": arguments.runs});
    Ok(report::of(SUITE, device, params, results))
}

impl SchemeArgs {
    /// True if a case was asked for.
    fn wants(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|wanted| case::is_named(name, wanted))
    }
}

/// A run of the suite.
struct Bench<'a> {
    device: &'a Device,
    arguments: &'a SchemeArgs,
    say: &'a mut dyn FnMut(&str),
    results: Vec<Value>,
}

impl Bench<'_> {
    /// Measures the cases of one array.
    fn measure_array(&mut self, dimensions: usize, sparsity: f64, cells: usize) -> Result<(), String> {
        let wanted = |scheme: &Scheme| {
            let mut cases = Case::all(dimensions, sparsity, *scheme);
            cases.any(|case| self.arguments.wants(&case.name()))
        };
        let schemes: Vec<Scheme> = schemes(dimensions).into_iter().filter(wanted).collect();
        if schemes.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let data = Data::new(dimensions, cells, sparsity, self.arguments.lookups.min(cells))?;
        let sizes = data.cells.shape().sizes();
        let drawn = begin.elapsed().as_secs_f64();
        (self.say)(&format!(
            "k = {dimensions}, {:.1} % empty: {cells} cells in {sizes:?}, {drawn:.1} s",
            sparsity * 100.0
        ));
        for scheme in schemes {
            self.measure_scheme(&data, dimensions, sparsity, scheme)
                .map_err(|reason| format!("{scheme}, k = {dimensions}, sparsity {sparsity}: {reason}"))?;
        }
        Ok(())
    }

    /// Measures the cases of one array in one scheme, those on the CPU first.
    fn measure_scheme(&mut self, data: &Data, dimensions: usize, sparsity: f64, scheme: Scheme) -> Result<(), String> {
        let case = |operation, kind| Case { operation, scheme, dimensions, sparsity, kind };
        let (stored, build_ms) = cpu::timed(1, || scheme.build(&data.cells, &Limits::default()));
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => {
                (self.say)(&format!("{scheme} left out: {error}"));
                return Ok(());
            }
        };
        let mut gpu: Option<(GpuBench<'_>, f64)> = None;
        for operation in Operation::ALL {
            let on_cpu = case(operation, DeviceKind::Cpu);
            let on_gpu = case(operation, DeviceKind::Gpu);
            let has_kernels = Case::is_on_device(scheme);
            let [wants_cpu, wants_gpu] = [&on_cpu, &on_gpu].map(|case| self.arguments.wants(&case.name()));
            let wants_gpu = wants_gpu && has_kernels;
            // The figure of the CPU stands beside that of the device.
            let measured = match wants_cpu || wants_gpu {
                true => cpu::measure(data, stored.as_ref(), operation, build_ms)?,
                false => continue,
            };
            if wants_cpu {
                self.add(&on_cpu, data, &measured);
            }
            if wants_gpu {
                if gpu.is_none() {
                    gpu = Some(GpuBench::new(self.device, data, stored.as_ref(), self.arguments.runs)?);
                }
                if let Some((gpu, upload_ms)) = &mut gpu {
                    let found = gpu.measure(operation, &measured, *upload_ms)?;
                    self.add(&on_gpu, data, &found);
                }
            }
        }
        Ok(())
    }

    /// Adds a verified result.
    fn add(&mut self, case: &Case, data: &Data, measured: &Measured) {
        let mut result = json!({
            "case": case.name(), "scheme": case.scheme.to_string(), "cells": data.cells.len(), "verified": true,
        });
        if let (Value::Object(result), Value::Object(more)) = (&mut result, measured.figures.clone()) {
            result.extend(more);
        }
        (self.say)(&case::line(&result));
        self.results.push(result);
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;

    fn arguments(cases: &[&str]) -> SchemeArgs {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        SchemeArgs { cases, list: false, cells: vec![1500], lookups: 400, runs: 1, json: None }
    }

    #[test]
    fn a_plan_lists_every_case_once() {
        let all = plan(&arguments(&[])).unwrap();
        // Seven operations of eight schemes on the CPU and four on the device.
        assert_eq!(all.len(), 16 * 7 * 12);
        assert!(all.contains(&"random/hybrid/k8/s99.9/gpu".to_string()));
        assert!(all.contains(&"sub-array-2/ptcs/k2/s90/cpu".to_string()));
        assert!(!all.iter().any(|name| name.starts_with("random/ptcs") && name.ends_with("gpu")));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        let some = plan(&arguments(&["random/*/k8/s99", "aggregation/bess/*/*/gpu"])).unwrap();
        assert_eq!(some.len(), 12 + 16);
        let unknown = plan(&arguments(&["random/crs"])).unwrap_err();
        assert!(unknown.starts_with("--cases random/crs: "), "{unknown}");
    }

    #[test]
    fn a_small_run_is_verified() {
        let device = Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap();
        let arguments = arguments(&["*/*/k3/s95", "random/*/k8/s99", "aggregation/*/k2/s90/gpu"]);
        let mut lines = 0;
        let report = run(&device, &arguments, &mut |_| lines += 1).unwrap();
        let results = report["results"].as_array().unwrap();
        assert_eq!(results.len(), 7 * 12 + 12 + 4);
        assert_eq!(results.len() + 5, lines, "a line a result, one an array and two at the end");
        let named = |name: &str| results.iter().find(|result| result["case"] == name).unwrap();
        for result in results {
            assert!(result["verified"] == true && result["cells"] == 1500, "{result}");
        }
        let random = named("random/bess/k3/s95/gpu");
        let figure = |key: &str| random[key].as_f64().unwrap();
        assert!(figure("device_ms") > 0.0 && figure("warm_ms") > 0.0 && figure("speedup") > 0.0, "{random}");
        let ratio = |scheme: &str| named(&format!("storage/{scheme}/k3/s95/cpu"))["ratio"].as_f64().unwrap();
        // Formulas 2.1.3 and 3.5: 16 bytes a cell and 28 of 8 a place, at one filled place in twenty.
        assert!((ratio("bess") - 0.1).abs() < 0.01 && (ratio("ptcs") - 0.175).abs() < 0.01);
        assert_eq!(named("sub-array-1/bess/k3/s95/gpu")["found"], named("sub-array-1/ptcs/k3/s95/cpu")["found"]);
    }
}
